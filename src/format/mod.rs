//! The structures of the file: bytes to structs and back, without I/O and without codecs. Each file
//! names the chapter of `format-spec/SPEC.md` that it implements.

pub(crate) mod chunk;
pub(crate) mod column_record;
pub(crate) mod content;
pub(crate) mod content_id;
mod field_tree;
mod flags;
mod followed_paths;
pub(crate) mod footer;
pub(crate) mod header;
mod hex;
pub(crate) mod index;
pub(crate) mod item_shapes;
pub(crate) mod lists;
pub(crate) mod part_table;
pub(crate) mod path;
pub(crate) mod region;
pub(crate) mod schema;
pub(crate) mod schema_block;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod trailer;

pub use content_id::ContentId;
pub use field_tree::FieldNode;
pub(crate) use flags::Flags;
#[cfg(feature = "import")]
pub(crate) use followed_paths::followed_paths;
pub use region::{FileId, RegionKind};
pub use schema::{CastSource, CastSpec, ColumnSchema, Extent, ListLevel, Metadata, Schema, Shape};

pub use crate::cast::CastFacts;
pub use crate::dtype::DType;
