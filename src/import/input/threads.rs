//! Reads row groups on other threads while the caller encodes.
//!
//! Each thread takes the next row group that no thread has started, and reads it into a separate
//! queue. The number of bytes and of batches in a queue is bounded. The caller drains the queues in
//! row-group order, so batches arrive in order. A queue closes when one of its ends is dropped. So
//! if the caller stops early, the threads also stop.

use crate::import::rows::{Batch, MemorySize};
use crate::import::source::{Batches, SharedSource, catch_panic};
use crate::{Error, Result};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::thread::JoinHandle;

/// The maximum number of reading threads. Each thread holds batches in memory.
const MAX_READ_THREADS: usize = 8;
/// The number of queued bytes at which a thread waits. A single batch can exceed it.
const MAX_QUEUED_BYTES: usize = 6 << 20;
/// The number of queued batches at which a thread waits. The limit matters only for batches with
/// few, small columns.
const MAX_QUEUED_BATCHES: usize = 1024;

/// Starts a pass over a source. `begin` starts the pass over one row group. Row groups are read on
/// at most `threads` threads and yielded in order.
pub(in crate::import) fn pass<T, F>(source: &SharedSource, threads: usize, begin: F) -> Result<Batches<'static, T>>
where
    T: MemorySize + Send + 'static,
    F: for<'a> Fn(&'a SharedSource, usize) -> Result<Batches<'a, T>> + Send + Sync + 'static,
{
    let row_group_count = source.row_group_count();
    let thread_count = threads.min(row_group_count).min(MAX_READ_THREADS);
    let (sender, row_groups) = sync_channel(thread_count);
    let queue = Arc::new(Mutex::new(RowGroupQueue { left: 0..row_group_count, sender }));
    let begin = Arc::new(begin);
    let mut pass = ThreadedPass { row_groups: Some(row_groups), current: None, handles: Vec::new() };
    for _ in 0..thread_count {
        let (source, queue, begin) = (Arc::clone(source), Arc::clone(&queue), Arc::clone(&begin));
        let read = move || {
            // no code panics while it holds the lock
            let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).take();
            while let Some((row_group, sender)) = next() {
                sender.send_all(|| begin(&source, row_group));
            }
        };
        match thread::Builder::new().name("tensilo-read".to_owned()).spawn(read) {
            Ok(handle) => pass.handles.push(handle),
            Err(_) if !pass.handles.is_empty() => {} // the threads that have started suffice
            Err(error) => return Err(Error::io("starting a reader thread", error)),
        }
    }
    Ok(Box::new(pass))
}

/// The row groups that no thread has started.
struct RowGroupQueue<T> {
    left: Range<usize>,
    /// Hands the receivers of row groups to the caller, in order.
    sender: SyncSender<BatchReceiver<T>>,
}

impl<T> RowGroupQueue<T> {
    /// Takes the next row group. Returns `None` if none is left or the caller has stopped.
    fn take(&mut self) -> Option<(usize, BatchSender<T>)> {
        let row_group = self.left.next()?;
        let (sender, receiver) = batch_queue();
        self.sender.send(receiver).ok()?;
        Some((row_group, sender))
    }
}

/// A pass that other threads read.
struct ThreadedPass<T> {
    /// Dropped before the threads are joined.
    row_groups: Option<Receiver<BatchReceiver<T>>>,
    current: Option<BatchReceiver<T>>,
    handles: Vec<JoinHandle<()>>,
}

impl<T> ThreadedPass<T> {
    fn next_batch(&mut self) -> Option<Result<Batch<T>>> {
        loop {
            if let Some(batch) = self.current.as_mut().and_then(BatchReceiver::next) {
                return Some(batch);
            }
            self.current = Some(self.row_groups.as_ref()?.recv().ok()?);
        }
    }

    /// Signals the threads that the caller has stopped. Waiting row groups are dropped with the
    /// channel.
    fn close(&mut self) {
        self.current = None;
        self.row_groups = None;
    }
}

impl<T> Iterator for ThreadedPass<T> {
    type Item = Result<Batch<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch();
        if matches!(next, Some(Err(_))) {
            self.close();
        }
        next
    }
}

impl<T> Drop for ThreadedPass<T> {
    fn drop(&mut self) {
        self.close();
        for handle in self.handles.drain(..) {
            let _ = handle.join(); // panics were sent as errors
        }
    }
}

/// Creates a queue from a reading thread to the caller.
fn batch_queue<T>() -> (BatchSender<T>, BatchReceiver<T>) {
    let state = QueueState { batches: VecDeque::new(), bytes: 0, is_closed: false };
    let queue = Arc::new(Queue { state: Mutex::new(state), changed: Condvar::new() });
    (BatchSender(Arc::clone(&queue)), BatchReceiver(queue))
}

struct Queue<T> {
    state: Mutex<QueueState<T>>,
    changed: Condvar,
}

struct QueueState<T> {
    /// The batches, each with its size in memory.
    batches: VecDeque<(Result<Batch<T>>, usize)>,
    /// The total size of the batches in memory.
    bytes: usize,
    is_closed: bool,
}

impl<T> QueueState<T> {
    fn is_full(&self) -> bool {
        self.bytes >= MAX_QUEUED_BYTES || self.batches.len() >= MAX_QUEUED_BATCHES
    }
}

impl<T> Queue<T> {
    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        // no code panics while it holds the lock
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, QueueState<T>>) -> MutexGuard<'a, QueueState<T>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }
}

/// The reading thread's end of a queue.
struct BatchSender<T>(Arc<Queue<T>>);

impl<T: MemorySize> BatchSender<T> {
    /// Sends the batches of a pass until one fails or the queue is closed. Sends a panic of the
    /// decoder as an error.
    fn send_all<'a>(&self, begin: impl FnOnce() -> Result<Batches<'a, T>>) {
        let sent = catch_panic(|| {
            let mut batches = begin()?;
            // read a batch only when the queue has room, because a waiting batch takes memory
            while self.wait_for_room()
                && let Some(batch) = batches.next()
            {
                let is_last = batch.is_err();
                self.send(batch);
                if is_last {
                    break;
                }
            }
            Ok(())
        });
        if let Err(error) = sent {
            self.send(Err(error));
        }
    }

    /// Waits until the queue is not full. Returns `false` if it is closed.
    fn wait_for_room(&self) -> bool {
        let mut state = self.0.lock();
        while state.is_full() && !state.is_closed {
            state = self.0.wait(state);
        }
        !state.is_closed
    }

    fn send(&self, batch: Result<Batch<T>>) {
        let bytes = batch.as_ref().map_or(0, MemorySize::byte_count);
        let mut state = self.0.lock();
        state.bytes = state.bytes.saturating_add(bytes);
        state.batches.push_back((batch, bytes));
        drop(state);
        self.0.changed.notify_one();
    }
}

impl<T> Drop for BatchSender<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The caller's end of a queue.
struct BatchReceiver<T>(Arc<Queue<T>>);

impl<T> Iterator for BatchReceiver<T> {
    type Item = Result<Batch<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut state = self.0.lock();
        loop {
            if let Some((batch, bytes)) = state.batches.pop_front() {
                state.bytes = state.bytes.saturating_sub(bytes);
                self.0.changed.notify_one();
                return Some(batch);
            }
            if state.is_closed {
                return None;
            }
            state = self.0.wait(state);
        }
    }
}

impl<T> Drop for BatchReceiver<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Metadata;
    use crate::import::plan::input_column::{ColumnRequest, InputColumn};
    use crate::import::rows::{ColumnRows, Outline};
    use crate::import::source::{PassRows, RowSource};
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn batch(columns: usize, extents: usize) -> Batch<Outline> {
        let outline = |_| Ok(Outline { extents: vec![0; extents], ..Outline::default() });
        Batch { row_count: 1, columns: (0..columns).map(outline).collect() }
    }

    /// Reads batches with this number of columns and extents until the queue is full. Returns how
    /// many batches then wait in the queue.
    fn read_ahead(columns: usize, extents: usize) -> usize {
        let (sender, mut receiver) = batch_queue();
        let read = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&read);
        let thread = thread::spawn(move || {
            let next = move |_| {
                counter.fetch_add(1, Ordering::SeqCst);
                Ok(batch(columns, extents))
            };
            sender.send_all(|| Ok(Box::new((0..).map(next))));
        });
        assert!(receiver.next().unwrap().is_ok());
        while !receiver.0.lock().is_full() {
            thread::yield_now();
        }
        drop(receiver);
        thread.join().unwrap();
        read.load(Ordering::SeqCst) - 1
    }

    #[test]
    fn the_bytes_and_the_number_of_waiting_batches_are_bounded() {
        let column = batch(1, 0).byte_count();
        assert_eq!(read_ahead(1, MAX_QUEUED_BYTES / 4), 1);
        assert_eq!(read_ahead(1, (MAX_QUEUED_BYTES / 2 - column) / 4), 2);
        assert_eq!(read_ahead(1, (MAX_QUEUED_BYTES / 2 - column) / 4 - 1), 3);
        assert_eq!(read_ahead(1, 0), MAX_QUEUED_BATCHES);
        // without values, as in the first pass
        assert_eq!(read_ahead(1000, 0), MAX_QUEUED_BYTES.div_ceil(1000 * column));
    }

    #[test]
    fn batches_that_wait_are_taken_after_the_sender_is_gone() {
        let (sender, receiver) = batch_queue();
        sender.send_all(|| Ok(Box::new((0..3).map(|_| Ok(batch(1, 1))))));
        drop(sender);
        assert_eq!(receiver.count(), 3);
    }

    /// A source whose row groups all have the same number of batches. The batches have 0, 1, 2 ...
    /// rows. One batch is an error or a panic.
    struct CountingSource {
        read: AtomicUsize,
        row_group_count: usize,
        row_group_batches: usize,
        panics: bool,
        metadata: Metadata,
    }

    /// The number of the only batch that fails.
    const BAD: usize = 130;

    impl RowSource for CountingSource {
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

        fn row_group_count(&self) -> usize {
            self.row_group_count
        }

        fn batches(&self, _columns: &[ColumnRequest], rows: PassRows) -> Result<Batches<'_, ColumnRows>> {
            let PassRows::RowGroup(row_group) = rows else { return Err(Error::bad_input("not a row group")) };
            let counts = row_group * self.row_group_batches..(row_group + 1) * self.row_group_batches;
            Ok(Box::new(counts.map(|row_count| {
                self.read.fetch_add(1, Ordering::SeqCst);
                match row_count {
                    BAD if self.panics => panic!("on purpose"),
                    BAD => Err(Error::bad_input("the end")),
                    _ => Ok(Batch { row_count, columns: Vec::new() }),
                }
            })))
        }
    }

    fn source(row_group_count: usize, row_group_batches: usize, panics: bool) -> (Arc<CountingSource>, SharedSource) {
        let read = AtomicUsize::new(0);
        let source =
            Arc::new(CountingSource { read, row_group_count, row_group_batches, panics, metadata: Metadata::new() });
        (Arc::clone(&source), source)
    }

    fn batches(source: &SharedSource, threads: usize) -> Batches<'static, ColumnRows> {
        pass(source, threads, |source, row_group| source.batches(&[], PassRows::RowGroup(row_group))).unwrap()
    }

    #[test]
    fn batches_come_in_order_and_an_error_or_panic_is_the_last() {
        for (threads, panics) in [(1, false), (2, true), (3, false), (20, true)] {
            let (_, shared) = source(5, 50, panics);
            let mut all: Vec<_> = batches(&shared, threads).collect();
            let error = all.pop().unwrap().unwrap_err();
            assert!(error.message().contains(if panics { "on purpose" } else { "the end" }));
            let counts: Vec<usize> = all.into_iter().map(|batch| batch.unwrap().row_count).collect();
            assert_eq!(counts, (0..BAD).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_error_ends_the_threads() {
        let (counting, shared) = source(3, 5000, false);
        let mut pass = batches(&shared, 2);
        assert!(pass.any(|batch| batch.is_err()));
        // the other thread would wait for room in its queue
        while Arc::strong_count(&counting) > 2 {
            thread::yield_now();
        }
        assert!(pass.next().is_none());
    }

    #[test]
    fn a_source_without_row_groups_has_no_batches() {
        assert_eq!(batches(&source(0, 50, false).1, 2).count(), 0);
    }

    #[test]
    fn a_pass_that_is_dropped_ends_its_threads() {
        for threads in [1, 2, 8] {
            let (counting, shared) = source(30, 50, false);
            assert_eq!(batches(&shared, threads).take(3).count(), 3);
            assert_eq!(Arc::strong_count(&counting), 2, "the threads have ended");
            assert!(counting.read.load(Ordering::SeqCst) < 30 * 50);
        }
    }

    #[test]
    fn a_pass_that_is_dropped_wakes_threads_that_wait_for_room() {
        let (counting, shared) = source(4, 5000, false);
        let mut pass = batches(&shared, 3);
        assert!(pass.next().is_some());
        // the first row group is read up to its error, and the queues of the three others are full
        let full = BAD + 1 + 3 * MAX_QUEUED_BATCHES;
        while counting.read.load(Ordering::SeqCst) < full {
            thread::yield_now();
        }
        drop(pass);
        assert_eq!(Arc::strong_count(&counting), 2, "the threads have ended");
    }
}
