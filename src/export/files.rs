//! Exports to files.

use super::format::Format;
use super::{arrow_file, batches, parquet_file};
use crate::error::go_on;
use crate::write::{AtomicFile, Sink};
use crate::{Error, Reader, Result};
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

fn format_of(format: ExportFormat) -> Result<Format> {
    match format {
        ExportFormat::Arrow => Ok(arrow_file::FORMAT),
        ExportFormat::Parquet => parquet_file::format(),
    }
}
