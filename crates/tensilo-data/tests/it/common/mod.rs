//! Folders for tests, and files in them.

pub mod arbitrary;

use std::fs;
use std::path::{Path, PathBuf};
use tensilo::sink::AtomicFile;
use tensilo::{Column, ColumnSchema, DType, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_data::{DataError, Dataset};
use tensilo_testing::python;

/// The path of the folder `format-spec`.
pub fn spec() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../format-spec")
}

/// A column of u32.
pub fn numbers(name: &str) -> ColumnSchema {
    ColumnSchema::tensor(name, DType::U32, Shape::scalar())
}

/// Writes a file in which sample `i` of every column is `first + i`.
pub fn write(path: &Path, columns: &[ColumnSchema], first: u32, samples: u32) {
    let sink = AtomicFile::create(path, false).expect("no such file");
    let mut writer = Writer::new(sink, Schema::new(columns.to_vec()), &WriterOptions::new()).expect("a schema");
    for i in first..first + samples {
        let number = [i];
        let row: Vec<Value<'_>> = columns.iter().map(|_| Value::tensor(&number)).collect();
        writer.push(&row).expect("a sample");
    }
    writer.finish().expect("disk space");
}

/// Creates a dataset with one column `x`, in files with these numbers of samples. Sample `i` is
/// `i`.
pub fn create(folder: &Path, files: &[u32]) -> Dataset {
    let mut changes = Dataset::create(folder).expect("an empty folder");
    let mut first = 0;
    for &samples in files {
        let path = changes.next_path().expect("a path");
        write(&path, &[numbers("x")], first, samples);
        changes.add_file(&path).expect("a file of the dataset");
        first += samples;
    }
    changes.publish("create").expect("no other writer")
}

/// Returns a sample of a column of u32, or `None` if it is null.
pub fn read(dataset: &Dataset, column: &str, sample: u64) -> Result<Option<u32>, DataError> {
    let number = dataset.schema().column_index(column).expect("a column");
    let found = dataset.find(number, sample)?;
    assert!(found.samples.contains(&sample) && found.index == sample - found.samples.start);
    Ok(found.column.and_then(|column| read_at(&column, found.index)))
}

fn read_at(column: &Column, index: u64) -> Option<u32> {
    let mut cursor = column.cursor();
    let sample = cursor.read(index).expect("a sample");
    (!sample.is_null()).then(|| sample.as_slice::<u32>().expect("u32")[0])
}

/// Opens every file of a dataset, and checks it against the manifest.
pub fn check_all(dataset: &Dataset) -> Result<(), DataError> {
    for group in dataset.groups() {
        let group = group?;
        for file in 0..group.files.len() {
            dataset.open_file(&group, file)?;
        }
    }
    Ok(())
}

/// Returns the output of the second reader for a folder, or `None` if it cannot run on this
/// machine.
pub fn second_reader(folder: &Path) -> Option<serde_json::Value> {
    let output = python()?.arg(spec().join("manifest.py")).arg(folder).output().expect("python3 starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_str(&text).expect("a line of JSON"))
}

/// Returns all paths of files below a folder, in order.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found.sort_unstable();
    found
}
