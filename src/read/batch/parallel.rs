//! Gathers with the threads of the current rayon pool.
//!
//! The calling thread makes the plan. The plan is then divided into several segments per thread,
//! and each thread repeatedly takes a segment, fetches its bytes and decodes it. Several segments
//! per thread let all threads finish at about the same time. Segments are started in order, and
//! every started segment is finished. The first error in plan order is therefore always found. A
//! single thread would return the same error.

use super::plan::{ReadPlan, Step};
use super::waves::{FetchScratch, fetch};
use crate::bytes::pod::{self, Element};
use crate::read::buffer::ColumnBuffer;
use crate::read::decode::decoder::TaskDecoder;
use crate::read::decode::output::Destination;
use crate::read::decode::segments::{PlanSegment, SegmentScratch};
use crate::read::file::column::Column;
use crate::read::file::column_inner::ColumnInner;
use crate::read::sample::check_type;
use crate::{Error, Result};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};
use std::sync::{Mutex, PoisonError};

/// Gathers samples of one column with many threads; see
/// [`Column::parallel_cursor`](crate::Column::parallel_cursor). Owns the memory of all threads and
/// reuses it in the next call. A call allocates a few lists with an entry per requested sample.
///
/// Calls run on the current rayon pool. Inside `pool.install(..)` that is `pool`, otherwise the
/// global pool. Results and errors are the same as with a [`Cursor`](crate::Cursor), whatever the
/// number of threads, even if several chunks are damaged.
pub struct ParallelCursor {
    column: ColumnInner,
    plan: ReadPlan,
    workers: Vec<Worker>,
    segments: SegmentScratch,
}

/// The memory of one thread.
#[derive(Default)]
struct Worker {
    decoder: TaskDecoder,
    fetch: FetchScratch,
}

/// Segments per thread: enough for all threads to finish at about the same time.
const SEGMENTS_PER_THREAD: usize = 8;

// here rather than next to `Column`, to avoid a dependency cycle between modules
impl Column {
    /// Returns a cursor that divides each call among the threads of a rayon pool (cargo feature
    /// `rayon`).
    pub fn parallel_cursor(&self) -> ParallelCursor {
        ParallelCursor::new(self.inner().clone())
    }
}

impl ParallelCursor {
    fn new(column: ColumnInner) -> Self {
        Self { column, plan: ReadPlan::new(), workers: Vec::new(), segments: SegmentScratch::default() }
    }

    /// Returns the column.
    pub fn column(&self) -> Column {
        Column::new(self.column.clone())
    }

    /// Gathers like [`Cursor::gather_slice`](crate::Cursor::gather_slice), with all threads of the
    /// pool. Each thread takes some chunks, and copies or decodes their samples straight to their
    /// destinations.
    ///
    /// Cost: the cost of `Cursor::gather_slice` divided by the number of threads, except that a
    /// single thread finds the chunks.
    pub fn gather_slice<T: Element>(&mut self, indices: &[u64], out: &mut [T]) -> Result<usize> {
        check_type::<T>(self.column.schema().dtype).map_err(|error| self.column.in_column(error))?;
        self.gather_bytes(indices, pod::as_bytes_mut(out))
    }

    /// Gathers like [`Cursor::gather_bytes`](crate::Cursor::gather_bytes), with all threads of the
    /// pool. Cost: same as [`ParallelCursor::gather_slice`].
    pub fn gather_bytes(&mut self, indices: &[u64], out: &mut [u8]) -> Result<usize> {
        self.gather(indices, Destination::Bytes(out))
    }

    /// Gathers like [`Cursor::gather_into`](crate::Cursor::gather_into), with all threads of the
    /// pool. Cost: same as [`ParallelCursor::gather_slice`]; the calling thread copies the values
    /// of ragged samples one more time.
    pub fn gather_into(&mut self, indices: &[u64], out: &mut ColumnBuffer) -> Result<()> {
        self.gather(indices, Destination::Buffer(out)).map(|_| ()).inspect_err(|_| out.clear())
    }

    fn gather(&mut self, indices: &[u64], out: Destination<'_>) -> Result<usize> {
        let Self { column, plan, workers, segments } = self;
        plan.list.selection.set_samples(indices).map_err(|error| column.in_column(error))?;
        plan.set_columns(std::iter::once(&*column))?;
        plan.list.plan(&plan.columns)?;
        plan.list.prefetch_unread(&plan.columns)?;
        plan.step = Step::Complete;
        let threads = rayon::current_num_threads().clamp(1, plan.task_count().max(1));
        workers.resize_with(workers.len().max(threads), Worker::default);
        let busy = workers.get_mut(..threads).unwrap_or(&mut []); // resized above
        plan.decode_segments_to(threads.saturating_mul(SEGMENTS_PER_THREAD), &mut [out], segments, |segments| {
            run(plan, busy, segments)
        })
    }
}

/// Runs all segments. Returns the error that a single thread would return.
fn run(plan: &ReadPlan, workers: &mut [Worker], segments: Vec<PlanSegment<'_>>) -> Result<()> {
    let queue = Mutex::new(segments.into_iter());
    // segments are started in order, and every started segment is finished, so the first error in
    // plan order is among these
    let errors = workers.par_iter_mut().with_max_len(1).filter_map(|worker| {
        loop {
            let segment = { queue.lock().unwrap_or_else(PoisonError::into_inner).next()? };
            if let Err(error) = worker.run(plan, segment) {
                queue.lock().unwrap_or_else(PoisonError::into_inner).by_ref().for_each(drop);
                return Some(error);
            }
        }
    });
    errors.min_by_key(|(task, _)| *task).map_or(Ok(()), |(_, error)| Err(error))
}

impl Worker {
    /// Fetches and decodes a segment. Returns the first error and the number of its task.
    fn run(&mut self, plan: &ReadPlan, segment: PlanSegment<'_>) -> std::result::Result<(), (usize, Error)> {
        let Self { decoder, fetch: scratch } = self;
        segment.decode_with(decoder, |tasks, run| {
            let (Some(column), Some(of_segment)) = (plan.columns.first(), plan.list.tasks.get(tasks.clone())) else {
                return Err((tasks.start, Error::internal("a segment does not belong to its plan")));
            };
            let source = &*column.file.source;
            let result = fetch(source, of_segment, scratch, &mut |number, bytes| run(tasks.start + number, bytes));
            result.map_err(|(number, error)| (tasks.start + number, error))
        })
    }
}
