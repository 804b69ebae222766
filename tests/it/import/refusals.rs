//! Tests columns, options and inputs that are refused before anything is written, and the messages.

use super::common::*;
use std::path::Path;
use std::sync::Arc;
use tensilo::ErrorKind;
use tensilo::error::Advice;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::OffsetBuffer;
use tensilo::import::arrow::datatypes::{DataType, Field, Fields, Schema, UnionFields, UnionMode};
use tensilo::import::{ConvertOptions, write_batches};
use tensilo::sink::Stream;
use tensilo_testing::Folder;

fn unstorable() -> Vec<Field> {
    let members = UnionFields::try_new([0], [Field::new("a", DataType::Int32, true)]).unwrap();
    let union = DataType::Union(members, UnionMode::Sparse);
    let pair = Fields::from(vec![Field::new("k", union.clone(), true)]);
    let types = [
        ("union", union.clone()),
        ("digits", DataType::Decimal128(39, 2)),
        ("unions", DataType::List(item(union.clone()))),
        ("pairs", DataType::FixedSizeList(item(union), 2)),
        ("structs", DataType::LargeList(item(DataType::Struct(pair)))),
    ];
    types.into_iter().map(|(name, data_type)| Field::new(name, data_type, true)).collect()
}

#[test]
fn every_column_that_cannot_be_stored_is_named_with_the_flag_that_skips_it() {
    let mut fields = unstorable();
    let names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
    let inside = Fields::from(vec![Field::new("price", DataType::Decimal64(19, 2), true)]);
    fields.push(Field::new("s", DataType::Struct(inside), true));
    fields.push(Field::new("good", DataType::Int8, false));
    let empty = RecordBatch::new_empty(Arc::new(Schema::new(fields)));
    let error = refused(std::slice::from_ref(&empty), &ConvertOptions::new());
    assert_eq!(error.kind(), ErrorKind::BadInput);
    for name in names.iter().map(String::as_str).chain(["s.price"]) {
        assert!(error.message().contains(name), "{name}: {error}");
    }
    assert_eq!(error.advice(), [Advice::SkipColumns]);
    assert!(error.to_string().contains("ConvertOptions::skip") && !error.to_string().contains("--"), "{error}");
    assert!(!error.message().contains("good"));
    let mut skip = names;
    skip.push("s".to_owned());
    let file = import_with(std::slice::from_ref(&empty), &ConvertOptions::new().skip(skip)).unwrap();
    assert_eq!(file.schema().columns.len(), 1);
    let options = ConvertOptions::new().columns(["good"]);
    assert!(import_with(&[empty], &options).is_ok());
}

#[test]
fn names_that_do_not_exist_are_refused_with_those_that_do() {
    let whole = one(Arc::new(Int8Array::from(vec![1])));
    let options = [
        ConvertOptions::new().columns(["y"]),
        ConvertOptions::new().skip(["y"]),
        ConvertOptions::new().shapes([("y", tensilo::Shape::ragged())]),
    ];
    for options in options {
        let error = refused(std::slice::from_ref(&whole), &options);
        assert_eq!(error.kind(), ErrorKind::UnknownColumn);
        assert!(error.message().ends_with("columns: x"), "{error}");
    }
    let error = refused(&[whole], &ConvertOptions::new().skip(["x"]));
    assert_eq!(error.kind(), ErrorKind::BadArgument);
}

fn run(inputs: &[&Path], output: &Path) -> tensilo::Error {
    let inputs: Vec<_> = inputs.iter().map(|path| path.to_path_buf()).collect();
    convert_with(&inputs, output, &ConvertOptions::new()).unwrap_err()
}

#[test]
fn invalid_inputs_leave_nothing_behind() {
    let folder = Folder::new();
    let output = folder.path("out.tsl");
    let absent = folder.path("absent.arrow");
    let error = run(&[&absent], &output);
    assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(absent.as_path())));
    assert_eq!(run(&[], &output).kind(), ErrorKind::BadArgument);
    for (name, bytes) in [("empty", &b""[..]), ("text", b"hello, world, this isn't Arrow"), ("ones", &[0xFF; 100])] {
        let path = folder.path(name);
        std::fs::write(&path, bytes).unwrap();
        let error = run(&[&path], &output);
        assert_eq!((error.kind(), error.path()), (ErrorKind::BadInput, Some(path.as_path())), "{error}");
        std::fs::remove_file(path).unwrap();
    }
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn an_existing_destination_is_not_replaced_unless_overwriting_is_allowed() {
    let folder = Folder::new();
    let output = folder.path("out.tsl");
    std::fs::write(&output, "precious").unwrap();
    let error = run(&[&folder.path("absent")], &output);
    assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(output.as_path())));
    assert_eq!(std::fs::read(&output).unwrap(), b"precious");
}

/// Otherwise their values would be misread.
#[test]
fn batches_that_contradict_the_schema_are_refused() {
    let micro: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![1]));
    let milli: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![1]));
    let decimals = |scale| -> ArrayRef {
        Arc::new(Decimal128Array::from(vec![1, 2, 3]).with_precision_and_scale(10, scale).unwrap())
    };
    let in_struct = |names: [&str; 2]| -> ArrayRef {
        let fields = names.map(|name| Arc::new(Field::new(name, DataType::Int64, true)));
        let values: [ArrayRef; 2] = [1, 2].map(|value| Arc::new(Int64Array::from(vec![value])) as ArrayRef);
        Arc::new(StructArray::from(fields.into_iter().zip(values).collect::<Vec<_>>()))
    };
    let batches = |first: ArrayRef, second: ArrayRef| [one(first), one(second)];
    let named = |name: &str| batch(vec![(Field::new(name, DataType::Int32, true), int(1))]);
    for batches in [
        batches(milli, micro),
        batches(decimals(2), decimals(3)),
        batches(in_struct(["a", "b"]), in_struct(["b", "a"])),
        batches(three_lists(&decimals(2)), three_lists(&decimals(3))),
        [named("x"), named("y")],
    ] {
        let schema = batches[0].schema();
        for batches in [vec![batches[1].clone()], batches.to_vec()] {
            let written = write_batches(&schema, &batches, Stream(Vec::new()), &ConvertOptions::new());
            let error = written.map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BadInput);
            assert!(error.message().contains("in the schema it is"), "{error}");
        }
    }
}

fn int(value: i32) -> ArrayRef {
    Arc::new(Int32Array::from(vec![value]))
}

/// Names of list members, nullability and metadata do not change values.
#[test]
fn batches_may_differ_from_the_schema_if_no_value_changes() {
    let lists = |name: &str, nullable| -> ArrayRef {
        let item = Arc::new(Field::new(name, DataType::Int32, nullable));
        Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([1]), int(7), None))
    };
    let (first, second) = (lists("item", true), lists("element", false));
    let schema = one(first).schema();
    let file = write_batches(&schema, &[one(second)], Stream(Vec::new()), &ConvertOptions::new()).unwrap();
    assert_eq!(tensors::<i32>(&opened(file.sink.0), "x"), [Some((vec![1], vec![7]))]);
}
