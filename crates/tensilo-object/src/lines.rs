//! The unit in which small structures are read.

use std::ops::Range;

/// Small structures are read in aligned lines of this length, and kept: what is read next is mostly
/// near by.
pub(crate) const LINE_BYTES: u64 = 64 << 10;

/// Returns the lines that a range is in, of an object of this length.
pub(crate) fn widened(range: &Range<u64>, byte_count: u64) -> Range<u64> {
    let end = range.end.checked_next_multiple_of(LINE_BYTES).unwrap_or(u64::MAX);
    range.start / LINE_BYTES * LINE_BYTES..end.min(byte_count)
}
