//! Exports to files.

use super::exported_part::ExportedPart;
use super::format::Format;
use super::options::ExportOptions;
use super::restore::TypeChoice;
use super::table::Table;
use super::{arrow_file, batches, parquet_file};
use crate::error::go_on;
use crate::write::{AtomicFile, Sink};
use crate::{Error, Result};
use arrow_array::RecordBatch;
use std::path::Path;

/// A format to export to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportFormat {
    /// A Parquet file.
    Parquet,
    /// An Arrow IPC file.
    Arrow,
    /// An Arrow IPC stream.
    ArrowStream,
}

impl ExportFormat {
    /// Returns the format of the file's extension: `.parquet`, `.arrow`, or `.arrows` for a stream.
    pub fn of(path: impl AsRef<Path>) -> Option<Self> {
        match path.as_ref().extension()?.to_str()? {
            "parquet" => Some(Self::Parquet),
            "arrow" => Some(Self::Arrow),
            "arrows" => Some(Self::ArrowStream),
            _ => None,
        }
    }
}

/// Writes columns of a file, or of another [`Table`], to a Parquet file, or to an Arrow IPC file or
/// stream. The extension of `output` selects the format, see [`ExportFormat::of`].
///
/// The output appears when it is complete, see [`AtomicFile`]. It replaces an existing file only if
/// [`ExportOptions::overwrite`] is set, and never the file that is read.
///
/// Cost: each chunk is decoded once and copied once. Memory: a batch, see
/// [`batches`](super::batches()), what the writer of the format keeps of a row group, and the
/// dictionaries of an Arrow file: their values twice while a new value is added.
pub fn export<T: Table>(
    table: &T,
    output: impl AsRef<Path>,
    options: ExportOptions<'_>,
) -> std::result::Result<(), T::Error> {
    let output = output.as_ref();
    let format = ExportFormat::of(output).ok_or_else(|| {
        let message = "the extension selects no format to export to: use .parquet (Parquet), .arrow (Arrow IPC file) or \
                       .arrows (Arrow IPC stream)";
        Error::bad_argument(message).with_path(output)
    })?;
    export_into(table, AtomicFile::create(output, options.overwrite)?, format, options).map(|_| ())
}

/// Writes columns of a table to any sink, as [`export`] does, and returns the sink.
pub fn export_into<T: Table, K: Sink + Send>(
    table: &T,
    mut sink: K,
    format: ExportFormat,
    options: ExportOptions<'_>,
) -> std::result::Result<K, T::Error> {
    let path = sink.path().map(Path::to_path_buf);
    let to_output = |error: Error| match &path {
        Some(path) => error.with_path(path),
        None => error,
    };
    table.check_output(sink.identity(), path.as_deref())?;
    let ExportOptions { columns, mut progress, tensors, stored_types, .. } = options;
    let format = format_of(format).map_err(to_output)?;
    let choice = TypeChoice { parts: format.parts, tensors, stored_types, ordered: true };
    let (mut batches, columns) = batches::select(table, columns.as_deref(), choice)?;
    let mut writer = (format.begin)(&mut sink, batches.arrow_schema()).map_err(to_output)?;
    let mut write = |batch: &RecordBatch, samples: u64| {
        writer.write(batch).map_err(to_output)?;
        progress.as_mut().map_or(Ok(()), |progress| go_on(progress(samples)))
    };
    for part in table.parts(columns) {
        let mut part = ExportedPart::new(part?);
        while let Some(batch) = batches.next_full(&mut part)? {
            write(&batch, batches.position())?;
        }
    }
    if let Some(batch) = batches.rest()? {
        write(&batch, batches.position())?;
    }
    writer.finish().map_err(to_output)?;
    let finished = sink.sync().and_then(|()| sink.publish());
    finished.map_err(|error| to_output(Error::io("finishing the file", error)))?;
    Ok(sink)
}

fn format_of(format: ExportFormat) -> Result<Format> {
    match format {
        ExportFormat::Arrow => Ok(arrow_file::FORMAT),
        ExportFormat::ArrowStream => Ok(arrow_file::STREAM),
        ExportFormat::Parquet => parquet_file::format(),
    }
}
