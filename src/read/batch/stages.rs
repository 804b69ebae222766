//! The stages of a read, for callers who run each of them themselves: a loader that reads ahead, a
//! source that is asynchronous, threads that only decode.
//!
//! 1. *Plan*: a [`ReadPlan`] says which chunks, which byte ranges, and where each sample goes.
//! 2. *Fetch*: [`FetchedBytes`] are the bytes of a plan. A [`Source`](crate::source::Source) reads
//!    many ranges at once.
//! 3. *Decode*: a [`Decoder`] fills the destinations; of a divided plan, each thread a
//!    [`PlanPart`].

pub use super::fetched_bytes::FetchedBytes;
pub use super::plan::ReadPlan;
pub use crate::read::decode::decoder::Decoder;
pub use crate::read::decode::parts::PlanPart;

use super::fetch::TaskBytes;
use super::tasks::Task;
use crate::read::decode::destination::Destination;
use crate::read::file::column::Column;
use crate::read::samples::buffer::ColumnBuffer;
use crate::{Error, Result};
use std::ops::Range;

impl ReadPlan {
    /// Plans samples `indices` of columns of one reader, in this order and repeated ones each time.
    ///
    /// Cost: sorts the samples, and looks up the chunk of each: I/O for pages of the index that are
    /// not in memory. With [`Verification::Never`](crate::Verification::Never) also the heads of
    /// raw chunks. Fails if a sample is not in the file, or if the index is damaged.
    pub fn select(&mut self, columns: &[Column], indices: &[u64]) -> Result<()> {
        self.list.selection.set_samples(indices)?;
        self.plan(columns)
    }

    /// Plans the samples of a range, of columns of one reader. Chunks that are wanted whole are
    /// decoded straight to their destination. Cost: as [`ReadPlan::select`], without sorting.
    pub fn select_range(&mut self, columns: &[Column], samples: Range<u64>) -> Result<()> {
        self.list.selection.set_range(samples)?;
        self.plan(columns)
    }

    fn plan(&mut self, columns: &[Column]) -> Result<()> {
        self.fill(columns.iter().map(Column::opened))?;
        self.coalesce()
    }
}

impl Decoder {
    /// Decodes a plan. Fills one buffer for each column, in the order of the request. If that
    /// fails, all of them are empty.
    ///
    /// `bytes` are those of the plan, fetched; nothing is read here but memory. The error is that
    /// of the first sample that fails, by column and number.
    ///
    /// Cost: each chunk is decoded once, or, if few of its samples are wanted and the encoding can
    /// do that, only these. Allocates nothing once warmed up.
    pub fn decode(&mut self, plan: &ReadPlan, bytes: &FetchedBytes, out: &mut [ColumnBuffer]) -> Result<()> {
        let mut numbered = out.iter_mut().enumerate();
        let decoded = plan
            .check_outputs(numbered.len())
            .and_then(|()| numbered.try_for_each(|(number, buffer)| self.decode_column(plan, bytes, number, buffer)));
        decoded.inspect_err(|_| out.iter_mut().for_each(ColumnBuffer::clear))
    }

    /// Decodes one column of a plan, counted from 0. Otherwise as [`Decoder::decode`].
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
        let begun = self.begin_output(column, list, Destination::Buffer(out));
        let decoded = begun.and_then(|()| {
            self.decode_tasks(plan, bytes, number, &mut |decoder, task, bytes| {
                decoder.decode_task(column, list, task, bytes, Destination::Buffer(out))
            })
        });
        let finished = decoded.and_then(|()| self.finish_output(number, column, list, Destination::Buffer(out)));
        finished.map(|_| ()).map_err(|error| column.in_column(error))
    }

    /// Calls `decode` with each task of a column, and its bytes.
    pub(in crate::read) fn decode_tasks(
        &mut self,
        plan: &ReadPlan,
        bytes: &FetchedBytes,
        number: usize,
        decode: &mut dyn FnMut(&mut Self, &Task, TaskBytes<'_>) -> Result<()>,
    ) -> Result<()> {
        bytes.check(plan)?;
        let tasks = &plan.list.tasks;
        let result = bytes.for_each(plan, plan.list.of_column(number), &mut |task, bytes| match tasks.get(task) {
            Some(task) => decode(self, task, bytes),
            None => Err(Error::internal("a chunk was fetched for no task of its plan")),
        });
        result.map_err(|(_, error)| error)
    }
}
