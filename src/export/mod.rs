//! Export to Arrow and Parquet, without loss of values or nulls.
//!
//! Importing the result yields the same columns, except that two properties are inferred again: the
//! declared shapes of tensors that are exported as lists ([`TensorForm::Extension`] preserves
//! shapes), and the types of rounded columns.
//!
//! | tensilo column | Arrow type |
//! |---|---|
//! | no dimensions | the primitive type; bf16 becomes `Float32`, with its NaN payloads |
//! | `utf8`, `bytes` | `Utf8`, `Binary` |
//! | fixed shape | extension `arrow.fixed_shape_tensor` over `FixedSizeList` |
//! | ragged, one dimension | `List` |
//! | ragged, several dimensions | extension `arrow.variable_shape_tensor` over `data` and `shape` |
//!
//! A file that was converted from Arrow or Parquet contains the schema of its source (metadata
//! `ARROW:schema`). An export restores the fields of this schema: string layouts, dictionaries,
//! list types, maps, item names, nullability and metadata. Tensors that were lists become lists
//! again, unless [`ExportOptions::tensors`] requests another form. If the columns of a field do not
//! fit the schema of the source, or if one of them is missing, the field has the types above.
//! Run-end encoded fields are exported decoded, and so are dictionaries of bools, lists, structs or
//! maps.
//!
//! Rounded columns get the type that they had before they were rounded. The exception is f16 that
//! was rounded to bf16, which becomes `Float32`, because f16 cannot represent all values of bf16.
//! Floats that were integers or decimals remain floats. With [`ExportOptions::stored_types`],
//! rounded columns have the types in the table above.
//!
//! * Elements are never null. Samples can be null if the column is nullable. (In Parquet, the
//!   schema still declares the elements of tensors nullable, because otherwise Arrow's C++ and
//!   Python libraries do not recognize a tensor.) The varying extents of a null tensor are 0.
//! * A column that was imported from dates, times, timestamps, durations, fixed-size binaries,
//!   decimals, intervals or nulls (metadata `arrow.type`) gets its Arrow type back, if its type and
//!   innermost dimension are the ones that an import would produce.
//! * Parquet has no decimals with a negative scale or with a scale above the precision, and no
//!   intervals of months, days and nanoseconds. In Parquet, these columns have their stored type,
//!   and the metadata of the field retains `arrow.type`.
//! * Parquet has no unit of seconds, and no dates in milliseconds. Therefore, `timestamp[s]`,
//!   `time32[s]` and `date64` become plain integers, and only the embedded Arrow schema states
//!   their type. An import restores it, and so does Arrow's Rust library, but Arrow's C++ and
//!   Python libraries do not.
//! * The metadata of the file and of its columns becomes the metadata of the schema and of its
//!   fields. `pandas` and `huggingface` are exported only if all fields that they describe are
//!   exported exactly as they were in the source. `arrow.dim_names` of a tensor (a JSON array)
//!   becomes a member of its extension type. `tensilo.cast` in the metadata of a field summarizes
//!   the errors of a cast.
//! * Columns that are fields of one struct become a struct again, and null structs are null again.
//!   If a file has no column for the nulls of a struct, the struct is nullable if all its fields
//!   are. Other columns keep their names, even names with dots.
//!
//! A [`Table`] of several files becomes one output that does not show where a file ends, because
//! batches continue from file to file. If a file lacks a column, the column is null for the samples
//! of that file.
//!
//! Batches and row groups have a maximum size, which only a single sample can exceed, so the memory
//! for an export is bounded. An Arrow file also requires memory for the values of its dictionaries.
//! A dictionary of more than 256 MiB is an error. Exports of the same file always have the same
//! bytes.

mod arrow_samples;
mod batches;
mod column;
mod dictionary;
mod elements;
mod field;
mod files;
#[cfg(feature = "parquet")]
mod parquet;
mod restore;
mod retype;
mod table;

pub use arrow_samples::ArrowSamples;
pub use batches::{Batches, batches, table_batches};
pub use field::{TensorForm, imported_type};
pub use files::{ExportFormat, ExportOptions, export, export_into};
pub(crate) use restore::plain_fields;
pub use table::{Table, TableGroup};
