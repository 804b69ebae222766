//! Exports to files: Arrow IPC files and streams. Parquet files are in `parquet.rs`.
//!
//! Arrow files are not compressed, so readers can map them. Dictionaries are written as deltas:
//! each batch adds only the new values, instead of repeating all earlier values.

use super::batches::{in_table, select};
use super::field::{Repetition, TensorForm, TypeChoice};
#[cfg(feature = "parquet")]
use super::parquet::{ParquetFile, check_structs};
use super::table::Table;
use crate::error::check_cancelled;
use crate::write::{AtomicFile, Sink};
use crate::{Error, Result};
use arrow_array::RecordBatch;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::SchemaRef;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

/// An export format.
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
    /// Returns the format that the extension of a file selects: `.parquet`, `.arrow`, or `.arrows`
    /// for a stream. Returns `None` for any other extension.
    pub fn of(path: impl AsRef<Path>) -> Option<Self> {
        match path.as_ref().extension()?.to_str()? {
            "parquet" => Some(Self::Parquet),
            "arrow" => Some(Self::Arrow),
            "arrows" => Some(Self::ArrowStream),
            _ => None,
        }
    }

    /// Returns whether the schema declares the components of tensors nullable, which depends on the
    /// readers of the format. Fails if this build cannot write the format.
    fn repetition(self) -> Result<Repetition> {
        match self {
            Self::Arrow | Self::ArrowStream => Ok(Repetition::Required),
            Self::Parquet if cfg!(feature = "parquet") => Ok(Repetition::Optional),
            Self::Parquet => Err(not_built()),
        }
    }
}

/// Exports columns of a file, or of another [`Table`], to a Parquet file or to an Arrow IPC file or
/// stream. The extension of `output` selects the format; see [`ExportFormat::of`].
///
/// The output appears only when it is complete; see [`AtomicFile`]. It replaces an existing file
/// only if [`ExportOptions::overwrite`] is set, and it never replaces the file being read.
///
/// Cost: each chunk is decoded once and copied once. Memory: one batch (see
/// [`batches`](super::batches())), the row group that the Parquet writer holds, and the
/// dictionaries of an Arrow file. While values are added to a dictionary, all its values are in
/// memory twice.
pub fn export<T: Table>(
    table: &T,
    output: impl AsRef<Path>,
    options: ExportOptions<'_>,
) -> std::result::Result<(), T::Error> {
    let output = output.as_ref();
    let format = ExportFormat::of(output).ok_or_else(|| {
        let message = "the extension does not name an export format; use .parquet (Parquet), .arrow (Arrow IPC file) \
                       or .arrows (Arrow IPC stream)";
        Error::bad_argument(message).with_path(output)
    })?;
    export_into(table, AtomicFile::create(output, options.overwrite)?, format, options).map(|_| ())
}

/// Exports columns of a table to any sink, like [`export`], and returns the sink.
pub fn export_into<T: Table, K: Sink + Send>(
    table: &T,
    mut sink: K,
    format: ExportFormat,
    options: ExportOptions<'_>,
) -> std::result::Result<K, T::Error> {
    let path = sink.path().map(Path::to_path_buf);
    let to_output = |error: Error| in_table(path.as_deref(), error);
    table.check_output(sink.identity(), path.as_deref())?;
    let ExportOptions { columns, mut progress, tensors, stored_types, .. } = options;
    let choice =
        TypeChoice { repetition: format.repetition().map_err(to_output)?, tensors, stored_types, ordered: true };
    let mut batches = select(table, columns.as_deref(), choice)?;
    let mut writer = OutputFile::begin(format, &mut sink, batches.arrow_schema()).map_err(to_output)?;
    while let Some(batch) = batches.next_batch()? {
        writer.write(&batch).map_err(to_output)?;
        progress.as_mut().map_or(Ok(()), |progress| check_cancelled(progress(batches.position())))?;
    }
    writer.finish().map_err(to_output)?;
    let finished = sink.sync().and_then(|()| sink.publish());
    finished.map_err(|error| to_output(Error::io("finishing the file", error)))?;
    Ok(sink)
}

/// The options of [`export`] and [`export_into`].
#[derive(Default)]
#[non_exhaustive]
pub struct ExportOptions<'a> {
    columns: Option<Vec<String>>,
    overwrite: bool,
    tensors: TensorForm,
    stored_types: bool,
    progress: Option<&'a mut dyn FnMut(u64) -> ControlFlow<()>>,
}

impl<'a> ExportOptions<'a> {
    /// Returns the default options: all columns are exported, and existing files are not replaced.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the exported columns and their order. The default is all columns, in the order of the
    /// file. The name of a struct selects all its fields. If all fields of a struct are selected,
    /// they have the order of the source. Selecting a field of a struct also selects the nulls of
    /// the struct.
    pub fn columns(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(columns.into_iter().map(Into::into).collect());
        self
    }

    /// Sets whether [`export`] replaces an existing file (default: no).
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// Sets how tensors are exported.
    pub fn tensors(mut self, form: TensorForm) -> Self {
        self.tensors = form;
        self
    }

    /// Sets whether to ignore the Arrow types of the source (default: no). If set, all columns,
    /// including rounded ones, have the types in the table of [the module](super).
    pub fn stored_types(mut self, stored_types: bool) -> Self {
        self.stored_types = stored_types;
        self
    }

    /// Sets a function that is called after each batch with the number of samples written so far.
    /// If it returns `Break`, the export fails with an error of kind
    /// [`Cancelled`](crate::ErrorKind::Cancelled).
    pub fn progress(mut self, progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>) -> Self {
        self.progress = Some(progress);
        self
    }
}

/// An output file that record batches are written to.
enum OutputFile<'a> {
    Arrow(FileWriter<&'a mut (dyn Write + Send)>),
    ArrowStream(StreamWriter<&'a mut (dyn Write + Send)>),
    #[cfg(feature = "parquet")]
    Parquet(ParquetFile<'a>),
}

impl<'a> OutputFile<'a> {
    fn begin(format: ExportFormat, file: &'a mut (dyn Write + Send), schema: &SchemaRef) -> Result<Self> {
        // each batch adds only the new values
        let options = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
        match format {
            ExportFormat::Arrow => {
                FileWriter::try_new_with_options(file, schema, options).map(Self::Arrow).map_err(write_error)
            }
            ExportFormat::ArrowStream => {
                StreamWriter::try_new_with_options(file, schema, options).map(Self::ArrowStream).map_err(write_error)
            }
            #[cfg(feature = "parquet")]
            ExportFormat::Parquet => {
                check_structs(schema)?;
                ParquetFile::begin(file, schema).map(Self::Parquet).map_err(write_error)
            }
            #[cfg(not(feature = "parquet"))]
            ExportFormat::Parquet => Err(not_built()),
        }
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            Self::Arrow(file) => file.write(batch).map_err(write_error),
            Self::ArrowStream(file) => file.write(batch).map_err(write_error),
            #[cfg(feature = "parquet")]
            Self::Parquet(file) => file.write(batch).map_err(write_error),
        }
    }

    /// Completes the file after the last batch.
    fn finish(self) -> Result<()> {
        match self {
            Self::Arrow(mut file) => file.finish().map_err(write_error),
            Self::ArrowStream(mut file) => file.finish().map_err(write_error),
            #[cfg(feature = "parquet")]
            Self::Parquet(file) => file.finish().map_err(write_error),
        }
    }
}

fn not_built() -> Error {
    Error::not_built("parquet", "exporting to a .parquet file")
}

/// Converts an error of the library that writes a format. The cause is a failed write, or data that
/// the format cannot express.
fn write_error(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::io("writing the file", io::Error::other(error))
}
