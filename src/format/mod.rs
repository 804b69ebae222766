//! Converts the structures of a file from bytes to structs and back, without I/O or codecs.
//!
//! Parsing checks every rule of `format-spec/SPEC.md` for which these bytes are sufficient. An
//! error names the broken rule. Callers check the rules that involve other regions. Each module
//! names the chapters that it implements.

pub(crate) mod chunk;
pub(crate) mod column_record;
pub(crate) mod content;
pub(crate) mod file_header;
pub(crate) mod footer;
pub(crate) mod index;
pub(crate) mod path;
pub(crate) mod region;
pub(crate) mod schema;
pub(crate) mod schema_block;
#[cfg(test)]
mod tests;

pub(crate) use file_header::Flags;
pub use footer::ContentId;
pub use path::FieldNode;
#[cfg(feature = "import")]
pub(crate) use path::field_paths;
pub use region::{FileId, RegionKind};
pub use schema::{CastSource, CastSpec, ColumnSchema, Extent, ListLevel, Metadata, Shape};
pub use schema_block::Schema;

pub use crate::element::cast::CastFacts;
pub use crate::element::dtype::DType;
