//! Chapter 9: a version in the making.

use super::data_file::DataFile;
use super::data_folder::DataFolder;
use super::dataset_place::location;
use super::facts::FileFacts;
use super::handle::Dataset;
use super::location::Location;
use super::options::DatasetOptions;
use super::publish::{Unpublished, publish};
use super::store::Store;
use super::{layouts, open};
use crate::error::{DataError, Result};
use crate::io::Opener;
use crate::manifest::{Group, Layout, ListedFile, Version, check_path, content_ids, dataset_id, join};
use crate::order::RunsAndWindows;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tensilo::Schema;
use tensilo::error::display_path;

/// The most groups in pages that are changed: what a manifest may claim is more than memory has.
const MOST_CHANGED_GROUPS: u64 = 1 << 22;

/// Changes to a dataset, which [`Changes::publish`] makes a new version of.
///
/// Nothing of them can be seen before. If this value is dropped without, or fails to publish, the
/// data files that were written to paths of [`Changes::next_path`] are removed, and so are folders
/// that were made and are empty.
#[derive(Debug)]
pub struct Changes {
    pub(super) folder: PathBuf,
    store: Arc<dyn Store>,
    /// How the dataset is read.
    options: DatasetOptions,
    /// The version that changes; none for a new dataset.
    base: Option<Dataset>,
    /// The version in the making.
    pub(super) version: Version,
    /// Raw bytes of the files of a new dataset, from which its order is derived.
    raw_bytes: u64,
    order: Option<RunsAndWindows>,
    data: DataFolder,
    /// The paths of all files that were added.
    added: Vec<Box<str>>,
    /// The folders that were made, innermost first.
    made: Vec<PathBuf>,
}

impl Dataset {
    /// Begins a new dataset in a folder, which is made if it does not exist. Fails if the folder
    /// has a manifest.
    pub fn create(folder: impl AsRef<Path>) -> Result<Changes> {
        DatasetOptions::new().create(folder)
    }

    /// Begins changes to this version of the dataset.
    pub fn change(&self) -> Result<Changes> {
        let Location::Folder(folder) = &self.0.location else {
            let message = "files without a manifest cannot be changed as a dataset; create one from them first";
            return Err(DataError::BadArgument(message.to_owned()));
        };
        let mut version = self.0.version.clone();
        version.parent = Some((version.number, self.0.digest));
        version.groups = self.0.groups_of_page(version.pages.len())?;
        let place = (self.0.store.clone(), self.0.options.clone());
        Ok(Changes::new(folder, place, Some(self.clone()), version))
    }
}

impl DatasetOptions {
    /// Begins a new dataset, see [`Dataset::create`]. The options are those that it is read with.
    pub fn create(self, folder: impl AsRef<Path>) -> Result<Changes> {
        let folder = folder.as_ref();
        let (store, options) = location(folder, self)?;
        let made = store.make().map_err(|error| DataError::Io {
            path: folder.to_path_buf(),
            doing: "making the folder",
            error,
        })?;
        if let Some(version) = open::versions(&*store, folder)?.last() {
            return Err(DataError::BadArgument(format!(
                "{}: the folder has a dataset, at version {version}; append to it, or choose another folder",
                display_path(folder)
            )));
        }
        let mut changes = Changes::new(folder, (store, options), None, Version::empty());
        changes.made = made;
        Ok(changes)
    }
}

impl Changes {
    fn new(
        folder: &Path,
        (store, options): (Arc<dyn Store>, DatasetOptions),
        base: Option<Dataset>,
        mut version: Version,
    ) -> Self {
        version.number = version.number.saturating_add(1);
        version.time = SystemTime::UNIX_EPOCH.elapsed().ok().map(|since| since.as_secs());
        Self {
            folder: folder.to_path_buf(),
            store,
            options,
            base,
            data: DataFolder::new(version.number),
            version,
            raw_bytes: 0,
            order: None,
            added: Vec::new(),
            made: Vec::new(),
        }
    }

    /// Returns the number of the version in the making.
    pub fn version(&self) -> u64 {
        self.version.number
    }

    /// Returns the number of samples so far.
    pub fn sample_count(&self) -> u64 {
        self.version.samples
    }

    /// Returns the columns and the metadata so far.
    pub fn schema(&self) -> Schema {
        let columns = self.version.columns.iter().map(|column| column.schema.clone()).collect();
        Schema { columns, metadata: self.version.metadata.clone() }
    }

    /// Sets when the version was made, in seconds since 1970-01-01 00:00 UTC. The default is now.
    /// With `None` it is not recorded: equal files then give equal bytes.
    pub fn set_time(&mut self, time: Option<u64>) {
        self.version.time = time;
    }

    /// Sets the sizes of runs and windows that a training uses unless told. The default is that of
    /// the version before, or [`RunsAndWindows::for_samples_of`] the bytes of the samples.
    pub fn set_order(&mut self, order: RunsAndWindows) {
        self.order = Some(order);
    }

    /// Sets the metadata of the dataset.
    pub fn set_metadata(&mut self, metadata: tensilo::Metadata) {
        self.version.metadata = metadata;
    }

    /// Returns a path for a new data file, in a folder of this writer's own. The caller writes a
    /// tensilo file there, and calls [`Changes::append`] or [`Changes::add_columns`] with it.
    ///
    /// [`Changes::next_file`] opens the file, too, and works in object stores.
    pub fn next_path(&mut self) -> Result<PathBuf> {
        let name = self.next_name()?;
        Ok(join(&self.folder, &name))
    }

    /// Begins a new data file, in a folder of this writer's own. The caller writes a tensilo file
    /// to it, and calls [`Changes::append`] or [`Changes::add_columns`] with its path.
    pub fn next_file(&mut self) -> Result<DataFile> {
        let name = self.next_name()?;
        Ok(self.store.data_file(&name)?)
    }

    /// Returns the path of the next data file in the dataset.
    fn next_name(&mut self) -> Result<String> {
        let folder = self.folder.join("data");
        let is_new = !folder.exists();
        let name = self.data.next_path(&*self.store, &self.folder)?;
        if is_new {
            self.made.insert(0, folder);
        }
        Ok(name)
    }

    /// Appends the samples of a tensilo file, which is in the folder of the dataset, as it is now.
    ///
    /// It is a new file: one that only older versions list may be removed with them, see
    /// [`Garbage`](crate::Garbage).
    ///
    /// Its columns are those of the dataset, by their names: of the same dtypes, shapes and casts.
    /// It may lack nullable ones, whose samples are then null. The first file of a new dataset
    /// gives it columns and metadata.
    pub fn append(&mut self, file: impl AsRef<Path>) -> Result<()> {
        let path = file.as_ref();
        let facts = self.facts(path)?;
        let name = facts.listed.path.clone();
        self.append_facts(facts).map_err(|what| DataError::BadArgument(format!("{}: {what}", display_path(path))))?;
        self.added.push(name);
        Ok(())
    }

    /// Appends the samples of a durable file, or says why not.
    pub(super) fn append_facts(&mut self, facts: FileFacts) -> std::result::Result<(), String> {
        let is_new = self.base.is_none() && self.version.groups.is_empty();
        if is_new && self.version.columns.is_empty() {
            // a manifest has no name for a type that this release does not know
            facts.schema.check().map_err(|error| error.to_string())?;
            self.version.metadata.extend(facts.schema.metadata.clone());
            layouts::adopt_columns(&mut self.version, &facts.schema);
        }
        let layout = layouts::of_appended(&facts.schema, &self.version.columns)?;
        let layout = layouts::index_of(&mut self.version.layouts, layout);
        self.version.samples = self.version.samples.saturating_add(facts.samples);
        self.raw_bytes = self.raw_bytes.saturating_add(facts.raw_bytes);
        let files = vec![ListedFile { layout, ..facts.listed }];
        self.version.groups.push(Group { samples: facts.samples, files });
        Ok(())
    }

    /// Publishes the version, and returns the dataset as it is then. `change` says in words what
    /// was changed.
    ///
    /// Everything is durable when this returns. Fails with [`DataError::Conflict`] if another
    /// writer has published a version since the one that was changed.
    pub fn publish(mut self, change: impl Into<String>) -> Result<Dataset> {
        self.version.change = change.into();
        if self.base.is_none() {
            self.version.dataset_id = dataset_id(content_ids(&self.version.groups));
            self.version.order = RunsAndWindows::for_samples_of(self.raw_bytes / self.version.samples.max(1));
        }
        self.version.order = self.order.unwrap_or(self.version.order);
        match publish(&*self.store, &self.folder, &mut self.version, &self.added) {
            Ok(digest) => {
                self.data.keep();
                let location = Location::Folder(self.folder.clone());
                let version = std::mem::replace(&mut self.version, Version::empty());
                let options = DatasetOptions { version: None, ..self.options.clone() };
                Ok(Dataset::new(self.store.clone(), location, version, digest, options))
            }
            Err(Unpublished::No(error)) => Err(error),
            Err(Unpublished::Unknown(error)) => {
                self.data.keep();
                Err(error)
            }
        }
    }

    /// Returns the facts of a file in the folder.
    pub(super) fn facts(&self, path: &Path) -> Result<FileFacts> {
        let name = name_in(&self.folder, path)?;
        FileFacts::of_samples(&self.opener_of_new_files(), path, &name)
    }

    /// Takes a file into the version, with this layout.
    pub(super) fn listed(&mut self, facts: FileFacts, layout: usize) -> ListedFile {
        self.added.push(facts.listed.path.clone());
        ListedFile { layout, ..facts.listed }
    }

    /// Returns the number of pages, with that of the inline groups.
    pub(super) fn page_count(&self) -> usize {
        self.version.pages.len().saturating_add(1)
    }

    /// Returns the groups of a page, or, after the last page, the inline ones.
    pub(super) fn groups_of_page(&self, page: usize) -> Result<Vec<Group>> {
        match &self.base {
            Some(base) if page < self.version.pages.len() => base.0.groups_of_page(page),
            _ => Ok(self.version.groups.clone()),
        }
    }

    /// Takes all groups out of their pages, to change them.
    pub(super) fn groups_mut(&mut self) -> Result<&mut Vec<Group>> {
        let paged = self.version.pages.iter().map(|page| page.groups).fold(0, u64::saturating_add);
        if paged > MOST_CHANGED_GROUPS {
            let message = format!(
                "{paged} groups, and at most {MOST_CHANGED_GROUPS} can be changed; repack the dataset to larger files first"
            );
            return Err(DataError::BadArgument(message));
        }
        let mut groups = Vec::new();
        for page in 0..self.page_count() {
            groups.extend(self.groups_of_page(page)?);
        }
        self.version.groups = groups;
        self.version.pages.clear();
        Ok(&mut self.version.groups)
    }

    /// Replaces all groups by files with the same samples.
    pub(super) fn replace_groups(&mut self, files: Vec<(FileFacts, Layout)>) {
        self.version.pages.clear();
        self.version.layouts.clear();
        self.version.groups.clear();
        self.added.clear();
        for (facts, layout) in files {
            let layout = layouts::index_of(&mut self.version.layouts, layout);
            let samples = facts.samples;
            let files = vec![self.listed(facts, layout)];
            self.version.groups.push(Group { samples, files });
        }
    }

    /// Returns the layout of a file that has the columns with these numbers under their names.
    pub(super) fn layout_of(&self, columns: &[usize]) -> Layout {
        let columns = columns.iter().filter_map(|&number| self.version.columns.get(number));
        columns.map(|column| (column.schema.name.clone(), column.id)).collect()
    }

    /// Returns the origin of a data file that is made of the dataset, given its number.
    pub(super) fn origin(&self, number: usize) -> Vec<u8> {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        let numbers = [self.version.number.to_le_bytes(), number.to_le_bytes()].concat();
        [b"repacked ".as_slice(), &self.version.dataset_id, &numbers].concat()
    }

    /// Returns the function that opens files that were written just now.
    fn opener_of_new_files(&self) -> Opener {
        self.options.opener_of_new_files()
    }

    /// Returns the function that opens the files of the dataset.
    pub(super) fn opener(&self) -> Opener {
        self.base.as_ref().map_or_else(|| self.opener_of_new_files(), |base| base.0.files.opener().clone())
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.data.remove(&*self.store);
        for folder in &self.made {
            let _ = std::fs::remove_dir(folder); // it stays if anything is in it
        }
    }
}

/// Returns the path of a file as a manifest has it.
fn name_in(folder: &Path, file: &Path) -> Result<String> {
    let refused = |why: &str| {
        let (file, folder) = (display_path(file), display_path(folder));
        DataError::BadArgument(format!("{file}: {why} the folder {folder} of the dataset"))
    };
    let inside = match file.strip_prefix(folder) {
        Ok(inside) => inside.to_path_buf(),
        Err(_) => {
            let whole =
                |path: &Path| std::fs::canonicalize(path).map_err(|error| refused(&format!("{error}, or not in")));
            let (file, folder) = (whole(file)?, whole(folder)?);
            file.strip_prefix(&folder).map_err(|_| refused("the file is not in"))?.to_path_buf()
        }
    };
    let names: Option<Vec<&str>> = inside.components().map(|component| component.as_os_str().to_str()).collect();
    let name = names.ok_or_else(|| refused("the name is not UTF-8, in"))?.join("/");
    check_path(&name).map_err(|broken| DataError::BadArgument(broken.message))?;
    Ok(name)
}
