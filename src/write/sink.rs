//! The destinations of a writer's bytes: [`Sink`] and its implementations.
//!
//! Readers must never see a half-written file. A new file ([`AtomicFile`]) has no name, or a hidden
//! one, until its first commit is durable. Then it gets its name in one step. An existing file
//! ([`AppendFile`]) is locked. Before anything is written to it, the bytes after its last commit
//! are cut off, and the file is synced.
//!
//! Both write through a [`BufferedFile`]. After any error, it refuses further calls. When it is
//! dropped, it cuts off the bytes after the last commit.
//!
//! Both run on any [`Storage`], so tests can run them on a simulated disk that fails or loses
//! power. The documentation of `writer.rs` lists the states that a crash can leave.

use super::storage::{Disk, Occupant, Storage, StorageFile, left_behind};
use crate::bytes::le::u64_of;
use crate::open::FileIdentity;
use crate::{Error, Result};
use std::io::{self, Write};
use std::mem;
use std::path::{Path, PathBuf};

/// The destination of a [`Writer`](crate::Writer), which writes a file from front to back.
///
/// [`AtomicFile`] and [`AppendFile`] are files; [`Stream`] is any other [`Write`].
pub trait Sink: Write {
    /// Makes all bytes written so far durable. Called twice for each commit: before and after the
    /// trailer is written.
    fn sync(&mut self) -> io::Result<()>;

    /// Makes the file visible to others. Called at the end of each commit.
    fn publish(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns the path of the file, for errors; `None` if there is none.
    fn path(&self) -> Option<&Path> {
        None
    }

    /// Returns the identity of the file that is written or will be replaced; `None` if there is
    /// none. A conversion uses it to refuse an output that is also an input. By default, this is
    /// the identity of the file at [`Sink::path`].
    fn identity(&self) -> Option<FileIdentity> {
        FileIdentity::at(self.path()?).ok().flatten()
    }
}

/// Any [`Write`] as a sink: a pipe, a socket, a `Vec<u8>`. A commit only flushes it, which does not
/// necessarily make its bytes durable.
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

/// Implements [`Write`] and [`Sink`] by forwarding to the only field.
macro_rules! sink_of_field {
    ($file:ty) => {
        impl Write for $file {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.write(bytes)
            }

            fn flush(&mut self) -> io::Result<()> {
                self.0.flush()
            }
        }

        impl Sink for $file {
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
    };
}

/// The size of the buffer. Writing a chunk takes three writes, and the buffer keeps them from
/// becoming three system calls.
const BUFFER_BYTES: usize = 256 << 10;

/// A file with a write buffer.
///
/// After an error, nothing is retried, because a repeated `fsync` can report success for bytes that
/// are lost. When the file is dropped, the bytes after the last commit are cut off.
#[derive(Debug)]
pub(super) struct BufferedFile<F: StorageFile> {
    file: F,
    buffer: Vec<u8>,
    /// The length of the file, including the buffered bytes.
    end: u64,
    /// The end of the last commit; 0 before the first.
    committed: u64,
    failed: bool,
}

impl<F: StorageFile> BufferedFile<F> {
    /// Creates the buffer of a file whose last commit ends at `committed`.
    pub(super) fn new(file: F, committed: u64) -> Self {
        Self { file, buffer: Vec::new(), end: committed, committed, failed: false }
    }

    /// Marks the bytes written so far as committed.
    pub(super) fn committed(&mut self) {
        self.committed = self.end;
    }

    /// Cuts off the bytes after the last commit.
    pub(super) fn truncate(&mut self) -> io::Result<()> {
        let committed = self.committed;
        self.attempt(|file| file.truncate(committed))
    }

    /// Calls `call` with the file, unless an earlier call has failed.
    pub(super) fn attempt<T>(&mut self, call: impl FnOnce(&mut F) -> io::Result<T>) -> io::Result<T> {
        if self.failed {
            return Err(io::Error::other("an earlier operation on the file has failed; start again with a new writer"));
        }
        let result = call(&mut self.file);
        self.failed = result.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted);
        result
    }

    /// Makes all bytes written so far durable.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        let unsynced = |error: io::Error| {
            let message =
                format!("{error}; bytes written since the last commit may be lost, and the sync is not retried");
            io::Error::new(error.kind(), message)
        };
        self.attempt(|file| file.sync().map_err(unsynced))
    }
}

impl<F: StorageFile> Write for BufferedFile<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len().saturating_add(bytes.len()) > BUFFER_BYTES {
            self.flush()?;
        }
        let accepted = if bytes.len() >= BUFFER_BYTES {
            self.attempt(|file| file.write(bytes))?
        } else {
            self.attempt(|_| Ok(()))?;
            self.buffer.extend_from_slice(bytes);
            bytes.len()
        };
        self.end = self.end.saturating_add(u64_of(accepted));
        Ok(accepted)
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut buffer = mem::take(&mut self.buffer);
        self.attempt(|file| file.write_all(&buffer))?;
        buffer.clear();
        self.buffer = buffer;
        Ok(())
    }
}

impl<F: StorageFile> Drop for BufferedFile<F> {
    fn drop(&mut self) {
        if self.committed > 0 && self.end > self.committed {
            // also after an error; if this fails, readers ignore the bytes
            let _ = self.file.truncate(self.committed);
        }
    }
}

/// The maximum number of characters of the destination's name in a temporary name. File systems
/// limit the length of names.
const NAME_CHARS: usize = 48;

/// A file that appears under its name only when it is complete.
///
/// The file gets its name at its first commit, which is usually its only one. If the writer fails
/// or is dropped before that, no trace of it remains, and an existing file at the destination stays
/// unchanged. If the writer fails or is dropped later, the bytes after the last commit are cut off.
///
/// - On Linux, the file has no name until it is complete (`O_TMPFILE`), so even a killed process
///   leaves nothing behind.
/// - On other systems, and on file systems without unnamed files, it has a hidden name next to its
///   destination (`.NAME.random.tmp`). A killed process leaves it there. Such a file has no valid
///   end, so it is never mistaken for a complete file. [`AtomicFile::left_behind`] lists these
///   files.
///
/// If the destination is a symbolic link, the file appears at its target, and the link stays. Only
/// a regular file is ever replaced; a folder, a device or a pipe at the destination is an error. A
/// new file gets the permissions of the file that it replaces. If it replaces none, the umask of
/// the process determines its permissions.
///
/// The file and its folder are made durable (`fsync`) before a commit returns. If this fails after
/// the file has got its name, the file is complete, but a loss of power can remove it.
#[derive(Debug)]
pub struct AtomicFile(AtomicSink<Disk>);

impl AtomicFile {
    /// Starts a file that will appear at `destination`. If `overwrite` is false, this call fails if
    /// the path exists, and the first commit fails if the path has been created in the meantime.
    pub fn create(destination: impl AsRef<Path>, overwrite: bool) -> Result<Self> {
        Ok(Self(AtomicSink::create(Disk, destination.as_ref(), overwrite)?))
    }

    /// Returns the temporary name of the file, if it has one. A caller that ends the process
    /// without dropping this value must remove that file.
    pub fn temporary_path(&self) -> Option<&Path> {
        match &self.0.name {
            Name::Temporary(name) => Some(name),
            Name::None | Name::Final => None,
        }
    }

    /// Lists the temporary files that killed writers of `destination` have left, sorted by name. If
    /// `destination` is a symbolic link, lists the files next to its target. If the file system
    /// supports locks, leaves out the files of active writers.
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
pub(super) struct AtomicSink<S: Storage> {
    storage: S,
    file: BufferedFile<S::File>,
    name: Name<S::Temporary>,
    /// The path as the caller gave it.
    destination: PathBuf,
    /// The path after all symbolic links have been followed.
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

impl<S: Storage> AtomicSink<S> {
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
        Ok(Self { storage, file: BufferedFile::new(file, 0), name, destination, target, overwrite })
    }

    /// Gives the file its name, in one step.
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
                        // a link cannot replace a file, but a rename can; if the process is killed
                        // between these two calls, the temporary name remains
                        let temporary = storage.link_beside(file, target, &temporary_prefix(target)?)?;
                        storage.rename(temporary, target, true).map_err(final_error)
                    }
                    linked => linked.map_err(final_error),
                })?;
                file.sync() // btrfs makes an unnamed file durable only once it has a name
            }
        }
    }
}

/// Returns the prefix of temporary names for `target`.
fn temporary_prefix(target: &Path) -> io::Result<String> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let name: String = name.to_string_lossy().chars().take(NAME_CHARS).collect();
    Ok(format!(".{name}."))
}

/// Converts an interruption to an error of another kind, because callers of [`Write`] repeat
/// interrupted calls. Adds the remedy if the name exists.
fn final_error(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => already_exists(),
        io::ErrorKind::Interrupted => io::Error::other(error),
        _ => error,
    }
}

fn not_replaced(what: &str) -> io::Error {
    let message = format!("the path leads to {what}, but only regular files can be replaced; choose another path");
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

fn already_exists() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "the file exists; remove it or allow overwriting")
}

impl<S: Storage> Write for AtomicSink<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<S: Storage> Sink for AtomicSink<S> {
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn publish(&mut self) -> io::Result<()> {
        if !matches!(self.name, Name::Final) {
            self.put()?;
            let Self { storage, file, target, .. } = self;
            // a name is durable only once its folder is synced
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

/// An existing file that is appended to.
///
/// The file is locked (`flock`), so a second appender gets an error. On systems other than Unix,
/// the lock can also keep readers out. If the writer fails or is dropped, the bytes after the last
/// commit are cut off. If the process is killed, they remain, and readers ignore them.
#[derive(Debug)]
pub struct AppendFile(AppendSink<Disk>);

impl AppendFile {
    pub(super) fn new(file: AppendSink<Disk>) -> Self {
        Self(file)
    }
}

sink_of_field!(AppendFile);

/// [`AppendFile`] on any storage.
#[derive(Debug)]
pub(super) struct AppendSink<S: Storage> {
    storage: S,
    path: PathBuf,
    file: BufferedFile<S::File>,
    /// Whether the bytes after the last commit have been cut off.
    is_truncated: bool,
}

impl<S: Storage> AppendSink<S> {
    /// Creates the sink of a file whose last commit ends at `end`.
    pub(super) fn new(storage: S, path: &Path, file: S::File, end: u64) -> Self {
        Self { storage, path: path.to_path_buf(), file: BufferedFile::new(file, end), is_truncated: false }
    }

    /// Cuts off the bytes after the last commit and syncs the file, before the first byte is
    /// written.
    ///
    /// The file is synced even if its length does not change. Otherwise, after a loss of power,
    /// bytes of an earlier appender could reappear between the new ones. The folder is also synced,
    /// because the writer that created the file may have been stopped before it did so.
    fn begin(&mut self) -> io::Result<()> {
        let Self { storage, path, file, .. } = self;
        file.truncate()?;
        file.sync()?;
        file.attempt(|_| storage.sync_folder_of(path))?;
        self.is_truncated = true;
        Ok(())
    }
}

impl<S: Storage> Write for AppendSink<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_truncated {
            self.begin()?;
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<S: Storage> Sink for AppendSink<S> {
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
