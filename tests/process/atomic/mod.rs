//! Tests that a file appears at its destination whole or not at all, even if several writers have
//! the same destination, or a writer is killed.

mod child_writer;
mod destinations;
mod dropped;
mod killed;
mod links;
mod permissions;
mod rivals;

use crate::support::intact::assert_intact;
use std::io;
use std::path::{Path, PathBuf};
use tensilo::sink::AtomicFile;
use tensilo::{ColumnSchema, DType, Error, Profile, Reader, Result, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_testing::Folder;

/// Elements of one sample: 16 KiB, so that a few samples of [`Profile::Raw`] exceed the 256 KiB
/// that an `AtomicFile` buffers.
const ELEMENTS: usize = 4_096;

/// A temporary folder with a destination in it.
struct Destination(Folder);

impl Destination {
    fn new() -> Self {
        Self(Folder::new())
    }

    fn path(&self) -> PathBuf {
        self.0.path("out.tsl")
    }

    /// Returns whether a file has a temporary name here before it is complete.
    fn names_temporary_files(&self) -> bool {
        let file = AtomicFile::create(self.0.path("another"), false).expect("a new file");
        file.temporary_path().is_some()
    }

    /// Returns the names in the folder, except the destination's.
    fn others(&self) -> Vec<String> {
        let mut names = self.0.names();
        names.retain(|name| name != "out.tsl");
        names
    }

    #[track_caller]
    fn assert_no_other_files(&self) {
        assert_eq!(self.others(), [""; 0]);
    }
}

fn begin(destination: &Path, overwrite: bool) -> Result<Writer<AtomicFile>> {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[ELEMENTS as u32]))]);
    let options = WriterOptions::new().profile(Profile::Raw);
    Writer::new(AtomicFile::create(destination, overwrite)?, schema, &options)
}

fn value(writer: u32, sample: u64) -> u32 {
    writer * 1_000_000 + sample as u32
}

fn push(writer: &mut Writer<AtomicFile>, number: u32, samples: u64) -> Result<()> {
    for _ in 0..samples {
        let sample = [value(number, writer.sample_count()); ELEMENTS];
        writer.push(&[Value::tensor(&sample)])?;
    }
    Ok(())
}

/// Checks a file of writer `number`; returns its number of samples.
fn check_whole(path: &Path, number: u32) -> u64 {
    let reader = Reader::open(path).unwrap_or_else(|error| panic!("{error}"));
    assert!(reader.is_finished());
    assert_intact(reader.source());
    check_samples(&reader, number)
}

/// Checks the samples of writer `number`; returns their number.
fn check_samples(reader: &Reader, number: u32) -> u64 {
    let mut cursor = reader.column("x").expect("the column").cursor();
    for i in 0..reader.sample_count() {
        let sample = cursor.read(i).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(sample.as_slice::<u32>().expect("u32"), [value(number, i); ELEMENTS]);
    }
    reader.sample_count()
}

fn io_kind(error: &Error) -> Option<io::ErrorKind> {
    let source = std::error::Error::source(error)?;
    source.downcast_ref::<io::Error>().map(io::Error::kind)
}
