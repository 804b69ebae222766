//! The second stage of a read: the bytes that a plan needs.

use super::plan::ReadPlan;
use super::waves::{FirstError, TaskBytes};
use crate::open::coalesce::{bytes_of, range_length};
use crate::open::source::read_error;
use crate::read::file::opened_file::OpenedFile;
use crate::{Error, Result, memory};
use std::ops::Range;
use std::sync::Arc;

/// The bytes of a [`ReadPlan`], in memory that is reused. Bytes of a file that is in memory are not
/// copied: there are none.
#[derive(Default)]
pub struct FetchedBytes {
    bytes: Vec<u8>,
    /// The ranges of the plan, and the offset of each in `bytes`.
    ranges: Vec<Range<u64>>,
    starts: Vec<usize>,
    file: Option<Arc<OpenedFile>>,
    /// Chunks that were not read before.
    unread: Vec<Range<u64>>,
}

impl ReadPlan {
    /// Fetches the bytes of the plan from the source, which reads all of its ranges at the same
    /// time if it can.
    ///
    /// Cost: the I/O, and memory for all of the plan's bytes. Cursors avoid that: they decode some
    /// ranges before they read the next ones.
    pub fn fetch(&self, bytes: &mut FetchedBytes) -> Result<()> {
        self.check_complete()?;
        bytes.begin(self)?;
        let Some(file) = bytes.file.clone() else { return Ok(()) };
        bytes.unread.clear();
        self.unread_chunks(&mut bytes.unread)?;
        file.source.prefetch(&bytes.unread);
        let length = bytes.starts.last().map_or(0, |end| *end);
        let out = bytes.bytes.get_mut(..length).unwrap_or(&mut []); // `begin` made them
        file.source.read_ranges(self.ranges(), out).map_err(|error| {
            bytes.file = None; // of no plan
            let offset = self.ranges().get(error.range).map_or(0, |range| range.start);
            let task = self.requests.needed(error.range).iter().map(|(_, task)| *task).min();
            self.in_task(task.unwrap_or(usize::MAX), read_error(error.error, offset))
        })
    }
}

impl FetchedBytes {
    /// Returns an empty buffer, for any plan.
    pub fn new() -> Self {
        Self::default()
    }

    /// Prepares for the bytes of a plan that the caller fetches by other means than
    /// [`ReadPlan::fetch`]. Returns the memory for them: the bytes of each of
    /// [`ReadPlan::ranges`], one after the other, without gaps. What the caller leaves unfilled
    /// does not match its checksums, and is not checked with
    /// [`Verification::Never`](crate::Verification::Never).
    pub fn begin(&mut self, plan: &ReadPlan) -> Result<&mut [u8]> {
        self.ranges.clear();
        self.starts.clear();
        self.file = plan.columns.first().map(|column| column.file.clone());
        memory::reserve(&mut self.ranges, plan.ranges().len())?;
        memory::reserve(&mut self.starts, plan.ranges().len().saturating_add(1))?;
        let mut end = 0_usize;
        self.starts.push(end);
        for range in plan.ranges() {
            self.ranges.push(range.clone());
            end = end.saturating_add(range_length(range));
            self.starts.push(end);
        }
        if self.bytes.len() < end {
            memory::resize(&mut self.bytes, end, 0)?;
        }
        self.bytes.get_mut(..end).ok_or_else(|| Error::internal("memory for fetched bytes is too short"))
    }

    /// Refuses bytes that were not fetched for the plan.
    pub(in crate::read) fn check(&self, plan: &ReadPlan) -> Result<()> {
        let is_same_file = match (&self.file, plan.columns.first()) {
            (Some(file), Some(column)) => Arc::ptr_eq(file, &column.file),
            (None, None) => true,
            _ => false,
        };
        if !is_same_file || self.ranges != plan.ranges() {
            return Err(Error::bad_argument("the bytes were not fetched, or for another plan"));
        }
        Ok(())
    }

    /// Calls `run` with the numbers of some tasks of the plan, in order, and their bytes. Returns
    /// the first error, and the number of its task.
    pub(in crate::read) fn for_each(
        &self,
        plan: &ReadPlan,
        tasks: Range<usize>,
        run: &mut dyn FnMut(usize, TaskBytes<'_>) -> Result<()>,
    ) -> std::result::Result<(), (usize, Error)> {
        let mut first = FirstError::default();
        for number in tasks.clone() {
            let at_hand = plan.list.tasks.get(number).is_some_and(|task| task.bytes.is_empty());
            if at_hand && !first.is_before(number) {
                run(number, TaskBytes::AtHand).unwrap_or_else(|error| first.add(number, error));
            }
        }
        for number in tasks {
            let Some(needed) = plan.list.tasks.get(number).map(|task| &task.bytes) else { continue };
            // ranges ascend, and one has all bytes of the task
            let range = self.ranges.partition_point(|range| range.start <= needed.start).saturating_sub(1);
            let (Some(range), Some(&start)) = (self.ranges.get(range), self.starts.get(range)) else { continue };
            if !needed.is_empty() && !first.is_before(number) {
                let of_range = self.bytes.get(start..).unwrap_or(&[]);
                let bytes = bytes_of(range.start, of_range, needed);
                run(number, TaskBytes::Fetched(bytes)).unwrap_or_else(|error| first.add(number, error));
            }
        }
        first.into_inner().map_or(Ok(()), Err)
    }
}
