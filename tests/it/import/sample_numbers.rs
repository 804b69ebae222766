//! Tests that errors about members of lists name the sample that contains them.

use super::common::*;
use super::struct_values::*;
use std::sync::Arc;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::datatypes::{DataType, Field};
use tensilo::import::{AppendOptions, ConvertOptions, write_reader};
use tensilo::sink::Stream;
use tensilo_testing::Folder;

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[test]
fn a_null_list_in_a_list_is_named_by_its_sample() {
    let folder = Folder::new();
    let inner = DataType::List(item(DataType::Utf8));
    let required = DataType::List(Arc::new(Field::new("item", inner.clone(), false)));
    let full = List(vec![List(vec![text("a")]), List(vec![])]);
    let first = arrow_file(&folder, "a.arrow", &[batch_of(&required, std::slice::from_ref(&full))]);
    let rows = [full.clone(), full.clone(), List(vec![List(vec![]), Null])];
    let second = arrow_file(&folder, "b.arrow", &[batch_of(&list(inner), &rows)]);
    let file = folder.path("file.tsl");
    convert_over(&[first], &file).unwrap();
    let error = append_with(&[second], &file, &AppendOptions::new()).unwrap_err();
    assert!(error.message().contains("declared non-nullable"), "{error}");
    assert_eq!(error.samples(), Some(3..4), "{error}");
}

/// Writes a tensilo file with the nulls of all structs that may be null.
fn write_native(folder: &Folder, name: &str, data_type: &DataType, rows: &[Value]) -> std::path::PathBuf {
    let table = batch_of(data_type, rows);
    let reader = RecordBatchIterator::new([Ok(table.clone())], table.schema());
    let file = write_reader(reader, Stream(Vec::new()), &ConvertOptions::new()).unwrap().sink.0;
    write_old(&folder.path(name), &file);
    folder.path(name)
}

#[test]
fn a_null_struct_of_a_tensilo_file_is_named_by_its_sample() {
    let folder = Folder::new();
    let full = List(vec![of([Number(1), Null]), of([Number(2), Null])]);
    let input = arrow_file(&folder, "a.arrow", &[batch_of(&list(pair()), std::slice::from_ref(&full))]);
    let file = folder.path("file.tsl");
    convert_over(&[input], &file).unwrap();
    let rows = [full.clone(), List(vec![]), Null, full, List(vec![of([Null, Null]), Null])];
    let native = write_native(&folder, "b.tsl", &list(pair()), &rows);
    let error = append_with(&[native], &file, &AppendOptions::new()).unwrap_err();
    assert!(error.message().contains("null struct"), "{error}");
    assert_eq!(error.samples(), Some(5..6), "{error}");
}

/// The inner struct is null only because the outer one is.
#[test]
fn a_struct_in_a_null_struct_of_a_tensilo_file_is_not_a_null_struct() {
    let folder = Folder::new();
    let outer = structs(vec![("in", pair()), ("n", DataType::Int32)]);
    let full = of([of([Number(1), Null]), Number(2)]);
    for data_type in [outer.clone(), list(outer)] {
        let in_list = |row: Value| if let DataType::List(_) = &data_type { List(vec![full.clone(), row]) } else { row };
        let rows = [in_list(full.clone()), in_list(Null)];
        let file = folder.path("file.tsl");
        let input = arrow_file(&folder, "a.arrow", &[batch_of(&data_type, &rows)]);
        convert_over(&[input], &file).unwrap();
        let native = write_native(&folder, "b.tsl", &data_type, &rows);
        append_with(std::slice::from_ref(&native), &file, &AppendOptions::new()).unwrap();
        assert_eq!(values(&exported_column(&read(&file))), [&rows[..], &rows[..]].concat());

        let rows = [in_list(full.clone()), in_list(Null), in_list(of([Null, Number(3)]))];
        let native = write_native(&folder, "b.tsl", &data_type, &rows);
        let error = append_with(&[native], &file, &AppendOptions::new()).unwrap_err();
        assert!(error.message().contains("null struct"), "{error}");
        assert_eq!(error.samples(), Some(6..7), "{error}");
    }
}

/// The lists of one file differ in length, so its first rows already show a varying shape. The
/// lists of the other file may have null elements.
#[cfg(feature = "parquet")]
#[test]
fn rows_that_a_pass_skips_are_counted() {
    use tensilo::import::Progress;
    use tensilo::import::arrow::array::types::Int32Type;
    let folder = Folder::new();
    let paths = ["a.parquet", "b.parquet"].map(|name| folder.path(name));
    let lists =
        |element| (0..500).map(move |row| Some(vec![Some(row); row as usize % 50].into_iter().chain([element])));
    for (path, element) in paths.iter().zip([Some(1), None]) {
        write_parquet(path, &[one(Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists(element))))]);
    }
    let mut scanned = Vec::new();
    let options = ConvertOptions::new();
    tensilo::import::convert(&paths, &folder.path("out.tsl"), &options, &mut |progress| {
        if let Progress::Scanning { done, .. } = progress {
            scanned.push(done);
        }
        GO_ON
    })
    .unwrap();
    assert!(scanned.len() > 1 && scanned[0] < 500, "{scanned:?}");
    assert!(scanned.iter().skip(1).all(|done| *done > 500), "{scanned:?}");
}
