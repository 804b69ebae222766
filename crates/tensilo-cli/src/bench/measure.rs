//! The reading threads and their counters. Nothing is allocated between the reads.

use super::access::Access;
use super::histogram::Histogram;
use super::pattern::Sequence;
use super::source::FileReads;
use crate::failure::{Failure, Outcome};
use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};
use tensilo::{Column, Result};

/// The samples whose order is generated at a time, while the clock is stopped.
pub(super) const BLOCK_SAMPLES: usize = 1024;

/// The results of reads.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    pub(super) samples: u64,
    /// Bytes of elements.
    pub(super) decoded_bytes: u64,
    /// The bytes and requests that were read from the file.
    pub(super) file_reads: FileReads,
    /// Time spent in reads; for several threads, the longest.
    pub(super) busy: Duration,
    /// Times of the reads, one of each batch.
    pub(super) times: Histogram,
}

impl Counts {
    fn none() -> Self {
        let file_reads = FileReads::default();
        Self { samples: 0, decoded_bytes: 0, file_reads, busy: Duration::ZERO, times: Histogram::new() }
    }

    /// Returns the sum over all threads.
    pub(super) fn sum<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        let mut sum = Self::none();
        for part in parts {
            sum.samples = sum.samples.saturating_add(part.samples);
            sum.decoded_bytes = sum.decoded_bytes.saturating_add(part.decoded_bytes);
            sum.file_reads = sum.file_reads.plus(part.file_reads);
            sum.busy = sum.busy.max(part.busy);
            sum.times.merge(&part.times);
        }
        sum
    }
}

/// A thread: how it reads, and in which order.
pub(super) struct Worker<'r> {
    access: Box<dyn Access + 'r>,
    sequence: Sequence,
    /// The next samples to read, in whole batches.
    block: Vec<u64>,
    batch: usize,
    counts: Counts,
}

impl<'r> Worker<'r> {
    pub(super) fn new(access: Box<dyn Access + 'r>, sequence: Sequence, batch: usize) -> Self {
        let block = vec![0; BLOCK_SAMPLES.next_multiple_of(batch.max(1))];
        Self { access, sequence, block, batch: batch.max(1), counts: Counts::none() }
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Reads a sample of each chunk, beginning with chunk `first` and continuing at chunk 0 after
    /// the last, and then some of the samples to measure, until `deadline`. Returns the number of
    /// chunks read.
    pub(super) fn warm_up(&mut self, column: &Column, first: u64, deadline: Instant) -> Result<u64> {
        let chunk_count = column.facts().chunk_count;
        let mut batch = Vec::with_capacity(self.batch);
        let mut done = 0_u64;
        for chunk in (first..chunk_count).chain(0..first) {
            if Instant::now() >= deadline {
                break;
            }
            batch.extend(column.chunk(chunk)?.map(|chunk| chunk.samples.start));
            done += 1;
            if done == chunk_count {
                batch.resize(self.batch, batch.last().copied().unwrap_or(0));
            }
            if batch.len() == self.batch {
                self.access.read(&batch)?;
                batch.clear();
            }
        }
        self.try_out(deadline)?;
        Ok(done)
    }

    /// Reads samples of the measurement, at most a block, until `deadline`. Buffers thereby grow to
    /// their final size.
    fn try_out(&mut self, deadline: Instant) -> Result<()> {
        self.sequence.clone().fill(&mut self.block);
        for indices in self.block.chunks_exact(self.batch) {
            self.access.read(indices)?;
            if Instant::now() >= deadline {
                break;
            }
        }
        Ok(())
    }

    /// Reads and measures for `time`. If `once`, reads at most as many samples as the thread's
    /// share.
    pub(super) fn measure(&mut self, time: Duration, once: bool) -> Result<()> {
        let most = if once { self.sequence.share_count() } else { u64::MAX };
        let read_before = FileReads::of_thread();
        while self.counts.busy < time && self.counts.samples < most {
            self.sequence.fill(&mut self.block);
            self.measure_block(time, most)?;
        }
        self.counts.file_reads = FileReads::of_thread().since(read_before);
        Ok(())
    }

    fn measure_block(&mut self, time: Duration, most: u64) -> Result<()> {
        let counts = &mut self.counts;
        let mut last = Instant::now();
        for indices in self.block.chunks_exact(self.batch) {
            let bytes = self.access.read(indices)?;
            let now = Instant::now();
            counts.times.add(now - last);
            counts.busy += now - last;
            last = now;
            // exact: usize has at most 64 bits
            counts.decoded_bytes = counts.decoded_bytes.saturating_add(bytes as u64);
            // exact: usize has at most 64 bits
            counts.samples = counts.samples.saturating_add(indices.len() as u64);
            if counts.busy >= time || counts.samples >= most {
                break;
            }
        }
        Ok(())
    }
}

/// Runs `work` for each of `workers` on a thread of its own, and returns the results.
pub(super) fn on_threads<W: Send, R: Send>(
    workers: &mut [W],
    work: impl Fn(u32, &mut W) -> R + Sync,
) -> Outcome<Vec<R>> {
    let work = &work;
    thread::scope(|scope| {
        let mut running = Vec::with_capacity(workers.len());
        for (number, worker) in (0..).zip(workers) {
            let thread = thread::Builder::new().spawn_scoped(scope, move || work(number, worker));
            running
                .push(thread.map_err(|error| Failure::Usage(format!("thread {number} cannot be started: {error}")))?);
        }
        Ok(running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect())
    })
}
