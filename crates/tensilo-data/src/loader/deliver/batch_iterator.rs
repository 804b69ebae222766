//! The iterator over batches, and the threads that read ahead for it.
//!
//! Each of `io_depth` threads claims a step, reads its batch and puts the result into the queue,
//! until no step is left. States and receipts cover the batches that the consumer has taken, not
//! the batches that were read ahead, so a job resumes exactly where its consumer stopped. If a
//! batch fails, or its thread panics, an error is delivered in place of the batch.
//!
//! Threads do not survive `fork`. An iterator in a forked process detects this, leaves the queue
//! and the locks of the parent untouched, and starts its own threads. They continue after the last
//! batch that was taken.

use super::batch::Batch;
use super::queue::Queue;
use crate::error::{DataError, Result};
use crate::loader::batch_reader::{BatchReader, Shared};
use crate::loader::metrics::{Count, Counters, LoaderMetrics};
use crate::loader::plan::schedule::Schedule;
use crate::loader::setup::Setup;
use crate::order::{Receipt, State};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, process};

/// An iterator over the batches of a rank, in order, that reads ahead.
///
/// Its threads start when it is created and end when it is dropped, which can be at any time. If a
/// batch cannot be read, the iterator returns an error in its place, and continues with the next
/// batch.
///
/// A forked process can continue to use it: the iterator then starts new threads, which continue
/// after the last batch that was taken. There is one limitation, which comes from Rust and not from
/// the loader. In a program with Rust's own `main`, a thread takes a lock of the standard library
/// when it starts and when it ends. If any thread holds that lock at the moment of the fork, the
/// child cannot start a thread, and hangs. Fork such a program before its threads start. A Python
/// interpreter has no such lock.
pub struct BatchIterator {
    setup: Arc<Setup>,
    schedule: Schedule,
    read_threads: ReadThreads,
    /// The number of steps that the consumer has taken.
    taken: u64,
    receipt: Receipt,
    counters: Arc<Counters>,
}

/// The threads of an iterator.
struct ReadThreads {
    process: u32,
    /// The step that is job 0 of the queue.
    first: u64,
    queue: Arc<Queue<Result<Batch>>>,
    threads: Vec<JoinHandle<()>>,
    /// The error if a thread could not be started.
    spawn_error: Option<io::Error>,
}

impl fmt::Debug for BatchIterator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} batches taken", self.taken, self.schedule.steps)
    }
}

impl BatchIterator {
    pub(in crate::loader) fn new(setup: Arc<Setup>, schedule: Schedule) -> Self {
        let counters = Arc::new(Counters::new());
        let read_threads = ReadThreads::begin(&setup, schedule, 0, &counters);
        Self { setup, schedule, read_threads, taken: 0, receipt: Receipt::default(), counters }
    }

    /// Returns the number of remaining batches.
    pub fn batches_left(&self) -> u64 {
        self.schedule.steps.saturating_sub(self.taken)
    }

    /// Returns the state after the batches that were taken, from which any number of ranks can
    /// resume. Its receipt covers the samples of this rank. With several ranks, add the receipts of
    /// the other ranks: `state.receipt.plus(other.receipt())`.
    ///
    /// A batch that could not be read counts as taken, but its samples are in no receipt. Cost: a
    /// few nanoseconds.
    pub fn state(&self) -> State {
        self.schedule.state(&self.setup, self.taken, self.receipt)
    }

    /// Returns the receipt of the samples that this rank has taken since the iterator was created.
    pub fn receipt(&self) -> Receipt {
        self.receipt
    }

    /// Waits until the next batch is ready, but for at most `timeout`. Returns whether the next
    /// call to `next` will return without waiting. This is also true after the last batch.
    pub fn wait(&self, timeout: Duration) -> bool {
        // a forked process has no threads to wait for yet
        self.read_threads.process != process::id()
            || self.read_threads.spawn_error.is_some()
            || self.waiting(|| self.read_threads.queue.wait(timeout))
    }

    /// Returns what the loader has done so far.
    pub fn metrics(&self) -> LoaderMetrics {
        self.counters.metrics(self.setup.threads.decode_threads, self.setup.threads.io_depth)
    }

    /// Returns the state after `taken` batches. `receipt` covers the samples that the consumer has
    /// taken.
    #[cfg(feature = "cuda")]
    pub(in crate::loader) fn state_after(&self, taken: u64, receipt: Receipt) -> State {
        self.schedule.state(&self.setup, taken, receipt)
    }

    #[cfg(feature = "cuda")]
    pub(in crate::loader) fn taken(&self) -> u64 {
        self.taken
    }

    #[cfg(feature = "cuda")]
    pub(in crate::loader) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Runs `wait`, and counts its duration as time spent waiting.
    fn waiting<R>(&self, wait: impl FnOnce() -> R) -> R {
        let is_first = self.taken == self.read_threads.first;
        self.counters.time(if is_first { Count::FirstBatch } else { Count::Waited }, wait)
    }

    /// Starts threads in a forked process. They continue after the last batch that was taken.
    fn restart(&mut self) {
        self.setup = self.setup.for_this_process();
        self.counters = Arc::new(Counters::new());
        self.abandon(ReadThreads::begin(&self.setup, self.schedule, self.taken, &self.counters));
    }

    /// Replaces the threads of another process. Their data may have been in any state at the time
    /// of the fork, so it is never touched again, not even to free its memory.
    fn abandon(&mut self, read_threads: ReadThreads) {
        std::mem::forget(std::mem::replace(&mut self.read_threads, read_threads));
    }
}

impl Iterator for BatchIterator {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.read_threads.process != process::id() {
            self.restart();
        }
        if let Some(error) = self.read_threads.spawn_error.take() {
            return Some(Err(spawn_error(&error)));
        }
        let (result, ready) = self.waiting(|| self.read_threads.queue.take())?;
        self.counters.add(Count::Ready, ready as u64); // exact
        self.taken = self.taken.saturating_add(1);
        if let Ok(batch) = &result {
            self.receipt = self.receipt.plus(batch.receipt());
            self.counters.add(Count::Batches, 1);
            self.counters.add(Count::Samples, batch.indices().len() as u64); // exact
            let bytes = batch.columns().iter().map(|column| column.byte_count() as u64); // exact
            self.counters.add(Count::ValueBytes, bytes.sum());
        }
        Some(result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.batches_left());
        (left.unwrap_or(usize::MAX), left.ok())
    }
}

impl ReadThreads {
    /// Returns no threads and an empty queue.
    fn idle() -> Self {
        let queue = Arc::new(Queue::new(0, 0));
        Self { process: process::id(), first: 0, queue, threads: Vec::new(), spawn_error: None }
    }

    /// Starts threads for step `first` and all later steps.
    fn begin(setup: &Arc<Setup>, schedule: Schedule, first: u64, counters: &Arc<Counters>) -> Self {
        let threads = setup.threads;
        let steps = schedule.steps.saturating_sub(first);
        let shared = Shared::new(setup, schedule, first, counters);
        let queue = Arc::new(Queue::new(steps, threads.prefetch).first_exclusive(setup.reads_objects));
        let process = process::id();
        let mut read_threads = Self { process, first, queue, threads: Vec::new(), spawn_error: None };
        let max_threads = usize::try_from(steps).unwrap_or(usize::MAX);
        for number in 0..threads.io_depth.min(max_threads) {
            let (mut reader, queue) = (BatchReader::new(&shared), read_threads.queue.clone());
            let work = move || {
                while let Some(job) = queue.claim() {
                    let step = first.saturating_add(job);
                    let read = || reader.read(step);
                    let result = catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(panicked()));
                    queue.put(job, result);
                    // the batches that need the runs report the panic
                    let _ = catch_unwind(AssertUnwindSafe(|| reader.prefetch(step)));
                }
            };
            match thread::Builder::new().name(format!("tensilo-{number}")).spawn(work) {
                Ok(thread) => read_threads.threads.push(thread),
                Err(error) => {
                    read_threads.end();
                    // no thread works on the queue, so the error is its only result
                    read_threads = Self { first, spawn_error: Some(error), ..Self::idle() };
                    break;
                }
            }
        }
        read_threads
    }

    /// Ends the threads after they complete their current batches.
    fn end(&mut self) {
        self.queue.close();
        for thread in self.threads.drain(..) {
            // a panic in the thread has already become the error of its batch
            let _ = thread.join();
        }
    }
}

impl Drop for BatchIterator {
    fn drop(&mut self) {
        if self.read_threads.process != process::id() {
            self.abandon(ReadThreads::idle());
        }
        self.read_threads.end();
    }
}

#[cold]
fn spawn_error(error: &io::Error) -> DataError {
    DataError::BadArgument(format!("cannot start a thread of the loader: {error}; use a lower I/O depth"))
}

#[cold]
fn panicked() -> DataError {
    DataError::Internal("a thread of the loader panicked".to_owned())
}
