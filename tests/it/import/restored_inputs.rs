//! Tests the restored schema of files that were made from several inputs.

use super::common::*;
use super::restored::{check, exported, formats, only_batch};
use std::fs;
use std::sync::Arc;
use tensilo::export::{ExportFormat, ExportOptions};
use tensilo::import::arrow::array::types::{Int8Type, Int32Type};
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::OffsetBuffer;
use tensilo::import::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use tensilo::import::{AppendOptions, ConvertOptions, write_batches};
use tensilo::{Error, Reader};
use tensilo_testing::Folder;

/// Converts batches, each from a file of its own.
fn convert_all(batches: &[RecordBatch]) -> Reader {
    let folder = Folder::new();
    let input =
        |(i, batch): (usize, &RecordBatch)| arrow_file(&folder, &format!("{i}.arrow"), std::slice::from_ref(batch));
    let inputs: Vec<_> = batches.iter().enumerate().map(input).collect();
    converted(&folder, &inputs, &ConvertOptions::new()).unwrap()
}

fn arrow(file: &Reader) -> Result<RecordBatch, Error> {
    Ok(only_batch(exported(file, ExportFormat::Arrow, ExportOptions::new())?, ExportFormat::Arrow))
}

/// Returns one struct of large texts with these fields.
fn structs(fields: &[(&str, bool, Option<&str>)]) -> RecordBatch {
    let field = |(name, nullable, _): &(&str, bool, Option<&str>)| Field::new(*name, DataType::LargeUtf8, *nullable);
    let array =
        |(_, _, text): &(&str, bool, Option<&str>)| -> ArrayRef { Arc::new(LargeStringArray::from(vec![*text])) };
    let array = StructArray::new(fields.iter().map(field).collect(), fields.iter().map(array).collect(), None);
    batch(vec![(Field::new("s", array.data_type().clone(), false), Arc::new(array))])
}

#[test]
fn struct_fields_are_merged_by_name() {
    let file = convert_all(&[
        structs(&[("a", false, Some("x")), ("b", false, Some("y"))]),
        structs(&[("b", true, None), ("a", false, Some("x"))]),
    ]);
    let found = arrow(&file).unwrap();
    let large = |name, nullable| Field::new(name, DataType::LargeUtf8, nullable);
    let expected = Fields::from(vec![large("a", false), large("b", true)]);
    assert_eq!(*found.schema().field(0).data_type(), DataType::Struct(expected));
    assert!(found.column(0).as_struct().column(1).is_null(1));
    // in the opposite order
    let file = convert_all(&[
        structs(&[("b", false, Some("y")), ("a", false, Some("x"))]),
        structs(&[("a", false, Some("x")), ("b", true, None)]),
    ]);
    let expected = Fields::from(vec![large("b", true), large("a", false)]);
    assert_eq!(*arrow(&file).unwrap().schema().field(0).data_type(), DataType::Struct(expected));
}

/// Returns a batch with a dictionary of these texts.
fn dictionary(texts: &[String], ordered: bool) -> RecordBatch {
    let array: DictionaryArray<Int8Type> = texts.iter().map(|text| Some(text.as_str())).collect();
    let field = Field::new("k", array.data_type().clone(), true).with_dict_is_ordered(ordered);
    batch(vec![(field, Arc::new(array))])
}

fn texts(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("{prefix}{i}")).collect()
}

#[test]
fn dictionaries_of_other_values_get_wider_keys() {
    let file = convert_all(&[dictionary(&texts("a", 100), false), dictionary(&texts("b", 100), false)]);
    let all = [texts("a", 100), texts("b", 100)].concat();
    for format in formats() {
        let found = only_batch(exported(&file, format, ExportOptions::new()).unwrap(), format);
        let found = found.column(0).as_dictionary::<Int32Type>();
        let found: Vec<Option<&str>> = found.downcast_dict::<StringArray>().unwrap().into_iter().collect();
        assert_eq!(found, all.iter().map(|text| Some(text.as_str())).collect::<Vec<_>>());
    }
    // equal values need no wider keys
    let file = convert_all(&[dictionary(&texts("a", 100), true), dictionary(&texts("a", 100), true)]);
    let schema = arrow(&file).unwrap().schema();
    assert_eq!(schema, dictionary(&texts("a", 100), true).schema());
}

#[test]
fn the_order_of_a_dictionary_is_not_claimed_for_appended_values() {
    let named = |names: &[&str]| dictionary(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), true);
    let folder = Folder::new();
    let first = arrow_file(&folder, "a.arrow", &[named(&["low", "high"])]);
    let second = arrow_file(&folder, "b.arrow", &[named(&["low", "mid", "high"])]);
    let path = folder.path("x.tsl");
    convert_with(std::slice::from_ref(&first), &path, &ConvertOptions::new()).unwrap();
    check(&named(&["low", "high"]));
    append_with(&[second], &path, &AppendOptions::new()).unwrap();
    let is_ordered = |file: &Reader| arrow(file).unwrap().schema().field(0).dict_is_ordered();
    assert_eq!(is_ordered(&read(&path)), Some(false));
    // conversion to a single commit
    write_old(&path, &fs::read(&path).unwrap());
    let file = converted(&folder, &[path], &ConvertOptions::new()).unwrap();
    assert_eq!(is_ordered(&file), Some(false));
}

/// Returns the fields of the members of the only column.
fn members(batch: &RecordBatch) -> Vec<FieldRef> {
    match batch.schema().field(0).data_type() {
        DataType::Struct(fields) => fields.to_vec(),
        DataType::List(item) => vec![item.clone()],
        other => panic!("{other}"),
    }
}

#[test]
fn ordered_dictionaries_in_structs_and_lists_come_back_ordered() {
    let batch = dictionary(&texts("a", 2), true);
    let (values, field) = (batch.column(0).clone(), batch.schema().field(0).clone());
    let numbers: ArrayRef = Arc::new(Int8Array::from(vec![1, 2]));
    let fields = Fields::from(vec![Field::new("n", DataType::Int8, false), field.clone()]);
    let structs: ArrayRef = Arc::new(StructArray::new(fields, vec![numbers, values.clone()], None));
    let lists: ArrayRef = Arc::new(ListArray::new(Arc::new(field), OffsetBuffer::from_lengths([2]), values, None));
    for expected in [structs, lists].map(one) {
        let found = arrow(&import(&expected)).unwrap();
        assert_eq!(found, expected);
        let is_ordered = |field: &FieldRef| field.dict_is_ordered();
        assert_eq!(members(&found).last().and_then(is_ordered), Some(true));
    }
}

#[test]
fn an_ordered_dictionary_that_grows_is_not_ordered() {
    let parts = [&["low", "high"][..], &["low", "mid", "high"]]
        .map(|names| dictionary(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), true));
    let sink = tensilo::sink::Stream(Vec::new());
    let file = write_batches(&parts[0].schema(), &parts, sink, &ConvertOptions::new()).unwrap().sink.0;
    let file = opened(file);
    let found = arrow(&file).unwrap();
    assert_eq!(found.schema().field(0).dict_is_ordered(), Some(false));
    let values = found.column(0).as_dictionary::<Int8Type>();
    let values: Vec<Option<&str>> = values.downcast_dict::<StringArray>().unwrap().into_iter().collect();
    assert_eq!(values, ["low", "high", "low", "mid", "high"].map(Some));
}
