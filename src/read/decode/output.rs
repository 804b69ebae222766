//! The destinations of decoded samples.
//!
//! The destinations of samples of a fixed shape are known before anything is decoded
//! ([`FixedOutput`]): the slots of a slice or buffer, or some of these slots for one segment of a
//! divided request. The length of a destination is checked before memory is allocated for it.
//! Delivered values are checked for bits that their type does not use. One pass at the end covers
//! values from every path: decoded, copied from a map, or read straight to their destination.
//!
//! Samples whose blocks are decoded elsewhere do not have a destination. Their stored blocks are
//! handed out instead ([`BlockEmitter`]). Blocks of encodings that devices do not decode are
//! decoded here and handed out as raw elements, so a visitor needs only one path.

use crate::bytes::le::{self, u64_of};
use crate::bytes::pod::AlignedBytes;
use crate::codec::{Body, StoredBlock};
use crate::format::content::check_unused_bits;
use crate::format::schema::Layout;
use crate::read::batch::tasks::{Selection, TaskList, at_sample};
use crate::read::buffer::{ColumnBuffer, outside};
use crate::read::chunk::open_chunk::OpenChunk;
use crate::read::file::column_inner::ColumnInner;
use crate::{Error, Result};
use std::ops::Range;

/// The destinations of samples of a fixed shape.
pub(in crate::read) trait FixedOutput {
    /// The maximum number of consecutive samples whose destinations are contiguous.
    const MAX_RUN: usize;

    /// Returns the destination of `samples` samples at consecutive positions of the request.
    fn destination(&mut self, sorted_index: usize, position: usize, samples: usize) -> Result<&mut [u8]>;

    /// Delivers raw samples whose values are at the start of `from`. `element_bytes` is 1 if
    /// elements are already in the byte order of this machine.
    #[inline]
    fn copy(&mut self, to: SampleTarget, from: &[u8], element_bytes: usize) -> Result<()> {
        let to = self.destination(to.sorted_index, to.position, to.samples)?;
        to.copy_from_slice(from.get(..to.len()).ok_or_else(outside)?); // equal lengths
        le::swap_to_native(element_bytes, to);
        Ok(())
    }

    /// Delivers samples whose values are a range of the values of a chunk.
    #[inline]
    fn decode(
        &mut self,
        to: SampleTarget,
        chunk: &mut OpenChunk,
        column: &ColumnInner,
        body: Body<'_>,
        values: &Range<usize>,
    ) -> Result<()> {
        chunk.copy(column, body, values, self.destination(to.sorted_index, to.position, to.samples)?)
    }
}

/// The target of samples at consecutive positions of a request.
#[derive(Clone, Copy)]
pub(in crate::read) struct SampleTarget {
    pub sorted_index: usize,
    pub position: usize,
    pub samples: usize,
}

/// All destinations, in the order of the request.
pub(in crate::read) struct WholeOutput<'o> {
    pub bytes: &'o mut [u8],
    pub sample_bytes: usize,
}

impl FixedOutput for WholeOutput<'_> {
    const MAX_RUN: usize = usize::MAX;

    #[inline]
    fn destination(&mut self, _sorted_index: usize, position: usize, samples: usize) -> Result<&mut [u8]> {
        let start = position.saturating_mul(self.sample_bytes);
        let end = start.saturating_add(samples.saturating_mul(self.sample_bytes));
        self.bytes.get_mut(start..end).ok_or_else(outside)
    }
}

/// The destinations of consecutive sorted indices.
#[cfg_attr(not(feature = "rayon"), allow(dead_code))]
pub(in crate::read) struct SplitOutput<'p, 'o> {
    pub destinations: &'p mut [&'o mut [u8]],
    pub first_sorted_index: usize,
}

impl FixedOutput for SplitOutput<'_, '_> {
    const MAX_RUN: usize = 1;

    fn destination(&mut self, sorted_index: usize, _position: usize, _samples: usize) -> Result<&mut [u8]> {
        let found = self.destinations.get_mut(sorted_index.saturating_sub(self.first_sorted_index));
        found.map(|destination| &mut **destination).ok_or_else(outside)
    }
}

/// Copies the values of the samples in `sorted_indices`. The samples were read individually.
pub(in crate::read) fn copy_values<O: FixedOutput>(
    layout: &Layout,
    selection: &Selection,
    sorted_indices: &Range<usize>,
    values: &[u8],
    out: &mut O,
) -> Result<()> {
    let first = selection.get(sorted_indices.start).0;
    let mut sorted_index = sorted_indices.start;
    while sorted_index < sorted_indices.end {
        let (sample, position) = selection.get(sorted_index);
        let run = selection.run(sorted_index, sorted_indices.end).clamp(1, O::MAX_RUN);
        let start = usize::try_from(sample.saturating_sub(first)).unwrap_or(usize::MAX);
        let from = values.get(start.saturating_mul(layout.inner_bytes)..).ok_or_else(outside)?;
        out.copy(SampleTarget { sorted_index, position, samples: run }, from, layout.element_bytes)?;
        sorted_index += run;
    }
    Ok(())
}

/// The destination of the samples of one column.
pub(in crate::read) enum Destination<'o> {
    Buffer(&'o mut ColumnBuffer),
    /// Memory that is exactly as long as all samples together. Their shape is fixed.
    Bytes(&'o mut [u8]),
}

impl<'o> Destination<'o> {
    /// Returns the destinations of all samples. Each sample takes `sample_bytes` bytes.
    pub(in crate::read) fn whole(self, sample_bytes: usize) -> WholeOutput<'o> {
        let bytes = match self {
            Destination::Buffer(buffer) => buffer.values.as_mut_slice(),
            Destination::Bytes(bytes) => bytes,
        };
        WholeOutput { bytes, sample_bytes }
    }
}

/// Checks for delivered bools, and for delivered elements of 4 or 6 bits. In languages
/// that have such types, a byte with an unused bit set would be an invalid value.
pub(in crate::read) fn check_delivered(
    column: &ColumnInner,
    selection: &Selection,
    output: &Destination<'_>,
) -> Result<()> {
    let values = match output {
        Destination::Buffer(buffer) => buffer.bytes(),
        Destination::Bytes(bytes) => bytes,
    };
    let Err(error) = check_unused_bits(column.layout().dtype, values) else { return Ok(()) };
    let unused = column.layout().dtype.unused_bits();
    let at = values.iter().position(|&byte| byte & unused != 0).unwrap_or(0);
    let position = match output {
        Destination::Buffer(buffer) => buffer.position_of_byte(at),
        Destination::Bytes(_) => at / column.layout().inner_bytes.max(1),
    };
    Err(match selection.at_position(position) {
        Some(sample) => at_sample(error, sample),
        None => error,
    })
}

/// Prepares a buffer for the selected samples of a column, without allocating memory for their
/// values.
pub(in crate::read) fn begin_without_values(
    column: &ColumnInner,
    tasks: &TaskList,
    buffer: &mut ColumnBuffer,
) -> Result<()> {
    let (selection, layout) = (&tasks.selection, column.layout());
    selection.last().map_or(Ok(()), |last| column.check_sample(last))?; // before memory is allocated
    buffer.begin(column.schema(), selection.sample_count())?;
    match layout.has_shape() {
        true => Ok(()),
        false => column.file.check_decoded_bytes(u64_of(layout.inner_bytes)),
    }
}

/// Prepares a buffer for the selected samples of a column. If the shape is fixed, allocates memory
/// for their values.
pub(in crate::read) fn begin_buffer(column: &ColumnInner, tasks: &TaskList, buffer: &mut ColumnBuffer) -> Result<()> {
    let (count, layout) = (tasks.selection.sample_count(), column.layout());
    begin_without_values(column, tasks, buffer)?;
    if layout.has_shape() {
        return Ok(());
    }
    let bytes = count.checked_mul(layout.inner_bytes).ok_or_else(|| too_many(count, layout.inner_bytes))?;
    buffer.values.resize(bytes)
}

/// Checks that a destination has exactly the length of `count` samples of a fixed shape.
pub(in crate::read) fn check_length(column: &ColumnInner, count: usize, length: usize) -> Result<()> {
    let layout = column.layout();
    if layout.has_shape() {
        return Err(Error::bad_argument("the column is ragged or nested; gather it into a ColumnBuffer"));
    }
    if count.checked_mul(layout.inner_bytes) == Some(length) {
        return Ok(());
    }
    let message =
        format!("{count} samples take {} bytes each, but the destination has {length} bytes", layout.inner_bytes);
    Err(Error::bad_argument(message))
}

/// Returns the error for samples of a fixed shape that do not fit in memory.
pub(in crate::read) fn too_many(sample_count: usize, sample_bytes: usize) -> Error {
    Error::over_limit(format!("{sample_count} samples of {sample_bytes} bytes do not fit in memory"))
}

/// The requested elements of a stored block.
#[derive(Clone, Debug)]
pub struct BlockSamples<'a> {
    /// The block, verified according to the reader's policy.
    pub block: StoredBlock<'a>,
    /// The elements, counted from the start of the block. Not empty.
    pub elements: Range<usize>,
    /// The position in the request of the sample to which `offset` refers.
    pub position: usize,
    /// The offset in bytes of the elements from the start of that sample's values. If samples are
    /// consecutive in both file and request, the elements can belong to several of them.
    pub offset: usize,
}

/// A function that receives the blocks of a request.
pub type BlockVisitor<'v> = dyn FnMut(BlockSamples<'_>) -> Result<()> + 'v;

/// Hands out blocks to a visitor.
pub(in crate::read) struct BlockEmitter<'o> {
    pub visit: &'o mut BlockVisitor<'o>,
    /// Memory for elements of blocks that are decoded here.
    pub decoded: &'o mut AlignedBytes,
}

impl BlockEmitter<'_> {
    fn raw(&mut self, position: usize, element_bytes: usize, elements: &[u8]) -> Result<()> {
        if elements.is_empty() {
            return Ok(());
        }
        let block = StoredBlock::raw(element_bytes, elements);
        (self.visit)(BlockSamples { elements: 0..block.element_count(), block, position, offset: 0 })
    }

    /// Hands out the blocks that contain a range of the values of a chunk. The range has the values
    /// of consecutive samples, starting with the sample at `position` in the request.
    pub(super) fn emit(
        &mut self,
        position: usize,
        chunk: &mut OpenChunk,
        column: &ColumnInner,
        body: Body<'_>,
        values: &Range<usize>,
    ) -> Result<()> {
        let element_bytes = column.layout().element_bytes;
        let (visit, mut offset) = (&mut *self.visit, 0_usize);
        let is_emitted = chunk.visit_blocks(column, body, values, &mut |block, elements| {
            let bytes = elements.len().saturating_mul(element_bytes);
            visit(BlockSamples { block, elements, position, offset })?;
            offset = offset.saturating_add(bytes);
            Ok(())
        })?;
        if is_emitted {
            return Ok(());
        }
        if chunk.is_mapped() {
            let stored = chunk.content(body).values.get(values.clone());
            return self.raw(position, element_bytes, stored.ok_or_else(outside)?);
        }
        chunk.check_length(body, values)?;
        let mut decoded = std::mem::take(self.decoded);
        let delivered = decoded.resize(values.len()).and_then(|()| {
            chunk.copy(column, body, values, decoded.as_mut_slice())?;
            self.raw(position, element_bytes, decoded.as_slice())
        });
        *self.decoded = decoded;
        delivered
    }
}

/// Hands out the blocks of samples of a fixed shape.
pub(in crate::read) struct FixedBlocks<'o> {
    pub blocks: BlockEmitter<'o>,
    pub sample_bytes: usize,
    pub element_bytes: usize,
}

impl FixedOutput for FixedBlocks<'_> {
    const MAX_RUN: usize = usize::MAX;

    /// Always fails, because samples do not have destinations here.
    fn destination(&mut self, _sorted_index: usize, _position: usize, _samples: usize) -> Result<&mut [u8]> {
        Err(outside())
    }

    fn copy(&mut self, to: SampleTarget, from: &[u8], _element_bytes: usize) -> Result<()> {
        let bytes = to.samples.saturating_mul(self.sample_bytes);
        self.blocks.raw(to.position, self.element_bytes, from.get(..bytes).ok_or_else(outside)?)
    }

    fn decode(
        &mut self,
        to: SampleTarget,
        chunk: &mut OpenChunk,
        column: &ColumnInner,
        body: Body<'_>,
        values: &Range<usize>,
    ) -> Result<()> {
        self.blocks.emit(to.position, chunk, column, body, values)
    }
}
