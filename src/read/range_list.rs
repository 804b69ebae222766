//! Byte ranges that are fetched, coalesced where a gap costs less than another request.

use crate::{Result, memory};
use std::ops::Range;

/// The most bytes of a coalesced range: it stays in the second-level cache until it is decoded.
const COALESCED_BYTES: u64 = 256 << 10;
/// A coalesced range may be this many times longer than the gap that a source rather reads.
const COALESCED_GAPS: u64 = 16;

/// Ranges in ascending order, and which pieces of the file each of them holds.
#[derive(Default)]
pub(super) struct RangeList {
    /// Piece of the file, and the number of the task that needs it; ascending by offset.
    pieces: Vec<(Range<u64>, usize)>,
    ranges: Vec<Range<u64>>,
    /// For each range, the end of its pieces.
    ends: Vec<usize>,
}

impl RangeList {
    /// Fills the list with pieces, which come with the numbers of their tasks. Allocates nothing
    /// once it was as long.
    pub(super) fn fill(&mut self, pieces: impl Iterator<Item = (Range<u64>, usize)>, gap_bytes: u64) -> Result<()> {
        self.pieces.clear();
        self.ranges.clear();
        self.ends.clear();
        for piece in pieces.filter(|(piece, _)| piece.start < piece.end) {
            memory::reserve(&mut self.pieces, 1)?;
            self.pieces.push(piece);
        }
        if !self.pieces.is_sorted_by_key(|(piece, task)| (piece.start, *task)) {
            self.pieces.sort_unstable_by_key(|(piece, task)| (piece.start, *task));
        }
        let most = COALESCED_BYTES.max(gap_bytes.saturating_mul(COALESCED_GAPS));
        for (number, (piece, _)) in self.pieces.iter().enumerate() {
            match (self.ranges.last_mut(), self.ends.last_mut()) {
                (Some(last), Some(end))
                    if piece.start <= last.end.saturating_add(gap_bytes)
                        && piece.end.max(last.end) - last.start <= most =>
                {
                    last.end = last.end.max(piece.end);
                    *end = number + 1;
                }
                _ => {
                    memory::reserve(&mut self.ranges, 1)?;
                    memory::reserve(&mut self.ends, 1)?;
                    self.ranges.push(piece.clone());
                    self.ends.push(number + 1);
                }
            }
        }
        Ok(())
    }

    pub(super) fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// Returns the pieces of range number `range`, and the numbers of their tasks.
    pub(super) fn pieces(&self, range: usize) -> &[(Range<u64>, usize)] {
        let end = self.ends.get(range).copied().unwrap_or(0);
        let start = range.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.pieces.get(start..end).unwrap_or(&[])
    }

    /// Returns the bytes of a piece, out of those of the range that begins at `start`.
    pub(super) fn bytes_of<'a>(start: u64, bytes: &'a [u8], piece: &Range<u64>) -> &'a [u8] {
        let at = |offset: u64| usize::try_from(offset.saturating_sub(start)).unwrap_or(usize::MAX);
        bytes.get(at(piece.start)..at(piece.end)).unwrap_or(&[])
    }
}
