//! Destinations of decoded samples.

use super::block_samples::VisitedBlocks;
use super::nested;
use super::staged::{RaggedValues, StagedValues};
use crate::codec::Body;
use crate::format::content::Content;
use crate::format::schema::Layout;
use crate::le::{self, u64_of};
use crate::read::batch::selection::Selection;
use crate::read::buffer::{ColumnBuffer, outside};
use crate::read::chunk::open_chunk::OpenChunk;
use crate::read::file::opened_column::OpenedColumn;
use crate::{Result, memory};
use std::ops::Range;

/// The destinations of samples of a fixed shape.
pub(in crate::read) trait FixedOutput {
    /// The most samples whose destinations can be taken at once.
    const LONGEST_RUN: usize;

    /// Returns the destination of `samples` samples whose positions in the request follow each
    /// other.
    fn destination(&mut self, rank: usize, position: usize, samples: usize) -> Result<&mut [u8]>;

    /// Delivers samples with whose values `from` begins, stored as they are. `element_bytes` is 1
    /// if elements are in the byte order of this machine.
    #[inline]
    fn copy(&mut self, to: SamplePlace, from: &[u8], element_bytes: usize) -> Result<()> {
        let to = self.destination(to.rank, to.position, to.samples)?;
        to.copy_from_slice(from.get(..to.len()).ok_or_else(outside)?); // equal lengths
        le::swap_to_native(element_bytes, to);
        Ok(())
    }

    /// Delivers samples that are some bytes of the values of a chunk.
    #[inline]
    fn decode(
        &mut self,
        to: SamplePlace,
        chunk: &mut OpenChunk,
        column: &OpenedColumn,
        body: Body<'_>,
        values: &Range<usize>,
    ) -> Result<()> {
        chunk.copy(column, body, values, self.destination(to.rank, to.position, to.samples)?)
    }
}

/// Where samples go that follow each other in a request.
#[derive(Clone, Copy)]
pub(in crate::read) struct SamplePlace {
    pub rank: usize,
    pub position: usize,
    pub samples: usize,
}

/// All destinations, in the order of the request.
pub(in crate::read) struct WholeOutput<'o> {
    pub bytes: &'o mut [u8],
    pub sample_bytes: usize,
}

impl FixedOutput for WholeOutput<'_> {
    const LONGEST_RUN: usize = usize::MAX;

    #[inline]
    fn destination(&mut self, _rank: usize, position: usize, samples: usize) -> Result<&mut [u8]> {
        let start = position.saturating_mul(self.sample_bytes);
        let end = start.saturating_add(samples.saturating_mul(self.sample_bytes));
        self.bytes.get_mut(start..end).ok_or_else(outside)
    }
}

/// The destinations of consecutive ranks.
#[cfg_attr(not(feature = "rayon"), allow(dead_code))]
pub(in crate::read) struct SplitOutput<'p, 'o> {
    pub destinations: &'p mut [&'o mut [u8]],
    pub first_rank: usize,
}

impl FixedOutput for SplitOutput<'_, '_> {
    const LONGEST_RUN: usize = 1;

    fn destination(&mut self, rank: usize, _position: usize, _samples: usize) -> Result<&mut [u8]> {
        let found = self.destinations.get_mut(rank.saturating_sub(self.first_rank));
        found.map(|destination| &mut **destination).ok_or_else(outside)
    }
}

/// Ragged samples of consecutive ranks, the first of which is `first_rank`.
pub(in crate::read) struct RaggedOutput<'o> {
    pub first_rank: usize,
    pub values: &'o mut [RaggedValues],
    /// Varying extents of each.
    pub extents: &'o mut [u32],
    /// Takes the blocks that have the values, in place of the staging.
    pub blocks: Option<VisitedBlocks<'o>>,
}

/// Values and extents of the ragged samples of a request, by rank, in memory that is reused.
#[derive(Default)]
pub(in crate::read) struct RaggedScratch {
    pub values: Vec<RaggedValues>,
    pub extents: Vec<u32>,
    /// Of a nested column: the rank of each position.
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
        RaggedOutput { first_rank: 0, values: &mut self.values, extents: &mut self.extents, blocks: None }
    }

    /// Fills `out`, which has been begun, in the order of the request. `staged` are the values that
    /// each decoder has staged, `file` is the file, if it is in memory. Without `has_values`, `out`
    /// gets none.
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
            return nested::finish(layout, selection, values, file, staged, by_position, out);
        }
        let count = self.values.len();
        memory::resize(&mut out.offsets, count.saturating_add(1), 0)?;
        memory::resize(&mut out.extents, count.saturating_mul(layout.varying), 0)?;
        let mut is_in_order = selection.is_range();
        let mut end = 0;
        for (rank, values) in self.values.iter().enumerate() {
            let (_, position) = selection.get(rank);
            let elements = values.bytes.len() / layout.dtype.element_bytes();
            *out.offsets.get_mut(position + 1).ok_or_else(outside)? = u64_of(elements);
            is_in_order &= values.decoder == Some(0) && values.bytes.start == end;
            end = values.bytes.end;
        }
        let extents = self.extents.chunks_exact(layout.varying.max(1));
        for (rank, extents) in extents.enumerate() {
            let start = selection.get(rank).1.saturating_mul(layout.varying);
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
            // if nothing was staged: each gets its own memory again
            staged.exchange(0, &mut out.values);
        }
        let total = usize::try_from(total).unwrap_or(usize::MAX).saturating_mul(layout.dtype.element_bytes());
        out.values.resize(total)?;
        for (rank, values) in self.values.iter().enumerate() {
            let from = match values.decoder {
                None => file.get(values.bytes.clone()),
                Some(decoder) => staged.of(decoder).get(values.bytes.clone()),
            };
            let start = out.offsets.get(selection.get(rank).1).copied().unwrap_or(u64::MAX);
            let start = usize::try_from(start).unwrap_or(usize::MAX).saturating_mul(layout.dtype.element_bytes());
            let to = out.values.as_mut_slice().get_mut(start..).and_then(|rest| rest.get_mut(..values.bytes.len()));
            let (Some(from), Some(to)) = (from, to) else { return Err(outside()) };
            to.copy_from_slice(from); // equal lengths
        }
        Ok(())
    }
}

/// Returns the number of extents that are staged for each sample: none of a nested column.
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

/// Copies the values of samples that were read alone. `ranks` are theirs.
pub(in crate::read) fn copy_values<O: FixedOutput>(
    layout: &Layout,
    selection: &Selection,
    ranks: &Range<usize>,
    values: &[u8],
    out: &mut O,
) -> Result<()> {
    let first = selection.get(ranks.start).0;
    let mut rank = ranks.start;
    while rank < ranks.end {
        let (sample, position) = selection.get(rank);
        let run = selection.run(rank, ranks.end).clamp(1, O::LONGEST_RUN);
        let start = usize::try_from(sample.saturating_sub(first)).unwrap_or(usize::MAX);
        let from = values.get(start.saturating_mul(layout.inner_bytes)..).ok_or_else(outside)?;
        out.copy(SamplePlace { rank, position, samples: run }, from, layout.element_bytes)?;
        rank += run;
    }
    Ok(())
}
