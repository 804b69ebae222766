//! The options for opening a dataset.

use super::remote::RemoteOptions;
use crate::io::{Io, IoChoice, Opener};
use std::path::Path;
use tensilo::{OpenOptions, Reader};

/// The options for opening a dataset.
///
/// How files are read has a method for each way, and not one with an argument, because
/// [`mmap`](Self::mmap) and [`mmap_if_cached`](Self::mmap_if_cached) are unsafe.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DatasetOptions {
    pub(crate) version: Option<u64>,
    /// `None`: as suits the place of the files.
    pub(super) max_open_files: Option<usize>,
    /// How files are read; `None`: as suits them.
    pub(super) io: Option<IoChoice>,
    /// How files are read that stay in the page cache, if `io` is `None`.
    pub(super) if_cached: Option<IoChoice>,
    pub(super) remote: RemoteOptions,
}

impl DatasetOptions {
    /// Returns the defaults: the newest version, read as suits its files
    /// ([`Dataset::io`](crate::Dataset::io)), with at most
    /// [`default_open_files`](tensilo::source::default_open_files) open.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens this version. The default is the newest one.
    pub fn version(mut self, version: u64) -> Self {
        self.version = Some(version);
        self
    }

    /// Sets the maximum number of files that the dataset keeps open, at least 1. Readers that the
    /// caller holds stay open in addition.
    ///
    /// The default is half of the process's limit, but at most 256, and 4,096 for objects of a
    /// store. Raise it for datasets of many files in a shuffled order: a file that was closed must
    /// be opened again, which takes a round trip on network storage.
    pub fn max_open_files(mut self, files: usize) -> Self {
        self.max_open_files = Some(files);
        self
    }

    /// Reads files with `pread`, one range after the other ([`OpenOptions::open_file`]). Suits
    /// files in the page cache, and systems that forbid io_uring.
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
        self.remote = options;
        self
    }

    /// Sets the function that opens files, from their paths and the options that the manifest asks
    /// for: with a [`Source`](tensilo::source::Source) of the caller, for example. Any thread calls
    /// it.
    pub fn open_with(
        self,
        open: impl Fn(&Path, OpenOptions) -> tensilo::Result<Reader> + Send + Sync + 'static,
    ) -> Self {
        self.io(IoChoice::explicit(Io::Custom, Opener::new(open)))
    }

    /// Returns the function that opens files whose facts are not known yet.
    pub(super) fn opener_of_new_files(&self) -> Opener {
        self.io_of_new_files().opener
    }

    /// Returns how files are read that are not listed yet.
    pub(super) fn io_of_new_files(&self) -> IoChoice {
        self.io.clone().filter(|choice| choice.kind == Io::Object).unwrap_or_else(IoChoice::pread)
    }

    pub(crate) fn io(mut self, choice: IoChoice) -> Self {
        self.io = Some(choice);
        self
    }

    #[cfg(feature = "mmap")]
    pub(crate) fn if_cached(mut self, choice: IoChoice) -> Self {
        self.if_cached = Some(choice);
        self
    }
}
