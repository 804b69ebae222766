//! What a column means beyond its elements: logical types, the Arrow types that a file remembers,
//! and the Arrow schema in its metadata.

pub(crate) mod arrow_type;
pub(crate) mod logical_type;
#[cfg(feature = "import")]
pub(crate) mod saved_schema;
