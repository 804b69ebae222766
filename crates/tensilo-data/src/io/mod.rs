//! How the files of a dataset are opened and read.
//!
//! The best I/O method depends on where the files are and how large they are. io_uring hides the
//! latency of disks, but does not help for files in memory. Direct I/O keeps a dataset larger than
//! memory from evicting its own pages from the page cache. Objects need concurrent requests. An
//! [`IoChoice`] contains one such method ([`Io`]), the function that opens files with it
//! ([`Opener`]), and the reason for choosing it. Modules above this one see only a [`Reader`], and
//! need not know how the bytes arrive.
//!
//! An explicit choice by the caller is final. Otherwise, `choose` considers the file system and the
//! kernel, and `for_shuffled` considers the file sizes and the memory of the machine.
//!
//! An [`IoPool`] opens and reads several files at the same time.

mod pool;
#[cfg(all(target_os = "linux", feature = "io-uring"))]
mod uring_file;

pub(crate) use pool::IoPool;
#[cfg(all(target_os = "linux", feature = "io-uring"))]
pub use uring_file::UringFile;

#[cfg(all(target_os = "linux", feature = "io-uring"))]
use rustix::fs::FsWord;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::{fmt, fs};
#[cfg(all(target_os = "linux", feature = "io-uring"))]
use tensilo::source::is_on_network;
use tensilo::{OpenOptions, Reader};

/// The I/O method that reads the files of a dataset.
///
/// [`DatasetOptions`](crate::DatasetOptions) chooses it, and [`Dataset::io`](crate::Dataset::io)
/// returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Io {
    /// `pread`, one range after another. Nearby ranges are coalesced.
    Pread,
    /// Memory maps.
    Mmap,
    /// io_uring with buffered I/O: all ranges of a batch at the same time.
    IoUring,
    /// io_uring with direct I/O (`O_DIRECT`), which bypasses the page cache.
    Direct,
    /// Requests to an object store: all ranges of a batch at the same time.
    Object,
    /// A function that the caller provides
    /// ([`DatasetOptions::open_with`](crate::DatasetOptions::open_with)).
    Custom,
}

impl Io {
    /// Returns the name that Python, the command line and JSON documents use.
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

/// An I/O method, the reason for it, and the function that opens files.
#[derive(Clone, Debug)]
pub(crate) struct IoChoice {
    pub kind: Io,
    pub opener: Opener,
    /// Why the library chose it, or `None` if the caller did.
    pub chosen: Option<&'static str>,
}

/// A function that opens files. If opening a file takes a round trip, there is also a function that
/// starts opening it.
#[derive(Clone)]
pub(crate) struct Opener {
    open: Arc<OpenFile>,
    begin: Option<Arc<BeginOpen>>,
}

type OpenFile = dyn Fn(&Path, OpenOptions) -> tensilo::Result<Reader> + Send + Sync;

/// Starts opening a file, given the range from its footer to its end if this is known.
type BeginOpen = dyn Fn(&Path, Option<Range<u64>>) -> PendingReader + Send + Sync;

/// An open in flight. Calling it waits for the open and returns the reader; dropping it cancels
/// further requests.
pub(crate) type PendingReader = Box<dyn FnOnce(OpenOptions) -> tensilo::Result<Reader> + Send>;

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Opener")
    }
}

impl Opener {
    pub(crate) fn new(open: impl Fn(&Path, OpenOptions) -> tensilo::Result<Reader> + Send + Sync + 'static) -> Self {
        Self { open: Arc::new(open), begin: None }
    }

    /// Returns an opener for files that take a round trip to open.
    #[cfg(feature = "object")]
    pub(crate) fn remote(begin: impl Fn(&Path, Option<Range<u64>>) -> PendingReader + Send + Sync + 'static) -> Self {
        let begin = Arc::new(begin);
        let open = begin.clone();
        let end_of = |options: &OpenOptions| options.explicit_commit_within().map(|bytes| bytes..bytes);
        let open = move |path: &Path, options: OpenOptions| open(path, end_of(&options))(options);
        Self { open: Arc::new(open), begin: Some(begin) }
    }

    fn open(&self, path: &Path, options: OpenOptions) -> tensilo::Result<Reader> {
        (self.open)(path, options)
    }

    /// Opens a file, or waits for a pending open.
    pub(crate) fn open_pending(
        &self,
        path: &Path,
        options: OpenOptions,
        pending: Option<PendingReader>,
    ) -> tensilo::Result<Reader> {
        match pending {
            Some(opening) => opening(options),
            None => self.open(path, options),
        }
    }

    /// Starts opening a file, and returns at once. Returns `None` if opening takes no round trip.
    pub(crate) fn begin(&self, path: &Path, end: Option<Range<u64>>) -> Option<PendingReader> {
        self.begin.as_ref().map(|begin| begin(path, end))
    }
}

impl IoChoice {
    /// Returns a choice that the caller made.
    pub(crate) fn explicit(kind: Io, opener: Opener) -> Self {
        Self { kind, opener, chosen: None }
    }

    pub(crate) fn pread() -> Self {
        Self::explicit(Io::Pread, Opener::new(|path, options| options.open(path)))
    }

    /// Returns the same choice, made by the library for this reason.
    pub(crate) fn with_reason(self, why: &'static str) -> Self {
        Self { chosen: Some(why), ..self }
    }

    pub(crate) fn reason(&self) -> &'static str {
        self.chosen.unwrap_or("chosen by the caller")
    }
}

/// The `statfs` types of file systems in memory: tmpfs and ramfs.
#[cfg(all(target_os = "linux", feature = "io-uring"))]
const IN_MEMORY: [FsWord; 2] = [0x0102_1994, 0x8584_58F6];

#[cfg(all(target_os = "linux", feature = "io-uring"))]
impl IoChoice {
    pub(crate) fn io_uring() -> Self {
        let open = |path: &Path, options: OpenOptions| options.open_source(UringFile::open(path)?);
        Self::explicit(Io::IoUring, Opener::new(open))
    }

    pub(crate) fn direct() -> Self {
        let open = |path: &Path, options: OpenOptions| options.open_source(UringFile::open_direct(path)?);
        Self::explicit(Io::Direct, Opener::new(open))
    }

    /// Chooses how to read files at a path.
    pub(crate) fn choose(path: &Path) -> Self {
        if is_of(&IN_MEMORY, path) {
            return Self::pread().with_reason("the files are in an in-memory file system");
        }
        if UringFile::unavailable().is_some() {
            return Self::pread().with_reason("this system has no io_uring, or forbids it");
        }
        Self::io_uring().with_reason("io_uring reads all ranges of a batch at the same time")
    }

    /// Returns whether files at a path, with `file_bytes` in total, stay in the page cache.
    pub(crate) fn stays_cached(path: &Path, file_bytes: impl FnOnce() -> u64) -> bool {
        !is_on_network(path) && fits_in_cache(file_bytes(), memory_bytes())
    }

    /// Returns direct I/O if it suits shuffled samples better, that is, if files with `file_bytes`
    /// in total are too large to stay in the page cache. It does not suit windowed orders, because
    /// the page cache serves their runs.
    pub(crate) fn for_shuffled(&self, path: &Path, file_bytes: impl FnOnce() -> u64) -> Option<Self> {
        let is_suitable = self.chosen.is_some() && self.kind == Io::IoUring && !is_on_network(path);
        if !is_suitable || !is_larger_than_memory(file_bytes()) {
            return None;
        }
        let open = |path: &Path, options: OpenOptions| {
            // some file systems refuse direct I/O
            let file = UringFile::open_direct(path).or_else(|_| UringFile::open(path));
            options.open_source(file?)
        };
        let why = "samples are shuffled, and files larger than half of the memory would not stay in the page cache";
        Some(Self::explicit(Io::Direct, Opener::new(open)).with_reason(why))
    }
}

#[cfg(not(all(target_os = "linux", feature = "io-uring")))]
impl IoChoice {
    /// Chooses how to read files at a path.
    pub(crate) fn choose(_: &Path) -> Self {
        Self::pread().with_reason("this build has no io_uring")
    }

    /// Returns whether files at a path, with `file_bytes` in total, stay in the page cache.
    pub(crate) fn stays_cached(_: &Path, _: impl FnOnce() -> u64) -> bool {
        false // unknown
    }

    /// Returns `None`, because this build has no I/O method that suits shuffled samples better.
    pub(crate) fn for_shuffled(&self, _: &Path, _: impl FnOnce() -> u64) -> Option<Self> {
        None
    }
}

/// Returns whether a path is on one of these file systems.
#[cfg(all(target_os = "linux", feature = "io-uring"))]
fn is_of(file_systems: &[FsWord], path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| file_systems.contains(&found.f_type))
}

/// Returns the size of the machine's memory in bytes, or `None` if it is unknown.
fn memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns whether files stay in the page cache, that is, whether their size is at most half of the
/// memory. If the memory is unknown, returns `false`.
#[cfg(all(target_os = "linux", feature = "io-uring"))]
fn fits_in_cache(file_bytes: u64, memory_bytes: Option<u64>) -> bool {
    memory_bytes.is_some_and(|memory| file_bytes <= memory / 2)
}

/// Returns whether files of this size are too large to stay in the page cache while a job reads
/// them, that is, larger than half of the memory.
pub(crate) fn is_larger_than_memory(file_bytes: u64) -> bool {
    memory_bytes().is_some_and(|memory| file_bytes > memory / 2)
}

#[cfg(all(test, target_os = "linux", feature = "io-uring"))]
mod tests {
    use super::*;

    #[test]
    fn shuffled_files_are_read_with_direct_io_if_they_do_not_stay_cached() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let chosen = IoChoice::choose(here);
        assert!(chosen.chosen.is_some());
        if UringFile::unavailable().is_some() || is_of(&IN_MEMORY, here) {
            assert_eq!(chosen.kind, Io::Pread);
            assert!(chosen.for_shuffled(here, || u64::MAX).is_none());
            return;
        }
        assert_eq!(chosen.kind, Io::IoUring);
        let shuffled = |choice: &IoChoice, bytes| choice.for_shuffled(here, || bytes).map(|choice| choice.kind);
        assert_eq!(shuffled(&chosen, 1), None);
        let expected = if is_on_network(here) { None } else { Some(Io::Direct) };
        assert_eq!(shuffled(&chosen, u64::MAX), expected);
        assert_eq!(shuffled(&IoChoice::io_uring(), u64::MAX), None, "explicit");
    }

    #[test]
    fn files_stay_cached_if_they_are_local_and_fit() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(IoChoice::stays_cached(here, || 1), !is_on_network(here));
        assert!(!IoChoice::stays_cached(here, || u64::MAX));
        assert!(fits_in_cache(10, Some(20)) && !fits_in_cache(11, Some(20)));
        assert!(!fits_in_cache(0, None), "the memory is unknown");
    }

    #[test]
    fn files_in_memory_are_read_with_pread() {
        let memory = Path::new("/dev/shm");
        if is_of(&IN_MEMORY, memory) {
            assert_eq!(IoChoice::choose(memory).kind, Io::Pread);
        }
    }
}
