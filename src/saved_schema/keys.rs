//! The metadata keys.

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
