//! Descriptors that are open when the program starts: `/dev/stdout`, `/dev/fd/3`.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::Path;

/// The number of an open file descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor(i32);

impl Descriptor {
    pub(super) const STDOUT: Self = Self(1);
    const STDERR: Self = Self(2);

    /// Returns the descriptor that a path names, even if the system has no such path.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let path = path.to_str().filter(|_| cfg!(unix))?;
        match path {
            "/dev/stdout" => return Some(Self::STDOUT),
            "/dev/stderr" => return Some(Self::STDERR),
            _ => {}
        }
        let own = format!("/proc/{}/fd/", std::process::id());
        let folders = ["/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", &own];
        let number = folders.into_iter().find_map(|folder| path.strip_prefix(folder))?;
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        number.parse().ok().filter(|_| is_number).map(Self)
    }

    pub(super) fn is_terminal(self) -> bool {
        match self {
            Self::STDOUT => io::stdout().is_terminal(),
            _ => self.duplicate().is_ok_and(|file| file.is_terminal()),
        }
    }

    /// Duplicates the descriptor: both share one file position. Does not open the file again.
    #[cfg(unix)]
    pub(super) fn duplicate(self) -> io::Result<File> {
        use std::os::fd::AsFd;
        match self {
            Self::STDOUT => Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?)),
            Self::STDERR => Ok(File::from(io::stderr().as_fd().try_clone_to_owned()?)),
            Self(number) => duplicate(number),
        }
    }

    #[cfg(windows)]
    pub(super) fn duplicate(self) -> io::Result<File> {
        use std::os::windows::io::AsHandle;
        // Windows has no other descriptors
        Ok(File::from(io::stdout().as_handle().try_clone_to_owned()?))
    }

    /// Returns whether `file` is the same file, pipe or device.
    #[cfg(unix)]
    pub(super) fn is(self, file: &File) -> bool {
        use std::os::unix::fs::MetadataExt;
        let identity = |file: &File| file.metadata().map(|metadata| (metadata.dev(), metadata.ino()));
        let own = self.duplicate().and_then(|own| identity(&own));
        own.is_ok_and(|own| identity(file).is_ok_and(|other| own == other))
    }

    #[cfg(windows)]
    pub(super) fn is(self, _: &File) -> bool {
        false
    }
}

/// Duplicates a descriptor by number. On Linux, opening `/dev/fd/3` opens the file again instead of
/// duplicating the descriptor, so this function requests the descriptor from its own process. A
/// container may forbid that; pipes and devices can be opened by name instead.
#[cfg(target_os = "linux")]
fn duplicate(number: i32) -> io::Result<File> {
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    pidfd_getfd(own, number, PidfdGetfdFlags::empty()).map(File::from).or_else(|error| {
        let path = format!("/proc/self/fd/{number}");
        if std::fs::metadata(&path)?.is_file() {
            return Err(error.into());
        }
        File::options().write(true).open(path)
    })
}

/// Duplicates a descriptor by number: opening `/dev/fd/3` does that.
#[cfg(all(unix, not(target_os = "linux")))]
fn duplicate(number: i32) -> io::Result<File> {
    File::options().write(true).open(format!("/dev/fd/{number}"))
}
