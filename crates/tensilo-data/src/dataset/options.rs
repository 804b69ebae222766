//! The options for opening a dataset.

/// The options for opening a dataset.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DatasetOptions {
    pub(crate) version: Option<u64>,
    pub(crate) most_open_files: usize,
}

/// Files that are kept open unless told. Systems commonly allow a process 1,024.
const OPEN_FILES: usize = 256;

impl Default for DatasetOptions {
    fn default() -> Self {
        Self { version: None, most_open_files: OPEN_FILES }
    }
}

impl DatasetOptions {
    /// Returns the defaults: the newest version, and at most 256 open files.
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
}
