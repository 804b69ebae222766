//! The operating-system calls that files need, behind the trait [`Storage`].
//!
//! Each function of the trait is one step, and a crash can happen before or after it. Tests replace
//! [`Disk`], the real file system, with a simulated disk, and stop it between any two steps.
//!
//! On Linux, [`Disk`] creates files without a name (`O_TMPFILE`), which vanish when their process
//! ends. On other systems, temporary files have names, and [`left_behind`] finds the files of
//! killed writers.
//!
//! Locks keep a second appender out. On systems other than Unix, a lock also keeps readers out, so
//! new files are locked on Unix only.

use crate::open::{PositionedFile, Source};
use std::fs::{self, File, FileType, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::{Builder, TempPath};

/// A file system. Each function is one step; it can fail, and power can be lost before or after it.
pub(super) trait Storage {
    type File: StorageFile;
    /// The name of a temporary file. Dropping it removes the file.
    type Temporary;

    /// Follows symbolic links from `destination`. Returns the path at their end, and what is at
    /// that path.
    fn resolve(&self, destination: &Path) -> io::Result<(PathBuf, Occupant)>;

    /// Creates a file without a name in the folder of `target`; `None` if the file system does not
    /// support it.
    fn create_unnamed(&self, target: &Path) -> io::Result<Option<Self::File>>;

    /// Creates a file in the folder of `target`, with a name that begins with `prefix`.
    fn create_beside(&self, target: &Path, prefix: &str) -> io::Result<(Self::File, Self::Temporary)>;

    /// Gives an unnamed file a name. Fails if the name exists.
    fn link(&self, file: &Self::File, target: &Path) -> io::Result<()>;

    /// Gives an unnamed file a temporary name in the folder of `target`, which begins with
    /// `prefix`.
    fn link_beside(&self, file: &Self::File, target: &Path, prefix: &str) -> io::Result<Self::Temporary>;

    /// Opens an existing file for reading and writing, and locks it.
    fn open(&self, path: &Path) -> io::Result<Self::File>;

    fn rename(&self, temporary: Self::Temporary, target: &Path, overwrite: bool) -> io::Result<()>;

    /// Makes renames and new files in the folder of `path` durable.
    fn sync_folder_of(&self, path: &Path) -> io::Result<()>;
}

/// What is at the path of a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occupant {
    Nothing,
    /// A regular file, which can be replaced.
    File,
    /// Anything else, which cannot be replaced. The text says what it is, such as "a folder".
    Other(&'static str),
}

/// A file of a [`Storage`]. As a [`Source`], it keeps the length that it had when it was opened.
pub(super) trait StorageFile: Source + Write {
    /// Truncates the file to `bytes` bytes. The next write begins there.
    fn truncate(&mut self, bytes: u64) -> io::Result<()>;

    fn sync(&mut self) -> io::Result<()>;
}

/// The real file system.
#[derive(Debug)]
pub(super) struct Disk;

impl Storage for Disk {
    type File = DiskFile;
    type Temporary = TempPath;

    fn resolve(&self, destination: &Path) -> io::Result<(PathBuf, Occupant)> {
        let target = follow(destination)?;
        let occupant = match fs::metadata(&target) {
            Ok(metadata) if metadata.is_file() => Occupant::File,
            Ok(metadata) => Occupant::Other(kind_of(metadata.file_type())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Occupant::Nothing,
            Err(error) => return Err(error),
        };
        Ok((target, occupant))
    }

    fn create_unnamed(&self, target: &Path) -> io::Result<Option<DiskFile>> {
        unnamed::create(parent(target)).map(|file| begin(file, target)).transpose()
    }

    fn create_beside(&self, target: &Path, prefix: &str) -> io::Result<(DiskFile, TempPath)> {
        let mut options = File::options();
        // the umask determines the permissions
        options.read(true).write(true).create_new(true);
        let named = temporary_names(prefix).make_in(parent(target), |path| options.open(path))?;
        let (file, temporary) = named.into_parts();
        Ok((begin(file, target)?, temporary))
    }

    fn link(&self, file: &DiskFile, target: &Path) -> io::Result<()> {
        unnamed::link(file.0.file(), target)
    }

    fn link_beside(&self, file: &DiskFile, target: &Path, prefix: &str) -> io::Result<TempPath> {
        let linked = temporary_names(prefix).make_in(parent(target), |path| unnamed::link(file.0.file(), path))?;
        Ok(linked.into_parts().1)
    }

    fn open(&self, path: &Path) -> io::Result<DiskFile> {
        let file = File::options().read(true).write(true).open(path)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                let message = "another writer has locked this file; try again when it is done";
                io::Error::new(io::ErrorKind::WouldBlock, message)
            }
            TryLockError::Error(error) => error,
        })?;
        Ok(DiskFile(PositionedFile::of(file)?)) // reads the length after locking
    }

    fn rename(&self, temporary: TempPath, target: &Path, overwrite: bool) -> io::Result<()> {
        let renamed = if overwrite { temporary.persist(target) } else { temporary.persist_noclobber(target) };
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

/// Prepares a new file that will appear at `target`.
fn begin(file: File, target: &Path) -> io::Result<DiskFile> {
    lock_out_appenders(&file);
    copy_permissions(&file, target);
    Ok(DiskFile(PositionedFile::of(file)?))
}

/// Follows symbolic links one by one, because the target of the last one may not exist yet.
fn follow(path: &Path) -> io::Result<PathBuf> {
    const MAX_LINKS: usize = 40; // the limit of Linux
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(link) => path = parent(&path).join(link),
            // not a link, or nothing exists there; if the path is invalid, using it will report the
            // error
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

#[cfg(unix)]
fn kind_of(file: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match file {
        file if file.is_dir() => "a folder",
        file if file.is_fifo() => "a named pipe",
        file if file.is_socket() => "a socket",
        file if file.is_block_device() => "a block device",
        file if file.is_char_device() => "a character device",
        _ => "a special file",
    }
}

#[cfg(not(unix))]
fn kind_of(file: FileType) -> &'static str {
    if file.is_dir() { "a folder" } else { "a special file" }
}

/// The number of random characters of a temporary name.
const RANDOM_CHARS: usize = 6;

fn temporary_names(prefix: &str) -> Builder<'_, 'static> {
    let mut builder = Builder::new();
    builder.prefix(prefix).suffix(".tmp").rand_bytes(RANDOM_CHARS);
    builder
}

/// Lists the temporary files next to `target` whose names begin with `prefix` and that no writer
/// has locked.
pub(super) fn left_behind(target: &Path, prefix: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(parent(target))? {
        let entry = entry?;
        let name = entry.file_name();
        let random = name.to_str().and_then(|name| name.strip_prefix(prefix)?.strip_suffix(".tmp"));
        let is_ours = random.is_some_and(|random| {
            random.len() == RANDOM_CHARS && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
        if is_ours && entry.file_type()?.is_file() && is_unlocked(&entry.path()) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Returns whether no writer has locked a file. Returns `false` if that cannot be determined,
/// because a writer may be active.
fn is_unlocked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock_shared().is_ok())
}

/// A file of the real file system.
#[derive(Debug)]
pub(super) struct DiskFile(PositionedFile);

/// Unlocks the file. Closing is not enough: a child process that another thread is just starting
/// shares the descriptor, and with it the lock, until it executes its program.
impl Drop for DiskFile {
    fn drop(&mut self) {
        let _ = self.0.file().unlock(); // if this fails, closing unlocks it
    }
}

impl StorageFile for DiskFile {
    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
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

/// Returns the folder of a path.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Copies the permissions of the file that is replaced, but not its owner.
#[cfg(unix)]
fn copy_permissions(file: &File, target: &Path) {
    use std::os::unix::fs::PermissionsExt;
    if let Ok(metadata) = fs::metadata(target)
        && metadata.is_file()
    {
        let mode = metadata.permissions().mode() & 0o777;
        let _ = file.set_permissions(fs::Permissions::from_mode(mode)); // if this fails, it keeps the defaults
    }
}

#[cfg(not(unix))]
fn copy_permissions(_: &File, _: &Path) {}

/// Locks a new file, because its writer can write more after the commit with which the file
/// appears. If the file system does not support locks, no appender can open the file either.
#[cfg(unix)]
fn lock_out_appenders(file: &File) {
    let _ = file.try_lock();
}

/// Does nothing: on other systems the lock would also exclude readers.
#[cfg(not(unix))]
fn lock_out_appenders(_: &File) {}

/// Files without a name.
#[cfg(target_os = "linux")]
mod unnamed {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
    use std::fs::{self, File};
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    /// Creates a file in `folder`. The umask determines its permissions. Returns `None` if the file
    /// system does not support files without a name, or if `/proc`, which [`link`] needs, is not
    /// mounted.
    pub(super) fn create(folder: &Path) -> Option<File> {
        // if the folder itself is the problem, creating a named file will report it
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(open(folder, flags, Mode::from_raw_mode(0o666)).ok()?);
        let (own, seen) = (file.metadata().ok()?, fs::metadata(path_of(&file)).ok()?);
        ((own.dev(), own.ino()) == (seen.dev(), seen.ino())).then_some(file)
    }

    /// Gives a file a name. Fails if the name exists.
    pub(super) fn link(file: &File, path: &Path) -> io::Result<()> {
        Ok(linkat(CWD, path_of(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }

    fn path_of(file: &File) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
    }
}

/// Files without a name, which other systems do not have.
#[cfg(not(target_os = "linux"))]
mod unnamed {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(super) fn create(_: &Path) -> Option<File> {
        None
    }

    /// Never called, because `create` returns no file.
    pub(super) fn link(_: &File, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(all(test, unix))]
#[test]
fn a_closed_file_is_not_locked_by_those_who_share_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x");
    fs::write(&path, b"").expect("a file");
    let file = Disk.open(&path).expect("no other writer");
    assert!(Disk.open(&path).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock));
    let shared = file.0.file().try_clone().expect("a descriptor");
    drop(file);
    Disk.open(&path).expect("no other writer");
    drop(shared);
}
