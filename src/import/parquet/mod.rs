//! Parquet files, read through the decoder of the crate `parquet`.
//!
//! The decoder trusts a file: it allocates what the file claims, recurses as deep as the schema,
//! and follows the embedded Arrow schema. So everything it relies on is checked first: the
//! `footer`, the `pages`, and the number of rows in `file`. `schema` corrects what the decoder
//! would refuse or change silently. `batch_rows` chooses batch sizes that bound memory,
//! `leaf_nulls` reads null statistics, and `thrift` parses headers without allocating.

mod batch_rows;
mod file;
mod footer;
mod leaf_nulls;
mod pages;
mod schema;
mod thrift;

pub(super) use file::open;
pub(super) use schema::encrypted_footer;
