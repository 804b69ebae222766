//! Files without a name: whenever their process ends, nothing is left of them.

pub(super) use system::{create, link};

#[cfg(target_os = "linux")]
mod system {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
    use std::fs::{self, File};
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    /// A new file in `folder`, with the permissions that the process's mask leaves. `None` if the
    /// file system has no such files, or if `/proc`, without which they cannot be named, is not
    /// mounted.
    pub(in super::super) fn create(folder: &Path) -> Option<File> {
        // whatever is wrong with the folder shows when a file with a name is made instead
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

    /// Never called, because there is no such file.
    pub(in super::super) fn link(_: &File, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
