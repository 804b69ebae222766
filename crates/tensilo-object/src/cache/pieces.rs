//! The pieces of one version of an object.

use super::handle::Cache;
use super::layout::{LINE_BYTES, PIECE_BYTES, SUMS_BYTES};
use super::open_pieces::OpenPiece;
use super::turn::Turn;
use crate::request::Pinned;
use bytes::Bytes;
use object_store::path::Path as Key;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;

/// The pieces of one version of an object.
#[derive(Clone, Debug)]
pub(crate) struct CachedObject {
    cache: Cache,
    folder: PathBuf,
    /// The first bytes of all checksums, so that no piece passes for another.
    digest: [u8; 32],
    byte_count: u64,
}

impl CachedObject {
    /// Returns the pieces of an object in the store `root`; `None` if nothing tells its versions
    /// apart.
    pub(crate) fn new(cache: &Cache, root: &str, key: &Key, pinned: &Pinned) -> Option<Self> {
        let version = pinned.version()?;
        let mut hasher = Sha256::new();
        for text in [root, key.as_ref(), &version] {
            hasher.update((text.len() as u64).to_le_bytes()); // exact: usize has at most 64 bits
            hasher.update(text);
        }
        let digest: [u8; 32] = hasher.finalize().into();
        let mut name = String::new();
        // never fails
        digest.iter().for_each(|byte| write!(name, "{byte:02x}").unwrap_or_default());
        let folder = cache.layout().join(name.get(..2).unwrap_or_default()).join(&name);
        Some(Self { cache: cache.clone(), folder, digest, byte_count: pinned.byte_count })
    }

    /// Returns the numbers of the pieces that a range is in.
    pub(super) fn numbers(&self, range: &Range<u64>) -> Range<u64> {
        range.start / PIECE_BYTES..range.end.div_ceil(PIECE_BYTES)
    }

    /// Returns the bytes of the object that some pieces have.
    pub(super) fn bytes_of(&self, numbers: &Range<u64>) -> Range<u64> {
        let at = |number: u64| number.saturating_mul(PIECE_BYTES).min(self.byte_count);
        at(numbers.start)..at(numbers.end)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(number.to_string())
    }

    /// Returns a range of the object, if all of it is here and right.
    pub(crate) fn read(&self, range: &Range<u64>) -> Option<Bytes> {
        let length = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        let mut all = Vec::new();
        for number in self.numbers(range) {
            let piece = self.bytes_of(&(number..number + 1));
            let found = self.read_piece(number, &piece, &(range.start.max(piece.start)..range.end.min(piece.end)))?;
            if found.len() == length {
                return Some(found);
            }
            all.try_reserve_exact(length - all.len()).ok()?;
            all.extend_from_slice(&found);
        }
        Some(all.into())
    }

    /// Returns a part of a piece.
    fn read_piece(&self, number: u64, piece: &Range<u64>, part: &Range<u64>) -> Option<Bytes> {
        let opened = self
            .cache
            .state()
            .opened
            .get((self.digest, number), || OpenPiece::open(&self.path(number), piece.end - piece.start))?;
        let first = (part.start - piece.start) / LINE_BYTES;
        let start = piece.start + first * LINE_BYTES;
        let end = part.end.next_multiple_of(LINE_BYTES).min(piece.end);
        let mut lines = vec![0; usize::try_from(end - start).ok()?];
        let line_bytes = usize::try_from(LINE_BYTES).ok()?;
        let sums = opened.sums.as_chunks::<4>().0.iter().skip(usize::try_from(first).ok()?);
        let is_right = opened.read(start - piece.start, &mut lines).is_ok()
            && lines
                .chunks(line_bytes)
                .zip((start..).step_by(line_bytes))
                .zip(sums)
                .all(|((line, offset), sum)| self.sum(offset, line) == u32::from_le_bytes(*sum));
        if !is_right {
            self.cache.state().opened.close(&(self.digest, number));
            let _ = fs::remove_file(self.path(number)); // it is fetched again
            return None;
        }
        let at = |offset: u64| usize::try_from(offset - start).unwrap_or(usize::MAX).min(lines.len());
        let (from, to) = (at(part.start), at(part.end));
        Some(Bytes::from(lines).slice(from..to))
    }

    /// Returns the checksum of a line.
    fn sum(&self, offset: u64, line: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.digest);
        hasher.update(&offset.to_le_bytes());
        hasher.update(line);
        hasher.finalize()
    }

    /// Returns whether a piece is here, unless it turns out to be wrong.
    pub(super) fn has(&self, number: u64) -> bool {
        let piece = self.bytes_of(&(number..number + 1));
        fs::metadata(self.path(number)).is_ok_and(|facts| facts.len() == SUMS_BYTES + (piece.end - piece.start))
    }

    /// Returns whether all pieces that a range is in are here, as far as one can tell at a glance.
    pub(crate) fn has_all(&self, range: &Range<u64>) -> bool {
        self.numbers(range).all(|number| self.has(number))
    }

    /// Waits for the turns to fetch pieces, in ascending order: so nobody waits for someone who
    /// waits for him.
    pub(super) fn turns(&self, numbers: Range<u64>) -> io::Result<Vec<Turn>> {
        fs::create_dir_all(&self.folder)?;
        numbers.filter_map(|number| Turn::wait(&self.path(number)).transpose()).collect()
    }

    /// Writes pieces whose bytes are there, the first of them `first`. Nothing is written while the
    /// disk has no room.
    pub(super) fn write(&self, first: u64, bytes: &[u8]) {
        let piece_bytes = usize::try_from(PIECE_BYTES).unwrap_or(usize::MAX);
        for (piece, number) in bytes.chunks(piece_bytes).zip(first..) {
            let length = SUMS_BYTES + piece.len() as u64; // exact: usize has at most 64 bits
            if !self.cache.make_room(length) {
                return;
            }
            if let Err(error) = self.write_piece(number, piece) {
                self.cache.has_failed(&error);
                return;
            }
        }
    }

    /// Writes a piece, which appears when it is complete.
    fn write_piece(&self, number: u64, bytes: &[u8]) -> io::Result<()> {
        let line_bytes = usize::try_from(LINE_BYTES).unwrap_or(usize::MAX);
        let offsets = (number * PIECE_BYTES..).step_by(line_bytes);
        let mut sums: Vec<u8> =
            bytes.chunks(line_bytes).zip(offsets).flat_map(|(line, at)| self.sum(at, line).to_le_bytes()).collect();
        sums.resize(SUMS_BYTES as usize, 0); // a small constant
        fs::create_dir_all(&self.folder)?;
        let mut file = tempfile::Builder::new().prefix("new-").tempfile_in(&self.folder)?;
        file.write_all(&sums)?;
        file.write_all(bytes)?;
        file.persist(self.path(number)).map(drop).map_err(|error| error.error)
    }

    /// Forgets all pieces of the object.
    pub(crate) fn forget(&self) {
        self.cache.state().opened.close_object(&self.digest);
        let _ = fs::remove_dir_all(&self.folder); // what is left is checked again when it is read
    }
}
