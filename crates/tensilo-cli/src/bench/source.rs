//! The measured file, with a counter of the bytes read and of the requests.

use crate::failure::{Failure, Outcome};
use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::path::Path;
use tensilo::source::{CoalesceConfig, FileIdentity, Source};

thread_local! {
    /// The bytes and requests that this thread has read from files.
    static READ: Cell<FileReads> = const { Cell::new(FileReads { requests: 0, bytes: 0 }) };
}

/// Requests of a file, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileReads {
    pub(super) requests: u64,
    pub(super) bytes: u64,
}

impl FileReads {
    /// Returns what this thread has read from files.
    pub(super) fn of_thread() -> Self {
        READ.get()
    }

    /// Returns what was read since `earlier`.
    pub(super) fn since(self, earlier: Self) -> Self {
        let requests = self.requests.saturating_sub(earlier.requests);
        Self { requests, bytes: self.bytes.saturating_sub(earlier.bytes) }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        let requests = self.requests.saturating_add(other.requests);
        Self { requests, bytes: self.bytes.saturating_add(other.bytes) }
    }
}

/// A source that counts what each thread reads by position. Ranges are read one after the
/// other, as a file reads them.
pub(super) struct Counted<S>(pub(super) S);

impl<S: Source> Source for Counted<S> {
    fn byte_count(&self) -> u64 {
        self.0.byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        // exact: usize has at most 64 bits
        READ.set(READ.get().plus(FileReads { requests: 1, bytes: out.len() as u64 }));
        self.0.read_exact_at(offset, out)
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        self.0.as_bytes()
    }

    fn coalesce(&self) -> CoalesceConfig {
        self.0.coalesce()
    }

    fn prefetch(&self, ranges: &[Range<u64>]) {
        self.0.prefetch(ranges);
    }

    fn identity(&self) -> Option<FileIdentity> {
        self.0.identity()
    }
}

/// Drops the pages of a file from the page cache. Writes dirty pages first, because they would
/// stay.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
pub(super) fn drop_from_cache(path: &Path) -> Outcome {
    use rustix::fs::{Advice, fadvise};
    let drop = || {
        let file = std::fs::File::open(path)?;
        file.sync_data()?;
        fadvise(&file, 0, None, Advice::DontNeed).map_err(io::Error::from)
    };
    drop().map_err(|error| {
        Failure::Usage(format!(
            "{}: --cold: its pages cannot be dropped from the cache: {error}",
            tensilo::error::display_path(path)
        ))
    })
}

/// Fails: this system has no call for it.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
pub(super) fn drop_from_cache(_: &Path) -> Outcome {
    Err(Failure::Usage(
        "--cold: this system cannot drop a file from its cache; it works on Linux, Android and FreeBSD".to_owned(),
    ))
}
