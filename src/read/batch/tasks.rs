//! Tasks: which samples a request needs from each chunk, and which bytes of the file to fetch for
//! them.
//!
//! A [`Selection`] sorts the requested samples, so that each chunk is visited once. The *position*
//! of a sample is its index in the request; its *sorted index* is its index in ascending order. A
//! [`Task`] is a range of sorted indices that one chunk serves. Tasks are independent: any thread
//! can run any of them.
//!
//! What to fetch is a trade-off between few bytes and few requests. The options, from the fewest
//! bytes to the most:
//!
//! 1. Nothing, if the file is in memory or the decoder has the chunk.
//! 2. The samples' own bytes, if they are stored raw, have a fixed shape, and are in a chunk that
//!    was verified before. There is one task for each gapless sequence of samples.
//! 3. The blocks that contain the samples, if the block index is known. There is one task for each
//!    sequence of adjacent blocks.
//! 4. The whole chunk, if it is short, if it has no blocks, or if most of it is requested anyway
//!    ([`should_decode_whole`]).
//!
//! The choice between 3 and 4 requires the block index, and finding the chunk requires an index
//! page. It can be necessary to read both first. So a [`TaskList`] is filled in three steps, and
//! each step prefetches what the next one reads.

use crate::bytes::le::u64_of;
use crate::bytes::memory;
use crate::codec::Body;
use crate::format::region::HEADER_LEN;
use crate::open::source::check_inside;
use crate::read::chunk::chunk_bytes::{block_index_of, block_index_ranges, chunk_bytes, seekable_value_bytes};
use crate::read::chunk::open_chunk::{OpenChunk, should_decode_whole};
use crate::read::file::column_inner::ColumnInner;
use crate::read::file::state::{ChunkBlockIndex, ChunkLocation, in_chunk};
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// The samples of a request in ascending order, each with its position in the request. The index of
/// a sample in this order is its *sorted index*.
#[derive(Default)]
pub(in crate::read) struct Selection {
    /// Samples and their positions. Empty if the request is a range.
    order: Vec<(u64, usize)>,
    range: Option<Range<u64>>,
}

impl Selection {
    /// Selects samples in any order. They may repeat.
    pub(in crate::read) fn set_samples(&mut self, indices: &[u64]) -> Result<()> {
        self.range = None;
        self.order.clear();
        memory::reserve(&mut self.order, indices.len())?;
        self.order.extend(indices.iter().copied().zip(0..));
        self.order.sort_unstable();
        Ok(())
    }

    /// Selects a range of samples, in order. Fails if it ends before it starts.
    pub(in crate::read) fn set_range(&mut self, range: Range<u64>) -> Result<()> {
        self.order.clear();
        self.range = None;
        if range.end < range.start {
            let message = format!("the range {}..{} ends before it starts", range.start, range.end);
            return Err(Error::bad_argument(message));
        }
        self.range = Some(range);
        Ok(())
    }

    pub(in crate::read) fn is_range(&self) -> bool {
        self.range.is_some()
    }

    /// Returns the range if the request is a range.
    pub(in crate::read) fn range(&self) -> Option<&Range<u64>> {
        self.range.as_ref()
    }

    pub(in crate::read) fn sample_count(&self) -> usize {
        match &self.range {
            Some(range) => usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX),
            None => self.order.len(),
        }
    }

    /// Returns the last sample.
    pub(in crate::read) fn last(&self) -> Option<u64> {
        match &self.range {
            Some(range) => range.end.checked_sub(1).filter(|last| *last >= range.start),
            None => self.order.last().map(|(sample, _)| *sample),
        }
    }

    /// Returns the sample of a sorted index, and its position in the request.
    #[inline]
    pub(in crate::read) fn get(&self, sorted_index: usize) -> (u64, usize) {
        match &self.range {
            Some(range) => (range.start.saturating_add(u64_of(sorted_index)), sorted_index),
            // unreachable, because sorted indices are below the count; no chunk contains sample
            // `u64::MAX`, so using it would be an error
            None => self.order.get(sorted_index).copied().unwrap_or((u64::MAX, 0)),
        }
    }

    /// Returns the sample at a position of the request.
    pub(in crate::read) fn at_position(&self, position: usize) -> Option<u64> {
        (0..self.sample_count()).map(|i| self.get(i)).find(|(_, at)| *at == position).map(|(sample, _)| sample)
    }

    /// Returns the first sorted index, at or after `sorted_index`, whose sample is at or after
    /// `end`.
    fn sorted_index_of_end(&self, sorted_index: usize, end: u64) -> usize {
        match &self.range {
            Some(range) => {
                let count = end.min(range.end).saturating_sub(range.start);
                usize::try_from(count).unwrap_or(usize::MAX)
            }
            None => {
                let rest = self.order.get(sorted_index..).unwrap_or(&[]);
                sorted_index + rest.iter().take_while(|(sample, _)| *sample < end).count()
            }
        }
    }

    /// Returns how many sorted indices, starting at `sorted_index` and before `end`, have
    /// consecutive samples at consecutive positions.
    #[inline]
    pub(in crate::read) fn run(&self, sorted_index: usize, end: usize) -> usize {
        if self.range.is_some() {
            return end.saturating_sub(sorted_index);
        }
        let mut sorted_indices = self.order.get(sorted_index..end).unwrap_or(&[]).iter();
        let Some(&(mut sample, mut position)) = sorted_indices.next() else { return 0 };
        let mut count = 1;
        for &(next, next_position) in sorted_indices {
            if next != sample.saturating_add(1) || next_position != position + 1 {
                break;
            }
            (sample, position, count) = (next, next_position, count + 1);
        }
        count
    }

    /// Returns how many sorted indices, starting at `sorted_index` and before `end`, have samples
    /// without a gap.
    fn dense(&self, sorted_index: usize, end: usize) -> usize {
        if self.range.is_some() {
            return end.saturating_sub(sorted_index);
        }
        let sorted_indices = self.order.get(sorted_index..end).unwrap_or(&[]);
        // each window has exactly two elements
        let gap = sorted_indices.windows(2).position(|pair| pair[1].0 > pair[0].0.saturating_add(1));
        gap.map_or(sorted_indices.len(), |at| at + 1)
    }
}

/// The bytes to fetch for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::read) enum Fetch {
    /// Nothing: the file is in memory, or the decoder has the chunk.
    Nothing,
    /// The whole chunk: header and body.
    Chunk,
    /// The whole chunk, read directly into the decoder's cache after everything else.
    IntoCache,
    /// Only the values of the samples, which are stored raw.
    Values,
    /// The blocks of the samples.
    Blocks,
}

/// Samples of one chunk.
#[derive(Clone, Debug)]
pub(in crate::read) struct Task {
    pub location: ChunkLocation,
    /// The sorted indices of its samples in the selection.
    pub sorted_indices: Range<usize>,
    /// The bytes of the file to fetch. Empty if nothing is fetched.
    pub bytes: Range<u64>,
    /// If blocks are fetched: the block index of the chunk, and the range of the blocks in its
    /// body.
    pub blocks: Option<(Arc<ChunkBlockIndex>, Range<usize>)>,
    /// The number of the column in the plan.
    pub column: usize,
    pub fetch: Fetch,
    /// Whether the samples are the whole chunk, in order. The chunk is then decoded straight to the
    /// destination.
    pub is_whole_chunk: bool,
    /// Whether the request is a range that continues from the previous chunk. The next request will
    /// then probably need the rest of this chunk, so the chunk is decoded whole.
    pub continues_range: bool,
    /// Whether this is the last task of its column. The decoder then caches its chunk.
    pub is_last: bool,
}

impl Task {
    /// Returns the number of samples that count as requested when deciding whether to decode the
    /// whole chunk.
    pub(in crate::read) fn requested(&self) -> usize {
        if self.continues_range { self.location.sample_count() } else { self.sorted_indices.len() }
    }
}

/// The tasks of a request, in the order in which a single thread executes them: by column, then by
/// sample.
///
/// Planning has three steps, each for all columns: [`TaskList::begin`], [`TaskList::locate`],
/// [`TaskList::complete`]. Each step prefetches what the next one reads. So the number of round
/// trips does not depend on the number of columns. If a caller takes several lists through each
/// step together, it does not depend on the number of files either.
#[derive(Default)]
pub(in crate::read) struct TaskList {
    pub selection: Selection,
    pub tasks: Vec<Task>,
    /// For the last chunk whose samples are read individually: the length of its values, and how
    /// many of these bytes were read sample by sample.
    pub last_unread: (usize, usize),
    /// Finds the blocks of samples.
    planner: Option<OpenChunk>,
    /// The chunks of all columns for which it is not yet decided what to fetch.
    requested: Vec<RequestedChunk>,
    /// Ranges that will be read soon.
    upcoming: Vec<Range<u64>>,
    /// The first error, and the number of its column. Later columns are not planned.
    failed: Option<(usize, Error)>,
}

/// A chunk with requested samples, in a file that is not in memory.
struct RequestedChunk {
    task: Task,
    /// The block index, if it is cached.
    block_index: Option<Arc<ChunkBlockIndex>>,
}

/// A column of a request.
pub(in crate::read) trait PlanColumn {
    fn column(&self) -> &ColumnInner;

    /// Returns the chunk that the decoder of the column has open.
    fn cached_chunk(&self) -> Option<&OpenChunk>;
}

impl PlanColumn for ColumnInner {
    fn column(&self) -> &ColumnInner {
        self
    }

    fn cached_chunk(&self) -> Option<&OpenChunk> {
        None
    }
}

impl TaskList {
    /// Plans the selected samples of columns of one file. On failure, returns the error of the
    /// first column that fails.
    pub(in crate::read) fn plan<P: PlanColumn>(&mut self, columns: &[P]) -> Result<()> {
        self.begin(columns);
        self.locate(columns);
        self.complete(columns)
    }

    /// Begins a request: prefetches the index pages that have not been read before.
    pub(in crate::read) fn begin<P: PlanColumn>(&mut self, columns: &[P]) {
        self.tasks.clear();
        self.requested.clear();
        self.upcoming.clear();
        self.failed = None;
        for (number, column) in columns.iter().map(P::column).enumerate() {
            let checked = check_selection(column, &self.selection);
            if let Err(error) = checked.and_then(|()| self.add_index_ranges(column)) {
                self.failed = Some((number, error));
                break;
            }
        }
        self.prefetch_upcoming(columns);
    }

    fn add_index_ranges(&mut self, column: &ColumnInner) -> Result<()> {
        if column.file.bytes().memory().is_some() {
            return Ok(());
        }
        match self.selection.range() {
            Some(samples) => column.index_ranges(samples, &mut self.upcoming),
            None => (0..self.selection.sample_count())
                .map(|sorted_index| self.selection.get(sorted_index).0)
                .try_for_each(|sample| column.index_ranges(&(sample..sample.saturating_add(1)), &mut self.upcoming)),
        }
    }

    /// Finds the chunks of the samples by reading the index. If the file is in memory, adds the
    /// tasks. Otherwise, prefetches the block indexes of chunks whose blocks are read individually.
    pub(in crate::read) fn locate<P: PlanColumn>(&mut self, columns: &[P]) {
        self.upcoming.clear();
        let count = self.failed.as_ref().map_or(columns.len(), |(number, _)| *number);
        let mut requested = std::mem::take(&mut self.requested);
        for (number, planned) in columns.iter().enumerate().take(count) {
            let (column, cached_chunk) = (planned.column(), planned.cached_chunk());
            let before = (self.tasks.len(), requested.len());
            column.load_tables();
            let located = self.find_chunks(number, column, cached_chunk, &mut requested).and_then(|()| {
                let added = requested.get(before.1..).filter(|_| !self.selection.is_range());
                self.add_block_index_ranges(column, added.unwrap_or(&[]), cached_chunk)
            });
            if let Err(error) = located {
                self.tasks.truncate(before.0);
                requested.truncate(before.1);
                self.failed = Some((number, error));
                break;
            }
        }
        self.requested = requested;
        self.prefetch_upcoming(columns);
    }

    /// Decides what to fetch from each chunk. Reads the block indexes of chunks whose blocks are
    /// read individually, and the headers of raw chunks that are never verified.
    pub(in crate::read) fn complete<P: PlanColumn>(&mut self, columns: &[P]) -> Result<()> {
        let in_column = |number: usize, error: Error| match columns.get(number) {
            Some(planned) => planned.column().in_column(error),
            None => error,
        };
        let mut requested = std::mem::take(&mut self.requested);
        let completed = requested.drain(..).try_for_each(|chunk| {
            let (number, location) = (chunk.task.column, chunk.task.location);
            let Some(planned) = columns.get(number) else { return Ok(()) };
            let fetched = self.fetch(chunk, planned.column(), planned.cached_chunk());
            fetched.map_err(|error| in_column(number, in_chunk(error, &location)))
        });
        self.requested = requested;
        completed?;
        if let Some((number, error)) = self.failed.take() {
            return Err(in_column(number, error));
        }
        let mut next = usize::MAX;
        for task in self.tasks.iter_mut().rev() {
            task.is_last = task.column != next;
            next = task.column;
        }
        Ok(())
    }

    fn prefetch_upcoming<P: PlanColumn>(&self, columns: &[P]) {
        if let Some(first) = columns.first().filter(|_| !self.upcoming.is_empty()) {
            first.column().file.source.prefetch(&self.upcoming);
        }
    }

    /// Finds the chunks of the samples. If the file is in memory, adds their tasks to the list;
    /// otherwise adds the chunks to `requested`.
    fn find_chunks(
        &mut self,
        number: usize,
        column: &ColumnInner,
        cached_chunk: Option<&OpenChunk>,
        requested: &mut Vec<RequestedChunk>,
    ) -> Result<()> {
        let bytes = column.file.bytes();
        let count = self.selection.sample_count();
        let cached_location = cached_chunk.and_then(OpenChunk::location);
        let mut before = cached_location.map(|location| location.entry.samples().end);
        let mut sorted_index = 0;
        while sorted_index < count {
            let (sample, _) = self.selection.get(sorted_index);
            let mut block_index = None;
            let location = match cached_location {
                Some(location) if location.entry.samples().contains(&sample) => *location,
                _ => {
                    block_index = column.cached_block_index(sample);
                    match &block_index {
                        Some(block_index) => {
                            block_index.prefetch();
                            block_index.location
                        }
                        None => column.locate(bytes, sample).map_err(|error| at_sample(error, sample))?,
                    }
                }
            };
            let end = self.selection.sorted_index_of_end(sorted_index, location.entry.samples().end);
            let end = end.max(sorted_index + 1);
            let samples = location.sample_count();
            let is_range = self.selection.is_range();
            let is_whole_chunk = is_range && location.position_of(sample) == 0 && end - sorted_index >= samples;
            let task = Task {
                location,
                sorted_indices: sorted_index..end,
                bytes: 0..0,
                blocks: None,
                column: number,
                fetch: Fetch::Nothing,
                is_whole_chunk,
                continues_range: is_range && before == Some(sample),
                is_last: false,
            };
            if bytes.memory().is_some() {
                self.push(task)?;
            } else {
                memory::reserve(requested, 1)?;
                requested.push(RequestedChunk { task, block_index });
            }
            before = Some(location.entry.samples().end);
            sorted_index = end;
        }
        Ok(())
    }

    /// For each chunk whose block index is not cached, adds the ranges of the block index and of
    /// the first needed block. Skips chunks that are read whole.
    fn add_block_index_ranges(
        &mut self,
        column: &ColumnInner,
        requested: &[RequestedChunk],
        cached_chunk: Option<&OpenChunk>,
    ) -> Result<()> {
        requested.iter().filter(|chunk| chunk.block_index.is_none()).try_for_each(|RequestedChunk { task, .. }| {
            match reads_whole_chunk(&task.location, column, touched_bytes(cached_chunk, &task.location), task) {
                true => Ok(()),
                false => block_index_ranges(
                    column,
                    &task.location,
                    self.selection.get(task.sorted_indices.start).0,
                    &mut self.upcoming,
                ),
            }
        })
    }

    /// Decides what to fetch from a chunk that is not in memory, and adds its tasks.
    fn fetch(&mut self, chunk: RequestedChunk, column: &ColumnInner, cached_chunk: Option<&OpenChunk>) -> Result<()> {
        let RequestedChunk { task, block_index } = chunk;
        let location = task.location;
        // a range is decoded in order, so an earlier chunk would replace the open one before it is
        // used
        let is_reachable = !self.selection.is_range() || task.sorted_indices.start == 0;
        if is_reachable
            && cached_chunk.is_some_and(|cached_chunk| cached_chunk.is_at(&location) && cached_chunk.has_body())
        {
            return self.push(task);
        }
        if let Some(bytes) = seekable_value_bytes(column, &location)? {
            let (touched_bytes, whole) =
                should_decode_whole(&location, bytes, touched_bytes(cached_chunk, &location), task.requested());
            if task.is_whole_chunk || !whole {
                self.last_unread = (bytes, touched_bytes);
                return self.fetch_samples(&task, column);
            }
        }
        let touched_bytes = touched_bytes(cached_chunk, &location);
        let block_index = match block_index {
            _ if task.is_whole_chunk || reads_whole_chunk(&location, column, touched_bytes, &task) => None,
            Some(block_index) => Some(block_index),
            None => block_index_of(column, &location)?,
        };
        if let Some(block_index) = block_index
            && self.fetch_blocks(&task, column, &block_index, touched_bytes)?
        {
            return Ok(());
        }
        let length = chunk_bytes(&location.entry)?;
        check_inside(&*column.file.source, location.entry.offset, length)?;
        let end = location.entry.offset.saturating_add(u64_of(length));
        self.push(Task { bytes: location.entry.offset..end, fetch: Fetch::Chunk, ..task })
    }

    /// Adds a task for each sequence of samples whose blocks are contiguous. Returns `false` if the
    /// whole chunk should be read instead.
    fn fetch_blocks(
        &mut self,
        task: &Task,
        column: &ColumnInner,
        block_index: &Arc<ChunkBlockIndex>,
        touched_bytes: usize,
    ) -> Result<bool> {
        let mut planner = self.planner.take().unwrap_or_else(OpenChunk::new);
        let planned = planner.open_indexed(column, block_index, touched_bytes).and_then(|()| {
            if planner.count_touched(task.requested()) {
                return Ok(false);
            }
            self.add_blocks(task, column, block_index, &planner).map(|()| true)
        });
        self.planner = Some(planner);
        planned
    }

    fn add_blocks(
        &mut self,
        task: &Task,
        column: &ColumnInner,
        block_index: &Arc<ChunkBlockIndex>,
        planner: &OpenChunk,
    ) -> Result<()> {
        let body = Body::whole(block_index.body());
        let start = task.location.entry.offset.saturating_add(HEADER_LEN);
        let first = self.tasks.len();
        for sorted_index in task.sorted_indices.clone() {
            let (sample, _) = self.selection.get(sorted_index);
            let i = task.location.position_of(sample);
            // `i` is below the chunk's sample count
            let bytes = planner.values_range(column, body, &(i..i.saturating_add(1)));
            let bytes = bytes.map_err(|error| at_sample(error, sample))?;
            // tasks without bytes run first; if this task were one of them, it could replace the
            // open chunk before the task that uses that chunk has run
            let bytes = if bytes.is_empty() { 0..column.layout().element_bytes } else { bytes };
            let needed = planner.blocks_of(body, &bytes).map_err(|error| in_chunk(error, &task.location))?;
            let needed = needed.ok_or_else(|| Error::internal("a chunk to read block by block has no blocks"))?;
            if let Some(last) = self.tasks.get_mut(first..).and_then(<[Task]>::last_mut)
                && let Some((_, blocks)) = &mut last.blocks
                && needed.start <= blocks.end
            {
                blocks.end = blocks.end.max(needed.end);
                last.sorted_indices.end = sorted_index + 1;
                last.bytes.end = start.saturating_add(u64_of(blocks.end)); // no overflow: inside the chunk
                continue;
            }
            let bytes = start.saturating_add(u64_of(needed.start))..start.saturating_add(u64_of(needed.end));
            let blocks = Some((block_index.clone(), needed));
            let sorted_indices = sorted_index..sorted_index + 1;
            self.push(Task { sorted_indices, bytes, fetch: Fetch::Blocks, blocks, ..task.clone() })?;
        }
        Ok(())
    }

    /// Adds a task for each gapless sequence of samples.
    fn fetch_samples(&mut self, task: &Task, column: &ColumnInner) -> Result<()> {
        let sample_bytes = u64_of(column.layout().inner_bytes);
        let start = task.location.values_end().saturating_sub(u64_of(self.last_unread.0));
        let offset_of = |sample: u64| {
            let before = sample.saturating_sub(task.location.entry.first_sample);
            start.saturating_add(before.saturating_mul(sample_bytes)) // no overflow: inside the chunk
        };
        let mut sorted_index = task.sorted_indices.start;
        while sorted_index < task.sorted_indices.end {
            let end = sorted_index + self.selection.dense(sorted_index, task.sorted_indices.end).max(1);
            let (first, last) = (self.selection.get(sorted_index).0, self.selection.get(end - 1).0);
            let bytes = offset_of(first)..offset_of(last.saturating_add(1));
            let length = usize::try_from(bytes.end.saturating_sub(bytes.start)).unwrap_or(usize::MAX);
            check_inside(&*column.file.source, bytes.start, length)?;
            self.push(Task { sorted_indices: sorted_index..end, bytes, fetch: Fetch::Values, ..task.clone() })?;
            sorted_index = end;
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, task: Task) -> Result<()> {
        memory::reserve(&mut self.tasks, 1)?;
        self.tasks.push(task);
        Ok(())
    }

    /// Returns the numbers of the tasks of a column, which are consecutive. Cost: logarithmic in
    /// the number of tasks, so a request for thousands of columns does not take quadratic time.
    pub(in crate::read) fn of_column(&self, number: usize) -> Range<usize> {
        let start = self.tasks.partition_point(|task| task.column < number);
        let rest = self.tasks.get(start..).unwrap_or(&[]);
        start..start + rest.partition_point(|task| task.column == number) // at most the number of tasks
    }

    /// Prefetches the chunks that have not been read before.
    pub(in crate::read) fn prefetch_unread<P: PlanColumn>(&mut self, columns: &[P]) -> Result<()> {
        let mut unread = std::mem::take(&mut self.upcoming);
        unread.clear();
        let mut all = columns.iter().map(P::column).enumerate();
        let found = all.try_for_each(|(number, column)| self.unread_chunks(number, column, &mut unread));
        self.upcoming = unread;
        self.prefetch_upcoming(columns);
        found
    }

    /// Adds the ranges of the chunks of a column that have not been read before.
    pub(in crate::read) fn unread_chunks(
        &self,
        number: usize,
        column: &ColumnInner,
        unread: &mut Vec<Range<u64>>,
    ) -> Result<()> {
        // in a mapped file, the first use of a block has already prefetched the whole chunk
        let is_map = column.file.bytes().memory().is_some();
        let is_read = |chunk| if is_map { column.is_open(chunk) } else { column.is_checked(chunk) };
        let is_whole = |task: &&Task| task.blocks.is_none() && task.fetch != Fetch::Values;
        let tasks = self.tasks.get(self.of_column(number)).unwrap_or(&[]);
        for task in tasks.iter().filter(is_whole).filter(|task| !is_read(task.location.chunk)) {
            let entry = &task.location.entry;
            let end = entry.offset.saturating_add(HEADER_LEN).saturating_add(entry.stored_bytes.into());
            memory::reserve(unread, 1)?;
            unread.push(entry.offset..end);
        }
        Ok(())
    }
}

/// Returns how many bytes of the chunk's values were already read or decoded sample by sample.
fn touched_bytes(cached_chunk: Option<&OpenChunk>, location: &ChunkLocation) -> usize {
    cached_chunk.filter(|cached_chunk| cached_chunk.is_at(location)).map_or(0, OpenChunk::touched_bytes)
}

/// Returns whether to read a whole chunk. This can be decided without the block index only if the
/// shape is fixed; returns `false` otherwise.
fn reads_whole_chunk(location: &ChunkLocation, column: &ColumnInner, touched_bytes: usize, task: &Task) -> bool {
    let layout = column.layout();
    let bytes = location.sample_count().saturating_mul(layout.inner_bytes);
    !layout.has_shape() && should_decode_whole(location, bytes, touched_bytes, task.requested()).1
}

/// Refuses a selection that contains lost samples of a salvaged file.
fn check_selection(column: &ColumnInner, selection: &Selection) -> Result<()> {
    column.schema().check_known()?;
    if column.index().salvaged_chunks.is_none() {
        return Ok(());
    }
    let sample = |sorted_index| selection.get(sorted_index).0;
    if let (true, Some(last)) = (selection.is_range(), selection.last()) {
        return column.check_not_lost(&(sample(0)..last.saturating_add(1)));
    }
    (0..selection.sample_count()).map(sample).try_for_each(|i| column.check_not_lost(&(i..i.saturating_add(1))))
}

/// Adds a sample to an error.
pub(in crate::read) fn at_sample(error: Error, sample: u64) -> Error {
    error.with_samples(sample..sample.saturating_add(1))
}

/// The bytes of a task.
#[derive(Clone, Copy, Debug)]
pub(in crate::read) enum TaskBytes<'a> {
    /// No fetched bytes: the file is in memory, or the decoder has the chunk.
    Available,
    /// The bytes of the file that the task lists.
    Fetched(&'a [u8]),
}
