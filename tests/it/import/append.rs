//! Tests appending to a file: the columns must match, and a failed append leaves the file
//! unchanged.

use super::common::{GO_ON, append_with, arrow_file, batch, check_mixed, convert_with, mixed, read};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::import::arrow::array::{
    Array, ArrayRef, FixedSizeListArray, Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, TimestampNanosecondArray,
};
use tensilo::import::arrow::datatypes::{DataType, Field, Float32Type};
use tensilo::import::{AppendOptions, ConvertOptions, append};
use tensilo::{Error, ErrorKind, Profile, WriterOptions};
use tensilo_testing::Folder;

/// Converts a batch to `file.tsl` in the folder.
fn file_of(folder: &Folder, first: &RecordBatch, options: &ConvertOptions) -> PathBuf {
    let input = arrow_file(folder, "first.arrow", std::slice::from_ref(first));
    convert_with(&[input], &folder.path("file.tsl"), options).unwrap();
    folder.path("file.tsl")
}

fn raw() -> AppendOptions {
    AppendOptions::new().writer(WriterOptions::new().profile(Profile::Raw))
}

/// Returns the error of an append that leaves the file unchanged.
fn refused(file: &Path, inputs: &[PathBuf], options: &AppendOptions) -> Error {
    let before = fs::read(file).unwrap();
    let error = append_with(inputs, file, options).expect_err("an input that does not fit");
    assert!(fs::read(file).unwrap() == before, "{error}: the file was changed");
    error
}

#[test]
fn appended_rows_follow_the_existing_ones() {
    let folder = Folder::new();
    let file = file_of(&folder, &mixed(10, 0), &ConvertOptions::new());
    // the columns in another order, in two files of several batches
    let second = arrow_file(
        &folder,
        "b.arrow",
        &[mixed(5, 10), mixed(9, 15)].map(|batch| batch.project(&[3, 1, 0, 2]).unwrap()),
    );
    let third = arrow_file(&folder, "c.arrow", &[mixed(6, 24)]);
    let mut seen = Vec::new();
    let progress = &mut |at| {
        seen.push(at);
        GO_ON
    };
    assert_eq!(append(&[second, third], &file, &raw(), progress).unwrap(), 20);
    assert_eq!(seen.last(), Some(&tensilo::import::Progress::Converting { done: 20, total: Some(20) }));
    let reader = read(&file);
    check_mixed(&reader, 30);
    assert!(reader.is_finished());
    assert_eq!(reader.commit_count(), 2);
    assert_eq!(folder.names(), ["b.arrow", "c.arrow", "file.tsl", "first.arrow"]);
}

#[test]
fn all_differences_of_an_input_are_listed() {
    let folder = Folder::new();
    let file = file_of(&folder, &mixed(10, 0), &ConvertOptions::new());
    let embedding = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>([Some([Some(1.0); 9])], 9);
    let other = batch(vec![
        (Field::new("embedding", embedding.data_type().clone(), true), Arc::new(embedding) as ArrayRef),
        (Field::new("tokens", DataType::Int32, true), Arc::new(Int32Array::from(vec![1])) as ArrayRef),
        (Field::new("text", DataType::Utf8, true), Arc::new(StringArray::from(vec!["a"])) as ArrayRef),
        (Field::new("more", DataType::Int32, true), Arc::new(Int32Array::from(vec![1])) as ArrayRef),
    ]);
    let good = arrow_file(&folder, "good.arrow", &[mixed(5, 10)]);
    let input = arrow_file(&folder, "other.arrow", &[other]);
    let error = refused(&file, &[good.clone(), input.clone()], &raw());
    assert_eq!((error.kind(), error.path()), (ErrorKind::BadInput, Some(input.as_path())));
    let text = error.to_string();
    for part in [
        r#"column "id" is missing"#,
        r#"column "embedding" is f32[9], but f32[8] in the file"#,
        r#"column "tokens" is i32, but i32[*] in the file"#,
        r#"column "more" is not in the file"#,
        "`AppendOptions::skip_extra_columns`",
        "file.tsl",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains(r#""text""#), "{text}");
    let skipping = raw().skip_extra_columns(true);
    assert!(!refused(&file, &[input], &skipping).to_string().contains("more"));
    // additional columns are left out if the caller says so
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1_i64; 5]));
    let (fields, columns) = (mixed(5, 10).schema(), mixed(5, 10));
    let mut all: Vec<(Field, ArrayRef)> =
        fields.fields().iter().map(|field| field.as_ref().clone()).zip(columns.columns().iter().cloned()).collect();
    all.insert(1, (Field::new("more", DataType::Int64, false), ids));
    let wider = arrow_file(&folder, "wider.arrow", &[batch(all)]);
    assert!(refused(&file, std::slice::from_ref(&wider), &raw()).to_string().contains(r#""more" is not in the file"#));
    assert_eq!(append_with(&[wider], &file, &skipping).unwrap(), 5);
    check_mixed(&read(&file), 15);
}

#[test]
fn a_type_with_another_meaning_is_another_type() {
    let folder = Folder::new();
    let column = |array: ArrayRef| batch(vec![(Field::new("at", array.data_type().clone(), false), array)]);
    let micro = column(Arc::new(TimestampMicrosecondArray::from(vec![1, 2])));
    let file = file_of(&folder, &micro, &ConvertOptions::new());
    for other in
        [column(Arc::new(TimestampNanosecondArray::from(vec![1, 2]))), column(Arc::new(Int64Array::from(vec![1, 2])))]
    {
        let input = arrow_file(&folder, "other.arrow", &[other]);
        assert!(refused(&file, &[input], &raw()).to_string().contains("timestamp[us]"));
    }
    let input = arrow_file(&folder, "same.arrow", &[micro]);
    assert_eq!(append_with(&[input], &file, &raw()).unwrap(), 2);
}

#[test]
fn a_column_without_nulls_takes_a_nullable_one_that_has_none() {
    let folder = Folder::new();
    let column = |nullable, values: Vec<Option<i32>>| {
        batch(vec![(Field::new("n", DataType::Int32, nullable), Arc::new(Int32Array::from(values)) as ArrayRef)])
    };
    let file = file_of(&folder, &column(false, vec![Some(1); 3]), &ConvertOptions::new());
    let fine = arrow_file(&folder, "fine.arrow", &[column(true, vec![Some(2); 5])]);
    assert_eq!(append_with(&[fine], &file, &raw()).unwrap(), 5);
    assert!(!read(&file).schema().columns[0].nullable);
    // enough rows before the null that some are on disk when it is read
    let many = column(true, vec![Some(3); 1_000_000]);
    let null = arrow_file(&folder, "null.arrow", &[many, column(true, vec![Some(4), None])]);
    let error = refused(&file, std::slice::from_ref(&null), &raw());
    assert_eq!((error.kind(), error.column(), error.path()), (ErrorKind::BadInput, Some("n"), Some(null.as_path())));
    assert!(error.to_string().contains("row 1000001 of this input"), "{error}");
    assert_eq!(read(&file).sample_count(), 8);
}

#[test]
fn a_column_that_was_rounded_is_rounded_again() {
    let folder = Folder::new();
    let column = |values: &[f32]| {
        batch(vec![(
            Field::new("x", DataType::Float32, false),
            Arc::new(Float32Array::from(values.to_vec())) as ArrayRef,
        )])
    };
    let (first, second) = (column(&[1.0, 1.1, f32::MAX]), column(&[0.3, f32::MAX, 1e-39, 1e-41, 1.001]));
    let bf16 = ConvertOptions::new().bf16(true);
    let file = file_of(&folder, &first, &bf16);
    let input = arrow_file(&folder, "second.arrow", std::slice::from_ref(&second));
    append_with(std::slice::from_ref(&input), &file, &raw()).unwrap();
    let expected = folder.path("both.tsl");
    convert_with(&[folder.path("first.arrow"), input], &expected, &bf16).unwrap();
    let (appended, expected) = (read(&file), read(&expected));
    let cast = appended.column("x").unwrap().facts().cast.unwrap();
    assert_eq!(Some(cast), expected.column("x").unwrap().facts().cast);
    assert_eq!(cast.to_infinite, 2);
    let values = super::common::scalars::<half::bf16>;
    assert_eq!(values(&appended, "x"), values(&expected, "x"));
    // only the type that it was rounded from is rounded
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
    let other = arrow_file(&folder, "f64.arrow", &[batch(vec![(Field::new("x", DataType::Float64, false), doubles)])]);
    let text = refused(&file, &[other], &raw()).to_string();
    assert!(text.contains(r#"column "x" is f64, but f32 (rounded to bf16) in the file"#), "{text}");
}

#[test]
fn an_input_that_is_cut_off_changes_nothing() {
    let folder = Folder::new();
    let file = file_of(&folder, &mixed(10, 0), &ConvertOptions::new());
    let whole = arrow_file(&folder, "whole.arrow", &[mixed(3_000, 10), mixed(3_000, 3_010), mixed(3_000, 6_010)]);
    let bytes = fs::read(&whole).unwrap();
    let cut = folder.path("cut.arrow");
    for end in [0, 20, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&cut, &bytes[..end]).unwrap();
        let error = refused(&file, &[whole.clone(), cut.clone()], &raw());
        assert_eq!(error.path(), Some(cut.as_path()), "{error}");
    }
    let mut damaged = bytes.clone();
    let at = bytes.len() / 2;
    damaged[at..at + 4_000].fill(0xFF);
    fs::write(&cut, &damaged).unwrap();
    let _ = append_with(std::slice::from_ref(&cut), &file, &raw());
    read(&file);
}
