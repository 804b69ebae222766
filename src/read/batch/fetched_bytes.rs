//! The second stage of a read: the bytes that a plan needs.

use super::plan::ReadPlan;
use super::waves::{FirstError, TaskBytes};
use crate::open::coalesce::{RangeError, bytes_of, range_length};
use crate::open::source::{ReadMemory, Source, read_error};
use crate::read::file::state::OpenedFile;
use crate::{Error, Result, memory};
use std::io;
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
    /// Memory of the caller, and whether it has the bytes.
    memory: Option<Box<dyn ReadMemory>>,
    is_in_memory: bool,
    /// The ranges of the plan, if those in `ranges` are longer.
    planned: Vec<Range<u64>>,
    fetches: u64,
}

impl ReadPlan {
    /// Fetches the bytes of the plan from the source, which reads all of its ranges at the same
    /// time if it can.
    ///
    /// Cost: the I/O, and memory for all of the plan's bytes. Cursors avoid that: they decode some
    /// ranges before they read the next ones.
    pub fn fetch(&self, bytes: &mut FetchedBytes) -> Result<()> {
        self.check_complete()?;
        bytes.begin_ranges(self)?;
        // until they are read, they are of no plan
        let Some(file) = bytes.file.take() else { return Ok(()) };
        bytes.unread.clear();
        self.unread_chunks(&mut bytes.unread)?;
        file.source.prefetch(&bytes.unread);
        let read = match bytes.begin_in_memory(&*file.source)? {
            Some(memory) => bytes.read_to_memory(&*file.source, memory),
            None => {
                bytes.make_room()?;
                file.source.read_ranges(self.ranges(), bytes.room())
            }
        };
        read.map_err(|error| {
            let offset = self.ranges().get(error.range).map_or(0, |range| range.start);
            let task = self.requests.needed(error.range).iter().map(|(_, task)| *task).min();
            self.in_task(task.unwrap_or(usize::MAX), read_error(error.error, offset))
        })?;
        bytes.file = Some(file);
        Ok(())
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
        self.begin_ranges(plan)?;
        let file = self.file.take();
        self.make_room()?;
        self.file = file;
        Ok(self.room())
    }

    fn begin_ranges(&mut self, plan: &ReadPlan) -> Result<()> {
        (self.is_in_memory, self.fetches) = (false, self.fetches.wrapping_add(1));
        self.planned.clear();
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
        Ok(())
    }

    /// Makes memory for the bytes of all ranges.
    fn make_room(&mut self) -> Result<()> {
        let length = self.length();
        match self.bytes.len() < length {
            true => memory::resize(&mut self.bytes, length, 0),
            false => Ok(()),
        }
    }

    fn room(&mut self) -> &mut [u8] {
        let length = self.length();
        self.bytes.get_mut(..length).unwrap_or(&mut []) // `make_room` made it
    }

    /// Returns the bytes of all ranges.
    fn length(&self) -> usize {
        self.starts.last().map_or(0, |end| *end)
    }

    /// Sets memory of the caller that [`ReadPlan::fetch`] reads to, if the source can read to it
    /// without a copy. Ranges then are longer: they begin and end at multiples of
    /// [`Source::alignment`], as do their places in the memory.
    ///
    /// Returns the memory that was set before. Bytes in it are of no plan from now on.
    pub fn set_memory(&mut self, memory: Option<Box<dyn ReadMemory>>) -> Option<Box<dyn ReadMemory>> {
        if self.is_in_memory {
            (self.file, self.is_in_memory) = (None, false);
        }
        std::mem::replace(&mut self.memory, memory)
    }

    /// Returns how many plans it had bytes of: the number changes whenever the bytes do.
    pub fn fetches(&self) -> u64 {
        self.fetches
    }

    /// Returns the bytes of the plan, if memory of the caller has them.
    pub fn memory(&self) -> Option<&[u8]> {
        let memory = self.memory.as_ref().filter(|_| self.is_in_memory)?;
        memory.bytes().get(..self.length())
    }

    /// Makes the ranges as long as a source reads them to memory of the caller. Returns that
    /// memory; `None` if there is none, if it is too short, or if the source copies anyway.
    fn begin_in_memory(&mut self, source: &dyn Source) -> Result<Option<Box<dyn ReadMemory>>> {
        let Some(alignment) = source.alignment() else { return Ok(None) };
        let Some(mut memory) = self.memory.take() else { return Ok(None) };
        let limit = source.byte_count();
        let widened = |range: &Range<u64>| {
            let start = range.start / alignment.max(1) * alignment;
            start..range.end.checked_next_multiple_of(alignment).map_or(limit, |end| end.min(limit))
        };
        // direct reads go on beyond the end of the file, to the next multiple
        let slack = usize::try_from(alignment).unwrap_or(0);
        let length = self.ranges.iter().map(|range| range_length(&widened(range))).fold(slack, usize::saturating_add);
        if memory.reserve(0, length).is_err() {
            self.memory = Some(memory);
            return Ok(None);
        }
        memory::reserve(&mut self.planned, self.ranges.len())?;
        std::mem::swap(&mut self.ranges, &mut self.planned);
        self.starts.clear();
        let mut end = 0_usize;
        for range in self.planned.iter().map(widened) {
            self.starts.push(end);
            end = end.saturating_add(range_length(&range));
            self.ranges.push(range); // both have room for all
        }
        self.starts.push(end);
        Ok(Some(memory))
    }

    /// Reads the ranges to memory of the caller, which has room for them.
    fn read_to_memory(
        &mut self,
        source: &dyn Source,
        memory: Box<dyn ReadMemory>,
    ) -> std::result::Result<(), RangeError> {
        let (memory, read) = source.read_to_memory(&self.ranges, memory);
        self.memory = memory;
        read?;
        self.is_in_memory = true;
        match self.memory() {
            Some(_) => Ok(()),
            None => Err(RangeError { range: 0, error: io::ErrorKind::InvalidData.into() }),
        }
    }

    /// Refuses bytes that were not fetched for the plan.
    pub(in crate::read) fn check(&self, plan: &ReadPlan) -> Result<()> {
        let is_same_file = match (&self.file, plan.columns.first()) {
            (Some(file), Some(column)) => Arc::ptr_eq(file, &column.file),
            (None, None) => true,
            _ => false,
        };
        let ranges = if self.is_in_memory { &self.planned } else { &self.ranges };
        if !is_same_file || ranges != plan.ranges() {
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
        let fetched = if self.is_in_memory { self.memory().unwrap_or(&[]) } else { &self.bytes };
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
                let of_range = fetched.get(start..).unwrap_or(&[]);
                let bytes = bytes_of(range.start, of_range, needed);
                run(number, TaskBytes::Fetched(bytes)).unwrap_or_else(|error| first.add(number, error));
            }
        }
        first.into_inner().map_or(Ok(()), Err)
    }
}
