//! Tests inputs that differ slightly: columns without values have the type null or are missing, and
//! some inputs have no samples.

use super::common::*;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::datatypes::{DataType, Field, Float64Type, Int32Type};
use tensilo::import::{AppendOptions, ConvertOptions, convert_rows, plan_shards};
use tensilo::sink::Stream;
use tensilo::{ColumnSchema, DType, ErrorKind, Extent, Schema, Shape, Writer, WriterOptions};
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

/// Returns columns of several forms, all with values.
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

/// Returns the same columns as a writer without a schema gives them if they have no values: of type
/// null, or missing.
fn sparse() -> RecordBatch {
    let structs = StructArray::from(vec![(Arc::new(Field::new("t", DataType::Null, true)), nulls(2))]);
    batch(vec![
        nullable("float", nulls(2)),
        nullable("struct", Arc::new(structs)),
        nullable("list", nulls(2)),
        required("id", ids(2..4)),
    ])
}

/// Checks a file with the rows of [`full`] from sample `full` on and the rows of [`sparse`] from
/// sample `sparse` on.
fn check(file: &tensilo::Reader, full: usize, sparse: usize) {
    assert_eq!(file.sample_count(), 4);
    let expected = |values: [&str; 2]| {
        let mut expected = vec![None; 4];
        (expected[full], expected[full + 1]) =
            (Some(values[0].as_bytes().to_vec()), Some(values[1].as_bytes().to_vec()));
        expected
    };
    assert_eq!(strings(file, "text"), expected(["p", "q"]));
    assert_eq!(strings(file, "struct.t"), expected(["p", "q"]));
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
        assert_eq!(
            column_names(&file),
            ["float", "struct.t", "struct.f", "list", "id", "text"],
            "the order in which they first occur"
        );
    }
}

#[test]
fn null_columns_are_appended_and_planned_too() {
    for format in FORMATS {
        let folder = Folder::new();
        let inputs = files(&folder, format, &[full(), sparse()]);
        let file = folder.path("file.tsl");
        convert_with(&inputs[..1], &file, &ConvertOptions::new()).unwrap();
        append_with(&inputs[1..], &file, &AppendOptions::new()).unwrap();
        check(&read(&file), 0, 2);

        let go_on = &mut |_| ControlFlow::Continue(());
        let plan = plan_shards(&inputs, u64::MAX, &ConvertOptions::new(), go_on).unwrap();
        let table = Path::new("table");
        let written =
            convert_rows(&plan.inputs, 0..4, &plan.schema, table, Stream(Vec::new()), &AppendOptions::new(), go_on);
        check(&opened(written.unwrap().sink.0), 0, 2);
    }
}

#[test]
fn columns_that_were_cast_are_filled_by_appends() {
    let folder = Folder::new();
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let floats: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.0]));
    let whole = batch(vec![required("id", ids(0..2)), nullable("n", numbers), nullable("f", floats)]);
    let lacking = batch(vec![required("id", ids(2..3))]);
    let null = batch(vec![required("id", ids(3..4)), nullable("n", nulls(1)), nullable("f", nulls(1))]);
    for (numbers, floats) in [(DType::F32, DType::Bf16), (DType::I8, DType::F16), (DType::Bf16, DType::I32)] {
        for format in FORMATS {
            let inputs = files(&folder, format, &[whole.clone(), lacking.clone(), null.clone()]);
            let (file, options) = (folder.path("file.tsl"), ConvertOptions::new().overwrite(true));
            convert_with(&inputs[..1], &file, &options.casts([("n", numbers), ("f", floats)])).unwrap();
            append_with(&inputs[1..], &file, &AppendOptions::new()).unwrap();
            let file = read(&file);
            assert_eq!(scalars::<i64>(&file, "id"), [0, 1, 2, 3].map(Some));
            for name in ["n", "f"] {
                let mut cursor = file.column(name).unwrap().cursor();
                assert_eq!([0, 1, 2, 3].map(|i| cursor.read(i).unwrap().is_null()), [false, false, true, true]);
            }
        }
    }
}

/// Arrow has no bf16.
#[test]
fn columns_of_bf16_are_filled_by_appends() {
    let folder = Folder::new();
    let id = ColumnSchema::tensor("id", DType::I64, Shape::scalar());
    let shapes = [Shape::scalar(), Shape::fixed(&[2]), Shape::ragged(), Shape::new([Extent::Varying, Extent::Varying])];
    let columns = shapes.into_iter().zip(0..).flat_map(|(shape, i)| {
        let column = |dtype: DType| ColumnSchema::tensor(format!("{dtype}-{i}"), dtype, shape.clone()).nullable();
        [column(DType::Bf16), column(DType::U16)]
    });
    let schema = Schema::new([id].into_iter().chain(columns.collect::<Vec<_>>()));
    let null = schema.columns[1..].iter().map(|column| nullable(&column.name, nulls(1)));
    let null = batch([required("id", ids(1..2))].into_iter().chain(null).collect());
    for format in FORMATS {
        let inputs = files(&folder, format, &[batch(vec![required("id", ids(0..1))]), null.clone()]);
        let writer = Writer::new(Stream(Vec::new()), schema.clone(), &WriterOptions::new()).unwrap();
        let file = folder.file("file.tsl", writer.into_bytes().unwrap());
        append_with(&inputs, &file, &AppendOptions::new()).unwrap();
        let file = read(&file);
        assert_eq!(scalars::<i64>(&file, "id"), [0, 1].map(Some));
        for column in &schema.columns[1..] {
            let mut cursor = file.column(&column.name).unwrap().cursor();
            assert!([0, 1].into_iter().all(|i| cursor.read(i).unwrap().is_null()), "{}", column.name);
        }
    }
}

#[test]
fn inputs_that_lack_too_many_columns_together_are_refused() {
    let folder = Folder::new();
    let one: ArrayRef = Arc::new(Int8Array::from(vec![1]));
    let wide = batch((0..20_000).map(|i| nullable(&i.to_string(), one.clone())).collect());
    let small = files(&folder, "stream", &[batch(vec![nullable("0", one.clone())])]).remove(0);
    let wide = arrow_file(&folder, "wide", &[wide]);
    let inputs: Vec<PathBuf> = [wide].into_iter().chain(vec![small; 250]).collect();
    let error = converted(&folder, &inputs, &ConvertOptions::new()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::BadInput);
    assert!(error.message().contains("251 inputs have 20000 columns in total"), "{error}");
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
        assert!(error.message().contains("column \"b\""), "{error}");
    }
}

/// Different declared types stay different.
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
        // on their own, they make a file without samples
        let file = converted(&folder, &inputs[2..], &ConvertOptions::new()).unwrap();
        assert_eq!((file.sample_count(), file.schema().columns.len()), (0, 6));
    }
}

/// A null of a fixed shape takes as much memory as a value, so they are not all made at once.
#[test]
fn missing_tensors_are_filled_in_small_batches() {
    let folder = Folder::new();
    let size = 100_000;
    let values: ArrayRef = Arc::new(Float64Array::from(vec![1.0; size]));
    let tensors = FixedSizeListArray::new(item(DataType::Float64), size as i32, values, None);
    let one = batch(vec![required("id", ids(0..1)), nullable("tensor", Arc::new(tensors))]);
    // together, the tensors would take 1.6 GB
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
    assert!(seen < 100, "{seen} samples in one batch");
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
    let expected = [Some((vec![0], vec![])), None, Some((vec![1], vec![0.5]))];
    assert_eq!(tensors::<f64>(&file, "a"), expected);
}
