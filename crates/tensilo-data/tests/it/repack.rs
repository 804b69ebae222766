//! The same samples in other files.

use crate::common::arbitrary::{self, bytes_below, contents};
use crate::common::{self, files_below, numbers, second_reader};
use crate::loader::model;
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::path::Path;
use tensilo::facts::CastFacts;
use tensilo::verify::VerifyOptions;
use tensilo::{ColumnSchema, DType, ErrorKind, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_data::{DataError, Dataset, DatasetOptions, LoaderOptions, Order, Receipt, State, View};
use tensilo_testing::{Folder, Random};

/// Repacks a dataset into files of at most `shard_bytes` raw bytes.
fn repack(dataset: &Dataset, shard_bytes: u64, options: &WriterOptions) -> Result<Dataset, DataError> {
    let mut changes = dataset.change()?;
    changes.set_time(None);
    let mut done = 0;
    changes.repack(shard_bytes, options, &mut |samples| {
        assert!(samples >= done, "progress never decreases");
        done = samples;
        ControlFlow::Continue(())
    })?;
    assert_eq!(done, dataset.sample_count());
    changes.publish("repack")
}

/// Returns the readers of all files, by group, with the samples of each.
fn readers(dataset: &Dataset) -> Vec<Vec<Reader>> {
    let groups = dataset.groups().map(|group| group.unwrap());
    groups.map(|group| (0..group.files.len()).map(|file| dataset.open_file(&group, file).unwrap()).collect()).collect()
}

fn check_files(dataset: &Dataset, shard_bytes: u64) {
    for files in readers(dataset) {
        let [reader] = files.as_slice() else { panic!("{} files of a group", files.len()) };
        let report = reader.verify(VerifyOptions::new().deep(true)).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        let values = |column: tensilo::Column| {
            let mut buffer = tensilo::ColumnBuffer::new();
            column.cursor().range_into(0..reader.sample_count(), &mut buffer).unwrap();
            buffer.bytes().len() as u64
        };
        let bytes: u64 = reader.columns().map(values).sum();
        assert!(bytes <= shard_bytes || reader.sample_count() == 1, "{bytes} in {} samples", reader.sample_count());
    }
}

/// Returns the cast facts of a column, given by index, in all files.
fn casts(dataset: &Dataset, number: usize) -> Vec<CastFacts> {
    let mut facts = Vec::new();
    for (group, readers) in dataset.groups().zip(readers(dataset)) {
        for (file, reader) in group.unwrap().files.iter().zip(readers) {
            let found = file.columns.iter().filter(|(_, column)| *column == number);
            facts.extend(found.filter_map(|(name, _)| reader.column(name).unwrap().facts().cast));
        }
    }
    facts
}

fn largest(facts: &[CastFacts], error: fn(&CastFacts) -> f64) -> f64 {
    facts.iter().map(error).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_value_is_the_same_bit_for_bit(
        seed in any::<u64>(),
        shard_bytes in 200..20_000_u64,
        profile in prop::sample::select(vec![Profile::Raw, Profile::Fast, Profile::Balanced]),
        chunk_bytes in 1..3_000_usize,
    ) {
        let folders = [Folder::new(), Folder::new()];
        let options = WriterOptions::new().profile(profile).chunk_bytes(chunk_bytes);
        let repacked = [1, 4].map(|threads| {
            let folder = &folders[usize::from(threads > 1)];
            let before = arbitrary::create(folder.root(), &mut Random(seed));
            (repack(&before, shard_bytes, &options.clone().threads(threads)).unwrap(), before)
        });
        let (after, before) = &repacked[0];
        prop_assert_eq!((after.id(), after.version(), after.parent()), (before.id(), 3, Some(2)));
        prop_assert_eq!((after.schema(), after.window_sizes()), (before.schema(), before.window_sizes()));
        let expected = contents(before);
        prop_assert!(contents(after) == expected);
        check_files(after, shard_bytes);
        for number in 0..after.schema().columns.len() {
            let (old, new) = (casts(before, number), casts(after, number));
            for error in [|facts: &CastFacts| facts.max_abs_error, |facts: &CastFacts| facts.max_rel_error] {
                prop_assert_eq!(largest(&new, error), largest(&old, error));
            }
            let sum = |facts: &[CastFacts]| facts.iter().map(|facts| facts.to_infinite + facts.to_subnormal).sum::<u64>();
            prop_assert!(sum(&new) >= sum(&old));
        }

        // the previous version is unchanged
        let again = DatasetOptions::new().version(2).open(folders[0].root()).unwrap();
        prop_assert!(contents(&again) == expected);
        // and the number of threads makes no difference
        let data = folders.each_ref().map(|folder| bytes_below(&folder.path("data/0000000003")));
        prop_assert!(data[0] == data[1] && !data[0].is_empty());
        let id = |dataset: &Dataset| dataset.groups().map(|group| group.unwrap().files[0].content_id).collect::<Vec<_>>();
        prop_assert_eq!(id(after), id(&repacked[1].0));
    }
}

#[test]
fn a_training_goes_on_with_the_same_batches_and_its_receipt_is_the_same() {
    let folder = Folder::new();
    let before = model::create(&folder.path("data"));
    let options = || LoaderOptions::new(9).order(Order::Shuffled).seed(4).decode_threads(1);
    let loader = options().loader(&View::all(&before)).unwrap();
    let mut batches = loader.epochs(0..2);
    let taken: Vec<Vec<u64>> = batches.by_ref().take(7).map(|batch| batch.unwrap().indices().to_vec()).collect();
    let state = State::from_bytes(&batches.state().to_bytes()).unwrap();
    let rest: Vec<Vec<u64>> = batches.by_ref().map(|batch| batch.unwrap().indices().to_vec()).collect();
    assert_eq!(taken.len(), 7);

    for (shard_bytes, files) in [(1, 152), (2_000, 6), (u64::MAX, 2)] {
        let after = repack(&before, shard_bytes, &WriterOptions::new().profile(Profile::Fast)).unwrap();
        assert_eq!(after.groups().count(), files, "of at most {shard_bytes} bytes");
        let loader = options().loader(&View::all(&after)).unwrap();
        let mut resumed = loader.resume_until(&state, 2).unwrap();
        let mut found = Vec::new();
        for batch in resumed.by_ref() {
            let batch = batch.unwrap();
            model::check(&batch, batch.indices());
            found.push(batch.indices().to_vec());
        }
        assert_eq!(found, rest);
        assert_eq!(state.receipt.plus(resumed.receipt()), batches.receipt());
        assert_ne!(resumed.receipt(), Receipt::default());
        std::fs::remove_file(folder.path(format!("data/manifest/{:010}.json", after.version()))).unwrap();
    }
}

/// Writes values that are cast from f32 to bf16, with an error of about `error`.
fn write_cast(path: &Path, error: f32) {
    let columns = [ColumnSchema::tensor("x", DType::Bf16, Shape::scalar()).cast_from(DType::F32)];
    let mut writer = Writer::create(path, Schema::new(columns), &WriterOptions::new()).unwrap();
    for value in [1.0, 1.0 + error, f32::MAX] {
        writer.push(&[Value::tensor(&[value])]).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn files_state_the_errors_of_those_that_they_have_samples_of() {
    let folder = Folder::new();
    let mut changes = Dataset::create(folder.root()).unwrap();
    for error in [0.000_5, 0.001, 0.000_25] {
        let path = changes.next_path().unwrap();
        write_cast(&path, error);
        changes.add_file(&path).unwrap();
    }
    let before = changes.publish("create").unwrap();
    let old = casts(&before, 0);
    assert!(old[1].max_abs_error > old[0].max_abs_error && old[0].max_abs_error > old[2].max_abs_error);
    // samples 0..2, 2..4, 4..6, 6..8 and 8
    let after = repack(&before, 4, &WriterOptions::new()).unwrap();
    let new: Vec<_> = casts(&after, 0).iter().map(|facts| (facts.max_abs_error, facts.to_infinite)).collect();
    let old = |i: usize| old[i].max_abs_error;
    assert_eq!(new, [(old(0), 1), (old(1), 2), (old(1), 1), (old(2), 1), (old(2), 1)]);
    assert_eq!(after.schema(), before.schema());
    // again into one file
    let after = repack(&after, u64::MAX, &WriterOptions::new()).unwrap();
    assert_eq!(casts(&after, 0).iter().map(|facts| facts.max_abs_error).collect::<Vec<_>>(), [old(1)]);
    assert_eq!(contents(&after), contents(&before));
    if let Some(read) = second_reader(folder.root()) {
        assert_eq!((read["version"].as_u64(), read["samples"].as_u64()), (Some(3), Some(9)));
    }
}

#[test]
fn work_that_is_broken_off_or_fails_leaves_nothing() {
    let folder = Folder::new();
    let dataset = common::create(folder.root(), &[20, 30, 50]);
    let before = files_below(folder.root());
    for max_samples in [0, 1, 20, 50, 99] {
        let mut changes = dataset.change().unwrap();
        let mut stop = |done| if done >= max_samples { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let error = changes.repack(64, &WriterOptions::new(), &mut stop).unwrap_err();
        assert!(matches!(&error, DataError::File(error) if error.kind() == ErrorKind::Cancelled), "{error}");
        drop(changes);
        assert_eq!(files_below(folder.root()), before);
    }
    // damage in the last file
    let path = before.iter().rfind(|path| path.extension().is_some_and(|extension| extension == "tsl")).unwrap();
    let bytes = std::fs::read(path).unwrap();
    let mut damaged = bytes.clone();
    let at = damaged.windows(4).position(|window| window == 70_u32.to_le_bytes()).expect("stored raw");
    damaged[at] ^= 1;
    std::fs::write(path, &damaged).unwrap();
    let again = Dataset::open(folder.root()).unwrap();
    let error = repack(&again, 64, &WriterOptions::new()).unwrap_err();
    assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    assert_eq!(files_below(folder.root()), before);
}

#[test]
fn samples_without_columns_are_refused_and_columns_without_values_take_no_space() {
    let folder = Folder::new();
    let dataset = common::create(folder.root(), &[2, 3]);
    let mut changes = dataset.change().unwrap();
    changes.add_nullable_column(numbers("y").nullable()).unwrap();
    changes.repack(1 << 20, &WriterOptions::new(), &mut |_| ControlFlow::Continue(())).unwrap();
    let repacked = changes.publish("add y, and repack").unwrap();
    let columns: Vec<_> = repacked.groups().map(|group| group.unwrap().files[0].columns.clone()).collect();
    assert_eq!(columns, [[("x".to_owned(), 0)]]);

    let mut changes = repacked.change().unwrap();
    changes.drop_column("x").unwrap();
    let error = changes.repack(1, &WriterOptions::new(), &mut |_| ControlFlow::Continue(())).unwrap_err();
    assert!(error.to_string().contains("samples 0..5 have no values in any remaining column"), "{error}");
}
