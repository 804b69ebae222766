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
    /// By io_uring past the page cache (O_DIRECT).
    Direct,
    /// By requests to an object store, all ranges of a batch at the same time.
    Object,
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
            Self::Object => "object",
            Self::Custom => "custom",
        }
    }
}

/// A way of reading files, the reason for it, and the function that opens them.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub how: FileAccess,
    pub opener: Opener,
    /// Why it was chosen; `None` if the caller has asked for it.
    pub chosen: Option<&'static str>,
}

/// A function that opens a file, and one that counts what was asked of a store.
#[derive(Clone)]
pub(crate) struct Opener {
    open: Arc<OpenFile>,
    asked: Arc<dyn Fn() -> u64 + Send + Sync>,
}

type OpenFile = dyn Fn(&Path, OpenOptions) -> tensilo::Result<Reader> + Send + Sync;

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opener")
    }
}

impl Opener {
    pub(crate) fn new(open: impl Fn(&Path, OpenOptions) -> tensilo::Result<Reader> + Send + Sync + 'static) -> Self {
        Self { open: Arc::new(open), asked: Arc::new(|| 0) }
    }

    /// Returns the same with a function that counts what is asked of a store.
    #[cfg(feature = "object")]
    pub(super) fn counted(self, asked: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self { asked: Arc::new(asked), ..self }
    }

    pub(crate) fn open(&self, path: &Path, options: OpenOptions) -> tensilo::Result<Reader> {
        (self.open)(path, options)
    }

    /// Returns how often a store was asked for bytes that were not at hand.
    pub(super) fn asked(&self) -> u64 {
        (self.asked)()
    }
}

impl Access {
    /// Returns a way that the caller has asked for.
    pub(crate) fn told(how: FileAccess, opener: Opener) -> Self {
        Self { how, opener, chosen: None }
    }

    pub(crate) fn by_position() -> Self {
        Self::told(FileAccess::ByPosition, Opener::new(|path, options| options.open_file(path)))
    }

    /// Returns the same, as it was chosen for a reason.
    pub(crate) fn chosen_as(self, why: &'static str) -> Self {
        Self { chosen: Some(why), ..self }
    }

    pub(super) fn reason(&self) -> &'static str {
        self.chosen.unwrap_or("asked for")
    }
}

#[cfg(not(all(target_os = "linux", feature = "io-uring")))]
impl Access {
    /// Chooses how to read files at a path.
    pub(super) fn choose(_: &Path) -> Self {
        Self::by_position().chosen_as("this build has no io_uring")
    }

    /// Returns whether files at a path that have so many bytes in all stay in the page cache.
    pub(super) fn stays_cached(_: &Path, _: impl FnOnce() -> u64) -> bool {
        false // not known
    }

    /// Returns another way that suits samples in any order better, of files at a path that have so
    /// many bytes in all.
    pub(super) fn for_shuffled(&self, _: &Path, _: impl FnOnce() -> u64) -> Option<Self> {
        None
    }
}
