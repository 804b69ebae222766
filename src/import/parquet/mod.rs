//! Parquet files.

mod batch_rows;
mod check;
mod errors;
mod file;
mod leaf_nulls;
mod mend;
mod pages;
mod raw;
mod thrift;

pub(super) use errors::encrypted_footer;
pub(super) use file::open;
