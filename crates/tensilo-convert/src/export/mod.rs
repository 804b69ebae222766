//! Exports to other file formats: the formats, and the code that they share.
//!
//! Each format writes the batches of a table to a sink, which is published once everything is
//! written. If a format lacks types, nulls or a schema, its export refuses values that a reader
//! would lose or misinterpret.

mod batches;
mod megatron;
mod npy;
mod safetensors;
mod webdataset;

pub use batches::TargetOptions;
pub use megatron::export_megatron;
pub use npy::npy_header;

use batches::TableExport;
use std::io::BufWriter;
use std::path::Path;
use tensilo::Error;
use tensilo::export::Table;
use tensilo::sink::Sink;

/// A format to export to, in addition to the formats of [`tensilo::export`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetFormat {
    /// `.npy`: one column as a NumPy array. The first axis is the sample axis.
    Npy,
    /// `.npz`: columns as arrays in an archive.
    Npz,
    /// `.safetensors`: columns as named tensors.
    Safetensors,
    /// `.tar`: a file for each sample and column, in the layout of WebDataset.
    WebDataset,
}

impl TargetFormat {
    /// Returns the format of a file extension: `.npy`, `.npz`, `.safetensors` or `.tar`.
    pub fn of(path: impl AsRef<Path>) -> Option<Self> {
        match path.as_ref().extension()?.to_str()? {
            "npy" => Some(Self::Npy),
            "npz" => Some(Self::Npz),
            "safetensors" => Some(Self::Safetensors),
            "tar" => Some(Self::WebDataset),
            _ => None,
        }
    }

    /// Returns the file extension of the format.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::Safetensors => "safetensors",
            Self::WebDataset => "tar",
        }
    }
}

/// Writes columns of a file, or of another [`Table`], to a sink, and returns the sink.
///
/// Refuses what the format cannot express, such as nulls in arrays. Values do not change; for a
/// format without bf16, bf16 values are widened to f32, which is exact.
///
/// Cost: each chunk is decoded once. Memory: one chunk of each column.
///
/// ```
/// use tensilo::sink::Stream;
/// use tensilo::{ColumnSchema, DType, Reader, Schema, Shape, Value, Writer, WriterOptions};
/// use tensilo_convert::{TargetFormat, TargetOptions, export_to};
///
/// let schema = Schema::new([ColumnSchema::tensor("label", DType::I32, Shape::scalar())]);
/// let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new())?;
/// writer.push(&[Value::tensor(&[7_i32])])?;
/// let reader = Reader::from_bytes(writer.into_bytes()?)?;
///
/// let npy = export_to(&reader, Stream(Vec::new()), TargetFormat::Npy, TargetOptions::new())?.0;
/// assert_eq!(npy[npy.len() - 4..], [7, 0, 0, 0]);
/// # Ok::<(), tensilo::Error>(())
/// ```
pub fn export_to<'a, T: Table, K: Sink>(
    table: &'a T,
    mut sink: K,
    format: TargetFormat,
    options: TargetOptions<'a>,
) -> Result<K, T::Error> {
    let path = sink.path().map(Path::to_path_buf);
    table.check_output(sink.identity(), path.as_deref())?;
    let export = TableExport::new(table, options)?;
    let mut out = BufWriter::with_capacity(1 << 16, &mut sink);
    match format {
        TargetFormat::Npy => npy::write(export, &mut out)?,
        TargetFormat::Npz => npy::write_archive(export, &mut out)?,
        TargetFormat::Safetensors => safetensors::write(export, &mut out)?,
        TargetFormat::WebDataset => webdataset::write(export, &mut out)?,
    }
    let flushed = out.into_inner().map_err(std::io::IntoInnerError::into_error).map(|_| ());
    let finished = flushed.and_then(|()| sink.sync()).and_then(|()| sink.publish());
    let finished = finished.map_err(|error| Error::io("finishing the file", error));
    finished.map_err(|error| match &path {
        Some(path) => error.with_path(path),
        None => error,
    })?;
    Ok(sink)
}
