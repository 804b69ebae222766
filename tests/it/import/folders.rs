//! Tests inputs that are folders or patterns: which files are read, in what order, and which
//! folders are refused.

use super::common::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::import::ConvertOptions;
use tensilo::import::arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use tensilo::import::arrow::datatypes::{DataType, Field};
use tensilo::{ErrorKind, Reader};
use tensilo_testing::Folder;

/// Returns one row, whose number identifies the file.
pub fn numbered(number: i64) -> RecordBatch {
    batch(vec![(Field::new("n", DataType::Int64, false), Arc::new(Int64Array::from(vec![number])) as ArrayRef)])
}

pub struct Tree(pub Folder);

impl Tree {
    /// Writes Parquet files, numbered from 0. Files whose names end in `.arrow` are Arrow files.
    pub fn new(paths: &[&str]) -> Self {
        let tree = Self(Folder::new());
        paths.iter().zip(0..).for_each(|(path, number)| tree.add(path, &numbered(number)));
        tree
    }

    pub fn add(&self, path: &str, rows: &RecordBatch) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match path.extension().is_some_and(|extension| extension == "parquet") {
            true => write_parquet(path, std::slice::from_ref(rows)),
            false => write_arrow(path, std::slice::from_ref(rows)),
        }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.0.path("data").join(path)
    }

    pub fn convert_with(&self, inputs: &[&str], options: &ConvertOptions) -> tensilo::Result<Reader> {
        let inputs: Vec<PathBuf> = inputs.iter().map(|input| self.path(input)).collect();
        converted(&self.0, &inputs, options)
    }

    pub fn convert(&self, input: &str) -> Reader {
        self.convert_with(&[input], &ConvertOptions::new()).unwrap()
    }

    pub fn refused(&self, inputs: &[&str]) -> tensilo::Error {
        match self.convert_with(inputs, &ConvertOptions::new()) {
            Ok(_) => panic!("it was not refused"),
            Err(error) => error,
        }
    }
}

/// Returns the numbers of the files that were read, in order.
pub fn numbers(file: &Reader) -> Vec<i64> {
    scalars::<i64>(file, "n").into_iter().map(Option::unwrap).collect()
}

#[test]
fn folders_are_searched_recursively_in_byte_order_of_components() {
    let tree = Tree::new(&[
        "b.parquet",
        "a/z.parquet",
        "a-b/x.parquet", // '-' is less than '/'
        "a/b/c/d.parquet",
        "A.parquet",
        "parts.parquet/part-0.parquet",
        ".hidden.parquet",
        "_temporary/x.parquet",
        ".git/x.parquet",
        "a/_SUCCESS.parquet",
    ]);
    fs::write(tree.path("a/notes.txt"), "no data").unwrap();
    assert_eq!(numbers(&tree.convert("")), [4, 3, 1, 2, 0, 5]);
    // a pattern works as in a shell; the content of a matching folder is read once
    assert_eq!(numbers(&tree.convert("a*")), [3, 1, 2]);
    assert_eq!(numbers(&tree.convert("**/*.parquet")), [4, 7, 9, 3, 1, 2, 0, 5]);
    assert_eq!(numbers(&tree.convert("*.parquet")), [4, 0, 5]);
}

#[test]
fn arrow_files_are_read_where_there_are_no_parquet_files() {
    let tree = Tree::new(&["b/y.feather", "b/x.arrow", "a.arrow", ".c.arrow"]);
    assert_eq!(numbers(&tree.convert("")), [2, 1, 0]);
    tree.add("b/z.parquet", &numbered(9));
    let error = tree.refused(&[""]);
    assert_eq!((error.kind(), error.path()), (ErrorKind::BadInput, Some(tree.path("").as_path())));
    assert!(error.message().contains("*.parquet"), "{error}");
    let empty = Tree::new(&["a.txt"]);
    let error = empty.refused(&[""]);
    assert_eq!((error.kind(), error.path()), (ErrorKind::BadInput, Some(empty.path("").as_path())));
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_loops_end() {
    use std::os::unix::fs::symlink;
    let tree = Tree::new(&["b/x.parquet", "c/y.parquet"]);
    let outside = Tree::new(&["deep/z.parquet"]);
    symlink(".", tree.path("again")).unwrap();
    symlink("..", tree.path("b/up")).unwrap();
    symlink("c", tree.path("a-latest")).unwrap(); // read by its own name
    symlink(outside.path(""), tree.path("d")).unwrap();
    symlink(outside.path("deep"), tree.path("e")).unwrap(); // the same files again
    symlink("nowhere", tree.path("dangling")).unwrap();
    assert_eq!(numbers(&tree.convert("")), [0, 1, 0]);
    // missing data is not left out silently
    symlink("nowhere", tree.path("z.parquet")).unwrap();
    let error = tree.refused(&[""]);
    assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(tree.path("z.parquet").as_path())));
}

#[test]
fn a_deep_tree_does_not_exhaust_the_stack() {
    let deep = format!("{}x.parquet", "d/".repeat(400));
    assert_eq!(numbers(&Tree::new(&[&deep]).convert("")), [0]);
}

/// Returns the columns of [`mixed`] in another order.
fn reordered(rows: i32, first: i32) -> RecordBatch {
    mixed(rows, first).project(&[3, 1, 0, 2]).unwrap()
}

#[test]
fn further_files_may_have_their_columns_in_another_order() {
    let tree = Tree::new(&[]);
    tree.add("1.parquet", &mixed(10, 0));
    tree.add("2.parquet", &reordered(12, 10));
    tree.add("3.parquet", &mixed(5, 22));
    check_mixed(&tree.convert(""), 27);
    // fields of structs, too
    use tensilo::import::arrow::array::StructArray;
    let nested = Tree::new(&[]);
    nested.add("1.parquet", &one(Arc::new(StructArray::from(mixed(10, 0)))));
    nested.add("2.parquet", &one(Arc::new(StructArray::from(reordered(10, 10)))));
    let file = nested.convert("");
    assert_eq!(scalars::<i64>(&file, "x.id"), (0..20).map(Some).collect::<Vec<_>>());
}

#[test]
fn all_differences_of_all_inputs_are_reported_at_once() {
    let tree = Tree::new(&[]);
    let int: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let long: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let field = |name: &str, array: &ArrayRef| (Field::new(name, array.data_type().clone(), false), array.clone());
    tree.add("1.parquet", &batch(vec![field("a", &int), field("b", &int), field("c", &int)]));
    tree.add("2.parquet", &batch(vec![field("c", &long), field("b", &int), field("d", &int)]));
    tree.add("3.parquet", &batch(vec![field("a", &int), field("b", &int), field("c", &int)]));
    tree.add("4.parquet", &batch(vec![field("a", &int), field("b", &long), field("c", &int)]));
    let error = tree.refused(&[""]);
    assert_eq!((error.kind(), error.path()), (ErrorKind::BadInput, Some(tree.path("2.parquet").as_path())));
    for part in [
        "the columns differ from ",
        "1.parquet",
        r#"column "a" is missing; column "c" is i64, not i32; extra column "d"; in "#,
        r#"4.parquet, column "b" is i64, not i32"#,
    ] {
        assert!(error.message().contains(part), "{part}: {error}");
    }
    assert!(!error.message().contains("3.parquet"), "{error}");
    // the list of differences is bounded
    let wide = Tree::new(&[]);
    let columns = |count: usize| batch((0..count).map(|i| field(&format!("column-{i}"), &int)).collect());
    wide.add("1.parquet", &columns(1));
    wide.add("2.parquet", &columns(1000));
    let error = wide.refused(&[""]);
    assert!(error.message().contains("and 949 more differences") && error.message().len() < 5000, "{error}");
}

fn write_json(path: &Path, value: &serde_json::Value) {
    fs::write(path, value.to_string()).unwrap();
}

/// Writes a folder as `Dataset.save_to_disk` does.
fn saved(folder: &Path, shards: &[&str]) {
    fs::create_dir_all(folder).unwrap();
    let mut first = 0;
    for shard in shards {
        write_stream(folder.join(shard), &[mixed(10, first)]);
        first += 10;
    }
    write_stream(folder.join("cache-0123456789abcdef.arrow"), &[mixed(3, 0)]);
    fs::write(folder.join("dataset_info.json"), "{}").unwrap();
    let files: Vec<_> = shards.iter().map(|shard| serde_json::json!({ "filename": shard })).collect();
    write_json(&folder.join("state.json"), &serde_json::json!({ "_data_files": files, "_fingerprint": "x" }));
}

#[test]
fn a_saved_dataset_is_read_in_the_order_of_its_state() {
    let tree = Tree::new(&[]);
    saved(&tree.path(""), &["data-2.arrow", "data-10.arrow", "data-1.arrow"]);
    check_mixed(&tree.convert(""), 30);
    // a missing shard is noticed
    fs::remove_file(tree.path("data-10.arrow")).unwrap();
    assert_eq!(tree.refused(&[""]).path(), Some(tree.path("data-10.arrow").as_path()));
    let parent = Tree::new(&["x.parquet"]);
    saved(&parent.path("sub"), &["data.arrow"]);
    assert_eq!(parent.refused(&[""]).path(), Some(parent.path("sub").as_path()));
}

#[test]
fn a_cache_of_the_library_datasets_is_refused() {
    let tree = Tree::new(&["a/x-train.arrow", "a/x-test.arrow", "a/cache-0.arrow"]);
    fs::write(tree.path("a/dataset_info.json"), "{}").unwrap();
    let error = tree.refused(&[""]);
    assert_eq!((error.kind(), error.path()), (ErrorKind::BadInput, Some(tree.path("a").as_path())));
    assert!(error.message().contains("*-train.arrow"), "{error}");
    assert_eq!(numbers(&tree.convert("a/*-train.arrow")), [0]);
    // Parquet files are not concerned
    tree.add("b.parquet", &numbered(7));
    fs::remove_dir_all(tree.path("a")).unwrap();
    fs::write(tree.path("dataset_info.json"), "{}").unwrap();
    assert_eq!(numbers(&tree.convert("")), [7]);
}

#[test]
fn saved_datasets_that_cannot_be_read_are_refused_with_advice() {
    let tree = Tree::new(&[]);
    saved(&tree.path(""), &["data.arrow"]);
    let state = tree.path("state.json");
    for (value, part) in [
        (serde_json::json!({ "_data_files": [{ "filename": "../data.arrow" }] }), "not a file in this folder"),
        (serde_json::json!({ "_data_files": [{ "filename": "/data.arrow" }] }), "not a file in this folder"),
        (serde_json::json!({ "_data_files": [7] }), "not a file in this folder"),
        (serde_json::json!({ "_data_files": [] }), "no shards"),
        (
            serde_json::json!({ "_data_files": [{ "filename": "data.arrow" }], "_indices_files": [{ "filename": "i.arrow" }] }),
            "flatten_indices()",
        ),
        (
            serde_json::json!({ "_data_files": [{ "filename": "data.arrow" }], "_indices_data_files": "i.arrow" }),
            "flatten_indices()",
        ),
    ] {
        write_json(&state, &value);
        let error = tree.refused(&[""]);
        assert_eq!((error.kind(), error.path()), (ErrorKind::BadInput, Some(tree.path("").as_path())));
        assert!(error.message().contains(part), "{part}: {error}");
    }
    write_json(
        &state,
        &serde_json::json!({ "_data_files": [{ "filename": "data.arrow" }], "_indices_files": [], "_indices_data_files": null }),
    );
    check_mixed(&tree.convert(""), 10);
    fs::write(&state, "{").unwrap();
    assert_eq!(tree.refused(&[""]).path(), Some(state.as_path()));
    let dict = Tree::new(&[]);
    saved(&dict.path("train"), &["data.arrow"]);
    write_json(&dict.path("dataset_dict.json"), &serde_json::json!({ "splits": ["train", "test"] }));
    let error = dict.refused(&[""]);
    assert!(error.message().contains(r#""train", "test""#) && error.message().contains("subfolder"), "{error}");
    check_mixed(&dict.convert("train"), 10);
}

#[test]
fn tables_of_other_libraries_are_refused() {
    let tree = Tree::new(&[
        "delta/part-0.parquet",
        "delta/year=2/part-1.parquet",
        "ice/data/part-0.parquet",
        "hudi/part-0.parquet",
        "plain/x.parquet",
    ]);
    for (folder, mark) in [
        ("delta/_delta_log", "00000000000000000001.json"),
        ("ice/metadata", "v1.metadata.json"),
        ("plain/metadata", "train.metadata.json"),
        ("hudi/.hoodie", "hoodie.properties"),
        ("lance/_versions", "1.manifest"),
        ("zarr", "zarr.json"),
    ] {
        fs::create_dir_all(tree.path(folder)).unwrap();
        fs::write(tree.path(folder).join(mark), "{}").unwrap();
    }
    for (input, table, mark) in [
        ("delta", "delta", "a Delta table (it contains \"_delta_log\")"),
        ("delta/*.parquet", "delta", "_delta_log"),
        ("delta/year=2", "delta", "_delta_log"),
        ("delta/*/*.parquet", "delta", "_delta_log"),
        ("d*", "delta", "_delta_log"),
        ("ice", "ice", "an Iceberg table (it contains \"metadata\")"),
        ("ice/data", "ice", "metadata"),
        ("hudi", "hudi", "a Hudi table (it contains \".hoodie\")"),
        ("lance", "lance", "a Lance dataset"),
        ("zarr", "zarr", "a Zarr store"),
        ("**/*.parquet", "delta", "_delta_log"),
        ("", "delta", "_delta_log"),
    ] {
        let error = tree.refused(&[input]);
        assert_eq!((error.kind(), error.path()), (ErrorKind::BadInput, Some(tree.path(table).as_path())), "{error}");
        assert!(error.message().contains(mark), "{error}");
    }
    let zarr = tree.refused(&["zarr"]);
    assert!(zarr.message().contains("whose files are chunks of arrays"), "{zarr}");
    // by its own name, the file is read
    assert_eq!(numbers(&tree.convert("delta/part-0.parquet")), [0]);
    assert_eq!(numbers(&tree.convert("p*/*.parquet")), [4]);
    fs::rename(tree.path("plain/metadata/train.metadata.json"), tree.path("plain/metadata/00000-a.metadata.json"))
        .unwrap();
    assert!(tree.refused(&["p*/*.parquet"]).message().contains("an Iceberg table"));
}

/// Systems other than Linux may refuse such names.
#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf_8_are_read() {
    use std::os::unix::ffi::OsStrExt;
    let tree = Tree::new(&["a.parquet"]);
    let named = |name: &[u8]| tree.path("").join(std::ffi::OsStr::from_bytes(name));
    fs::write(named(b"notes caf\xe9.txt"), "").unwrap();
    fs::create_dir(named(b"caf\xe9")).unwrap();
    assert_eq!(numbers(&tree.convert("*.parquet")), [0]);
    write_parquet(named(b"caf\xe9.parquet"), &[numbered(1)]);
    write_parquet(named(b"caf\xe9/b.parquet"), &[numbered(2)]);
    assert_eq!(numbers(&tree.convert("*.parquet")), [0, 1]);
    assert_eq!(numbers(&tree.convert("**/*.parquet")), [0, 2, 1]);
    assert_eq!(numbers(&tree.convert("")), [0, 2, 1]);
    for input in [&b"caf\xe9/*"[..], b"caf\xe9", b"caf?/*"] {
        assert_eq!(numbers(&converted(&tree.0, &[named(input)], &ConvertOptions::new()).unwrap()), [2]);
    }
}

#[cfg(unix)]
#[test]
fn inputs_that_are_not_regular_files_are_refused() {
    let tree = Tree::new(&["a.parquet", "b/c.parquet"]);
    let made = std::process::Command::new("mkfifo").args([tree.path("p.parquet"), tree.path("notes")]).status();
    assert!(made.unwrap().success());
    for input in ["*.parquet", "**/*.parquet", ""] {
        let error = tree.refused(&[input]);
        assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(tree.path("p.parquet").as_path())), "{error}");
        assert!(error.to_string().contains("is a named pipe, not a regular file"), "{error}");
    }
    // neither does a read block where the library datasets keeps the state of a folder, or a shard
    for (name, folder) in [("state.json", "s"), ("dataset_dict.json", "d"), ("x.arrow", "x")] {
        fs::create_dir(tree.path(folder)).unwrap();
        let pipe = tree.path(folder).join(name);
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let state = serde_json::json!({ "_data_files": [{ "filename": name }] });
        if name == "x.arrow" {
            write_json(&tree.path("x/state.json"), &state);
        }
        let error = tree.refused(&[folder]);
        assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(pipe.as_path())), "{error}");
    }
    // a pipe without the name of a data file is skipped
    assert_eq!(numbers(&tree.convert("b")), [1]);
}
