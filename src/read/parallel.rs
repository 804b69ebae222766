//! Gathering by many threads: those of the rayon pool in which it is called.

use super::buffer::ColumnBuffer;
use super::chunk_location::ChunkLocation;
use super::current::CurrentChunk;
use super::gather::{copy_extents, place_in_order};
use super::opened_column::OpenedColumn;
use super::sample::check_type;
use crate::pod::{self, AlignedBytes, Element};
use crate::{Error, Result, memory};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Gathers samples of one column by many threads, see [`Column::parallel_cursor`](super::Column::parallel_cursor). It owns the memory that each of them needs, and keeps it
/// from one call to the next; a call allocates a few lists as long as the request, and nothing for each sample.
///
/// Calls run on the rayon pool in which they are made: inside of `pool.install(..)` on that pool, else on the global one. Results are those of
/// a [`Cursor`](super::Cursor), whatever the number of threads; if several chunks are damaged, so is the error.
pub struct ParallelCursor {
    column: OpenedColumn,
    workers: Vec<Worker>,
    /// The chunks of the request, and the part of it that is in each.
    chunks: Vec<(ChunkLocation, Range<usize>)>,
}

/// What a thread needs.
struct Worker {
    number: usize,
    chunk: CurrentChunk,
    /// Values of ragged samples, as they came.
    staging: AlignedBytes,
}

/// A sample of the request, and where it goes.
struct Wanted<T> {
    sample: u64,
    /// In the request.
    position: usize,
    is_null: bool,
    to: T,
}

/// A ragged sample.
struct Ragged<'o> {
    extents: &'o mut [u32],
    /// The range of the values in the file, if they are there as they are.
    in_file: Option<Range<usize>>,
    /// Else the worker in whose staging they are, and where.
    staged: (usize, Range<usize>),
}

/// The chunks that no worker has taken yet, in order, and what is wanted of them.
struct Queue<'w, T> {
    chunks: &'w [(ChunkLocation, Range<usize>)],
    wanted: &'w mut [Wanted<T>],
    /// Chunks that are taken at a time: few, so that all workers end at about the same time.
    step: usize,
}

/// A worker takes its chunks in so many steps, if all are equally fast.
const STEPS: usize = 8;

impl ParallelCursor {
    pub(super) fn new(column: OpenedColumn) -> Self {
        Self { column, workers: Vec::new(), chunks: Vec::new() }
    }

    pub(super) fn opened(&self) -> &OpenedColumn {
        &self.column
    }

    /// As [`Cursor::gather_slice`](super::Cursor::gather_slice), by all threads of the pool: each takes some chunks, and copies or decodes their
    /// samples straight to their places. Cost: that of `gather_slice` divided by the threads; finding the chunks is not shared.
    pub fn gather_slice<T: Element>(&mut self, indices: &[u64], out: &mut [T]) -> Result<usize> {
        let result = check_type::<T>(self.column.schema().dtype)
            .and_then(|()| self.try_gather_fixed(indices, pod::as_bytes_mut(out), &mut |_| ()));
        result.map_err(|error| self.column.in_column(error))
    }

    /// As [`Cursor::gather_bytes`](super::Cursor::gather_bytes), by all threads of the pool. Cost: as
    /// [`ParallelCursor::gather_slice`].
    pub fn gather_bytes(&mut self, indices: &[u64], out: &mut [u8]) -> Result<usize> {
        self.try_gather_fixed(indices, out, &mut |_| ()).map_err(|error| self.column.in_column(error))
    }

    /// As [`Cursor::gather_into`](super::Cursor::gather_into), by all threads of the pool. Cost: as [`ParallelCursor::gather_slice`]; values of ragged
    /// samples are copied to their places by the calling thread.
    pub fn gather_into(&mut self, indices: &[u64], out: &mut ColumnBuffer) -> Result<()> {
        let result = if self.column.layout().is_ragged() {
            self.try_gather_ragged(indices, out)
        } else {
            self.gather_fixed_into(indices, out)
        };
        result.map_err(|error| self.column.in_column(error))
    }

    fn gather_fixed_into(&mut self, indices: &[u64], out: &mut ColumnBuffer) -> Result<()> {
        out.begin(self.column.schema(), indices.len())?;
        let mut values = std::mem::take(&mut out.values);
        let result = self
            .column
            .make_room(indices, &mut values)
            .and_then(|()| self.try_gather_fixed(indices, values.as_mut_slice(), &mut |null| out.set_null(null)));
        out.values = values;
        result.map(|_| ())
    }

    /// `on_null` is told the position of each null; returns their number.
    fn try_gather_fixed(&mut self, indices: &[u64], out: &mut [u8], on_null: &mut dyn FnMut(usize)) -> Result<usize> {
        let sample_bytes = self.column.check_room(indices.len(), out.len())?;
        let mut rest = out;
        let places = std::iter::repeat_with(|| rest.split_off_mut(..sample_bytes).unwrap_or(&mut [])); // never: there is room
        let mut wanted = wanted(indices, places);
        self.for_each(&mut wanted, |worker, i, to| {
            let bytes = worker.chunk.values_range(&(i..i + 1))?; // i is below a chunk's sample count
            worker.chunk.copy(&bytes, to)
        })?;
        let nulls = wanted.iter().filter(|wanted| wanted.is_null);
        Ok(nulls.map(|null| on_null(null.position)).count())
    }

    fn try_gather_ragged(&mut self, indices: &[u64], out: &mut ColumnBuffer) -> Result<()> {
        let layout = *self.column.layout();
        out.begin(self.column.schema(), indices.len())?;
        let mut extents = std::mem::take(&mut out.extents);
        memory::resize(&mut extents, indices.len().saturating_mul(layout.varying), 0)?;
        let places = extents.chunks_exact_mut(layout.varying.max(1));
        let mut wanted = wanted(indices, places.map(|extents| Ragged { extents, in_file: None, staged: (0, 0..0) }));
        self.workers.iter_mut().for_each(|worker| worker.staging.clear());
        self.for_each(&mut wanted, |worker, i, to| {
            copy_extents(&layout, &worker.chunk.content(), i, to.extents)?;
            match worker.chunk.range_in_file(i)? {
                Some(range) => to.in_file = Some(range),
                None => to.staged = (worker.number, worker.chunk.append(&(i..i + 1), &mut worker.staging)?),
            }
            Ok(())
        })?;
        let file = self.column.file.bytes().memory().unwrap_or(&[]);
        let mut values: Vec<&[u8]> = Vec::new();
        memory::resize(&mut values, indices.len(), &[])?;
        for Wanted { position, is_null, to, .. } in &wanted {
            if *is_null {
                out.set_null(*position);
            }
            if let Some(place) = values.get_mut(*position) {
                let in_file = to.in_file.as_ref().and_then(|range| file.get(range.clone()));
                *place = in_file.or_else(|| self.staged(&to.staged)).unwrap_or(&[]);
            }
        }
        let result = place_in_order(values.into_iter(), layout.element_bytes, out);
        out.extents = extents;
        result
    }

    fn staged(&self, (worker, range): &(usize, Range<usize>)) -> Option<&[u8]> {
        self.workers.get(*worker)?.staging.as_slice().get(range.clone())
    }

    /// Calls `take` for each of the samples, with the worker at its chunk, its place in the chunk, and where it goes. Returns the error that a
    /// single thread would meet first.
    fn for_each<T: Send>(
        &mut self,
        wanted: &mut [Wanted<T>],
        take: impl Fn(&mut Worker, usize, &mut T) -> Result<()> + Sync,
    ) -> Result<()> {
        let Self { column, workers, chunks } = self;
        wanted.sort_unstable_by_key(|wanted| (wanted.sample, wanted.position));
        column.locate_sorted(wanted.iter().map(|wanted| wanted.sample), chunks)?;
        let threads = rayon::current_num_threads().clamp(1, chunks.len().max(1));
        for number in workers.len()..threads {
            workers.push(Worker { number, chunk: CurrentChunk::new(column.clone()), staging: AlignedBytes::default() });
        }
        let queue = Mutex::new(Queue { chunks, wanted, step: (chunks.len() / (threads * STEPS)).max(1) });
        let busy = workers.get_mut(..threads).unwrap_or(&mut []); // there are as many
        // chunks are taken in order, and all that were taken are finished: the first error is among these
        let errors = busy.par_iter_mut().with_max_len(1).filter_map(|worker| worker.work(&queue, &take));
        errors.min_by_key(|(chunk, _)| *chunk).map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// The samples of a request, and a place for each.
fn wanted<T>(indices: &[u64], places: impl Iterator<Item = T>) -> Vec<Wanted<T>> {
    let places = indices.iter().zip(places).enumerate();
    places.map(|(position, (&sample, to))| Wanted { sample, position, is_null: false, to }).collect()
}

impl Worker {
    /// Takes chunks until there are none, or one fails: the number of that chunk, and its error.
    fn work<T>(
        &mut self,
        queue: &Mutex<Queue<'_, T>>,
        take: &impl Fn(&mut Self, usize, &mut T) -> Result<()>,
    ) -> Option<(u64, Error)> {
        let lock = || queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Queue { chunks, mut wanted, .. } = lock().next();
            if chunks.is_empty() {
                return None;
            }
            for (located, range) in chunks {
                let of_chunk = wanted.split_off_mut(..range.len()).unwrap_or(&mut []); // never: they are the chunks'
                if let Err(error) = self.take_chunk(located, of_chunk, take) {
                    lock().chunks = &[];
                    return Some((located.chunk, error));
                }
            }
        }
    }

    fn take_chunk<T>(
        &mut self,
        located: &ChunkLocation,
        wanted: &mut [Wanted<T>],
        take: impl Fn(&mut Self, usize, &mut T) -> Result<()>,
    ) -> Result<()> {
        self.chunk.prepare(located, wanted.len())?;
        for Wanted { sample, is_null, to, .. } in wanted {
            let i = located.position_of(*sample);
            *is_null = self.chunk.content().is_null(i);
            take(self, i, to).map_err(|error| error.with_samples(*sample..sample.saturating_add(1)))?;
        }
        Ok(())
    }
}

impl<'w, T> Queue<'w, T> {
    /// Takes the next chunks, and what is wanted of them, out of the queue.
    fn next(&mut self) -> Self {
        let step = self.step.min(self.chunks.len());
        let chunks = self.chunks.split_off(..step).unwrap_or(&[]);
        let count = chunks.iter().map(|(_, range)| range.len()).sum();
        let wanted = self.wanted.split_off_mut(..count).unwrap_or(&mut []); // never: they are the chunks'
        Self { chunks, wanted, step }
    }
}
