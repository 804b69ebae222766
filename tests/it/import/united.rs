//! Inputs that differ a little: columns without values have the type null in one of them, or are
//! missing, and some inputs have no samples.

use super::common::*;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::ErrorKind;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::datatypes::{DataType, Field, Float64Type, Int32Type};
use tensilo::import::{AppendOptions, ConvertOptions, convert_rows, plan_shards};
use tensilo::sink::Stream;
use tensilo_testing::Folder;

const FORMATS: &[&str] = if cfg!(feature = "parquet") { &["arrow", "stream", "parquet"] } else { &["arrow", "stream"] };

/// Writes a file for each batch.
fn files(folder: &Folder, format: &str, batches: &[RecordBatch]) -> Vec<PathBuf> {
    let write = |(i, batch): (usize, &RecordBatch)| {
        let (path, batches) = (folder.path(format!("{i}.{format}")), std::slice::from_ref(batch));
        match format {
            "arrow" => write_arrow(&path, batches),
            "stream" => write_stream(&path, batches),
            #[cfg(feature = "parquet")]
            "parquet" => write_parquet(&path, batches),
            other => panic!("{other}"),
        }
        path
    };
    batches.iter().enumerate().map(write).collect()
}

fn nullable(name: &str, array: ArrayRef) -> (Field, ArrayRef) {
    (Field::new(name, array.data_type().clone(), true), array)
}

fn required(name: &str, array: ArrayRef) -> (Field, ArrayRef) {
    (Field::new(name, array.data_type().clone(), false), array)
}

fn ids(range: std::ops::Range<i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(range))
}

fn nulls(count: usize) -> ArrayRef {
    Arc::new(NullArray::new(count))
}

/// Columns of several forms, all with values.
fn full() -> RecordBatch {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), Some(2)]), Some([Some(3), Some(4)])]);
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.5, 1.5]));
    let inner: ArrayRef = Arc::new(StringArray::from(vec!["p", "q"]));
    let structs = StructArray::from(vec![
        (Arc::new(Field::new("f", DataType::Float64, true)), floats.clone()),
        (Arc::new(Field::new("t", DataType::Utf8, true)), inner.clone()),
    ]);
    batch(vec![
        required("id", ids(0..2)),
        nullable("text", inner),
        nullable("float", floats),
        nullable("list", Arc::new(lists)),
        nullable("struct", Arc::new(structs)),
    ])
}

/// The same columns, as a writer without a schema gives them if they have no values: null, or not
/// at all.
fn sparse() -> RecordBatch {
    let structs = StructArray::from(vec![(Arc::new(Field::new("t", DataType::Null, true)), nulls(2))]);
    batch(vec![
        nullable("float", nulls(2)),
        nullable("struct", Arc::new(structs)),
        nullable("list", nulls(2)),
        required("id", ids(2..4)),
    ])
}

/// Checks a file of the rows of [`full`] from sample `full` on, and of the rows of [`sparse`] from
/// sample `sparse` on.
fn check(file: &tensilo::Reader, full: usize, sparse: usize) {
    assert_eq!(file.sample_count(), 4);
    let due = |values: [&str; 2]| {
        let mut due = vec![None; 4];
        (due[full], due[full + 1]) = (Some(values[0].as_bytes().to_vec()), Some(values[1].as_bytes().to_vec()));
        due
    };
    assert_eq!(strings(file, "text"), due(["p", "q"]));
    assert_eq!(strings(file, "struct.t"), due(["p", "q"]));
    for name in ["float", "struct.f"] {
        let found = scalars::<f64>(file, name);
        assert_eq!((&found[full..full + 2], &found[sparse..sparse + 2]), (&[Some(0.5), Some(1.5)][..], &[None; 2][..]));
    }
    let lists = tensors::<i32>(file, "list");
    assert_eq!(lists[full], Some((vec![2], vec![1, 2])));
    assert_eq!(lists[sparse], None);
    let ids = scalars::<i64>(file, "id");
    assert_eq!((ids[full], ids[sparse]), (Some(0), Some(2)));
}

#[test]
fn null_columns_and_missing_ones_are_null() {
    for format in FORMATS {
        let folder = Folder::new();
        let mut inputs = files(&folder, format, &[full(), sparse()]);
        for threads in [1, 3] {
            let options = ConvertOptions::new().writer(tensilo::WriterOptions::new().threads(threads));
            check(&converted(&folder, &inputs, &options).unwrap(), 0, 2);
        }
        inputs.reverse();
        let file = converted(&folder, &inputs, &ConvertOptions::new()).unwrap();
        check(&file, 2, 0);
        let names: Vec<&str> = file.schema().columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(
            names,
            ["float", "struct.t", "struct.f", "list", "id", "text"],
            "the order in which they come first"
        );
    }
}

#[test]
fn they_are_appended_to_a_file_and_planned_for_several() {
    for format in FORMATS {
        let folder = Folder::new();
        let inputs = files(&folder, format, &[full(), sparse()]);
        let file = folder.path("file.tsl");
        convert_with(&inputs[..1], &file, &ConvertOptions::new()).unwrap();
        append_with(&inputs[1..], &file, &AppendOptions::new()).unwrap();
        check(&read(&file), 0, 2);

        let go_on = &mut |_| ControlFlow::Continue(());
        let plan = plan_shards(&inputs, u64::MAX, &ConvertOptions::new(), go_on).unwrap();
        let table = (&plan.schema, Path::new("table"));
        let written = convert_rows(&plan.inputs, 0..4, table, Stream(Vec::new()), &AppendOptions::new(), go_on);
        check(&opened(written.unwrap().sink.0), 0, 2);
    }
}

#[test]
fn a_column_that_must_have_values_is_not_filled() {
    let folder = Folder::new();
    let inputs = files(
        &folder,
        "arrow",
        &[batch(vec![required("a", ids(0..1)), required("b", ids(0..1))]), batch(vec![required("a", ids(1..2))])],
    );
    for inputs in [inputs.clone(), inputs.iter().rev().cloned().collect()] {
        let error = converted(&folder, &inputs, &ConvertOptions::new()).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::BadInput);
        assert!(error.message().contains("column \"b\" is "), "{error}");
    }
}

/// Other types stay other types: these are declared.
#[test]
fn declared_numbers_of_two_types_are_refused() {
    let folder = Folder::new();
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
    let inputs = files(&folder, "arrow", &[batch(vec![nullable("a", ids(0..1))]), batch(vec![nullable("a", floats)])]);
    let error = converted(&folder, &inputs, &ConvertOptions::new()).err().unwrap();
    assert!(error.message().contains("column \"a\" is f64, not i64"), "{error}");
}

#[test]
fn inputs_without_samples_add_none_whatever_their_columns() {
    for format in FORMATS {
        let folder = Folder::new();
        let empty = batch(vec![nullable("id", nulls(0)), nullable("other", ids(0..0))]);
        let inputs = files(&folder, format, &[empty, full(), full().slice(0, 0)]);
        let file = converted(&folder, &inputs, &ConvertOptions::new()).unwrap();
        assert_eq!((file.sample_count(), file.schema().columns.len()), (2, 6));
        assert_eq!(file.schema().columns[0].name, "id");
        let path = folder.path("file.tsl");
        convert_with(&inputs[1..2], &path, &ConvertOptions::new()).unwrap();
        assert_eq!(append_with(&inputs[..1], &path, &AppendOptions::new()).unwrap(), 0);
        assert_eq!(read(&path).sample_count(), 2);
        // alone, they make a file without samples
        let file = converted(&folder, &inputs[2..], &ConvertOptions::new()).unwrap();
        assert_eq!((file.sample_count(), file.schema().columns.len()), (0, 6));
    }
}

/// A row of nulls of a fixed shape takes as much memory as one of values: not all are made at once.
#[test]
fn missing_tensors_are_filled_in_bounded_memory() {
    let folder = Folder::new();
    let size = 100_000;
    let values: ArrayRef = Arc::new(Float64Array::from(vec![1.0; size]));
    let tensors = FixedSizeListArray::new(item(DataType::Float64), size as i32, values, None);
    let one = batch(vec![required("id", ids(0..1)), nullable("tensor", Arc::new(tensors))]);
    // together they would have 1.6 GB
    let inputs = files(&folder, "arrow", &[one, batch(vec![required("id", ids(1..2_001))])]);
    let options = ConvertOptions::new().columns(["id", "tensor"]);
    let mut seen = 0;
    let stopped = tensilo::import::convert(&inputs, &folder.path("x.tsl"), &options, &mut |progress| match progress {
        tensilo::import::Progress::Converting { done, .. } if done > 40 => {
            seen = done;
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(seen < 100, "{seen} samples are one batch");
}

#[test]
fn lists_of_nulls_get_the_members_of_the_others() {
    let folder = Folder::new();
    let values = ListArray::from_iter_primitive::<Float64Type, _, _>([Some([Some(0.5)])]);
    let mut empty = ListBuilder::new(NullBuilder::new());
    empty.append(true);
    empty.append(false);
    let inputs = files(
        &folder,
        "arrow",
        &[batch(vec![nullable("a", Arc::new(empty.finish()))]), batch(vec![nullable("a", Arc::new(values))])],
    );
    let file = converted(&folder, &inputs, &ConvertOptions::new()).unwrap();
    let due = [Some((vec![0], vec![])), None, Some((vec![1], vec![0.5]))];
    assert_eq!(tensors::<f64>(&file, "a"), due);
}
