//! Fields that have one name, or none, have columns of distinct names, and their own when they are
//! exported.

use super::common::*;
use super::restored::check;
use std::sync::Arc;
use tensilo::import::arrow::array::types::Int32Type;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::OffsetBuffer;
use tensilo::import::arrow::datatypes::{DataType, Field};
use tensilo::import::{AppendOptions, ConvertOptions};
use tensilo_testing::Folder;

fn column(name: &str, array: impl Array + 'static) -> (Field, ArrayRef) {
    (Field::new(name, array.data_type().clone(), true), Arc::new(array))
}

fn numbers(first: i32) -> Int32Array {
    Int32Array::from(vec![first, first + 1])
}

fn names(file: &tensilo::Reader) -> Vec<&str> {
    file.schema().columns.iter().map(|column| column.name.as_str()).collect()
}

/// Columns with the name `a`, and without a name.
fn same() -> RecordBatch {
    batch(vec![
        column("a", numbers(1)),
        column("a", StringArray::from(vec!["x", "y"])),
        column("a#2", numbers(3)),
        column("", numbers(5)),
        column("a", numbers(7)),
    ])
}

#[test]
fn columns_of_one_name() {
    check(&same());
    assert_eq!(names(&import(&same())), ["a", "a#3", "a#2", "#1", "a#4"]);
    let file = import_with(&[same()], &ConvertOptions::new().skip(["a", "#1"])).unwrap();
    assert_eq!(names(&file), ["a#3", "a#2", "a#4"]);
}

#[test]
fn fields_of_one_name_in_structs_and_lists() {
    let field = |name: &str, data_type| Arc::new(Field::new(name, data_type, true));
    let pair = StructArray::from(vec![
        (field("a", DataType::Int32), Arc::new(numbers(1)) as ArrayRef),
        (field("a", DataType::Int32), Arc::new(numbers(3)) as ArrayRef),
        (field("", DataType::Int32), Arc::new(numbers(5)) as ArrayRef),
    ]);
    let lists = ListArray::new(
        item(pair.data_type().clone()),
        OffsetBuffer::from_lengths([0, 2]),
        Arc::new(pair.clone()),
        None,
    );
    let floats = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)]), None]);
    let whole = batch(vec![column("s", pair), column("s", lists), column("s", floats)]);
    check(&whole);
    let file = import(&whole);
    let due = ["s.a", "s.a#2", "s.", "s#2.a", "s#2.a#2", "s#2.", "s#3"];
    assert_eq!(names(&file), due);
}

#[test]
fn files_with_columns_of_one_name_are_appended_and_converted_again() {
    let folder = Folder::new();
    let input = arrow_file(&folder, "a.arrow", &[same()]);
    let (first, second) = (folder.path("first.tsl"), folder.path("second.tsl"));
    convert_with(std::slice::from_ref(&input), &first, &ConvertOptions::new()).unwrap();
    assert_eq!(append_with(&[input], &first, &AppendOptions::new()).unwrap(), 2);
    convert_with(&[first], &second, &ConvertOptions::new()).unwrap();
    let file = read(&second);
    assert_eq!(scalars::<i32>(&file, "a#4"), [7, 8, 7, 8].map(Some));
    let found = file.schema().metadata["arrow.schema"].matches(r#""tensilo.name":"a""#).count();
    assert_eq!(found, 2);
}
