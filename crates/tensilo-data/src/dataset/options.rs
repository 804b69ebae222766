//! The options for opening a dataset, and the functions that use them.
//!
//! The options say which version is read, and how its files are read ([`ReadOptions`]). With them,
//! callers open or create a dataset, start a write job, or find old versions to remove.
//! `Dataset::open` and similar functions do the same with default options. The setters for memory
//! maps are in `sys`, because they are unsafe.

use super::changes::{Changes, Garbage, WriteJob};
use super::handle::Dataset;
use super::store::location::ReadOptions;
use super::without_manifest::matching;
use crate::error::Result;
use crate::io::{Io, IoChoice, Opener};
use std::path::Path;
use tensilo::{OpenOptions, Reader};

/// The options for opening a dataset.
///
/// There is a setter for each I/O method instead of one setter with an argument, because
/// [`mmap`](Self::mmap) and [`mmap_if_cached`](Self::mmap_if_cached) are unsafe.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DatasetOptions {
    /// `None` for the newest version.
    version: Option<u64>,
    read: ReadOptions,
}

impl DatasetOptions {
    /// Returns the defaults: the newest version, read with a method that suits its files
    /// ([`Dataset::io`](crate::Dataset::io)), and at most
    /// [`default_open_files`](tensilo::source::default_open_files) open files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the version to open. The default is the newest one.
    pub fn version(mut self, version: u64) -> Self {
        self.version = Some(version);
        self
    }

    /// Sets the maximum number of files that the dataset keeps open, at least 1. Readers that the
    /// caller holds also stay open, and do not count toward this maximum.
    ///
    /// The default is half of the process's limit on open files, but at most 256. For objects of a
    /// store, the default is 4,096. Raise the maximum for datasets with many files that are read in
    /// a shuffled order: a file that was closed must be opened again, which takes a round trip on
    /// network storage.
    pub fn max_open_files(mut self, files: usize) -> Self {
        self.read.max_open_files = Some(files);
        self
    }

    /// Reads files with `pread`, one range after another ([`OpenOptions::open`]). Suits files
    /// in the page cache, and systems that forbid io_uring.
    pub fn pread(self) -> Self {
        self.io(IoChoice::pread())
    }

    /// Reads files with io_uring and buffered I/O: all ranges of a batch at the same time. Suits
    /// cold disks and network file systems. See [`UringFile::open`](crate::UringFile::open).
    #[cfg(all(target_os = "linux", feature = "io-uring"))]
    pub fn io_uring(self) -> Self {
        self.io(IoChoice::io_uring())
    }

    /// Reads files with io_uring and direct I/O (`O_DIRECT`), which bypasses the page cache. Suits
    /// shuffled datasets larger than memory. See
    /// [`UringFile::open_direct`](crate::UringFile::open_direct).
    #[cfg(all(target_os = "linux", feature = "io-uring"))]
    pub fn direct(self) -> Self {
        self.io(IoChoice::direct())
    }

    /// Sets the options for requests to an object store, if the dataset is in one.
    #[cfg(feature = "object")]
    pub fn object_options(mut self, options: tensilo_object::ObjectOptions) -> Self {
        self.read.remote = options;
        self
    }

    /// Sets the function that opens files, for example with the caller's own
    /// [`Source`](tensilo::source::Source). It is called with the path of a file and the options
    /// that the manifest requires, from any thread.
    pub fn open_with(
        self,
        open: impl Fn(&Path, OpenOptions) -> tensilo::Result<Reader> + Send + Sync + 'static,
    ) -> Self {
        self.io(IoChoice::explicit(Io::Custom, Opener::new(open)))
    }

    /// Opens the dataset in a folder: the newest version of its manifest, or the one that the
    /// options name. Without a manifest, the `*.tsl` files of the folder are the dataset, in the
    /// order of their names. The path can also name a single file, which is then a dataset by
    /// itself.
    ///
    /// With the feature `object`, the path can also be the address of a prefix or an object in an
    /// object store, such as `s3://bucket/train`.
    ///
    /// Cost: with a manifest, reads one file, regardless of the number of data files. Without one,
    /// opens all data files.
    pub fn open(self, folder: impl AsRef<Path>) -> Result<Dataset> {
        Dataset::open_version(folder.as_ref(), self.version, self.read)
    }

    /// Opens files as a dataset, in this order. All files must have the same columns as the first
    /// one.
    ///
    /// Cost: opens all files.
    pub fn open_files<P: AsRef<Path>>(self, files: impl IntoIterator<Item = P>) -> Result<Dataset> {
        Dataset::open_files(files, self.read)
    }

    /// Opens the files that match a pattern as a dataset, in byte order of their names. All files
    /// must have the same columns as the first one.
    ///
    /// In a pattern, `*` matches any characters except `/`, `?` matches one character, `[ab]` and
    /// `[a-f]` match one character of a set, and `**` matches any number of folders. Hidden files
    /// match only if the pattern has an explicit leading dot. Folders are left out.
    ///
    /// Cost: opens all files.
    ///
    /// ```no_run
    /// let dataset = tensilo_data::DatasetOptions::new().open_glob("train/part-*.tsl")?;
    /// println!("{} samples", dataset.sample_count());
    /// # Ok::<(), tensilo_data::DataError>(())
    /// ```
    pub fn open_glob(self, pattern: impl AsRef<Path>) -> Result<Dataset> {
        self.open_files(matching(pattern.as_ref())?)
    }

    /// Starts a new dataset that is read with these options; see [`Dataset::create`].
    pub fn create(self, folder: impl AsRef<Path>) -> Result<Changes> {
        Changes::create(folder.as_ref(), self.read)
    }

    /// Returns the job that writes `version` of a dataset that is read with these options.
    /// Processes with the same `number` take part in the same job. The number must be at least
    /// 2^32, so that no other writer uses it.
    ///
    /// Nothing is read or written.
    pub fn job(self, folder: impl AsRef<Path>, version: u64, number: u64) -> Result<WriteJob> {
        WriteJob::new(folder.as_ref(), version, number, self.read)
    }

    /// Finds what can be removed from a dataset; see [`Garbage::find`]. Only the options for
    /// reaching an object store matter here.
    pub fn garbage(self, folder: impl AsRef<Path>, keep: u64) -> Result<Garbage> {
        Garbage::find_in(folder.as_ref(), keep, self.read)
    }

    pub(crate) fn io(mut self, choice: IoChoice) -> Self {
        self.read.io = Some(choice);
        self
    }

    #[cfg(feature = "mmap")]
    pub(crate) fn if_cached(mut self, choice: IoChoice) -> Self {
        self.read.if_cached = Some(choice);
        self
    }
}
