//! An open dataset: the handle that callers keep.

use super::dataset_place::{location, remote};
use super::folder::Folder;
use super::found::{FoundColumns, FoundFile, FoundGroup};
use super::groups::{Groups, Place, PlacedGroup};
use super::listed_reader::{self, Listing};
use super::location::Location;
use super::open_files::OpenFiles;
use super::options::DatasetOptions;
use super::store::Store;
use super::{open, without_manifest};
use crate::error::{DataError, Result};
use crate::io::{Io, IoChoice, IoPool, Opening};
use crate::manifest::{Group, Hex, ListedFile, Version};
use crate::order::RunsAndWindows;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::facts::ContentId;
use tensilo::{Column, Reader, Schema};

/// Files that are read as one sequence of samples: a version of a dataset with a manifest, or a
/// list of files.
///
/// A version never changes. [`Dataset::change`] begins the next one: [`Changes`] append samples,
/// add, rename and drop columns, and repack files. [`Garbage`] removes old versions.
///
/// [`Changes`]: crate::Changes
/// [`Garbage`]: crate::Garbage
///
/// A clone costs one reference count. Any thread can keep one, and it works after `fork`. Files are
/// opened when a sample of theirs is first asked for, and a bounded number is kept open.
#[derive(Clone, Debug)]
pub struct Dataset(pub(super) Arc<OpenedDataset>);

/// The state of an open dataset, which all handles to it share.
#[derive(Debug)]
pub(super) struct OpenedDataset {
    pub store: Arc<dyn Store>,
    pub location: Location,
    /// The options that it was opened with.
    pub options: DatasetOptions,
    /// Its inline groups are in `groups`.
    pub version: Version,
    pub digest: Hex,
    pub schema: Schema,
    pub groups: Groups,
    pub files: OpenFiles,
}

/// A sample of a column, found in a file.
#[derive(Clone)]
#[non_exhaustive]
pub struct FoundSample {
    /// The column of the file; `None` if the group of the sample has no such file, so that all of
    /// its samples are null.
    pub column: Option<Column>,
    /// The number of the sample in the file.
    pub index: u64,
    /// The samples of the dataset that are in the file, too.
    pub samples: Range<u64>,
}

/// A run of consecutive samples of a dataset, and the files that contain them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SampleGroup {
    /// The samples.
    pub samples: Range<u64>,
    /// The files. No two have the same column.
    pub files: Vec<GroupFile>,
    placed: PlacedGroup,
}

/// A file of a [`SampleGroup`], as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupFile {
    /// The path.
    pub path: PathBuf,
    /// The length of the file at the commit that the dataset reads.
    pub bytes: u64,
    /// The content id of that commit.
    pub content_id: ContentId,
    /// The columns that it has: the name in the file, and the number in the schema of the dataset.
    pub columns: Vec<(String, usize)>,
}

impl DatasetOptions {
    /// Opens the dataset in a folder: the newest version of its manifest, or the one that the
    /// options name. Without a manifest, its `*.tsl` files are the dataset, in the order of their
    /// names. A file is a dataset, too.
    ///
    /// With the feature `object`, the folder may be a prefix of an object store, and the file an
    /// object: `s3://bucket/train`.
    ///
    /// Cost: with a manifest, the reading of one text, whatever the number of files. Without, the
    /// opening of all files.
    pub fn open(self, folder: impl AsRef<Path>) -> Result<Dataset> {
        let folder = folder.as_ref();
        let remote = remote(folder, &self.remote)?;
        let is_remote = remote.is_some();
        if remote.map_or_else(|| folder.is_file(), |remote| remote.is_file) {
            return self.open_files([folder]);
        }
        let (store, options) = location(folder, self)?;
        let versions = open::versions(&*store, folder)?;
        let number = match (options.version, versions.last()) {
            (Some(version), _) if versions.contains(&version) => version,
            (Some(version), newest) => {
                let has = newest.map_or("no version".to_owned(), |newest| format!("versions up to {newest}"));
                let folder = tensilo::error::display_path(folder);
                return Err(DataError::BadArgument(format!(
                    "{folder}: version {version} does not exist; the dataset has {has}"
                )));
            }
            (None, Some(&newest)) => newest,
            (None, None) if is_remote => return options.open_all(without_manifest::files_below(&*store, folder)?),
            (None, None) => return options.open_all(without_manifest::files_in(folder)?),
        };
        let (version, digest) = open::read(&*store, folder, number)?;
        let location = Location::Folder(folder.to_path_buf());
        Ok(Dataset::new(store, location, version, digest, options))
    }

    /// Opens files as a dataset, in this order. All have the columns of the first one.
    ///
    /// Cost: the opening of all files.
    pub fn open_files<P: AsRef<Path>>(self, files: impl IntoIterator<Item = P>) -> Result<Dataset> {
        let files: Vec<PathBuf> = files.into_iter().map(|file| file.as_ref().to_path_buf()).collect();
        let first = files.first().map_or(Path::new(""), PathBuf::as_path);
        match remote(first, &self.remote)? {
            Some(remote) => self.for_remote(first, remote.io)?.open_all(files),
            None => self.open_all(files),
        }
    }

    /// Opens files whose place is known.
    fn open_all(self, files: Vec<PathBuf>) -> Result<Dataset> {
        let version = without_manifest::version(&files, &self.io_of_new_files())?;
        let store = Arc::new(Folder(PathBuf::new()));
        Ok(Dataset::new(store, Location::Anywhere, version, Hex::default(), self))
    }
}

impl Dataset {
    pub(super) fn new(
        store: Arc<dyn Store>,
        location: Location,
        mut version: Version,
        digest: Hex,
        options: DatasetOptions,
    ) -> Self {
        let columns = version.columns.iter().map(|column| column.schema.clone()).collect();
        let schema = Schema { columns, metadata: version.metadata.clone() };
        let groups = Groups::new(&mut version);
        let io = options.io.clone().unwrap_or_else(|| {
            let place = Place { store: &*store, folder: location.folder(), version: &version };
            let path = location.any_path(&groups, &place);
            let stays_cached = |_: &IoChoice| IoChoice::stays_cached(&path, || groups.stored_bytes(&place));
            options.if_cached.clone().filter(stays_cached).unwrap_or_else(|| IoChoice::choose(&path))
        });
        let files = OpenFiles::new(options.max_open_files.unwrap_or_else(tensilo::source::default_open_files), io);
        Self(Arc::new(OpenedDataset { store, location, options, version, digest, schema, groups, files }))
    }

    /// Opens the newest version of the dataset in a folder, see [`DatasetOptions::open`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        DatasetOptions::new().open(folder)
    }

    /// Returns the id, which the dataset keeps for its life. A [`State`](crate::State) has it.
    pub fn id(&self) -> [u8; 16] {
        self.0.version.dataset_id
    }

    /// Returns the number of the version; 0 without a manifest.
    pub fn version(&self) -> u64 {
        self.0.version.number
    }

    /// Returns what made the version, in words.
    pub fn change_text(&self) -> &str {
        &self.0.version.change
    }

    /// Returns when the version was made, in seconds since 1970-01-01 00:00 UTC, if it is recorded.
    pub fn time(&self) -> Option<u64> {
        self.0.version.time
    }

    /// Returns the version that this one was made from.
    pub fn parent(&self) -> Option<u64> {
        self.0.version.parent.map(|(version, _)| version)
    }

    /// Returns the number of samples.
    pub fn sample_count(&self) -> u64 {
        self.0.version.samples
    }

    /// Returns the columns and the metadata of the dataset.
    pub fn schema(&self) -> &Schema {
        &self.0.schema
    }

    /// Returns the sizes of runs and windows that a training of this dataset uses unless told.
    pub fn order(&self) -> RunsAndWindows {
        self.0.version.order
    }

    /// Returns the groups of samples, in order. Reads the pages of the manifest that were not read
    /// before, and opens no file.
    pub fn groups(&self) -> impl Iterator<Item = Result<SampleGroup>> + '_ {
        let opened = &*self.0;
        let groups = (0..opened.groups.page_count()).flat_map(|page| opened.groups.of_page(&opened.place(), page));
        groups.map(|group| group.map(|group| opened.described(&group)))
    }

    /// Returns the versions that the folder has, in ascending order; none without a manifest.
    pub fn versions(&self) -> Result<Vec<u64>> {
        match &self.0.location {
            Location::Folder(folder) => open::versions(&*self.0.store, folder),
            Location::Anywhere => Ok(Vec::new()),
        }
    }

    /// Opens a file of a group, and checks that it is the one that the manifest lists. `file` is
    /// counted from 0. The file is not one of those that are kept open.
    pub fn open_file(&self, group: &SampleGroup, file: usize) -> Result<Reader> {
        let files = &group.placed.group.files;
        let listed = files.get(file).ok_or_else(|| {
            DataError::BadArgument(format!("file {file} of a group with {} files, counted from 0", files.len()))
        })?;
        self.0.open_listed(&group.placed, listed, None)
    }

    /// Checks where the dataset comes from, which opening it does not (M-3.5 of the specification):
    /// the id is that of the version before, whose digest is the one that the manifest states. Of a
    /// version that was made from no other, the id is that of its files. Without a manifest, or if
    /// the version before was removed, there is nothing to check.
    ///
    /// Cost: reads the version before, or all pages of the manifest.
    pub fn check_lineage(&self) -> Result<()> {
        let opened = &*self.0;
        if let Location::Folder(folder) = &opened.location {
            let groups = || (0..opened.groups.page_count()).map(|page| opened.groups_of_page(page));
            open::check_lineage(&*opened.store, folder, &opened.version, groups())?;
        }
        Ok(())
    }

    /// Returns how the files are read. If the options do not say, this is [`Io::IoUring`] if the
    /// system has io_uring and the file system is not in memory, and [`Io::Pread`] otherwise.
    ///
    /// If the options do not say, a loader of shuffled samples uses [`Io::Direct`] for local files
    /// larger than half of the memory ([`Loader::io`](crate::Loader::io)).
    pub fn io(&self) -> Io {
        self.0.files.io().kind
    }

    /// Returns the reason for [`Dataset::io`], in words.
    pub fn io_reason(&self) -> &'static str {
        self.0.files.io().reason()
    }

    /// Returns about how many bytes all files have, from those of the first page of the manifest;
    /// 0 if that cannot be read.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.0.groups.stored_bytes(&self.0.place())
    }

    /// Finds the group of a sample.
    pub(crate) fn find_group(&self, sample: u64) -> Result<FoundGroup> {
        self.0.groups.find(&self.0.place(), sample).map(FoundGroup)
    }

    /// Returns whether the files are objects, or on the file system of a network: each request
    /// takes a round trip.
    pub(crate) fn is_remote(&self) -> bool {
        let OpenedDataset { location, groups, .. } = &*self.0;
        self.io() == Io::Object || tensilo::source::is_on_network(&location.any_path(groups, &self.0.place()))
    }

    /// Reads the pages of the manifest that finding some samples needs, several at the same time.
    /// [`Dataset::find_group`] meets the errors.
    pub(crate) fn read_pages(&self, io: &IoPool, samples: impl Iterator<Item = u64>) {
        let pages = self.0.groups.unread_pages(samples);
        if pages.len() > 1 {
            io.map(pages.into_iter(), |page| drop(self.0.groups.of_page(&self.0.place(), page)));
        }
    }

    /// Begins to open the files of a group that have one of these columns, if opening takes a round
    /// trip. [`Dataset::open_group`] then waits for them.
    pub(crate) fn begin_group(&self, columns: &[usize], group: &FoundGroup) {
        self.0.begin_group(columns, &group.0);
    }

    /// Returns how many files of a group that have one of these columns are not open.
    pub(crate) fn closed_files(&self, columns: &[usize], group: &FoundGroup) -> usize {
        let files = group.0.group.files.iter().enumerate();
        let closed = files.filter(|(number, _)| !self.0.files.has(group.0.file_place(*number)));
        closed.filter(|(_, file)| !self.0.places_in(columns, file).is_empty()).count()
    }

    /// Opens the files of a group that have one of these columns, which are named by their numbers.
    pub(crate) fn open_group(&self, columns: &[usize], group: &FoundGroup) -> Result<FoundColumns> {
        self.0.open_group(columns, &group.0)
    }

    /// Finds a sample of the column with this number, counted from 0, and opens its file unless it
    /// is open. All samples from `found.samples` are in the same file: keep what this returns.
    ///
    /// Cost: logarithmic in the number of files, and linear in the number of columns.
    pub fn find(&self, column: usize, sample: u64) -> Result<FoundSample> {
        self.0.find(column, sample)
    }
}

impl OpenedDataset {
    pub(super) fn place(&self) -> Place<'_> {
        Place { store: &*self.store, folder: self.folder(), version: &self.version }
    }

    /// Returns the folder to which the paths of the manifest are relative.
    pub(super) fn folder(&self) -> &Path {
        self.location.folder()
    }

    /// Returns the path of a file.
    pub(super) fn path(&self, file: &ListedFile) -> PathBuf {
        self.location.path(file)
    }

    /// Returns the groups of a page, or, after the last page, the inline ones.
    pub(super) fn groups_of_page(&self, page: usize) -> Result<Vec<Group>> {
        let groups = self.groups.of_page(&self.place(), page).into_iter();
        groups.map(|group| group.map(|group| (*group.group).clone())).collect()
    }

    fn described(&self, group: &PlacedGroup) -> SampleGroup {
        let files = &group.group.files;
        let files = files.iter().map(|file| GroupFile {
            path: self.path(file),
            bytes: file.bytes,
            content_id: ContentId(file.content_id.0),
            columns: self.columns_of(file),
        });
        SampleGroup { samples: group.samples.clone(), files: files.collect(), placed: group.clone() }
    }

    /// Returns the columns of a file that have not been dropped: names in the file and numbers.
    fn columns_of(&self, file: &ListedFile) -> Vec<(String, usize)> {
        let layout = self.version.layouts.get(file.layout).into_iter().flatten();
        let numbers: HashMap<u64, usize> = self.version.columns.iter().map(|column| column.id).zip(0..).collect();
        let mut columns: Vec<_> = layout.filter_map(|(name, id)| Some((name.clone(), *numbers.get(id)?))).collect();
        columns.sort_unstable_by_key(|(_, number)| *number);
        columns
    }

    fn find(&self, column: usize, sample: u64) -> Result<FoundSample> {
        let wanted = self.version.columns.get(column).ok_or_else(|| {
            let count = self.version.columns.len();
            DataError::BadArgument(format!("column {column} of a dataset with {count} columns, counted from 0"))
        })?;
        let group = self.groups.find(&self.place(), sample)?;
        let index = sample.saturating_sub(group.samples.start);
        let samples = group.samples.clone();
        for (number, file) in group.group.files.iter().enumerate() {
            let mut layout = self.version.layouts.get(file.layout).into_iter().flatten();
            let Some((name, _)) = layout.find(|(_, id)| **id == wanted.id) else { continue };
            let reader = self.reader(&group, number, file)?;
            return Ok(FoundSample { column: Some(reader.column(name)?), index, samples });
        }
        Ok(FoundSample { column: None, index, samples })
    }

    fn begin_group(&self, columns: &[usize], group: &PlacedGroup) {
        for (number, file) in group.group.files.iter().enumerate() {
            self.files.begin(group.file_place(number), || {
                let is_needed = !self.places_in(columns, file).is_empty();
                let path = is_needed.then(|| self.path(file))?;
                self.files.opener().begin(&path, Some(file.footer..file.bytes))
            });
        }
    }

    /// Returns the columns that a file has: the place of each in `columns`, and its name there.
    /// Cost: linear in the columns; there may be thousands.
    fn places_in(&self, columns: &[usize], file: &ListedFile) -> Vec<(usize, &str)> {
        let layout = self.version.layouts.get(file.layout).into_iter().flatten();
        let names: HashMap<u64, &str> = layout.map(|(name, &id)| (id, name.as_str())).collect();
        let name_of = |column: &usize| names.get(&self.version.columns.get(*column)?.id).copied();
        columns.iter().map(name_of).enumerate().filter_map(|(place, name)| Some((place, name?))).collect()
    }

    fn open_group(&self, columns: &[usize], group: &PlacedGroup) -> Result<FoundColumns> {
        let mut is_absent = vec![true; columns.len()];
        let mut files = Vec::new();
        for (number, file) in group.group.files.iter().enumerate() {
            let (places, names): (Vec<_>, Vec<_>) = self.places_in(columns, file).into_iter().unzip();
            if places.is_empty() {
                continue;
            }
            let columns = self.reader(group, number, file)?.columns_named(names)?;
            places.iter().for_each(|&place| is_absent.get_mut(place).into_iter().for_each(|absent| *absent = false));
            files.push(FoundFile { columns, places });
        }
        let absent = is_absent.iter().enumerate().filter_map(|(place, &absent)| absent.then_some(place)).collect();
        Ok(FoundColumns { samples: group.samples.clone(), files, absent })
    }

    /// Returns the reader of a file of a group. Opens it unless it is open.
    pub(super) fn reader(&self, group: &PlacedGroup, number: usize, file: &ListedFile) -> Result<Reader> {
        self.files.get(group.file_place(number), |begun| self.open_listed(group, file, begun))
    }

    /// Opens a file, and checks it against the manifest.
    pub(super) fn open_listed(&self, group: &PlacedGroup, file: &ListedFile, begun: Option<Opening>) -> Result<Reader> {
        let path = self.path(file);
        let layout = self.version.layouts.get(file.layout).ok_or_else(|| {
            // not so: the parser has checked it
            DataError::BadArgument(format!("there is no layout {}", file.layout))
        })?;
        let samples = group.samples.end.saturating_sub(group.samples.start);
        let listing = Listing { file, samples, layout, columns: &self.version.columns };
        listed_reader::open(self.files.opener(), &path, &listing, begun)
    }
}
