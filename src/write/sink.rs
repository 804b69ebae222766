//! Where a writer's bytes go.

use super::buffered::Buffered;
use super::storage::{Disk, Standing, Storage, left_behind};
use crate::open::FileIdentity;
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

    /// The file that is written to or will be replaced, which no input may be; `None` if there is
    /// none. Default: the file at [`Sink::path`].
    fn identity(&self) -> Option<FileIdentity> {
        FileIdentity::at(self.path()?).ok().flatten()
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
/// The first commit, which normally is the last, puts it in its place. If the writer fails or is
/// dropped before, nothing is left of it and what stood at the destination stays; after it, the
/// file is cut off at the last commit.
///
/// - On Linux the file has no name before it is complete (`O_TMPFILE`), so that even a process that
///   is killed leaves nothing behind.
/// - On other systems, and where the file system has no such files, it has a hidden name beside its
///   destination. A process that is killed leaves it there (`.NAME.random.tmp`): it has no valid
///   end, and is never taken for a result. [`AtomicFile::left_behind`] lists such files.
///
/// If the destination is a symbolic link, it goes on pointing where it does: the file appears at
/// its target. Only a regular file is ever replaced; a folder, a device or a pipe at the
/// destination is an error. A file that replaces another gets its permissions, any other those that
/// the process's mask leaves.
///
/// File and folder are made durable (`fsync`) before a commit is done. If that fails after the file
/// has got its name, it stands at its destination, whole, and may be gone after a loss of power.
#[derive(Debug)]
pub struct AtomicFile(Atomic<Disk>);

impl AtomicFile {
    /// Begins a file that will stand at `destination`. Unless `overwrite`, nothing may stand there, neither now
    /// nor when it is complete.
    pub fn create(destination: impl AsRef<Path>, overwrite: bool) -> Result<Self> {
        Ok(Self(Atomic::create(Disk, destination.as_ref(), overwrite)?))
    }

    /// The temporary name of the file, if it has one. Who ends the process before the file is
    /// complete, without dropping it, has to remove that.
    pub fn temporary_path(&self) -> Option<&Path> {
        match &self.0.name {
            Name::Temporary(name) => Some(name),
            Name::None | Name::Final => None,
        }
    }

    /// Temporary files of earlier writers of `destination` that were killed, in the order of their
    /// names. (If `destination` is a symbolic link, those beside its target.) Files of writers that
    /// are at work are not among them, where files can be locked.
    pub fn left_behind(destination: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
        let destination = destination.as_ref();
        let list = || {
            let (target, _) = Disk.resolve(destination)?;
            let prefix = temporary_prefix(&target)?;
            left_behind(&target, &prefix)
        };
        list().map_err(|error: io::Error| Error::io("listing the folder", error).with_path(destination))
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
    name: Name<S::Temporary>,
    /// As the caller named it.
    destination: PathBuf,
    /// Where its symbolic links lead.
    target: PathBuf,
    overwrite: bool,
}

/// The name that a file has.
#[derive(Debug)]
enum Name<T> {
    None,
    Temporary(T),
    Final,
}

impl<S: Storage> Atomic<S> {
    pub(super) fn create(storage: S, destination: &Path, overwrite: bool) -> Result<Self> {
        Self::begin(storage, destination, overwrite)
            .map_err(|error| Error::io("creating the file", error).with_path(destination))
    }

    fn begin(storage: S, destination: &Path, overwrite: bool) -> io::Result<Self> {
        let (target, standing) = storage.resolve(destination)?;
        match standing {
            Standing::Other(what) => return Err(not_replaced(what)),
            Standing::File if !overwrite => return Err(already_exists()),
            Standing::File | Standing::Nothing => {}
        }
        let prefix = temporary_prefix(&target)?;
        let (file, name) = match storage.create_unnamed(&target)? {
            Some(file) => (file, Name::None),
            None => {
                let (file, temporary) = storage.create_beside(&target, &prefix)?;
                (file, Name::Temporary(temporary))
            }
        };
        let destination = destination.to_path_buf();
        Ok(Self { storage, file: Buffered::new(file, 0), name, destination, target, overwrite })
    }

    /// Gives the file its name.
    fn put(&mut self) -> io::Result<()> {
        let Self { storage, file, name, target, overwrite, .. } = self;
        match std::mem::replace(name, Name::Final) {
            Name::Final => Ok(()),
            Name::Temporary(temporary) => {
                file.attempt(|_| storage.rename(temporary, target, *overwrite).map_err(not_again))
            }
            Name::None => {
                file.attempt(|file| match storage.link(file, target) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists && *overwrite => {
                        // nothing can be linked over a file; between these two calls a kill leaves
                        // the temporary name
                        let temporary = storage.link_beside(file, target, &temporary_prefix(target)?)?;
                        storage.rename(temporary, target, true).map_err(not_again)
                    }
                    linked => linked.map_err(not_again),
                })?;
                file.sync() // some file systems (btrfs) have made nothing durable of a file without a name
            }
        }
    }
}

/// What a temporary name for `target` begins with.
fn temporary_prefix(target: &Path) -> io::Result<String> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let name: String = name.to_string_lossy().chars().take(NAME_CHARS).collect();
    Ok(format!(".{name}."))
}

/// An error after which the same call would mean something else.
fn not_again(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => already_exists(),
        io::ErrorKind::Interrupted => io::Error::other(error),
        _ => error,
    }
}

fn not_replaced(what: &str) -> io::Error {
    let message = format!("{what} is there, and only a regular file is replaced; choose another path");
    io::Error::new(io::ErrorKind::InvalidInput, message)
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
        if !matches!(self.name, Name::Final) {
            self.put()?;
            let Self { storage, file, target, .. } = self;
            file.attempt(|_| storage.sync_folder_of(target).map_err(not_again))?; // a name is durable when its folder is
        }
        self.file.attempt(|_| Ok(()))?;
        self.file.committed();
        Ok(())
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.destination)
    }
}
