//! Tests Parquet files whose statistics deny existing nulls, as some writers make them.

use super::common::*;
use super::struct_values::*;
use super::thrift::set;
use std::path::PathBuf;
use std::sync::Arc;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::datatypes::{DataType, Field, Int32Type};
use tensilo::import::{AppendOptions, ConvertOptions, Progress, convert, convert_into};
use tensilo::sink::Stream;
use tensilo_testing::Folder;

/// Returns the path of a field in the footer: row groups, the first, columns, this one, its
/// metadata.
fn of_column(column: i64, fields: &[i64]) -> Vec<i64> {
    [&[4, 0, 1, column, 3], fields].concat()
}

/// Writes a Parquet file whose footer has other values in these fields.
fn write_patched(folder: &Folder, name: &str, table: &RecordBatch, patches: &[(Vec<i64>, i64)]) -> PathBuf {
    let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), table.schema(), None).unwrap();
    writer.write(table).unwrap();
    let bytes = writer.into_inner().unwrap();
    let end = bytes.len() - 8;
    let start = end - u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize;
    let mut footer = bytes[start..end].to_vec();
    patches.iter().for_each(|(path, value)| set(&mut footer, 0, path, *value));
    let length = (footer.len() as u32).to_le_bytes();
    write_old(&folder.path(name), &[&bytes[..start], &footer, &length, b"PAR1"].concat());
    folder.path(name)
}

const NULL_COUNT: [i64; 2] = [12, 3];
const LEVELS: [i64; 2] = [16, 3];

/// Writes a file that claims that its pairs and their fields are never null.
fn pairs(folder: &Folder, name: &str, rows: &[Value]) -> PathBuf {
    let patches = [0, 1].map(|column| (of_column(column, &NULL_COUNT), 0));
    write_patched(folder, name, &batch_of(&pair(), rows), &patches)
}

fn rows() -> Vec<Value> {
    (0..30).map(|i| if i == 25 { Null } else { of([Number(i), Number(-i)]) }).collect()
}

#[test]
fn a_null_struct_is_preserved_although_statistics_deny_it() {
    let folder = Folder::new();
    let input = pairs(&folder, "x.parquet", &rows());
    for threads in [1, 3] {
        let options = ConvertOptions::new().writer(tensilo::WriterOptions::new().threads(threads));
        let file = converted(&folder, std::slice::from_ref(&input), &options).unwrap();
        assert_eq!(values(&exported_column(&file)), rows());
        let into = |options| convert_into(std::slice::from_ref(&input), Stream(Vec::new()), options, &mut |_| GO_ON);
        let error = into(&options).map(|_| ()).unwrap_err();
        assert_eq!(error.advice(), [tensilo::error::Advice::IgnoreStatistics]);
        let file = into(&options.clone().ignore_statistics(true)).unwrap().sink.0;
        assert_eq!(values(&exported_column(&opened(file))), rows());
    }
    // next to files whose statistics are true
    let full: Vec<Value> = (0..9).map(|i| of([Number(i), Null])).collect();
    let other = folder.path("full.parquet");
    write_parquet(&other, &[batch_of(&pair(), &full)]);
    let file = converted(&folder, &[other, input], &ConvertOptions::new()).unwrap();
    assert_eq!(values(&exported_column(&file)), [full, rows()].concat());
}

#[test]
fn a_null_struct_in_lists_is_preserved_although_statistics_deny_it() {
    let folder = Folder::new();
    let rows: Vec<Value> = rows().into_iter().map(|row| List(vec![row])).collect();
    let patches = [0, 1].map(|column| (of_column(column, &NULL_COUNT), 0));
    let input = write_patched(&folder, "x.parquet", &batch_of(&list(pair()), &rows), &patches);
    let file = converted(&folder, &[input], &ConvertOptions::new()).unwrap();
    assert_eq!(values(&exported_column(&file)), rows);
}

#[test]
fn a_null_struct_that_statistics_deny_is_not_appended_to_a_file_without_nulls() {
    let folder = Folder::new();
    let some = of([Number(1), Number(2)]);
    let (full, input) = (folder.path("full.parquet"), pairs(&folder, "x.parquet", &rows()));
    write_parquet(&full, &[batch_of(&pair(), std::slice::from_ref(&some))]);
    let file = folder.path("file.tsl");
    convert_over(&[full], &file).unwrap();
    let error = append_with(&[input], &file, &AppendOptions::new()).unwrap_err();
    assert!(error.message().contains("null struct"), "{error}");
    assert_eq!(error.samples(), Some(26..27));
    assert_eq!(values(&exported_column(&read(&file))), [some]);
}

#[test]
fn null_elements_are_preserved_although_statistics_deny_them() {
    let folder = Folder::new();
    let lists = (0..60).map(|i| Some((0..i % 5).map(|j| (i != 59 || j != 2).then_some(j)).collect::<Vec<_>>()));
    let array: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
    // the definition level of a null element
    let level = [&LEVELS[..], &[2]].concat();
    let patches = [(of_column(0, &level), 0), (of_column(0, &NULL_COUNT), 0)];
    let input = write_patched(&folder, "x.parquet", &one(array.clone()), &patches);
    let file = converted(&folder, &[input], &ConvertOptions::new()).unwrap();
    assert_eq!(column(&file, "x").type_name(), "list<i32>");
    assert_eq!(values(&exported_column(&file)), values(&array));
    assert_eq!(exported_column(&file).data_type(), &list(DataType::Int32));
}

/// Returns lists of different lengths in lists, about which no statistics are wrong.
fn jagged(count: i32) -> Vec<Value> {
    let inner = |i: i32| List((0..i).map(Number).collect());
    (0..count).map(|i| List(vec![inner(1), inner(i % 3)])).collect()
}

#[test]
fn a_null_struct_beside_jagged_lists_is_preserved_although_statistics_deny_it() {
    let folder = Folder::new();
    let (numbers, pairs) = (list(list(DataType::Int32)), rows());
    let table = batch(vec![
        (Field::new("x", pair(), true), array(&pair(), &pairs)),
        (Field::new("y", numbers.clone(), true), array(&numbers, &jagged(30))),
    ]);
    let patches = [0, 1].map(|column| (of_column(column, &NULL_COUNT), 0));
    let input = write_patched(&folder, "x.parquet", &table, &patches);
    let file = converted(&folder, &[input], &ConvertOptions::new()).unwrap();
    let exported = tensilo::export::batches(&file, None).unwrap().next().unwrap().unwrap();
    assert_eq!((values(exported.column(0)), values(exported.column(1))), (pairs, jagged(30)));
}

#[test]
fn a_cancelled_conversion_does_not_start_again() {
    let folder = Folder::new();
    let input = folder.path("x.parquet");
    let numbers = list(list(DataType::Int32));
    write_parquet(&input, &[batch_of(&numbers, &jagged(30))]);
    let mut calls = 0;
    let mut cancel = |progress: Progress| {
        calls += 1;
        if matches!(progress, Progress::Scanning { .. }) { GO_ON } else { std::ops::ControlFlow::Break(()) }
    };
    let error = convert(&[input], &folder.path("x.tsl"), &ConvertOptions::new(), &mut cancel).unwrap_err();
    assert_eq!(error.kind(), tensilo::ErrorKind::Cancelled);
    let scanned = calls;
    assert!(scanned < 5, "{scanned}");
}
