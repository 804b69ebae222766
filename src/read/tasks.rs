//! The work of a request: for each chunk, which of its samples are wanted and which bytes of the
//! file they need.

use super::chunk_bytes::chunk_bytes;
use super::chunk_location::ChunkLocation;
use super::chunk_state::{HeldChunk, whole_chunk_pays};
use super::opened_column::OpenedColumn;
use super::selection::Selection;
use crate::format::region::HEAD;
use crate::le::u64_of;
use crate::open::Source;
use crate::open::source::check_inside;
use crate::{Error, Result, memory};
use std::ops::Range;

/// The bytes that are fetched for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fetch {
    /// Nothing: the file is in memory, or the decoder holds the chunk.
    Nothing,
    /// The chunk: head and body.
    Chunk,
    /// The chunk, but on its own, after all that is fetched: straight to the memory in which the
    /// decoder keeps it.
    Kept,
    /// The values of the samples alone, which are stored as they are.
    Values,
}

/// Samples of one chunk. Tasks are independent: any thread can do any of them.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub location: ChunkLocation,
    /// Ranks of the selection.
    pub ranks: Range<usize>,
    /// The bytes of the file that are fetched; empty if none are.
    pub bytes: Range<u64>,
    /// The number of the column in the plan.
    pub column: usize,
    pub fetch: Fetch,
    /// The samples are the whole chunk, in order: it is decoded straight to the destination.
    pub is_straight: bool,
    /// A range that read the chunk before continues here, so the next request will probably want
    /// the rest: the chunk is decoded whole.
    pub continues_range: bool,
    /// The last task of its column: the decoder keeps the chunk.
    pub is_last: bool,
}

impl Task {
    /// Returns the number of samples that are wanted, for the rule that decides whether to decode
    /// the whole chunk.
    pub(super) fn wanted(&self) -> usize {
        if self.continues_range { self.location.sample_count() } else { self.ranks.len() }
    }
}

/// The tasks of a request, in the order in which a single thread reads: by column, then by sample.
#[derive(Default)]
pub(super) struct TaskList {
    pub selection: Selection,
    pub tasks: Vec<Task>,
    /// For the last chunk whose samples are read alone: its values, and how much of them was taken.
    pub left_in_file: (usize, usize),
}

impl TaskList {
    /// Adds the tasks of a column. `held` is the chunk that the decoder of the column has.
    ///
    /// Reads the index; of raw chunks that are never verified also the head.
    pub(super) fn add_column(&mut self, number: usize, column: &OpenedColumn, held: Option<&HeldChunk>) -> Result<()> {
        column.load_tables();
        let bytes = column.file.bytes();
        let count = self.selection.sample_count();
        let first_task = self.tasks.len();
        let held_location = held.and_then(HeldChunk::location);
        let mut before = held_location.map(|location| location.entry.samples().end);
        let mut rank = 0;
        while rank < count {
            let (sample, _) = self.selection.get(rank);
            let location = match held_location {
                Some(location) if location.entry.samples().contains(&sample) => *location,
                _ => column.locate(bytes, sample).map_err(|error| at_sample(error, sample))?,
            };
            let end = self.selection.rank_of_end(rank, location.entry.samples().end).max(rank + 1);
            let samples = location.sample_count();
            let is_range = self.selection.is_range();
            let is_straight = is_range && location.position_of(sample) == 0 && end - rank >= samples;
            let task = Task {
                location,
                ranks: rank..end,
                bytes: 0..0,
                column: number,
                fetch: Fetch::Nothing,
                is_straight,
                continues_range: is_range && before == Some(sample),
                is_last: false,
            };
            // a range is decoded in order: chunks before the one that is held replace it
            let is_reachable = !is_range || rank == 0;
            let is_held = is_reachable && held.is_some_and(|held| held.holds(&location) && held.has_body());
            if bytes.memory().is_some() || is_held {
                self.push(task)?;
            } else {
                self.fetch(task, column, held)?;
            }
            before = Some(location.entry.samples().end);
            rank = end;
        }
        if let Some(last) = self.tasks.get_mut(first_task..).and_then(<[Task]>::last_mut) {
            last.is_last = true;
        }
        Ok(())
    }

    /// Adds a task of a file that is not in memory.
    fn fetch(&mut self, task: Task, column: &OpenedColumn, held: Option<&HeldChunk>) -> Result<()> {
        let location = task.location;
        if let Some(bytes) = column.readable_alone(&location)? {
            let taken = held.filter(|held| held.holds(&location)).map_or(0, HeldChunk::taken);
            let (taken, whole) = whole_chunk_pays(&location, bytes, taken, task.wanted());
            if task.is_straight || !whole {
                self.left_in_file = (bytes, taken);
                return self.fetch_alone(&task, column);
            }
        }
        let length = chunk_bytes(&location.entry)?;
        check_inside(&*column.file.source, location.entry.offset, length)?;
        let end = location.entry.offset.saturating_add(u64_of(length));
        self.push(Task { bytes: location.entry.offset..end, fetch: Fetch::Chunk, ..task })
    }

    /// Adds a task for each run of samples without a gap.
    fn fetch_alone(&mut self, task: &Task, column: &OpenedColumn) -> Result<()> {
        let sample_bytes = u64_of(column.layout().inner_bytes);
        let start = task.location.entry.offset.saturating_add(HEAD);
        let offset_of = |sample: u64| {
            let before = sample.saturating_sub(task.location.entry.first_sample);
            start.saturating_add(before.saturating_mul(sample_bytes)) // inside the chunk
        };
        let mut rank = task.ranks.start;
        while rank < task.ranks.end {
            let end = rank + self.selection.dense(rank, task.ranks.end).max(1);
            let (first, last) = (self.selection.get(rank).0, self.selection.get(end - 1).0);
            let bytes = offset_of(first)..offset_of(last.saturating_add(1));
            let length = usize::try_from(bytes.end.saturating_sub(bytes.start)).unwrap_or(usize::MAX);
            check_inside(&*column.file.source, bytes.start, length)?;
            self.push(Task { ranks: rank..end, bytes, fetch: Fetch::Values, ..task.clone() })?;
            rank = end;
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, task: Task) -> Result<()> {
        memory::reserve(&mut self.tasks, 1)?;
        self.tasks.push(task);
        Ok(())
    }

    /// Announces the chunks of a column that were not read before to the operating system.
    pub(super) fn announce(&self, number: usize, column: &OpenedColumn) {
        for task in self.tasks.iter().filter(|task| task.column == number && task.fetch != Fetch::Values) {
            if !column.is_checked(task.location.chunk) {
                let entry = &task.location.entry;
                let end = entry.offset.saturating_add(HEAD).saturating_add(entry.stored_bytes.into());
                column.file.source.will_need(entry.offset..end);
            }
        }
    }
}

/// Adds a sample to an error.
pub(super) fn at_sample(error: Error, sample: u64) -> Error {
    error.with_samples(sample..sample.saturating_add(1))
}
