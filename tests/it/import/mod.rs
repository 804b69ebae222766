//! Tests of importers: how values are stored, what is refused, and that malformed input does no
//! harm.

mod append;
mod arrow_types;
mod casts;
mod changed;
mod common;
mod decimals;
#[cfg(feature = "parquet")]
mod embedded_schema;
mod encoded;
mod encodings;
#[cfg(feature = "parquet")]
mod folders;
#[cfg(feature = "parquet")]
mod foreign;
mod intervals;
mod ipc;
#[cfg(feature = "parquet")]
mod malformed;
mod native;
mod nested;
mod nulls;
mod other_programs;
mod outputs;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod partitions;
#[cfg(feature = "parquet")]
mod planned;
mod refusals;
mod renamed;
mod restored;
mod restored_any;
mod restored_inputs;
mod restored_leaves;
mod restored_limits;
#[cfg(feature = "parquet")]
mod restored_parquet;
mod sample_numbers;
mod shapes;
mod shards;
#[cfg(feature = "parquet")]
mod statistics;
#[cfg(feature = "parquet")]
mod stores;
mod struct_inputs;
mod struct_values;
mod structs;
mod tensors;
#[cfg(feature = "parquet")]
mod threads;
#[cfg(feature = "parquet")]
mod thrift;
#[cfg(feature = "parquet")]
mod unfolded;
mod united;
#[cfg(feature = "parquet")]
mod values;
