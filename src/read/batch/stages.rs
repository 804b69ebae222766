//! The stages of a read, for callers that schedule them themselves: a loader that prefetches, an
//! asynchronous source, threads that only decode.
//!
//! 1. *Plan*: a [`ReadPlan`] contains the chunks, the byte ranges and the destination of each
//!    sample.
//! 2. *Fetch*: [`FetchedBytes`] holds the bytes of a plan. A [`Source`](crate::source::Source)
//!    reads many ranges at once.
//! 3. *Decode*: a [`Decoder`] fills the destinations. For several threads, a plan is divided into
//!    [`PlanSegment`]s. If a device decodes, [`Decoder::visit_blocks`] hands out the stored blocks
//!    instead.

pub use super::plan::{FetchedBytes, ReadPlan};
pub use crate::codec::{BlockScratch, StoredBlock};
pub use crate::read::decode::output::{BlockSamples, BlockVisitor};
pub use crate::read::decode::segments::PlanSegment;

use super::tasks::{Task, TaskBytes, TaskList, at_sample};
use crate::bytes::le::FILE_ORDER_IS_NATIVE;
use crate::bytes::memory;
use crate::bytes::pod::AlignedBytes;
use crate::format::content::check_unused_bits;
use crate::read::buffer::{ColumnBuffer, outside};
use crate::read::decode::decoder::TaskDecoder;
use crate::read::decode::output::{
    BlockEmitter, Destination, FixedBlocks, FixedOutput, WholeOutput, begin_without_values, check_delivered, too_many,
};
use crate::read::file::column_inner::ColumnInner;
use crate::{Error, Result};

/// Decodes chunks, and reuses its memory. Each thread needs its own decoder.
#[derive(Default)]
pub struct Decoder {
    pub(in crate::read) tasks: TaskDecoder,
}

impl Decoder {
    /// Returns a decoder that owns no memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes a plan. Fills one buffer for each column, in the order of the request. On failure,
    /// all buffers are empty.
    ///
    /// `bytes` must be the fetched bytes of the plan. Does no I/O. On failure, returns the error
    /// for the first failing sample, in order of column and index.
    ///
    /// Cost: decodes each chunk once, or only the requested samples if they are few and the
    /// encoding allows it. Allocates nothing once warmed up.
    pub fn decode(&mut self, plan: &ReadPlan, bytes: &FetchedBytes, out: &mut [ColumnBuffer]) -> Result<()> {
        let mut numbered = out.iter_mut().enumerate();
        let decoded = plan
            .check_outputs(numbered.len())
            .and_then(|()| numbered.try_for_each(|(number, buffer)| self.decode_column(plan, bytes, number, buffer)));
        decoded.inspect_err(|_| out.iter_mut().for_each(ColumnBuffer::clear))
    }

    /// Decodes column `number` of a plan, counted from 0, like [`Decoder::decode`].
    pub fn decode_column(
        &mut self,
        plan: &ReadPlan,
        bytes: &FetchedBytes,
        number: usize,
        out: &mut ColumnBuffer,
    ) -> Result<()> {
        self.try_decode_column(plan, bytes, number, out).inspect_err(|_| out.clear())
    }

    fn try_decode_column(
        &mut self,
        plan: &ReadPlan,
        bytes: &FetchedBytes,
        number: usize,
        out: &mut ColumnBuffer,
    ) -> Result<()> {
        let column = plan.column(number)?;
        let list = &plan.list;
        let begun = self.tasks.begin_output(column, list, Destination::Buffer(out));
        let decoded = begun.and_then(|()| {
            self.decode_tasks(plan, bytes, number, &mut |decoder, task, bytes| {
                decoder.decode_task(column, list, task, bytes, Destination::Buffer(out))
            })
        });
        let finished = decoded.and_then(|()| self.tasks.finish_output(number, column, list, Destination::Buffer(out)));
        finished.map(|_| ()).map_err(|error| column.in_column(error))
    }

    /// Calls `decode` with each task of a column and the bytes of the task.
    fn decode_tasks(
        &mut self,
        plan: &ReadPlan,
        bytes: &FetchedBytes,
        number: usize,
        decode: &mut dyn FnMut(&mut TaskDecoder, &Task, TaskBytes<'_>) -> Result<()>,
    ) -> Result<()> {
        plan.check_complete()?;
        bytes.check(plan)?;
        let tasks = &plan.list.tasks;
        let result = bytes.for_each(plan, plan.list.of_column(number), &mut |task, bytes| match tasks.get(task) {
            Some(task) => decode(&mut self.tasks, task, bytes),
            None => Err(Error::internal("a fetched chunk does not belong to any task of its plan")),
        });
        result.map_err(|(_, error)| error)
    }

    /// Decodes column number `column` of a plan, counted from 0, into a batch that several plans
    /// fill: sample `i` of the plan becomes sample `positions[i]` of `out`, which holds the bytes
    /// of all samples of the batch. Adds the positions of null samples to `nulls`; their bytes are
    /// zero.
    ///
    /// Fails if the column is ragged or nested, or if a position is outside the batch. Cost: same
    /// as [`Decoder::decode`].
    pub fn scatter(
        &mut self,
        plan: &ReadPlan,
        bytes: &FetchedBytes,
        column: usize,
        positions: &[usize],
        out: &mut [u8],
        nulls: &mut Vec<usize>,
    ) -> Result<()> {
        let inner = plan.column(column)?;
        let scattered = self.scatter_column(plan, bytes, column, positions, out);
        scattered.map_err(|error| inner.in_column(error))?;
        memory::reserve(nulls, self.tasks.nulls.len())?;
        nulls.extend(self.tasks.nulls.iter().filter_map(|&null| positions.get(null)));
        Ok(())
    }

    fn scatter_column(
        &mut self,
        plan: &ReadPlan,
        bytes: &FetchedBytes,
        number: usize,
        positions: &[usize],
        out: &mut [u8],
    ) -> Result<()> {
        let column = plan.column(number)?;
        let (count, layout) = (plan.sample_count(), column.layout());
        if layout.has_shape() {
            return Err(Error::bad_argument("the column is ragged or nested; decode it into a ColumnBuffer"));
        }
        if positions.len() != count {
            let message =
                format!("expected {count} positions, one for each sample of the plan, but got {}", positions.len());
            return Err(Error::bad_argument(message));
        }
        let (sample_bytes, batch_bytes) = (layout.inner_bytes, out.len());
        match first_of_run(positions) {
            Some(first) => {
                let batch_too_large = || too_many(first.saturating_add(count), sample_bytes);
                let start = first.checked_mul(sample_bytes).ok_or_else(batch_too_large)?;
                let length = count.checked_mul(sample_bytes).ok_or_else(batch_too_large)?;
                let last = first.saturating_add(count.saturating_sub(1));
                let bytes_out = out.get_mut(start..).and_then(|rest| rest.get_mut(..length));
                let bytes_out = bytes_out.ok_or_else(|| outside_batch(last, batch_bytes, sample_bytes))?;
                let mut out = WholeOutput { bytes: bytes_out, sample_bytes };
                self.decode_column_to(plan, bytes, number, column, &mut out)?;
                check_delivered(column, &plan.list.selection, &Destination::Bytes(out.bytes))
            }
            None => {
                let highest = positions.iter().copied().max().unwrap_or(0);
                if highest
                    .checked_add(1)
                    .and_then(|end| end.checked_mul(sample_bytes))
                    .is_none_or(|end| end > batch_bytes)
                {
                    return Err(outside_batch(highest, batch_bytes, sample_bytes));
                }
                let mut out = ScatteredOutput { bytes: out, sample_bytes, positions };
                self.decode_column_to(plan, bytes, number, column, &mut out)?;
                if layout.dtype.unused_bits() == 0 {
                    return Ok(());
                }
                (0..count).map(|sorted_index| plan.list.selection.get(sorted_index)).enumerate().try_for_each(
                    |(sorted_index, (sample, position))| {
                        let values = out.destination(sorted_index, position, 1)?;
                        check_unused_bits(layout.dtype, values).map_err(|error| at_sample(error, sample))
                    },
                )
            }
        }
    }

    fn decode_column_to(
        &mut self,
        plan: &ReadPlan,
        bytes: &FetchedBytes,
        number: usize,
        column: &ColumnInner,
        out: &mut impl FixedOutput,
    ) -> Result<()> {
        self.tasks.begin(0);
        let selection = &plan.list.selection;
        let mut decode = |decoder: &mut TaskDecoder, task: &Task, bytes: TaskBytes<'_>| {
            decoder.decode_fixed(column, selection, task, bytes, out)
        };
        self.decode_tasks(plan, bytes, number, &mut decode)?;
        self.tasks.copy_from_file(column.file.bytes().memory().unwrap_or(&[]), out)
    }

    /// Calls `visit` with the stored blocks that contain the samples of column number `column` of a
    /// plan, counted from 0. A device can then decode them. A block is visited once for each
    /// sequence of consecutive samples. Afterwards, `out` has the shapes and nulls of the samples,
    /// but no values; [`ColumnBuffer::value_start`] returns the offset at which the values of a
    /// sample belong.
    ///
    /// If devices cannot decode the encoding of a block, the block is decoded here and visited as a
    /// raw block.
    ///
    /// Cost: finding and verifying the blocks. Fails like [`Decoder::decode`], or with the error of
    /// `visit`. Also fails on a big-endian machine, because stored elements are little-endian. On
    /// failure, `out` is empty.
    pub fn visit_blocks(
        &mut self,
        plan: &ReadPlan,
        bytes: &FetchedBytes,
        column: usize,
        out: &mut ColumnBuffer,
        visit: &mut BlockVisitor<'_>,
    ) -> Result<()> {
        let inner = plan.column(column)?;
        self.tasks.visits_blocks = true;
        let visited = self.visit_column(plan, bytes, column, inner, out, visit);
        self.tasks.visits_blocks = false;
        visited.map_err(|error| inner.in_column(error)).inspect_err(|_| out.clear())
    }

    fn visit_column(
        &mut self,
        plan: &ReadPlan,
        bytes: &FetchedBytes,
        number: usize,
        column: &ColumnInner,
        out: &mut ColumnBuffer,
        visit: &mut BlockVisitor<'_>,
    ) -> Result<()> {
        if !FILE_ORDER_IS_NATIVE {
            return Err(Error::bad_argument("stored blocks are available only on little-endian machines"));
        }
        let (list, layout) = (&plan.list, column.layout());
        begin_visit(&mut self.tasks, column, list, out)?;
        let mut decoded = AlignedBytes::default();
        self.decode_tasks(plan, bytes, number, &mut |decoder, task, bytes| {
            visit_task(decoder, column, list, task, bytes, BlockEmitter { visit, decoded: &mut decoded })
        })?;
        let blocks = BlockEmitter { visit, decoded: &mut decoded };
        let mut fixed = FixedBlocks { blocks, sample_bytes: layout.inner_bytes, element_bytes: layout.element_bytes };
        self.tasks.copy_from_file(column.file.bytes().memory().unwrap_or(&[]), &mut fixed)?;
        finish_visit(&mut self.tasks, column, list, out)
    }
}

/// Returns the first of consecutive positions; `None` if they are not consecutive.
fn first_of_run(positions: &[usize]) -> Option<usize> {
    let first = positions.first().copied().unwrap_or(0);
    let is_run = positions.iter().zip(first..).all(|(&position, expected)| position == expected);
    is_run.then_some(first)
}

/// The destinations of samples at any positions in a batch.
struct ScatteredOutput<'o> {
    bytes: &'o mut [u8],
    sample_bytes: usize,
    /// The position in the batch, for each position in the plan.
    positions: &'o [usize],
}

impl FixedOutput for ScatteredOutput<'_> {
    const MAX_RUN: usize = 1;

    fn destination(&mut self, _sorted_index: usize, position: usize, _samples: usize) -> Result<&mut [u8]> {
        let position = self.positions.get(position).ok_or_else(outside)?;
        let start = position.saturating_mul(self.sample_bytes);
        let to = self.bytes.get_mut(start..).and_then(|rest| rest.get_mut(..self.sample_bytes));
        to.ok_or_else(outside)
    }
}

#[cold]
fn outside_batch(position: usize, batch_bytes: usize, sample_bytes: usize) -> Error {
    let count = batch_bytes.checked_div(sample_bytes).unwrap_or(0);
    Error::bad_argument(format!("position {position} is outside the batch, which has room for {count} samples"))
}

/// Prepares a buffer that will receive the shapes and nulls of samples, but no values.
fn begin_visit(decoder: &mut TaskDecoder, column: &ColumnInner, list: &TaskList, out: &mut ColumnBuffer) -> Result<()> {
    decoder.begin(0);
    begin_without_values(column, list, out)?;
    match column.layout().has_shape() {
        true => decoder.ragged.begin(list.selection.sample_count(), column.layout()),
        false => Ok(()),
    }
}

fn visit_task(
    decoder: &mut TaskDecoder,
    column: &ColumnInner,
    list: &TaskList,
    task: &Task,
    bytes: TaskBytes<'_>,
    blocks: BlockEmitter<'_>,
) -> Result<()> {
    let layout = column.layout();
    if !layout.has_shape() {
        let (sample_bytes, element_bytes) = (layout.inner_bytes, layout.element_bytes);
        let mut out = FixedBlocks { blocks, sample_bytes, element_bytes };
        return decoder.decode_fixed(column, &list.selection, task, bytes, &mut out);
    }
    let mut ragged = std::mem::take(&mut decoder.ragged);
    let mut out = ragged.output();
    out.blocks = Some(BlockEmitter { visit: &mut *blocks.visit, decoded: &mut *blocks.decoded });
    let visited = decoder.decode_ragged(column, &list.selection, task, bytes, &mut out);
    decoder.ragged = ragged;
    visited
}

fn finish_visit(
    decoder: &mut TaskDecoder,
    column: &ColumnInner,
    list: &TaskList,
    out: &mut ColumnBuffer,
) -> Result<()> {
    let layout = column.layout();
    if !layout.is_nested() {
        decoder.nulls.iter().for_each(|&null| out.set_null(null));
    }
    match layout.has_shape() {
        true => decoder.ragged.finish(layout, &list.selection, &[], &mut decoder.staging, false, out),
        false => Ok(()),
    }
}
