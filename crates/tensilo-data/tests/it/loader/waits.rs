//! Waiting of the consumer: the time is counted, and a long read can be interrupted.

use super::model::{SAMPLES, check, create};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tensilo::ErrorKind;
use tensilo_data::{BatchAllocator, BatchMemory, DataError, LoaderOptions, View};
use tensilo_testing::Folder;

/// Allocates memory when a lock is free.
struct Gate(Arc<Mutex<()>>);

struct Own(Vec<u8>);

impl BatchMemory for Own {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl BatchAllocator for Gate {
    fn allocate(&self, byte_count: usize) -> Result<Box<dyn BatchMemory>, DataError> {
        drop(self.0.lock().unwrap());
        Ok(Box::new(Own(vec![0; byte_count])))
    }
}

#[test]
fn waiting_for_a_batch_is_counted() {
    let folder = Folder::new();
    let view = View::all(&create(&folder.path("data")));
    let gate = Arc::new(Mutex::new(()));
    let options =
        LoaderOptions::new(8).columns(["id"]).decode_threads(1).prefetch(1).allocator(Arc::new(Gate(gate.clone())));
    let patience = Duration::from_millis(5);
    let closed = gate.lock().unwrap();
    let mut batches = options.loader(&view).unwrap().epoch(0);
    assert!(!batches.wait(patience) && !batches.wait(patience));
    assert!(batches.metrics().first_batch >= 2 * patience);
    assert_eq!(batches.metrics().waited, Duration::ZERO);
    drop(closed);
    batches.next().unwrap().unwrap();
    // the second batch may be ready before the gate closes again, but not all later ones
    let closed = gate.lock().unwrap();
    while batches.wait(patience) {
        batches.next().unwrap().unwrap();
    }
    assert!(batches.metrics().waited >= patience);
    drop(closed);
}

#[test]
fn a_long_read_is_interrupted_between_its_segments() {
    let folder = Folder::new();
    let view = View::all(&create(&folder.path("data")));
    let calls = Arc::new(AtomicUsize::new(0));
    let max_calls = Arc::new(AtomicUsize::new(usize::MAX));
    let (count, limit) = (calls.clone(), max_calls.clone());
    let interrupt = Arc::new(move || match count.fetch_add(1, Ordering::Relaxed) < limit.load(Ordering::Relaxed) {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    });
    let samples: Vec<u64> = (0..300_000).map(|i| i * 7 % SAMPLES).collect();
    let mut reader = LoaderOptions::new(1).interrupt(interrupt).reader(&view).unwrap();
    check(&reader.take(&samples).unwrap(), &samples);
    let all = calls.load(Ordering::Relaxed);
    assert!(all > 20, "{all} calls");
    for limit in [0, 1, all / 2, all - 1] {
        calls.store(0, Ordering::Relaxed);
        max_calls.store(limit, Ordering::Relaxed);
        match reader.take(&samples) {
            Err(DataError::File(error)) => assert_eq!(error.kind(), ErrorKind::Cancelled),
            other => panic!("{other:?}"),
        }
    }
    max_calls.store(usize::MAX, Ordering::Relaxed);
    check(&reader.take(&samples[..50]).unwrap(), &samples[..50]);
}
