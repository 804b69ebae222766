//! The options for opening a dataset.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use tensilo::{OpenOptions, Reader};

/// The options for opening a dataset.
#[derive(Clone)]
#[non_exhaustive]
pub struct DatasetOptions {
    pub(crate) version: Option<u64>,
    pub(crate) most_open_files: usize,
    pub(crate) opener: Opener,
}

/// A function that opens a file.
#[derive(Clone)]
pub(crate) struct Opener(Arc<OpenFile>);

type OpenFile = dyn Fn(&Path, OpenOptions) -> tensilo::Result<Reader> + Send + Sync;

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opener")
    }
}

impl Opener {
    pub(crate) fn open(&self, path: &Path, options: OpenOptions) -> tensilo::Result<Reader> {
        (self.0)(path, options)
    }
}

/// Files that are kept open unless told. Systems commonly allow a process 1,024.
const OPEN_FILES: usize = 256;

impl Default for DatasetOptions {
    fn default() -> Self {
        let opener = Opener(Arc::new(|path, options| options.open_file(path)));
        Self { version: None, most_open_files: OPEN_FILES, opener }
    }
}

impl fmt::Debug for DatasetOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, most_open_files, .. } = self;
        write!(f, "version {version:?}, at most {most_open_files} open files")
    }
}

impl DatasetOptions {
    /// Returns the defaults: the newest version, at most 256 open files, read by position.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens this version. The default is the newest one.
    pub fn version(mut self, version: u64) -> Self {
        self.version = Some(version);
        self
    }

    /// Sets how many files are kept open, at least 1. A reader that was lent stays open as long as
    /// it is kept. The default is 256.
    pub fn most_open_files(mut self, most: usize) -> Self {
        self.most_open_files = most;
        self
    }

    /// Sets the function that opens files, from their paths and the options that the manifest asks
    /// for: with a [`Source`](tensilo::source::Source) of the caller, for example. Any thread calls
    /// it. The default reads files by position ([`OpenOptions::open_file`]).
    pub fn open_with(
        mut self,
        open: impl Fn(&Path, OpenOptions) -> tensilo::Result<Reader> + Send + Sync + 'static,
    ) -> Self {
        self.opener = Opener(Arc::new(open));
        self
    }
}
