//! Tests fields that share a name or have none: their columns get distinct names, and exports
//! restore the fields' own names.

use super::common::*;
use super::restored::{check, saved};
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

/// Returns columns named `a`, and columns without a name.
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
    assert_eq!(column_names(&import(&same())), ["a", "a#3", "a#2", "#1", "a#4"]);
    let file = import_with(&[same()], &ConvertOptions::new().skip(["a", "#1"])).unwrap();
    assert_eq!(column_names(&file), ["a#3", "a#2", "a#4"]);
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
    let expected = ["s.a", "s.a#2", "s.", "s#2.a", "s#2.a#2", "s#2.", "s#3"];
    assert_eq!(column_names(&file), expected);
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
    let is_renamed = |field: &&Arc<Field>| field.metadata().get("tensilo.name").is_some_and(|name| name == "a");
    assert_eq!(saved(&file).unwrap().fields().iter().filter(is_renamed).count(), 2);
}

/// Returns a struct `a` with a field `b`, and a column `a.b`.
fn dotted() -> RecordBatch {
    let field = Arc::new(Field::new("b", DataType::Int32, true));
    let pair = StructArray::from(vec![(field, Arc::new(numbers(1)) as ArrayRef)]);
    batch(vec![column("a", pair), column("a.b", numbers(3))])
}

#[test]
fn a_column_has_the_name_of_a_field_of_a_struct() {
    check(&dotted());
    let swapped = dotted().project(&[1, 0]).unwrap();
    check(&swapped);
    assert_eq!(column_names(&import(&dotted())), ["a.b", "a.b#2"]);
    for (chosen, expected) in [("a.b", vec![Some(1), Some(2)]), ("a.b#2", vec![Some(3), Some(4)])] {
        let file = import_with(&[dotted()], &ConvertOptions::new().columns([chosen])).unwrap();
        assert_eq!(scalars::<i32>(&file, chosen), expected);
        let file = import_with(&[dotted()], &ConvertOptions::new().skip([chosen])).unwrap();
        assert_eq!(column_names(&file).len(), 1);
        assert!(!column_names(&file).contains(&chosen));
    }
}

fn renamed(whole: &RecordBatch, renames: &[(&str, &str)]) -> tensilo::Result<tensilo::Reader> {
    import_with(std::slice::from_ref(whole), &ConvertOptions::new().renames(renames.iter().copied()))
}

/// Returns the field names of an export, including the fields of structs.
fn exported_names(file: &tensilo::Reader) -> Vec<String> {
    let batch = tensilo::export::batches(file, None).unwrap().next().unwrap().unwrap();
    let name = |field: &Arc<Field>| match field.data_type() {
        DataType::Struct(fields) => {
            let inner: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            format!("{}{{{}}}", field.name(), inner.join(","))
        }
        _ => field.name().clone(),
    };
    batch.schema().fields().iter().map(name).collect()
}

#[test]
fn columns_structs_and_fields_get_other_names() {
    let file = renamed(&dotted(), &[("a.b#2", "c")]).unwrap();
    assert_eq!(
        (column_names(&file), exported_names(&file)),
        (vec!["a.b", "c"], vec!["a{b}".to_owned(), "c".to_owned()])
    );
    let file = renamed(&dotted(), &[("a", "s")]).unwrap();
    assert_eq!(exported_names(&file)[0], "s{b}");
    let file = renamed(&dotted(), &[("a.b", "a.x")]).unwrap();
    assert_eq!(exported_names(&file)[0], "a{x}");
    assert_eq!(scalars::<i32>(&file, "a.x"), [Some(1), Some(2)]);
    for (twice, expected) in [
        ([("a.b", "a.x"), ("a", "s")], "rename only one of them"),
        ([("a.b#2", "x"), ("a.b#2", "y")], "is renamed twice"),
    ] {
        let error = renamed(&dotted(), &twice).map(|_| ()).unwrap_err();
        assert!(error.message().contains(expected), "{error}");
    }
    // a column is not inside another one just because their names start alike
    let large = |text| column("price.usd", LargeStringArray::from(vec![text, text]));
    let flat = batch(vec![column("price", numbers(1)), large("x")]);
    for (renames, expected) in [
        (&[("price", "cost")][..], ["cost", "price.usd"]),
        (&[("price", "cost"), ("price.usd", "usd")], ["cost", "usd"]),
        (&[("price", "price.usd"), ("price.usd", "price")], ["price.usd", "price"]),
    ] {
        let file = renamed(&flat, renames).unwrap();
        assert_eq!(
            (column_names(&file), exported_names(&file)),
            (expected.to_vec(), expected.map(str::to_owned).to_vec())
        );
        let batch = tensilo::export::batches(&file, None).unwrap().next().unwrap().unwrap();
        assert_eq!(batch.column(1), flat.column(1));
    }
    let error = renamed(&batch(vec![large("x")]), &[("price", "cost")]).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("no column"), "{error}");
    // a cast refers to the name in the input, even in a renamed struct
    let options = ConvertOptions::new().renames([("a", "s")]).casts([("a.b", tensilo::DType::I64)]);
    let file = import_with(&[dotted()], &options).unwrap();
    assert_eq!(scalars::<i64>(&file, "s.b"), [Some(1), Some(2)]);
    // two names that are swapped, and types that only the saved schema has
    let whole = batch(vec![column("p", LargeStringArray::from(vec!["x", "y"])), column("q", numbers(1))]);
    let file = renamed(&whole, &[("p", "q"), ("q", "p")]).unwrap();
    assert_eq!(column_names(&file), ["q", "p"]);
    let batch = tensilo::export::batches(&file, None).unwrap().next().unwrap().unwrap();
    assert_eq!(batch.column_by_name("q").unwrap(), whole.column(0));
    // other options refer to the names in the input
    let floats = batch_of_floats();
    let options = ConvertOptions::new().renames([("f", "g")]).casts([("f", tensilo::DType::Bf16)]);
    let file = import_with(&[floats], &options).unwrap();
    assert_eq!((column_names(&file), file.schema().columns[0].dtype), (vec!["g"], tensilo::DType::Bf16));
}

fn batch_of_floats() -> RecordBatch {
    batch(vec![column("f", Float32Array::from(vec![1.0, 2.0]))])
}

#[test]
fn names_that_are_not_allowed_can_be_changed() {
    let whole = batch(vec![column("a\tb", numbers(1)), column("c", numbers(3))]);
    let error = refused(std::slice::from_ref(&whole), &ConvertOptions::new());
    let advice = [tensilo::error::Advice::SkipColumns, tensilo::error::Advice::RenameColumns];
    assert_eq!((error.column(), error.advice()), (Some("a\tb"), &advice[..]), "{error}");
    assert_eq!(column_names(&renamed(&whole, &[("a\tb", "a b")]).unwrap()), ["a b", "c"]);
    for (renames, message) in
        [(("c", "a\tb"), "cannot be stored"), (("a\tb", "c"), "2 columns have this name"), (("d", "e"), "no column")]
    {
        let error = renamed(&whole, &[renames]).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
    let error = renamed(&dotted(), &[("a.b", "c")]).map(|_| ()).unwrap_err();
    assert!(error.message().contains("a field stays in its struct; write a.NAME"), "{error}");
}
