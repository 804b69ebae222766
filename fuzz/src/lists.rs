//! The lists of nested columns: drawn from an input, and compared with what readers return.

use super::case::rarely;
use arbitrary::Unstructured;
use std::ops::Range;
use tensilo::nested::{List, ListBatch};
use tensilo::{ColumnBuffer, ColumnSchema, Result, Sample};

/// The levels of a column's lists.
#[derive(Debug, Default)]
pub struct Levels(Vec<Level>);

/// The lists of one level.
#[derive(Debug)]
struct Level {
    may_be_null: bool,
    lengths: Vec<u32>,
    nulls: Vec<bool>,
    /// The position of the first member of each list, and the end of the last.
    starts: Vec<usize>,
}

/// The maximum number of items. More would only cost time.
const ITEMS: usize = 64;

impl Levels {
    /// Makes the lists of `sample_count` samples, with no level in most inputs. Also returns the
    /// number of items.
    pub fn arbitrary(u: &mut Unstructured<'_>, sample_count: usize) -> arbitrary::Result<(Self, usize)> {
        let count = if rarely(u, 3)? { u.int_in_range(1..=4)? } else { 0 };
        let (mut levels, mut entries) = (Vec::new(), sample_count);
        for _ in 0..count {
            let level = Level::arbitrary(u, entries)?;
            entries = level.starts[level.lengths.len()];
            levels.push(level);
        }
        Ok((Self(levels), entries))
    }

    /// Returns the schema of a column of these lists, whose items have the schema `items`.
    pub fn schema(&self, items: ColumnSchema) -> ColumnSchema {
        self.0.iter().rev().fold(items, |column, level| {
            let list = column.list();
            if level.may_be_null { list.nullable() } else { list }
        })
    }

    /// Returns the entries of each level that these samples contain, the items last.
    pub fn ranges(&self, samples: Range<usize>) -> Vec<Range<usize>> {
        let mut ranges = vec![samples];
        for level in &self.0 {
            let above = &ranges[ranges.len() - 1];
            ranges.push(level.starts[above.start]..level.starts[above.end]);
        }
        ranges
    }

    /// Returns the validity bitmaps of the lists of these samples, one per level.
    pub fn validities(&self, samples: Range<usize>) -> Vec<Vec<u8>> {
        let levels = self.0.iter().zip(self.ranges(samples));
        levels.map(|(level, range)| bitmap(&level.nulls[range])).collect()
    }

    pub fn batches<'a>(&'a self, samples: Range<usize>, validities: &'a [Vec<u8>]) -> Vec<ListBatch<'a>> {
        let levels = self.0.iter().zip(self.ranges(samples)).zip(validities);
        levels
            .map(|((level, range), validity)| {
                let lists = ListBatch::new(&level.lengths[range]);
                if level.may_be_null { lists.with_validity(validity) } else { lists }
            })
            .collect()
    }

    /// Checks that a buffer has the lists of these samples.
    pub fn assert_in(&self, buffer: &ColumnBuffer, samples: Range<usize>) {
        assert_eq!(buffer.lists().len(), self.0.len());
        for ((level, range), found) in self.0.iter().zip(self.ranges(samples)).zip(buffer.lists()) {
            assert_eq!(found.list_count(), range.len());
            let start = level.starts[range.start];
            let ends = level.starts[range.start..=range.end].iter().map(|end| (end - start) as u64);
            assert!(found.offsets().iter().copied().eq(ends));
            assert!((0..range.len()).map(|i| found.is_null(i)).eq(level.nulls[range].iter().copied()));
        }
    }
}

impl Level {
    fn arbitrary(u: &mut Unstructured<'_>, count: usize) -> arbitrary::Result<Self> {
        let mut level = Self { may_be_null: u.arbitrary()?, lengths: Vec::new(), nulls: Vec::new(), starts: vec![0] };
        let mut end = 0;
        for _ in 0..count {
            let is_null = level.may_be_null && rarely(u, 4)?;
            let max_length = if is_null { 0 } else { (ITEMS - end).min(4) };
            let length = u.int_in_range(0..=max_length)?;
            end += length;
            level.nulls.push(is_null);
            level.lengths.push(length as u32);
            level.starts.push(end);
        }
        Ok(level)
    }
}

/// Returns a validity bitmap: bit `i` is 1 if entry `i` is not null.
pub fn bitmap(nulls: &[bool]) -> Vec<u8> {
    let mut bitmap = vec![0; nulls.len().div_ceil(8)];
    for (i, is_null) in nulls.iter().enumerate() {
        bitmap[i / 8] |= u8::from(!is_null) << (i % 8);
    }
    bitmap
}

/// The contents of a list: whether each list in it is null, and its length, outer lists first;
/// whether each item is null, its shape and its bytes.
#[derive(Debug, Default, PartialEq)]
pub struct Flat {
    pub lists: Vec<(bool, usize)>,
    pub nulls: Vec<bool>,
    pub extents: Vec<u32>,
    pub bytes: Vec<u8>,
}

/// Reads the contents of a list. If the items are text, checks that they are UTF-8.
pub fn flat(list: &List<'_>, is_text: bool) -> Result<Flat> {
    let mut flat = Flat::default();
    flat.add(list, is_text)?;
    Ok(flat)
}

/// The maximum number of members read from a list, which may have any number of empty items.
const SOME: usize = 1 << 12;

impl Flat {
    fn add(&mut self, list: &List<'_>, is_text: bool) -> Result<()> {
        self.lists.push((list.is_null(), list.len()));
        assert!(!list.is_null() || list.is_empty());
        if list.has_lists() {
            return (0..list.len().min(SOME)).try_for_each(|k| self.add(&list.list(k)?, is_text));
        }
        list.items().take(SOME).try_for_each(|item| self.add_item(&item?, is_text))
    }

    fn add_item(&mut self, item: &Sample<'_>, is_text: bool) -> Result<()> {
        if is_text {
            item.as_str()?;
        }
        self.nulls.push(item.is_null());
        self.extents.extend(item.extents());
        self.bytes.extend(item.bytes());
        Ok(())
    }
}
