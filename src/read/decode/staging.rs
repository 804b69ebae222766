//! Stages ragged and nested samples while they are decoded, and then lays them out.
//!
//! The offset of such a sample in the buffer depends on the lengths of all samples before it, which
//! are known only after all are decoded. So each decoder appends the values of its samples to a
//! staging area, and records by sorted index where they are. If the values were staged in the order
//! of the request, the staging memory simply becomes the buffer. Otherwise the values are copied to
//! their offsets.
//!
//! The structure of a nested sample is staged as `u32` words: first, level by level, a word with
//! the length of each list; then a bit for each item if items can be null; then the varying extents
//! of each item. The samples are then laid out in the order of the request, level by level.

use super::output::BlockEmitter;
use crate::batch::push_bit;
use crate::bytes::le::u64_of;
use crate::bytes::memory;
use crate::bytes::pod::AlignedBytes;
use crate::format::content::{Content, all_present, push_item_shapes};
use crate::format::schema::Layout;
use crate::read::batch::tasks::Selection;
use crate::read::buffer::{ColumnBuffer, outside};
use crate::{Error, Result};
use std::ops::Range;

/// The values of a decoded ragged sample.
#[derive(Clone, Debug, Default)]
pub(in crate::read) struct RaggedValues {
    /// The number of the decoder that staged the values; `None` if they are in the file.
    pub decoder: Option<usize>,
    pub bytes: Range<usize>,
    /// For a nested column: the number of the decoder that staged the lists, and the range of their
    /// words.
    pub stager: usize,
    pub words: Range<usize>,
}

impl RaggedValues {
    /// Returns the values, from the file or from the staged values of the decoders.
    fn values<'v>(&self, file: &'v [u8], staged: &'v dyn StagedValues) -> Option<&'v [u8]> {
        let all = self.decoder.map_or(file, |decoder| staged.of(decoder));
        all.get(self.bytes.clone())
    }
}

/// The values and lists of ragged or nested samples that one decoder has staged.
#[derive(Default)]
pub(in crate::read) struct Staging {
    pub values: AlignedBytes,
    pub words: Vec<u32>,
}

impl Staging {
    pub(in crate::read) fn clear(&mut self) {
        self.values.clear();
        self.words.clear();
    }
}

/// The staged values and lists of all decoders of a request.
pub(in crate::read) trait StagedValues {
    /// Returns the values that decoder number `decoder` has staged.
    fn of(&self, decoder: usize) -> &[u8];

    /// Returns the lists that decoder number `decoder` has staged.
    fn words(&self, decoder: usize) -> &[u32];

    /// If the values of decoder 0 end at `end`, swaps them with `out`. This avoids a copy, because
    /// the values were staged in the order of the output. Returns whether they were swapped.
    fn exchange(&mut self, end: usize, out: &mut AlignedBytes) -> bool;
}

/// The values and lists of the only decoder.
impl StagedValues for Staging {
    fn of(&self, _decoder: usize) -> &[u8] {
        self.values.as_slice()
    }

    fn words(&self, _decoder: usize) -> &[u32] {
        &self.words
    }

    fn exchange(&mut self, end: usize, out: &mut AlignedBytes) -> bool {
        if self.values.as_slice().len() != end {
            return false;
        }
        std::mem::swap(&mut self.values, out);
        true
    }
}

/// The destinations of ragged samples with consecutive sorted indices, from `first_sorted_index`.
pub(in crate::read) struct RaggedOutput<'o> {
    pub first_sorted_index: usize,
    pub values: &'o mut [RaggedValues],
    /// The varying extents of each sample.
    pub extents: &'o mut [u32],
    /// If set, receives the blocks of the values. The values are then not staged.
    pub blocks: Option<BlockEmitter<'o>>,
}

/// The values and extents of the ragged samples of a request, by sorted index. The memory is
/// reused.
#[derive(Default)]
pub(in crate::read) struct RaggedScratch {
    pub values: Vec<RaggedValues>,
    pub extents: Vec<u32>,
    /// For a nested column: the sorted index of each position.
    by_position: Vec<usize>,
}

impl RaggedScratch {
    pub(in crate::read) fn begin(&mut self, sample_count: usize, layout: &Layout) -> Result<()> {
        self.values.clear();
        self.extents.clear();
        memory::resize(&mut self.values, sample_count, RaggedValues::default())?;
        memory::resize(&mut self.extents, sample_count.saturating_mul(sample_extents(layout)), 0)
    }

    pub(in crate::read) fn output(&mut self) -> RaggedOutput<'_> {
        RaggedOutput { first_sorted_index: 0, values: &mut self.values, extents: &mut self.extents, blocks: None }
    }

    /// Fills `out`, which must be prepared, in the order of the request. `staged` holds the values
    /// of each decoder; `file` is the file if it is in memory. If `has_values` is false, adds no
    /// values.
    pub(in crate::read) fn finish(
        &mut self,
        layout: &Layout,
        selection: &Selection,
        file: &[u8],
        staged: &mut dyn StagedValues,
        has_values: bool,
        out: &mut ColumnBuffer,
    ) -> Result<()> {
        if layout.is_nested() {
            let Self { values, by_position, .. } = self;
            if !has_values {
                values.iter_mut().for_each(|sample| (sample.decoder, sample.bytes) = (Some(0), 0..0));
            }
            return lay_out_lists(layout, selection, values, file, staged, by_position, out);
        }
        let count = self.values.len();
        memory::resize(&mut out.offsets, count.saturating_add(1), 0)?;
        memory::resize(&mut out.extents, count.saturating_mul(layout.varying), 0)?;
        let mut is_in_order = selection.is_range();
        let mut end = 0;
        for (sorted_index, values) in self.values.iter().enumerate() {
            let (_, position) = selection.get(sorted_index);
            let elements = values.bytes.len() / layout.dtype.element_bytes();
            *out.offsets.get_mut(position + 1).ok_or_else(outside)? = u64_of(elements);
            is_in_order &= values.decoder == Some(0) && values.bytes.start == end;
            end = values.bytes.end;
        }
        let extents = self.extents.chunks_exact(layout.varying.max(1));
        for (sorted_index, extents) in extents.enumerate() {
            let start = selection.get(sorted_index).1.saturating_mul(layout.varying);
            let to = out.extents.get_mut(start..).and_then(|rest| rest.get_mut(..extents.len()));
            to.ok_or_else(outside)?.copy_from_slice(extents); // equal lengths
        }
        let mut total = 0_u64;
        for offset in &mut out.offsets {
            total = total.saturating_add(*offset);
            *offset = total;
        }
        if !has_values {
            return Ok(());
        }
        if is_in_order && staged.exchange(end, &mut out.values) {
            return Ok(());
        }
        if selection.is_range() {
            // if nothing was staged, swaps the memory of the buffer and of the staging area back
            staged.exchange(0, &mut out.values);
        }
        let total = usize::try_from(total).unwrap_or(usize::MAX).saturating_mul(layout.dtype.element_bytes());
        out.values.resize(total)?;
        for (sorted_index, values) in self.values.iter().enumerate() {
            let start = out.offsets.get(selection.get(sorted_index).1).copied().unwrap_or(u64::MAX);
            let start = usize::try_from(start).unwrap_or(usize::MAX).saturating_mul(layout.dtype.element_bytes());
            let to = out.values.as_mut_slice().get_mut(start..).and_then(|rest| rest.get_mut(..values.bytes.len()));
            let (Some(from), Some(to)) = (values.values(file, staged), to) else { return Err(outside()) };
            to.copy_from_slice(from); // equal lengths
        }
        Ok(())
    }
}

/// Returns the number of extents that are staged for each sample. It is 0 for a nested column,
/// where items have extents but samples do not.
pub(in crate::read) fn sample_extents(layout: &Layout) -> usize {
    if layout.is_nested() { 0 } else { layout.varying }
}

/// Checks the varying extents of sample `i` of a chunk, and copies them to the start of `out`.
pub(in crate::read) fn copy_extents(layout: &Layout, content: &Content<'_>, i: usize, out: &mut [u32]) -> Result<()> {
    content.check_extents(layout, i)?;
    for (dimension, to) in (0..layout.varying).zip(out) {
        *to = content.extent(layout, i, dimension)?;
    }
    Ok(())
}

/// The word that stands for a null list. No list has this many members: limits the members
/// that take bytes in the shape part, and the members that take no bytes at all. All other members
/// take bytes of the values, and limits the length of the values.
const NULL: u32 = u32::MAX;

/// Appends the words of the lists and items of sample `i` of a chunk to `words`.
pub(in crate::read) fn stage_sample(
    layout: &Layout,
    content: &Content<'_>,
    i: usize,
    words: &mut Vec<u32>,
) -> Result<()> {
    let mut entries = i..i + 1; // `i` is below the chunk's sample count
    let mut level = 0;
    let items = content.items(layout, |lists| {
        memory::reserve(words, entries.len())?;
        for list in entries.clone() {
            let entries = lists.entries_of(list, layout.may_be_null(level), level)?;
            // lossless: ends are `u32`
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

/// Appends a bit for each item: 1 if it is present, 0 if it is null.
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

/// Words that are consumed from the start.
struct Words<'w>(&'w [u32]);

impl<'w> Words<'w> {
    fn take(&mut self, count: usize) -> Result<&'w [u32]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(too_early)?;
        self.0 = rest;
        Ok(taken)
    }
}

#[cold]
fn too_early() -> Error {
    Error::internal("the staged lists of a sample end too early")
}

/// Lays out the samples of a request level by level in `out`, which must be prepared. `values` is
/// indexed by sorted index. `by_position` is reusable memory.
fn lay_out_lists(
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
        for sorted_index in 0..values.len() {
            *by_position.get_mut(selection.get(sorted_index).1).ok_or_else(outside)? = sorted_index;
        }
    }
    for position in 0..values.len() {
        // if the request is a range, sorted index and position are equal
        let sorted_index = by_position.get(position).copied().unwrap_or(position);
        let sample = values.get(sorted_index).ok_or_else(outside)?;
        let words = staged.words(sample.stager).get(sample.words.clone()).ok_or_else(too_early)?;
        push_sample(layout, words, out)?;
        out.push_bytes(sample.values(file, staged).ok_or_else(outside)?)?;
    }
    let inner_elements = layout.inner_bytes / layout.dtype.element_bytes(); // exact: whole elements
    scale(&mut out.offsets, inner_elements);
    Ok(())
}

/// Appends the lists and items of a staged sample.
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
        push_extents(layout.varying, words.take(entries.checked_mul(layout.varying).ok_or_else(too_early)?)?, out)?;
    }
    out.item_count = out.item_count.saturating_add(entries);
    Ok(())
}

/// Appends the validity of `count` items.
fn push_presence(words: &[u32], count: usize, out: &mut ColumnBuffer) -> Result<()> {
    let mut left = count;
    let mut at = out.item_count;
    for &word in words {
        let bits = left.min(32);
        for bit in 0..bits {
            // no overflow: every item takes memory
            push_bit(&mut out.validity, at + bit, word >> bit & 1 == 1)?;
        }
        let present = usize::try_from(word.count_ones()).unwrap_or(bits); // bits after the last item are 0
        out.null_count += bits.saturating_sub(present);
        (left, at) = (left - bits, at + bits);
    }
    Ok(())
}

/// Appends the extents and the ends of items.
fn push_extents(varying: usize, words: &[u32], out: &mut ColumnBuffer) -> Result<()> {
    memory::extend(&mut out.extents, words)?;
    memory::reserve(&mut out.offsets, words.len() / varying)?; // no division by zero: at least 1
    let mut end = out.offsets.last().copied().unwrap_or(0);
    for extents in words.chunks_exact(varying) {
        let count = extents.iter().fold(1_u64, |count, &extent| count.saturating_mul(u64::from(extent)));
        end = end.saturating_add(count);
        out.offsets.push(end);
    }
    Ok(())
}

/// Converts offsets from units of `inner_elements` elements to single elements.
fn scale(offsets: &mut [u64], inner_elements: usize) {
    if inner_elements != 1 {
        offsets.iter_mut().for_each(|offset| *offset = offset.saturating_mul(u64_of(inner_elements)));
    }
}

/// Returns the validity and the shape of a chunk that has the lists and items of a buffer.
pub(in crate::read) fn chunk_parts(layout: &Layout, buffer: &ColumnBuffer) -> Result<(Option<Vec<u8>>, Vec<u8>)> {
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
