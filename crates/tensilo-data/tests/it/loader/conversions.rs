//! Casts and padding, compared with plain code.

use super::memory::Lender;
use super::model::{SAMPLES, create, frames, maybe, tokens, vector, words};
use half::{bf16, f16};
use std::sync::Arc;
use tensilo::{ColumnSchema, DType, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_data::{Batch, Component, Dataset, LastBatch, LoaderOptions, Mixture, Order, Padding, View};
use tensilo_testing::Folder;

/// Checks the batches of an epoch, in memory of the loader and in memory full of ones.
fn for_each_batch(options: impl Fn(LoaderOptions) -> LoaderOptions, check: impl Fn(&Batch)) {
    let folder = Folder::new();
    let dataset: Dataset = create(&folder.path("data"));
    for (mode, batch, is_lent) in
        [(Order::Shuffled, 20, false), (Order::Sequential, 31, false), (Order::Shuffled, 24, true)]
    {
        let mut loader = options(LoaderOptions::new(batch).order(mode).last_batch(LastBatch::Exact));
        if is_lent {
            loader = loader.allocator(Arc::new(Lender::default()));
        }
        let mut count = 0;
        for batch in loader.loader(&View::all(&dataset)).unwrap().epoch(0) {
            let batch = batch.unwrap();
            check(&batch);
            count += batch.indices().len() as u64;
        }
        assert_eq!(count, SAMPLES);
    }
}

#[test]
fn fixed_columns_are_cast() {
    let options = |options: LoaderOptions| {
        options.columns(["vector", "maybe"]).cast("vector", DType::F32).cast("maybe", DType::I64)
    };
    for_each_batch(options, |batch| {
        let (vectors, maybes) = (batch.column("vector").unwrap(), batch.column("maybe").unwrap());
        assert_eq!(vectors.schema().unwrap().dtype, DType::F32);
        assert_eq!(vectors.tensor_extents(), Some([batch.indices().len() as u64, 5].as_slice()));
        for (position, &i) in batch.indices().iter().enumerate() {
            let found = &vectors.values::<f32>().unwrap()[position * 5..][..5];
            let expected = vector(i).unwrap_or_default().map(bf16::to_f32);
            assert_eq!((found, vectors.is_null(position)), (expected.as_slice(), vector(i).is_none()));
            let expected = i64::from(maybe(i).unwrap_or(0));
            assert_eq!(
                (maybes.values::<i64>().unwrap()[position], maybes.is_null(position)),
                (expected, maybe(i).is_none())
            );
        }
    });
}

#[test]
fn ragged_columns_are_cast_and_padded() {
    let options = |options: LoaderOptions| {
        let options = options.columns(["frames", "tokens"]).cast("frames", DType::F16).cast("tokens", DType::I64);
        options.pad("frames", Padding::new().multiple(2)).pad("tokens", Padding::new().value(-100.0))
    };
    for_each_batch(options, |batch| {
        let samples = batch.indices();
        let column = batch.column("tokens").unwrap();
        let longest = samples.iter().map(|&i| tokens(i).len()).max().unwrap();
        assert_eq!(column.tensor_extents(), Some([samples.len() as u64, longest as u64].as_slice()));
        for (position, &i) in samples.iter().enumerate() {
            let mut expected: Vec<i64> = tokens(i).into_iter().map(i64::from).collect();
            expected.resize(longest, -100);
            assert_eq!(column.values::<i64>().unwrap()[position * longest..][..longest], expected);
            assert_eq!(column.varying_extents()[position] as usize, tokens(i).len());
        }
        let column = batch.column("frames").unwrap();
        let longest = samples.iter().filter_map(|&i| Some(frames(i)?.len() / 3)).max().unwrap().next_multiple_of(2);
        assert_eq!(column.tensor_extents(), Some([samples.len() as u64, longest as u64, 3].as_slice()));
        for (position, &i) in samples.iter().enumerate() {
            let mut expected: Vec<f16> = frames(i).unwrap_or_default().into_iter().map(f16::from_f32).collect();
            expected.resize(longest * 3, f16::ZERO);
            assert_eq!(column.values::<f16>().unwrap()[position * longest * 3..][..longest * 3], expected);
            assert_eq!(column.is_null(position), frames(i).is_none());
        }
    });
}

#[test]
fn nested_columns_are_padded() {
    let options = |options: LoaderOptions| options.columns(["words"]).pad("words", Padding::new().multiple(4));
    for_each_batch(options, |batch| {
        let column = batch.column("words").unwrap();
        let all: Vec<Vec<String>> = batch.indices().iter().map(|&i| words(i).unwrap_or_default()).collect();
        let max_words = all.iter().map(Vec::len).max().unwrap().next_multiple_of(4);
        let longest = all.iter().flatten().map(String::len).max().unwrap_or(0).next_multiple_of(4);
        assert_eq!(column.tensor_extents(), Some([all.len() as u64, max_words as u64, longest as u64].as_slice()));
        let mut expected = vec![0; all.len() * max_words * longest];
        for (sample, texts) in all.iter().enumerate() {
            for (number, text) in texts.iter().enumerate() {
                expected[(sample * max_words + number) * longest..][..text.len()].copy_from_slice(text.as_bytes());
            }
        }
        assert_eq!(column.values::<u8>().unwrap(), expected);
    });
}

#[test]
fn samples_are_padded_after_they_were_read() {
    let folder = Folder::new();
    let view = View::all(&create(&folder.path("data")));
    let padding = Padding::new().multiple(3).value(7.0);
    let options = || LoaderOptions::new(25).columns(["frames", "tokens", "words", "vector"]);
    let padded = options().pad("frames", padding).pad("tokens", padding).pad("words", padding);
    let plain = options().loader(&view).unwrap().epoch(0);
    for (expected, batch) in padded.loader(&view).unwrap().epoch(0).zip(plain) {
        let (expected, mut batch) = (expected.unwrap(), batch.unwrap());
        for name in ["frames", "tokens", "words"] {
            let (expected, column) = (expected.column(name).unwrap(), batch.column(name).unwrap());
            let (extents, bytes) = column.padded(padding, column.bytes()).unwrap();
            assert_eq!((Some(extents.as_slice()), bytes.bytes()), (expected.tensor_extents(), expected.bytes()));
            assert_eq!(column.padded_extents(padding).unwrap(), extents);
            let mut out = vec![0xaa; bytes.bytes().len()];
            column.pad_into(padding, column.bytes(), &mut out).unwrap();
            assert_eq!(out, bytes.bytes());
            out.push(0);
            assert!(column.pad_into(padding, column.bytes(), &mut out).is_err());
            assert!(column.padded(padding, &[]).is_err() || column.bytes().is_empty());
        }
        assert!(batch.column("vector").unwrap().padded(padding, &[]).is_err());
        assert!(batch.column("tokens").unwrap().padded(Padding::new().value(0.5), &[]).is_err());
        let error = batch.column("tokens").unwrap().padded_extents(Padding::new().multiple(0)).unwrap_err();
        assert!(error.to_string().contains("multiples of 0"), "{error}");
        for column in batch.columns_mut() {
            column.bytes_mut().fill(1);
            assert!(column.bytes().iter().all(|byte| *byte == 1));
        }
    }
}

/// Values near the midpoint of two neighbors, where rounding twice gives a wrong result.
#[test]
fn floats_are_rounded_once() {
    let folder = Folder::new();
    let path = folder.path("a.tsl");
    let column = |name, dtype| ColumnSchema::tensor(name, dtype, Shape::scalar());
    let schema = Schema::new([column("s", DType::F32), column("d", DType::F64)]);
    let mut writer = Writer::create(&path, schema, &WriterOptions::new()).unwrap();
    let singles = [0x3F80_8001, 0x3F80_8000, 0x3F81_8000, 0x7F7F_FFFF, 1].map(f32::from_bits);
    let doubles = [1.0 + 2f64.powi(-11) + 2f64.powi(-30), 1.0 + 2f64.powi(-11), f64::MAX, 5e-324, -1.0 - 2f64.powi(-8)];
    for (s, d) in singles.into_iter().zip(doubles) {
        writer.push(&[Value::tensor(&[s]), Value::tensor(&[d])]).unwrap();
    }
    writer.finish().unwrap();
    let view = View::all(&Dataset::open(&path).unwrap());
    let options = || LoaderOptions::new(5).order(Order::Sequential);
    let to_bf16 = options().cast("s", DType::Bf16).cast("d", DType::F16).loader(&view).unwrap();
    let batch = to_bf16.reader().take(&[0, 1, 2, 3, 4]).unwrap();
    let bits = |values: &[bf16]| values.iter().map(|value| value.to_bits()).collect::<Vec<u16>>();
    let found = bits(batch.column("s").unwrap().values::<bf16>().unwrap());
    assert_eq!(found, [0x3F81, 0x3F80, 0x3F82, 0x7F80, 0]);
    let found = batch.column("d").unwrap().values::<f16>().unwrap();
    let expected = [f16::from_bits(0x3C01), f16::ONE, f16::INFINITY, f16::ZERO, -f16::from_f64(1.0 + 2f64.powi(-8))];
    assert_eq!(found, expected);
}

/// 150 is stored for 1.50. A loader refuses to deliver it, unless the caller requests stored
/// values.
#[test]
fn stored_elements_are_refused_unless_requested() {
    let folder = Folder::new();
    let column = |name: &str, dtype, extents: &[u32], text: &str| {
        let mut column = ColumnSchema::tensor(name, dtype, Shape::fixed(extents));
        column.metadata.insert("arrow.type".to_owned(), text.to_owned());
        column
    };
    let columns = [
        column("price", DType::I64, &[], "decimal64[12, 2]"),
        column("cents", DType::I32, &[], "decimal32[9, 2]"),
        column("score", DType::U8, &[16], "decimal128[38, 0]"),
        column("label", DType::I32, &[], "decimal32[9, 0]"),
        column("at", DType::I64, &[], "timestamp[us]"),
    ];
    let write = |name: &str, columns: &[ColumnSchema]| {
        let path = folder.path(name);
        let mut writer = Writer::create(&path, Schema::new(columns.to_vec()), &WriterOptions::new()).unwrap();
        let score = [7_u8; 16];
        let (price, cents) = (Value::tensor(&[150_i64]), Value::tensor(&[150_i32]));
        let (label, at) = (Value::tensor(&[3_i32]), Value::tensor(&[5_i64]));
        writer.push(&[price, cents, Value::tensor(&score), label, at]).unwrap();
        writer.finish().unwrap();
        Dataset::open(&path).unwrap()
    };
    let dataset = write("a.tsl", &columns);
    let view = View::all(&dataset);
    for (name, text, cast) in [("price", "decimal64[12, 2]", "f64"), ("score", "decimal128[38, 0]", "i64")] {
        for options in [LoaderOptions::new(1), LoaderOptions::new(1).cast(name, DType::F64)] {
            let options = options.columns([name]);
            let error = options.clone().loader(&view).unwrap_err().to_string();
            assert!([name, text, &format!("a cast to {cast}")].iter().all(|part| error.contains(part)), "{error}");
            assert_eq!(options.reader(&view).unwrap_err().to_string(), error);
        }
    }
    assert!(LoaderOptions::new(1).loader(&view).is_err(), "all columns");
    let loader = LoaderOptions::new(1).columns(["label", "at"]).loader(&view).unwrap();
    let batch = loader.epoch(0).next().unwrap().unwrap();
    assert_eq!(batch.column("label").unwrap().values::<i32>().unwrap(), [3]);
    assert_eq!(batch.column("at").unwrap().values::<i64>().unwrap(), [5]);
    let stored = LoaderOptions::new(1).stored_elements(true);
    for options in [stored.clone(), stored.clone().cast("price", DType::I64), stored.clone().cast("label", DType::F64)]
    {
        let batch = options.loader(&view).unwrap().epoch(0).next().unwrap().unwrap();
        assert_eq!(batch.column("price").unwrap().values::<i64>().unwrap(), [150]);
    }
    for name in ["cents", "score"] {
        let error = stored.clone().cast(name, DType::F32).loader(&view).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("not its values"), "{error}");
    }

    // microseconds are not mixed with nanoseconds
    let mut others = columns.to_vec();
    others[4] = column("at", DType::I64, &[], "timestamp[ns]");
    let other = write("b.tsl", &others);
    let component = |dataset: &Dataset| {
        let view = View::all(dataset);
        Component { dataset_id: dataset.id(), view_id: view.identity(), sample_count: view.sample_count(), weight: 1 }
    };
    let mixture = Mixture::new(&[component(&dataset), component(&other)], 2, 5, 4).unwrap();
    let mixed = View::mixture(&mixture, &[View::all(&dataset), View::all(&other)]).unwrap();
    let error = LoaderOptions::new(1).columns(["at"]).loader(&mixed).unwrap_err().to_string();
    assert!(error.contains("\"at\""), "{error}");
}
