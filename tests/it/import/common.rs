//! Helpers for the tests of importers.

use crate::support::intact::assert_intact;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::import::arrow::array::{Array, ArrayRef, AsArray, ListArray, RecordBatch};
use tensilo::import::arrow::buffer::OffsetBuffer;
use tensilo::import::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use tensilo::import::{AppendOptions, ConvertOptions, append, convert, write_batches};
use tensilo::sink::Stream;
use tensilo::{ColumnSchema, Element, Reader, Result};
use tensilo_testing::Folder;

/// Returns a batch of one column, `x`.
pub fn one(array: ArrayRef) -> RecordBatch {
    batch(vec![(Field::new("x", array.data_type().clone(), true), array)])
}

pub fn batch(columns: Vec<(Field, ArrayRef)>) -> RecordBatch {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

/// Converts batches to a file in memory.
pub fn import_with(batches: &[RecordBatch], options: &ConvertOptions) -> Result<Reader> {
    let file = write_batches(&batches[0].schema(), batches, Stream(Vec::new()), options)?.sink.0;
    Ok(opened(file))
}

/// Opens a file in memory, which must be intact.
#[track_caller]
pub fn opened(bytes: Vec<u8>) -> Reader {
    let reader = Reader::from_bytes(bytes).unwrap();
    assert_intact(reader.source());
    reader
}

/// Opens a copy of a file, which must be intact.
#[track_caller]
pub fn read(path: &Path) -> Reader {
    opened(fs::read(path).unwrap())
}

/// Returns the error of a conversion of batches.
pub fn refused(batches: &[RecordBatch], options: &ConvertOptions) -> tensilo::Error {
    match import_with(batches, options) {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error,
    }
}

pub fn import(batch: &RecordBatch) -> Reader {
    import_with(std::slice::from_ref(batch), &ConvertOptions::new()).unwrap()
}

pub fn column<'a>(file: &'a Reader, name: &str) -> &'a ColumnSchema {
    &file.schema().columns[file.schema().column_index(name).unwrap()]
}

pub fn column_names(file: &Reader) -> Vec<&str> {
    file.schema().columns.iter().map(|column| column.name.as_str()).collect()
}

/// Reads all samples of a column: shape and elements, or null.
pub fn tensors<T: Element>(file: &Reader, name: &str) -> Vec<Option<(Vec<u32>, Vec<T>)>> {
    let mut cursor = file.column(name).unwrap().cursor();
    let sample = |i| {
        let sample = cursor.read(i).unwrap();
        (!sample.is_null()).then(|| (sample.extents().to_vec(), sample.as_slice::<T>().unwrap().to_vec()))
    };
    (0..file.sample_count()).map(sample).collect()
}

/// Reads all samples of a column of scalars.
pub fn scalars<T: Element>(file: &Reader, name: &str) -> Vec<Option<T>> {
    tensors::<T>(file, name).into_iter().map(|sample| sample.map(|(_, elements)| elements[0])).collect()
}

/// Reads all samples of a column of bytes or text.
pub fn strings(file: &Reader, name: &str) -> Vec<Option<Vec<u8>>> {
    let mut cursor = file.column(name).unwrap().cursor();
    let sample = |i| {
        let sample = cursor.read(i).unwrap();
        (!sample.is_null()).then(|| sample.bytes().to_vec())
    };
    (0..file.sample_count()).map(sample).collect()
}

pub fn texts(values: &[Option<&str>]) -> Vec<Option<Vec<u8>>> {
    values.iter().map(|value| value.map(|value| value.as_bytes().to_vec())).collect()
}

/// Returns three lists: of two values, of none, and of one.
pub fn three_lists(values: &ArrayRef) -> ArrayRef {
    let offsets = OffsetBuffer::new(vec![0, 2, 2, 3].into());
    Arc::new(ListArray::new(item(values.data_type().clone()), offsets, values.clone(), None))
}

/// Imports three lists of these values and exports them again.
#[track_caller]
pub fn check_three_lists(values: &ArrayRef) {
    let list = exported(&import(&one(three_lists(values))));
    let list = list.as_list::<i32>();
    assert_eq!((list.value_offsets(), list.values()), (&[0, 2, 2, 3][..], values));
}

pub fn item(data_type: DataType) -> FieldRef {
    Arc::new(Field::new("item", data_type, true))
}

/// Returns a batch with columns of many types, including nulls, for round trips through files.
pub fn mixed(rows: i32, first: i32) -> RecordBatch {
    use tensilo::import::arrow::array::*;
    use tensilo::import::arrow::datatypes::{Float32Type, Int32Type};
    let range = || first..first + rows;
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(range().map(i64::from)));
    let embedding: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(
        range().map(|i| (i % 5 != 4).then(|| (0..8).map(move |j| Some((i * 8 + j) as f32 / 3.0)))),
    ));
    let tokens: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(
        range().map(|i| (i % 7 != 6).then(|| (0..i % 4).map(move |j| Some(i + j)))),
    ));
    let text: ArrayRef = Arc::new(StringArray::from_iter(range().map(|i| (i % 3 != 2).then(|| format!("text {i}")))));
    batch(vec![
        (Field::new("id", DataType::Int64, false), ids),
        (Field::new("embedding", embedding.data_type().clone(), true), embedding),
        (Field::new("tokens", tokens.data_type().clone(), true), tokens),
        (Field::new("text", DataType::Utf8, true), text),
    ])
}

/// Checks that a file holds `rows` samples of [`mixed`].
pub fn check_mixed(file: &Reader, rows: i32) {
    assert_eq!(file.sample_count(), rows as u64);
    assert_eq!(column(file, "embedding").shape.to_string(), "[8]");
    assert_eq!(column(file, "tokens").shape.to_string(), "[*]");
    let ids: Vec<Option<i64>> = (0..rows).map(|i| Some(i.into())).collect();
    assert_eq!(scalars::<i64>(file, "id"), ids);
    let embedding = |i: i32| (i % 5 != 4).then(|| (vec![8], (0..8).map(|j| (i * 8 + j) as f32 / 3.0).collect()));
    assert_eq!(tensors::<f32>(file, "embedding"), (0..rows).map(embedding).collect::<Vec<_>>());
    let tokens = |i: i32| (i % 7 != 6).then(|| (vec![(i % 4) as u32], (0..i % 4).map(|j| i + j).collect()));
    assert_eq!(tensors::<i32>(file, "tokens"), (0..rows).map(tokens).collect::<Vec<_>>());
    let text = |i: i32| (i % 3 != 2).then(|| format!("text {i}").into_bytes());
    assert_eq!(strings(file, "text"), (0..rows).map(text).collect::<Vec<_>>());
}

/// Writes a file and sets its modification time back. Otherwise a conversion would wait until the
/// time of a later change could differ.
pub fn write_old(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(60)).unwrap();
}

/// Writes an Arrow IPC file.
pub fn write_arrow(path: impl AsRef<Path>, batches: &[RecordBatch]) {
    use tensilo::import::arrow::ipc::writer::FileWriter;
    let mut writer = FileWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    write_old(path.as_ref(), &writer.into_inner().unwrap());
}

/// Writes an Arrow IPC file to a folder; returns its path.
pub fn arrow_file(folder: &Folder, name: &str, batches: &[RecordBatch]) -> PathBuf {
    write_arrow(folder.path(name), batches);
    folder.path(name)
}

/// Returns an Arrow file or stream whose first text ends after the others.
pub fn with_wrong_offset(bytes: &[u8], text: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let start = bytes.windows(text.len()).position(|bytes| bytes == text).unwrap();
    let offsets = [[0; 4], (text.len() as u32).to_le_bytes()].concat();
    let offsets = bytes[..start].windows(8).rposition(|bytes| bytes == offsets).unwrap();
    bytes[offsets + 4] += 100;
    bytes
}

/// Writes an Arrow IPC stream.
pub fn write_stream(path: impl AsRef<Path>, batches: &[RecordBatch]) {
    use tensilo::import::arrow::ipc::writer::StreamWriter;
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    write_old(path.as_ref(), &writer.into_inner().unwrap());
}

/// Writes a Parquet file with row groups of 100 rows, without dictionaries.
#[cfg(feature = "parquet")]
pub fn write_parquet(path: impl AsRef<Path>, batches: &[RecordBatch]) {
    use parquet::file::properties::WriterProperties;
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(100)).set_dictionary_enabled(false).build();
    let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), batches[0].schema(), Some(properties)).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    write_old(path.as_ref(), &writer.into_inner().unwrap());
}

/// Returns column `x` as an export of the file has it.
pub fn exported(file: &Reader) -> ArrayRef {
    let batches: Vec<RecordBatch> =
        tensilo::export::batches(file, Some(&["x".to_owned()])).unwrap().map(|batch| batch.unwrap()).collect();
    assert_eq!(batches.len(), 1);
    batches[0].column(0).clone()
}

/// Exports a file to Parquet and imports the result.
#[cfg(feature = "parquet")]
pub fn through_parquet(file: &Reader) -> Reader {
    let folder = Folder::new();
    let path = folder.path("x.parquet");
    tensilo::export::export(file, &path, tensilo::export::ExportOptions::new()).unwrap();
    write_old(&path, &fs::read(&path).unwrap());
    converted(&folder, &[path], &ConvertOptions::new()).unwrap()
}

/// What the progress callback of uncancelled work returns.
pub const GO_ON: ControlFlow<()> = ControlFlow::Continue(());

/// Converts with these options, without reporting progress.
pub fn convert_with(inputs: &[PathBuf], output: &Path, options: &ConvertOptions) -> Result<u64> {
    convert(inputs, output, options, &mut |_| GO_ON)
}

/// Converts, and replaces any file at the destination.
pub fn convert_over(inputs: &[PathBuf], output: &Path) -> Result<u64> {
    convert_with(inputs, output, &ConvertOptions::new().overwrite(true))
}

/// Appends with these options, without reporting progress.
pub fn append_with(inputs: &[PathBuf], file: &Path, options: &AppendOptions) -> Result<u64> {
    append(inputs, file, options, &mut |_| GO_ON)
}

/// Converts to `out.tsl` in a folder and opens it.
pub fn converted(folder: &Folder, inputs: &[PathBuf], options: &ConvertOptions) -> Result<Reader> {
    let output = folder.path("out.tsl");
    convert_with(inputs, &output, options)?;
    let file = read(&output);
    fs::remove_file(output).unwrap();
    Ok(file)
}

/// Converts damaged input, the only file of a folder. The result is a complete file, or an error
/// that names the input and leaves no output.
#[track_caller]
pub fn convert_damaged(folder: &Folder, bytes: &[u8]) -> Result<Reader> {
    let input = folder.path("input");
    write_old(&input, bytes);
    let result = converted(folder, std::slice::from_ref(&input), &ConvertOptions::new());
    if let Err(error) = &result {
        assert_eq!(error.path(), Some(input.as_path()), "{error}");
    }
    assert_eq!(folder.names(), ["input"]);
    result
}
