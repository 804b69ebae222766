//! Tests conversions to several files.

use super::common::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::import::arrow::array::{ArrayRef, BinaryArray, UInt16Array};
use tensilo::import::arrow::datatypes::{DataType, Field};
use tensilo::import::{ConvertOptions, ShardFiles, convert_shards};
use tensilo::sink::Stream;
use tensilo::{Error, ErrorKind, Profile, Reader, Summary, WriterOptions};
use tensilo_testing::Folder;

/// An error of the library, or of the caller.
#[derive(Debug)]
enum ShardError {
    Library(Error),
    Caller,
}

impl From<Error> for ShardError {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

/// Files in memory.
#[derive(Default)]
struct Files {
    finished: Vec<Vec<u8>>,
    begun: usize,
    /// The file that cannot be begun.
    fails_at: Option<usize>,
}

impl ShardFiles for Files {
    type Sink = Stream<Vec<u8>>;
    type Error = ShardError;

    fn begin(&mut self) -> Result<Self::Sink, ShardError> {
        if self.fails_at == Some(self.begun) {
            return Err(ShardError::Caller);
        }
        self.begun += 1;
        Ok(Stream(Vec::new()))
    }

    fn finished(&mut self, file: Summary<Self::Sink>) -> Result<(), ShardError> {
        self.finished.push(file.sink.0);
        Ok(())
    }
}

fn shards(inputs: &[PathBuf], bytes: u64, options: &ConvertOptions) -> Result<Vec<Vec<u8>>, ShardError> {
    let mut files = Files::default();
    convert_shards(inputs, &mut files, bytes, options, &mut |_| std::ops::ControlFlow::Continue(()))?;
    assert_eq!(files.begun, files.finished.len());
    Ok(files.finished)
}

fn options(threads: usize) -> ConvertOptions {
    ConvertOptions::new().writer(WriterOptions::new().profile(Profile::Balanced).chunk_bytes(500).threads(threads))
}

fn sample_counts(files: &[Vec<u8>]) -> Vec<u64> {
    files.iter().map(|file| opened(file.clone()).sample_count()).collect()
}

/// Writes the bytes of files, and converts these to one.
fn merge(folder: &Folder, files: &[Vec<u8>], output: &Path, options: &ConvertOptions) -> Vec<u8> {
    let write =
        |(i, bytes): (usize, &Vec<u8>)| folder.file(format!("{output}-{i:04}.tsl", output = output.display()), bytes);
    let inputs: Vec<PathBuf> = files.iter().enumerate().map(write).collect();
    convert_with(&inputs, output, options).unwrap();
    std::fs::read(output).unwrap()
}

#[test]
fn shards_have_the_samples_of_one_file_for_any_number_of_threads() {
    let folder = Folder::new();
    write_arrow(folder.path("in.arrow"), &[mixed(700, 0), mixed(40, 700)]);
    let inputs = [folder.path("in.arrow")];
    for bytes in [0, 1, 1_000, 30_000, u64::MAX] {
        let files = shards(&inputs, bytes, &options(1)).unwrap();
        assert!(files == shards(&inputs, bytes, &options(3)).unwrap(), "{bytes}");
        assert_eq!(sample_counts(&files).iter().sum::<u64>(), 740);
        match bytes {
            0 | 1 => assert_eq!(files.len(), 740),
            u64::MAX => assert_eq!(files.len(), 1),
            _ => assert!((2..740).contains(&files.len())),
        }
        let mut ids: Vec<_> = files.iter().map(|file| opened(file.clone()).file_id().0).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), files.len(), "each file has an id of its own");
        if bytes > 1 {
            let output = folder.path(format!("joined-{bytes}.tsl"));
            check_mixed(&opened(merge(&folder, &files, &output, &options(1))), 740);
        }
    }
}

/// The raw bytes decide where a file ends, whatever the batches of the input.
#[test]
fn a_file_ends_before_the_sample_that_does_not_fit() {
    let folder = Folder::new();
    // 2 bytes and 3, 0, 9, 30, 1, 1, 1, 1, 4 more
    let lengths = [3, 0, 9, 30, 1, 1, 1, 1, 4];
    let texts: Vec<Vec<u8>> = lengths.iter().map(|&length| vec![b'x'; length]).collect();
    let columns = |rows: std::ops::Range<usize>| {
        let texts: Vec<&[u8]> = texts[rows.clone()].iter().map(Vec::as_slice).collect();
        let numbers = UInt16Array::from_iter_values(rows.map(|row| row as u16));
        let texts: ArrayRef = Arc::new(BinaryArray::from_vec(texts));
        let field = |name: &str, data_type| Field::new(name, data_type, false);
        batch(vec![(field("n", DataType::UInt16), Arc::new(numbers)), (field("t", DataType::Binary), texts)])
    };
    write_arrow(folder.path("one.arrow"), &[columns(0..9)]);
    write_arrow(folder.path("more.arrow"), &[columns(0..2), columns(2..5), columns(5..9)]);
    for (bytes, expected) in [(11, vec![2, 1, 1, 3, 2]), (18, vec![3, 1, 5]), (7, vec![2, 1, 1, 2, 2, 1])] {
        for name in ["one.arrow", "more.arrow"] {
            let files = shards(&[folder.path(name)], bytes, &options(2)).unwrap();
            assert_eq!(sample_counts(&files), expected, "{name}, {bytes} bytes");
        }
    }
}

#[test]
fn bytes_are_those_after_a_cast() {
    let folder = Folder::new();
    let values: ArrayRef =
        Arc::new(tensilo::import::arrow::array::Float32Array::from_iter_values((0..10).map(|i| i as f32)));
    write_arrow(folder.path("in.arrow"), &[one(values)]);
    let inputs = [folder.path("in.arrow")];
    assert_eq!(sample_counts(&shards(&inputs, 8, &options(1)).unwrap()), [2; 5]);
    let rounded = shards(&inputs, 8, &options(1).bf16(true)).unwrap();
    assert_eq!(sample_counts(&rounded), [4, 4, 2]);
    // its cast facts cover all values
    let path = folder.file("rounded.tsl", &rounded[0]);
    let refused = shards(&[path], 8, &options(1));
    assert!(matches!(&refused, Err(ShardError::Library(error)) if error.kind() == ErrorKind::BadInput), "{refused:?}");
}

#[test]
fn an_error_of_the_caller_comes_back() {
    let folder = Folder::new();
    write_arrow(folder.path("in.arrow"), &[mixed(100, 0)]);
    let mut files = Files { fails_at: Some(2), ..Files::default() };
    let converted = convert_shards(&[folder.path("in.arrow")], &mut files, 1, &options(1), &mut |_| {
        std::ops::ControlFlow::Continue(())
    });
    assert!(matches!(converted, Err(ShardError::Caller)), "{converted:?}");
    assert_eq!(files.finished.len(), 2);
    assert!(Reader::from_bytes(files.finished[1].clone()).is_ok(), "those before are complete");
}
