//! Parquet files.

mod batch_rows;
mod file;
mod footer;
mod leaf_nulls;
mod pages;
mod schema;
mod thrift;

pub(super) use file::open;
pub(super) use schema::encrypted_footer;
