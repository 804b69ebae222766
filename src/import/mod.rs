//! Conversion of Arrow and Parquet data to tensilo files.
//!
//! [`convert`] takes files, and [`append()`] appends them to a file that exists; [`write_batches`] and [`write_reader`] take record batches that a program has in memory, or
//! gets through Arrow's C data interface
//! (`arrow::ffi_stream::RecordBatchStreamReader` is a record batch reader). The [`arrow`] crate is re-exported, because
//! its types are part of these signatures.
//!
//! # What becomes what
//!
//! | Arrow | tensilo |
//! |---|---|
//! | integers, floats (f16 too), bool | a scalar column of that type |
//! | utf8, binary (large, view, dictionary-encoded too) | `utf8`, `bytes` |
//! | fixed-size binary | `bytes`, metadata `arrow.type` = `fixed_size_binary[16]` |
//! | date, time, timestamp, duration | `i64`, metadata `arrow.type` such as `timestamp[us, UTC]` |
//! | list, large list, list view, fixed-size list, nested to any depth | a tensor, one dimension for each level |
//! | `arrow.fixed_shape_tensor`, `arrow.variable_shape_tensor` | a tensor of that shape |
//! | struct | its fields, named `struct.field`; a null struct makes all of them null |
//! | dictionary- or run-end-encoded | what the decoded values become |
//! | decimal, map, union, interval, null, lists of strings or structs, empty structs | refused; skip the column |
//!
//! A list's dimension is *fixed* if it has the same length in every sample that is not null (which a first pass over
//! the list columns finds, in bounded memory), else *varying*; where no sample tells, it is varying. An empty
//! list says nothing about the dimensions inside it. Within a sample all rows of a dimension are of one length.
//!
//! A column is nullable if its field or a struct around it is. A null list is a null sample, an empty list is an extent of 0, and a null
//! *inside* a tensor is refused unless [`ConvertOptions::null_elements`] says what to store.
//!
//! # Metadata
//!
//! A field's metadata becomes its column's, the schema's becomes the file's (the first input's, if there are several). Left out are
//! `ARROW:schema`, `PARQUET:field_id` and `pandas`, which describe the source's own layout, and the tensor extensions, which the shape
//! says; their dimension names are kept under `arrow.dim_names`. Entries over a limit of the format are left out and their keys
//! listed under `import.dropped_metadata`.
//!
//! # Memory
//!
//! A Parquet file is decoded about 16 MiB at a time, whatever the size of its row groups: as many rows as the rows
//! before them suggest. An Arrow file or stream is decoded one record batch at a time.
//!
//! # Malformed input
//!
//! It gives an error that names the file, and nothing at the destination. Checksums of Parquet pages are checked where the
//! file has them. A panic of a decoder becomes an error, too; the process's panic hook has its say before. What pages and messages claim
//! of their lengths is compared with the bytes that are there. What remains: a Brotli page can become longer than it says.

mod append;
mod assemble;
mod column;
mod elements;
mod extension;
mod input;
mod ipc;
mod ipc_check;
mod memory;
mod metadata;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(not(feature = "parquet"))]
#[path = "parquet_absent.rs"]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_check;
#[cfg(feature = "parquet")]
mod parquet_pages;
mod plan;
mod run;
mod select;
mod shape;
mod slices;
mod source;
#[cfg(feature = "parquet")]
mod thrift;
mod types;
mod walk;

pub use ::arrow;
pub use memory::{write_batches, write_reader};

use crate::{AtomicFile, DType, Result, Shape, WriterOptions};
use std::path::{Path, PathBuf};

/// What to do with a null element inside a tensor, which a tensilo file cannot store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NullElements {
    /// Refuse the input, naming column and row.
    #[default]
    Refuse,
    /// Store NaN (float columns; others are refused).
    Nan,
    /// Store zero.
    Zero,
}

/// How to convert.
///
/// Columns are named as they will be called in the file; the name of a struct means all columns in it.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    /// Round all float columns, scalars included, to bf16 (those named in `casts` excepted).
    pub bf16: bool,
    /// Round these columns to these types (bf16, f16 or f32), to nearest with ties to even. A column that has the type already stays as it is.
    pub casts: Vec<(String, DType)>,
    /// Only these columns, in this order; all if `None`.
    pub columns: Option<Vec<String>>,
    /// Not these columns.
    pub skip: Vec<String>,
    /// Shapes of list columns that are known beforehand and need not be found. A sample of another shape is an error.
    pub shapes: Vec<(String, Shape)>,
    /// What to do with null elements inside a tensor.
    pub null_elements: NullElements,
    /// How the file is written. [`convert`] sets its origin from the inputs' own metadata.
    pub writer: WriterOptions,
    /// Whether a file at the destination is replaced.
    pub overwrite: bool,
}

/// How to append.
#[derive(Clone, Debug, Default)]
pub struct AppendOptions {
    /// Leave out columns of an input that the file does not have, which otherwise are an error.
    pub skip_others: bool,
    /// What to do with null elements inside a tensor.
    pub null_elements: NullElements,
    /// How the new chunks are written, see [`Writer::append`](crate::Writer::append).
    pub writer: WriterOptions,
}

/// How far a conversion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Finding shapes: rows looked at, of how many (if known).
    Scanning(u64, Option<u64>),
    /// Writing: rows written, of how many (if known).
    Converting(u64, Option<u64>),
}

/// Converts files to one file at `output`, and returns the number of samples.
///
/// An input is a Parquet file, an Arrow IPC file or an Arrow IPC stream, recognised by its first bytes, or a directory or
/// glob of Parquet files (`*.parquet`, hidden ones excepted), which are read in the byte order of their names. All must have the same
/// columns, and are read in the order given. A stream from a pipe is first copied to a temporary file.
///
/// The output appears when it is complete; after an error nothing has changed at `output`.
pub fn convert(
    inputs: &[PathBuf],
    output: &Path,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<u64> {
    let sink = AtomicFile::create(output, options.overwrite)?;
    let inputs = input::open_all(inputs)?;
    let mut options = options.clone();
    options.writer = options.writer.origin(input::origin(&inputs));
    let sources: Vec<&dyn source::Source> = inputs.iter().map(|input| input.source()).collect();
    let summary = run::run(&sources, sink, &options, progress)?;
    Ok(summary.sample_count)
}

/// Appends files to the tensilo file `file`, and returns the number of samples that were appended.
///
/// Inputs are those of [`convert`]. Each has the columns of the file, in any order: the same names, types and shapes. The values of a column that
/// was rounded when the file was made are rounded again, from the same type. An input may declare that a column could have
/// nulls where the file's has none, as long as there is no null. Metadata of the inputs is not looked at, but for the
/// Arrow type that a column was made from. All that differs is in the error.
///
/// The samples appear together, when all are written; the file is finished then. After an error the file is as it was, to the last byte. After a kill,
/// what was written stands behind the last commit, where readers do not look, and the next [`append()`] says what can be done; see
/// [`Writer::append`](crate::Writer::append), also for what else is refused.
pub fn append(
    inputs: &[PathBuf],
    file: &Path,
    options: &AppendOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<u64> {
    append::append(inputs, file, options, progress)
}
