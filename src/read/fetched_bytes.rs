//! The second stage of a read: the bytes that a plan needs.

use super::arrived::Arrived;
use super::fetch::{FirstError, TaskBytes};
use super::opened_file::OpenedFile;
use super::plan::ReadPlan;
use super::range_list::RangeList;
use crate::open::source::read_error;
use crate::open::{Fragment, Source};
use crate::{Error, Result, memory};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// The bytes of a [`ReadPlan`], in memory that is reused. Bytes of a file that is in memory are not
/// copied: there are none.
#[derive(Default)]
pub struct FetchedBytes {
    bytes: Vec<u8>,
    /// The ranges of the plan, and the offset of each in `bytes`.
    ranges: Vec<Range<u64>>,
    starts: Vec<usize>,
    /// Numbers of bytes in `bytes`, of which there are `byte_count`.
    arrived: Arrived,
    byte_count: usize,
    file: Option<Arc<OpenedFile>>,
    scratch: Vec<u8>,
}

impl ReadPlan {
    /// Fetches the bytes of the plan from the source. All chunks that were not read before are
    /// announced first.
    ///
    /// Cost: the I/O, memory for all of the plan's bytes, and one copy of them. Cursors avoid both:
    /// they decode each range when it arrives.
    pub fn fetch(&self, bytes: &mut FetchedBytes) -> Result<()> {
        bytes.begin(self)?;
        let Some(file) = bytes.file.clone() else { return Ok(()) };
        self.announce_chunks();
        let mut scratch = std::mem::take(&mut bytes.scratch);
        let mut result = Ok(());
        let read = file.source.read_ranges(self.ranges(), &mut scratch, &mut |fragment| {
            result = bytes.add(fragment);
            if result.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        bytes.scratch = scratch;
        let read = read.map_err(|error| {
            let offset = self.ranges().get(error.range).map_or(0, |range| range.start);
            let task = self.ranges.task_ranges(error.range).iter().map(|(_, task)| *task).min();
            self.in_task(task.unwrap_or(usize::MAX), read_error(error.error, offset))
        });
        read.and(result)
    }
}

impl FetchedBytes {
    /// Returns an empty buffer, for any plan.
    pub fn new() -> Self {
        Self::default()
    }

    /// Prepares for the bytes of a plan, which are then handed over by [`FetchedBytes::receive`].
    /// [`ReadPlan::fetch`] does both.
    pub fn begin(&mut self, plan: &ReadPlan) -> Result<()> {
        self.ranges.clear();
        self.starts.clear();
        self.file = plan.columns.first().map(|column| column.file.clone());
        memory::reserve(&mut self.ranges, plan.ranges().len())?;
        memory::reserve(&mut self.starts, plan.ranges().len())?;
        let mut length = 0_usize;
        for range in plan.ranges() {
            self.ranges.push(range.clone());
            self.starts.push(length);
            // not empty
            length = length.saturating_add(usize::try_from(range.end - range.start).unwrap_or(usize::MAX));
        }
        if self.bytes.len() < length {
            memory::resize(&mut self.bytes, length, 0)?;
        }
        self.arrived.clear();
        self.byte_count = length;
        Ok(())
    }

    /// Takes bytes of the plan's range number `range`, from byte `offset` of it on. They may come
    /// in any order. Refuses bytes that have come before.
    pub fn receive(&mut self, range: usize, offset: usize, bytes: &[u8]) -> Result<()> {
        self.add(Fragment { range, offset, bytes })
    }

    fn add(&mut self, fragment: Fragment<'_>) -> Result<()> {
        let Fragment { range, offset, bytes } = fragment;
        let length = self.ranges.get(range).map_or(0, |range| range.end - range.start); // not empty
        let end = offset.checked_add(bytes.len()).and_then(|end| u64::try_from(end).ok());
        let start = self.starts.get(range).and_then(|start| start.checked_add(offset));
        let to = start.and_then(|start| self.bytes.get_mut(start..)?.get_mut(..bytes.len()));
        match (start, to) {
            (Some(start), Some(to)) if end.is_some_and(|end| end <= length) => {
                self.arrived.add(start..start.saturating_add(bytes.len()))?;
                to.copy_from_slice(bytes); // equal lengths
                Ok(())
            }
            _ => Err(Error::bad_argument(format!(
                "{} bytes at {offset} of range {range} are outside the ranges of the plan",
                bytes.len()
            ))),
        }
    }

    /// Returns the number of bytes that have not arrived.
    pub fn missing_bytes(&self) -> usize {
        self.byte_count.saturating_sub(self.arrived.count())
    }

    /// Refuses bytes that are not those of the plan.
    pub(super) fn check(&self, plan: &ReadPlan) -> Result<()> {
        let is_same_file = match (&self.file, plan.columns.first()) {
            (Some(file), Some(column)) => Arc::ptr_eq(file, &column.file),
            (None, None) => true,
            _ => false,
        };
        if !is_same_file || self.ranges != plan.ranges() {
            return Err(Error::bad_argument("the bytes were fetched for another plan"));
        }
        match self.missing_bytes() {
            0 => Ok(()),
            missing => Err(Error::bad_argument(format!("{missing} bytes of the plan were not fetched"))),
        }
    }

    /// Calls `run` with the numbers of some tasks of the plan, in order, and their bytes. Returns
    /// the first error, and the number of its task.
    pub(super) fn for_each(
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
                let bytes = RangeList::bytes_of(range.start, of_range, needed);
                run(number, TaskBytes::Fetched(bytes)).unwrap_or_else(|error| first.add(number, error));
            }
        }
        first.into_inner().map_or(Ok(()), Err)
    }
}
