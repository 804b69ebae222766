//! The plan of a read, and the bytes that it fetches.
//!
//! Planning itself needs I/O: index pages contain the offsets of chunks, and block indexes the
//! offsets of blocks. If each of them were read only when it is needed, planning would be a chain
//! of small reads, and each read a round trip to an object store. A plan therefore advances in
//! steps. Each step uses what the previous one has prefetched, and prefetches what the next one
//! needs:
//!
//! 1. [`ReadPlan::begin`] sorts the samples, and prefetches the index pages that probably list
//!    their chunks.
//! 2. The first [`ReadPlan::advance`] looks up the chunks. If the blocks of a chunk are read
//!    individually, it prefetches the block index, together with the block that probably contains
//!    the first requested sample of the chunk.
//! 3. The second [`ReadPlan::advance`] decides for each chunk which bytes to fetch, and coalesces
//!    the ranges of all tasks into requests.
//!
//! A step costs one round trip, whatever the number of columns. If a caller takes many plans
//! through each step together, the cost does not depend on the number of files either.
//!
//! [`FetchedBytes`] holds the bytes of a plan, back to back in the order of its requests. They are
//! either in its own memory, which it reuses, or in the caller's, such as pinned memory for a
//! device. The caller's memory can be filled without a copy if offsets in the file and in memory
//! are aligned. The fetched ranges can then be longer than the planned ranges, so both lists of
//! ranges are recorded.

use super::tasks::{TaskBytes, TaskList};
use super::waves::FirstError;
use crate::bytes::memory;
use crate::open::Requests;
use crate::open::coalesce::{RangeError, bytes_of, range_length};
use crate::open::source::{ReadMemory, Source, read_error};
use crate::read::file::column::Column;
use crate::read::file::column_inner::ColumnInner;
use crate::read::file::state::ReaderInner;
use crate::{Error, Result};
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The last completed step of planning.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::read) enum Step {
    Begun,
    Located,
    #[default]
    Complete,
    Failed,
}

/// A plan to read samples from one or several columns: the chunks, the byte ranges of the file, and
/// the destination of each sample.
///
/// A read has three stages. Cursors and [`Rows`](crate::Rows) run all of them; a loader can run
/// them separately:
///
/// 1. *Plan*: [`ReadPlan::select`] finds the chunks through the index.
/// 2. *Fetch*: [`ReadPlan::fetch`] reads the bytes with [`Source::read_ranges`]. A program that
///    fetches the bytes by other means fills the memory that [`FetchedBytes::begin`] returns.
/// 3. *Decode*: a [`Decoder`](super::stages::Decoder) decodes without I/O.
///    [`ReadPlan::decode_segments`] divides the work among threads.
///
/// [`Source::read_ranges`]: crate::source::Source::read_ranges
///
/// A plan reuses its memory: refilling it for a request of the same size allocates nothing.
///
/// ```
/// use tensilo::ColumnBuffer;
/// use tensilo::stages::{Decoder, FetchedBytes, ReadPlan};
/// # use tensilo::{ColumnSchema, DType, Reader, Schema, Shape, Value, Writer, WriterOptions};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("labels.tsl");
/// # let schema = Schema::new([ColumnSchema::tensor("label", DType::I32, Shape::scalar())]);
/// # let mut writer = Writer::create(&path, schema, &WriterOptions::new())?;
/// # for label in 0..1000_i32 { writer.push(&[Value::tensor(&[label])])?; }
/// # writer.finish()?;
/// let reader = Reader::open(&path)?;
/// let columns = [reader.column("label")?];
/// let (mut plan, mut bytes, mut decoder) = (ReadPlan::new(), FetchedBytes::new(), Decoder::new());
/// let mut out = [ColumnBuffer::new()];
/// for indices in [[3, 999, 3], [17, 0, 500]] {
///     plan.select(&columns, &indices)?;
///     plan.fetch(&mut bytes)?;
///     decoder.decode(&plan, &bytes, &mut out)?;
///     assert_eq!(out[0].values::<i32>()?, indices.map(|i| i as i32));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct ReadPlan {
    pub(in crate::read) columns: Vec<ColumnInner>,
    pub(in crate::read) list: TaskList,
    pub(in crate::read) requests: Requests,
    pub(in crate::read) step: Step,
}

impl ReadPlan {
    /// Returns an empty plan.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of samples that are read from each column.
    pub fn sample_count(&self) -> usize {
        self.list.selection.sample_count()
    }

    /// Returns the number of columns.
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Returns the number of tasks, which are independent of each other. There is one task for each
    /// chunk, or for each sequence of samples or blocks that is read without the rest of its chunk.
    pub fn task_count(&self) -> usize {
        self.list.tasks.len()
    }

    /// Returns the byte ranges of the file to fetch, in ascending order: chunks with their headers,
    /// blocks, or single samples of raw chunks, coalesced according to [`Source::coalesce`]. Empty
    /// if the file is in memory.
    pub fn ranges(&self) -> &[Range<u64>] {
        self.requests.as_slice()
    }

    /// Returns the number of bytes to fetch.
    pub fn fetched_bytes(&self) -> u64 {
        self.ranges().iter().map(|range| range.end.saturating_sub(range.start)).fold(0, u64::saturating_add)
    }

    /// Hints that the bytes of the plan will be fetched soon, so that the source starts reading
    /// them in the background. For a mapped file, prefetches the chunks that have not been read
    /// before.
    ///
    /// Cost: for files, a system call for each range or chunk, which can block until the device has
    /// accepted the request. Fails only if there is not enough memory for the list of chunks.
    pub fn prefetch(&self) -> Result<()> {
        Self::prefetch_all(std::slice::from_ref(self))
    }

    /// Prefetches several plans, like [`ReadPlan::prefetch`]. Each file gets one call with the
    /// ranges of all plans, so adjacent ranges of different plans can become one request.
    pub fn prefetch_all(plans: &[Self]) -> Result<()> {
        let mut files: Vec<(&Arc<ReaderInner>, Vec<Range<u64>>)> = Vec::new();
        let mut number_of = HashMap::new();
        for plan in plans {
            let Some(first) = plan.columns.first() else { continue };
            let number = *number_of.entry(Arc::as_ptr(&first.file)).or_insert(files.len());
            if number == files.len() {
                files.push((&first.file, Vec::new()));
            }
            let Some((_, ranges)) = files.get_mut(number) else { continue };
            match first.file.bytes().memory() {
                None => {
                    memory::reserve(ranges, plan.ranges().len())?;
                    ranges.extend_from_slice(plan.ranges());
                }
                Some(_) => plan.unread_chunks(ranges)?,
            }
        }
        files.into_iter().filter(|(_, ranges)| !ranges.is_empty()).for_each(|(file, mut ranges)| {
            ranges.sort_unstable_by_key(|range| range.start);
            file.source.prefetch(&ranges);
        });
        Ok(())
    }

    /// Adds to `unread` the ranges of the chunks that have not been read before.
    pub(in crate::read) fn unread_chunks(&self, unread: &mut Vec<Range<u64>>) -> Result<()> {
        let mut columns = self.columns.iter().enumerate();
        columns.try_for_each(|(number, column)| self.list.unread_chunks(number, column, unread))
    }

    /// Returns column number `number` of the plan, counted from 0.
    pub(in crate::read) fn column(&self, number: usize) -> Result<&ColumnInner> {
        self.columns.get(number).ok_or_else(|| {
            Error::bad_argument(format!(
                "there is no column number {number}; the plan has {} columns, numbered from 0",
                self.columns.len()
            ))
        })
    }

    /// Sets the columns, which must belong to one reader.
    pub(in crate::read) fn set_columns<'c>(&mut self, columns: impl Iterator<Item = &'c ColumnInner>) -> Result<()> {
        self.step = Step::Failed;
        self.columns.clear();
        self.columns.extend(columns.cloned());
        match self.columns.split_first() {
            Some((first, others)) if others.iter().any(|column| !Arc::ptr_eq(&first.file, &column.file)) => {
                Err(Error::bad_argument("the columns of a plan must come from one reader"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses an incomplete plan.
    pub(in crate::read) fn check_complete(&self) -> Result<()> {
        if matches!(self.step, Step::Complete) { Ok(()) } else { Err(not_complete()) }
    }

    /// Refuses an incomplete plan, or a number of buffers that differs from the number of columns.
    pub(in crate::read) fn check_outputs(&self, count: usize) -> Result<()> {
        self.check_complete()?;
        if count == self.columns.len() {
            return Ok(());
        }
        let message = format!("the plan has {} columns, but there are {count} buffers", self.columns.len());
        Err(Error::bad_argument(message))
    }

    /// Coalesces the ranges of all tasks into requests.
    pub(in crate::read) fn coalesce(&mut self) -> Result<()> {
        let config = self.columns.first().map(|column| column.file.source.coalesce()).unwrap_or_default();
        let task_ranges = self.list.tasks.iter().enumerate().map(|(number, task)| (task.bytes.clone(), number));
        self.requests.fill(task_ranges, &config)
    }

    /// Adds the column of a task to an error.
    pub(in crate::read) fn in_task(&self, task: usize, error: Error) -> Error {
        let column = self.list.tasks.get(task).and_then(|task| self.columns.get(task.column));
        match column {
            Some(column) => column.in_column(error),
            None => error,
        }
    }

    /// Plans a read of samples `indices` from columns of one reader, in this order. Indices may
    /// repeat.
    ///
    /// Cost: sorts the samples and looks up their chunks. Reads index pages that are not cached,
    /// and the block indexes of chunks whose blocks are read individually; with
    /// [`Verification::Never`](crate::Verification::Never) also reads the headers of raw chunks.
    /// Fails if a sample is not in the file, or if the index is damaged.
    pub fn select(&mut self, columns: &[Column], indices: &[u64]) -> Result<()> {
        self.begin(columns, indices)?;
        self.complete()
    }

    /// Plans a read of a range of samples from columns of one reader. Chunks that lie completely in
    /// the range are decoded straight to their destination. Cost: same as [`ReadPlan::select`],
    /// without sorting.
    pub fn select_range(&mut self, columns: &[Column], samples: Range<u64>) -> Result<()> {
        self.begin_range(columns, samples)?;
        self.complete()
    }

    /// Begins a plan like [`ReadPlan::select`], but only prefetches what the first step reads,
    /// without waiting for it. Call [`ReadPlan::advance`] until it returns `true`.
    ///
    /// With many files, take all plans through one step before the next step. Then each step takes
    /// one round trip in total, not one for each file.
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

    /// Begins a plan like [`ReadPlan::select_range`]; see [`ReadPlan::begin`].
    pub fn begin_range(&mut self, columns: &[Column], samples: Range<u64>) -> Result<()> {
        self.list.selection.set_range(samples)?;
        self.begin_selected(columns)
    }

    fn begin_selected(&mut self, columns: &[Column]) -> Result<()> {
        self.set_columns(columns.iter().map(Column::inner))?;
        self.list.begin(&self.columns);
        self.step = Step::Begun;
        Ok(())
    }

    /// Takes the next step of a plan, and prefetches what the following step reads. Returns whether
    /// the plan is complete.
    ///
    /// Cost: a step waits for one round trip, or not at all if the prefetch has finished. The first
    /// step finds the chunks through the index. The second reads the block indexes of chunks whose
    /// blocks are read individually. Fails like [`ReadPlan::select`]. After a failure, the plan
    /// must be started over.
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

    /// Fetches the bytes of the plan from the source, which reads all ranges at the same time if it
    /// can.
    ///
    /// Cost: the I/O, and memory for all bytes of the plan. Cursors use less memory, because they
    /// decode some ranges before they read the next ones.
    pub fn fetch(&self, bytes: &mut FetchedBytes) -> Result<()> {
        self.check_complete()?;
        bytes.begin_ranges(self)?;
        // until the read succeeds, the bytes do not belong to any plan
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
            let task = self.requests.ranges_of(error.range).iter().map(|(_, task)| *task).min();
            self.in_task(task.unwrap_or(usize::MAX), read_error(error.error, offset))
        })?;
        bytes.file = Some(file);
        Ok(())
    }
}

#[cold]
fn not_complete() -> Error {
    Error::bad_argument("the plan is not complete: it has failed, or `advance` has not yet returned true")
}

/// The bytes of a [`ReadPlan`], in memory that is reused. Empty for a file in memory, whose bytes
/// are not copied.
#[derive(Default)]
pub struct FetchedBytes {
    bytes: Vec<u8>,
    /// The fetched ranges, and the offset of each in the buffer.
    ranges: Vec<Range<u64>>,
    starts: Vec<usize>,
    file: Option<Arc<ReaderInner>>,
    /// Scratch: chunks that have not been read before.
    unread: Vec<Range<u64>>,
    /// The caller's memory, and whether the fetched bytes are in it.
    memory: Option<Box<dyn ReadMemory>>,
    is_in_memory: bool,
    /// The ranges of the plan, if `ranges` were extended to the alignment of the source.
    planned: Vec<Range<u64>>,
    fetches: u64,
}

impl FetchedBytes {
    /// Returns an empty buffer, for any plan.
    pub fn new() -> Self {
        Self::default()
    }

    /// Prepares for a plan whose bytes the caller fetches without [`ReadPlan::fetch`]. Returns the
    /// memory to fill: the bytes of [`ReadPlan::ranges`], one range after another, without gaps.
    /// Bytes that are left unfilled fail their checksums, or go unnoticed with
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

    /// Allocates memory for the bytes of all ranges.
    fn make_room(&mut self) -> Result<()> {
        let length = self.length();
        match self.bytes.len() < length {
            true => memory::resize(&mut self.bytes, length, 0),
            false => Ok(()),
        }
    }

    fn room(&mut self) -> &mut [u8] {
        let length = self.length();
        self.bytes.get_mut(..length).unwrap_or(&mut []) // `make_room` has allocated it
    }

    /// Returns the total length of all ranges in bytes.
    fn length(&self) -> usize {
        self.starts.last().map_or(0, |end| *end)
    }

    /// Sets caller-owned memory into which [`ReadPlan::fetch`] reads if the source can do that
    /// without a copy. In this case, the fetched ranges are extended to multiples of
    /// [`Source::alignment`], and their offsets in the memory are also multiples of it.
    ///
    /// Returns the memory that was set before. The bytes in it no longer belong to any plan.
    pub fn set_memory(&mut self, memory: Option<Box<dyn ReadMemory>>) -> Option<Box<dyn ReadMemory>> {
        if self.is_in_memory {
            (self.file, self.is_in_memory) = (None, false);
        }
        std::mem::replace(&mut self.memory, memory)
    }

    /// Returns the number of fetches so far. It changes whenever the bytes change.
    pub fn fetches(&self) -> u64 {
        self.fetches
    }

    /// Returns the bytes of the plan if they are in the caller's memory.
    pub fn memory(&self) -> Option<&[u8]> {
        let memory = self.memory.as_ref().filter(|_| self.is_in_memory)?;
        memory.bytes().get(..self.length())
    }

    /// Extends the ranges to the alignment of the source, and returns the caller's memory; `None`
    /// if there is none, if it cannot grow, or if the source copies anyway.
    fn begin_in_memory(&mut self, source: &dyn Source) -> Result<Option<Box<dyn ReadMemory>>> {
        let Some(alignment) = source.alignment() else { return Ok(None) };
        let Some(mut memory) = self.memory.take() else { return Ok(None) };
        let limit = source.byte_count();
        let aligned = |range: &Range<u64>| {
            let start = range.start / alignment.max(1) * alignment;
            start..range.end.checked_next_multiple_of(alignment).map_or(limit, |end| end.min(limit))
        };
        // direct reads continue beyond the end of the file, to the next multiple of the alignment
        let slack = usize::try_from(alignment).unwrap_or(0);
        let length = self.ranges.iter().map(|range| range_length(&aligned(range))).fold(slack, usize::saturating_add);
        if memory.reserve(0, length).is_err() {
            self.memory = Some(memory);
            return Ok(None);
        }
        memory::reserve(&mut self.planned, self.ranges.len())?;
        std::mem::swap(&mut self.ranges, &mut self.planned);
        self.starts.clear();
        let mut end = 0_usize;
        for range in self.planned.iter().map(aligned) {
            self.starts.push(end);
            end = end.saturating_add(range_length(&range));
            self.ranges.push(range); // room was reserved for all ranges
        }
        self.starts.push(end);
        Ok(Some(memory))
    }

    /// Reads the ranges into the caller's memory, which has room for them.
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

    /// Refuses bytes that were not fetched for this plan.
    pub(in crate::read) fn check(&self, plan: &ReadPlan) -> Result<()> {
        let is_same_file = match (&self.file, plan.columns.first()) {
            (Some(file), Some(column)) => Arc::ptr_eq(file, &column.file),
            (None, None) => true,
            _ => false,
        };
        let ranges = if self.is_in_memory { &self.planned } else { &self.ranges };
        if !is_same_file || ranges != plan.ranges() {
            return Err(Error::bad_argument("the bytes were not fetched, or belong to another plan"));
        }
        Ok(())
    }

    /// Calls `run` with the number and the bytes of each task in `tasks`, a range of the plan's
    /// tasks. Returns the error with the lowest task number, together with that number.
    pub(in crate::read) fn for_each(
        &self,
        plan: &ReadPlan,
        tasks: Range<usize>,
        run: &mut dyn FnMut(usize, TaskBytes<'_>) -> Result<()>,
    ) -> std::result::Result<(), (usize, Error)> {
        let mut first = FirstError::default();
        let fetched = if self.is_in_memory { self.memory().unwrap_or(&[]) } else { &self.bytes };
        for number in tasks.clone() {
            let available = plan.list.tasks.get(number).is_some_and(|task| task.bytes.is_empty());
            if available && !first.is_before(number) {
                run(number, TaskBytes::Available).unwrap_or_else(|error| first.add(number, error));
            }
        }
        for number in tasks {
            let Some(needed) = plan.list.tasks.get(number).map(|task| &task.bytes) else { continue };
            // ranges ascend, and one of them contains all bytes of the task
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
