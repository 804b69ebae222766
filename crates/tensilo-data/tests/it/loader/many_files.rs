//! Batches whose samples are mostly in closed files: several threads open the files.

use crate::common::{create, numbers, write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use tensilo::source::PositionedFile;
use tensilo_data::{Batch, Dataset, DatasetOptions, LastBatch, LoaderOptions, Order, View};
use tensilo_testing::Folder;

const FILES: u32 = 60;

/// Creates a dataset of files with 1 to 5 samples. Sample `i` is `i`. The last files also have a
/// column `y`.
fn dataset(folder: &Folder) -> Dataset {
    let sizes: Vec<u32> = (0..FILES).map(|i| i % 5 + 1).collect();
    let dataset = create(&folder.path("data"), &sizes);
    let mut changes = dataset.change().unwrap();
    let mut y = numbers("y");
    y.nullable = true;
    changes.add_nullable_column(y).unwrap();
    for _ in 0..FILES {
        let (path, first) = (changes.next_path().unwrap(), u32::try_from(changes.sample_count()).unwrap());
        write(&path, &[numbers("x"), numbers("y")], first, 3);
        changes.add_file(&path).unwrap();
    }
    changes.publish("more").unwrap()
}

fn check(batch: &Batch, samples_without_y: u64) {
    let values = |column: usize| -> Vec<u64> {
        let bytes = batch.columns()[column].bytes();
        bytes.chunks_exact(4).map(|bytes| u64::from(u32::from_ne_bytes(bytes.try_into().unwrap()))).collect()
    };
    assert_eq!(values(0), batch.indices());
    let has_y = |sample: u64| if sample < samples_without_y { 0 } else { sample };
    assert_eq!(values(1), batch.indices().iter().map(|&sample| has_y(sample)).collect::<Vec<_>>());
}

#[test]
fn samples_of_files_that_are_not_open_are_delivered() {
    let folder = Folder::new();
    let samples = dataset(&folder).sample_count();
    let without_y = samples - u64::from(3 * FILES);
    for (open_files, batch) in [(1, 300), (4, 64), (40, 64), (1000, 100)] {
        let dataset = DatasetOptions::new().max_open_files(open_files).open(folder.path("data")).unwrap();
        let options = LoaderOptions::new(batch).order(Order::Shuffled).last_batch(LastBatch::Exact).decode_threads(2);
        let mut delivered = 0;
        for batch in options.loader(&View::all(&dataset)).unwrap().epochs(0..2) {
            let batch = batch.unwrap();
            check(&batch, without_y);
            delivered += batch.indices().len() as u64;
        }
        assert_eq!(delivered, 2 * samples);
    }
}

/// Files are opened at the same time: each open waits until another one has started.
#[test]
fn files_are_opened_at_the_same_time() {
    let folder = Folder::new();
    dataset(&folder);
    let (opened, pair) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(2)));
    let count = opened.clone();
    let options = DatasetOptions::new().open_with(move |path, options| {
        // the first ones are opened one after the other
        if (20..40).contains(&count.fetch_add(1, Ordering::SeqCst)) {
            pair.wait();
        }
        options.open_source(PositionedFile::open(path)?)
    });
    let dataset = options.open(folder.path("data")).unwrap();
    let loader = LoaderOptions::new(250).order(Order::Shuffled).decode_threads(1).loader(&View::all(&dataset)).unwrap();
    loader.epoch(0).next().unwrap().unwrap();
    assert!(opened.load(Ordering::SeqCst) > 80);
}

#[test]
fn the_first_file_that_is_gone_is_named() {
    let folder = Folder::new();
    let dataset = dataset(&folder);
    let files: Vec<_> = dataset.groups().map(|group| group.unwrap().files[0].path.clone()).collect();
    for gone in [30, 31, 100] {
        std::fs::remove_file(&files[gone]).unwrap();
    }
    let loader = LoaderOptions::new(300)
        .order(Order::Shuffled)
        .last_batch(LastBatch::Exact)
        .loader(&View::all(&dataset))
        .unwrap();
    for _ in 0..5 {
        let errors: Vec<String> = loader.epoch(0).filter_map(|batch| Some(batch.err()?.to_string())).collect();
        assert!(!errors.is_empty());
        let first = files[30].file_name().unwrap().to_str().unwrap();
        assert!(errors[0].contains(first), "{errors:?}");
    }
}
