//! Readers of files by position: safe, and right on network file systems.

use crate::Result;
use crate::open::PositionedFile;
use crate::read::{OpenOptions, Reader};
use std::path::Path;

impl OpenOptions {
    /// Opens a file that is read by position.
    pub fn open_file(self, path: impl AsRef<Path>) -> Result<Reader<PositionedFile>> {
        let path = path.as_ref();
        let reader = PositionedFile::open(path).and_then(|file| self.open(file));
        Reader::with_path(reader, path)
    }
}

impl Reader<PositionedFile> {
    /// Opens a file that is read by position (`pread`): safe, and right on network file systems. Samples cannot be viewed
    /// without copying.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open_file(path)
    }
}
