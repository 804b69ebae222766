//! Byte ranges that are fetched, coalesced where a gap costs less than another request.

use crate::{Result, memory};
use std::ops::Range;

/// The most bytes of a coalesced range: it stays in the second-level cache until it is decoded.
const COALESCED_BYTES: u64 = 256 << 10;
/// A coalesced range may be this many times longer than the gap that the source reads.
const COALESCED_GAPS: u64 = 16;

/// Ranges in ascending order, and which ranges of tasks each of them holds.
#[derive(Default)]
pub(super) struct RangeList {
    /// The range that a task needs, and the number of the task; ascending by offset.
    task_ranges: Vec<(Range<u64>, usize)>,
    ranges: Vec<Range<u64>>,
    /// For each range, the end of its ranges of tasks.
    ends: Vec<usize>,
}

impl RangeList {
    /// Fills the list with the ranges that tasks need, and the numbers of these tasks. Allocates
    /// nothing once it was as long.
    pub(super) fn fill(
        &mut self,
        task_ranges: impl Iterator<Item = (Range<u64>, usize)>,
        gap_bytes: u64,
    ) -> Result<()> {
        self.task_ranges.clear();
        self.ranges.clear();
        self.ends.clear();
        for needed in task_ranges.filter(|(needed, _)| needed.start < needed.end) {
            memory::reserve(&mut self.task_ranges, 1)?;
            self.task_ranges.push(needed);
        }
        if !self.task_ranges.is_sorted_by_key(|(needed, task)| (needed.start, *task)) {
            self.task_ranges.sort_unstable_by_key(|(needed, task)| (needed.start, *task));
        }
        let most = COALESCED_BYTES.max(gap_bytes.saturating_mul(COALESCED_GAPS));
        for (number, (needed, _)) in self.task_ranges.iter().enumerate() {
            match (self.ranges.last_mut(), self.ends.last_mut()) {
                (Some(last), Some(end))
                    if needed.start <= last.end.saturating_add(gap_bytes)
                        && needed.end.max(last.end) - last.start <= most =>
                {
                    last.end = last.end.max(needed.end);
                    *end = number + 1;
                }
                _ => {
                    memory::reserve(&mut self.ranges, 1)?;
                    memory::reserve(&mut self.ends, 1)?;
                    self.ranges.push(needed.clone());
                    self.ends.push(number + 1);
                }
            }
        }
        Ok(())
    }

    pub(super) fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// Returns the ranges of tasks in range number `range`, and the numbers of these tasks.
    pub(super) fn task_ranges(&self, range: usize) -> &[(Range<u64>, usize)] {
        let end = self.ends.get(range).copied().unwrap_or(0);
        let start = range.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.task_ranges.get(start..end).unwrap_or(&[])
    }

    /// Returns the bytes of the range of a task, out of those of the range that begins at `start`.
    pub(super) fn bytes_of<'a>(start: u64, bytes: &'a [u8], needed: &Range<u64>) -> &'a [u8] {
        let at = |offset: u64| usize::try_from(offset.saturating_sub(start)).unwrap_or(usize::MAX);
        bytes.get(at(needed.start)..at(needed.end)).unwrap_or(&[])
    }
}
