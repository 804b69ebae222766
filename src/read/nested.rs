//! The lists of samples of a nested column, staged sample by sample, and laid out level by level.

use super::buffer::ColumnBuffer;
use super::selection::Selection;
use super::staged::{RaggedValues, StagedValues, outside};
use crate::batch::product_of_extents;
use crate::format::content::{Content, all_present};
use crate::format::lists::null_in_level;
use crate::format::schema::Layout;
use crate::le::u64_of;
use crate::list_buffer::push_bit;
use crate::{Error, Result, memory};

/// The word of a null entry. No list is as long, and no extent as large.
const NULL: u32 = u32::MAX;

/// Appends the lists and the items' extents of sample `i` of a chunk to `words`, level by level: a
/// word for each list with its length, and for each item its varying extents, or one word if its
/// shape is fixed and it may be null.
pub(super) fn stage(layout: &Layout, content: &Content<'_>, i: usize, words: &mut Vec<u32>) -> Result<()> {
    let mut entries = i..i + 1; // below the chunk's sample count
    let mut level = 0;
    let items = content.items(layout, |lists| {
        memory::reserve(words, entries.len())?;
        for list in entries.clone() {
            let length = u32::try_from(lists.entries(&(list..list + 1))?.len()).map_err(|_| outside())?;
            let is_null = lists.is_null(list);
            if is_null && !layout.may_be_null(level) {
                return Err(null_in_level(level));
            }
            words.push(if is_null { NULL } else { length });
        }
        level += 1;
        entries = lists.entries(&entries)?;
        Ok(())
    })?;
    let words_of_item = words_of_item(layout);
    memory::reserve(words, entries.len().saturating_mul(words_of_item))?;
    if words_of_item == 0 {
        return Ok(());
    }
    for item in entries {
        items.check_extents(layout, item)?;
        if items.is_null(item) {
            words.extend(std::iter::repeat_n(NULL, words_of_item));
        } else if layout.varying == 0 {
            words.push(0);
        } else {
            for dimension in 0..layout.varying {
                words.push(items.extent(layout, item, dimension)?);
            }
        }
    }
    Ok(())
}

/// Returns the number of words that each item is staged as.
fn words_of_item(layout: &Layout) -> usize {
    match layout.varying {
        0 => usize::from(layout.may_be_null(layout.levels)),
        varying => varying,
    }
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

/// Lays out the samples of a request level by level. `values` has the values of each, by rank.
pub(super) fn finish(
    layout: &Layout,
    selection: &Selection,
    values: &[RaggedValues],
    file: &[u8],
    staged: &mut dyn StagedValues,
    out: &mut ColumnBuffer,
) -> Result<()> {
    out.begin_lists(layout.levels)?;
    if layout.is_ragged() {
        memory::reserve(&mut out.offsets, 1)?;
        out.offsets.push(0);
    }
    let mut by_position = memory::with_capacity(values.len())?;
    by_position.resize(values.len(), 0);
    for rank in 0..values.len() {
        *by_position.get_mut(selection.get(rank).1).ok_or_else(outside)? = rank;
    }
    for rank in by_position {
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
    let inner_elements = layout.inner_bytes / layout.element_bytes; // at least 1
    scale(&mut out.offsets, inner_elements);
    Ok(())
}

/// Appends the lists and items of a sample that was staged.
pub(super) fn push_sample(layout: &Layout, words: &[u32], out: &mut ColumnBuffer) -> Result<()> {
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
    let words_of_item = words_of_item(layout);
    if words_of_item > 0 {
        let items = words.take(entries.checked_mul(words_of_item).ok_or_else(lost)?)?;
        items.chunks_exact(words_of_item).try_for_each(|item| push_item(layout, item, out))?;
    } else {
        out.item_count = out.item_count.saturating_add(entries);
    }
    Ok(())
}

fn push_item(layout: &Layout, words: &[u32], out: &mut ColumnBuffer) -> Result<()> {
    let is_null = words.first() == Some(&NULL);
    if layout.may_be_null(layout.levels) {
        push_bit(&mut out.validity, out.item_count, !is_null)?;
        out.null_count += usize::from(is_null);
    }
    out.item_count += 1;
    if layout.varying == 0 {
        return Ok(());
    }
    memory::reserve(&mut out.extents, words.len())?;
    memory::reserve(&mut out.offsets, 1)?;
    let extents = words.iter().map(|&extent| if is_null { 0 } else { extent });
    out.extents.extend(extents.clone());
    let count = extents.fold(1_u64, |count, extent| count.saturating_mul(u64::from(extent)));
    let end = out.offsets.last().copied().unwrap_or(0).saturating_add(count);
    out.offsets.push(end);
    Ok(())
}

/// Makes offsets in counts offsets in elements.
fn scale(offsets: &mut [u64], inner_elements: usize) {
    if inner_elements != 1 {
        offsets.iter_mut().for_each(|offset| *offset = offset.saturating_mul(u64_of(inner_elements)));
    }
}

/// Returns the validity and the shape of a chunk with the lists and items of a buffer.
pub(super) fn parts(layout: &Layout, buffer: &ColumnBuffer) -> Result<(Option<Vec<u8>>, Vec<u8>)> {
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
    if layout.varying > 0 {
        let mut end = 0_u32;
        for extents in buffer.extents.chunks_exact(layout.varying) {
            let count = product_of_extents(extents).and_then(|count| u32::try_from(count).ok());
            end = count.and_then(|count| end.checked_add(count)).ok_or_else(outside)?;
            shape.extend(end.to_le_bytes());
        }
    }
    if layout.varying > 1 {
        for dimension in 0..layout.varying {
            let extents = buffer.extents.iter().skip(dimension).step_by(layout.varying);
            shape.extend(extents.flat_map(|extent| extent.to_le_bytes()));
        }
    }
    Ok((has_nulls.then_some(validity), shape))
}
