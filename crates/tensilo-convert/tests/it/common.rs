//! Conversions in memory, and the expected results.

use serde_json::{Value, json};
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use tensilo::import::{ConvertOptions, convert_into};
use tensilo::sink::Stream;
use tensilo::{Column, ColumnBuffer, DType, Reader, Result};
use tensilo_convert::{FormatOptions, input_formats};

/// Returns the path of a file in the folder of test data.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Returns the names of the files in a folder of test data, with the name of the folder.
pub fn names_in(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(data(folder)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| format!("{folder}/{}", entry.unwrap().file_name().into_string().unwrap())).collect();
    names.sort();
    assert!(!names.is_empty());
    names
}

/// Converts files to a file in memory.
pub fn convert(inputs: &[PathBuf], formats: FormatOptions) -> Result<Reader> {
    convert_options(inputs, &ConvertOptions::new().formats(input_formats(formats)))
}

/// Converts files with options of all kinds.
pub fn convert_options(inputs: &[PathBuf], options: &ConvertOptions) -> Result<Reader> {
    let written = convert_into(inputs, Stream(Vec::new()), options, &mut |_| ControlFlow::Continue(()))?;
    Reader::from_bytes(written.sink.0)
}

/// Makes a file look old, because a conversion waits until the clock tick of the last change is
/// over.
pub fn backdate(path: &Path) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::new(1_000_000_000, 1)).unwrap();
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

/// Returns a NumPy array file. Type, order and shape are written as its header has them.
pub fn npy(descr: &str, order: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    [b"\x93NUMPY\x01\x00\x76\x00".as_slice(), format!("{header:<117}\n").as_bytes(), bytes].concat()
}

/// Checks that a file of test data has the values that the original library reads.
#[track_caller]
pub fn check(name: &str, formats: FormatOptions) {
    let all_files: Value = serde_json::from_slice(&fs::read(data("expected.json")).unwrap()).unwrap();
    let expected = all_files.get(name).unwrap_or_else(|| panic!("{name} is not in expected.json"));
    let found = convert(&[data(name)], formats).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(columns(&found), *expected, "{name}");
}

/// Checks that a file is refused because of one column, that the error advises to skip it, and that
/// each way to skip it works. Returns the file without it.
#[track_caller]
pub fn check_left_out(path: &Path, finding: &str, column: &str, others: &[&str]) -> Reader {
    check_refused(path, finding);
    check_refused(path, "ConvertOptions::skip");
    let options = ConvertOptions::new().formats(input_formats(FormatOptions::new()));
    let convert = |options: ConvertOptions| convert_options(&[path.to_path_buf()], &options);
    let chosen =
        convert(options.clone().columns(others.iter().copied())).unwrap_or_else(|error| panic!("{finding}: {error}"));
    let left = convert(options.skip([column])).unwrap_or_else(|error| panic!("{finding}: {error}"));
    assert_eq!(columns(&left), columns(&chosen), "{finding}");
    assert_eq!(left.schema().columns.len(), others.len(), "{finding}");
    left
}

/// Returns all samples of a file as `make.py` describes them.
pub fn columns(reader: &Reader) -> Value {
    let column = |column: Column| {
        let name = column.schema().name.clone();
        let samples: Vec<Value> = (0..column.sample_count()).map(|i| sample(&column, i)).collect();
        (name, json!({"dtype": column.schema().type_name().split(' ').next().unwrap(), "samples": samples}))
    };
    Value::Object(reader.columns().map(column).collect())
}

fn sample(column: &Column, i: u64) -> Value {
    let mut cursor = column.cursor();
    if !column.schema().levels.is_empty() {
        let mut buffer = ColumnBuffer::new();
        cursor.range_into(i..i + 1, &mut buffer).unwrap();
        let strings = (0..buffer.item_count()).map(|item| string(column, buffer.ragged_bytes(item).unwrap()));
        return strings.collect();
    }
    let sample = cursor.read(i).unwrap();
    if sample.is_null() {
        return Value::Null;
    }
    match column.schema().dtype.is_string() {
        true => string(column, sample.bytes()),
        false => json!({"shape": sample.extents(), "bytes": hex(sample.bytes())}),
    }
}

fn string(column: &Column, bytes: &[u8]) -> Value {
    match column.schema().dtype {
        DType::Utf8 => Value::from(str::from_utf8(bytes).unwrap()),
        _ => Value::from(hex(bytes)),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checks that a conversion fails, and that the error names the file and contains the text.
#[track_caller]
pub fn check_refused(path: &Path, text: &str) {
    let error = match convert(&[path.to_path_buf()], FormatOptions::new()) {
        Ok(_) => panic!("{} was converted", path.display()),
        Err(error) => error,
    };
    assert_eq!(error.path(), Some(path), "{error}");
    assert!(error.to_string().contains(text), "{text:?} in {error}");
}
