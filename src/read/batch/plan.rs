//! The first stage of a read: which chunks and which bytes of the file a request needs.

use super::tasks::TaskList;
use crate::open::Requests;
use crate::read::file::opened_column::OpenedColumn;
use crate::read::file::state::OpenedFile;
use crate::{Error, Result, memory};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The step of planning that was taken last.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::read) enum Step {
    Begun,
    Located,
    #[default]
    Complete,
    Failed,
}

/// The plan of a read: for samples of one or several columns the chunks, the byte ranges of the
/// file, and the destination of each sample.
///
/// A read has three stages. Cursors and [`Rows`](crate::Rows) run all of them; a loader can run
/// each of them on its own:
///
/// 1. *Plan*: [`ReadPlan::select`] finds the chunks by the index.
/// 2. *Fetch*: [`ReadPlan::fetch`] reads the bytes with [`Source::read_ranges`]. A program that
///    fetches bytes by other means fills the memory that
///    [`FetchedBytes::begin`](super::stages::FetchedBytes::begin) returns.
/// 3. *Decode*: a [`Decoder`](super::stages::Decoder) decodes without I/O; by several threads with
///    [`ReadPlan::decode_by`].
///
/// [`Source::read_ranges`]: crate::source::Source::read_ranges
///
/// A plan keeps its memory: refilled for a request of the same size it allocates nothing.
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
    pub(in crate::read) columns: Vec<OpenedColumn>,
    pub(in crate::read) list: TaskList,
    pub(in crate::read) requests: Requests,
    pub(in crate::read) step: Step,
}

impl ReadPlan {
    /// Returns a plan of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of samples of each column.
    pub fn sample_count(&self) -> usize {
        self.list.selection.sample_count()
    }

    /// Returns the number of columns.
    pub fn column_count(&self) -> usize {
        self.columns.len()
    }

    /// Returns the number of tasks, which are independent of each other: one for each chunk, or for
    /// each run of samples that are read alone.
    pub fn task_count(&self) -> usize {
        self.list.tasks.len()
    }

    /// Returns the byte ranges of the file that are fetched, in ascending order: chunks with their
    /// heads, or single samples of raw chunks. Ranges are coalesced as
    /// [`Source::coalesce`](crate::source::Source::coalesce) says. Empty if the file is in memory.
    pub fn ranges(&self) -> &[Range<u64>] {
        self.requests.ranges()
    }

    /// Returns the number of bytes that are fetched.
    pub fn fetched_bytes(&self) -> u64 {
        self.ranges().iter().map(|range| range.end.saturating_sub(range.start)).fold(0, u64::saturating_add)
    }

    /// Tells the source that the bytes of the plan will be fetched soon, so that it begins to read
    /// them while the caller does something else. Of a file in a map, these are the chunks that
    /// were not read before.
    ///
    /// Cost: files take a system call for each range or chunk, and may wait until the device has
    /// taken the requests. Fails only if memory for the list of chunks runs out.
    pub fn prefetch(&self) -> Result<()> {
        Self::prefetch_all(std::slice::from_ref(self))
    }

    /// Prefetches several plans as [`ReadPlan::prefetch`] does one. Each file is told once: what
    /// adjoins in it is one request, whichever plans need it.
    pub fn prefetch_all(plans: &[Self]) -> Result<()> {
        let mut files: Vec<(&Arc<OpenedFile>, Vec<Range<u64>>)> = Vec::new();
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

    /// Adds the ranges of the chunks that were not read before.
    pub(in crate::read) fn unread_chunks(&self, unread: &mut Vec<Range<u64>>) -> Result<()> {
        let mut columns = self.columns.iter().enumerate();
        columns.try_for_each(|(number, column)| self.list.unread_chunks(number, column, unread))
    }

    /// Returns a column of the plan, counted from 0.
    pub(in crate::read) fn column(&self, number: usize) -> Result<&OpenedColumn> {
        self.columns.get(number).ok_or_else(|| {
            Error::bad_argument(format!("column {number} of a plan for {}, counted from 0", self.columns.len()))
        })
    }

    /// Sets the columns, which are of one file.
    pub(in crate::read) fn set_columns<'c>(&mut self, columns: impl Iterator<Item = &'c OpenedColumn>) -> Result<()> {
        self.step = Step::Failed;
        self.columns.clear();
        self.columns.extend(columns.cloned());
        match self.columns.split_first() {
            Some((first, others)) if others.iter().any(|column| !Arc::ptr_eq(&first.file, &column.file)) => {
                Err(Error::bad_argument("the columns of a plan are of one reader"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a plan that is not complete.
    pub(in crate::read) fn check_complete(&self) -> Result<()> {
        if matches!(self.step, Step::Complete) { Ok(()) } else { Err(not_complete()) }
    }

    /// Coalesces the ranges of all tasks.
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
}

#[cold]
pub(in crate::read) fn not_complete() -> Error {
    Error::bad_argument("the plan is not complete: it has failed, or `advance` has not returned true")
}
