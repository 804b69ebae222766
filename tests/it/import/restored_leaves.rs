//! Tests that values that cannot come back in their type leave the types around them unchanged.

use super::common::*;
use super::restored::{check, exported, only_batch};
use std::collections::HashMap;
use std::sync::Arc;
use tensilo::Reader;
use tensilo::export::{ExportFormat, ExportOptions};
use tensilo::import::ConvertOptions;
use tensilo::import::arrow::array::types::Int8Type;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::{NullBuffer, OffsetBuffer};
use tensilo::import::arrow::datatypes::{DataType, Field, FieldRef, Fields};

#[track_caller]
fn check_comes_as(file: &Reader, expected: &RecordBatch) {
    let found = arrow(file, ExportOptions::new());
    assert_eq!(found.schema(), expected.schema());
    assert_eq!(&found, expected);
}

fn arrow(file: &Reader, options: ExportOptions<'_>) -> RecordBatch {
    only_batch(exported(file, ExportFormat::Arrow, options).unwrap(), ExportFormat::Arrow)
}

/// Returns two values, and a dictionary of them.
fn bools() -> (ArrayRef, ArrayRef) {
    let values: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
    (values.clone(), Arc::new(DictionaryArray::<Int8Type>::new(vec![0, 1].into(), values)))
}

fn field(name: &str, array: &ArrayRef, nullable: bool) -> FieldRef {
    let metadata = HashMap::from([("of".to_owned(), name.to_owned())]);
    Arc::new(Field::new(name, array.data_type().clone(), nullable).with_metadata(metadata))
}

/// Returns structs of these values and of others that can always be restored.
fn around(values: ArrayRef) -> RecordBatch {
    let texts: ArrayRef = Arc::new(LargeStringArray::from(vec!["a", "b"]));
    let item = Arc::new(Field::new("pixel", DataType::Float32, false));
    let floats: ArrayRef = Arc::new(FixedSizeListArray::new(item, 2, Arc::new(Float32Array::from(vec![1.0; 4])), None));
    let fields = [field("d", &values, false), field("s", &texts, true), field("v", &floats, false)];
    one(Arc::new(StructArray::new(Fields::from(fields.to_vec()), vec![values, texts, floats], None)))
}

fn in_large_lists(values: ArrayRef) -> RecordBatch {
    let item = field("member", &values, true);
    one(Arc::new(LargeListArray::new(item, OffsetBuffer::from_lengths([1, 1]), values, None)))
}

fn in_maps(values: ArrayRef) -> RecordBatch {
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let fields = Fields::from(vec![field("key", &keys, false), field("value", &values, true)]);
    let entries = StructArray::new(fields, vec![keys, values], None);
    let entries_field = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    one(Arc::new(MapArray::new(entries_field, OffsetBuffer::from_lengths([1, 1]), entries, None, false)))
}

#[test]
fn dictionaries_that_are_decoded_leave_the_rest_of_their_field() {
    let (values, dictionary) = bools();
    let no_bytes: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter([b"", b""].into_iter()).unwrap());
    let keys: Int8Array = vec![0, 1].into();
    let of_no_bytes: ArrayRef = Arc::new(DictionaryArray::new(keys, no_bytes.clone()));
    for (values, dictionary) in [(values, dictionary), (no_bytes, of_no_bytes)] {
        for make in [around, in_large_lists, in_maps] {
            check_comes_as(&import(&make(dictionary.clone())), &make(values.clone()));
        }
    }
}

#[test]
fn halves_that_were_rounded_leave_the_rest_of_their_field() {
    let halves: ArrayRef = Arc::new(Float16Array::from(vec![half::f16::ONE, half::f16::ZERO]));
    let singles: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 0.0]));
    for make in [around, in_large_lists, in_maps] {
        let file = import_with(&[make(halves.clone())], &ConvertOptions::new().bf16(true)).unwrap();
        let found = arrow(&file, ExportOptions::new());
        let expected = make(singles.clone());
        // their metadata also describes the cast
        assert_eq!(names_and_types(found.column(0).data_type()), names_and_types(expected.column(0).data_type()));
    }
}

/// Returns a type without the metadata of its fields.
fn names_and_types(data_type: &DataType) -> DataType {
    let plain =
        |field: &FieldRef| Arc::new(Field::new(field.name(), names_and_types(field.data_type()), field.is_nullable()));
    match data_type {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain).collect()),
        DataType::LargeList(item) => DataType::LargeList(plain(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(plain(item), *length),
        DataType::Map(entries, sorted) => DataType::Map(plain(entries), *sorted),
        other => other.clone(),
    }
}

/// Returns structs with a list of 0 bools, whose column has no path.
fn of_no_bools(nulls: Option<NullBuffer>) -> ArrayRef {
    let numbers: ArrayRef = Arc::new(Int8Array::from(vec![1, 2, 3]));
    let item = Arc::new(Field::new("item", DataType::Boolean, true));
    let none = BooleanArray::from(Vec::<bool>::new());
    let bools = FixedSizeListArray::try_new_with_length(item, 0, Arc::new(none), nulls.clone(), 3).unwrap();
    let bools: ArrayRef = Arc::new(bools);
    let fields = Fields::from(vec![field("e", &numbers, true), field("b.c", &bools, true)]);
    Arc::new(StructArray::new(fields, vec![numbers, bools], nulls))
}

#[test]
fn lists_of_0_bools_come_back_into_their_struct() {
    let some_null = NullBuffer::from(vec![true, false, true]);
    for nulls in [None, Some(some_null)] {
        let structs = of_no_bools(nulls);
        check(&one(structs.clone()));
        let item = field("item", &structs, true);
        let lists = LargeListArray::new(item, OffsetBuffer::from_lengths([2, 0, 1]), structs.clone(), None);
        check(&one(Arc::new(lists)));
    }
}

#[test]
fn the_name_of_a_struct_selects_its_lists_of_0_bools_too() {
    let whole = one(of_no_bools(None));
    let file = import(&whole);
    let names = [whole.schema().field(0).name().clone()];
    assert_eq!(arrow(&file, ExportOptions::new().columns(&names)), whole);
}
