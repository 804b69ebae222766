//! Tests that dictionaries and runs of structs and lists are stored as their values.

use super::common::*;
use super::restored::{exported, formats, only_batch};
use std::sync::Arc;
use tensilo::export::ExportOptions;
use tensilo::import::arrow::array::types::{Int8Type, Int16Type, Int32Type};
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::{NullBuffer, OffsetBuffer};
use tensilo::import::arrow::datatypes::{DataType, Field, Fields};

/// `{7, "x"}`, null, `{null, ""}`.
fn pairs() -> StructArray {
    let fields =
        Fields::from(vec![Field::new("a", DataType::Int32, true), Field::new("b", DataType::LargeUtf8, false)]);
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![Some(7), Some(0), None])),
        Arc::new(LargeStringArray::from(vec!["x", "", ""])),
    ];
    StructArray::new(fields, arrays, Some(NullBuffer::from(vec![true, false, true])))
}

/// Returns the pairs with these numbers; `None` is a null.
fn rows(numbers: &[Option<usize>]) -> ArrayRef {
    let (pairs, valid) = (pairs(), |i: &Option<usize>| i.filter(|&i| i != 1));
    let number = |i: &Option<usize>| i.filter(|&i| i == 0).map(|_| 7);
    let text = |i: &Option<usize>| if *i == Some(0) { "x" } else { "" };
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(numbers.iter().map(number).collect::<Int32Array>()),
        Arc::new(LargeStringArray::from_iter_values(numbers.iter().map(text))),
    ];
    let nulls: NullBuffer = numbers.iter().map(|i| valid(i).is_some()).collect();
    Arc::new(StructArray::new(pairs.fields().clone(), arrays, Some(nulls)))
}

#[track_caller]
fn check(encoded: ArrayRef, expected: &ArrayRef) {
    let file = import(&one(encoded));
    for format in formats() {
        let found = only_batch(exported(&file, format, ExportOptions::new()).unwrap(), format);
        assert_eq!(found.column(0), expected, "{format:?}");
    }
}

#[test]
fn dictionaries_of_structs() {
    let keys = Int8Array::from(vec![Some(2), Some(0), None, Some(1), Some(0)]);
    let dictionary = DictionaryArray::<Int8Type>::new(keys, Arc::new(pairs()));
    check(Arc::new(dictionary.slice(1, 4)), &rows(&[Some(0), None, Some(1), Some(0)]));
    let outer = DictionaryArray::new(Int16Array::from(vec![1, 3, 0]), Arc::new(dictionary.slice(1, 4)) as ArrayRef);
    check(Arc::new(outer), &rows(&[None, Some(0), Some(0)]));
}

#[test]
fn runs_of_structs() {
    let runs = RunArray::<Int32Type>::try_new(&Int32Array::from(vec![1, 3, 4]), &pairs()).unwrap();
    check(Arc::new(runs.slice(0, 4)), &rows(&[Some(0), Some(1), Some(1), Some(2)]));
}

#[test]
fn dictionaries_of_structs_in_structs_and_lists() {
    let keys = Int16Array::from(vec![Some(2), Some(0), None, Some(1)]);
    let inner: ArrayRef = Arc::new(DictionaryArray::<Int16Type>::new(keys, Arc::new(pairs())));
    let expected = rows(&[Some(2), Some(0), None, Some(1)]);
    let in_struct = |array: &ArrayRef| -> ArrayRef {
        let field = Field::new("p", array.data_type().clone(), true);
        Arc::new(StructArray::from(vec![(Arc::new(field), array.clone())]))
    };
    check(in_struct(&inner), &in_struct(&expected));
    let in_lists = |array: &ArrayRef| -> ArrayRef {
        let offsets = OffsetBuffer::from_lengths([1, 0, 3]);
        Arc::new(ListArray::new(item(array.data_type().clone()), offsets, array.clone(), None))
    };
    check(in_lists(&inner), &in_lists(&expected));
    check(in_lists(&in_struct(&inner)), &in_lists(&in_struct(&expected)));
}

#[test]
fn dictionaries_of_lists() {
    let lists = || vec![Some(vec![Some(1), None]), None, Some(vec![])];
    let values: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists()));
    let keys = Int8Array::from(vec![Some(2), None, Some(0), Some(1)]);
    let expected =
        ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![]), None, Some(vec![Some(1), None]), None]);
    check(Arc::new(DictionaryArray::new(keys, values)), &(Arc::new(expected) as ArrayRef));
}
