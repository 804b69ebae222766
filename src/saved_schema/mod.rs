//! The Arrow schema of a source, kept in the metadata of a file, so that an export can restore
//! types that the columns do not tell: large strings, dictionaries, kinds of lists, maps, names of
//! items.
//!
//! It is kept as in Parquet files: the value of `ARROW:schema` is the base64 of an encapsulated
//! IPC message with the schema (`FF FF FF FF`, the length as u32, a flatbuffer). Any Arrow library
//! reads it, such as `pyarrow.ipc.read_schema`. The metadata of the schema itself are not in it,
//! because they are those of the file. Two entries of a field's metadata are the importer's:
//! `tensilo.dictionary` and `tensilo.name`.
//!
//! Without the feature `arrow` the value is opaque.

#[cfg(feature = "arrow")]
mod fields;
mod keys;
#[cfg(feature = "parquet")]
mod logical_type;
#[cfg(not(feature = "arrow"))]
mod opaque;

#[cfg(feature = "arrow")]
pub(crate) use fields::{columns, encoded, fields, forget_order, join, rename, without_values};
pub(crate) use keys::KEY;
#[cfg(feature = "arrow")]
pub(crate) use keys::{DICTIONARY, METADATA_BYTES, NAME};
#[cfg(feature = "parquet")]
pub(crate) use logical_type::{LOGICAL_TYPE, VARIANT, entry, of_field as logical_type};
#[cfg(not(feature = "arrow"))]
pub(crate) use opaque::{forget_order, join, rename};
