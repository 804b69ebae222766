//! Readers of files by position: safe, and right on network file systems.

use crate::Result;
use crate::open::{PositionedFile, Source};
use crate::read::{OpenOptions, Reader};
use std::path::Path;
use std::sync::Arc;

impl OpenOptions {
    /// Opens a file that is read by position.
    pub fn open_file(self, path: impl AsRef<Path>) -> Result<Reader> {
        let path = path.as_ref();
        let open = || {
            let source: Arc<dyn Source> = Arc::new(PositionedFile::open(path)?);
            self.open_through(source.clone(), Some(path), |_| Ok(source))
        };
        open().map_err(|error| error.with_path(path))
    }
}

impl Reader {
    /// Opens a file that is read by position (`pread`): safe, and right on network file systems.
    /// Samples cannot be viewed without copying.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open_file(path)
    }
}
