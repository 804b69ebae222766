//! An open dataset, as callers hold it.
//!
//! A [`Dataset`] consists of one version (which never changes), the groups of this version
//! ([`Groups`]), and its open files ([`OpenFiles`]). A sample is found in three steps: first its
//! group, then the file of the group that has the column, and finally its index in that file. A
//! loader does this for many samples of a group at once, and starts opening files before it needs
//! them.
//!
//! A forked process or a different I/O method gets a separate handle to the same version. This
//! handle shares neither open files nor locks with the original.

use super::groups::{GroupFile, GroupRef, Groups, SampleGroup};
use super::listed_file::{self, Listing};
use super::open_files::OpenFiles;
use super::salvage::{self, SalvagedFile};
use super::store::Store;
use super::store::folder::Folder;
use super::store::location::{ReadOptions, location, remote};
use super::versions::{self, VersionContext};
use super::without_manifest;
use crate::error::{DataError, Result};
use crate::io::{Io, IoChoice, IoPool, PendingReader};
use crate::manifest::{FileEntry, Group, Hex, Version, join};
use crate::order::WindowSizes;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::facts::ContentId;
use tensilo::salvage::SalvageOptions;
use tensilo::{Column, Reader, Schema};

/// Files that are read as one sequence of samples: a version of a dataset with a manifest, or a
/// list of files.
///
/// A version never changes. [`Dataset::change`] starts the next one: [`Changes`] append samples,
/// add, rename and drop columns, and repack files. [`Garbage`] removes old versions.
///
/// [`Changes`]: crate::Changes
/// [`Garbage`]: crate::Garbage
///
/// Cloning only increments a reference count. Any thread can use a clone, and clones also work
/// after `fork`. A file is opened when one of its samples is first requested, and a bounded number
/// of files stays open.
#[derive(Clone, Debug)]
pub struct Dataset(pub(super) Arc<DatasetInner>);

/// The state of an open dataset, shared by all handles to it.
#[derive(Debug)]
pub(super) struct DatasetInner {
    pub store: Arc<dyn Store>,
    pub location: Location,
    /// The options that the dataset was opened with.
    pub options: ReadOptions,
    /// The version, without its inline groups, which are in `groups`.
    pub version: Version,
    pub digest: Hex,
    pub schema: Schema,
    pub groups: Groups,
    pub files: OpenFiles,
}

/// Where the files of a dataset are.
#[derive(Clone, Debug)]
pub(super) enum Location {
    /// In a folder. Paths are relative to it.
    Folder(PathBuf),
    /// Anywhere. Paths are used as the caller gave them.
    Anywhere,
}

impl Location {
    fn folder(&self) -> &Path {
        match self {
            Self::Folder(folder) => folder,
            Self::Anywhere => Path::new(""),
        }
    }

    fn path(&self, file: &FileEntry) -> PathBuf {
        match self {
            Self::Folder(folder) => join(folder, &file.path),
            Self::Anywhere => PathBuf::from(&*file.path),
        }
    }

    /// Returns a path on the same file system as the files: the folder, or the first file.
    fn any_path(&self, groups: &Groups, context: &VersionContext<'_>) -> PathBuf {
        match self {
            Self::Folder(folder) => folder.clone(),
            Self::Anywhere => {
                let first = groups.page_groups(context, 0).into_iter().flatten().next();
                first.and_then(|group| group.group.files.first().map(|file| self.path(file))).unwrap_or_default()
            }
        }
    }
}

/// Where a sample of a column is: in which file, and at which index.
#[derive(Clone)]
#[non_exhaustive]
pub struct SampleLocation {
    /// The column of the file, or `None` if no file of the group has it. All samples of the group
    /// are then null.
    pub column: Option<Column>,
    /// The index of the sample in the file.
    pub index: u64,
    /// The samples of the dataset that are in the same file.
    pub samples: Range<u64>,
}

/// A group of samples. Its files may not be open yet.
pub(crate) struct GroupHandle(pub(super) GroupRef);

impl GroupHandle {
    pub(crate) fn samples(&self) -> &Range<u64> {
        &self.0.samples
    }
}

/// Some columns of a group of samples.
pub(crate) struct GroupColumns {
    /// The samples of the group.
    pub samples: Range<u64>,
    /// The files that have any of the columns.
    pub files: Vec<FileColumns>,
    /// The columns that no file has, by index in the request. All of their samples are null.
    pub absent: Vec<usize>,
}

/// Some columns of one file.
pub(crate) struct FileColumns {
    pub columns: Vec<Column>,
    /// The index of each column in the request.
    pub slots: Vec<usize>,
}

impl Dataset {
    pub(super) fn new(
        store: Arc<dyn Store>,
        location: Location,
        mut version: Version,
        digest: Hex,
        options: ReadOptions,
    ) -> Self {
        let columns = version.columns.iter().map(|column| column.schema.clone()).collect();
        let schema = Schema { columns, metadata: version.metadata.clone() };
        let groups = Groups::new(&mut version);
        let io = options.io.clone().unwrap_or_else(|| {
            let context = VersionContext { store: &*store, folder: location.folder(), version: &version };
            let path = location.any_path(&groups, &context);
            let stays_cached = |_: &IoChoice| IoChoice::stays_cached(&path, || groups.stored_bytes(&context));
            options.if_cached.clone().filter(stays_cached).unwrap_or_else(|| IoChoice::choose(&path))
        });
        let files = OpenFiles::new(options.max_open_files.unwrap_or_else(tensilo::source::default_open_files), io);
        Self(Arc::new(DatasetInner { store, location, options, version, digest, schema, groups, files }))
    }

    /// Opens the newest version of the dataset in a folder; see
    /// [`DatasetOptions::open`](crate::DatasetOptions::open).
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        Self::open_version(folder.as_ref(), None, ReadOptions::default())
    }

    /// Opens a version of the dataset in a folder, or the newest one; see
    /// [`DatasetOptions::open`](crate::DatasetOptions::open).
    pub(super) fn open_version(folder: &Path, version: Option<u64>, options: ReadOptions) -> Result<Self> {
        let remote = remote(folder, &options.remote)?;
        let is_remote = remote.is_some();
        if remote.map_or_else(|| folder.is_file(), |remote| remote.is_file) {
            return Self::open_files([folder], options);
        }
        let (store, options) = location(folder, options)?;
        let versions = versions::list(&*store, folder)?;
        let number = match (version, versions.last()) {
            (Some(version), _) if versions.contains(&version) => version,
            (Some(version), newest) => {
                let has = newest.map_or("no versions".to_owned(), |newest| format!("versions up to {newest}"));
                let folder = tensilo::error::display_path(folder);
                return Err(DataError::BadArgument(format!(
                    "{folder}: version {version} does not exist; the dataset has {has}"
                )));
            }
            (None, Some(&newest)) => newest,
            (None, None) if is_remote => {
                return Self::open_all(without_manifest::files_below(&*store, folder)?, options);
            }
            (None, None) => return Self::open_all(without_manifest::files_in(folder)?, options),
        };
        let (version, digest) = versions::read(&*store, folder, number)?;
        let location = Location::Folder(folder.to_path_buf());
        Ok(Self::new(store, location, version, digest, options))
    }

    /// Opens files as a dataset, in this order.
    pub(super) fn open_files<P: AsRef<Path>>(files: impl IntoIterator<Item = P>, options: ReadOptions) -> Result<Self> {
        let files: Vec<PathBuf> = files.into_iter().map(|file| file.as_ref().to_path_buf()).collect();
        let first = files.first().map_or(Path::new(""), PathBuf::as_path);
        match remote(first, &options.remote)? {
            Some(remote) => {
                let options = options.for_remote(first, remote.io)?;
                Self::open_all(files, options)
            }
            None => Self::open_all(files, options),
        }
    }

    /// Opens files with options that suit their location.
    fn open_all(files: Vec<PathBuf>, options: ReadOptions) -> Result<Self> {
        let version = without_manifest::version(&files, &options.io_of_new_files())?;
        let store = Arc::new(Folder(PathBuf::new()));
        Ok(Self::new(store, Location::Anywhere, version, Hex::default(), options))
    }

    /// Returns the files of a dataset without a manifest: the files of a folder, in the order of
    /// their names, or the files that match a pattern, as in
    /// [`DatasetOptions::open_glob`](crate::DatasetOptions::open_glob). Returns `None` for a folder
    /// that has a manifest. Opens no file.
    pub fn files_without_manifest(path: impl AsRef<Path>) -> Result<Option<Vec<PathBuf>>> {
        without_manifest::files(path.as_ref())
    }

    /// Returns the id of the dataset, which never changes. A [`State`](crate::State) contains it.
    pub fn id(&self) -> [u8; 16] {
        self.0.version.dataset_id
    }

    /// Returns the number of the version; 0 without a manifest.
    pub fn version(&self) -> u64 {
        self.0.version.number
    }

    /// Returns the description of what changed in this version.
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

    /// Returns the default sizes of runs and windows for training on this dataset.
    pub fn window_sizes(&self) -> WindowSizes {
        self.0.version.order
    }

    /// Returns the groups of samples, in order. Reads the pages of the manifest that are not
    /// cached, and opens no file.
    pub fn groups(&self) -> impl Iterator<Item = Result<SampleGroup>> + '_ {
        let inner = &*self.0;
        let groups = (0..inner.groups.page_count()).flat_map(|page| inner.groups.page_groups(&inner.context(), page));
        groups.map(|group| group.map(|group| inner.to_sample_group(&group)))
    }

    /// Returns the versions in the folder, in ascending order. Without a manifest, returns none.
    pub fn versions(&self) -> Result<Vec<u64>> {
        match &self.0.location {
            Location::Folder(folder) => versions::list(&*self.0.store, folder),
            Location::Anywhere => Ok(Vec::new()),
        }
    }

    /// Opens a file of a group, and checks that it is the one that the manifest lists. `file` is
    /// counted from 0. The reader does not count as one of the dataset's open files.
    pub fn open_file(&self, group: &SampleGroup, file: usize) -> Result<Reader> {
        let files = &group.group_ref.group.files;
        let listed = files.get(file).ok_or_else(|| {
            DataError::BadArgument(format!(
                "there is no file {file}: the group has {} files, numbered from 0",
                files.len()
            ))
        })?;
        self.0.open_listed(&group.group_ref, listed, None)
    }

    /// Salvages a file of a group; see [`tensilo::salvage`]. `file` is counted from 0.
    ///
    /// Samples keep their index in the group. If a file is missing, or nothing in it can be
    /// salvaged, the result has the columns that the manifest states, and all samples are lost. The
    /// same holds for a valid file that is not the file in the manifest, because its samples are
    /// not the samples of the group. For a damaged file, this cannot always be determined: its
    /// samples are then [unconfirmed]. They are confirmed only if an index of the file has the
    /// content id that the manifest states.
    ///
    /// [unconfirmed]: tensilo::salvage::Salvaged::unconfirmed
    pub fn salvage_file(&self, group: &SampleGroup, file: usize, options: SalvageOptions<'_>) -> Result<SalvagedFile> {
        salvage::salvage_file((self.schema(), &self.0.options.remote), group, file, options)
    }

    /// Checks the lineage of the dataset (M-3.5 of the specification). Opening a dataset does not
    /// check it. A version must have the dataset id of its parent, and must state the parent's
    /// digest. If it has no parent, its dataset id must match the content ids of its files. Without
    /// a manifest, or if the parent was removed, there is nothing to check.
    ///
    /// Cost: reads the parent, or all pages of the manifest.
    pub fn check_lineage(&self) -> Result<()> {
        let inner = &*self.0;
        if let Location::Folder(folder) = &inner.location {
            let groups = || (0..inner.groups.page_count()).map(|page| inner.groups_of_page(page));
            versions::check_lineage(&*inner.store, folder, &inner.version, groups())?;
        }
        Ok(())
    }

    /// Returns how the files are read. By default, this is [`Io::IoUring`] if the system has
    /// io_uring and the file system is not in memory, and [`Io::Pread`] otherwise.
    ///
    /// By default, a loader of shuffled samples uses [`Io::Direct`] for local files larger than
    /// half of the machine's memory ([`Loader::io`](crate::Loader::io)).
    pub fn io(&self) -> Io {
        self.0.files.io().kind
    }

    /// Returns the reason for [`Dataset::io`], in words.
    pub fn io_reason(&self) -> &'static str {
        self.0.files.io().reason()
    }

    /// Estimates the total size of all files from the first page of the manifest. Returns 0 if that
    /// page cannot be read.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.0.groups.stored_bytes(&self.0.context())
    }

    /// Makes room in memory for prefetched samples, if the operating system does not cache the
    /// files.
    pub(crate) fn reserve_memory(&self, samples: u64) {
        let sample_bytes = self.stored_bytes().div_ceil(self.sample_count().max(1));
        self.0.store.reserve_memory(samples.saturating_mul(sample_bytes));
    }

    /// Finds the group of a sample.
    pub(crate) fn find_group(&self, sample: u64) -> Result<GroupHandle> {
        self.0.groups.find(&self.0.context(), sample).map(GroupHandle)
    }

    /// Returns whether the files are objects, or are on a network file system. In both cases, each
    /// request takes a round trip.
    pub(crate) fn is_remote(&self) -> bool {
        let DatasetInner { location, groups, .. } = &*self.0;
        self.io() == Io::Object || tensilo::source::is_on_network(&location.any_path(groups, &self.0.context()))
    }

    /// Reads the pages of the manifest that these samples need, several at the same time. Ignores
    /// errors, because [`Dataset::find_group`] reports them.
    pub(crate) fn read_pages(&self, io: &IoPool, samples: impl Iterator<Item = u64>) {
        let pages = self.0.groups.unread_pages(samples);
        if pages.len() > 1 {
            io.map(pages.into_iter(), |page| drop(self.0.groups.page_groups(&self.0.context(), page)));
        }
    }

    /// Starts opening the files of a group that have any of these columns, if opening takes a round
    /// trip. [`Dataset::open_group`] then waits for them.
    pub(crate) fn begin_group(&self, columns: &[usize], group: &GroupHandle) {
        self.0.begin_group(columns, &group.0);
    }

    /// Returns how many files of a group that have any of these columns are neither open nor being
    /// opened.
    pub(crate) fn closed_files(&self, columns: &[usize], group: &GroupHandle) -> usize {
        let files = group.0.group.files.iter().enumerate();
        let closed = files.filter(|(number, _)| !self.0.files.has(group.0.file_key(*number)));
        closed.filter(|(_, file)| !self.0.column_slots(columns, file).is_empty()).count()
    }

    /// Opens the files of a group that have any of these columns, given by index.
    pub(crate) fn open_group(&self, columns: &[usize], group: &GroupHandle) -> Result<GroupColumns> {
        self.0.open_group(columns, &group.0)
    }

    /// Finds a sample of the column with this index in the schema, and opens the file if needed.
    /// All samples in the returned [`SampleLocation::samples`] are in the same file, so the result
    /// can be reused for them.
    ///
    /// Cost: logarithmic in the number of files, and linear in the number of columns.
    pub fn find(&self, column: usize, sample: u64) -> Result<SampleLocation> {
        self.0.find(column, sample)
    }

    /// Returns the same dataset, read in a way that suits shuffled samples.
    pub(crate) fn for_shuffled(&self) -> Self {
        let DatasetInner { location, groups, files, .. } = &*self.0;
        let path = location.any_path(groups, &self.0.context());
        match files.io().for_shuffled(&path, || self.stored_bytes()) {
            Some(io) => self.with_files(files.with_io(io)),
            None => self.clone(),
        }
    }

    /// Returns the same dataset for a forked process. It shares no lock with this one, because the
    /// lock may be held by a thread that does not exist in the child.
    pub(crate) fn reopened(&self) -> Self {
        self.with_files(self.0.files.reopened())
    }

    /// Returns the same dataset with a different cache of open files. It shares no lock with this
    /// one.
    fn with_files(&self, files: OpenFiles) -> Self {
        let DatasetInner { store, location, version, digest, schema, groups, .. } = &*self.0;
        Self(Arc::new(DatasetInner {
            options: self.0.options.clone(),
            store: store.clone(),
            location: location.clone(),
            version: version.clone(),
            digest: *digest,
            schema: schema.clone(),
            groups: groups.reopened(),
            files,
        }))
    }
}

impl DatasetInner {
    fn context(&self) -> VersionContext<'_> {
        VersionContext { store: &*self.store, folder: self.folder(), version: &self.version }
    }

    /// Returns the folder that the paths in the manifest are relative to.
    fn folder(&self) -> &Path {
        self.location.folder()
    }

    /// Returns the path of a file.
    fn path(&self, file: &FileEntry) -> PathBuf {
        self.location.path(file)
    }

    /// Returns the groups of a page. The index after the last page stands for the inline groups.
    pub(super) fn groups_of_page(&self, page: usize) -> Result<Vec<Group>> {
        let groups = self.groups.page_groups(&self.context(), page).into_iter();
        groups.map(|group| group.map(|group| (*group.group).clone())).collect()
    }

    fn to_sample_group(&self, group: &GroupRef) -> SampleGroup {
        let files = &group.group.files;
        let files = files.iter().map(|file| GroupFile {
            path: self.path(file),
            bytes: file.bytes,
            content_id: ContentId(file.content_id.0),
            columns: self.columns_of(file),
        });
        SampleGroup { samples: group.samples.clone(), files: files.collect(), group_ref: group.clone() }
    }

    /// Returns the columns of a file that have not been dropped, each with its name in the file and
    /// its index in the schema.
    fn columns_of(&self, file: &FileEntry) -> Vec<(String, usize)> {
        let layout = self.version.layouts.get(file.layout).into_iter().flatten();
        let numbers: HashMap<u64, usize> = self.version.columns.iter().map(|column| column.id).zip(0..).collect();
        let mut columns: Vec<_> = layout.filter_map(|(name, id)| Some((name.clone(), *numbers.get(id)?))).collect();
        columns.sort_unstable_by_key(|(_, number)| *number);
        columns
    }

    fn find(&self, column: usize, sample: u64) -> Result<SampleLocation> {
        let requested = self.version.columns.get(column).ok_or_else(|| {
            let count = self.version.columns.len();
            DataError::BadArgument(format!(
                "there is no column {column}: the dataset has {count} columns, numbered from 0"
            ))
        })?;
        let group = self.groups.find(&self.context(), sample)?;
        let index = sample.saturating_sub(group.samples.start);
        let samples = group.samples.clone();
        for (number, file) in group.group.files.iter().enumerate() {
            let mut layout = self.version.layouts.get(file.layout).into_iter().flatten();
            let Some((name, _)) = layout.find(|(_, id)| **id == requested.id) else { continue };
            let reader = self.reader(&group, number, file)?;
            return Ok(SampleLocation { column: Some(reader.column(name)?), index, samples });
        }
        Ok(SampleLocation { column: None, index, samples })
    }

    fn begin_group(&self, columns: &[usize], group: &GroupRef) {
        for (number, file) in group.group.files.iter().enumerate() {
            self.files.begin(group.file_key(number), || {
                let is_needed = !self.column_slots(columns, file).is_empty();
                let path = is_needed.then(|| self.path(file))?;
                self.files.opener().begin(&path, Some(file.footer..file.bytes))
            });
        }
    }

    /// Returns which of `columns` a file has, each as its index in `columns` and its name in the
    /// file. Takes linear time, because there may be thousands of columns.
    fn column_slots(&self, columns: &[usize], file: &FileEntry) -> Vec<(usize, &str)> {
        let layout = self.version.layouts.get(file.layout).into_iter().flatten();
        let names: HashMap<u64, &str> = layout.map(|(name, &id)| (id, name.as_str())).collect();
        let name_of = |column: &usize| names.get(&self.version.columns.get(*column)?.id).copied();
        columns.iter().map(name_of).enumerate().filter_map(|(slot, name)| Some((slot, name?))).collect()
    }

    fn open_group(&self, columns: &[usize], group: &GroupRef) -> Result<GroupColumns> {
        let mut is_absent = vec![true; columns.len()];
        let mut files = Vec::new();
        for (number, file) in group.group.files.iter().enumerate() {
            let (slots, names): (Vec<_>, Vec<_>) = self.column_slots(columns, file).into_iter().unzip();
            if slots.is_empty() {
                continue;
            }
            let columns = self.reader(group, number, file)?.columns_named(names)?;
            slots.iter().for_each(|&slot| is_absent.get_mut(slot).into_iter().for_each(|absent| *absent = false));
            files.push(FileColumns { columns, slots });
        }
        let absent = is_absent.iter().enumerate().filter_map(|(slot, &absent)| absent.then_some(slot)).collect();
        Ok(GroupColumns { samples: group.samples.clone(), files, absent })
    }

    /// Returns the reader of a file of a group. Opens the file if needed.
    fn reader(&self, group: &GroupRef, number: usize, file: &FileEntry) -> Result<Reader> {
        self.files.get(group.file_key(number), |pending| self.open_listed(group, file, pending))
    }

    /// Opens a file, and checks it against the manifest.
    fn open_listed(&self, group: &GroupRef, file: &FileEntry, pending: Option<PendingReader>) -> Result<Reader> {
        let path = self.path(file);
        let layout = self.version.layouts.get(file.layout).ok_or_else(|| {
            // unreachable: the parser has checked it
            DataError::BadArgument(format!("there is no layout {}", file.layout))
        })?;
        let samples = group.samples.end.saturating_sub(group.samples.start);
        let listing = Listing { file, samples, layout, columns: &self.version.columns };
        listed_file::open(self.files.opener(), &path, &listing, pending)
    }
}
