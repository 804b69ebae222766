//! The entries of one version of an object, and reads through them.
//!
//! If all entries of a requested range are cached, a read returns their bytes. If some are missing,
//! the read takes a file lock for each entry of the range, fetches the entries that are still
//! missing, and writes them. So only one thread of one process fetches an entry, while the others
//! wait and then read it from disk. Locks are taken in ascending order, so no two readers wait for
//! each other. A lock is released when its process ends.
//!
//! If the folder cannot be written, or an entry turns out to be damaged or evicted, the bytes are
//! requested from the store as if there were no cache.

use super::entry_file::{CHECKSUM_BYTES, ENTRY_BYTES, LINE_BYTES, OpenEntry};
use super::handle::Cache;
use crate::request::{self, ObjectVersion};
use crate::runtime::{blocking, threads};
use bytes::Bytes;
use object_store::ObjectStore;
use object_store::path::Path as Key;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The entries of one version of an object.
#[derive(Clone, Debug)]
pub(crate) struct CachedObject {
    cache: Cache,
    folder: PathBuf,
    /// Included in each checksum, so that an entry cannot be mistaken for an entry of another
    /// object.
    digest: [u8; 32],
    byte_count: u64,
}

impl CachedObject {
    /// Returns the entries of an object in the store `root`. Returns `None` if the store reports
    /// nothing that distinguishes versions of the object.
    pub(crate) fn new(cache: &Cache, root: &str, key: &Key, pinned: &ObjectVersion) -> Option<Self> {
        let version = pinned.version()?;
        let mut hasher = Sha256::new();
        for text in [root, key.as_ref(), &version] {
            hasher.update((text.len() as u64).to_le_bytes()); // exact: usize has at most 64 bits
            hasher.update(text);
        }
        let digest: [u8; 32] = hasher.finalize().into();
        let mut name = String::new();
        // writing to a string cannot fail
        digest.iter().for_each(|byte| write!(name, "{byte:02x}").unwrap_or_default());
        let folder = cache.layout().join(name.get(..2).unwrap_or_default()).join(&name);
        Some(Self { cache: cache.clone(), folder, digest, byte_count: pinned.byte_count })
    }

    /// Returns the indices of the entries that contain a range.
    fn indices(&self, range: &Range<u64>) -> Range<u64> {
        range.start / ENTRY_BYTES..range.end.div_ceil(ENTRY_BYTES)
    }

    /// Returns the range of the object that the entries with these indices cover.
    fn byte_range(&self, indices: &Range<u64>) -> Range<u64> {
        let at = |index: u64| index.saturating_mul(ENTRY_BYTES).min(self.byte_count);
        at(indices.start)..at(indices.end)
    }

    fn path(&self, index: u64) -> PathBuf {
        self.folder.join(index.to_string())
    }

    /// Returns a range of the object, if all of it is cached and valid.
    pub(crate) fn read(&self, range: &Range<u64>) -> Option<Bytes> {
        let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        let mut all = Vec::new();
        for index in self.indices(range) {
            let entry = self.byte_range(&(index..index + 1));
            let found = self.read_entry(index, &entry, &(range.start.max(entry.start)..range.end.min(entry.end)))?;
            if found.len() == length {
                return Some(found);
            }
            all.try_reserve_exact(length - all.len()).ok()?;
            all.extend_from_slice(&found);
        }
        Some(all.into())
    }

    /// Returns the bytes of `segment`, a range within an entry, if all lines that it touches are
    /// valid. Otherwise, removes the entry.
    fn read_entry(&self, index: u64, entry: &Range<u64>, segment: &Range<u64>) -> Option<Bytes> {
        let opened = self
            .cache
            .state()
            .opened
            .get((self.digest, index), || OpenEntry::open(&self.path(index), entry.end - entry.start))?;
        let first = (segment.start - entry.start) / LINE_BYTES;
        let start = entry.start + first * LINE_BYTES;
        let end = segment.end.next_multiple_of(LINE_BYTES).min(entry.end);
        let mut lines = vec![0; usize::try_from(end - start).ok()?];
        let line_bytes = usize::try_from(LINE_BYTES).ok()?;
        let checksums = opened.checksums.as_chunks::<4>().0.iter().skip(usize::try_from(first).ok()?);
        let is_valid = opened.read(start - entry.start, &mut lines).is_ok()
            && lines
                .chunks(line_bytes)
                .zip((start..).step_by(line_bytes))
                .zip(checksums)
                .all(|((line, offset), checksum)| self.checksum(offset, line) == u32::from_le_bytes(*checksum));
        if !is_valid {
            self.cache.state().opened.close(&(self.digest, index));
            let _ = fs::remove_file(self.path(index)); // so that it is fetched again
            return None;
        }
        let at = |offset: u64| usize::try_from(offset - start).unwrap_or(usize::MAX).min(lines.len());
        let (from, to) = (at(segment.start), at(segment.end));
        Some(Bytes::from(lines).slice(from..to))
    }

    /// Returns the checksum of a line.
    fn checksum(&self, offset: u64, line: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.digest);
        hasher.update(&offset.to_le_bytes());
        hasher.update(line);
        hasher.finalize()
    }

    /// Returns whether there is a file of the right length for an entry.
    fn has(&self, index: u64) -> bool {
        let entry = self.byte_range(&(index..index + 1));
        fs::metadata(self.path(index))
            .is_ok_and(|metadata| metadata.len() == CHECKSUM_BYTES + (entry.end - entry.start))
    }

    /// Returns whether all entries of a range seem to be cached. Does not check their content.
    pub(crate) fn contains(&self, range: &Range<u64>) -> bool {
        self.indices(range).all(|index| self.has(index))
    }

    /// Locks entries for fetching them, in ascending order, so that no two readers wait for each
    /// other.
    fn fetch_locks(&self, indices: Range<u64>) -> io::Result<Vec<FetchLock>> {
        fs::create_dir_all(&self.folder)?;
        indices.filter_map(|index| FetchLock::acquire(&self.path(index)).transpose()).collect()
    }

    /// Writes consecutive entries, starting with index `first`. Stops if there is no room or an
    /// error occurs.
    fn write(&self, first: u64, bytes: &[u8]) {
        let entry_bytes = usize::try_from(ENTRY_BYTES).unwrap_or(usize::MAX);
        for (entry, index) in bytes.chunks(entry_bytes).zip(first..) {
            let length = CHECKSUM_BYTES + entry.len() as u64; // exact: usize has at most 64 bits
            if !self.cache.make_room(length) {
                return;
            }
            if let Err(error) = self.write_entry(index, entry) {
                self.cache.record_failure(&error);
                return;
            }
        }
    }

    /// Writes an entry to a temporary file and renames it, so that it appears only when it is
    /// complete.
    fn write_entry(&self, index: u64, bytes: &[u8]) -> io::Result<()> {
        let line_bytes = usize::try_from(LINE_BYTES).unwrap_or(usize::MAX);
        let offsets = (index * ENTRY_BYTES..).step_by(line_bytes);
        let mut checksums: Vec<u8> = bytes
            .chunks(line_bytes)
            .zip(offsets)
            .flat_map(|(line, at)| self.checksum(at, line).to_le_bytes())
            .collect();
        checksums.resize(CHECKSUM_BYTES as usize, 0); // a small constant
        fs::create_dir_all(&self.folder)?;
        let mut file = tempfile::Builder::new().prefix("new-").tempfile_in(&self.folder)?;
        file.write_all(&checksums)?;
        file.write_all(bytes)?;
        file.persist(self.path(index)).map(drop).map_err(|error| error.error)
    }

    /// Removes all entries of the object.
    pub(crate) fn invalidate(&self) {
        self.cache.state().opened.close_object(&self.digest);
        let _ = fs::remove_dir_all(&self.folder); // remaining entries are checked again when they are read
    }
}

/// Reads a range of an object from the cache, if the whole range is cached. Otherwise, fetches all
/// missing entries of the range and caches them.
pub(crate) async fn read(
    store: Arc<dyn ObjectStore>,
    key: Key,
    pinned: ObjectVersion,
    cached: Option<CachedObject>,
    range: Range<u64>,
) -> io::Result<Bytes> {
    let Some(cached) = cached else { return request::read(store, key, pinned, range).await };
    let (object, requested) = (cached.clone(), range.clone());
    if let Some(found) = blocking(move || object.read(&requested)).await? {
        return Ok(found);
    }
    // waiting for locks occupies a blocking thread
    let _permit = threads()?.fills.acquire().await;
    let indices = cached.indices(&range);
    let (object, requested) = (cached.clone(), indices.clone());
    let Ok(fetch_locks) = blocking(move || object.fetch_locks(requested)).await? else {
        return request::read(store, key, pinned, range).await; // the folder is not writable
    };
    let mut segments = Vec::new();
    for missing_range in find_missing(&cached, indices.clone()) {
        let bytes =
            request::read(store.clone(), key.clone(), pinned.clone(), cached.byte_range(&missing_range)).await?;
        segments.push((cached.byte_range(&missing_range), bytes.clone()));
        let object = cached.clone();
        blocking(move || object.write(missing_range.start, &bytes)).await?;
    }
    drop(fetch_locks);
    if let Some(found) = segments.iter().find_map(|(bytes, segment)| slice(bytes, segment, &range)) {
        return Ok(found);
    }
    let (object, requested) = (cached.clone(), range.clone());
    match blocking(move || assemble(&object, &segments, &requested)).await? {
        Some(found) => Ok(found),
        // a cached entry was damaged, or has been evicted in the meantime
        None => request::read(store, key, pinned, range).await,
    }
}

/// Returns the ranges of consecutive entries that are missing.
fn find_missing(cached: &CachedObject, indices: Range<u64>) -> Vec<Range<u64>> {
    let mut missing_ranges: Vec<Range<u64>> = Vec::new();
    for index in indices.filter(|&index| !cached.has(index)) {
        match missing_ranges.last_mut() {
            Some(last) if last.end == index => last.end += 1,
            _ => missing_ranges.push(index..index + 1),
        }
    }
    missing_ranges
}

/// Returns the bytes of `range` from a fetched segment, which covers the range `bytes` of the
/// object. Returns `None` if the segment does not contain `range`.
fn slice(bytes: &Range<u64>, segment: &Bytes, range: &Range<u64>) -> Option<Bytes> {
    if range.start < bytes.start || range.end > bytes.end {
        return None;
    }
    let at = |offset: u64| usize::try_from(offset - bytes.start).ok();
    Some(segment.slice(at(range.start)?..at(range.end)?))
}

/// Assembles a range of the object from fetched segments and from entries that were cached before.
/// Returns `None` if one of these entries cannot be read.
fn assemble(cached: &CachedObject, segments: &[(Range<u64>, Bytes)], range: &Range<u64>) -> Option<Bytes> {
    let mut all = Vec::new();
    all.try_reserve_exact(usize::try_from(range.end - range.start).ok()?).ok()?;
    for index in cached.indices(range) {
        let entry = cached.byte_range(&(index..index + 1));
        let segment = entry.start.max(range.start)..entry.end.min(range.end);
        let fetched = segments.iter().find_map(|(bytes, found)| slice(bytes, found, &segment));
        all.extend_from_slice(&fetched.or_else(|| cached.read(&segment))?);
    }
    Some(all.into())
}

/// The extension of lock files.
const LOCK_SUFFIX: &str = "turn";
/// The time after which a reader stops waiting and fetches the entry itself. If the process that
/// holds a lock is killed, a process that it forked may still hold the lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// The minimum and maximum time between attempts to take a lock.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(1);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A lock for fetching an entry. It is released when it is dropped, or when its process ends for
/// any reason.
#[derive(Debug)]
struct FetchLock {
    path: PathBuf,
    lock_file: File,
}

impl FetchLock {
    /// Waits for the lock of the entry with this path. Returns `None` on a timeout.
    fn acquire(entry: &Path) -> io::Result<Option<Self>> {
        let path = entry.with_extension(LOCK_SUFFIX);
        let file = File::options().create(true).truncate(false).write(true).open(&path)?;
        let (started, mut interval) = (Instant::now(), MIN_POLL_INTERVAL);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self { path, lock_file: file })),
                Err(TryLockError::WouldBlock) if started.elapsed() > LOCK_TIMEOUT => return Ok(None),
                Err(TryLockError::WouldBlock) => thread::sleep(interval),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            interval = (interval * 2).min(MAX_POLL_INTERVAL);
        }
    }
}

impl Drop for FetchLock {
    /// Removes the lock file, and unlocks it. The next waiting reader gets the lock. Later readers
    /// create a new file. All of them look for the entry again before they fetch it.
    ///
    /// Closing the file is not enough, because a child process that was forked in the meantime also
    /// holds the lock.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // if this fails, a later eviction removes the file
        let _ = self.lock_file.unlock(); // if this fails, waiting readers time out
    }
}
