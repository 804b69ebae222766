//! Where a writer's bytes go.

use crate::{Error, Result};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile, TempPath};

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

/// A chunk takes three writes, which should not be three system calls.
const BUFFER_BYTES: usize = 256 << 10;

/// So much of the name is in the temporary one, which must not be too long for the file system.
const NAME_CHARS: usize = 48;

/// A file that appears under its name only when it is complete.
///
/// It is written beside its destination under a hidden temporary name, and renamed at the first commit, which
/// normally is the last. If the writer fails or is dropped before, the temporary file is removed and what
/// stood at the destination stays. A process that is killed leaves the temporary file behind
/// (`.NAME.random.tmp`), which has no valid end and is never taken for a result.
#[derive(Debug)]
pub struct AtomicFile {
    file: BufWriter<File>,
    /// `None` once renamed.
    temporary: Option<TempPath>,
    destination: PathBuf,
    overwrite: bool,
}

impl AtomicFile {
    /// Begins a file that will stand at `destination`. Unless `overwrite`, nothing may stand there, neither now
    /// nor when it is renamed.
    pub fn create(destination: impl AsRef<Path>, overwrite: bool) -> Result<Self> {
        let destination = destination.as_ref();
        Self::begin(destination, overwrite)
            .map_err(|error| Error::io("creating the file", error).with_path(destination))
    }

    fn begin(destination: &Path, overwrite: bool) -> io::Result<Self> {
        let name = destination.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        if !overwrite && destination.try_exists()? {
            return Err(already_exists());
        }
        let name: String = name.to_string_lossy().chars().take(NAME_CHARS).collect();
        let prefix = format!(".{name}.");
        let mut builder = Builder::new();
        builder.prefix(&prefix).suffix(".tmp");
        allow_others(&mut builder);
        let (file, temporary) = NamedTempFile::into_parts(builder.tempfile_in(parent(destination))?);
        Ok(Self {
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
            temporary: Some(temporary),
            destination: destination.to_path_buf(),
            overwrite,
        })
    }
}

/// A new file gets the permissions that the process's mask leaves, not the private ones of a temporary file.
#[cfg(unix)]
fn allow_others(builder: &mut Builder<'_, '_>) {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(std::fs::Permissions::from_mode(0o666));
}

#[cfg(not(unix))]
fn allow_others(_: &mut Builder<'_, '_>) {}

/// The folder a path is in.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

fn already_exists() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "a file of this name exists; remove it or ask to overwrite it")
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Sink for AtomicFile {
    fn sync(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.destination)
    }

    fn publish(&mut self) -> io::Result<()> {
        let Some(temporary) = self.temporary.take() else { return Ok(()) };
        let renamed = if self.overwrite {
            temporary.persist(&self.destination)
        } else {
            temporary.persist_noclobber(&self.destination)
        };
        renamed.map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => already_exists(),
            _ => error.error,
        })?;
        sync_folder(parent(&self.destination))
    }
}

/// A rename is durable when its folder is.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
