//! Opens arbitrary bytes as a file, and reads it in every way.
//!
//! Errors are fine, panics are not. If the file verifies without damage, every read must succeed.
//! If a sample can be viewed, reading it must return the same bytes. [`run`] also serves
//! `resealed`, whose inputs get past the checksums.

use super::lists;
use super::regions::{CHUNK, headers, number};
use tensilo::source::{InMemory, Source};
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{Column, ColumnBuffer, Cursor, DType, Error, OpenOptions, Reader, Result, Verification};

/// The maximum number of bytes and samples of a chunk that is decoded, and of bytes of a sample.
/// More is legitimate, but would only cost time.
const SMALL: u64 = 1 << 14;
/// The number of samples, columns and chunks that are read.
const SOME: u64 = 12;

pub fn run(file: &[u8]) {
    let is_small = |(at, magic)| {
        // samples, bytes
        magic != CHUNK || number(file, at + 40, 4) <= SMALL && number(file, at + 48, 4) <= SMALL
    };
    let is_small = headers(file).all(is_small);
    let verified = verify(&InMemory(file), VerifyOptions::new().deep(is_small));
    let salt = file.last().copied().unwrap_or(0); // part of a checksum: as good as random
    let verification = [Verification::FirstTouch, Verification::Always, Verification::Never][usize::from(salt) % 3];
    let options = OpenOptions::new().verification(verification);
    let walked = if salt & 4 == 0 {
        options.open_source(InMemory(file.to_vec())).and_then(|reader| walk(&reader, is_small, salt))
    } else {
        options.open_source(Positional(file.to_vec())).and_then(|reader| walk(&reader, is_small, salt))
    };
    // the block indexes of larger chunks were not verified
    if is_small && verified.is_ok_and(|report| report.findings.is_empty()) {
        walked.expect("what verifies can be read");
    }
}

/// A file in memory that only supports reads by position, as a file on disk does.
pub struct Positional<B>(pub B);

impl<B: AsRef<[u8]> + Send + Sync> Source for Positional<B> {
    fn byte_count(&self) -> u64 {
        InMemory(&self.0).byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        InMemory(&self.0).read_exact_at(offset, out)
    }
}

/// Reads samples of all columns in every way. Continues after errors, and returns the first.
fn walk(reader: &Reader, is_small: bool, salt: u8) -> Result<()> {
    let mut first = Errors(Ok(()));
    let count = reader.sample_count();
    let samples: Vec<u64> = (0..count.min(SOME)).chain(count.saturating_sub(3)..count).collect();
    let mut buffer = ColumnBuffer::new();
    for column in reader.columns().take(SOME as usize) {
        column.facts();
        for chunk in 0..column.facts().chunk_count.min(SOME) {
            first.note(column.chunk(chunk));
            first.note(column.blocks(chunk));
            first.note(column.cold_read(chunk));
        }
        first.note(count.checked_sub(1).map_or(Ok(()), |last| column.chunk_of(last).map(|_| ())));
        if is_small && sample_bytes(&column) <= SMALL {
            let read = read(&column, &samples, &mut buffer);
            if !is_known(&column) {
                // verifiers accept such columns
                assert!(samples.is_empty() || read.is_err(), "elements of an unknown type are not read");
                continue;
            }
            first.note(read);
            if salt.is_multiple_of(32) && count > 0 {
                first.note(column.explain_chunk_of(0));
            }
        }
    }
    first.0
}

fn read(column: &Column, samples: &[u64], buffer: &mut ColumnBuffer) -> Result<()> {
    let mut first = Errors(Ok(()));
    let mut cursor = column.cursor();
    if column.schema().levels.is_empty() {
        first.note(read_singly(column, samples, &mut cursor));
    } else {
        first.note(read_lists(column, samples, &mut cursor));
    }
    let some: Vec<u64> = samples.iter().rev().copied().collect();
    first.note(cursor.gather_into(&some, buffer));
    first.note(column.cursor().range_into(0..column.sample_count().min(SOME), buffer));
    first.0
}

fn read_lists(column: &Column, samples: &[u64], cursor: &mut Cursor) -> Result<()> {
    let mut first = Errors(Ok(()));
    let is_text = column.schema().dtype == DType::Utf8;
    for &i in samples {
        let read = cursor.read_list(i).and_then(|list| lists::flat(&list, is_text));
        let Some(read) = first.note(read) else { continue };
        // with a new cursor, as in `read_singly`
        if let Some(view) = first.note(column.view_list(i)).flatten() {
            let mut fresh = column.cursor();
            let again = fresh.read_list(i).expect("what can be viewed can be read");
            assert_eq!(lists::flat(&view, is_text).ok(), lists::flat(&again, is_text).ok());
        }
        assert!(!read.lists.is_empty());
    }
    first.0
}

fn read_singly(column: &Column, samples: &[u64], cursor: &mut Cursor) -> Result<()> {
    let mut first = Errors(Ok(()));
    let is_text = column.schema().dtype == DType::Utf8;
    for &i in samples {
        let Some(sample) = first.note(cursor.read(i)) else { continue };
        if is_text {
            first.note(sample.as_str());
        }
        // with a new cursor: if an index puts a sample in two chunks, a used cursor may have the
        // other one open
        if let Some(view) = first.note(column.view(i)).flatten() {
            let mut fresh = column.cursor();
            let read = fresh.read(i).expect("what can be viewed can be read");
            assert_eq!((view.is_null(), view.extents(), view.bytes()), (read.is_null(), read.extents(), read.bytes()));
        }
    }
    first.0
}

/// Returns the bytes of a sample; for a varying extent, the bytes of one step of it.
pub fn sample_bytes(column: &Column) -> u64 {
    let schema = column.schema();
    schema.shape.inner_elements().unwrap_or(u64::MAX).saturating_mul(schema.dtype.element_bytes() as u64)
}

/// Returns whether this release knows the type of the elements.
pub fn is_known(column: &Column) -> bool {
    !matches!(column.schema().dtype, DType::Unknown { .. })
}

/// Keeps the first error.
struct Errors(Result<()>);

impl Errors {
    fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        result
            .map_err(|error: Error| {
                if self.0.is_ok() {
                    self.0 = Err(error)
                }
            })
            .ok()
    }
}
