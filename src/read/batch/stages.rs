//! The stages of a read, for callers who run each of them themselves: a loader that reads ahead, a
//! source that is asynchronous, threads that only decode.
//!
//! 1. *Plan*: a [`ReadPlan`] says which chunks, which byte ranges, and where each sample goes.
//! 2. *Fetch*: [`FetchedBytes`] are the bytes of a plan. A [`Source`](crate::source::Source) reads
//!    many ranges at once.
//! 3. *Decode*: a [`Decoder`] fills the destinations; of a divided plan, each thread a
//!    [`PlanPart`]. Or it hands out the blocks as they are stored, for a device that decodes them:
//!    [`Decoder::visit_blocks`].

pub use super::fetched_bytes::FetchedBytes;
pub use super::plan::ReadPlan;
use super::plan::{Step, not_complete};
use super::tasks::Task;
use super::waves::TaskBytes;
pub use crate::codec::{BlockScratch, StoredBlock};
use crate::read::buffer::ColumnBuffer;
pub use crate::read::decode::block_samples::{BlockSamples, VisitBlocks};
pub use crate::read::decode::decoder::Decoder;
use crate::read::decode::destination::Destination;
pub use crate::read::decode::parts::PlanPart;
use crate::read::file::column::Column;
use crate::{Error, Result};
use std::ops::Range;

impl ReadPlan {
    /// Plans samples `indices` of columns of one reader, in this order and repeated ones each time.
    ///
    /// Cost: sorts the samples, and looks up the chunk of each: I/O for pages of the index that are
    /// not in memory, and for the block indexes of chunks whose blocks are read alone. With
    /// [`Verification::Never`](crate::Verification::Never) also for the heads of raw chunks. Fails
    /// if a sample is not in the file, or if the index is damaged.
    pub fn select(&mut self, columns: &[Column], indices: &[u64]) -> Result<()> {
        self.begin(columns, indices)?;
        self.complete()
    }

    /// Plans the samples of a range, of columns of one reader. Chunks that are wanted whole are
    /// decoded straight to their destination. Cost: as [`ReadPlan::select`], without sorting.
    pub fn select_range(&mut self, columns: &[Column], samples: Range<u64>) -> Result<()> {
        self.begin_range(columns, samples)?;
        self.complete()
    }

    /// Begins a plan as [`ReadPlan::select`] makes it: prefetches what the first step reads. Call
    /// [`ReadPlan::advance`] until it returns `true`.
    ///
    /// With many files, take the plans of all of them through each step before the next. The steps
    /// then take one round trip each, and not one for each file.
    ///
    /// ```
    /// # use tensilo::{Column, Error};
    /// use tensilo::stages::ReadPlan;
    /// # fn plan(files: &[Vec<Column>], samples: &[u64]) -> Result<(), Error> {
    /// let mut plans: Vec<ReadPlan> = files.iter().map(|_| ReadPlan::new()).collect();
    /// for (plan, columns) in plans.iter_mut().zip(files) {
    ///     plan.begin(columns, samples)?;
    /// }
    /// let mut is_complete = false;
    /// while !is_complete {
    ///     is_complete = true;
    ///     for plan in &mut plans {
    ///         is_complete &= plan.advance()?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin(&mut self, columns: &[Column], indices: &[u64]) -> Result<()> {
        self.list.selection.set_samples(indices)?;
        self.begin_selected(columns)
    }

    /// Begins a plan as [`ReadPlan::select_range`] makes it, see [`ReadPlan::begin`].
    pub fn begin_range(&mut self, columns: &[Column], samples: Range<u64>) -> Result<()> {
        self.list.selection.set_range(samples)?;
        self.begin_selected(columns)
    }

    fn begin_selected(&mut self, columns: &[Column]) -> Result<()> {
        self.set_columns(columns.iter().map(Column::opened))?;
        self.list.begin(&self.columns);
        self.step = Step::Begun;
        Ok(())
    }

    /// Takes the next step of a plan that was begun, and prefetches what the step after it reads.
    /// Returns whether the plan is complete.
    ///
    /// Cost: a step waits for one round trip, whose answer is at hand if enough time has passed.
    /// There are two: the first finds the chunks by the index, the second reads the block indexes
    /// of those whose blocks are read alone. Fails as [`ReadPlan::select`]; begin again then.
    pub fn advance(&mut self) -> Result<bool> {
        match std::mem::replace(&mut self.step, Step::Failed) {
            Step::Begun => {
                self.list.locate(&self.columns);
                self.step = Step::Located;
                return Ok(false);
            }
            Step::Located => {
                self.list.complete(&self.columns)?;
                self.coalesce()?;
            }
            Step::Complete => {}
            Step::Failed => return Err(not_complete()),
        }
        self.step = Step::Complete;
        Ok(true)
    }

    fn complete(&mut self) -> Result<()> {
        while !self.advance()? {}
        Ok(())
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
        plan.check_complete()?;
        bytes.check(plan)?;
        let tasks = &plan.list.tasks;
        let result = bytes.for_each(plan, plan.list.of_column(number), &mut |task, bytes| match tasks.get(task) {
            Some(task) => decode(self, task, bytes),
            None => Err(Error::internal("a chunk was fetched for no task of its plan")),
        });
        result.map_err(|(_, error)| error)
    }
}
