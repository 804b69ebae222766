//! Reading the parts of an input in several threads, for a pass that needs no values.

use super::batch::{InputBatch, SampleValues, Samples, SharedBytes};
use super::formats::SharedSource;
use super::read_ahead;
use super::source::{BatchIter, guard};
use crate::Result;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// At most as many threads read: each has a batch in memory.
const MAX_READERS: usize = 8;
/// Outlines of a part that wait for the caller, at most.
const WAITING: usize = 16;

/// The outlines of one part.
type PartReceiver = Receiver<Result<InputBatch>>;

/// Begins a pass over some columns of a source, of which extents and instants are kept, in the
/// order of the samples. Its parts are read in several threads.
pub(super) fn outlines<'a>(source: &'a SharedSource, columns: &[usize], threads: usize) -> Result<BatchIter<'a>> {
    let part_count = source.part_count();
    let readers = threads.min(part_count).min(MAX_READERS);
    if readers < 2 {
        return read_ahead::batches(source, columns);
    }
    let (sender, parts) = sync_channel(2 * readers);
    let queue = Arc::new(Mutex::new(Queue { left: 0..part_count, sender }));
    let mut pass = ParallelPass { parts: Some(parts), current: None, threads: Vec::new() };
    for _ in 0..readers {
        let (source, columns, queue) = (Arc::clone(source), columns.to_vec(), Arc::clone(&queue));
        let started = thread::Builder::new().spawn(move || read_parts(&source, &columns, &queue));
        pass.threads.extend(started);
    }
    if pass.threads.is_empty() { source.batches(columns) } else { Ok(Box::new(pass)) }
}

/// The parts that no thread has begun, and where their outlines are announced in order.
struct Queue {
    left: Range<usize>,
    sender: SyncSender<PartReceiver>,
}

impl Queue {
    /// Takes the next part; `None` if none is left, or nobody waits for it.
    fn take(&mut self) -> Option<(usize, SyncSender<Result<InputBatch>>)> {
        let part = self.left.next()?;
        let (sender, receiver) = sync_channel(WAITING);
        self.sender.send(receiver).ok()?;
        Some((part, sender))
    }
}

/// Reads parts until none is left.
fn read_parts(source: &SharedSource, columns: &[usize], queue: &Mutex<Queue>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((part, sender)) = next else { return };
        let sent = guard(|| {
            for batch in source.part(part, columns)? {
                let is_last = batch.is_err();
                if sender.send(batch.map(outline)).is_err() || is_last {
                    break;
                }
            }
            Ok(())
        });
        if let Err(error) = sent {
            let _ = sender.send(Err(error)); // nobody takes it if the pass was dropped
        }
    }
}

/// Leaves out the values, except instants.
fn outline(batch: InputBatch) -> InputBatch {
    let column = |samples: Samples| match samples.values {
        SampleValues::Instants(_) => samples,
        SampleValues::Plain(_) => Samples {
            values: SampleValues::Plain(SharedBytes::new([])),
            ranges: Vec::new(),
            nulls: None,
            element_nulls: None,
            ..samples
        },
    };
    InputBatch { columns: batch.columns.into_iter().map(|samples| samples.map(column)).collect(), ..batch }
}

/// A pass that other threads make.
struct ParallelPass {
    /// Closed before the threads are waited for.
    parts: Option<Receiver<PartReceiver>>,
    current: Option<PartReceiver>,
    threads: Vec<JoinHandle<()>>,
}

impl Iterator for ParallelPass {
    type Item = Result<InputBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.current.as_ref().and_then(|part| part.recv().ok()) {
                return Some(batch);
            }
            self.current = Some(self.parts.as_ref()?.recv().ok()?);
        }
    }
}

impl Drop for ParallelPass {
    fn drop(&mut self) {
        self.current = None;
        drop(self.parts.take());
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // its panics were sent as errors
        }
    }
}
