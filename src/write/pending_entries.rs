//! The entries of a column that are not yet in a chunk: its items ([`PendingItems`]), and the lists
//! that contain them ([`PendingLists`]).
//!
//! Both copy ranges of a checked batch directly into the form that the parts of a chunk have:
//! validity bitmaps, ends of lists and items, and values. Completing a chunk then only moves
//! buffers. A [`BatchPosition`] is a position between two samples of a batch, on all levels at
//! once. Levels that do not allow nulls have no bitmap.

use crate::batch::{ColumnBatch, ListBatch, pushed_inner_bytes};
use crate::bytes::le;
use crate::element::cast::Caster;
use crate::format::ColumnSchema;
use crate::format::content::{all_present, product_of_extents, push_item_shapes, validity_bytes};
use crate::format::schema::Layout;
use crate::{Result, limits};
use std::mem;
use std::ops::Range;

/// The items of one column that are not yet in a chunk.
pub(super) struct PendingItems {
    layout: Layout,
    may_be_null: bool,
    /// The pushed size of an item is this number of bytes times the count of the item, which is the
    /// product of its varying extents. With a cast, the stored size can differ.
    pub(super) pushed_bytes: usize,
    pub(super) caster: Option<Caster>,
    pub(super) count: usize,
    /// The varying extents of all items, one item after another.
    extents: Vec<u32>,
    /// The sum of the counts of all items.
    pub(super) count_sum: u32,
    values: Vec<u8>,
    validity: Vec<u8>,
    pub(super) null_count: usize,
}

/// The parts of a chunk that items fill.
pub(super) struct ItemParts {
    pub validity: Vec<u8>,
    pub shape: Vec<u8>,
    pub values: Vec<u8>,
}

impl PendingItems {
    pub(super) fn new(column: &ColumnSchema) -> Result<Self> {
        let layout = column.layout()?;
        Ok(Self {
            layout,
            may_be_null: layout.may_be_null(layout.levels),
            pushed_bytes: pushed_inner_bytes(column)?,
            caster: column.cast.and_then(|cast| cast.source.dtype()).map(|source| Caster::new(source, column.dtype)),
            count: 0,
            extents: Vec::new(),
            count_sum: 0,
            values: Vec::new(),
            validity: Vec::new(),
            null_count: 0,
        })
    }

    /// Adds items of a checked batch. `counts` starts at the sum of the counts of all
    /// items before them, and ends at the sum that includes them.
    pub(super) fn take(&mut self, batch: &ColumnBatch, items: &Range<usize>, counts: &Range<usize>) {
        self.take_validity(batch, items);
        self.extents.extend_from_slice(extents_of(batch, self.layout.varying, items).unwrap_or(&[]));
        // the range is inside the batch, which has been checked
        let range = counts.start * self.pushed_bytes..counts.end * self.pushed_bytes;
        self.take_values(batch, items, batch.values.get(range).unwrap_or(&[]));
        if self.layout.is_ragged() {
            // fits: `PendingColumn::chunk_end` limits the sum
            self.count_sum += u32::try_from(counts.len()).unwrap_or(0);
        }
        self.count += items.len(); // at most 2^32
    }

    fn take_validity(&mut self, batch: &ColumnBatch, items: &Range<usize>) {
        if !self.may_be_null {
            return; // all items are present, so no bitmap is needed
        }
        let nulls = append_bits(&mut self.validity, self.count, items, |i| batch.is_null(i));
        self.null_count += nulls;
    }

    fn take_values(&mut self, batch: &ColumnBatch, items: &Range<usize>, pushed: &[u8]) {
        if self.layout.is_ragged() || batch.validity.is_none() {
            return self.append(pushed);
        }
        if self.pushed_bytes == 0 {
            return;
        }
        let zeros = vec![0; self.pushed_bytes];
        for (i, item) in items.clone().zip(pushed.chunks_exact(self.pushed_bytes)) {
            self.append(if batch.is_null(i) { &zeros } else { item });
        }
    }

    fn append(&mut self, pushed: &[u8]) {
        let start = self.values.len();
        match &mut self.caster {
            Some(caster) => caster.cast(pushed, &mut self.values),
            None => self.values.extend_from_slice(pushed),
        }
        if let Some(new) = self.values.get_mut(start..) {
            le::swap_to_native(self.layout.element_bytes, new);
        }
    }

    /// Moves the items into the parts of a chunk, with a validity bitmap if `has_nulls`.
    pub(super) fn cut(&mut self, has_nulls: bool) -> ItemParts {
        let mut shape = Vec::new();
        // fits: `PendingColumn::chunk_end` limits the sum of all counts
        push_item_shapes(self.layout.varying, &self.extents, &mut shape);
        let validity = match (has_nulls, self.may_be_null) {
            (true, true) => mem::take(&mut self.validity),
            (true, false) => all_present(self.count).collect(),
            (false, _) => Vec::new(),
        };
        self.validity.clear();
        self.extents.clear();
        (self.count, self.count_sum, self.null_count) = (0, 0, 0);
        ItemParts { validity, shape, values: mem::take(&mut self.values) }
    }
}

/// Returns the count of item `i` of a batch: the product of its varying extents.
pub(super) fn count_at(batch: &ColumnBatch, varying: usize, i: usize) -> usize {
    if varying == 0 {
        return 1;
    }
    // checked before
    extents_of(batch, varying, &(i..i + 1)).and_then(product_of_extents).unwrap_or(0)
}

fn extents_of<'a>(batch: &ColumnBatch<'a>, varying: usize, items: &Range<usize>) -> Option<&'a [u32]> {
    batch.extents.get(items.start * varying..items.end * varying)
}

/// Appends a bit for each entry of `from` to a bitmap of `count` entries. Returns the number of
/// nulls.
pub(super) fn append_bits(
    bitmap: &mut Vec<u8>,
    count: usize,
    from: &Range<usize>,
    is_null: impl Fn(usize) -> bool,
) -> usize {
    bitmap.resize(validity_bytes(count + from.len()), 0);
    let mut nulls = 0;
    for (to, from) in (count..).zip(from.clone()) {
        if is_null(from) {
            nulls += 1;
        } else if let Some(byte) = bitmap.get_mut(to / 8) {
            *byte |= 1 << (to % 8);
        }
    }
    nulls
}

/// The lists of all levels of one column that are not yet in a chunk. Empty if the column is not
/// nested.
pub(super) struct PendingLists {
    levels: Vec<PendingLevel>,
}

/// The lists of one level.
struct PendingLevel {
    may_be_null: bool,
    /// The `ends[k]` of the specification.
    ends: Vec<u32>,
    validity: Vec<u8>,
    null_count: usize,
}

/// A position in a batch: the number of entries before it on each level, and the sum of the counts
/// of the items before it. Items are on the level after the last level of lists.
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
        self.entries.get(level).copied().unwrap_or(0) // `level` is a level of the column
    }

    /// Returns the position after `samples` more samples, for a column without lists and with a
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
            let Some(lists) = batch.lists(level) else { break }; // unreachable: checked before
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

    /// Adds the lists between two positions of a checked batch.
    pub(super) fn take(&mut self, batch: &ColumnBatch, from: &BatchPosition, to: &BatchPosition) {
        for (number, level) in self.levels.iter_mut().enumerate() {
            let Some(lists) = batch.lists(number) else { break }; // unreachable: checked before
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

    /// Moves the bitmaps and ends of all levels into the parts of a chunk, with validity
    /// bitmaps if `has_nulls`.
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
            end = end.saturating_add(length); // no overflow: chunks are limited
            self.ends.push(end);
        }
    }
}
