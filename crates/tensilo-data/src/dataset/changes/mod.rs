//! Changes to a dataset, collected and then published as its next version (chapter 9 of
//! `MANIFEST.md`).
//!
//! [`Changes`] holds a version that no reader can see yet. Callers append samples to it, and add,
//! rename and drop columns; [`publish`](publish()) then makes it visible in one step. Data files
//! are written before that, to a folder that no other writer uses, and are removed if nothing is
//! published. If a writer is killed, it therefore leaves only unlisted files.
//!
//! Most changes do not touch any data. Each column has an id, and a layout maps the column names of
//! a file to these ids. So renaming or dropping a column changes no file, and groups with the same
//! columns share a layout. Groups that are stored in pages stay there unless a change concerns
//! them.
//!
//! Submodules rewrite all samples ([`repack`]), publish files that many processes have written
//! ([`job`]), and remove old versions ([`garbage`]).

mod garbage;
mod job;
mod publish;
mod repack;
#[cfg(test)]
mod tests;

pub use garbage::Garbage;
pub use job::{JobFile, WriteJob};

use super::handle::{Dataset, Location};
use super::listed_file::{FileFacts, check_column};
use super::store::location::{ReadOptions, location};
use super::store::{DataFile, Store};
use super::versions;
use crate::error::{DataError, Result};
use crate::io::Opener;
use crate::manifest::{DatasetColumn, FileEntry, Group, Layout, Version, check_path, content_ids, dataset_id, join};
use crate::order::WindowSizes;
use publish::{DataFolder, PublishError, publish};
#[cfg(feature = "import")]
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
#[cfg(feature = "import")]
use tensilo::Summary;
use tensilo::error::display_path;
#[cfg(feature = "import")]
use tensilo::import::{AppendOptions, ConvertOptions, Progress, ShardFiles, append_shards, convert_shards};
use tensilo::{ColumnSchema, Schema};

/// The maximum number of groups in pages that can be changed. Changing them needs all groups in
/// memory, and a manifest can claim more groups than fit.
const MAX_CHANGED_GROUPS: u64 = 1 << 22;

/// The metadata key that marks a column as a field of a struct.
const PATH_KEY: &str = "tensilo.path";

/// Changes to a dataset. [`Changes::publish`] makes them its next version.
///
/// Before that, no reader sees them. If this value is dropped unpublished, or if publishing fails
/// and the version certainly does not exist, data files at paths from [`Changes::next_path`] are
/// removed. Folders that were created for them and are now empty are removed with them.
#[derive(Debug)]
pub struct Changes {
    folder: PathBuf,
    store: Arc<dyn Store>,
    /// How the dataset is read.
    options: ReadOptions,
    /// The version that is changed; `None` for a new dataset.
    base: Option<Dataset>,
    /// The next version.
    version: Version,
    order: Option<WindowSizes>,
    data: DataFolder,
    /// The paths of all files that were added.
    added: Vec<Box<str>>,
    /// The local folders that were created, innermost first.
    made: Vec<PathBuf>,
}

impl Dataset {
    /// Starts a new dataset in a folder, which is created if needed. Fails if the folder has a
    /// manifest.
    pub fn create(folder: impl AsRef<Path>) -> Result<Changes> {
        Changes::create(folder.as_ref(), ReadOptions::default())
    }

    /// Starts changes to this version of the dataset.
    pub fn change(&self) -> Result<Changes> {
        let Location::Folder(folder) = &self.0.location else {
            let message = "files without a manifest cannot be changed; create a dataset from them first";
            return Err(DataError::BadArgument(message.to_owned()));
        };
        let mut version = self.0.version.clone();
        version.parent = Some((version.number, self.0.digest));
        version.groups = self.0.groups_of_page(version.pages.len())?;
        let store_and_options = (self.0.store.clone(), self.0.options.clone());
        Ok(Changes::new(folder, store_and_options, Some(self.clone()), version))
    }
}

impl Changes {
    /// Starts a new dataset that is read with these options; see [`Dataset::create`].
    pub(super) fn create(folder: &Path, options: ReadOptions) -> Result<Self> {
        let (store, options) = location(folder, options)?;
        let made = store.create_root().map_err(|error| DataError::Io {
            path: folder.to_path_buf(),
            operation: "creating the folder",
            error,
        })?;
        if let Some(version) = versions::list(&*store, folder)?.last() {
            return Err(DataError::BadArgument(format!(
                "{}: the folder already has a dataset, at version {version}; append to it, or choose another folder",
                display_path(folder)
            )));
        }
        let mut changes = Self::new(folder, (store, options), None, Version::empty());
        changes.made = made;
        Ok(changes)
    }

    fn new(
        folder: &Path,
        (store, options): (Arc<dyn Store>, ReadOptions),
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
            order: None,
            added: Vec::new(),
            made: Vec::new(),
        }
    }

    /// Returns the number of the next version.
    pub fn version(&self) -> u64 {
        self.version.number
    }

    /// Returns the number of samples that the next version has so far.
    pub fn sample_count(&self) -> u64 {
        self.version.samples
    }

    /// Returns the columns and the metadata that the next version has so far.
    pub fn schema(&self) -> Schema {
        let columns = self.version.columns.iter().map(|column| column.schema.clone()).collect();
        Schema { columns, metadata: self.version.metadata.clone() }
    }

    /// Sets the time of the version, in seconds since 1970-01-01 00:00 UTC. The default is now.
    /// With `None`, no time is recorded, so the same changes always produce the same manifest, byte
    /// for byte.
    pub fn set_time(&mut self, time: Option<u64>) {
        self.version.time = time;
    }

    /// Sets the default sizes of runs and windows for training. If this is not called, the sizes of
    /// the previous version are kept; a new dataset uses [`WindowSizes::for_dataset`].
    pub fn set_window_sizes(&mut self, sizes: WindowSizes) {
        self.order = Some(sizes);
    }

    /// Sets the metadata of the dataset.
    pub fn set_metadata(&mut self, metadata: tensilo::Metadata) {
        self.version.metadata = metadata;
    }

    /// Returns a path for a new data file, in a folder that only this writer uses. Write a tensilo
    /// file there, and pass the path to [`Changes::add_file`] or [`Changes::add_columns`].
    ///
    /// [`Changes::next_file`] opens the file, and also works in object stores.
    pub fn next_path(&mut self) -> Result<PathBuf> {
        let name = self.next_name()?;
        Ok(join(&self.folder, &name))
    }

    /// Starts a new data file, in a folder that only this writer uses. Write a tensilo file to it,
    /// and pass its path to [`Changes::add_file`] or [`Changes::add_columns`].
    pub fn next_file(&mut self) -> Result<DataFile> {
        let name = self.next_name()?;
        Ok(self.store.data_file(&name)?)
    }

    /// Returns the path of the next data file in the dataset.
    fn next_name(&mut self) -> Result<String> {
        let (name, is_data_new) = self.data.next_path(&*self.store, &self.folder)?;
        if is_data_new {
            self.made.insert(0, self.folder.join("data"));
        }
        Ok(name)
    }

    /// Appends the samples of a tensilo file in the folder of the dataset. Samples that are
    /// appended to the file later are not included.
    ///
    /// The file must be new, because a file that only older versions list can be removed with them;
    /// see [`Garbage`].
    ///
    /// Its columns are matched with the columns of the dataset by name, and must have the same
    /// dtypes, shapes and casts. The file can lack nullable columns; their samples are then null.
    /// The first file of a new dataset defines the columns and the metadata.
    pub fn add_file(&mut self, file: impl AsRef<Path>) -> Result<()> {
        let path = file.as_ref();
        let facts = self.facts(path)?;
        let name = facts.listed.path.clone();
        self.append_facts(facts).map_err(|what| DataError::BadArgument(format!("{}: {what}", display_path(path))))?;
        self.added.push(name);
        Ok(())
    }

    /// Appends the samples of a durable file, or returns why that is impossible.
    fn append_facts(&mut self, facts: FileFacts) -> std::result::Result<(), String> {
        let is_new = self.base.is_none() && self.version.groups.is_empty();
        if is_new && self.version.columns.is_empty() {
            // a manifest has no name for an unknown type
            facts.schema.check().map_err(|error| error.to_string())?;
            self.version.metadata.extend(facts.schema.metadata.clone());
            adopt_columns(&mut self.version, &facts.schema);
        }
        let layout = layout_of_appended(&facts.schema, &self.version.columns)?;
        let layout = layout_index(&mut self.version.layouts, layout);
        self.version.samples = self.version.samples.saturating_add(facts.samples);
        let files = vec![FileEntry { layout, ..facts.listed }];
        self.version.groups.push(Group { samples: facts.samples, files });
        Ok(())
    }

    /// Sets the columns of a new dataset and adds metadata, instead of taking both from its first
    /// file.
    pub fn declare(&mut self, schema: &Schema) -> Result<()> {
        if !self.version.columns.is_empty() {
            return Err(DataError::BadArgument("the dataset already has columns".to_owned()));
        }
        self.version.metadata.extend(schema.metadata.clone());
        adopt_columns(&mut self.version, schema);
        Ok(())
    }

    /// Makes the column with this index nullable.
    pub fn make_nullable(&mut self, column: usize) {
        self.version.columns.get_mut(column).into_iter().for_each(|column| column.schema.nullable = true);
    }

    /// Appends a group of samples that is stored in several tensilo files in the folder of the
    /// dataset. Each file is given with its columns: for each column, its name in the file and its
    /// index in [`Changes::schema`]. The samples of columns that no file has are null.
    pub fn add_group(&mut self, files: &[(PathBuf, Vec<(String, usize)>)]) -> Result<()> {
        let mut group = Group { samples: 0, files: Vec::new() };
        for (path, columns) in files {
            let facts = self.facts(path)?;
            let refused = |what: String| DataError::BadArgument(format!("{}: {what}", display_path(path)));
            if !group.files.is_empty() && facts.samples != group.samples {
                return Err(refused(format!(
                    "the file has {} samples, but the first file of its group has {}",
                    facts.samples, group.samples
                )));
            }
            let mut layout = Layout::new();
            for (name, number) in columns {
                let expected = self.version.columns.get(*number);
                let expected =
                    expected.ok_or_else(|| refused(format!("the dataset has no column {number}, counted from 0")))?;
                let (_, found) = facts.schema.find_column(name).map_err(|error| error.with_path(path))?;
                check_column(found, &expected.schema).map_err(|violation| refused(violation.message))?;
                layout.insert(name.clone(), expected.id);
            }
            let layout = layout_index(&mut self.version.layouts, layout);
            group.samples = facts.samples;
            group.files.push(self.listed(facts, layout));
        }
        self.version.samples = self.version.samples.saturating_add(group.samples);
        self.version.groups.push(group);
        Ok(())
    }

    /// Adds columns to the existing samples, from tensilo files in the folder of the dataset: the
    /// first file has the samples of the first group, and so on. All files must have the same
    /// columns, and the names of these columns must be new.
    ///
    /// Cost: reads all pages of the manifest, and opens the files.
    pub fn add_columns<P: AsRef<Path>>(&mut self, files: impl IntoIterator<Item = P>) -> Result<()> {
        let groups: Vec<u64> = self.groups_mut()?.iter().map(|group| group.samples).collect();
        let added = self.facts_of_columns(&groups, files)?;
        let Some(columns) = added.first().map(|facts| facts.schema.columns.clone()) else {
            return Err(bad("the dataset has no samples; append a first file with all columns instead".to_owned()));
        };
        columns.iter().try_for_each(|column| self.check_new(&column.name))?;
        // nothing fails from here on
        let ids = columns.into_iter().map(|column| {
            let name = column.name.clone();
            (name, add_column(&mut self.version, column))
        });
        let layout: Layout = ids.collect();
        let layout = layout_index(&mut self.version.layouts, layout);
        for (group, facts) in added.into_iter().enumerate() {
            let file = self.listed(facts, layout);
            self.version.groups.get_mut(group).into_iter().for_each(|group| group.files.push(file.clone()));
        }
        Ok(())
    }

    /// Returns the facts of files with new columns. `groups` are the sample counts of the groups.
    fn facts_of_columns<P: AsRef<Path>>(
        &self,
        groups: &[u64],
        files: impl IntoIterator<Item = P>,
    ) -> Result<Vec<FileFacts>> {
        let mut found: Vec<FileFacts> = Vec::with_capacity(groups.len());
        for path in files {
            let path = path.as_ref();
            let facts = self.facts(path)?;
            let expected = groups.get(found.len()).copied().unwrap_or(0);
            if facts.samples != expected {
                let (path, group, samples) = (display_path(path), found.len(), facts.samples);
                return Err(bad(format!("{path}: the file has {samples} samples, but group {group} has {expected}")));
            }
            if found.first().is_some_and(|first| first.schema.columns != facts.schema.columns) {
                return Err(bad(format!("{}: the columns are not the same as in the first file", display_path(path))));
            }
            found.push(facts);
        }
        if found.len() != groups.len() {
            return Err(bad(format!("{} files for {} groups: expected one for each group", found.len(), groups.len())));
        }
        Ok(found)
    }

    /// Adds a nullable column without files: all existing samples are null.
    pub fn add_nullable_column(&mut self, column: ColumnSchema) -> Result<()> {
        if !column.nullable {
            let name = &column.name;
            return Err(bad(format!("column {name:?} is not nullable, but a new column without files has only nulls")));
        }
        self.check_new(&column.name)?;
        add_column(&mut self.version, column);
        Ok(())
    }

    /// Removes a column. Its files stay, because older versions list them.
    pub fn drop_column(&mut self, name: &str) -> Result<()> {
        let index = self.index_of(name)?;
        self.version.columns.remove(index);
        Ok(())
    }

    /// Renames a column. The files do not change: each keeps its own name for the column.
    pub fn rename_column(&mut self, name: &str, new_name: &str) -> Result<()> {
        let index = self.index_of(name)?;
        self.check_new(new_name)?;
        if let Some(column) = self.version.columns.get_mut(index) {
            new_name.clone_into(&mut column.schema.name);
        }
        Ok(())
    }

    /// Returns the index of a column that can be changed.
    fn index_of(&self, name: &str) -> Result<usize> {
        let (index, _) = self.schema().find_column(name)?;
        let is_field = |column: &DatasetColumn| column.schema.metadata.contains_key(PATH_KEY);
        if self.version.columns.get(index).is_some_and(is_field) {
            return Err(bad(format!("column {name:?} is a field of a struct: it cannot be renamed or dropped")));
        }
        Ok(index)
    }

    fn check_new(&self, name: &str) -> Result<()> {
        if self.version.columns.iter().any(|column| column.schema.name == name) {
            return Err(bad(format!("the dataset already has a column {name:?}")));
        }
        Ok(())
    }

    /// Publishes the version, and returns the dataset at this version. `change` describes what
    /// changed.
    ///
    /// Everything is durable when this returns. If another writer has published a version in the
    /// meantime, fails with [`DataError::Conflict`].
    pub fn publish(mut self, change: impl Into<String>) -> Result<Dataset> {
        self.version.change = change.into();
        if self.base.is_none() {
            self.version.dataset_id = dataset_id(content_ids(&self.version.groups));
            self.version.order = self.version.default_sizes(self.store.run_bytes());
        }
        self.version.order = self.order.unwrap_or(self.version.order);
        match publish(&*self.store, &self.folder, &mut self.version, &self.added) {
            Ok(digest) => {
                self.data.keep();
                let location = Location::Folder(self.folder.clone());
                let version = std::mem::replace(&mut self.version, Version::empty());
                Ok(Dataset::new(self.store.clone(), location, version, digest, self.options.clone()))
            }
            Err(PublishError::NotPublished(error)) => Err(error),
            Err(PublishError::Unknown(error)) => {
                self.data.keep();
                Err(error)
            }
        }
    }

    /// Returns the facts of a file in the folder.
    fn facts(&self, path: &Path) -> Result<FileFacts> {
        let name = name_in(&self.folder, path)?;
        FileFacts::of_samples(&self.opener_of_new_files(), path, &name)
    }

    /// Records that a file was added, and returns its entry with this layout.
    fn listed(&mut self, facts: FileFacts, layout: usize) -> FileEntry {
        self.added.push(facts.listed.path.clone());
        FileEntry { layout, ..facts.listed }
    }

    /// Returns the number of pages. The inline groups count as one page.
    fn page_count(&self) -> usize {
        self.version.pages.len().saturating_add(1)
    }

    /// Returns the groups of a page. The index after the last page stands for the inline groups.
    fn groups_of_page(&self, page: usize) -> Result<Vec<Group>> {
        match &self.base {
            Some(base) if page < self.version.pages.len() => base.0.groups_of_page(page),
            _ => Ok(self.version.groups.clone()),
        }
    }

    /// Moves all groups out of their pages, so that they can be changed.
    fn groups_mut(&mut self) -> Result<&mut Vec<Group>> {
        let paged = self.version.pages.iter().map(|page| page.groups).fold(0, u64::saturating_add);
        if paged > MAX_CHANGED_GROUPS {
            let message = format!(
                "the dataset has {paged} groups, but at most {MAX_CHANGED_GROUPS} can be changed; first repack it into \
                 larger files"
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

    /// Replaces all groups with one group per file. The files have the same samples as before.
    fn replace_groups(&mut self, files: Vec<(FileFacts, Layout)>) {
        self.version.pages.clear();
        self.version.layouts.clear();
        self.version.groups.clear();
        self.added.clear();
        for (facts, layout) in files {
            let layout = layout_index(&mut self.version.layouts, layout);
            let samples = facts.samples;
            let files = vec![self.listed(facts, layout)];
            self.version.groups.push(Group { samples, files });
        }
    }

    /// Returns the layout of a file that has the columns with these indices, under their names in
    /// the dataset.
    fn layout_of(&self, columns: &[usize]) -> Layout {
        let columns = columns.iter().filter_map(|&number| self.version.columns.get(number));
        columns.map(|column| (column.schema.name.clone(), column.id)).collect()
    }

    /// Returns the origin of a data file that a repack writes, given its number.
    fn origin(&self, number: usize) -> Vec<u8> {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        let numbers = [self.version.number.to_le_bytes(), number.to_le_bytes()].concat();
        [b"repacked ".as_slice(), &self.version.dataset_id, &numbers].concat()
    }

    /// Returns the function that opens new files.
    fn opener_of_new_files(&self) -> Opener {
        self.options.opener_of_new_files()
    }

    /// Returns the function that opens the files of the dataset.
    fn opener(&self) -> Opener {
        self.base.as_ref().map_or_else(|| self.opener_of_new_files(), |base| base.0.files.opener().clone())
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.data.remove(&*self.store);
        for folder in &self.made {
            let _ = std::fs::remove_dir(folder); // fails unless it is empty
        }
    }
}

#[cfg(feature = "import")]
impl Changes {
    /// Converts files and appends their samples. Each data file has at most `shard_bytes` raw
    /// bytes, but at least one sample. The inputs and their order are the same as for
    /// [`tensilo::import::convert`].
    ///
    /// Raw bytes are counted after casts and before encoding. The same inputs and options produce
    /// the same files, for any number of threads. After an error, samples that were appended before
    /// this call remain, and some samples of this call may have been appended. Drop the changes; to
    /// try again, start new ones.
    pub fn import(
        &mut self,
        inputs: &[PathBuf],
        shard_bytes: u64,
        options: &ConvertOptions,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<()> {
        convert_shards(inputs, &mut Shards(self), shard_bytes, options, progress)
    }

    /// Converts files to the columns of the dataset, with the casts that these columns record, and
    /// appends their samples. [`tensilo::import::append`] does the same for a single file.
    ///
    /// The sizes of the data files and the effect of an error are the same as for
    /// [`Changes::import`].
    pub fn append_rows(
        &mut self,
        inputs: &[PathBuf],
        shard_bytes: u64,
        options: &AppendOptions,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<()> {
        let (schema, folder) = (self.schema(), self.folder.clone());
        append_shards(inputs, &schema, &folder, &mut Shards(self), shard_bytes, options, progress)
    }
}

/// Writes the data files of an import, and appends each.
#[cfg(feature = "import")]
struct Shards<'a>(&'a mut Changes);

#[cfg(feature = "import")]
impl ShardFiles for Shards<'_> {
    type Sink = DataFile;
    type Error = DataError;

    fn begin(&mut self) -> Result<DataFile> {
        self.0.next_file()
    }

    fn finished(&mut self, file: Summary<DataFile>) -> Result<()> {
        self.0.add_file(file.sink.path())
    }
}

/// Returns the path of a file as a manifest states it.
fn name_in(folder: &Path, file: &Path) -> Result<String> {
    let refused = |why: &str| {
        let (file, folder) = (display_path(file), display_path(folder));
        DataError::BadArgument(format!("{file}: {why} the folder {folder} of the dataset"))
    };
    let inside = match file.strip_prefix(folder) {
        Ok(inside) => inside.to_path_buf(),
        Err(_) => {
            let whole = |path: &Path| {
                std::fs::canonicalize(path).map_err(|error| refused(&format!("{error}; expected a file in")))
            };
            let (file, folder) = (whole(file)?, whole(folder)?);
            file.strip_prefix(&folder).map_err(|_| refused("the file is not in"))?.to_path_buf()
        }
    };
    let names: Option<Vec<&str>> = inside.components().map(|component| component.as_os_str().to_str()).collect();
    let name = names.ok_or_else(|| refused("expected a UTF-8 name in"))?.join("/");
    check_path(&name).map_err(|violation| DataError::BadArgument(violation.message))?;
    Ok(name)
}

/// Gives a dataset without columns the columns of a file.
fn adopt_columns(version: &mut Version, schema: &Schema) {
    for column in &schema.columns {
        add_column(version, column.clone());
    }
}

/// Adds a column, and returns its id.
fn add_column(version: &mut Version, schema: ColumnSchema) -> u64 {
    let id = version.column_ids;
    version.column_ids = id.saturating_add(1);
    version.columns.push(DatasetColumn { id, schema });
    id
}

/// Returns the layout of a file whose samples are appended, or why they cannot be appended.
fn layout_of_appended(schema: &Schema, columns: &[DatasetColumn]) -> std::result::Result<Layout, String> {
    let mut layout = Layout::new();
    for column in &schema.columns {
        let expected = columns.iter().find(|expected| expected.schema.name == column.name).ok_or_else(|| {
            let name = &column.name;
            format!("the dataset has no column {name:?}; first add it to the existing samples")
        })?;
        check_column(column, &expected.schema).map_err(|violation| violation.message)?;
        layout.insert(column.name.clone(), expected.id);
    }
    let missing =
        columns.iter().find(|expected| !expected.schema.nullable && !layout.contains_key(&expected.schema.name));
    match missing {
        None => Ok(layout),
        Some(expected) => {
            Err(format!("there is no column {:?}, which is required because it is not nullable", expected.schema.name))
        }
    }
}

/// Returns the index of a layout. Adds the layout if it is new.
fn layout_index(layouts: &mut Vec<Layout>, layout: Layout) -> usize {
    let found = layouts.iter().position(|known| *known == layout);
    found.unwrap_or_else(|| {
        layouts.push(layout);
        layouts.len().saturating_sub(1)
    })
}

fn bad(message: String) -> DataError {
    DataError::BadArgument(message)
}
