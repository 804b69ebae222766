//! Options of conversions, and their progress.

use crate::{DType, Shape, WriterOptions};

/// The treatment of null elements inside tensors, which a tensilo file cannot store.
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
/// Columns are named as they will be called in the file; the name of a struct means all columns in
/// it.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    /// Round all float columns, scalars included, to bf16 (those named in `casts` excepted).
    pub bf16: bool,
    /// Round these columns to these types (bf16, f16 or f32), to nearest with ties to even. A
    /// column that has the type already stays as it is.
    pub casts: Vec<(String, DType)>,
    /// Only these columns, in this order; all if `None`.
    pub columns: Option<Vec<String>>,
    /// Not these columns.
    pub skip: Vec<String>,
    /// Shapes of list columns that are known beforehand and need not be found. A sample of another
    /// shape is an error.
    pub shapes: Vec<(String, Shape)>,
    /// The treatment of null elements inside tensors.
    pub null_elements: NullElements,
    /// How the file is written. [`convert`](super::convert) sets its origin from the inputs' own
    /// metadata.
    pub writer: WriterOptions,
    /// Whether a file at the destination is replaced.
    pub overwrite: bool,
    /// Whether an input called `-` is the standard input, as on a command line, and not a file of
    /// that name.
    pub dash_is_stdin: bool,
}

/// How to append.
#[derive(Clone, Debug, Default)]
pub struct AppendOptions {
    /// Leave out columns of an input that the file does not have, which otherwise are an error.
    pub skip_others: bool,
    /// The treatment of null elements inside tensors.
    pub null_elements: NullElements,
    /// How the new chunks are written, see [`Writer::append`](crate::Writer::append).
    pub writer: WriterOptions,
    /// Whether an input called `-` is the standard input, as on a command line, and not a file of
    /// that name.
    pub dash_is_stdin: bool,
}

/// How far a conversion is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Finding shapes: rows looked at, of how many (if known).
    Scanning(u64, Option<u64>),
    /// Writing: rows written, of how many (if known).
    Converting(u64, Option<u64>),
}
