//! Tests that lists of texts and of structs come back.

use super::common::*;
use std::collections::HashMap;
use std::sync::Arc;
use tensilo::import::ConvertOptions;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::{NullBuffer, OffsetBuffer};
use tensilo::import::arrow::datatypes::{DataType, Field, Fields};
use tensilo::{Column, ColumnBuffer};

/// The texts of each sample, `None` for a null.
type Texts = Vec<Option<Vec<Option<String>>>>;

fn texts(column: &Column) -> Texts {
    let mut cursor = column.cursor();
    (0..column.sample_count())
        .map(|i| {
            let list = cursor.read_list(i).unwrap();
            let text = |item: tensilo::Sample<'_>| item.as_str().unwrap().map(str::to_owned);
            (!list.is_null()).then(|| list.items().map(|item| text(item.unwrap())).collect())
        })
        .collect()
}

fn of(lists: &[Option<&[Option<&str>]>]) -> Texts {
    let text = |text: &Option<&str>| text.map(str::to_owned);
    lists.iter().map(|list| list.map(|list| list.iter().map(text).collect())).collect()
}

#[test]
fn lists_of_texts_keep_nulls_and_empty_lists_apart() {
    let mut builder = ListBuilder::new(StringBuilder::new());
    builder.append_value([Some("a"), None, Some("")]);
    builder.append_null();
    builder.append_value(Vec::<Option<&str>>::new());
    builder.append_value([None::<&str>]);
    let file = import_with(&[one(Arc::new(builder.finish()))], &ConvertOptions::new()).unwrap();
    let column = file.columns().next().unwrap();
    assert_eq!(column.schema().type_name(), "list<utf8>");
    let expected = of(&[Some(&[Some("a"), None, Some("")]), None, Some(&[]), Some(&[None])]);
    assert_eq!(texts(&column), expected);
}

/// Members under a null list, and members before a slice, are not stored.
#[test]
fn hidden_members_are_left_out() {
    let values = StringArray::from(vec!["before", "hidden", "x", "y", "after"]);
    let nulls = NullBuffer::from(vec![true, false, true, true]);
    let lists = ListArray::new(
        item(DataType::Utf8),
        OffsetBuffer::new(vec![0, 1, 2, 4, 5].into()),
        Arc::new(values),
        Some(nulls),
    );
    let file = import_with(&[one(Arc::new(lists.slice(1, 2)))], &ConvertOptions::new()).unwrap();
    let column = file.columns().next().unwrap();
    assert_eq!(texts(&column), of(&[None, Some(&[Some("x"), Some("y")])]));
    let mut all = ColumnBuffer::new();
    column.cursor().range_into(0..2, &mut all).unwrap();
    assert_eq!(all.bytes(), b"xy");
}

#[test]
fn fields_of_structs_in_lists_are_columns_with_the_same_lists() {
    let fields =
        Fields::from(vec![Field::new("role", DataType::Utf8, true), Field::new("turn", DataType::Int64, true)]);
    let roles = StringArray::from(vec![Some("user"), Some("assistant"), Some("lost")]);
    let turns = Int64Array::from(vec![Some(1), None, Some(3)]);
    let present = NullBuffer::from(vec![true, true, false]);
    let messages = StructArray::new(fields.clone(), vec![Arc::new(roles), Arc::new(turns)], Some(present));
    let lists = ListArray::new(
        item(DataType::Struct(fields)),
        OffsetBuffer::new(vec![0, 2, 2, 3].into()),
        Arc::new(messages),
        None,
    );
    let file = import_with(&[one(Arc::new(lists))], &ConvertOptions::new()).unwrap();
    let names: Vec<_> = file.schema().columns.iter().map(|column| (column.name.clone(), column.type_name())).collect();
    let expected = [("x", "list<struct nulls>"), ("x.role", "list<utf8>"), ("x.turn", "list<i64>")];
    assert_eq!(names, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
    assert_eq!(
        texts(&file.column("x.role").unwrap()),
        of(&[Some(&[Some("user"), Some("assistant")]), Some(&[]), Some(&[None])])
    );
    let mut turns = ColumnBuffer::new();
    file.column("x.turn").unwrap().cursor().range_into(0..3, &mut turns).unwrap();
    assert_eq!(turns.lists()[0].offsets(), [0, 2, 2, 3]);
    assert_eq!((turns.values::<i64>().unwrap(), turns.is_null(1), turns.is_null(2)), (&[1, 0, 0][..], true, true));
}

#[test]
fn a_column_has_the_metadata_of_its_list() {
    let with = |field: Field, pairs: &[(&str, &str)]| {
        let metadata = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        field.with_metadata(metadata.collect::<HashMap<_, _>>())
    };
    let mut builder = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
    builder.append(true);
    let array: ArrayRef = Arc::new(builder.finish());
    let field = with(Field::new("x", array.data_type().clone(), true), &[("unit", "dB")]);
    let file = import(&batch(vec![(field, array)]));
    assert_eq!(column(&file, "x").metadata["unit"], "dB");

    // an item has its own metadata, too; the list's metadata comes first
    let text = with(Field::new("item", DataType::Utf8, true), &[("unit", "V"), ("language", "de")]);
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let array: ArrayRef = Arc::new(ListArray::new(Arc::new(text), OffsetBuffer::from_lengths([1]), texts, None));
    let field = with(Field::new("x", array.data_type().clone(), true), &[("unit", "dB")]);
    let whole = batch(vec![(field, array)]);
    let file = import(&whole);
    assert_eq!(column(&file, "x").metadata["unit"], "dB");
    assert_eq!(column(&file, "x").metadata["language"], "de");
    let found = tensilo::export::batches(&file, None).unwrap().next().unwrap().unwrap();
    assert_eq!(found.schema().fields(), whole.schema().fields());
}
