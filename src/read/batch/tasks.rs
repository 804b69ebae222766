//! The work of a request: for each chunk, which of its samples are wanted and which bytes of the
//! file they need.

use super::selection::Selection;
use crate::codec::Body;
use crate::format::region::HEAD;
use crate::le::u64_of;
use crate::open::source::check_inside;
use crate::read::chunk::chunk_bytes::chunk_bytes;
use crate::read::chunk::chunk_state::{HeldChunk, in_chunk, whole_chunk_pays};
use crate::read::chunk::kept_fronts::ChunkFront;
use crate::read::file::opened_column::OpenedColumn;
use crate::read::locate::chunk_location::ChunkLocation;
use crate::{Error, Result, memory};
use std::ops::Range;
use std::sync::Arc;

/// The bytes that are fetched for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::read) enum Fetch {
    /// Nothing: the file is in memory, or the decoder holds the chunk.
    Nothing,
    /// The chunk: head and body.
    Chunk,
    /// The chunk, but on its own, after all that is fetched: straight to the memory in which the
    /// decoder keeps it.
    Kept,
    /// The values of the samples alone, which are stored as they are.
    Values,
    /// The blocks of the samples.
    Blocks,
}

/// Samples of one chunk. Tasks are independent: any thread can do any of them.
#[derive(Clone, Debug)]
pub(in crate::read) struct Task {
    pub location: ChunkLocation,
    /// Ranks of the selection.
    pub ranks: Range<usize>,
    /// The bytes of the file that are fetched; empty if none are.
    pub bytes: Range<u64>,
    /// If blocks are fetched: the front of the chunk, and where in its body they are.
    pub blocks: Option<(Arc<ChunkFront>, Range<usize>)>,
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
    pub(in crate::read) fn wanted(&self) -> usize {
        if self.continues_range { self.location.sample_count() } else { self.ranks.len() }
    }
}

/// The tasks of a request, in the order in which a single thread reads: by column, then by sample.
#[derive(Default)]
pub(in crate::read) struct TaskList {
    pub selection: Selection,
    pub tasks: Vec<Task>,
    /// For the last chunk whose samples are read alone: its values, and how much of them was taken.
    pub left_in_file: (usize, usize),
    /// Finds the blocks of samples.
    planner: Option<HeldChunk>,
    /// The chunks of a column, before it is known what is fetched of them.
    wanted: Vec<WantedChunk>,
    /// Ranges that will be read soon.
    soon: Vec<Range<u64>>,
}

/// A chunk of a file that is not in memory, of which samples are wanted.
struct WantedChunk {
    task: Task,
    /// The front, if it is kept.
    front: Option<Arc<ChunkFront>>,
}

impl TaskList {
    /// Adds the tasks of a column. `held` is the chunk that the decoder of the column has.
    ///
    /// Reads the index, and of chunks whose blocks are read alone the front; of raw chunks that are
    /// never verified the head.
    pub(in crate::read) fn add_column(
        &mut self,
        number: usize,
        column: &OpenedColumn,
        held: Option<&HeldChunk>,
    ) -> Result<()> {
        column.load_tables();
        let first_task = self.tasks.len();
        let mut wanted = std::mem::take(&mut self.wanted);
        wanted.clear();
        let result = self.find_chunks(number, column, held, &mut wanted).and_then(|()| {
            if !self.selection.is_range() {
                self.prefetch_fronts(column, &wanted, held)?;
            }
            wanted.drain(..).try_for_each(|chunk| {
                let location = chunk.task.location;
                self.fetch(chunk, column, held).map_err(|error| in_chunk(error, &location))
            })
        });
        self.wanted = wanted;
        if let Some(last) = self.tasks.get_mut(first_task..).and_then(<[Task]>::last_mut) {
            last.is_last = true;
        }
        result
    }

    /// Finds the chunks of the samples. Adds the tasks of a file that is in memory, and of another
    /// what is wanted of each chunk to `wanted`.
    fn find_chunks(
        &mut self,
        number: usize,
        column: &OpenedColumn,
        held: Option<&HeldChunk>,
        wanted: &mut Vec<WantedChunk>,
    ) -> Result<()> {
        let bytes = column.file.bytes();
        let count = self.selection.sample_count();
        let held_location = held.and_then(HeldChunk::location);
        let mut before = held_location.map(|location| location.entry.samples().end);
        let mut rank = 0;
        while rank < count {
            let (sample, _) = self.selection.get(rank);
            let mut front = None;
            let location = match held_location {
                Some(location) if location.entry.samples().contains(&sample) => *location,
                _ => {
                    front = column.kept_front(sample);
                    match &front {
                        Some(front) => {
                            front.announce();
                            front.location
                        }
                        None => column.locate(bytes, sample).map_err(|error| at_sample(error, sample))?,
                    }
                }
            };
            let end = self.selection.rank_of_end(rank, location.entry.samples().end).max(rank + 1);
            let samples = location.sample_count();
            let is_range = self.selection.is_range();
            let is_straight = is_range && location.position_of(sample) == 0 && end - rank >= samples;
            let task = Task {
                location,
                ranks: rank..end,
                bytes: 0..0,
                blocks: None,
                column: number,
                fetch: Fetch::Nothing,
                is_straight,
                continues_range: is_range && before == Some(sample),
                is_last: false,
            };
            if bytes.memory().is_some() {
                self.push(task)?;
            } else {
                memory::reserve(wanted, 1)?;
                wanted.push(WantedChunk { task, front });
            }
            before = Some(location.entry.samples().end);
            rank = end;
        }
        Ok(())
    }

    /// Prefetches front and first block of the chunks whose fronts are not kept, of all at the same
    /// time. Chunks that are read whole follow later.
    fn prefetch_fronts(
        &mut self,
        column: &OpenedColumn,
        wanted: &[WantedChunk],
        held: Option<&HeldChunk>,
    ) -> Result<()> {
        self.soon.clear();
        for WantedChunk { task, front } in wanted {
            if front.is_none() && !whole_before_front(&task.location, column, taken(held, &task.location), task) {
                column.front_ranges(&task.location, self.selection.get(task.ranks.start).0, &mut self.soon)?;
            }
        }
        column.prefetch(&self.soon);
        Ok(())
    }

    /// Adds a task of a file that is not in memory.
    fn fetch(&mut self, chunk: WantedChunk, column: &OpenedColumn, held: Option<&HeldChunk>) -> Result<()> {
        let WantedChunk { task, front } = chunk;
        let location = task.location;
        // a range is decoded in order: chunks before the one that is held replace it
        let is_reachable = !self.selection.is_range() || task.ranks.start == 0;
        if is_reachable && held.is_some_and(|held| held.holds(&location) && held.has_body()) {
            return self.push(task);
        }
        if let Some(bytes) = column.readable_alone(&location)? {
            let (taken, whole) = whole_chunk_pays(&location, bytes, taken(held, &location), task.wanted());
            if task.is_straight || !whole {
                self.left_in_file = (bytes, taken);
                return self.fetch_alone(&task, column);
            }
        }
        let taken = taken(held, &location);
        let front = match front {
            _ if task.is_straight || whole_before_front(&location, column, taken, &task) => None,
            Some(front) => Some(front),
            None => column.front(&location)?,
        };
        if let Some(front) = front
            && self.fetch_blocks(&task, column, &front, taken)?
        {
            return Ok(());
        }
        let length = chunk_bytes(&location.entry)?;
        check_inside(&*column.file.source, location.entry.offset, length)?;
        let end = location.entry.offset.saturating_add(u64_of(length));
        self.push(Task { bytes: location.entry.offset..end, fetch: Fetch::Chunk, ..task })
    }

    /// Adds a task for each run of samples whose blocks adjoin each other. Returns `false` if the
    /// whole chunk is to be read.
    fn fetch_blocks(
        &mut self,
        task: &Task,
        column: &OpenedColumn,
        front: &Arc<ChunkFront>,
        taken: usize,
    ) -> Result<bool> {
        let mut planner = self.planner.take().unwrap_or_else(HeldChunk::new);
        let planned = planner.open_front(column, front, taken).and_then(|()| {
            if planner.count_taken(task.wanted()) {
                return Ok(false);
            }
            self.add_blocks(task, column, front, &planner).map(|()| true)
        });
        self.planner = Some(planner);
        planned
    }

    fn add_blocks(
        &mut self,
        task: &Task,
        column: &OpenedColumn,
        front: &Arc<ChunkFront>,
        planner: &HeldChunk,
    ) -> Result<()> {
        let body = Body::whole(front.body());
        let start = task.location.entry.offset.saturating_add(HEAD);
        let first = self.tasks.len();
        for rank in task.ranks.clone() {
            let (sample, _) = self.selection.get(rank);
            let i = task.location.position_of(sample);
            // below the chunk's sample count
            let bytes = planner.values_range(column, body, &(i..i.saturating_add(1)));
            let bytes = bytes.map_err(|error| at_sample(error, sample))?;
            // a task needs bytes, or it would be done before that of the chunk that is held
            let bytes = if bytes.is_empty() { 0..column.layout().element_bytes } else { bytes };
            let needed = planner.blocks_of(body, &bytes).map_err(|error| in_chunk(error, &task.location))?;
            let needed = needed.ok_or_else(|| Error::internal("a chunk that is read by block is not in blocks"))?;
            if let Some(last) = self.tasks.get_mut(first..).and_then(<[Task]>::last_mut)
                && let Some((_, blocks)) = &mut last.blocks
                && needed.start <= blocks.end
            {
                blocks.end = blocks.end.max(needed.end);
                last.ranks.end = rank + 1;
                last.bytes.end = start.saturating_add(u64_of(blocks.end)); // inside the chunk
                continue;
            }
            let bytes = start.saturating_add(u64_of(needed.start))..start.saturating_add(u64_of(needed.end));
            let blocks = Some((front.clone(), needed));
            self.push(Task { ranks: rank..rank + 1, bytes, fetch: Fetch::Blocks, blocks, ..task.clone() })?;
        }
        Ok(())
    }

    /// Adds a task for each run of samples without a gap.
    fn fetch_alone(&mut self, task: &Task, column: &OpenedColumn) -> Result<()> {
        let sample_bytes = u64_of(column.layout().inner_bytes);
        let start = task.location.values_end().saturating_sub(u64_of(self.left_in_file.0));
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

    /// Returns the numbers of the tasks of a column, which follow each other. Cost: logarithmic in
    /// the number of tasks, so that a request for thousands of columns is not quadratic.
    pub(in crate::read) fn of_column(&self, number: usize) -> Range<usize> {
        let start = self.tasks.partition_point(|task| task.column < number);
        let rest = self.tasks.get(start..).unwrap_or(&[]);
        start..start + rest.partition_point(|task| task.column == number) // at most their count
    }

    /// Prefetches the chunks of a column that were not read before.
    pub(in crate::read) fn prefetch_unread(&mut self, number: usize, column: &OpenedColumn) -> Result<()> {
        let mut unread = std::mem::take(&mut self.soon);
        unread.clear();
        let found = self.unread_chunks(number, column, &mut unread);
        column.prefetch(&unread);
        self.soon = unread;
        found
    }

    /// Adds the ranges of the chunks of a column that were not read before.
    pub(in crate::read) fn unread_chunks(
        &self,
        number: usize,
        column: &OpenedColumn,
        unread: &mut Vec<Range<u64>>,
    ) -> Result<()> {
        // of a map all of a chunk was prefetched when the first of its blocks was used
        let is_map = column.file.bytes().memory().is_some();
        let is_read = |chunk| if is_map { column.is_open(chunk) } else { column.is_checked(chunk) };
        let is_whole = |task: &&Task| task.blocks.is_none() && task.fetch != Fetch::Values;
        let tasks = self.tasks.get(self.of_column(number)).unwrap_or(&[]);
        for task in tasks.iter().filter(is_whole).filter(|task| !is_read(task.location.chunk)) {
            let entry = &task.location.entry;
            let end = entry.offset.saturating_add(HEAD).saturating_add(entry.stored_bytes.into());
            memory::reserve(unread, 1)?;
            unread.push(entry.offset..end);
        }
        Ok(())
    }
}

/// Returns how much of a chunk the decoder of the column has taken sample by sample.
fn taken(held: Option<&HeldChunk>, location: &ChunkLocation) -> usize {
    held.filter(|held| held.holds(location)).map_or(0, HeldChunk::taken)
}

/// Returns whether to read a whole chunk, as far as that is known without its front: of a column of
/// a fixed shape it is.
fn whole_before_front(location: &ChunkLocation, column: &OpenedColumn, taken: usize, task: &Task) -> bool {
    let layout = column.layout();
    let bytes = location.sample_count().saturating_mul(layout.inner_bytes);
    !layout.has_shape() && whole_chunk_pays(location, bytes, taken, task.wanted()).1
}

/// Adds a sample to an error.
pub(in crate::read) fn at_sample(error: Error, sample: u64) -> Error {
    error.with_samples(sample..sample.saturating_add(1))
}
