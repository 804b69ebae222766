//! Tests what is kept of a source schema that is too long or too deep.

use super::common::*;
use super::restored::{check, exported, only_batch, saved};
use std::sync::Arc;
use tensilo::Reader;
use tensilo::export::{ExportFormat, ExportOptions};
use tensilo::import::arrow::array::types::{Float32Type, Int16Type};
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::datatypes::{DataType, Field, Fields};

fn large(text: &str) -> ArrayRef {
    Arc::new(LargeStringArray::from(vec![text]))
}

/// Exports the only batch to an Arrow file.
fn arrow(file: &Reader) -> RecordBatch {
    only_batch(exported(file, ExportFormat::Arrow, ExportOptions::new()).unwrap(), ExportFormat::Arrow)
}

#[test]
fn long_metadata_of_a_field_comes_back() {
    let long = || [("long", "v".repeat(70_000)), ("short", "s".to_owned())];
    let field = Field::new("large", DataType::LargeUtf8, true).with_metadata(long());
    let plain = Field::new("plain", DataType::Utf8, true).with_metadata(long());
    let lists = ListArray::from_iter_primitive::<Float32Type, _, _>([Some([Some(1.0)])]);
    let list = Field::new("list", lists.data_type().clone(), true).with_metadata(long());
    check(&batch(vec![
        (field, large("a")),
        (plain.clone(), Arc::new(StringArray::from(vec!["a"]))),
        (list, Arc::new(lists)),
    ]));
    // metadata of a column is not stored twice
    let file = import(&batch(vec![(plain, Arc::new(StringArray::from(vec!["a"])))]));
    assert!(saved(&file).unwrap().field(0).metadata().keys().eq(["short"]));
}

/// Returns a large text inside this many structs.
fn nested(structs: usize) -> ArrayRef {
    (0..structs).fold(large("a"), |inner, _| {
        let fields = Fields::from(vec![Field::new("s", inner.data_type().clone(), true)]);
        Arc::new(StructArray::new(fields, vec![inner], None))
    })
}

/// Returns the type inside all structs.
fn innermost(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Struct(fields) => innermost(fields[0].data_type()),
        leaf => leaf,
    }
}

#[test]
fn a_field_that_is_too_deep_leaves_the_others_unchanged() {
    // readers of Arrow files accept no deeper fields
    for structs in 55..61 {
        let deep = nested(structs);
        let file = import(&batch(vec![
            (Field::new("deep", deep.data_type().clone(), true), deep),
            (Field::new("x", DataType::LargeUtf8, true), large("b")),
        ]));
        let found = arrow(&file).schema();
        assert_eq!(*found.field(1).data_type(), DataType::LargeUtf8, "{structs} structs");
        let expected = if structs < 60 { DataType::LargeUtf8 } else { DataType::Utf8 };
        assert_eq!(*innermost(found.field(0).data_type()), expected, "{structs} structs");
    }
}

/// Returns a field with this many bytes of metadata.
fn described(name: String, data_type: DataType, bytes: usize) -> Field {
    Field::new(name, data_type, true).with_metadata([("k", "v".repeat(bytes))])
}

#[test]
fn the_values_of_dictionaries_are_left_out_before_fields() {
    let dictionary = |k: usize| -> ArrayRef {
        let texts: Vec<String> = (0..4000).map(|i| format!("c{k}_{i:06}")).collect();
        Arc::new(texts.iter().map(|text| Some(text.as_str())).collect::<DictionaryArray<Int16Type>>())
    };
    let mut columns: Vec<(Field, ArrayRef)> = (0..160)
        .map(|k| {
            let array = dictionary(k);
            let field = Field::new(format!("k{k}"), array.data_type().clone(), true).with_dict_is_ordered(true);
            (field, array)
        })
        .collect();
    let texts: ArrayRef = Arc::new(LargeStringArray::from(vec!["a"; 4000]));
    columns.push((Field::new("x", DataType::LargeUtf8, true), texts));
    let whole = batch(columns);
    let found = arrow(&import(&whole));
    let types = |batch: &RecordBatch| -> Vec<DataType> {
        batch.schema().fields().iter().map(|field| field.data_type().clone()).collect()
    };
    assert_eq!(types(&found), types(&whole));
    assert_eq!(found.columns(), whole.columns());
    // as many as there is room for
    let ordered = found.schema().fields().iter().filter(|field| field.dict_is_ordered() == Some(true)).count();
    assert!((100..130).contains(&ordered), "{ordered}");
}

#[test]
fn fields_that_are_left_out_are_named() {
    let columns = (0..180).map(|i| (described(format!("x{i}"), DataType::LargeUtf8, 40_000), large("a")));
    let file = import(&batch(columns.collect()));
    let found = arrow(&file).schema();
    let is_restored = |i: usize| *found.field(i).data_type() == DataType::LargeUtf8;
    let restored = (0..180).filter(|i| is_restored(*i)).count();
    assert!((145..165).contains(&restored), "{restored}");
    let dropped = tensilo::import::dropped_metadata(file.schema());
    assert_eq!(dropped.len(), 180 - restored, "{dropped:?}");
    for i in 0..180 {
        assert_eq!(dropped.contains(&format!("ARROW:schema of x{i}")), !is_restored(i), "x{i}: {dropped:?}");
    }
    assert!(exported(&file, ExportFormat::Arrow, ExportOptions::new().stored_types(true)).is_ok());
}
