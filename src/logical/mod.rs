//! What a column means beyond its elements: logical types, the Arrow type of its source, and the
//! Arrow schema in the file's metadata.

pub(crate) mod arrow_type;
pub(crate) mod logical_type;
#[cfg(feature = "import")]
pub(crate) mod saved_schema;
