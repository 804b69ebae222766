//! Functions that change batches run on the threads that decode them.

use super::model::create;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use tensilo::DType;
use tensilo_data::{Batch, DataError, Dataset, LoaderOptions, Order, State, View};
use tensilo_testing::Folder;

/// The remaining batches of an epoch: position, samples and values.
type Rest = Vec<(u64, Vec<u64>, Vec<f32>)>;

fn contents(batch: &Batch) -> (u64, Vec<u64>, Vec<f32>) {
    let values = batch.column("vector").unwrap().values::<f32>().unwrap().to_vec();
    (batch.position(), batch.indices().to_vec(), values)
}

fn options() -> LoaderOptions {
    LoaderOptions::new(16).order(Order::Shuffled).columns(["vector"]).cast("vector", DType::F32)
}

fn doubled(batch: &mut Batch) {
    for value in batch.column_mut("vector").unwrap().values_mut::<f32>().unwrap() {
        *value *= 2.0;
    }
}

#[test]
fn order_states_and_receipts_are_those_of_the_batches_without_it() {
    let folder = Folder::new();
    let dataset: Dataset = create(&folder.path("data"));
    let view = View::all(&dataset);
    let plain = options().loader(&view).unwrap();
    let threads = Arc::new(Mutex::new(HashSet::new()));
    let seen = threads.clone();
    let transformed = options().decode_threads(2).io_depth(4).transform(move |batch| {
        seen.lock().unwrap().insert(thread::current().id());
        doubled(batch);
        Ok(())
    });
    let transformed = transformed.loader(&view).unwrap();
    let expected: Rest = plain.epoch(1).map(|batch| contents(&batch.unwrap())).collect();
    let mut batches = transformed.epoch(1);
    let mut state = None;
    for (number, (position, samples, values)) in expected.iter().enumerate() {
        let batch = batches.next().unwrap().unwrap();
        let values: Vec<f32> = values.iter().map(|value| value * 2.0).collect();
        assert_eq!(contents(&batch), (*position, samples.clone(), values));
        if number == 1 {
            state = Some(batches.state());
        }
    }
    assert!(batches.next().is_none());
    let state: State = state.unwrap();
    let resumed: Rest = transformed.resume(&state).unwrap().map(|batch| contents(&batch.unwrap())).collect();
    assert!(resumed.iter().map(|(position, ..)| position).eq(expected.iter().skip(2).map(|(position, ..)| position)));
    assert!(resumed.iter().zip(expected.iter().skip(2)).all(|(found, expected)| found.2[0] == expected.2[0] * 2.0));
    assert!(!threads.lock().unwrap().contains(&thread::current().id()), "not the consumer's thread");
    let taken = transformed.reader().take(&expected[0].1).unwrap();
    assert_eq!(contents(&taken).2[0], expected[0].2[0] * 2.0);
}

#[test]
fn no_more_than_the_decode_threads_run_it_at_the_same_time() {
    let folder = Folder::new();
    let dataset: Dataset = create(&folder.path("data"));
    let (running, max_running) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let found = max_running.clone();
    let options = options().decode_threads(2).io_depth(6).transform(move |_| {
        max_running.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        thread::yield_now();
        running.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    });
    let count = options.loader(&View::all(&dataset)).unwrap().epoch(0).map(Result::unwrap).count();
    assert!(count > 6 && (1..=2).contains(&found.load(Ordering::SeqCst)));
}

#[test]
fn its_error_is_the_error_of_the_batch() {
    let folder = Folder::new();
    let dataset: Dataset = create(&folder.path("data"));
    let view = View::all(&dataset);
    let failing = options().transform(|batch| match batch.position() {
        16 => Err("the label is not a number".into()),
        _ => Ok(batch.column("vector").map(drop)?),
    });
    let results: Vec<_> = failing.loader(&view).unwrap().epoch(0).take(3).collect();
    assert!(results[0].is_ok());
    let error = results[1].as_ref().unwrap_err();
    assert!(
        matches!(error, DataError::Transform(_)) && error.to_string().contains("the label is not a number"),
        "{error}"
    );
    let absent = options().transform(|batch| Ok(batch.column_mut("absent").map(drop)?));
    let error = absent.loader(&view).unwrap().epoch(0).next().unwrap().unwrap_err();
    assert!(error.to_string().contains("no column \"absent\"; columns: vector"), "{error}");
    let other = options().transform(|batch| Ok(batch.column_mut("vector")?.values_mut::<u8>().map(drop)?));
    let error = other.loader(&view).unwrap().epoch(0).next().unwrap().unwrap_err();
    assert!(error.to_string().contains("is f32, but was requested as u8"), "{error}");
    let panicking = options().transform(|_| panic!("the test {}", "panics"));
    let error = panicking.loader(&view).unwrap().epoch(0).next().unwrap().unwrap_err();
    assert!(error.to_string().ends_with("failed: it panicked: the test panics"), "{error}");
}
