//! The operations of the operating system that files need, behind the trait [`Storage`]. Tests
//! replace it by a disk that fails and loses power.
//!
//! Each function of the trait is one step that a failure can come before or after, so that the
//! tests can stop between any two. [`Disk`] is the real file system. On Linux it makes files
//! without a name (`O_TMPFILE`), of which nothing is left when their process ends. Elsewhere
//! temporary files have names, and those of killed writers can be listed.
//!
//! Locks keep a second appender out. Other systems than Unix lock out readers too, so a new file is
//! locked on Unix only.

use crate::open::{PositionedFile, Source};
use std::fs::{self, File, FileType, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::{Builder, TempPath};

/// A file system. Each function is one step that a loss of power or a failure can come before or
/// after.
pub(super) trait Storage {
    type File: StorageFile;
    /// The name of a temporary file, which is removed when this is dropped.
    type Temporary;

    /// Follows symbolic links from `destination`. Returns the path at their end, and what has it.
    fn resolve(&self, destination: &Path) -> io::Result<(PathBuf, Occupant)>;

    /// Makes a file without a name in the folder of `target`; `None` if the file system cannot.
    fn create_unnamed(&self, target: &Path) -> io::Result<Option<Self::File>>;

    /// Makes a file in the folder of `target`, whose name begins with `prefix`.
    fn create_beside(&self, target: &Path, prefix: &str) -> io::Result<(Self::File, Self::Temporary)>;

    /// Names a file that has no name; fails if something has that name.
    fn link(&self, file: &Self::File, target: &Path) -> io::Result<()>;

    /// Gives a file that has no name a temporary one in the folder of `target`, which begins with
    /// `prefix`.
    fn link_beside(&self, file: &Self::File, target: &Path, prefix: &str) -> io::Result<Self::Temporary>;

    /// Opens a file that exists for reading and writing, and locks it.
    fn open(&self, path: &Path) -> io::Result<Self::File>;

    fn rename(&self, temporary: Self::Temporary, target: &Path, overwrite: bool) -> io::Result<()>;

    /// Makes renames and new files in the folder of `path` durable.
    fn sync_folder_of(&self, path: &Path) -> io::Result<()>;
}

/// The file that has the path which a new file is to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occupant {
    Nothing,
    /// A regular file, which can be replaced.
    File,
    /// Something else, which cannot be replaced, with the name of its kind.
    Other(&'static str),
}

/// A file of a [`Storage`]. Its length as a [`Source`] is that at opening.
pub(super) trait StorageFile: Source + Write {
    /// Cuts the file off at `bytes`. The next write begins there.
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
        // with the permissions that the process's mask leaves
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
                let message = "another writer is at work on this file; wait until it is done";
                io::Error::new(io::ErrorKind::WouldBlock, message)
            }
            TryLockError::Error(error) => error,
        })?;
        Ok(DiskFile(PositionedFile::of(file)?)) // its length is taken after it is locked
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

/// Prepares a new file that will replace the file at `target`.
fn begin(file: File, target: &Path) -> io::Result<DiskFile> {
    lock_out_appenders(&file);
    copy_permissions(&file, target);
    Ok(DiskFile(PositionedFile::of(file)?))
}

/// Follows symbolic links by hand: the last one may lead to nothing yet.
fn follow(path: &Path) -> io::Result<PathBuf> {
    const MAX_LINKS: usize = 40; // as Linux has it
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(link) => path = parent(&path).join(link),
            // no link, or nothing there: an error shows when the path is used
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
        _ => "no regular file",
    }
}

#[cfg(not(unix))]
fn kind_of(file: FileType) -> &'static str {
    if file.is_dir() { "a folder" } else { "no regular file" }
}

/// The number of random characters of a temporary name.
const RANDOM_CHARS: usize = 6;

fn temporary_names(prefix: &str) -> Builder<'_, 'static> {
    let mut builder = Builder::new();
    builder.prefix(prefix).suffix(".tmp").rand_bytes(RANDOM_CHARS);
    builder
}

/// Lists the temporary files beside `target` whose names begin with `prefix` and that no writer has
/// locked, because it was killed.
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

/// Returns whether no writer has locked a file. Where that is not known, one may be at work.
fn is_unlocked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock_shared().is_ok())
}

/// A file of the real file system.
#[derive(Debug)]
pub(super) struct DiskFile(PositionedFile);

/// Unlocks the file. Closing it would not be enough: a child process that another thread is just
/// starting shares the file, and with it the lock, until it runs its program.
impl Drop for DiskFile {
    fn drop(&mut self) {
        let _ = self.0.file().unlock(); // else closing does it
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

/// Gives a file the permissions of the one that it replaces. Its owner is that of this process.
#[cfg(unix)]
fn copy_permissions(file: &File, target: &Path) {
    use std::os::unix::fs::PermissionsExt;
    if let Ok(metadata) = fs::metadata(target)
        && metadata.is_file()
    {
        let mode = metadata.permissions().mode() & 0o777;
        let _ = file.set_permissions(fs::Permissions::from_mode(mode)); // else those of a new file
    }
}

#[cfg(not(unix))]
fn copy_permissions(_: &File, _: &Path) {}

/// Locks a file, so that others wait with appending: its writer may write more after the commit
/// with which it appears. If files cannot be locked, nobody can append either.
#[cfg(unix)]
fn lock_out_appenders(file: &File) {
    let _ = file.try_lock();
}

/// Does nothing: locks of other systems would also exclude readers.
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

    /// Creates a file in `folder`, with the permissions that the process's mask leaves. Returns
    /// `None` if the file system has no such files, or if `/proc` is not mounted, which naming them
    /// needs.
    pub(super) fn create(folder: &Path) -> Option<File> {
        // if the folder is at fault, creating a file with a name will report it
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(open(folder, flags, Mode::from_raw_mode(0o666)).ok()?);
        let (own, seen) = (file.metadata().ok()?, fs::metadata(path_of(&file)).ok()?);
        ((own.dev(), own.ino()) == (seen.dev(), seen.ino())).then_some(file)
    }

    /// Names a file; fails if something has that name.
    pub(super) fn link(file: &File, path: &Path) -> io::Result<()> {
        Ok(linkat(CWD, path_of(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }

    fn path_of(file: &File) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
    }
}

/// Files without a name: other systems have none.
#[cfg(not(target_os = "linux"))]
mod unnamed {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(super) fn create(_: &Path) -> Option<File> {
        None
    }

    /// Is never called, because `create` makes no file.
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
    Disk.open(&path).expect("no writer any more");
    drop(shared);
}
