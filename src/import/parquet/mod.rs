//! Parquet files.

mod annotations;
mod batch_rows;
mod changed;
mod check;
mod dictionaries;
mod errors;
mod file;
mod footer;
mod leaf_nulls;
mod leaves;
mod mend;
mod pages;
mod raw;
mod thrift;
mod zones;

pub(super) use errors::encrypted_footer;
pub(super) use file::open;
