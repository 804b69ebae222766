//! Export to Arrow and Parquet, without loss of values and nulls.
//!
//! Importing the result gives the same columns, except that two things are inferred again: the
//! declared shapes of tensors that are exported as lists ([`TensorForm::Extension`] keeps shapes),
//! and the types of rounded columns.
//!
//! | tensilo column | Arrow type |
//! |---|---|
//! | rank 0 | the primitive type; bf16 becomes `Float32`, with its NaN payloads |
//! | `utf8`, `bytes` | `Utf8`, `Binary` |
//! | fixed shape of rank 1 or more | extension `arrow.fixed_shape_tensor` over `FixedSizeList` |
//! | ragged, rank 1 | `List` |
//! | ragged, rank 2 or more | extension `arrow.variable_shape_tensor` over `data` and `shape` |
//!
//! A file that was made from Arrow or Parquet has the source's schema (metadata `ARROW:schema`),
//! and its fields are restored: layouts of strings, dictionaries, kinds of lists, maps, names of
//! items, nullability, metadata. Tensors that were lists are lists again, unless
//! [`ExportOptions::tensors`] says otherwise. A field has the types above if its columns do not fit
//! it or if one of them is missing. Run-end encoded fields come back decoded, and so do
//! dictionaries of bools, lists, structs or maps.
//!
//! Rounded columns get the type that they had before. The exception is f16 that was rounded to
//! bf16, which becomes `Float32`, because f16 does not have all values of bf16. Floats that were
//! integers or decimals stay floats. With [`ExportOptions::stored_types`], rounded columns have the
//! types of the table.
//!
//! * Elements are never null; samples may be if the column is nullable. (In Parquet, the schema
//!   still declares the elements of tensors nullable, because otherwise Arrow's C++ and Python
//!   libraries do not recognize a tensor.) The shape of a null tensor is 0 in its varying
//!   dimensions.
//! * A column that was imported from dates, times, timestamps, durations, fixed-size binaries,
//!   decimals, intervals or nulls (metadata `arrow.type`) gets its Arrow type back, if its type and
//!   innermost dimension are what an import would give it.
//! * Parquet has no decimals with a negative scale or with a scale above the precision, and no
//!   intervals of months, days and nanoseconds. In Parquet, such columns keep their stored type,
//!   and the metadata of the field keeps `arrow.type`.
//! * Parquet has no unit of seconds, and no dates in milliseconds. So `timestamp[s]`, `time32[s]`
//!   and `date64` become plain integers. The embedded Arrow schema has their type. An import
//!   restores it, and so does Arrow's Rust library, but Arrow's C++ and Python libraries do not.
//! * The metadata of the file and of its columns becomes the metadata of the schema and of its
//!   fields. `pandas` and `huggingface` are exported only if all fields that they describe are
//!   exported as the source had them. `arrow.dim_names` of a tensor (a JSON array) becomes a member
//!   of its extension type. `tensilo.cast` in the field's metadata says what a cast did.
//! * Columns that are fields of one struct become a struct again, and null structs are null again.
//!   If a file has no column for the nulls of a struct, the struct is nullable if all its fields
//!   are. Other columns keep their names, even with dots.
//!
//! A [`Table`] of several files becomes one output that does not show where files end: batches
//! continue from file to file. If a file lacks a column, the column is null for the samples of that
//! file.
//!
//! Batches and row groups are bounded, and so is memory (a single sample may be larger). An Arrow
//! file also needs memory for the values of its dictionaries, at most 256 MiB each; a larger
//! dictionary is an error. The same file gives the same bytes.

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
pub use table::{Table, TablePart};
