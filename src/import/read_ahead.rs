//! Reading an input in a thread of its own, while the caller encodes.

use super::batch::InputBatch;
use super::formats::SharedSource;
use super::source::{BatchIter, guard};
use crate::Result;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Begins a pass over some columns of a source, in another thread. If none can be started, in this
/// one.
///
/// The thread is at most one batch ahead: it waits until the caller takes what it has decoded. It
/// ends with the pass, or with its batch if the pass is dropped.
pub(super) fn batches<'a>(source: &'a SharedSource, columns: &[usize]) -> Result<BatchIter<'a>> {
    let (sender, receiver) = sync_channel(0);
    let (shared, owned) = (Arc::clone(source), columns.to_vec());
    match thread::Builder::new().spawn(move || send_all(&shared, &owned, &sender)) {
        Ok(thread) => Ok(Box::new(ReadAhead { receiver: Some(receiver), thread: Some(thread) })),
        Err(_) => source.batches(columns),
    }
}

/// Sends all batches of a pass, until one cannot be read or nobody takes more.
fn send_all(source: &SharedSource, columns: &[usize], sender: &SyncSender<Result<InputBatch>>) {
    let sent = guard(|| {
        for batch in source.batches(columns)? {
            let is_last = batch.is_err();
            if sender.send(batch).is_err() || is_last {
                break;
            }
        }
        Ok(())
    });
    if let Err(error) = sent {
        let _ = sender.send(Err(error)); // nobody takes it if the pass was dropped
    }
}

/// A pass that another thread makes.
struct ReadAhead {
    /// Closed before the thread is waited for.
    receiver: Option<Receiver<Result<InputBatch>>>,
    thread: Option<JoinHandle<()>>,
}

impl Iterator for ReadAhead {
    type Item = Result<InputBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.receiver.as_ref()?.recv().ok()
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        drop(self.receiver.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // its panics were sent as errors
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::input_column::InputColumn;
    use crate::import::source::BatchSource;
    use crate::{Error, Metadata};
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Batches of 0, 1, 2 ... samples, and then an error or a panic.
    struct Counting {
        read: AtomicUsize,
        panics: bool,
        metadata: Metadata,
    }

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

        fn batches(&self, _columns: &[usize]) -> Result<BatchIter<'_>> {
            Ok(Box::new((0..).map(|sample_count| {
                self.read.fetch_add(1, Ordering::SeqCst);
                match sample_count {
                    100 if self.panics => panic!("on purpose"),
                    100 => Err(Error::bad_input("the end")),
                    _ => Ok(InputBatch { sample_count, columns: Vec::new() }),
                }
            })))
        }
    }

    fn source(panics: bool) -> (Arc<Counting>, SharedSource) {
        let source = Arc::new(Counting { read: AtomicUsize::new(0), panics, metadata: Metadata::new() });
        let shared: SharedSource = source.clone();
        (source, shared)
    }

    #[test]
    fn batches_come_in_order_and_an_error_or_panic_is_the_last() {
        for panics in [false, true] {
            let (_, shared) = source(panics);
            let mut counts = Vec::new();
            let mut errors = Vec::new();
            for batch in batches(&shared, &[]).unwrap() {
                match batch {
                    Ok(batch) => counts.push(batch.sample_count),
                    Err(error) => errors.push(error.message().to_owned()),
                }
            }
            assert_eq!((counts, errors.len()), ((0..100).collect(), 1));
            assert!(errors[0].contains(if panics { "on purpose" } else { "the end" }), "{errors:?}");
        }
    }

    #[test]
    fn a_pass_that_is_dropped_reads_at_most_one_batch_more() {
        let (counting, shared) = source(false);
        let taken = batches(&shared, &[]).unwrap().take(3).count();
        let read = counting.read.load(Ordering::SeqCst);
        assert!(taken == 3 && (3..=4).contains(&read), "{read}");
        assert_eq!(Arc::strong_count(&counting), 2, "the thread has ended");
    }
}
