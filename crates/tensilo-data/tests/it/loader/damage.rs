//! Damaged, vanished and replaced files.

use super::model::{SAMPLES, check, create};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use tensilo::source::PositionedFile;
use tensilo_data::{
    Batch, DataError, Dataset, DatasetOptions, LastBatch, LoaderOptions, OnDamage, Order, Receipt, View,
    substitute_candidate,
};
use tensilo_testing::Folder;

/// Creates the dataset, and flips a bit in the values of `id` of sample 40, which is in the third
/// file. Returns the samples that this damages.
fn damaged(folder: &Folder) -> (Dataset, Vec<u64>) {
    let dataset = create(&folder.path("data"));
    let found = dataset.find(0, 40).unwrap();
    let chunk = found.column.unwrap().chunk_of(found.index).unwrap();
    let path = file_of(&dataset, 40);
    let mut bytes = fs::read(&path).unwrap();
    bytes[usize::try_from(chunk.file_range.start).unwrap() + 64 + 3] ^= 1;
    fs::write(&path, bytes).unwrap();
    let damaged = chunk.samples.map(|i| i + found.samples.start).collect();
    (Dataset::open(folder.path("data")).unwrap(), damaged)
}

fn file_of(dataset: &Dataset, sample: u64) -> PathBuf {
    let group = dataset.groups().map(Result::unwrap).find(|group| group.samples.contains(&sample));
    group.unwrap().files[0].path.clone()
}

fn options(batch: u32) -> LoaderOptions {
    LoaderOptions::new(batch).order(Order::Shuffled).seed(8).last_batch(LastBatch::Exact)
}

#[test]
fn a_batch_with_a_damaged_sample_is_an_error_in_its_place() {
    let folder = Folder::new();
    let (dataset, damaged) = damaged(&folder);
    // a reader of a caller's source does not know its path
    let opened = DatasetOptions::new().open_with(|path, options| options.open_source(PositionedFile::open(path)?));
    for dataset in [dataset, opened.open(folder.path("data")).unwrap()] {
        errors_are_in_their_places(&dataset, &damaged);
    }
}

fn errors_are_in_their_places(dataset: &Dataset, damaged: &[u64]) {
    let loader = options(6).loader(&View::all(dataset)).unwrap();
    let (mut batches, mut position) = (loader.epoch(0), 0);
    while let Some(batch) = batches.next() {
        let expected = loader.indices(0, position).unwrap();
        assert_eq!(batch.is_err(), expected.iter().any(|sample| damaged.contains(sample)), "{expected:?}");
        match batch {
            Ok(batch) => check(&batch, &expected),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains(".tsl") && text.contains("id"), "{text}");
            }
        }
        position += 6;
        if position < SAMPLES {
            assert_eq!((batches.state().epoch, batches.state().position), (0, position));
        }
    }
    assert!(position >= SAMPLES);
    let intact = options(6).columns(["vector", "words", "late"]).loader(&View::all(dataset)).unwrap();
    assert!(intact.epoch(0).all(|batch| batch.is_ok()), "columns that are not requested do not matter");
}

fn substituted(dataset: &Dataset, world_size: u32, batch: u32, epoch: u64) -> (BTreeMap<u64, Vec<u64>>, Receipt) {
    let (mut found, mut receipt) = (BTreeMap::new(), Receipt::default());
    for rank in 0..world_size {
        let loader = options(batch).rank(rank, world_size).on_damage(OnDamage::Substitute);
        let loader = loader.loader(&View::all(dataset)).unwrap();
        let mut batches = loader.epoch(epoch);
        let mut substitutes = 0;
        for batch in batches.by_ref() {
            let batch: Batch = batch.unwrap();
            check(&batch, batch.indices());
            let expected = loader.indices(epoch, batch.position()).unwrap();
            for (position, (&sample, &requested)) in batch.indices().iter().zip(&expected).enumerate() {
                assert_eq!(batch.substituted().contains(&position), sample != requested);
                found.entry(requested).or_insert_with(Vec::new).push(sample);
            }
            substitutes += batch.substituted().len() as u64;
        }
        assert_eq!(batches.metrics().substitutes, substitutes);
        receipt = receipt.plus(batches.receipt());
    }
    (found, receipt)
}

#[test]
fn substitutes_are_the_same_on_any_number_of_ranks() {
    let folder = Folder::new();
    let (dataset, damaged) = damaged(&folder);
    for epoch in 0..3 {
        let (found, receipt) = substituted(&dataset, 1, 7, epoch);
        for (world_size, batch) in [(2, 20), (3, 1)] {
            assert_eq!(substituted(&dataset, world_size, batch, epoch), (found.clone(), receipt));
        }
        let mut expected_receipt = Receipt::default();
        for requested in 0..SAMPLES {
            let attempts = (0..64).filter_map(|attempt| substitute_candidate(SAMPLES, 8, epoch, requested, attempt));
            let expected = match damaged.contains(&requested) {
                true => attempts.into_iter().find(|sample| !damaged.contains(sample)).unwrap(),
                false => requested,
            };
            assert_eq!(found[&requested], [expected]);
            expected_receipt.add(expected, epoch);
        }
        assert_eq!(receipt, expected_receipt);
    }
}

#[test]
fn a_file_that_vanished_or_was_replaced_is_an_error_with_any_policy() {
    for policy in [OnDamage::Error, OnDamage::Substitute] {
        let folder = Folder::new();
        let dataset = create(&folder.path("data"));
        let path = file_of(&dataset, 40);
        let bytes = fs::read(&path).unwrap();
        fs::copy(file_of(&dataset, 0), &path).unwrap();
        let loader = options(SAMPLES as u32).on_damage(policy).loader(&View::all(&dataset)).unwrap();
        let error = loader.epoch(0).next().unwrap().expect_err("another file");
        assert!(matches!(&error, DataError::Corrupt { path: named, .. } if *named == path), "{error}");
        fs::remove_file(&path).unwrap();
        let error = loader.epoch(0).next().unwrap().expect_err("no file");
        assert!(error.to_string().contains(&*path.file_name().unwrap().to_string_lossy()), "{error}");
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(loader.epoch(0).next().unwrap().is_err());
        fs::write(&path, &bytes).unwrap();
        assert!(loader.epoch(0).next().unwrap().is_ok());
    }
}
