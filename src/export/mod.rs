//! Export to Arrow and Parquet, without loss of values and nulls.
//!
//! Importing the result gives the same columns, but what a conversion was told comes back as it is
//! found: a shape that was declared, if tensors are exported as lists
//! ([`TensorForm::Extension`] keeps shapes), and the type of rounded columns.
//!
//! | tensilo column | Arrow type |
//! |---|---|
//! | rank 0 | the primitive type; bf16 becomes `Float32`, with its NaN payloads |
//! | `utf8`, `bytes` | `Utf8`, `Binary` |
//! | fixed shape of rank 1 or more | extension `arrow.fixed_shape_tensor` over `FixedSizeList` |
//! | ragged, rank 1 | `List` |
//! | ragged, rank 2 or more | extension `arrow.variable_shape_tensor` over `data` and `shape` |
//!
//! If the file was made from Arrow or Parquet, it has the source's schema (metadata
//! `ARROW:schema`). Its fields come back as they were: layouts of strings, dictionaries, kinds of
//! lists, maps, names of items, nullability, metadata. Tensors that were lists are lists again,
//! unless [`ExportOptions::tensors`] says otherwise. A field that its columns do not fit, and one
//! of which a column is missing, has the types above. Run-end encoded fields come back
//! decoded, and dictionaries of bools, lists, structs or maps.
//!
//! Columns that were rounded get the type that they had before, except f16 that was rounded to bf16
//! and becomes `Float32`, because f16 does not have all values of bf16. Floats that were integers
//! or decimals stay floats. With [`ExportOptions::stored_types`] they have the type of the table.
//!
//! * Elements are never null; samples may be where the column is nullable. (In Parquet the schema
//!   calls the elements of tensors nullable nonetheless, because only then do Arrow's C++ and
//!   Python libraries see a tensor.) The shape of a null tensor is 0 in its varying dimensions.
//! * A column that was imported from dates, times, timestamps, durations, fixed-size binaries,
//!   decimals, intervals or nulls (metadata `arrow.type`) gets its Arrow type back, if its type and
//!   its innermost dimension are those that an import gives it.
//! * Parquet has no decimals with a negative scale, or with a scale over the precision, and no
//!   intervals of months, days and nanoseconds. There these columns have their stored type, and
//!   `arrow.type` in the metadata of the field.
//! * Parquet has no unit of seconds, and no dates in milliseconds. There `timestamp[s]`,
//!   `time32[s]` and `date64` are plain integers. The embedded Arrow schema has their type, and an
//!   import restores it, as Arrow's Rust library does. Its C++ library, and so Python's, does not.
//! * Metadata of file and column become metadata of schema and field (`pandas` and `huggingface`
//!   only if all fields that they describe are exported as the source had them); `arrow.dim_names`
//!   of a tensor (a JSON array) becomes a member of its extension type. What a cast did is told by
//!   the field's metadata `tensilo.cast`.
//! * Columns that are fields of one struct are joined, and null structs are null again. If a file
//!   has no column for the nulls of a struct, the struct may be null if all its fields may. Other
//!   columns keep their names, also those with dots.
//!
//! A [`Table`] of several files becomes one output, in which no trace is left of the division:
//! batches go on from file to file. Samples of a file that does not have a column are null in it.
//!
//! Batches, row groups and thereby memory are bounded (a single sample may be larger). An Arrow
//! file also takes the values of its dictionaries, at most 256 MiB each; what has more is refused.
//! The same file gives the same bytes.

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
