//! Chapter 4.3: the lists of nested columns.

use super::content::{Content, bit, null_count, validity_bytes};
use super::schema::Layout;
use crate::le::u32_in;
use crate::{Error, Result, limits};
use std::ops::Range;

/// The entries of a level of a chunk that are lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lists<'a> {
    pub count: usize,
    /// `ends[k]` of the specification.
    ends: &'a [u8],
    /// Bit `i` is 1 if list `i` is present. `None`: all are.
    validity: Option<&'a [u8]>,
}

impl Lists<'_> {
    /// Returns the number of entries in the lists before `i`.
    fn start(&self, i: usize) -> Result<usize> {
        let Some(previous) = i.checked_sub(1) else { return Ok(0) };
        let end = u32_in(self.ends, previous).ok_or_else(outside)?;
        usize::try_from(end).map_err(|_| outside())
    }

    /// Returns the number of entries in all lists.
    pub(crate) fn entry_count(&self) -> Result<usize> {
        self.start(self.count)
    }

    /// Returns the entries in lists that follow each other: of both ends.
    pub(crate) fn entries(&self, lists: &Range<usize>) -> Result<Range<usize>> {
        let entries = self.start(lists.start)?..self.start(lists.end)?;
        let is_inside = entries.start <= entries.end && entries.end <= self.entry_count()?;
        if is_inside { Ok(entries) } else { Err(outside()) }
    }

    pub(crate) fn is_null(&self, i: usize) -> bool {
        self.validity.is_some_and(|bitmap| !bit(bitmap, i))
    }

    /// Returns the entries in list `i`, or `None` if it is null. Checks of its ends, R-4.8,
    /// and of a null list of this level.
    pub(crate) fn entries_of(&self, i: usize, may_be_null: bool, level: usize) -> Result<Option<Range<usize>>> {
        let entries = self.entries(&(i..i + 1))?; // `i` is below the count
        if !self.is_null(i) {
            return Ok(Some(entries));
        }
        if !may_be_null {
            return Err(null_in_level(level));
        }
        if entries.is_empty() { Ok(None) } else { Err(null_with_entries(i)) }
    }

    /// Checks all lists: of the bits after them, R-4.7, and.
    fn check(&self, has_nulls: bool) -> Result<()> {
        check_bits_after(self.validity, self.count)?;
        let (ends, _) = self.ends.as_chunks(); // whole
        if !ends.is_sorted_by_key(|end| u32::from_le_bytes(*end)) {
            return Err(outside());
        }
        let count = if has_nulls { self.count } else { 0 };
        let mut nulls = (0..count).filter(|&i| self.is_null(i));
        match nulls.find(|&i| self.entries(&(i..i + 1)).map_or(true, |entries| !entries.is_empty())) {
            Some(i) => Err(null_with_entries(i)),
            None => Ok(()),
        }
    }
}

impl<'a> Content<'a> {
    /// Calls `each` with the lists of each level, outermost first, and returns the items: content
    /// whose samples they are. Content that is not nested is its own items.
    ///
    /// Checks of validity and shape, except for that of the items' shape, and of the
    /// number of items.
    pub(crate) fn items(&self, layout: &Layout, mut each: impl FnMut(Lists<'a>) -> Result<()>) -> Result<Content<'a>> {
        let mut rest = *self;
        for _ in 0..layout.levels {
            let validity = rest.take_bitmap()?;
            let bytes = rest.sample_count.checked_mul(4).ok_or_else(wrong_length)?;
            let (ends, shape) = rest.shape.split_at_checked(bytes).ok_or_else(wrong_length)?;
            let lists = Lists { count: rest.sample_count, ends, validity };
            rest.shape = shape;
            rest.sample_count = lists.entry_count()?;
            each(lists)?;
        }
        if layout.is_nested() {
            let validity = rest.take_bitmap()?;
            if rest.validity.is_some_and(|bits| !bits.is_empty()) {
                return Err(wrong_length());
            }
            rest.validity = validity;
            if rest.sample_count > layout.most_items() {
                return Err(too_many_items(rest.sample_count));
            }
        }
        Ok(rest)
    }

    /// Returns the items of the chunk, and the range of those in some samples.
    pub(crate) fn items_of(&self, layout: &Layout, samples: &Range<usize>) -> Result<(Content<'a>, Range<usize>)> {
        let mut entries = samples.clone();
        let items = self.items(layout, |lists| {
            entries = lists.entries(&entries)?;
            Ok(())
        })?;
        Ok((items, entries))
    }

    /// Checks of some items: content whose samples are items.
    pub(crate) fn check_presence(&self, layout: &Layout, items: &Range<usize>) -> Result<()> {
        let level = layout.levels;
        if layout.may_be_null(level) || self.validity.is_none() || !items.clone().any(|item| self.is_null(item)) {
            return Ok(());
        }
        Err(null_in_level(level))
    }

    /// Takes the bitmap of the next level, whose entries are counted as samples. `None`: none is
    /// null.
    fn take_bitmap(&mut self) -> Result<Option<&'a [u8]>> {
        let Some(bits) = self.validity else { return Ok(None) };
        let (bitmap, rest) = bits.split_at_checked(validity_bytes(self.sample_count)).ok_or_else(wrong_length)?;
        self.validity = Some(rest);
        Ok(Some(bitmap))
    }

    /// Checks validity and lists: of lists. Returns the items, which are
    /// the samples of a column that is not nested.
    pub(crate) fn check_lists(&self, layout: &Layout) -> Result<Content<'a>> {
        let (mut has_nulls, mut level) = (false, 0);
        let mut check_nulls = |level_has_nulls: bool| {
            has_nulls |= level_has_nulls;
            level += 1;
            if level_has_nulls && !layout.may_be_null(level - 1) { Err(null_in_level(level - 1)) } else { Ok(()) }
        };
        let mut items = self.items(layout, |lists| {
            let level_has_nulls = null_count(lists.validity, lists.count) > 0;
            check_nulls(level_has_nulls)?;
            lists.check(level_has_nulls)
        })?;
        let items_have_nulls = items.null_count() > 0;
        check_nulls(items_have_nulls)?;
        check_bits_after(items.validity, items.sample_count)?;
        items.validity = items.validity.filter(|_| items_have_nulls);
        if self.validity.is_some() && !has_nulls {
            return Err(Error::corrupt("R-4.6", "a validity without nulls"));
        }
        Ok(items)
    }

    /// Returns the number of null samples of a column, nested or not.
    pub(crate) fn null_sample_count(&self) -> usize {
        let bitmap = self.validity.and_then(|bits| bits.get(..validity_bytes(self.sample_count)));
        Content { validity: bitmap, ..*self }.null_count()
    }
}

/// Returns the error of a null entry of a level whose entries may not be null.
#[cold]
fn null_in_level(level: usize) -> Error {
    Error::corrupt("R-4.6", format!("an entry of level {level} is null, and the column does not allow that"))
}

fn check_bits_after(validity: Option<&[u8]>, count: usize) -> Result<()> {
    let Some(bitmap) = validity else { return Ok(()) };
    let mut after = count..bitmap.len().saturating_mul(8);
    if after.any(|i| bit(bitmap, i)) {
        return Err(Error::corrupt("R-4.6", "a validity with bits beyond the last entry of a level"));
    }
    Ok(())
}

#[cold]
fn null_with_entries(i: usize) -> Error {
    Error::corrupt("R-4.8", format!("list {i} of a level of the chunk is null and not empty"))
}

#[cold]
fn outside() -> Error {
    Error::corrupt("R-4.7", "a list reaches outside its chunk")
}

#[cold]
fn too_many_items(count: usize) -> Error {
    let message = format!("a chunk has {count} items without elements; {} are allowed", limits::EMPTY_ITEMS);
    Error::corrupt("R-4.12", message)
}

#[cold]
fn wrong_length() -> Error {
    Error::corrupt("R-4.5", "a part of the chunk does not have the length its lists need")
}
