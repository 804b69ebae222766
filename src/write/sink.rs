//! Where a writer's bytes go.

use super::buffered::Buffered;
use super::storage::{Disk, Storage};
use crate::{Error, Result};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Somewhere a [`Writer`](crate::Writer) can put a file, front to back.
pub trait Sink: Write {
    /// Makes durable what was written so far. It is called twice for each commit, before and after the trailer.
    fn sync(&mut self) -> io::Result<()>;

    /// Lets others see the file; called after each commit.
    fn publish(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The file being written, to be named in errors.
    fn path(&self) -> Option<&Path> {
        None
    }
}

/// Any [`Write`]: a pipe, a socket, a `Vec<u8>`. A commit flushes it; whether that makes bytes durable is its affair.
#[derive(Debug)]
pub struct Stream<W>(pub W);

impl<W: Write> Write for Stream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> Sink for Stream<W> {
    fn sync(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// So much of the name is in the temporary one, which must not be too long for the file system.
const NAME_CHARS: usize = 48;

/// A file that appears under its name only when it is complete.
///
/// It is written beside its destination under a hidden temporary name, and renamed at the first commit, which
/// normally is the last. If the writer fails or is dropped before, the temporary file is removed and what
/// stood at the destination stays; after it, the file is cut off at the last commit. A process that is killed leaves the temporary file behind
/// (`.NAME.random.tmp`), which has no valid end and is never taken for a result.
///
/// File and folder are made durable (`fsync`) before a commit is done. If that fails for the folder alone, the file stands at its
/// destination, whole, and may be gone after a loss of power.
#[derive(Debug)]
pub struct AtomicFile(Atomic<Disk>);

impl AtomicFile {
    /// Begins a file that will stand at `destination`. Unless `overwrite`, nothing may stand there, neither now
    /// nor when it is renamed.
    pub fn create(destination: impl AsRef<Path>, overwrite: bool) -> Result<Self> {
        Ok(Self(Atomic::create(Disk, destination.as_ref(), overwrite)?))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Sink for AtomicFile {
    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }

    fn publish(&mut self) -> io::Result<()> {
        self.0.publish()
    }

    fn path(&self) -> Option<&Path> {
        self.0.path()
    }
}

/// [`AtomicFile`] on any storage.
#[derive(Debug)]
pub(super) struct Atomic<S: Storage> {
    storage: S,
    file: Buffered<S::File>,
    /// `None` once renamed.
    temporary: Option<S::Temporary>,
    destination: PathBuf,
    overwrite: bool,
}

impl<S: Storage> Atomic<S> {
    pub(super) fn create(storage: S, destination: &Path, overwrite: bool) -> Result<Self> {
        Self::begin(storage, destination, overwrite)
            .map_err(|error| Error::io("creating the file", error).with_path(destination))
    }

    fn begin(storage: S, destination: &Path, overwrite: bool) -> io::Result<Self> {
        let name = destination.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        if !overwrite && storage.exists(destination)? {
            return Err(already_exists());
        }
        let name: String = name.to_string_lossy().chars().take(NAME_CHARS).collect();
        let (file, temporary) = storage.create_beside(destination, &format!(".{name}."))?;
        let destination = destination.to_path_buf();
        Ok(Self { storage, file: Buffered::new(file, 0), temporary: Some(temporary), destination, overwrite })
    }
}

fn already_exists() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "a file of this name exists; remove it or ask to overwrite it")
}

impl<S: Storage> Write for Atomic<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<S: Storage> Sink for Atomic<S> {
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn publish(&mut self) -> io::Result<()> {
        let Self { storage, file, temporary, destination, overwrite } = self;
        file.attempt(|_| {
            let Some(temporary) = temporary.take() else { return Ok(()) };
            storage.rename(temporary, destination, *overwrite).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => already_exists(),
                _ => error,
            })?;
            storage.sync_folder_of(destination) // a rename is durable when its folder is
        })?;
        file.committed();
        Ok(())
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.destination)
    }
}
