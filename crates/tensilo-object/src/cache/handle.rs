//! The handle of a disk cache, and the environment variables that configure the default cache.
//!
//! A [`Cache`] is a folder and a size limit. In each process, it also has an estimate of the size
//! on disk, and a table of open entries. After a `fork`, the child creates its own.

use super::entry_file::OpenEntries;
use super::usage::{self, CacheStats, DiskUsage};
use crate::runtime::PerProcess;
use std::convert::Infallible;
use std::env::{self, VarError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::parse_byte_count;

/// A folder of bounded size that caches object data.
///
/// Objects are cached in entries of 256 KiB, by address and ETag, so a replaced object gets new
/// entries. An entry appears only when it is complete. Each entry has checksums; if one does not
/// match, the entry is fetched again. The least recently used entries are evicted. Any number of
/// processes can share a folder, and only one of them fetches an entry. If the disk is full, or the
/// folder is not writable, reads continue without the cache.
///
/// Cloning only increments a reference count.
#[derive(Clone, Debug)]
pub struct Cache(Arc<CacheInner>);

#[derive(Debug)]
struct CacheInner {
    folder: PathBuf,
    max_bytes: u64,
    state: PerProcess<CacheState>,
}

/// The state of the cache in one process.
#[derive(Debug, Default)]
pub(super) struct CacheState {
    usage: DiskUsage,
    pub opened: OpenEntries,
}

/// The subfolder for this version of the layout. A later version will use a different name. Nothing
/// outside the subfolder is ever removed.
const LAYOUT: &str = "entries-1";

impl Cache {
    /// Returns the cache in a folder, with a maximum size of about `max_bytes` bytes. Does not
    /// access the disk.
    pub fn new(folder: impl Into<PathBuf>, max_bytes: u64) -> Self {
        Self(Arc::new(CacheInner { folder: folder.into(), max_bytes, state: PerProcess::new() }))
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// Returns the maximum size of the cache in bytes.
    pub fn max_bytes(&self) -> u64 {
        self.0.max_bytes
    }

    /// Returns statistics of the current content. Cost: a few microseconds for each entry.
    pub fn stats(&self) -> io::Result<CacheStats> {
        usage::stats(&self.layout())
    }

    /// Removes all entries. Returns the statistics from before the removal. Processes that use the
    /// cache continue to work, and fetch entries again.
    pub fn clear(&self) -> io::Result<CacheStats> {
        usage::clear(&self.layout())
    }

    pub(super) fn state(&self) -> &CacheState {
        match self.0.state.get_or_try_make(|| Ok::<_, Infallible>(CacheState::default())) {
            Ok(state) => state,
            Err(never) => match never {},
        }
    }

    pub(super) fn layout(&self) -> PathBuf {
        self.0.folder.join(LAYOUT)
    }

    /// Makes room for an entry of `bytes` bytes. Returns whether there is room.
    pub(super) fn make_room(&self, bytes: u64) -> bool {
        self.state().usage.reserve(&self.layout(), self.0.max_bytes, bytes)
    }

    /// Notes that an entry could not be written.
    pub(super) fn record_failure(&self, error: &io::Error) {
        self.state().usage.record_failure(&self.layout(), error);
    }
}

/// The variable that names the folder of the cache.
const FOLDER: &str = "TENSILO_CACHE";
/// The variable that sets the maximum size of the cache.
const BYTES: &str = "TENSILO_CACHE_BYTES";
/// The default maximum size in bytes.
const DEFAULT_BYTES: u64 = 16 << 30;

impl Cache {
    /// Returns the cache in the folder that `TENSILO_CACHE` names, if this variable is set. The
    /// maximum size of the cache is `TENSILO_CACHE_BYTES`, such as `200GiB`; the default is 16 GiB.
    /// Fails if `TENSILO_CACHE_BYTES` is not a number of bytes.
    pub fn from_environment() -> io::Result<Option<Self>> {
        Self::parse_environment().map_err(|message| io::Error::new(io::ErrorKind::InvalidInput, message))
    }

    /// Returns the cache in a folder, with the maximum size of [`Cache::from_environment`].
    pub fn in_folder(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let max_bytes = max_bytes().map_err(|message| io::Error::new(io::ErrorKind::InvalidInput, message))?;
        Ok(Self::new(folder, max_bytes))
    }

    /// Like [`Cache::from_environment`], with the error as text.
    pub(crate) fn parse_environment() -> Result<Option<Self>, String> {
        let folder = env::var_os(FOLDER).filter(|folder| !folder.is_empty());
        let max_bytes = max_bytes()?;
        Ok(folder.map(|folder| Self::new(folder, max_bytes)))
    }
}

/// Returns the maximum size that the environment sets, or a message that says what is wrong with
/// `TENSILO_CACHE_BYTES`.
fn max_bytes() -> Result<u64, String> {
    match env::var(BYTES) {
        Ok(text) if text.is_empty() => Ok(DEFAULT_BYTES),
        Ok(text) => parse_byte_count(&text)
            .ok_or_else(|| format!("{BYTES}={text:?}: expected a number of bytes, such as 200GiB or 107374182400")),
        Err(VarError::NotPresent) => Ok(DEFAULT_BYTES),
        Err(VarError::NotUnicode(_)) => Err(format!("{BYTES} is not valid UTF-8")),
    }
}
