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
pub(super) const PIECE_BYTES: u64 = 1 << 20;
/// The bytes of a line, which has a checksum of its own: about a block of the format.
pub(super) const LINE_BYTES: u64 = 8 << 10;
/// A piece begins with the checksums of its lines, 4 bytes each, and these are as many as a whole
/// piece has.
pub(super) const SUMS_BYTES: u64 = 4 * PIECE_BYTES / LINE_BYTES;

/// The pieces that are open at most.
const MOST: usize = 256;
/// The time of a piece's last use is exact to this.
const USE_EXACT_TO: Duration = Duration::from_secs(300);

/// The key of a piece: the digest of its object, and its number.
pub(super) type Key = ([u8; 32], u64);

/// A piece that is open.
#[derive(Debug)]
pub(super) struct OpenPiece {
    file: PositionedFile,
    /// The checksums of its lines.
    pub sums: Vec<u8>,
}

impl OpenPiece {
    /// Opens a piece with so many bytes; `None` if it is not here, or not whole. Notes its use,
    /// unless that was just now.
    pub(super) fn open(path: &Path, bytes: u64) -> Option<Self> {
        let mut file = File::open(path).ok()?;
        let facts = file.metadata().ok().filter(|facts| facts.len() == SUMS_BYTES + bytes)?;
        let now = SystemTime::now();
        let used = facts.modified().ok().and_then(|used| now.duration_since(used).ok());
        if used.is_some_and(|since| since > USE_EXACT_TO) {
            let _ = file.set_modified(now); // it may be of another user
        }
        let mut sums = vec![0; usize::try_from(SUMS_BYTES).ok()?];
        file.read_exact(&mut sums).ok()?;
        Some(Self { file: PositionedFile::from_file(file).ok()?, sums })
    }

    /// Fills `out` with the bytes of the piece from `offset` on.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(SUMS_BYTES + offset, out)
    }
}

/// The pieces that are open, of which the least recently used makes room for others.
#[derive(Debug, Default)]
pub(super) struct OpenPieces(Mutex<Opened>);

#[derive(Debug, Default)]
struct Opened {
    pieces: HashMap<Key, (Arc<OpenPiece>, u64)>,
    clock: u64,
}

impl OpenPieces {
    /// Returns a piece that is open, or opens it.
    pub(super) fn get(&self, key: Key, open: impl FnOnce() -> Option<OpenPiece>) -> Option<Arc<OpenPiece>> {
        if let Some(piece) = self.locked(|opened| opened.get(&key)) {
            return Some(piece);
        }
        let piece = Arc::new(open()?);
        self.locked(|opened| opened.insert(key, piece.clone()));
        Some(piece)
    }

    /// Closes a piece.
    pub(super) fn close(&self, key: &Key) {
        self.locked(|opened| opened.pieces.remove(key));
    }

    /// Closes the pieces of an object, given its digest.
    pub(super) fn close_object(&self, digest: &[u8; 32]) {
        self.locked(|opened| opened.pieces.retain(|(object, _), _| object != digest));
    }

    fn locked<T>(&self, act: impl FnOnce(&mut Opened) -> T) -> T {
        // a thread that panicked has left whole entries
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Opened {
    fn get(&mut self, key: &Key) -> Option<Arc<OpenPiece>> {
        self.clock += 1;
        let (piece, used) = self.pieces.get_mut(key)?;
        *used = self.clock;
        Some(piece.clone())
    }

    fn insert(&mut self, key: Key, piece: Arc<OpenPiece>) {
        self.make_room();
        self.pieces.insert(key, (piece, self.clock));
    }

    fn make_room(&mut self) {
        while self.pieces.len() >= MOST {
            let oldest = self.pieces.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key);
            let Some(oldest) = oldest else { return };
            self.pieces.remove(&oldest);
        }
    }
}
