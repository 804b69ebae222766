//! Exports to files.

use super::format::Format;
use super::options::ExportOptions;
use super::restore::TypeChoice;
use super::{arrow_file, batches, parquet_file};
use crate::error::go_on;
use crate::write::{AtomicFile, Sink};
use crate::{Error, Reader, Result};
use std::path::Path;

/// A format to export to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportFormat {
    /// A Parquet file.
    Parquet,
    /// An Arrow IPC file.
    Arrow,
}

impl ExportFormat {
    /// Returns the format of the file's extension: `.parquet` or `.arrow`.
    pub fn of(path: impl AsRef<Path>) -> Option<Self> {
        match path.as_ref().extension()?.to_str()? {
            "parquet" => Some(Self::Parquet),
            "arrow" => Some(Self::Arrow),
            _ => None,
        }
    }
}

/// Writes columns of a file to a Parquet file or an Arrow IPC file. The extension of `output`
/// selects the format, see [`ExportFormat::of`].
///
/// The output appears when it is complete, see [`AtomicFile`]. It replaces an existing file only if
/// [`ExportOptions::overwrite`] is set, and never the file that is read.
///
/// Cost: each chunk is decoded once and copied once. Memory: a batch, see
/// [`batches`](super::batches()), what the writer of the format keeps of a row group, and the
/// dictionaries of an Arrow file: their values twice while a new value is added.
pub fn export(reader: &Reader, output: impl AsRef<Path>, options: ExportOptions<'_>) -> Result<()> {
    let output = output.as_ref();
    let format = ExportFormat::of(output).ok_or_else(|| {
        let message = "the extension selects no format to export to: use .parquet (Parquet) or .arrow (Arrow IPC file)";
        Error::bad_argument(message).with_path(output)
    })?;
    export_into(reader, AtomicFile::create(output, options.overwrite)?, format, options).map(|_| ())
}

/// Writes columns of a file to any sink, as [`export`] does, and returns the sink.
pub fn export_into<K: Sink + Send>(
    reader: &Reader,
    mut sink: K,
    format: ExportFormat,
    options: ExportOptions<'_>,
) -> Result<K> {
    let path = sink.path().map(Path::to_path_buf);
    let to_output = |error: Error| match &path {
        Some(path) => error.with_path(path),
        None => error,
    };
    reader.check_output(sink.identity(), path.as_deref())?;
    let ExportOptions { columns, mut progress, tensors, stored_types, .. } = options;
    let format = format_of(format).map_err(to_output)?;
    let choice = TypeChoice { parts: format.parts, tensors, stored_types, ordered: true };
    let mut batches = batches::select(reader, columns.as_deref(), choice)?;
    let mut writer = (format.begin)(&mut sink, batches.arrow_schema()).map_err(to_output)?;
    while let Some(batch) = batches.next_batch()? {
        writer.write(&batch).map_err(to_output)?;
        if let Some(progress) = &mut progress {
            go_on(progress(batches.position()))?;
        }
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
