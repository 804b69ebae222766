//! Export to Arrow and Parquet, without loss: re-importing gives the same values, nulls and shapes.
//!
//! | tensilo column | Arrow type |
//! |---|---|
//! | rank 0 | the primitive type; bf16 becomes `Float32`, which holds each of its values and NaN payloads |
//! | `utf8`, `bytes` | `Utf8`, `Binary` |
//! | fixed shape of rank 1 or more | extension `arrow.fixed_shape_tensor` over `FixedSizeList` |
//! | ragged, rank 1 | `List` |
//! | ragged, rank 2 or more | extension `arrow.variable_shape_tensor` over a struct of `data` and `shape` |
//!
//! * Elements are never null; samples may be where the column is nullable. (In Parquet the schema calls the elements of
//!   tensors nullable nonetheless, because only then do Arrow's C++ and Python libraries see a tensor.) The shape of a null tensor is 0 in its varying
//!   dimensions.
//! * A column that was imported from dates, times, timestamps, durations or fixed-size binaries (metadata `arrow.type`)
//!   gets its Arrow type back, as far as its elements are `i32`, `i64` or bytes.
//! * Metadata of file and column become metadata of schema and field; `arrow.dim_names` of a tensor (a
//!   JSON array) becomes a member of its extension type. What a cast did is told by the field's metadata `tensilo.cast`.
//! * Columns keep their names: `a.b` is a top-level field called `a.b`, not a field `b` of a struct `a`.
//!
//! Batches, row groups and thereby memory are bounded (a single sample may be larger). The same file gives the same
//! bytes.

mod arrow_file;
mod batches;
mod column;
mod elements;
mod field;
mod json;
#[cfg(feature = "parquet")]
mod parquet_file;
#[cfg(not(feature = "parquet"))]
#[path = "parquet_absent.rs"]
mod parquet_file;

pub use batches::{Batches, batches};

use crate::error::go_on;
use crate::{AtomicFile, Error, Reader, Result, Sink};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use field::Parts;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

/// A format to export to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// A Parquet file.
    Parquet,
    /// An Arrow IPC file.
    Arrow,
}

impl ExportFormat {
    /// The format that the name of a file ends with: `.parquet` or `.arrow`.
    pub fn of(path: impl AsRef<Path>) -> Option<Self> {
        match path.as_ref().extension()?.to_str()? {
            "parquet" => Some(Self::Parquet),
            "arrow" => Some(Self::Arrow),
            _ => None,
        }
    }
}

/// Writes columns of a file (all if `None`) to a Parquet file (`.parquet`) or an Arrow IPC file
/// (`.arrow`), whichever `output` ends with. `progress` is told the samples written so far; if it
/// breaks, the work ends with an error of kind [`Cancelled`](crate::ErrorKind::Cancelled). Appears
/// when complete ([`AtomicFile`]); replaces an existing file only if `overwrite`, and never the
/// file that is read.
pub fn export(
    reader: &Reader,
    output: &Path,
    columns: Option<&[String]>,
    overwrite: bool,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<()> {
    let format = ExportFormat::of(output).ok_or_else(|| {
        let message = "the name tells no format to export to; end it in .parquet (Parquet) or .arrow (Arrow IPC file)";
        Error::bad_argument(message).with_path(output)
    })?;
    export_into(reader, AtomicFile::create(output, overwrite)?, format, columns, progress).map(|_| ())
}

/// Writes columns of a file as [`export`] does, to any sink, which it returns: a pipe, memory.
pub fn export_into<K: Sink + Send>(
    reader: &Reader,
    mut sink: K,
    format: ExportFormat,
    columns: Option<&[String]>,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<K> {
    let path = sink.path().map(Path::to_path_buf);
    let to_output = |error: Error| match &path {
        Some(path) => error.with_path(path),
        None => error,
    };
    reader.check_output(sink.identity(), path.as_deref())?;
    let format = format_of(format).map_err(to_output)?;
    let mut batches = batches::select(reader, columns, format.parts)?;
    let mut writer = (format.begin)(&mut sink, batches.arrow_schema()).map_err(to_output)?;
    while let Some(batch) = batches.next_batch()? {
        writer.write(&batch).map_err(to_output)?;
        go_on(progress(batches.position()))?;
    }
    writer.finish().map_err(to_output)?;
    let finished = sink.sync().and_then(|()| sink.publish());
    finished.map_err(|error| to_output(Error::io("finishing the file", error)))?;
    Ok(sink)
}

/// A file that is made of record batches.
trait BatchWriter {
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;

    /// Writes what comes after the last batch.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Begins a file.
type Begin = for<'a> fn(&'a mut (dyn Write + Send), &SchemaRef) -> Result<Box<dyn BatchWriter + 'a>>;

/// How a format is written.
struct Format {
    begin: Begin,
    parts: Parts,
}

fn format_of(format: ExportFormat) -> Result<Format> {
    match format {
        ExportFormat::Arrow => Ok(arrow_file::FORMAT),
        ExportFormat::Parquet => parquet_file::format(),
    }
}

/// An error of the libraries that write: a failing device, or what they cannot express.
fn write_error(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::io("writing the file", io::Error::other(error))
}
