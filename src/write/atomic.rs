//! Files that appear only when they are complete.

use super::buffered::Buffered;
use super::sink::{Sink, sink_of_field};
use super::storage::{Disk, Occupant, Storage, left_behind};
use crate::{Error, Result};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The characters of the name that a temporary name has. File systems limit its length.
const NAME_CHARS: usize = 48;

/// A file that appears under its name only when it is complete.
///
/// The first commit, which usually is the last, gives it its name. If the writer fails or is
/// dropped before, nothing is left of it, and a file at the destination stays. After the first
/// commit, the file is cut off at the last one.
///
/// - On Linux the file has no name before it is complete (`O_TMPFILE`), so that even a process that
///   is killed leaves nothing behind.
/// - On other systems, and on file systems without such files, it has a hidden name next to its
///   destination (`.NAME.random.tmp`). A process that is killed leaves it there. It has no valid
///   end, so it is never taken for a result. [`AtomicFile::left_behind`] lists such files.
///
/// If the destination is a symbolic link, the file appears at its target, and the link stays. Only
/// a regular file is ever replaced; a folder, a device or a pipe at the destination is an error. A
/// file that replaces another gets its permissions. Any other gets those that the process's mask
/// leaves.
///
/// File and folder are made durable (`fsync`) before a commit returns. If that fails after the file
/// got its name, the file is whole, and a loss of power may remove it.
#[derive(Debug)]
pub struct AtomicFile(Atomic<Disk>);

impl AtomicFile {
    /// Begins a file that will appear at `destination`. Unless `overwrite`, fails if something has
    /// that path, now or when the file is complete.
    pub fn create(destination: impl AsRef<Path>, overwrite: bool) -> Result<Self> {
        Ok(Self(Atomic::create(Disk, destination.as_ref(), overwrite)?))
    }

    /// Returns the temporary name of the file, if it has one. A caller that ends the process
    /// without dropping this value has to remove the file of that name.
    pub fn temporary_path(&self) -> Option<&Path> {
        match &self.0.name {
            Name::Temporary(name) => Some(name),
            Name::None | Name::Final => None,
        }
    }

    /// Lists the temporary files of earlier writers of `destination` that were killed, in the order
    /// of their names. If `destination` is a symbolic link, lists those beside its target. Leaves
    /// out the files of writers at work, if the file system has locks.
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

sink_of_field!(AtomicFile);

/// [`AtomicFile`] on any storage.
#[derive(Debug)]
pub(super) struct Atomic<S: Storage> {
    storage: S,
    file: Buffered<S::File>,
    name: Name<S::Temporary>,
    /// The destination as the caller named it.
    destination: PathBuf,
    /// The path to which its symbolic links lead.
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
        let (target, occupant) = storage.resolve(destination)?;
        match occupant {
            Occupant::Other(what) => return Err(not_replaced(what)),
            Occupant::File if !overwrite => return Err(already_exists()),
            Occupant::File | Occupant::Nothing => {}
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
                file.attempt(|_| storage.rename(temporary, target, *overwrite).map_err(final_error))
            }
            Name::None => {
                file.attempt(|file| match storage.link(file, target) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists && *overwrite => {
                        // no link can replace a file; a kill between these two calls leaves the
                        // temporary name
                        let temporary = storage.link_beside(file, target, &temporary_prefix(target)?)?;
                        storage.rename(temporary, target, true).map_err(final_error)
                    }
                    linked => linked.map_err(final_error),
                })?;
                file.sync() // btrfs makes a file without a name durable only now
            }
        }
    }
}

/// Returns the beginning of a temporary name for `target`.
fn temporary_prefix(target: &Path) -> io::Result<String> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let name: String = name.to_string_lossy().chars().take(NAME_CHARS).collect();
    Ok(format!(".{name}."))
}

/// Converts an error after which the same call must not be tried again.
fn final_error(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => already_exists(),
        io::ErrorKind::Interrupted => io::Error::other(error),
        _ => error,
    }
}

fn not_replaced(what: &str) -> io::Error {
    let message = format!("the path leads to {what}, and only a regular file is replaced; choose another path");
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
            // a name is durable when its folder is
            file.attempt(|_| storage.sync_folder_of(target).map_err(final_error))?;
        }
        self.file.attempt(|_| Ok(()))?;
        self.file.committed();
        Ok(())
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.destination)
    }
}
