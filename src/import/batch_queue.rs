//! A queue of batches from the thread that reads them to the one that takes them.

use super::batch::InputBatch;
use super::source::{BatchIter, guard};
use crate::Result;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The number of bytes at which the reader waits. A single batch may have more.
const QUEUED_BYTES: usize = 6 << 20;
/// The number of batches at which the reader waits. It bounds only batches of few small columns.
pub(super) const QUEUED_BATCHES: usize = 1024;

/// Makes a queue. It is closed when one of its ends is dropped.
pub(super) fn batch_queue() -> (BatchSender, BatchReceiver) {
    let queue = Arc::new(Queue::default());
    (BatchSender(Arc::clone(&queue)), BatchReceiver(queue))
}

#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    /// Batches, and the memory that each takes.
    batches: VecDeque<(Result<InputBatch>, usize)>,
    /// The sum of the memory.
    bytes: usize,
    is_closed: bool,
}

impl QueueState {
    fn is_full(&self) -> bool {
        self.bytes >= QUEUED_BYTES || self.batches.len() >= QUEUED_BATCHES
    }

    fn push(&mut self, batch: Result<InputBatch>, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.batches.push_back((batch, bytes));
    }

    fn pop(&mut self) -> Option<Result<InputBatch>> {
        let (batch, bytes) = self.batches.pop_front()?;
        self.bytes = self.bytes.saturating_sub(bytes);
        Some(batch)
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // no code panics while it holds the lock
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, QueueState>) -> MutexGuard<'a, QueueState> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }
}

/// The end of the thread that reads.
pub(super) struct BatchSender(Arc<Queue>);

impl BatchSender {
    /// Sends what `keep` leaves of each batch of a pass, until one cannot be read or nobody takes
    /// more. The panic of a decoder is sent as an error.
    pub(super) fn send_all<'a>(
        &self,
        begin: impl FnOnce() -> Result<BatchIter<'a>>,
        keep: impl Fn(InputBatch) -> InputBatch,
    ) {
        let sent = guard(|| {
            let mut batches = begin()?;
            // a batch is read when there is room for it: it is memory, too, while it waits
            while self.waited_for_room()
                && let Some(batch) = batches.next()
            {
                let is_last = batch.is_err();
                self.send(batch.map(&keep));
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

    /// Waits until the queue is not full. Returns false if it is closed.
    fn waited_for_room(&self) -> bool {
        let mut state = self.0.lock();
        while state.is_full() && !state.is_closed {
            state = self.0.wait(state);
        }
        !state.is_closed
    }

    fn send(&self, batch: Result<InputBatch>) {
        let bytes = batch.as_ref().map_or(0, InputBatch::byte_count);
        self.0.lock().push(batch, bytes);
        self.0.changed.notify_one();
    }
}

impl Drop for BatchSender {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The end of the thread that takes the batches.
pub(super) struct BatchReceiver(Arc<Queue>);

impl Iterator for BatchReceiver {
    type Item = Result<InputBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut state = self.0.lock();
        loop {
            if let Some(batch) = state.pop() {
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

impl Drop for BatchReceiver {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::import::batch::{SampleValues, Samples, SharedBytes};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    fn batch(columns: usize, bytes: usize) -> InputBatch {
        let samples = |_| {
            Ok(Samples {
                dtype: DType::U8,
                values: SampleValues::Plain(SharedBytes::new(vec![0; bytes])),
                ranges: Vec::new(),
                lists: Vec::new(),
                open_extents: Vec::new(),
                nulls: None,
                element_nulls: None,
                no_tensor: None,
            })
        };
        InputBatch { sample_count: 1, columns: (0..columns).map(samples).collect() }
    }

    /// Reads batches of so many columns of so many bytes while nobody takes one, and returns their
    /// number.
    fn read_ahead(columns: usize, bytes: usize) -> usize {
        let (sender, mut receiver) = batch_queue();
        let read = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&read);
        let thread = thread::spawn(move || {
            let next = move |_| {
                counter.fetch_add(1, Ordering::SeqCst);
                Ok(batch(columns, bytes))
            };
            sender.send_all(|| Ok(Box::new((0..).map(next))), |batch| batch);
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
        assert_eq!(read_ahead(1, QUEUED_BYTES), 1);
        assert_eq!(read_ahead(1, QUEUED_BYTES / 2 - column), 2);
        assert_eq!(read_ahead(1, QUEUED_BYTES / 2 - column - 1), 3);
        assert_eq!(read_ahead(1, 0), QUEUED_BATCHES);
        // without values, as when shapes are looked for
        assert_eq!(read_ahead(1000, 0), QUEUED_BYTES.div_ceil(1000 * column));
    }

    #[test]
    fn batches_that_wait_are_taken_after_the_sender_is_gone() {
        let (sender, receiver) = batch_queue();
        sender.send_all(|| Ok(Box::new((0..3).map(|_| Ok(batch(1, 1))))), |batch| batch);
        drop(sender);
        assert_eq!(receiver.count(), 3);
    }
}
