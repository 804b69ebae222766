//! The lists of a nested column that are not yet in a chunk.

use super::pending_items::{append_bits, count_at};
use crate::batch::{ColumnBatch, ListBatch};
use crate::format::content::all_present;
use crate::format::schema::Layout;
use crate::limits;
use std::mem;
use std::ops::Range;

/// The lists of all levels of one column that are not yet in a chunk; none if it is not nested.
pub(super) struct PendingLists {
    levels: Vec<PendingLevel>,
}

/// The lists of one level.
struct PendingLevel {
    may_be_null: bool,
    /// `ends[k]` of the specification.
    ends: Vec<u32>,
    validity: Vec<u8>,
    null_count: usize,
}

/// A position in a batch: the number of entries of each level before it, and of counts. Of a column
/// without levels the items are level 0.
#[derive(Clone, Copy)]
pub(super) struct BatchPosition {
    entries: [usize; limits::LEVELS + 1],
    pub(super) count: usize,
}

impl BatchPosition {
    pub(super) fn start() -> Self {
        Self { entries: [0; limits::LEVELS + 1], count: 0 }
    }

    /// Returns the number of entries of a level before this position.
    pub(super) fn entries(&self, level: usize) -> usize {
        self.entries.get(level).copied().unwrap_or(0) // a level of the column
    }

    /// Returns the position after `samples` more samples of a column without levels and with a
    /// fixed shape.
    pub(super) fn after_fixed(mut self, samples: usize) -> Self {
        self.entries[0] += samples;
        self.count += samples;
        self
    }

    /// Returns the position after the next sample of a checked batch.
    pub(super) fn next(mut self, batch: &ColumnBatch, layout: &Layout) -> Self {
        let mut entries = self.entries[0]..self.entries[0] + 1;
        for level in 0..layout.levels {
            let Some(lists) = batch.lists(level) else { break }; // never: checked before
            let lengths = entries.clone().filter_map(|i| lists.length(i));
            let members = lengths.map(|length| usize::try_from(length).unwrap_or(0)).sum::<usize>();
            self.set(level, entries.end);
            let start = self.entries(level + 1);
            entries = start..start + members; // at most the items of the batch
        }
        self.set(layout.levels, entries.end);
        // checked before
        self.count += entries.map(|i| count_at(batch, layout.varying, i)).sum::<usize>();
        self
    }

    fn set(&mut self, level: usize, end: usize) {
        if let Some(entries) = self.entries.get_mut(level) {
            *entries = end;
        }
    }
}

impl PendingLists {
    pub(super) fn new(layout: &Layout) -> Self {
        let levels = (0..layout.levels).map(|level| PendingLevel {
            may_be_null: layout.may_be_null(level),
            ends: Vec::new(),
            validity: Vec::new(),
            null_count: 0,
        });
        Self { levels: levels.collect() }
    }

    /// Adds the lists of a checked batch between two positions.
    pub(super) fn take(&mut self, batch: &ColumnBatch, from: &BatchPosition, to: &BatchPosition) {
        for (number, level) in self.levels.iter_mut().enumerate() {
            let Some(lists) = batch.lists(number) else { break }; // never: checked before
            level.take(&lists, from.entries(number)..to.entries(number));
        }
    }

    /// Returns the number of lists of all levels.
    pub(super) fn count(&self) -> usize {
        self.levels.iter().map(|level| level.ends.len()).sum()
    }

    /// Returns the number of null samples.
    pub(super) fn null_samples(&self) -> usize {
        self.levels.first().map_or(0, |level| level.null_count)
    }

    pub(super) fn has_nulls(&self) -> bool {
        self.levels.iter().any(|level| level.null_count > 0)
    }

    /// Appends the bitmaps and the ends of all levels to parts of a chunk, and forgets the lists.
    /// The chunk has a validity if `has_nulls`.
    pub(super) fn cut(&mut self, has_nulls: bool, validity: &mut Vec<u8>, shape: &mut Vec<u8>) {
        for level in &mut self.levels {
            match (has_nulls, level.may_be_null) {
                (true, true) => validity.extend_from_slice(&level.validity),
                (true, false) => validity.extend(all_present(level.ends.len())),
                (false, _) => {}
            }
            level.validity.clear();
            shape.extend(mem::take(&mut level.ends).iter().flat_map(|end| end.to_le_bytes()));
            level.null_count = 0;
        }
    }
}

impl PendingLevel {
    fn take(&mut self, lists: &ListBatch, from: Range<usize>) {
        if self.may_be_null {
            self.null_count += append_bits(&mut self.validity, self.ends.len(), &from, |i| lists.is_null(i));
        }
        let mut end = self.ends.last().copied().unwrap_or(0);
        for length in from.filter_map(|i| lists.length(i)) {
            end = end.saturating_add(length); // the end of a chunk was chosen by the sum
            self.ends.push(end);
        }
    }
}
