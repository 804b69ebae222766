//! What the sinks for files ask of the operating system. Tests put a disk that fails and loses power in its place.

use crate::open::{PositionedFile, Source};
use std::fs::{File, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use tempfile::{Builder, NamedTempFile, TempPath};

/// A file system. Each function is one system call, but for the names that are tried for a temporary file.
pub(super) trait Storage {
    type File: StoredFile;
    /// The name of a temporary file, which is removed when this is dropped.
    type Temporary;

    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// A new file in the folder of `destination`, whose name begins with `prefix`.
    fn create_beside(&self, destination: &Path, prefix: &str) -> io::Result<(Self::File, Self::Temporary)>;

    /// A file that exists, to be read and written by nobody else who locks it.
    fn open(&self, path: &Path) -> io::Result<Self::File>;

    fn rename(&self, temporary: Self::Temporary, destination: &Path, overwrite: bool) -> io::Result<()>;

    /// Makes renames and new files in the folder of `path` durable.
    fn sync_folder_of(&self, path: &Path) -> io::Result<()>;
}

/// A file of a [`Storage`]. Its length as a [`Source`] is that at opening.
pub(super) trait StoredFile: Source + Write {
    /// Cuts the file off at `bytes`; what is written next stands there.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;

    fn sync(&mut self) -> io::Result<()>;
}

/// The real one.
#[derive(Debug)]
pub(super) struct Disk;

impl Storage for Disk {
    type File = DiskFile;
    type Temporary = TempPath;

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn create_beside(&self, destination: &Path, prefix: &str) -> io::Result<(DiskFile, TempPath)> {
        let mut builder = Builder::new();
        builder.prefix(prefix).suffix(".tmp");
        allow_others(&mut builder);
        let (file, temporary) = NamedTempFile::into_parts(builder.tempfile_in(parent(destination))?);
        keep_appenders_out(&file);
        Ok((DiskFile(PositionedFile::of(file)?), temporary))
    }

    fn open(&self, path: &Path) -> io::Result<DiskFile> {
        let file = File::options().read(true).write(true).open(path)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                let message = "another writer is at work on this file; wait until it is done";
                io::Error::new(io::ErrorKind::WouldBlock, message)
            }
            TryLockError::Error(error) => error,
        })?;
        Ok(DiskFile(PositionedFile::of(file)?)) // its length is taken after it is locked
    }

    fn rename(&self, temporary: TempPath, destination: &Path, overwrite: bool) -> io::Result<()> {
        let renamed = if overwrite { temporary.persist(destination) } else { temporary.persist_noclobber(destination) };
        renamed.map_err(|error| error.error)
    }

    #[cfg(unix)]
    fn sync_folder_of(&self, path: &Path) -> io::Result<()> {
        File::open(parent(path))?.sync_all()
    }

    #[cfg(not(unix))]
    fn sync_folder_of(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// A file of the real file system.
#[derive(Debug)]
pub(super) struct DiskFile(PositionedFile);

impl StoredFile for DiskFile {
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        let mut file = self.0.file();
        file.set_len(bytes)?;
        file.seek(SeekFrom::Start(bytes)).map(|_| ())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.file().sync_all()
    }
}

impl Write for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source for DiskFile {
    fn byte_count(&self) -> u64 {
        self.0.byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset, out)
    }
}

/// The folder a path is in.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
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

/// A writer goes on writing to a file that has appeared with its first commit: who wants to append has to wait. Where files cannot be
/// locked, nobody can append either.
#[cfg(unix)]
fn keep_appenders_out(file: &File) {
    let _ = file.try_lock();
}

/// Locks of other systems would keep readers out too.
#[cfg(not(unix))]
fn keep_appenders_out(_: &File) {}
