//! Reads many samples with one call: plan, fetch, decode.
//!
//! All columns are planned together, and their bytes are fetched together, in waves: groups of
//! requests that one call of the source reads. A task is the set of samples that are read together
//! from one chunk. As soon as the wave with its bytes has arrived, the task is decoded to the
//! positions of its samples.
//!
//! Bytes normally pass through the buffer of a wave. If the source reads one range after another,
//! two kinds of reads bypass it, which saves a copy:
//!
//! * Long ranges of raw values are read straight to their destination ([`read_zero_copy`]).
//! * A long chunk that its decoder caches for the next request is read straight into that cache,
//!   after all other tasks ([`mark_into_cache`]). It is read last, because the cache can hold the
//!   chunk of another task until then.

use super::tasks::{Fetch, PlanColumn, Task, TaskBytes, TaskList};
use super::waves::{FetchScratch, fetch, run_available};
use crate::bytes::le::{self, u64_of};
use crate::codec::Body;
use crate::open::Source;
use crate::open::source::read;
use crate::read::buffer::ColumnBuffer;
use crate::read::chunk::chunk_bytes::{check_chunk_bytes, fetch_bytes};
use crate::read::chunk::open_chunk::OpenChunk;
use crate::read::decode::decoder::TaskDecoder;
use crate::read::decode::output::{Destination, FixedOutput};
use crate::read::file::column_inner::ColumnInner;
use crate::read::file::state::in_chunk;
use crate::{Error, Result};

/// A column to gather, and its decoder.
pub(in crate::read) struct Gatherer {
    pub column: ColumnInner,
    pub decoder: TaskDecoder,
}

/// Reusable memory for requests.
#[derive(Default)]
pub(crate) struct RequestScratch {
    pub(in crate::read) tasks: TaskList,
    fetch: FetchScratch,
}

/// The destinations of several columns.
pub(in crate::read) trait ColumnDestinations {
    /// Returns the destination of column number `number`.
    fn of(&mut self, number: usize) -> Option<Destination<'_>>;
}

impl ColumnDestinations for &mut [ColumnBuffer] {
    fn of(&mut self, number: usize) -> Option<Destination<'_>> {
        self.get_mut(number).map(Destination::Buffer)
    }
}

impl ColumnDestinations for &mut [u8] {
    fn of(&mut self, _number: usize) -> Option<Destination<'_>> {
        Some(Destination::Bytes(self))
    }
}

impl AsRef<Gatherer> for Gatherer {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl<C: AsRef<Gatherer>> PlanColumn for C {
    fn column(&self) -> &ColumnInner {
        &self.as_ref().column
    }

    fn cached_chunk(&self) -> Option<&OpenChunk> {
        Some(&self.as_ref().decoder.chunk)
    }
}

impl AsMut<Gatherer> for Gatherer {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl Gatherer {
    pub(in crate::read) fn new(column: ColumnInner) -> Self {
        Self { column, decoder: TaskDecoder::new() }
    }

    /// Reads the chunk of a task into the decoder's cache, and decodes the task.
    fn fetch_into_cache(&mut self, tasks: &TaskList, task: &Task, output: Destination<'_>) -> Result<()> {
        let Self { column, decoder } = self;
        decoder.enter_column(column);
        decoder.chunk.close(); // its body will be overwritten
        let bytes = fetch_bytes(column, &task.location.entry, decoder.cached.begin_whole())?;
        let checked = check_chunk_bytes(column, &task.location, bytes);
        let (header, body) = checked.map_err(|error| in_chunk(error, &task.location))?;
        decoder.chunk.open(column, &task.location, &header, Body::whole(body))?;
        let decoded = decoder.decode_task(column, tasks, task, TaskBytes::Available, output);
        decoded.inspect_err(|_| decoder.chunk.close())
    }
}

/// Reads the samples selected in `scratch` from all columns to their destinations. Returns the
/// number of nulls of the last column.
pub(in crate::read) fn gather<C: AsMut<Gatherer> + AsRef<Gatherer>>(
    columns: &mut [C],
    scratch: &mut RequestScratch,
    mut out: impl ColumnDestinations,
) -> Result<usize> {
    let RequestScratch { tasks, fetch: fetch_scratch } = scratch;
    for (number, gatherer) in columns.iter_mut().map(AsMut::as_mut).enumerate() {
        let Some(output) = out.of(number) else { continue };
        let Gatherer { column, decoder } = gatherer;
        decoder.begin_output(column, tasks, output).map_err(|error| column.in_column(error))?;
    }
    tasks.plan(columns)?;
    tasks.prefetch_unread(columns)?;
    let needs_source = tasks.tasks.iter().any(|task| !task.bytes.is_empty());
    let file = columns.first().filter(|_| needs_source).map(|first| first.as_ref().column.file.clone());
    let any_into_cache = file.as_ref().is_some_and(|file| mark_into_cache(&*file.source, &mut tasks.tasks));
    let read = match &file {
        Some(file) => read_zero_copy(&*file.source, columns, tasks, &mut out),
        None => Ok(()),
    };
    let tasks = &*tasks;
    // tasks after a failed one are not needed
    let end = read.as_ref().err().map_or(tasks.tasks.len(), |(number, _)| *number);
    let needed = tasks.tasks.get(..end).unwrap_or(&[]);
    let mut decode = |number: usize, bytes: TaskBytes<'_>| {
        let task = tasks.tasks.get(number).ok_or_else(not_of_request)?;
        let (Some(gatherer), Some(output)) = (columns.get_mut(task.column), out.of(task.column)) else {
            return Err(not_of_request());
        };
        let gatherer = gatherer.as_mut();
        if task.fetch == Fetch::IntoCache {
            return gatherer.fetch_into_cache(tasks, task, output);
        }
        let Gatherer { column, decoder } = gatherer;
        decoder.decode_task(column, tasks, task, bytes, output)
    };
    let result = match &file {
        Some(file) => {
            let fetched = fetch(&*file.source, needed, fetch_scratch, &mut decode);
            if any_into_cache { run_into_cache(needed, fetched, &mut decode) } else { fetched }
        }
        None => run_available(needed, &mut decode),
    };
    if let Err((number, error)) = result.and(read) {
        let column = tasks.tasks.get(number).and_then(|task| columns.get(task.column));
        return Err(match column {
            Some(gatherer) => gatherer.as_ref().column.in_column(error),
            None => error,
        });
    }
    let mut nulls = 0;
    for (number, gatherer) in columns.iter_mut().map(AsMut::as_mut).enumerate() {
        let Some(output) = out.of(number) else { continue };
        let Gatherer { column, decoder } = gatherer;
        nulls = decoder.finish_output(number, column, tasks, output).map_err(|error| column.in_column(error))?;
    }
    Ok(nulls)
}

#[cold]
fn not_of_request() -> Error {
    Error::internal("a task does not belong to any column of its request")
}

/// The minimum length of a zero-copy read. It is cheaper to read a shorter range together with its
/// neighbors and copy it.
const MIN_ZERO_COPY_BYTES: u64 = 16 << 10;

/// Returns the minimum length of a zero-copy read: four times the number of bytes that the source
/// reads in the time of one request, because such a read is a separate call. `None` if the source
/// reads many ranges at the same time instead.
fn min_zero_copy_bytes(source: &dyn Source) -> Option<u64> {
    let config = source.coalesce();
    (config.max_in_flight <= 1).then(|| MIN_ZERO_COPY_BYTES.max(config.gap_bytes.saturating_mul(4)))
}

/// Marks the long chunks that decoders cache for the next request, so that they are read straight
/// into the cache. Their tasks then need no fetched bytes. Returns whether any chunk was marked.
fn mark_into_cache(source: &dyn Source, tasks: &mut [Task]) -> bool {
    let Some(min_bytes) = min_zero_copy_bytes(source) else { return false };
    let mut any_into_cache = false;
    for task in tasks.iter_mut().filter(|task| task.is_last && task.fetch == Fetch::Chunk) {
        if task.bytes.end.saturating_sub(task.bytes.start) >= min_bytes {
            task.bytes = 0..0;
            task.fetch = Fetch::IntoCache;
            any_into_cache = true;
        }
    }
    any_into_cache
}

/// Calls `run` with the number of each task whose chunk is read into the cache, up to the first
/// failed task. All other tasks must already have run, because the cache can hold the chunk of one
/// of them. `fetched` is their result. Returns the first error of all tasks.
fn run_into_cache(
    tasks: &[Task],
    fetched: std::result::Result<(), (usize, Error)>,
    run: &mut dyn FnMut(usize, TaskBytes<'_>) -> Result<()>,
) -> std::result::Result<(), (usize, Error)> {
    let end = fetched.as_ref().err().map_or(tasks.len(), |(number, _)| *number);
    let mut cached = tasks.iter().enumerate().take(end).filter(|(_, task)| task.fetch == Fetch::IntoCache);
    cached.try_for_each(|(number, _)| run(number, TaskBytes::Available).map_err(|error| (number, error))).and(fetched)
}

/// Returns whether exactly one task needs fetched bytes.
fn is_one_fetched(tasks: &[Task]) -> bool {
    let mut fetched = tasks.iter().filter(|task| !task.bytes.is_empty());
    fetched.next().is_some() && fetched.next().is_none()
}

/// Reads long ranges of raw values straight to their destinations, which saves a copy. If nothing
/// else is fetched, a short range is also read this way. The tasks of these ranges then need no
/// fetched bytes. Returns the first error and the number of its task.
fn read_zero_copy<C: AsRef<Gatherer>>(
    source: &dyn Source,
    columns: &[C],
    tasks: &mut TaskList,
    out: &mut impl ColumnDestinations,
) -> std::result::Result<(), (usize, Error)> {
    let Some(min_bytes) = min_zero_copy_bytes(source) else { return Ok(()) };
    let TaskList { tasks, selection, .. } = tasks;
    let min_bytes = if is_one_fetched(tasks) { 1 } else { min_bytes };
    for (number, task) in tasks.iter_mut().enumerate() {
        let is_long = task.bytes.end.saturating_sub(task.bytes.start) >= min_bytes;
        let is_run = || selection.run(task.sorted_indices.start, task.sorted_indices.end) == task.sorted_indices.len();
        if task.fetch != Fetch::Values || !is_long || !is_run() {
            continue;
        }
        let (_, position) = selection.get(task.sorted_indices.start);
        let (Some(gatherer), Some(output)) = (columns.get(task.column), out.of(task.column)) else {
            return Err((number, not_of_request()));
        };
        let layout = gatherer.as_ref().column.layout();
        let mut output = output.whole(layout.inner_bytes);
        let to = output
            .destination(task.sorted_indices.start, position, task.sorted_indices.len())
            .map_err(|error| (number, error))?;
        if u64_of(to.len()) == task.bytes.end - task.bytes.start {
            read(source, task.bytes.start, to).map_err(|error| (number, error))?;
            le::swap_to_native(layout.element_bytes, to);
            task.bytes = 0..0;
        }
    }
    Ok(())
}
