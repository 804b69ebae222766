//! The options for opening a dataset.

use super::access::{Access, FileAccess, Opener};
use super::remote::RemoteOptions;
use std::path::Path;
use tensilo::{OpenOptions, Reader};

/// The options for opening a dataset.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DatasetOptions {
    pub(crate) version: Option<u64>,
    /// `None`: as suits the place of the files.
    pub(super) most_open_files: Option<usize>,
    /// How files are read; `None`: as suits them.
    pub(super) access: Option<Access>,
    /// How files are read that stay in the page cache, if no way was asked for.
    pub(super) if_cached: Option<Access>,
    pub(super) remote: RemoteOptions,
}

impl DatasetOptions {
    /// Returns the defaults: the newest version, read as suits its files
    /// ([`Dataset::file_access`](crate::Dataset::file_access)), with at most
    /// [`default_open_files`](tensilo::source::default_open_files) open.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens this version. The default is the newest one.
    pub fn version(mut self, version: u64) -> Self {
        self.version = Some(version);
        self
    }

    /// Sets how many files are kept open, at least 1. A reader that was lent stays open as long as
    /// it is kept. The default is half of what the process may have open, but at most 256,
    /// and 4,096 for objects of a store.
    pub fn most_open_files(mut self, most: usize) -> Self {
        self.most_open_files = Some(most);
        self
    }

    /// Reads files by position, one range after the other ([`OpenOptions::open_file`]).
    pub fn by_position(self) -> Self {
        self.access(Access::by_position())
    }

    /// Reads files by io_uring, see [`UringFile`](crate::UringFile).
    #[cfg(all(target_os = "linux", feature = "io-uring"))]
    pub fn io_uring(self, page_cache: crate::PageCache) -> Self {
        self.access(Access::io_uring(page_cache))
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
        self.access(Access::told(FileAccess::Custom, Opener::new(open)))
    }

    /// Returns the function that opens files whose facts are not known yet.
    pub(super) fn opener_of_new_files(&self) -> Opener {
        self.access_of_new_files().opener
    }

    /// Returns how files are read that are not listed yet.
    pub(super) fn access_of_new_files(&self) -> Access {
        let access = self.access.clone().filter(|access| access.how == FileAccess::Object);
        access.unwrap_or_else(Access::by_position)
    }

    pub(crate) fn access(mut self, access: Access) -> Self {
        self.access = Some(access);
        self
    }

    #[cfg(feature = "mmap")]
    pub(crate) fn if_cached(mut self, access: Access) -> Self {
        self.if_cached = Some(access);
        self
    }
}
