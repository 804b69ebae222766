//! Parquet files, read through the decoder of the crate `parquet`.
//!
//! The decoder trusts a file: it allocates as much memory as the file claims to need, recurses as
//! deep as the schema, and follows the embedded Arrow schema. So everything on which it relies is
//! checked first. `footer` checks the footer, `pages` the pages, and `file` the number of rows.
//! `schema` corrects files that the decoder would refuse, and types whose values it would silently
//! change. `batch_rows` chooses batch sizes that bound memory, `leaf_nulls` reads null statistics,
//! and `thrift` parses headers without allocating.

mod batch_rows;
mod file;
mod footer;
mod leaf_nulls;
mod pages;
mod schema;
mod thrift;

pub(super) use file::open;
pub(super) use schema::encrypted_footer;
