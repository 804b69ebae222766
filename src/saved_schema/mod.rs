//! The Arrow schema of a source, kept in the metadata of a file, so that an export can restore
//! types that the columns do not tell: large strings, dictionaries, kinds of lists, maps, names of
//! items.
//!
//! It is kept as in Parquet files: the value of `ARROW:schema` is the base64 of an encapsulated
//! IPC message with the schema (`FF FF FF FF`, the length as u32, a flatbuffer). Any Arrow library
//! reads it, such as `pyarrow.ipc.read_schema`. The metadata of the schema itself are not in it,
//! because they are those of the file. Two entries of a field's metadata are the importer's:
//! [`DICTIONARY`] and [`NAME`].
//!
//! Without the feature `arrow` the value is opaque.

#[cfg(feature = "arrow")]
mod fields;
#[cfg(feature = "parquet")]
mod logical_type;
#[cfg(not(feature = "arrow"))]
mod opaque;

#[cfg(feature = "arrow")]
pub(crate) use fields::{columns, encoded, fields, forget_order, join, rename, without_values};
#[cfg(feature = "parquet")]
pub(crate) use logical_type::{LOGICAL_TYPE, VARIANT, entry, of_field as logical_type};
#[cfg(not(feature = "arrow"))]
pub(crate) use opaque::{forget_order, join, rename};

/// The metadata key, which is that of Parquet files.
pub(crate) const KEY: &str = "ARROW:schema";

/// Longer values of a field's metadata are not in the schema. Those of columns have them.
#[cfg(feature = "arrow")]
pub(crate) const METADATA_BYTES: usize = 64 << 10;

/// The metadata key of a field in the schema: the values of its dictionary, as a JSON array.
#[cfg(feature = "arrow")]
pub(crate) const DICTIONARY: &str = "tensilo.dictionary";

/// The metadata key of a field in the schema: the name that it had in the source, if another field
/// has it, too.
#[cfg(feature = "arrow")]
pub(crate) const NAME: &str = "tensilo.name";
