//! Files without a name. Nothing is left of them when their process ends.

pub(super) use system::{create, link};

#[cfg(target_os = "linux")]
mod system {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
    use std::fs::{self, File};
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    /// Creates a file in `folder`, with the permissions that the process's mask leaves. Returns
    /// `None` if the file system has no such files, or if `/proc` is not mounted, which naming them
    /// needs.
    pub(in super::super) fn create(folder: &Path) -> Option<File> {
        // if the folder is at fault, creating a file with a name will report it
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(open(folder, flags, Mode::from_raw_mode(0o666)).ok()?);
        let (own, seen) = (file.metadata().ok()?, fs::metadata(path_of(&file)).ok()?);
        ((own.dev(), own.ino()) == (seen.dev(), seen.ino())).then_some(file)
    }

    /// Names a file; fails if something has that name.
    pub(in super::super) fn link(file: &File, path: &Path) -> io::Result<()> {
        Ok(linkat(CWD, path_of(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }

    fn path_of(file: &File) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(in super::super) fn create(_: &Path) -> Option<File> {
        None
    }

    /// Is never called, because `create` makes no file.
    pub(in super::super) fn link(_: &File, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
