//! Reads inputs front to back, with or without gzip, and collects their rows in batches.
//!
//! JSON lines, TFRecord and WebDataset files have no index, so their rows are read one by one. A
//! batch is bounded in bytes and in values, because a row of a few bytes can have nulls in very
//! many columns. Memory is allocated only for bytes that are present, never for a length that the
//! file claims.

use flate2::read::MultiGzDecoder;
use std::io::{self, BufReader, Read};
use std::path::Path;
use tensilo::import::arrow::array::RecordBatch;
use tensilo::import::arrow::datatypes::{DataType, Field, Schema};
use tensilo::import::{FormatFile, InputReader};
use tensilo::{Error, Result};

/// The maximum size of one value in bytes. Arrow's offsets have 32 bits, and a batch has fewer than
/// `BATCH_BYTES` bytes before its last row.
pub(crate) const MAX_VALUE_BYTES: u64 = (1 << 31) - 1 - BATCH_BYTES as u64;

/// The bytes of a file, decompressed.
pub(crate) enum ByteStream {
    Plain(BufReader<InputReader>),
    Gzip(Box<BufReader<MultiGzDecoder<BufReader<InputReader>>>>),
}

impl ByteStream {
    /// Opens a file at its start. Its first bytes show whether it is compressed.
    pub(crate) fn open(file: &FormatFile) -> Result<Self> {
        const BUFFER_BYTES: usize = 1 << 16;
        let mut first = Vec::new();
        file.reader()?.take(2).read_to_end(&mut first).map_err(read_error)?;
        let plain = BufReader::with_capacity(BUFFER_BYTES, file.reader()?);
        Ok(match first.as_slice() {
            [0x1F, 0x8B] => {
                let decoder = MultiGzDecoder::new(plain);
                Self::Gzip(Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder)))
            }
            _ => Self::Plain(plain),
        })
    }

    /// Returns the first `count` bytes of a file, decompressed. Returns fewer if the file is
    /// shorter or malformed.
    pub(crate) fn first(file: &FormatFile, count: u64) -> Result<Vec<u8>> {
        let mut first = Vec::new();
        let mut stream = Self::open(file)?.take(count);
        match stream.read_to_end(&mut first) {
            // the reader of the format will report what is malformed
            Err(error) if !is_malformed(&error) => Err(read_error(error)),
            _ => Ok(first),
        }
    }

    /// Reads exactly `count` bytes. Memory is allocated only for bytes that are present. Returns
    /// `None` at the end of the stream.
    pub(crate) fn read_exactly(&mut self, count: u64, what: &str) -> Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        self.take(count).read_to_end(&mut bytes).map_err(|error| stream_error(&error, what))?;
        match u64::try_from(bytes.len()) {
            Ok(found) if found == count => Ok(Some(bytes)),
            Ok(0) => Ok(None),
            _ => Err(cut_off(what)),
        }
    }
}

impl Read for ByteStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(reader) => reader.read(out),
            Self::Gzip(reader) => reader.read(out),
        }
    }
}

impl io::BufRead for ByteStream {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::Plain(reader) => reader.fill_buf(),
            Self::Gzip(reader) => reader.fill_buf(),
        }
    }

    fn consume(&mut self, count: usize) {
        match self {
            Self::Plain(reader) => reader.consume(count),
            Self::Gzip(reader) => reader.consume(count),
        }
    }
}

/// Returns whether a file name has one of the extensions of a format, optionally followed by `.gz`.
pub(crate) fn matches_extension(path: &Path, is_extension: impl Fn(&str) -> bool) -> bool {
    let extension = |path: &Path| path.extension().and_then(|extension| extension.to_str().map(str::to_owned));
    match extension(path) {
        Some(gz) if gz == "gz" => extension(&path.with_extension("")).is_some_and(|extension| is_extension(&extension)),
        other => other.is_some_and(|extension| is_extension(&extension)),
    }
}

fn is_malformed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof)
}

/// Returns the error for a file in which `what` cannot be read.
pub(crate) fn stream_error(error: &io::Error, what: &str) -> Error {
    match is_malformed(error) {
        true => Error::bad_input(format!("{what}: the file is malformed or cut off: {error}")),
        false => Error::io(what, io::Error::new(error.kind(), error.to_string())),
    }
}

pub(crate) fn cut_off(what: &str) -> Error {
    Error::bad_input(format!("{what}: the file is truncated"))
}

/// A batch ends once its rows have this many bytes.
pub(crate) const BATCH_BYTES: usize = 2 << 20;

/// The maximum number of values in a batch, including nulls, because a row of a few bytes can have
/// nulls in very many columns.
const MAX_BATCH_VALUES: usize = 1 << 22;

/// Returns the maximum number of rows in a batch, regardless of their size.
pub(crate) fn max_rows(schema: &Schema) -> usize {
    let values = schema.fields().iter().map(|field| values_per_row(field)).sum::<usize>();
    (MAX_BATCH_VALUES / values.max(1)).max(1)
}

/// Returns the minimum number of values of a field in each row. The recursion is shallow, because
/// fields are not nested deeply.
pub(crate) fn values_per_row(field: &Field) -> usize {
    match field.data_type() {
        DataType::Struct(fields) => fields.iter().map(|field| values_per_row(field)).sum::<usize>() + 1,
        _ => 1,
    }
}

/// Returns batches with this schema. `next` reads a row and returns it with its size in bytes, or
/// returns `None` at the end. `batch_of` makes a batch from rows.
pub(crate) fn row_batches<'a, R: 'a>(
    schema: &Schema,
    mut next: impl FnMut() -> Result<Option<(R, usize)>> + 'a,
    batch_of: impl Fn(&[R]) -> Result<RecordBatch> + 'a,
) -> Box<dyn Iterator<Item = Result<RecordBatch>> + 'a> {
    let max_rows = max_rows(schema);
    let mut next_rows = move || -> Result<Vec<R>> {
        let (mut rows, mut bytes) = (Vec::new(), 0_usize);
        while bytes < BATCH_BYTES && rows.len() < max_rows {
            let Some((row, row_bytes)) = next()? else { break };
            rows.push(row);
            bytes = bytes.saturating_add(row_bytes);
        }
        Ok(rows)
    };
    Box::new(std::iter::from_fn(move || match next_rows() {
        Ok(rows) if rows.is_empty() => None,
        rows => Some(rows.and_then(|rows| batch_of(&rows))),
    }))
}

/// Returns the error for a file that cannot be read.
pub(crate) fn read_error(error: std::io::Error) -> Error {
    Error::io("reading the file", error)
}
