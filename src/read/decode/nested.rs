//! The lists of samples of a nested column, staged sample by sample, and laid out level by level.

use super::staged::{RaggedValues, StagedValues};
use crate::format::content::{Content, all_present};
use crate::format::item_shapes::push_item_shapes;
use crate::format::schema::Layout;
use crate::le::u64_of;
use crate::list_buffer::push_bit;
use crate::read::batch::selection::Selection;
use crate::read::buffer::{ColumnBuffer, outside};
use crate::{Error, Result, memory};
use std::ops::Range;

/// The word of a null list. No list is as long: bounds lists whose members take bytes of the
/// shape or no bytes at all, and the bytes of other items.
const NULL: u32 = u32::MAX;

/// Appends the lists and the items of sample `i` of a chunk to `words`: level by level a word for
/// each list with its length, then a bit for each item that may be null, then the varying extents
/// of each item.
pub(in crate::read) fn stage(layout: &Layout, content: &Content<'_>, i: usize, words: &mut Vec<u32>) -> Result<()> {
    let mut entries = i..i + 1; // below the chunk's sample count
    let mut level = 0;
    let items = content.items(layout, |lists| {
        memory::reserve(words, entries.len())?;
        for list in entries.clone() {
            let entries = lists.entries_of(list, layout.may_be_null(level), level)?;
            // ends are `u32`
            words.push(entries.map_or(NULL, |entries| u32::try_from(entries.len()).unwrap_or(NULL)));
        }
        level += 1;
        entries = lists.entries(&entries)?;
        Ok(())
    })?;
    items.check_presence(layout, &entries)?;
    if layout.may_be_null(layout.levels) {
        stage_presence(&items, entries.clone(), words)?;
    }
    if layout.varying == 0 {
        return Ok(());
    }
    memory::reserve(words, entries.len().saturating_mul(layout.varying))?;
    for item in entries {
        items.check_extents(layout, item)?;
        for dimension in 0..layout.varying {
            words.push(items.extent(layout, item, dimension)?);
        }
    }
    Ok(())
}

/// Appends a null list to `words`.
pub(in crate::read) fn stage_null(words: &mut Vec<u32>) -> Result<()> {
    memory::reserve(words, 1)?;
    words.push(NULL);
    Ok(())
}

/// Appends a bit for each item, 1 if it is present.
fn stage_presence(items: &Content<'_>, range: Range<usize>, words: &mut Vec<u32>) -> Result<()> {
    memory::reserve(words, words_of_bits(range.len()))?;
    let mut start = range.start;
    while start < range.end {
        let end = range.end.min(start.saturating_add(32));
        words.push((start..end).rev().fold(0, |word, i| word << 1 | u32::from(!items.is_null(i))));
        start = end;
    }
    Ok(())
}

fn words_of_bits(count: usize) -> usize {
    count.div_ceil(32)
}

/// Words that are taken in order.
struct Words<'w>(&'w [u32]);

impl<'w> Words<'w> {
    fn take(&mut self, count: usize) -> Result<&'w [u32]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(lost)?;
        self.0 = rest;
        Ok(taken)
    }
}

#[cold]
fn lost() -> Error {
    Error::internal("the staged lists of a sample end too early")
}

/// Lays out the samples of a request level by level in `out`, which was begun. `values` has the
/// values of each, by rank. `by_position` is memory that is reused.
pub(in crate::read) fn finish(
    layout: &Layout,
    selection: &Selection,
    values: &[RaggedValues],
    file: &[u8],
    staged: &mut dyn StagedValues,
    by_position: &mut Vec<usize>,
    out: &mut ColumnBuffer,
) -> Result<()> {
    if layout.is_ragged() {
        memory::reserve(&mut out.offsets, 1)?;
        out.offsets.push(0);
    }
    by_position.clear();
    if !selection.is_range() {
        memory::resize(by_position, values.len(), 0)?;
        for rank in 0..values.len() {
            *by_position.get_mut(selection.get(rank).1).ok_or_else(outside)? = rank;
        }
    }
    for position in 0..values.len() {
        // those of a range are in order
        let rank = by_position.get(position).copied().unwrap_or(position);
        let sample = values.get(rank).ok_or_else(outside)?;
        let words = staged.words(sample.stager).get(sample.words.clone()).ok_or_else(lost)?;
        push_sample(layout, words, out)?;
        let from = match sample.decoder {
            None => file.get(sample.bytes.clone()),
            Some(decoder) => staged.of(decoder).get(sample.bytes.clone()),
        };
        let from = from.ok_or_else(outside)?;
        let start = out.values.as_slice().len();
        out.values.resize(start.saturating_add(from.len()))?;
        let to = out.values.as_mut_slice().get_mut(start..).ok_or_else(outside)?;
        to.copy_from_slice(from); // equal lengths
    }
    let inner_elements = layout.inner_bytes / layout.dtype.element_bytes(); // whole
    scale(&mut out.offsets, inner_elements);
    Ok(())
}

/// Appends the lists and items of a sample that was staged.
pub(in crate::read) fn push_sample(layout: &Layout, words: &[u32], out: &mut ColumnBuffer) -> Result<()> {
    let words = &mut Words(words);
    let mut entries = 1;
    for level in &mut out.levels {
        let mut members = 0_usize;
        for &word in words.take(entries)? {
            let length = (word != NULL).then_some(word);
            level.push(length)?;
            members = members.saturating_add(usize::try_from(length.unwrap_or(0)).unwrap_or(usize::MAX));
        }
        entries = members;
    }
    if layout.may_be_null(layout.levels) {
        push_presence(words.take(words_of_bits(entries))?, entries, out)?;
    }
    if layout.varying > 0 {
        push_extents(layout.varying, words.take(entries.checked_mul(layout.varying).ok_or_else(lost)?)?, out)?;
    }
    out.item_count = out.item_count.saturating_add(entries);
    Ok(())
}

/// Appends the nulls of `count` items.
fn push_presence(words: &[u32], count: usize, out: &mut ColumnBuffer) -> Result<()> {
    let mut left = count;
    let mut at = out.item_count;
    for &word in words {
        let bits = left.min(32);
        for bit in 0..bits {
            // no overflow: an item takes memory
            push_bit(&mut out.validity, at + bit, word >> bit & 1 == 1)?;
        }
        let present = usize::try_from(word.count_ones()).unwrap_or(bits); // no bits after the items
        out.null_count += bits.saturating_sub(present);
        (left, at) = (left - bits, at + bits);
    }
    Ok(())
}

/// Appends extents and ends of items.
fn push_extents(varying: usize, words: &[u32], out: &mut ColumnBuffer) -> Result<()> {
    memory::extend(&mut out.extents, words)?;
    memory::reserve(&mut out.offsets, words.len() / varying)?; // at least 1
    let mut end = out.offsets.last().copied().unwrap_or(0);
    for extents in words.chunks_exact(varying) {
        let count = extents.iter().fold(1_u64, |count, &extent| count.saturating_mul(u64::from(extent)));
        end = end.saturating_add(count);
        out.offsets.push(end);
    }
    Ok(())
}

/// Makes offsets in counts offsets in elements.
fn scale(offsets: &mut [u64], inner_elements: usize) {
    if inner_elements != 1 {
        offsets.iter_mut().for_each(|offset| *offset = offset.saturating_mul(u64_of(inner_elements)));
    }
}

/// Returns the validity and the shape of a chunk with the lists and items of a buffer.
pub(in crate::read) fn parts(layout: &Layout, buffer: &ColumnBuffer) -> Result<(Option<Vec<u8>>, Vec<u8>)> {
    let (mut validity, mut shape) = (Vec::new(), Vec::new());
    let mut has_nulls = buffer.null_count > 0;
    for lists in &buffer.levels {
        has_nulls |= lists.null_count() > 0;
        validity.extend_from_slice(lists.bits());
        for &end in lists.offsets().iter().skip(1) {
            shape.extend(u32::try_from(end).map_err(|_| outside())?.to_le_bytes());
        }
    }
    match layout.may_be_null(layout.levels) {
        true => validity.extend_from_slice(&buffer.validity),
        false => validity.extend(all_present(buffer.item_count)),
    }
    push_item_shapes(layout.varying, &buffer.extents, &mut shape);
    Ok((has_nulls.then_some(validity), shape))
}
