//! The file of a cache entry: its layout, and the table of open entries.
//!
//! An entry is a range of an object, divided into *lines* of 8 KiB. Its file starts with one
//! checksum for each line, followed by the bytes of the lines. So a small read checks only the
//! lines that it needs. Files stay open, and their checksums stay in memory, so such a read takes
//! one system call.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tensilo::source::{PositionedFile, Source};

/// The size of an entry in bytes; the last entry of an object may be shorter. Opening a file and
/// reading its index fetches up to three entries. With entries of 1 MiB, they would nearly double
/// what a run of 4 MiB costs if each run is in another file.
pub(super) const ENTRY_BYTES: u64 = 256 << 10;
/// The size of a line in bytes: about the size of a block of the file format. Each line has its own
/// checksum.
pub(super) const LINE_BYTES: u64 = 8 << 10;
/// The size of the checksums at the start of each entry, in bytes: 4 for each line of a full entry,
/// even in a shorter last entry.
pub(super) const CHECKSUM_BYTES: u64 = 4 * ENTRY_BYTES / LINE_BYTES;

/// The maximum number of open entries.
const MAX_OPEN_ENTRIES: usize = 512;
/// The precision of the time at which an entry was last used.
const USE_TIME_PRECISION: Duration = Duration::from_secs(300);

/// The key of an entry: the digest of its object, and its index.
pub(super) type EntryKey = ([u8; 32], u64);

/// An open entry.
#[derive(Debug)]
pub(super) struct OpenEntry {
    file: PositionedFile,
    /// The checksums of the lines of the entry.
    pub checksums: Vec<u8>,
}

impl OpenEntry {
    /// Opens an entry of `bytes` bytes. Returns `None` if it does not exist or has a different
    /// length. Updates the time at which it was last used, unless this time is recent.
    pub(super) fn open(path: &Path, bytes: u64) -> Option<Self> {
        let mut file = File::open(path).ok()?;
        let metadata = file.metadata().ok().filter(|metadata| metadata.len() == CHECKSUM_BYTES + bytes)?;
        let now = SystemTime::now();
        let used = metadata.modified().ok().and_then(|used| now.duration_since(used).ok());
        if used.is_some_and(|since| since > USE_TIME_PRECISION) {
            let _ = file.set_modified(now); // fails if another user owns the file
        }
        let mut checksums = vec![0; usize::try_from(CHECKSUM_BYTES).ok()?];
        file.read_exact(&mut checksums).ok()?;
        Some(Self { file: PositionedFile::from_file(file).ok()?, checksums })
    }

    /// Fills `out` with the bytes of the entry starting at `offset`.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(CHECKSUM_BYTES + offset, out)
    }
}

/// The open entries. The least recently used one is closed to make room.
#[derive(Debug, Default)]
pub(super) struct OpenEntries(Mutex<OpenFiles>);

#[derive(Debug, Default)]
struct OpenFiles {
    entries: HashMap<EntryKey, (Arc<OpenEntry>, u64)>,
    clock: u64,
}

impl OpenEntries {
    /// Returns an open entry, or opens it.
    pub(super) fn get(&self, key: EntryKey, open: impl FnOnce() -> Option<OpenEntry>) -> Option<Arc<OpenEntry>> {
        if let Some(entry) = self.with_lock(|opened| opened.get(&key)) {
            return Some(entry);
        }
        let entry = Arc::new(open()?);
        self.with_lock(|opened| opened.insert(key, entry.clone()));
        Some(entry)
    }

    /// Closes an entry.
    pub(super) fn close(&self, key: &EntryKey) {
        self.with_lock(|opened| opened.entries.remove(key));
    }

    /// Closes the entries of an object, given its digest.
    pub(super) fn close_object(&self, digest: &[u8; 32]) {
        self.with_lock(|opened| opened.entries.retain(|(object, _), _| object != digest));
    }

    fn with_lock<T>(&self, update: impl FnOnce(&mut OpenFiles) -> T) -> T {
        // each entry is replaced in a single step, so a panic cannot leave it half written
        update(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl OpenFiles {
    fn get(&mut self, key: &EntryKey) -> Option<Arc<OpenEntry>> {
        self.clock += 1;
        let (entry, used) = self.entries.get_mut(key)?;
        *used = self.clock;
        Some(entry.clone())
    }

    fn insert(&mut self, key: EntryKey, entry: Arc<OpenEntry>) {
        self.make_room();
        self.entries.insert(key, (entry, self.clock));
    }

    fn make_room(&mut self) {
        while self.entries.len() >= MAX_OPEN_ENTRIES {
            let oldest = self.entries.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key);
            let Some(oldest) = oldest else { return };
            self.entries.remove(&oldest);
        }
    }
}
