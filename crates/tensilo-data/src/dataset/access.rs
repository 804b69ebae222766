//! How the files of a dataset are read: as the caller says, or as suits file system and size.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use tensilo::{OpenOptions, Reader};

/// A way of reading files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileAccess {
    /// By position (`pread`), one range after the other; ranges with small gaps as one.
    ByPosition,
    /// In memory maps.
    Mapped,
    /// By io_uring, all ranges of a batch at the same time.
    IoUring,
    /// By io_uring past the page cache (O_DIRECT), where the file system allows that.
    Direct,
    /// By a function of the caller.
    Custom,
}

impl FileAccess {
    /// Returns the name, as in the options and JSON documents of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::ByPosition => "by-position",
            Self::Mapped => "mapped",
            Self::IoUring => "io-uring",
            Self::Direct => "direct",
            Self::Custom => "custom",
        }
    }
}

/// A way of reading files, the reason for it, and the function that opens them.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub how: FileAccess,
    pub why: &'static str,
    pub opener: Opener,
}

/// A function that opens a file.
#[derive(Clone)]
pub(crate) struct Opener(Arc<OpenFile>);

type OpenFile = dyn Fn(&Path, OpenOptions) -> tensilo::Result<Reader> + Send + Sync;

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opener")
    }
}

impl Opener {
    pub(crate) fn new(open: impl Fn(&Path, OpenOptions) -> tensilo::Result<Reader> + Send + Sync + 'static) -> Self {
        Self(Arc::new(open))
    }

    pub(crate) fn open(&self, path: &Path, options: OpenOptions) -> tensilo::Result<Reader> {
        (self.0)(path, options)
    }
}

impl Access {
    pub(crate) fn by_position(why: &'static str) -> Self {
        let opener = Opener::new(|path, options| options.open_file(path));
        Self { how: FileAccess::ByPosition, why, opener }
    }

    /// Chooses how to read files at a path, which have so many bytes in all.
    #[cfg(not(all(target_os = "linux", feature = "io-uring")))]
    pub(super) fn choose(_: &Path, _: impl FnOnce() -> u64) -> Self {
        Self::by_position("this build has no io_uring")
    }
}
