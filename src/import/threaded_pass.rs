//! Passes over an input that other threads make, while the caller encodes.

use super::batch::{InputBatch, SampleValues, Samples, SharedBytes};
use super::batch_queue::{BatchReceiver, BatchSender, batch_queue};
use super::formats::SharedSource;
use super::source::BatchIter;
use crate::Result;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// The most threads that read: each has batches in memory.
const MAX_READERS: usize = 8;

/// Begins a pass over some columns of a source. Its parts are read on at most `threads` threads,
/// and yielded in order.
pub(super) fn batches<'a>(source: &'a SharedSource, columns: &[usize], threads: usize) -> Result<BatchIter<'a>> {
    begin(source, columns, threads, |batch| batch)
}

/// Begins a pass as [`batches`] does, of which only extents and instants are kept.
pub(super) fn outlines<'a>(source: &'a SharedSource, columns: &[usize], threads: usize) -> Result<BatchIter<'a>> {
    begin(source, columns, threads, outline)
}

fn begin<'a>(
    source: &'a SharedSource,
    columns: &[usize],
    threads: usize,
    keep: fn(InputBatch) -> InputBatch,
) -> Result<BatchIter<'a>> {
    let part_count = source.part_count();
    let reader_count = threads.min(part_count).min(MAX_READERS);
    let (sender, parts) = sync_channel(reader_count);
    let queue = Arc::new(Mutex::new(PartQueue { left: 0..part_count, sender }));
    let mut pass = ThreadedPass { parts: Some(parts), current: None, readers: Vec::new() };
    for _ in 0..reader_count {
        let reader = PartReader { source: Arc::clone(source), columns: columns.to_vec(), queue: Arc::clone(&queue) };
        let started = thread::Builder::new().name("tensilo-read".to_owned()).spawn(move || reader.run(keep));
        pass.readers.extend(started);
    }
    if pass.readers.is_empty() { source.batches(columns) } else { Ok(Box::new(pass)) }
}

/// The parts that no thread has begun.
struct PartQueue {
    left: Range<usize>,
    /// Announces the parts in order.
    sender: SyncSender<BatchReceiver>,
}

impl PartQueue {
    /// Takes the next part. Returns `None` if none is left, or nobody waits for it.
    fn take(&mut self) -> Option<(usize, BatchSender)> {
        let part = self.left.next()?;
        let (sender, receiver) = batch_queue();
        self.sender.send(receiver).ok()?;
        Some((part, sender))
    }
}

/// The work of one thread.
struct PartReader {
    source: SharedSource,
    columns: Vec<usize>,
    queue: Arc<Mutex<PartQueue>>,
}

impl PartReader {
    /// Reads parts until none is left.
    fn run(&self, keep: fn(InputBatch) -> InputBatch) {
        while let Some((part, sender)) = self.next() {
            sender.send_all(|| self.source.part(part, &self.columns), keep);
        }
    }

    fn next(&self) -> Option<(usize, BatchSender)> {
        // no code panics while it holds the lock
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Leaves out the values, except instants and what is known of structs.
fn outline(batch: InputBatch) -> InputBatch {
    let column = |samples: Samples| match samples.values {
        SampleValues::Instants(_) | SampleValues::Structs { .. } => samples,
        SampleValues::Plain(_) => {
            Samples { values: SampleValues::Plain(SharedBytes::new([])), ranges: Vec::new(), nulls: None, ..samples }
        }
    };
    InputBatch { columns: batch.columns.into_iter().map(|samples| samples.map(column)).collect(), ..batch }
}

/// A pass that other threads make.
struct ThreadedPass {
    /// Closed before the threads are waited for.
    parts: Option<Receiver<BatchReceiver>>,
    current: Option<BatchReceiver>,
    readers: Vec<JoinHandle<()>>,
}

impl ThreadedPass {
    fn next_batch(&mut self) -> Option<Result<InputBatch>> {
        loop {
            if let Some(batch) = self.current.as_mut().and_then(BatchReceiver::next) {
                return Some(batch);
            }
            self.current = Some(self.parts.as_ref()?.recv().ok()?);
        }
    }

    /// Tells the threads that nobody takes more. The parts that wait are dropped with the channel.
    fn close(&mut self) {
        self.current = None;
        self.parts = None;
    }
}

impl Iterator for ThreadedPass {
    type Item = Result<InputBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch();
        if matches!(next, Some(Err(_))) {
            self.close();
        }
        next
    }
}

impl Drop for ThreadedPass {
    fn drop(&mut self) {
        self.close();
        for reader in self.readers.drain(..) {
            let _ = reader.join(); // its panics were sent as errors
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::batch_queue::QUEUED_BATCHES;
    use crate::import::input_column::InputColumn;
    use crate::import::source::BatchSource;
    use crate::{Error, Metadata};
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Parts of as many batches each, of 0, 1, 2 ... samples, one of which is an error or a panic.
    struct Counting {
        read: AtomicUsize,
        part_count: usize,
        part_batches: usize,
        panics: bool,
        metadata: Metadata,
    }

    /// The number of the only batch that cannot be read.
    const BAD: usize = 130;

    impl BatchSource for Counting {
        fn columns(&self) -> &[InputColumn] {
            &[]
        }

        fn metadata(&self) -> &Metadata {
            &self.metadata
        }

        fn path(&self) -> Option<&Path> {
            None
        }

        fn row_count(&self) -> Option<u64> {
            None
        }

        fn part_count(&self) -> usize {
            self.part_count
        }

        fn batches(&self, _columns: &[usize]) -> Result<BatchIter<'_>> {
            Ok(self.numbers(0..self.part_count * self.part_batches))
        }

        fn part(&self, part: usize, _columns: &[usize]) -> Result<BatchIter<'_>> {
            Ok(self.numbers(part * self.part_batches..(part + 1) * self.part_batches))
        }
    }

    impl Counting {
        fn numbers(&self, counts: Range<usize>) -> BatchIter<'_> {
            Box::new(counts.map(|sample_count| {
                self.read.fetch_add(1, Ordering::SeqCst);
                match sample_count {
                    BAD if self.panics => panic!("on purpose"),
                    BAD => Err(Error::bad_input("the end")),
                    _ => Ok(InputBatch { sample_count, columns: Vec::new() }),
                }
            }))
        }
    }

    fn source(part_count: usize, part_batches: usize, panics: bool) -> (Arc<Counting>, SharedSource) {
        let read = AtomicUsize::new(0);
        let source = Arc::new(Counting { read, part_count, part_batches, panics, metadata: Metadata::new() });
        (Arc::clone(&source), source)
    }

    #[test]
    fn batches_come_in_order_and_an_error_or_panic_is_the_last() {
        for (threads, panics) in [(1, false), (2, true), (3, false), (20, true)] {
            let (_, shared) = source(5, 50, panics);
            let mut all: Vec<_> = batches(&shared, &[], threads).unwrap().collect();
            let error = all.pop().unwrap().unwrap_err();
            assert!(error.message().contains(if panics { "on purpose" } else { "the end" }));
            let counts: Vec<usize> = all.into_iter().map(|batch| batch.unwrap().sample_count).collect();
            assert_eq!(counts, (0..BAD).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_ends_the_threads() {
        let (counting, shared) = source(3, 5000, false);
        let mut pass = batches(&shared, &[], 2).unwrap();
        assert!(pass.any(|batch| batch.is_err()));
        // the other thread would wait for room in its queue
        while Arc::strong_count(&counting) > 2 {
            thread::yield_now();
        }
        assert!(pass.next().is_none());
    }

    #[test]
    fn a_source_without_parts_has_no_batches() {
        assert_eq!(batches(&source(0, 50, false).1, &[], 2).unwrap().count(), 0);
        assert_eq!(outlines(&source(2, 50, false).1, &[], 2).unwrap().count(), 100);
    }

    #[test]
    fn a_pass_that_is_dropped_ends_its_threads() {
        for threads in [1, 2, 8] {
            let (counting, shared) = source(30, 50, false);
            assert_eq!(batches(&shared, &[], threads).unwrap().take(3).count(), 3);
            assert_eq!(Arc::strong_count(&counting), 2, "the threads have ended");
            assert!(counting.read.load(Ordering::SeqCst) < 30 * 50);
        }
    }
    #[test]
    fn a_pass_that_is_dropped_wakes_threads_that_wait_for_room() {
        let (counting, shared) = source(4, 5000, false);
        let mut pass = batches(&shared, &[], 3).unwrap();
        assert!(pass.next().is_some());
        // the first part is read to its error, and the queues of the three others are full
        let full = BAD + 1 + 3 * QUEUED_BATCHES;
        while counting.read.load(Ordering::SeqCst) < full {
            thread::yield_now();
        }
        drop(pass);
        assert_eq!(Arc::strong_count(&counting), 2, "the threads have ended");
    }
}
