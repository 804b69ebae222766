//! How the files of a dataset are opened and read: as the caller says, or as suits file system and
//! size.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use tensilo::{OpenOptions, Reader};

/// The I/O method that reads the files of a dataset.
///
/// [`DatasetOptions`](crate::DatasetOptions) chooses it, and [`Dataset::io`](crate::Dataset::io)
/// returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Io {
    /// `pread`: one range after the other; ranges with small gaps are coalesced.
    Pread,
    /// Memory maps.
    Mmap,
    /// io_uring with buffered I/O: all ranges of a batch at the same time.
    IoUring,
    /// io_uring with direct I/O (`O_DIRECT`), which bypasses the page cache.
    Direct,
    /// Requests to an object store, all ranges of a batch at the same time.
    Object,
    /// A function of the caller ([`DatasetOptions::open_with`](crate::DatasetOptions::open_with)).
    Custom,
}

impl Io {
    /// Returns the name, as in the options of Python and the program, and in JSON documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pread => "pread",
            Self::Mmap => "mmap",
            Self::IoUring => "io_uring",
            Self::Direct => "direct",
            Self::Object => "object",
            Self::Custom => "custom",
        }
    }
}

/// How files are read, the reason for it, and the function that opens them.
#[derive(Clone, Debug)]
pub(crate) struct IoChoice {
    pub kind: Io,
    pub opener: Opener,
    /// Why it was chosen; `None` if the caller chose it.
    pub chosen: Option<&'static str>,
}

/// A function that opens a file, and where that takes a round trip one that begins it.
#[derive(Clone)]
pub(crate) struct Opener {
    open: Arc<OpenFile>,
    begin: Option<Arc<BeginOpening>>,
}

type OpenFile = dyn Fn(&Path, OpenOptions) -> tensilo::Result<Reader> + Send + Sync;

/// Begins to open a file, given the range from its footer to its end, if that is known.
type BeginOpening = dyn Fn(&Path, Option<Range<u64>>) -> Opening + Send + Sync;

/// The opening of a file that was begun: waits, and returns the reader. If it is dropped, nothing
/// more is asked for.
pub(crate) type Opening = Box<dyn FnOnce(OpenOptions) -> tensilo::Result<Reader> + Send>;

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opener")
    }
}

impl Opener {
    pub(crate) fn new(open: impl Fn(&Path, OpenOptions) -> tensilo::Result<Reader> + Send + Sync + 'static) -> Self {
        Self { open: Arc::new(open), begin: None }
    }

    /// Returns an opener of files that take a round trip to open.
    #[cfg(feature = "object")]
    pub(super) fn remote(begin: impl Fn(&Path, Option<Range<u64>>) -> Opening + Send + Sync + 'static) -> Self {
        let begin = Arc::new(begin);
        let open = begin.clone();
        let end_of = |options: &OpenOptions| options.told_first_bytes().map(|bytes| bytes..bytes);
        let open = move |path: &Path, options: OpenOptions| open(path, end_of(&options))(options);
        Self { open: Arc::new(open), begin: Some(begin) }
    }

    pub(crate) fn open(&self, path: &Path, options: OpenOptions) -> tensilo::Result<Reader> {
        (self.open)(path, options)
    }

    /// Opens a file, unless that was begun.
    pub(super) fn open_begun(
        &self,
        path: &Path,
        options: OpenOptions,
        begun: Option<Opening>,
    ) -> tensilo::Result<Reader> {
        match begun {
            Some(opening) => opening(options),
            None => self.open(path, options),
        }
    }

    /// Begins to open a file, and returns at once; `None` if opening takes no round trip.
    pub(super) fn begin(&self, path: &Path, end: Option<Range<u64>>) -> Option<Opening> {
        self.begin.as_ref().map(|begin| begin(path, end))
    }
}

impl IoChoice {
    /// Returns the choice of the caller.
    pub(crate) fn explicit(kind: Io, opener: Opener) -> Self {
        Self { kind, opener, chosen: None }
    }

    pub(crate) fn pread() -> Self {
        Self::explicit(Io::Pread, Opener::new(|path, options| options.open_file(path)))
    }

    /// Returns the same choice, made by the library for this reason.
    pub(crate) fn chosen_as(self, why: &'static str) -> Self {
        Self { chosen: Some(why), ..self }
    }

    pub(super) fn reason(&self) -> &'static str {
        self.chosen.unwrap_or("asked for")
    }
}

#[cfg(not(all(target_os = "linux", feature = "io-uring")))]
impl IoChoice {
    /// Chooses how to read files at a path.
    pub(super) fn choose(_: &Path) -> Self {
        Self::pread().chosen_as("this build has no io_uring")
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
