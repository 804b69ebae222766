//! Samples whose blocks are decoded elsewhere, such as on a GPU.
//!
//! Everything but decoding happens as for other reads: chunks are found, their heads and blocks are
//! checked, validity and shapes are decoded. The outputs of a [`Decoder`] are then ones that hand
//! blocks out, and have no memory for values.

use super::block_samples::{VisitBlocks, VisitedBlocks};
use super::decoder::Decoder;
use super::destination::begin_without_values;
use super::output::{FixedOutput, SamplePlace};
use crate::codec::Body;
use crate::le::FILE_ORDER_IS_NATIVE;
use crate::pod::AlignedBytes;
use crate::read::batch::fetched_bytes::FetchedBytes;
use crate::read::batch::plan::ReadPlan;
use crate::read::batch::tasks::{Task, TaskList};
use crate::read::batch::waves::TaskBytes;
use crate::read::buffer::{ColumnBuffer, outside};
use crate::read::chunk::open_chunk::OpenChunk;
use crate::read::file::opened_column::OpenedColumn;
use crate::{Error, Result};
use std::ops::Range;

impl Decoder {
    /// Calls `visit` with the stored blocks that have the samples of a column of a plan, counted
    /// from 0, in place of decoding them: for a device that decodes them. A block comes once for
    /// each run of samples. Afterwards, `out` has the shapes and nulls of the samples, and no
    /// values; [`ColumnBuffer::value_start`] says where those of each sample belong.
    ///
    /// Elements of encodings that devices do not decode are decoded, and come as raw blocks.
    ///
    /// Cost: of finding and checking the blocks. Fails as [`Decoder::decode`] does, or with the
    /// error of `visit`; `out` is empty then. A big-endian machine is refused: elements have the
    /// byte order of the file.
    pub fn visit_blocks(
        &mut self,
        plan: &ReadPlan,
        bytes: &FetchedBytes,
        column: usize,
        out: &mut ColumnBuffer,
        visit: &mut VisitBlocks<'_>,
    ) -> Result<()> {
        let opened = plan.column(column)?;
        self.leaves_blocks = true;
        let visited = self.visit_column(plan, bytes, column, opened, out, visit);
        self.leaves_blocks = false;
        visited.map_err(|error| opened.in_column(error)).inspect_err(|_| out.clear())
    }

    fn visit_column(
        &mut self,
        plan: &ReadPlan,
        bytes: &FetchedBytes,
        number: usize,
        column: &OpenedColumn,
        out: &mut ColumnBuffer,
        visit: &mut VisitBlocks<'_>,
    ) -> Result<()> {
        if !FILE_ORDER_IS_NATIVE {
            return Err(Error::bad_argument("stored blocks are handed out on little-endian machines only"));
        }
        let (list, layout) = (&plan.list, column.layout());
        self.begin_visit(column, list, out)?;
        let mut decoded = AlignedBytes::default();
        self.decode_tasks(plan, bytes, number, &mut |decoder, task, bytes| {
            decoder.visit_task(column, list, task, bytes, VisitedBlocks { visit, decoded: &mut decoded })
        })?;
        let blocks = VisitedBlocks { visit, decoded: &mut decoded };
        let mut fixed = FixedBlocks { blocks, sample_bytes: layout.inner_bytes, element_bytes: layout.element_bytes };
        self.copy_from_file(column.file.bytes().memory().unwrap_or(&[]), &mut fixed)?;
        self.finish_visit(column, list, out)
    }

    /// Prepares a buffer for samples without values.
    fn begin_visit(&mut self, column: &OpenedColumn, list: &TaskList, out: &mut ColumnBuffer) -> Result<()> {
        self.begin(0);
        begin_without_values(column, list, out)?;
        match column.layout().has_shape() {
            true => self.ragged.begin(list.selection.sample_count(), column.layout()),
            false => Ok(()),
        }
    }

    fn visit_task(
        &mut self,
        column: &OpenedColumn,
        list: &TaskList,
        task: &Task,
        bytes: TaskBytes<'_>,
        blocks: VisitedBlocks<'_>,
    ) -> Result<()> {
        let layout = column.layout();
        if !layout.has_shape() {
            let (sample_bytes, element_bytes) = (layout.inner_bytes, layout.element_bytes);
            let mut out = FixedBlocks { blocks, sample_bytes, element_bytes };
            return self.decode_fixed(column, &list.selection, task, bytes, &mut out);
        }
        let mut ragged = std::mem::take(&mut self.ragged);
        let mut out = ragged.output();
        out.blocks = Some(VisitedBlocks { visit: &mut *blocks.visit, decoded: &mut *blocks.decoded });
        let visited = self.decode_ragged(column, &list.selection, task, bytes, &mut out);
        self.ragged = ragged;
        visited
    }

    fn finish_visit(&mut self, column: &OpenedColumn, list: &TaskList, out: &mut ColumnBuffer) -> Result<()> {
        let layout = column.layout();
        if !layout.is_nested() {
            self.nulls.iter().for_each(|&null| out.set_null(null));
        }
        match layout.has_shape() {
            true => self.ragged.finish(layout, &list.selection, &[], &mut self.staging, false, out),
            false => Ok(()),
        }
    }
}

/// Hands out the blocks of samples of a fixed shape.
struct FixedBlocks<'o> {
    blocks: VisitedBlocks<'o>,
    sample_bytes: usize,
    element_bytes: usize,
}

impl FixedOutput for FixedBlocks<'_> {
    const LONGEST_RUN: usize = usize::MAX;

    /// Samples have no destinations here.
    fn destination(&mut self, _rank: usize, _position: usize, _samples: usize) -> Result<&mut [u8]> {
        Err(outside())
    }

    fn copy(&mut self, to: SamplePlace, from: &[u8], _element_bytes: usize) -> Result<()> {
        let bytes = to.samples.saturating_mul(self.sample_bytes);
        self.blocks.raw(to.position, self.element_bytes, from.get(..bytes).ok_or_else(outside)?)
    }

    fn decode(
        &mut self,
        to: SamplePlace,
        chunk: &mut OpenChunk,
        column: &OpenedColumn,
        body: Body<'_>,
        values: &Range<usize>,
    ) -> Result<()> {
        self.blocks.hand_out(to.position, chunk, column, body, values)
    }
}
