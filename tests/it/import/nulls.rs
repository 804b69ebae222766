//! Tests that columns of type null come back.

use super::common::*;
use std::sync::Arc;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::{NullBuffer, OffsetBuffer};
use tensilo::import::arrow::datatypes::{DataType, Field, Fields};
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnSchema, DType, Schema, Shape, Writer, WriterOptions};

fn nulls(count: usize) -> ArrayRef {
    Arc::new(NullArray::new(count))
}

/// Returns lists of lengths 2, null, 0 and 1.
fn lists(members: ArrayRef) -> ListArray {
    let present = NullBuffer::from(vec![true, false, true, true]);
    let offsets = OffsetBuffer::new(vec![0, 2, 2, 2, 3].into());
    ListArray::new(item(members.data_type().clone()), offsets, members, Some(present))
}

#[test]
fn a_column_of_nulls_is_a_column_of_null_bools() {
    // a field that is not nullable still has nulls
    for nullable in [true, false] {
        let file = import(&batch(vec![(Field::new("x", DataType::Null, nullable), nulls(3))]));
        let column = column(&file, "x");
        assert_eq!((column.dtype, column.shape.ndim(), column.nullable), (DType::Bool, 0, true));
        assert_eq!(column.metadata["arrow.type"], "null");
        assert_eq!(scalars::<u8>(&file, "x"), [None, None, None]);
        assert_eq!(&exported(&file), &nulls(3));
    }
}

#[test]
fn dictionaries_of_nulls_are_nulls() {
    let keys = Int8Array::from(vec![Some(0), None]);
    let file = import(&one(Arc::new(DictionaryArray::new(keys, nulls(1)))));
    assert_eq!(&exported(&file), &nulls(2));
}

#[test]
fn lists_of_nulls_keep_their_lengths() {
    let list: ArrayRef = Arc::new(lists(nulls(3)));
    let file = import(&one(list.clone()));
    assert_eq!(column(&file, "x").type_name(), "list<bool>");
    assert_eq!(&exported(&file), &list);
    let inside: ArrayRef = Arc::new(lists(Arc::new(lists(nulls(3)).slice(0, 3))));
    assert_eq!(&exported(&import(&one(inside.clone()))), &inside);
    let empty: ArrayRef = Arc::new(lists(nulls(3)).slice(1, 2));
    assert_eq!(&exported(&import(&one(empty.clone()))), &empty);
}

#[test]
fn nulls_in_structs_in_lists_come_back() {
    let fields = Fields::from(vec![Field::new("a", DataType::Null, true), Field::new("b", DataType::Int8, true)]);
    let numbers = Int8Array::from(vec![Some(1), None, Some(3)]);
    let list: ArrayRef = Arc::new(lists(Arc::new(StructArray::new(fields, vec![nulls(3), Arc::new(numbers)], None))));
    let file = import(&one(list.clone()));
    let batch = tensilo::export::batches(&file, None).unwrap().next().unwrap().unwrap();
    assert_eq!(batch.column(0), &list);
}

#[cfg(feature = "parquet")]
#[test]
fn nulls_come_back_through_parquet() {
    for array in [nulls(4), Arc::new(lists(nulls(3)))] {
        assert_eq!(&exported(&through_parquet(&import(&one(array.clone())))), &array);
    }
}

/// The metadata of a file can claim anything.
#[test]
fn values_in_a_column_of_type_null_are_refused() {
    let column = |mut column: ColumnSchema| {
        column.metadata.insert("arrow.type".to_owned(), "null".to_owned());
        column
    };
    let bools = ColumnSchema::tensor("x", DType::Bool, Shape::scalar());
    let written = |column: ColumnSchema| {
        let mut writer = Writer::new(Stream(Vec::new()), Schema::new([column]), &WriterOptions::new()).unwrap();
        writer.push_batch(&[ColumnBatch::from_bytes(DType::Bool, 1, &[], &[1])]).unwrap();
        opened(writer.into_bytes().unwrap())
    };
    let error = tensilo::export::batches(&written(column(bools.clone().nullable())), None).unwrap().next().unwrap();
    assert!(error.unwrap_err().to_string().contains("the type \"null\""));
    assert_eq!(exported(&written(column(bools))).data_type(), &DataType::Boolean, "which cannot be null");
}
