//! Files that exist and are appended to.

use super::buffered::Buffered;
use super::sink::{Sink, sink_of_field};
use super::storage::{Disk, Storage};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that exists and is appended to.
///
/// The file is locked (`flock`), so that a second appender gets an error. On other systems the lock
/// may keep readers out too. If the writer fails or is dropped, the bytes after the last commit are
/// cut off. A process that is killed leaves them behind; readers do not see them.
#[derive(Debug)]
pub struct AppendedFile(Appended<Disk>);

impl AppendedFile {
    pub(super) fn new(file: Appended<Disk>) -> Self {
        Self(file)
    }
}

sink_of_field!(AppendedFile);

/// [`AppendedFile`] on any storage.
#[derive(Debug)]
pub(super) struct Appended<S: Storage> {
    storage: S,
    path: PathBuf,
    file: Buffered<S::File>,
    /// Whether the bytes after the last commit have been cut off.
    begun: bool,
}

impl<S: Storage> Appended<S> {
    /// Makes the sink of a file whose last commit ends at `end`.
    pub(super) fn new(storage: S, path: &Path, file: S::File, end: u64) -> Self {
        Self { storage, path: path.to_path_buf(), file: Buffered::new(file, end), begun: false }
    }

    /// Cuts the file off after its last commit and makes that durable, before the first byte is
    /// written.
    ///
    /// The length is made durable even if it does not change. Otherwise, after a loss of power,
    /// bytes of an earlier appender could come back between the new ones. The name of the file is
    /// made durable too, which its writer may not have reached.
    fn begin(&mut self) -> io::Result<()> {
        let Self { storage, path, file, .. } = self;
        file.cut()?;
        file.sync()?;
        file.attempt(|_| storage.sync_folder_of(path))?;
        self.begun = true;
        Ok(())
    }
}

impl<S: Storage> Write for Appended<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.begun {
            self.begin()?;
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<S: Storage> Sink for Appended<S> {
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn publish(&mut self) -> io::Result<()> {
        self.file.committed();
        Ok(())
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }
}
