//! Chapter 4.3: the meaning of the decoded parts of a chunk.
//!
//! [`Content`] has the validity, shape and values of a chunk's samples, or of the items in their
//! lists. [`Lists`] has one level of lists. [`Content::items`] removes the levels one by one, and
//! returns the items. These have the same form as the samples of a column without lists, so all
//! other code has to handle only items.
//!
//! A correct checksum does not guarantee that the decoded parts are consistent: an end can have any
//! value. Each function checks the values that it uses. Reading one sample
//! therefore never goes out of bounds, and need not check the other samples. `check_lists`,
//! `check_shapes` and `check_values` check a whole chunk. They also check bits that no reader uses,
//! to ensure that equal values have equal bytes.

use super::schema::Layout;
use crate::bytes::le::{u32_in, u64_of};
use crate::element::dtype::DType;
use crate::{Error, Result, limits};
use std::ops::Range;

/// The decoded parts of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content<'a> {
    pub sample_count: usize,
    /// Bit `i` is 1 if sample `i` is present; `None` if all samples are present. In a nested
    /// column, the bits of lists and items follow, level by level.
    pub validity: Option<&'a [u8]>,
    /// If the column is nested, the ends of the lists, level by level. They are followed by the
    /// `ends` of the items if these are ragged, and by their extents if several extents vary.
    pub shape: &'a [u8],
    pub values: &'a [u8],
}

/// Returns the size of a validity bitmap in bytes.
pub(crate) fn validity_bytes(sample_count: usize) -> usize {
    sample_count.div_ceil(8)
}

/// Returns the validity bitmap of `count` entries that are all present.
pub(crate) fn all_present(count: usize) -> impl Iterator<Item = u8> {
    let rest = count % 8; // below 8
    std::iter::repeat_n(u8::MAX, count / 8).chain((rest > 0).then_some((1 << rest) - 1))
}

/// Returns bit `index` of a bitmap, least significant first; `false` beyond its end.
pub(crate) fn bit(bitmap: &[u8], index: usize) -> bool {
    bitmap.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

/// Returns the error for a part whose decoded length contradicts the samples of its chunk.
#[cold]
pub(crate) fn wrong_length(part: &str, found: u64, expected: u64, sample_count: usize) -> Error {
    let message = format!("the {part} part has {found} bytes, expected {expected} for {sample_count} samples");
    Error::corrupt("R-4.5", message)
}

#[cold]
fn outside() -> Error {
    Error::corrupt("R-4.7", "the shape of a sample reaches beyond its chunk")
}

impl<'a> Content<'a> {
    /// Returns whether sample `i` of the chunk is null.
    #[inline]
    pub(crate) fn is_null(&self, i: usize) -> bool {
        self.validity.is_some_and(|bitmap| !bit(bitmap, i))
    }

    /// Checks for parts that are used without having been decoded.
    pub(crate) fn check_lengths(&self, layout: &Layout) -> Result<()> {
        if layout.is_nested() {
            let items = self.items(layout, |_| Ok(()))?;
            let bytes = items.count_sum(layout)?.saturating_mul(layout.inner_bytes);
            return self.check_length("values", self.values, bytes);
        }
        let count = if layout.is_ragged() { self.start(self.sample_count)? } else { self.sample_count };
        if let Some(bitmap) = self.validity {
            self.check_length("validity", bitmap, validity_bytes(self.sample_count))?;
        }
        self.check_length("shape", self.shape, self.sample_count.saturating_mul(layout.shape_bytes()))?;
        self.check_length("values", self.values, count.saturating_mul(layout.inner_bytes))
    }

    /// Checks the length of a part. A product that saturates is refused, because no slice is that
    /// long.
    #[inline]
    fn check_length(&self, part: &str, bytes: &[u8], expected: usize) -> Result<()> {
        if bytes.len() == expected {
            return Ok(());
        }
        Err(wrong_length(part, u64_of(bytes.len()), u64_of(expected), self.sample_count))
    }

    /// Returns the sum of the counts of all items, and checks for their shape. The count of
    /// an item is the product of its varying extents. `self` must not be nested; for a nested
    /// column, it must be the result of [`Content::items`].
    pub(crate) fn count_sum(&self, layout: &Layout) -> Result<usize> {
        if self.sample_count.checked_mul(layout.shape_bytes()) != Some(self.shape.len()) {
            return Err(Error::corrupt("R-4.5", "the shape has the wrong length for its items"));
        }
        if layout.is_ragged() { self.start(self.sample_count) } else { Ok(self.sample_count) }
    }

    /// Returns the sum of the counts of the samples before `i`.
    fn start(&self, i: usize) -> Result<usize> {
        let Some(previous) = i.checked_sub(1) else { return Ok(0) };
        let end = u32_in(self.shape, previous).ok_or_else(outside)?;
        usize::try_from(end).map_err(|_| outside())
    }

    /// Returns the sum of the counts of all samples before `samples`, and the sum up to their end.
    fn counts(&self, samples: &Range<usize>) -> Result<Range<usize>> {
        let counts = self.start(samples.start)?..self.start(samples.end)?;
        if counts.start <= counts.end { Ok(counts) } else { Err(outside()) }
    }

    /// Returns the range of `samples` in `values`.
    #[inline]
    pub(crate) fn values_range(&self, layout: &Layout, samples: &Range<usize>) -> Result<Range<usize>> {
        self.range_within(layout, samples, self.values.len())
    }

    /// Returns the range of `samples` in values that have `bytes` bytes. The values need not have
    /// been decoded.
    #[inline]
    pub(crate) fn range_within(&self, layout: &Layout, samples: &Range<usize>, bytes: usize) -> Result<Range<usize>> {
        if layout.is_nested() {
            let (items, range) = self.items_of(layout, samples)?;
            return items.range_of_items(layout, &range, bytes);
        }
        self.range_of_items(layout, samples, bytes)
    }

    /// Returns the range of `samples` in values that have `bytes` bytes, for content that is not
    /// nested.
    #[inline]
    pub(crate) fn range_of_items(&self, layout: &Layout, samples: &Range<usize>, bytes: usize) -> Result<Range<usize>> {
        let counts = if layout.is_ragged() { self.counts(samples)? } else { samples.clone() };
        let at = |count: usize| count.checked_mul(layout.inner_bytes).ok_or_else(outside);
        let range = at(counts.start)?..at(counts.end)?;
        // usually, comparing the range with `bytes` suffices; but if samples take no bytes, the
        // range is 0..0 for any counts, so the counts are compared with the last end
        let inside = layout.inner_bytes > 0 || !layout.is_ragged() || counts.end <= self.start(self.sample_count)?;
        if range.end <= bytes && inside { Ok(range) } else { Err(outside()) }
    }

    /// Returns the values of `samples`.
    #[inline]
    pub(crate) fn values_of(&self, layout: &Layout, samples: &Range<usize>) -> Result<&'a [u8]> {
        let range = self.values_range(layout, samples)?;
        self.values.get(range).ok_or_else(outside)
    }

    /// Returns the range of the samples that overlap the range `bytes` of the values. All values
    /// together have `value_bytes` bytes.
    ///
    /// Cost: logarithmic in the number of samples.
    pub(crate) fn samples_with(
        &self,
        layout: &Layout,
        bytes: &Range<usize>,
        value_bytes: usize,
    ) -> Result<Range<usize>> {
        // ranges are in the order of the samples; no overflow: `i` is below the sample count
        let range_of = |i: usize| self.range_within(layout, &(i..i + 1), value_bytes);
        let first = partition_point(self.sample_count, |i| Ok(range_of(i)?.end <= bytes.start))?;
        let end = partition_point(self.sample_count, |i| Ok(range_of(i)?.start < bytes.end))?;
        Ok(first..end)
    }

    /// Returns the count of sample `i` of a ragged column.
    pub(crate) fn count(&self, i: usize) -> Result<u32> {
        let counts = self.counts(&(i..i + 1))?; // no overflow: `i` is below the sample count
        u32::try_from(counts.end - counts.start).map_err(|_| outside())
    }

    /// Returns varying extent number `varying` of sample `i` of a ragged column.
    /// [`Content::check_extents`] checks that the extents agree with the count.
    pub(crate) fn extent(&self, layout: &Layout, i: usize, varying: usize) -> Result<u32> {
        if layout.varying > 1 {
            let index = self.sample_count.checked_mul(varying + 1).and_then(|at| at.checked_add(i));
            return index.and_then(|index| u32_in(self.shape, index)).ok_or_else(outside);
        }
        self.count(i)
    }

    /// Checks for sample `i`: no varying extent is over the limit, and the product of the
    /// varying extents is the count of the sample.
    #[inline]
    pub(crate) fn check_extents(&self, layout: &Layout, i: usize) -> Result<()> {
        if layout.varying == 0 {
            return Ok(());
        }
        self.check_varying_extents(layout, i)
    }

    fn check_varying_extents(&self, layout: &Layout, i: usize) -> Result<()> {
        let mut product = Some(1_u64);
        let mut any_zero = false;
        for varying in 0..layout.varying {
            let extent = u64::from(self.extent(layout, i, varying)?);
            if extent > u64::from(limits::EXTENT) {
                return Err(Error::corrupt("R-4.7", "an extent is 2^32 - 1, which is over the limit"));
            }
            any_zero |= extent == 0;
            product = product.and_then(|product| product.checked_mul(extent));
        }
        let product = if any_zero { Some(0) } else { product };
        let counts = self.counts(&(i..i + 1))?;
        let count = u64::try_from(counts.end - counts.start).ok();
        if product.is_some() && product == count {
            return Ok(());
        }
        let message = format!("the extents of {} {i} do not match its number of elements", layout.item_name());
        Err(Error::corrupt("R-4.7", message))
    }

    /// Checks for every sample, and for null samples of a ragged column.
    pub(crate) fn check_shapes(&self, layout: &Layout) -> Result<()> {
        if !layout.is_ragged() {
            return Ok(());
        }
        for i in 0..self.sample_count {
            self.check_extents(layout, i)?;
            if self.is_null(i) && !(0..layout.varying).all(|d| self.extent(layout, i, d).is_ok_and(|e| e == 0)) {
                return Err(null_with_values(layout, i));
            }
        }
        Ok(())
    }

    /// Checks for null samples of a fixed column, R-4.9 and. must have been
    /// checked before.
    pub(crate) fn check_values(&self, layout: &Layout) -> Result<()> {
        if self.validity.is_some() && !layout.is_ragged() && layout.inner_bytes > 0 {
            for (i, sample) in self.values.chunks_exact(layout.inner_bytes).enumerate() {
                if self.is_null(i) && sample.iter().any(|&byte| byte != 0) {
                    return Err(null_with_values(layout, i));
                }
            }
        }
        match layout.dtype {
            DType::Utf8 => self.check_texts(layout),
            dtype => check_unused_bits(dtype, self.values),
        }
    }

    /// Performs the checks of [`Content::check_values`] for values that repeat one element.
    pub(crate) fn check_constant(&self, layout: &Layout, element: &[u8]) -> Result<()> {
        if self.validity.is_some() && !layout.is_ragged() && element.iter().any(|&byte| byte != 0) {
            let null = (0..self.sample_count).find(|&i| self.is_null(i)).unwrap_or(0);
            return Err(null_with_values(layout, null));
        }
        match layout.dtype {
            // a repeated byte is UTF-8 only if the byte by itself is a character
            DType::Utf8 if !element.is_ascii() => Err(not_utf8(layout, 0)),
            dtype => check_unused_bits(dtype, element),
        }
    }

    /// Checks for texts: all of them together are UTF-8, and each begins at a character
    /// boundary.
    fn check_texts(&self, layout: &Layout) -> Result<()> {
        let begins_within = |text: &str, i| self.start(i).is_ok_and(|at| !text.is_char_boundary(at));
        let is_text = match std::str::from_utf8(self.values) {
            Ok(text) => text.is_ascii() || !(0..self.sample_count).any(|i| begins_within(text, i)),
            Err(_) => false,
        };
        if is_text {
            return Ok(());
        }
        // no overflow: `i` is below the sample count
        let range = |i: usize| self.range_of_items(layout, &(i..i + 1), self.values.len()).ok();
        let text = |i: usize| range(i).and_then(|range| self.values.get(range));
        let is_none = |i: &usize| text(*i).is_some_and(|text| std::str::from_utf8(text).is_err());
        Err(not_utf8(layout, (0..self.sample_count).find(is_none).unwrap_or(0)))
    }

    /// Returns the number of null samples.
    pub(crate) fn null_count(&self) -> usize {
        null_count(self.validity, self.sample_count)
    }
}

/// Returns the first number below `count` for which `is_before` is false, or `count` if there is no
/// such number. For all later numbers, `is_before` must also be false.
fn partition_point(count: usize, is_before: impl Fn(usize) -> Result<bool>) -> Result<usize> {
    let (mut start, mut end) = (0, count);
    while start < end {
        let middle = start + (end - start) / 2; // below `end`
        match is_before(middle)? {
            true => start = middle + 1, // at most `end`
            false => end = middle,
        }
    }
    Ok(start)
}

/// Returns the number of nulls among `count` entries.
fn null_count(validity: Option<&[u8]>, count: usize) -> usize {
    let Some(bitmap) = validity else { return 0 };
    let (whole, rest) = (count / 8, count % 8);
    let (words, bytes) = bitmap.get(..whole).unwrap_or(bitmap).as_chunks();
    // no overflow: each word has at most 64 bits
    let words: usize = words.iter().map(|word| u64::from_le_bytes(*word).count_ones() as usize).sum();
    // no overflow: each byte has at most 8 bits
    let present = words + bytes.iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
    // `rest` is less than 8
    let last = bitmap.get(whole).map_or(0, |byte| byte & ((1 << rest) - 1));
    count.saturating_sub(present + last.count_ones() as usize) // no overflow: at most 8
}

fn null_with_values(layout: &Layout, i: usize) -> Error {
    Error::corrupt("R-4.8", format!("{} {i} of the chunk is null, but has values", layout.item_name()))
}

/// Checks for bools, and for types of 4 or 6 bits. Accepts all other types.
#[inline]
pub(crate) fn check_unused_bits(dtype: DType, values: &[u8]) -> Result<()> {
    let unused = dtype.unused_bits();
    // without a branch for each byte
    if unused == 0 || values.iter().fold(0, |any, byte| any | byte) & unused == 0 {
        return Ok(());
    }
    Err(unused_bits_set(dtype, values))
}

#[cold]
fn unused_bits_set(dtype: DType, values: &[u8]) -> Error {
    if dtype == DType::Bool {
        let wrong = values.iter().find(|byte| **byte > 1).copied().unwrap_or_default();
        return Error::corrupt("R-4.9", format!("a bool is {wrong}, expected 0 or 1"));
    }
    let message = format!("an element of type {dtype} has bits set above the lowest {}", dtype.value_bits());
    Error::corrupt("R-4.13", message)
}

fn not_utf8(layout: &Layout, i: usize) -> Error {
    Error::corrupt("R-4.9", format!("{} {i} of the chunk is not UTF-8", layout.item_name()))
}

/// One level of lists of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lists<'a> {
    pub count: usize,
    /// `ends[k]` of the specification.
    ends: &'a [u8],
    /// Bit `i` is 1 if list `i` is present; `None` if all lists are present.
    validity: Option<&'a [u8]>,
}

impl Lists<'_> {
    /// Returns the number of members of the lists before `i`.
    fn start(&self, i: usize) -> Result<usize> {
        let Some(previous) = i.checked_sub(1) else { return Ok(0) };
        let end = u32_in(self.ends, previous).ok_or_else(list_outside)?;
        usize::try_from(end).map_err(|_| list_outside())
    }

    /// Returns the number of members of all lists.
    pub(crate) fn entry_count(&self) -> Result<usize> {
        self.start(self.count)
    }

    /// Returns the range of the members of consecutive lists. Checks for both ends of the
    /// range.
    pub(crate) fn entries(&self, lists: &Range<usize>) -> Result<Range<usize>> {
        let entries = self.start(lists.start)?..self.start(lists.end)?;
        let is_inside = entries.start <= entries.end && entries.end <= self.entry_count()?;
        if is_inside { Ok(entries) } else { Err(list_outside()) }
    }

    pub(crate) fn is_null(&self, i: usize) -> bool {
        self.validity.is_some_and(|bitmap| !bit(bitmap, i))
    }

    /// Returns the range of the members of list `i`; `None` if the list is null. Checks for
    /// its ends, R-4.8, and for a null list of this level.
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

    /// Checks all lists: for the bits after them, R-4.7 and.
    fn check(&self, has_nulls: bool) -> Result<()> {
        check_bits_after(self.validity, self.count)?;
        let (ends, _) = self.ends.as_chunks(); // no remainder
        if !ends.is_sorted_by_key(|end| u32::from_le_bytes(*end)) {
            return Err(list_outside());
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
    /// Calls `each` with the lists of each level, beginning with the outermost level. Returns the
    /// items as content of their own. If the content is not nested, returns it unchanged.
    ///
    /// Checks for validity and shape, but not for the shape of the items. Checks for
    /// the number of items.
    pub(crate) fn items(&self, layout: &Layout, mut each: impl FnMut(Lists<'a>) -> Result<()>) -> Result<Content<'a>> {
        let mut rest = *self;
        for _ in 0..layout.levels {
            let validity = rest.take_bitmap()?;
            let bytes = rest.sample_count.checked_mul(4).ok_or_else(wrong_list_length)?;
            let (ends, shape) = rest.shape.split_at_checked(bytes).ok_or_else(wrong_list_length)?;
            let lists = Lists { count: rest.sample_count, ends, validity };
            rest.shape = shape;
            rest.sample_count = lists.entry_count()?;
            each(lists)?;
        }
        if layout.is_nested() {
            let validity = rest.take_bitmap()?;
            if rest.validity.is_some_and(|bits| !bits.is_empty()) {
                return Err(wrong_list_length());
            }
            rest.validity = validity;
            if rest.sample_count > layout.max_items() {
                return Err(too_many_items(rest.sample_count));
            }
        }
        Ok(rest)
    }

    /// Returns the items of the chunk, and the range of the items of `samples`.
    pub(crate) fn items_of(&self, layout: &Layout, samples: &Range<usize>) -> Result<(Content<'a>, Range<usize>)> {
        let mut entries = samples.clone();
        let items = self.items(layout, |lists| {
            entries = lists.entries(&entries)?;
            Ok(())
        })?;
        Ok((items, entries))
    }

    /// Checks for a range of items. `self` must be the result of [`Content::items`].
    pub(crate) fn check_presence(&self, layout: &Layout, items: &Range<usize>) -> Result<()> {
        let level = layout.levels;
        if layout.may_be_null(level) || self.validity.is_none() || !items.clone().any(|item| self.is_null(item)) {
            return Ok(());
        }
        Err(null_in_level(level))
    }

    /// Takes the bitmap of the next level, which has `sample_count` entries. Returns `None` if the
    /// chunk has no validity.
    fn take_bitmap(&mut self) -> Result<Option<&'a [u8]>> {
        let Some(bits) = self.validity else { return Ok(None) };
        let (bitmap, rest) = bits.split_at_checked(validity_bytes(self.sample_count)).ok_or_else(wrong_list_length)?;
        self.validity = Some(rest);
        Ok(Some(bitmap))
    }

    /// Checks validity and lists: for lists. Returns the items, which
    /// are the samples if the column is not nested.
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
            return Err(Error::corrupt("R-4.6", "the chunk has a validity part, but no nulls"));
        }
        Ok(items)
    }

    /// Returns the number of null samples of a column, nested or not.
    pub(crate) fn null_sample_count(&self) -> usize {
        let bitmap = self.validity.and_then(|bits| bits.get(..validity_bytes(self.sample_count)));
        Content { validity: bitmap, ..*self }.null_count()
    }
}

/// Returns the error for a null entry in a level that does not allow nulls.
#[cold]
fn null_in_level(level: usize) -> Error {
    Error::corrupt("R-4.6", format!("an entry of level {level} is null, but the column does not allow nulls there"))
}

fn check_bits_after(validity: Option<&[u8]>, count: usize) -> Result<()> {
    let Some(bitmap) = validity else { return Ok(()) };
    let mut after = count..bitmap.len().saturating_mul(8);
    if after.any(|i| bit(bitmap, i)) {
        return Err(Error::corrupt("R-4.6", "the validity has bits set beyond the last entry of a level"));
    }
    Ok(())
}

#[cold]
fn null_with_entries(i: usize) -> Error {
    Error::corrupt("R-4.8", format!("list {i} of a level of the chunk is null, but not empty"))
}

#[cold]
fn list_outside() -> Error {
    Error::corrupt("R-4.7", "a list reaches beyond its chunk")
}

#[cold]
fn too_many_items(count: usize) -> Error {
    let message =
        format!("the chunk has {count} items without elements, but the format allows at most {}", limits::EMPTY_ITEMS);
    Error::corrupt("R-4.12", message)
}

#[cold]
fn wrong_list_length() -> Error {
    Error::corrupt("R-4.5", "a part of the chunk has the wrong length for its lists")
}

/// Returns the product of the varying extents of an item, which is the count of the item. If an
/// extent is 0, the product is 0. Returns `None` if any other product overflows.
pub(crate) fn product_of_extents(extents: &[u32]) -> Option<usize> {
    if extents.contains(&0) {
        return Some(0);
    }
    extents.iter().try_fold(1_usize, |product, &extent| product.checked_mul(usize::try_from(extent).ok()?))
}

/// Appends the shapes of items to a shape part: their `ends` and, if several extents vary, also
/// their extents, dimension by dimension. `extents` has the varying extents of all items, one item
/// after another. The sum of all counts in a chunk must be less than 2^32.
pub(crate) fn push_item_shapes(varying: usize, extents: &[u32], shape: &mut Vec<u8>) {
    let mut end = 0_u32;
    for extents in extents.chunks_exact(varying.max(1)) {
        let count = product_of_extents(extents).and_then(|count| u32::try_from(count).ok());
        end = end.saturating_add(count.unwrap_or(u32::MAX));
        shape.extend(end.to_le_bytes());
    }
    if varying > 1 {
        for dimension in 0..varying {
            let extents = extents.iter().skip(dimension).step_by(varying);
            shape.extend(extents.flat_map(|extent| extent.to_le_bytes()));
        }
    }
}
