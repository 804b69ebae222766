//! The file of a piece: its layout, and those that stay open.
//!
//! A file has checksums, and then the bytes of the object. Each line of a piece has a checksum of
//! its own, so that a small read checks what it takes and no more. Files stay open, so that such a
//! read takes one system call.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tensilo::source::{PositionedFile, Source};

/// The bytes of a piece; the last one of an object may have fewer.
pub(super) const ENTRY_BYTES: u64 = 1 << 20;
/// The bytes of a line, which has a checksum of its own: about a block of the format.
pub(super) const LINE_BYTES: u64 = 8 << 10;
/// A piece begins with the checksums of its lines, 4 bytes each, and these are as many as a whole
/// piece has.
pub(super) const CHECKSUM_BYTES: u64 = 4 * ENTRY_BYTES / LINE_BYTES;

/// The pieces that are open at most.
const MAX_OPEN_ENTRIES: usize = 256;
/// The time of a piece's last use is exact to this.
const USE_TIME_PRECISION: Duration = Duration::from_secs(300);

/// The key of a piece: the digest of its object, and its number.
pub(super) type EntryKey = ([u8; 32], u64);

/// A piece that is open.
#[derive(Debug)]
pub(super) struct OpenEntry {
    file: PositionedFile,
    /// The checksums of its lines.
    pub checksums: Vec<u8>,
}

impl OpenEntry {
    /// Opens a piece with so many bytes; `None` if it is not here, or not whole. Notes its use,
    /// unless that was just now.
    pub(super) fn open(path: &Path, bytes: u64) -> Option<Self> {
        let mut file = File::open(path).ok()?;
        let metadata = file.metadata().ok().filter(|metadata| metadata.len() == CHECKSUM_BYTES + bytes)?;
        let now = SystemTime::now();
        let used = metadata.modified().ok().and_then(|used| now.duration_since(used).ok());
        if used.is_some_and(|since| since > USE_TIME_PRECISION) {
            let _ = file.set_modified(now); // it may be of another user
        }
        let mut checksums = vec![0; usize::try_from(CHECKSUM_BYTES).ok()?];
        file.read_exact(&mut checksums).ok()?;
        Some(Self { file: PositionedFile::from_file(file).ok()?, checksums })
    }

    /// Fills `out` with the bytes of the piece from `offset` on.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(CHECKSUM_BYTES + offset, out)
    }
}

/// The pieces that are open, of which the least recently used makes room for others.
#[derive(Debug, Default)]
pub(super) struct OpenEntries(Mutex<OpenFiles>);

#[derive(Debug, Default)]
struct OpenFiles {
    entries: HashMap<EntryKey, (Arc<OpenEntry>, u64)>,
    clock: u64,
}

impl OpenEntries {
    /// Returns a piece that is open, or opens it.
    pub(super) fn get(&self, key: EntryKey, open: impl FnOnce() -> Option<OpenEntry>) -> Option<Arc<OpenEntry>> {
        if let Some(entry) = self.with_lock(|opened| opened.get(&key)) {
            return Some(entry);
        }
        let entry = Arc::new(open()?);
        self.with_lock(|opened| opened.insert(key, entry.clone()));
        Some(entry)
    }

    /// Closes a piece.
    pub(super) fn close(&self, key: &EntryKey) {
        self.with_lock(|opened| opened.entries.remove(key));
    }

    /// Closes the pieces of an object, given its digest.
    pub(super) fn close_object(&self, digest: &[u8; 32]) {
        self.with_lock(|opened| opened.entries.retain(|(object, _), _| object != digest));
    }

    fn with_lock<T>(&self, update: impl FnOnce(&mut OpenFiles) -> T) -> T {
        // a thread that panicked has left whole entries
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
