//! Tests dictionaries, runs and views inside structs and lists, which can decode to much more than
//! they take in a file: they are decoded slice by slice, or refused.

use super::common::*;
use std::sync::Arc;
use tensilo::import::ConvertOptions;
use tensilo::import::arrow::array::types::{Int8Type, Int32Type};
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::{Buffer, OffsetBuffer};
use tensilo::import::arrow::datatypes::{Field, FieldRef};

fn in_struct(name: &str, array: ArrayRef) -> ArrayRef {
    let field: FieldRef = Arc::new(Field::new(name, array.data_type().clone(), true));
    Arc::new(StructArray::from(vec![(field, array)]))
}

/// Returns a list of `length` members for each of `rows` rows.
fn lists_of(length: usize, rows: usize, members: ArrayRef) -> ArrayRef {
    let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(length, rows));
    Arc::new(ListArray::new(item(members.data_type().clone()), offsets, members, None))
}

/// Each slice of a batch needs other members of the lists.
#[test]
fn members_of_lists_are_decoded_for_each_slice() {
    let (rows, length) = (40_000, 3);
    let text = |i: usize| format!("text {}", i % 100);
    let all: Vec<String> = (0..rows * length).map(text).collect();
    let texts: ArrayRef = Arc::new(all.iter().map(|text| Some(text.as_str())).collect::<DictionaryArray<Int8Type>>());
    let runs: RunArray<Int32Type> = all.iter().map(|text| Some(text.as_str())).collect();
    let views: ArrayRef = Arc::new(StringViewArray::from_iter_values(&all));
    for members in [texts, Arc::new(runs), views] {
        for array in [lists_of(length, rows, members.clone()), lists_of(length, rows, in_struct("t", members))] {
            // the first row of a slice is not the first row of the array
            let start = rows / 2;
            for array in [array.clone(), array.slice(start, rows - start)] {
                let file = import(&one(array.clone()));
                let first = rows - array.len();
                let name = &file.schema().columns.last().unwrap().name.clone();
                let mut cursor = file.column(name).unwrap().cursor();
                for row in (0..array.len()).step_by(997) {
                    let found = cursor.read_list(row as u64).unwrap();
                    let found: Vec<String> =
                        found.items().map(|item| item.unwrap().as_str().unwrap().unwrap().to_owned()).collect();
                    let expected: Vec<String> =
                        ((first + row) * length..(first + row + 1) * length).map(text).collect();
                    assert_eq!(found, expected, "{name}, row {row}");
                }
            }
        }
    }
}

/// Tensors with encoded elements: numbers in a dictionary and in runs.
#[test]
fn elements_of_tensors_are_decoded_for_each_slice() {
    let rows = 100_000;
    let number = |i: usize| (i % 50) as i32;
    let values: ArrayRef = Arc::new(Int32Array::from_iter_values(0..50));
    let keys = Int8Array::from_iter_values((0..rows * 2).map(|i| number(i) as i8));
    let dictionary: ArrayRef = Arc::new(DictionaryArray::new(keys, values));
    let fixed: ArrayRef =
        Arc::new(FixedSizeListArray::new(item(dictionary.data_type().clone()), 2, dictionary.clone(), None));
    for array in [lists_of(2, rows, dictionary), fixed] {
        let file = import(&one(array.slice(1, rows - 1)));
        let expected = |row: usize| Some((vec![2], vec![number(2 * row + 2), number(2 * row + 3)]));
        let found = tensors::<i32>(&file, "x");
        assert!((0..rows - 1).all(|row| found[row] == expected(row)));
    }
}

/// Each member fits into memory, but all members of a sample together do not.
#[test]
fn a_sample_that_decodes_to_more_than_a_chunk_is_refused() {
    let long = "x".repeat(10 << 20);
    let count = 1_000_000;
    let keys = Int32Array::from(vec![0; count]);
    let values: ArrayRef = Arc::new(LargeStringArray::from(vec![long.as_str()]));
    let dictionary: ArrayRef = Arc::new(DictionaryArray::new(keys, values));
    let mut views = BinaryViewBuilder::new();
    let block = views.append_block(Buffer::from(long.as_bytes()));
    (0..count).for_each(|_| views.try_append_view(block, 0, long.len() as u32).unwrap());
    let views: ArrayRef = Arc::new(views.finish());
    for members in [dictionary, views] {
        for array in [lists_of(count, 1, members.clone()), lists_of(count, 1, in_struct("t", members))] {
            let error = refused(&[one(array)], &ConvertOptions::new());
            assert!(error.message().contains("the values decode to at least"), "{error}");
            assert_eq!(error.samples(), Some(0..1), "{error}");
        }
    }
}

/// Each row has a view of all members, and outer views span all of these.
#[test]
fn views_of_views_that_decode_to_more_than_a_chunk_are_refused() {
    let views = |count: usize, members: ArrayRef| -> ArrayRef {
        let length = members.len() as i32;
        let (starts, sizes) = (vec![0_i32; count], vec![length; count]);
        let item = item(members.data_type().clone());
        Arc::new(ListViewArray::new(item, starts.into(), sizes.into(), members, None))
    };
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..100_000));
    let array = views(2, views(100_000, numbers.clone()));
    let error = refused(&[one(array)], &ConvertOptions::new());
    assert!(error.message().contains("the values decode to at least"), "{error}");
    // a few views are ordinary lists
    let file = import(&one(views(30, numbers)));
    assert_eq!((file.sample_count(), column(&file, "x").shape.to_string()), (30, "[100000]".to_owned()));
}
