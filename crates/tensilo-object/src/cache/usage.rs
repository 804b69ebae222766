//! The size of a cache on disk, and eviction.
//!
//! The folder is the only source of truth: other processes add and remove entries at any time, and
//! there is no index file that could disagree with the folder. But scanning the folder for each new
//! entry would be slow. So each process keeps an estimate: the size at its last scan plus the bytes
//! that it has added since. It scans again after adding 1/16 of the size limit, or when the
//! estimate reaches the limit. If a scan finds that the cache is too large, it evicts the least
//! recently used entries. It evicts 1/16 of the limit more than necessary, so that the next entries
//! need no scan.
//!
//! If an entry cannot be written, the process writes nothing to the cache for a minute.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The size limit divided by this number is the number of bytes that a process adds between two
/// scans, and the number of bytes that an eviction removes in excess of what is necessary.
const SLACK_DIVISOR: u64 = 16;
/// The time after a failure during which nothing is written.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);
/// A temporary file that is older than this was left behind by a killed process.
const STALE_AFTER: Duration = Duration::from_secs(3600);

/// Statistics of the content of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// The number of objects with entries; each version counts separately.
    pub objects: u64,
    /// The number of entries.
    pub entries: u64,
    /// The size of all entries in bytes.
    pub bytes: u64,
    /// The time at which the least recently used entry was last used, accurate to a few minutes.
    pub oldest_use: Option<SystemTime>,
}

/// A process's estimate of the size of the cache.
#[derive(Debug, Default)]
pub(super) struct DiskUsage(Mutex<UsageEstimate>);

#[derive(Debug, Default)]
struct UsageEstimate {
    /// `bytes` is the size of all entries at the last scan, plus the bytes that this process has
    /// added since. `added` counts only the added bytes.
    bytes: Option<u64>,
    added: u64,
    /// Nothing is written before this time.
    paused_until: Option<Instant>,
}

/// An entry on disk.
struct DiskEntry {
    last_used: SystemTime,
    bytes: u64,
    path: PathBuf,
}

impl DiskUsage {
    /// Makes room for an entry of `bytes` bytes in a cache of at most `max_bytes`. Returns whether
    /// there is room.
    pub(super) fn reserve(&self, layout: &Path, max_bytes: u64, bytes: u64) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.paused_until.is_some_and(|until| Instant::now() < until) || bytes > max_bytes {
            return false;
        }
        let free_bytes = known.bytes.map(|bytes| max_bytes.saturating_sub(bytes));
        if known.added > max_bytes / SLACK_DIVISOR || free_bytes.is_none_or(|free_bytes| free_bytes < bytes) {
            let Ok(left) = remove_oldest(layout, max_bytes.saturating_sub(bytes), max_bytes / SLACK_DIVISOR) else {
                return false;
            };
            (known.bytes, known.added) = (Some(left), 0);
        }
        known.added = known.added.saturating_add(bytes);
        known.bytes = known.bytes.map(|known| known.saturating_add(bytes));
        true
    }

    /// Notes that an entry could not be written. If the disk is full, removes some entries.
    pub(super) fn record_failure(&self, layout: &Path, error: &io::Error) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.paused_until = Some(Instant::now() + PAUSE_AFTER_FAILURE);
        known.bytes = None;
        if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            let bytes = stats(layout).map_or(0, |stats| stats.bytes);
            let _ = remove_oldest(layout, bytes - bytes / SLACK_DIVISOR, 0); // the pause applies even if this fails
        }
    }
}

/// Removes the least recently used entries until at most `max_bytes` bytes are left. If it has to
/// remove any entries, it removes `headroom` bytes more. Returns the remaining number of bytes.
fn remove_oldest(layout: &Path, max_bytes: u64, headroom: u64) -> io::Result<u64> {
    let mut entries = Vec::new();
    for_each_entry(layout, |entry| entries.push(entry))?;
    let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
    if bytes <= max_bytes {
        return Ok(bytes);
    }
    entries.sort_unstable_by_key(|entry| entry.last_used);
    for entry in entries {
        if bytes <= max_bytes.saturating_sub(headroom) {
            break;
        }
        if fs::remove_file(&entry.path).is_ok() {
            bytes = bytes.saturating_sub(entry.bytes);
        }
    }
    remove_empty_folders(layout);
    Ok(bytes)
}

/// Returns statistics of the content of the cache.
pub(super) fn stats(layout: &Path) -> io::Result<CacheStats> {
    let mut stats = CacheStats::default();
    stats.objects = for_each_entry(layout, |entry| {
        stats.entries += 1;
        stats.bytes += entry.bytes;
        stats.oldest_use = Some(stats.oldest_use.map_or(entry.last_used, |last_used| last_used.min(entry.last_used)));
    })?;
    Ok(stats)
}

/// Removes all entries. Returns the statistics from before the removal.
pub(super) fn clear(layout: &Path) -> io::Result<CacheStats> {
    let found = stats(layout)?;
    match fs::remove_dir_all(layout) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(found),
    }
}

/// Calls a function with each entry, and removes stale temporary files. Returns the number of
/// objects that have entries.
fn for_each_entry(layout: &Path, mut visit: impl FnMut(DiskEntry)) -> io::Result<u64> {
    let mut objects = 0;
    for group in dir_entries(layout)? {
        for object in dir_entries(&group.path())? {
            let mut has_entries = false;
            for file in dir_entries(&object.path())? {
                // other processes remove entries concurrently
                let Ok(metadata) = file.metadata() else { continue };
                let last_used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                let name = file.file_name();
                if name.to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
                    has_entries = true;
                    visit(DiskEntry { last_used, bytes: metadata.len(), path: file.path() });
                } else if last_used.elapsed().is_ok_and(|age| age > STALE_AFTER) {
                    let _ = fs::remove_file(file.path());
                }
            }
            objects += u64::from(has_entries);
        }
    }
    Ok(objects)
}

/// Removes the folders of objects without entries.
fn remove_empty_folders(layout: &Path) {
    for group in dir_entries(layout).into_iter().flatten() {
        for object in dir_entries(&group.path()).into_iter().flatten() {
            let _ = fs::remove_dir(object.path()); // fails if not empty
        }
    }
}

/// Returns the directory entries of a folder, or none if the path does not exist or is not a
/// folder.
fn dir_entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    match fs::read_dir(folder) {
        Ok(dir_entries) => Ok(dir_entries.flatten().collect()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
