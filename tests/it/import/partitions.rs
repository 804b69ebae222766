//! Tests folders whose names become columns, as in `key=value`.

use super::common::*;
use super::folders::{Tree, numbered, numbers};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tensilo::import::arrow::array::{ArrayRef, Date32Array, Int32Array, ListBuilder, StringArray, StringBuilder};
use tensilo::import::arrow::datatypes::Field;
use tensilo::import::{AppendOptions, ConvertOptions, convert_rows, plan_shards};
use tensilo::sink::Stream;
use tensilo::{DType, ErrorKind, Reader};

fn texts_of(file: &Reader, name: &str) -> Vec<Option<String>> {
    assert_eq!(column(file, name).dtype, DType::Utf8);
    strings(file, name).into_iter().map(|text| text.map(|text| String::from_utf8(text).unwrap())).collect()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

const HIVE: [&str; 3] = [
    "year=2023/lang=de/a.parquet",
    "year=2024/lang=en%2FUS/a.parquet",
    "year=-7/lang=__HIVE_DEFAULT_PARTITION__/a.parquet",
];

#[test]
fn hive_folders_become_columns_after_the_columns_of_the_files() {
    let tree = Tree::new(&HIVE);
    let check = |file: &Reader| {
        let names: Vec<&str> = file.schema().columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["n", "year", "lang"]);
        assert_eq!(numbers(file), [2, 0, 1]);
        assert_eq!(scalars::<i64>(file, "year"), [Some(-7), Some(2023), Some(2024)]);
        assert_eq!(texts_of(file, "lang"), [None, Some("de".to_owned()), Some("en/US".to_owned())]);
        assert!(!column(file, "year").nullable && column(file, "lang").nullable);
        assert!(column(file, "lang").metadata.is_empty());
    };
    check(&tree.convert(""));
    check(&tree.convert("*/*/*.parquet"));
    check(&tree.convert("year=*/lang=*"));
    // the files as a shell expands the pattern
    let files: Vec<&str> = [HIVE[2], HIVE[0], HIVE[1]].to_vec();
    check(&tree.convert_with(&files, &ConvertOptions::new()).unwrap());
    check(&tree.convert_with(&["year=-7", "year=2023", "year=2024"], &ConvertOptions::new()).unwrap());
}

#[test]
fn hive_columns_are_integers_only_if_all_are() {
    for (folders, are_integers) in [
        (["n=1", "n=-9223372036854775808"], true),
        (["n=1", "n=__HIVE_DEFAULT_PARTITION__"], true),
        (["n=1", "n=01"], false),
        (["n=1", "n=+1"], false),
        (["n=1", "n=9223372036854775808"], false),
        (["n=1", "n="], false),
        (["n=1", "n=1.0"], false),
        (["n=__HIVE_DEFAULT_PARTITION__", "n=__HIVE_DEFAULT_PARTITION__"], false),
    ] {
        let tree = Tree::new(&[]);
        for folder in folders {
            tree.add(&format!("{folder}/x.parquet"), &one(Arc::new(Int32Array::from(vec![1]))));
        }
        let dtype = if are_integers { DType::I64 } else { DType::Utf8 };
        assert_eq!(column(&tree.convert(""), "n").dtype, dtype, "{folders:?}");
    }
}

#[test]
fn hive_columns_are_columns_like_others() {
    let tree = Tree::new(&HIVE);
    let only = |columns: &[&str]| ConvertOptions::new().columns(columns.iter().copied());
    let names = |file: &Reader| file.schema().columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
    for columns in [&["lang", "n"][..], &["year"]] {
        let file = tree.convert_with(&[""], &only(columns)).unwrap();
        assert_eq!((names(&file), file.sample_count()), (columns.iter().map(|&name| name.to_owned()).collect(), 3));
    }
    let skip = ConvertOptions::new().skip(["lang"]);
    assert_eq!(names(&tree.convert_with(&[""], &skip).unwrap()), ["n", "year"]);
    assert_eq!(scalars::<i64>(&Tree::new(&["_a=1/x.parquet"]).convert(""), "_a"), [Some(1)]);
    // Arrow files without any requested column of their own
    let arrow = Tree::new(&["a=1/x.arrow"]);
    let file = arrow.convert_with(&[""], &only(&["a"])).unwrap();
    assert_eq!(scalars::<i64>(&file, "a"), [Some(1)]);
}

#[test]
fn inputs_of_other_keys_are_refused_with_both_names() {
    let tree = Tree::new(&["a=1/x.parquet", "b=1/y.parquet", "z.parquet"]);
    let error = tree.refused(&[""]);
    assert_eq!((error.kind(), error.path()), (ErrorKind::BadInput, Some(tree.path("b=1/y.parquet").as_path())));
    for part in ["x.parquet", "\"a\" is missing", "extra column \"b\"", "z.parquet"] {
        assert!(error.message().contains(part), "{part}: {error}");
    }
    assert_eq!(error.advice(), [tensilo::error::Advice::SkipColumns]);
    let skip = ConvertOptions::new().skip(["a", "b"]);
    assert_eq!(numbers(&tree.convert_with(&[""], &skip).unwrap()), [0, 1, 2]);
    let twice = Tree::new(&["a=1/a=2/x.parquet"]).refused(&[""]);
    assert!(twice.message().contains("2 columns"), "{twice}");
}

/// Writes files with a column of the same name as the folder.
fn with_own(folder: &str, own: ArrayRef) -> Tree {
    let tree = Tree::new(&[]);
    tree.add(&format!("{folder}/x.parquet"), &batch(vec![(Field::new("key", own.data_type().clone(), true), own)]));
    tree
}

/// Returns a list of one text.
fn list_of_one(text: &str) -> ArrayRef {
    let mut builder = ListBuilder::new(StringBuilder::new());
    builder.append_value([Some(text)]);
    Arc::new(builder.finish())
}

#[test]
fn a_column_of_the_file_is_used_if_it_agrees_with_the_folder() {
    let agreeing: [(&str, ArrayRef, DType); 4] = [
        ("key=07", Arc::new(Int32Array::from(vec![7, 7])), DType::I32),
        ("key=7", Arc::new(StringArray::from(vec!["7"])), DType::Utf8),
        ("key=2024-02-29", Arc::new(Date32Array::from(vec![19782])), DType::I64),
        ("key=__HIVE_DEFAULT_PARTITION__", Arc::new(Int32Array::from(vec![None])), DType::I32),
    ];
    for (folder, own, dtype) in agreeing {
        let file = with_own(folder, own).convert("");
        assert_eq!((file.schema().columns.len(), column(&file, "key").dtype), (1, dtype), "{folder}");
    }
    let disagreeing: [(&str, ArrayRef, &str); 5] = [
        (
            "key=7",
            Arc::new(Int32Array::from_iter_values((0..300).map(|row| if row == 299 { 8 } else { 7 }))),
            "row 299 has 8",
        ),
        ("key=7", Arc::new(StringArray::from(vec!["07"])), "row 0 has 07"),
        ("key=7", Arc::new(Int32Array::from(vec![Some(7), None])), "row 1 has a null"),
        ("key=__HIVE_DEFAULT_PARTITION__", Arc::new(Int32Array::from(vec![0])), "row 0 has 0"),
        ("key=7", list_of_one("7"), "its samples are tensors or lists"),
    ];
    for (folder, own, part) in disagreeing {
        let tree = with_own(folder, own);
        let error = tree.refused(&[""]);
        assert_eq!((error.kind(), error.column()), (ErrorKind::BadInput, Some("key")));
        assert_eq!(error.path(), Some(tree.path(&format!("{folder}/x.parquet")).as_path()));
        assert!(error.message().contains(part), "{part}: {error}");
    }
}

#[test]
fn errors_count_rows_from_the_start_of_the_input() {
    let rows = (0..300).map(|row| if row == 299 { 8 } else { 7 });
    let tree = with_own("key=7", Arc::new(Int32Array::from_iter_values(rows)));
    let options = ConvertOptions::new();
    let plan = plan_shards(&[tree.path("")], 400, &options, &mut |_| GO_ON).unwrap();
    let (rows, options) = (plan.shards.last().unwrap().rows.clone(), AppendOptions::new());
    assert!(rows.start > 150 && rows.end == 300, "{rows:?}");
    let (table, sink) = (Path::new("table"), Stream(Vec::new()));
    let error = convert_rows(&plan.inputs, rows, &plan.schema, table, sink, &options, &mut |_| GO_ON);
    let error = error.map(|_| ()).unwrap_err();
    assert!(error.message().contains("row 299 has 8"), "{error}");
}

#[test]
fn the_next_partition_is_appended() {
    let tree = Tree::new(&["run=a/x.parquet", "run=7/x.parquet"]);
    let file = tree.0.path("file.tsl");
    convert_with(&[tree.path("run=a")], &file, &ConvertOptions::new()).unwrap();
    // on its own, the name would be an integer
    append_with(&[tree.path("run=7")], &file, &AppendOptions::new()).unwrap();
    let read = read(&file);
    assert_eq!(texts_of(&read, "run"), some(&["a", "7"]));
    let other = Tree::new(&["x.parquet"]);
    let error = append_with(&[other.path("")], &file, &AppendOptions::new()).unwrap_err();
    assert!(error.message().contains("\"run\" is missing"), "{error}");
}

#[test]
fn folder_names_distinguish_files_of_equal_inputs() {
    let id = |folder: &str| {
        let tree = Tree::new(&[&format!("{folder}/x.parquet")]);
        let skip = vec!["a".to_owned()];
        tree.convert_with(&[""], &ConvertOptions::new().skip(skip)).unwrap().file_id()
    };
    assert_eq!(id("a=1"), id("a=1"));
    assert_ne!(id("a=1"), id("a=2"));
}

#[cfg(target_os = "linux")] // other systems refuse such names
#[test]
fn a_folder_that_is_not_utf_8_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let tree = Tree::new(&[]);
    let folder = tree.path("").join(std::ffi::OsStr::from_bytes(b"a=\xFF"));
    fs::create_dir_all(&folder).unwrap();
    write_parquet(folder.join("x.parquet"), &[numbered(0)]);
    let error = tree.refused(&[""]);
    assert_eq!((error.kind(), error.path()), (ErrorKind::BadInput, Some(folder.join("x.parquet").as_path())));
}
