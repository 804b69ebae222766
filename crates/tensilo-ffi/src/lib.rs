//! The C library of **tensilo**, an embeddable columnar tensor store.
//!
//! `include/tensilo.h` declares everything, with its documentation; it is generated from this
//! crate. Rust programs use the crates `tensilo` and `tensilo-data` instead.
//!
//! | handle | what it is |
//! |---|---|
//! | [`tensilo_reader`] | one open file |
//! | [`tensilo_cursor`] | samples of one column of a file: one, a range, or any |
//! | [`tensilo_buffer`] | memory of the library for samples that are ragged, nested or null |
//! | [`tensilo_dataset`] | one or many files, read as one sequence of samples |
//! | [`tensilo_loader`], [`tensilo_batches`], [`tensilo_batch`] | batches that threads read ahead |
//! | [`tensilo_sample_reader`] | batches of any samples of a dataset |
//! | [`tensilo_report`] | the result of a verification |
//! | [`tensilo_error`] | what is wrong, where, and what to do next |
//!
//! No function panics across the border to C: see `call.rs`.
#![allow(non_camel_case_types, reason = "names are those of the header")]
#![allow(clippy::missing_safety_doc, reason = "the header states the rules for all functions once")]
#![deny(missing_docs, unsafe_op_in_unsafe_fn)]
#![warn(clippy::undocumented_unsafe_blocks, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod arguments;
mod arrow;
#[cfg(not(feature = "arrow"))]
mod arrow_absent;
#[cfg(feature = "arrow")]
mod arrow_data;
#[cfg(feature = "arrow")]
mod arrow_export;
mod arrow_structs;
mod batch;
mod batches;
mod buffer;
mod call;
mod cursor;
mod dataset;
mod dtype;
mod error;
mod io;
mod lent_memory;
mod loader;
mod loader_options;
mod reader;
mod sample_reader;
mod samples;
mod schema;
mod status;
mod text;
mod verify;
mod version;
mod versioned;

pub use arrow::*;
pub use arrow_structs::*;
pub use batch::*;
pub use batches::*;
pub use buffer::*;
pub use cursor::*;
pub use dataset::*;
pub use dtype::*;
pub use error::*;
pub use io::*;
pub use lent_memory::*;
pub use loader::*;
pub use loader_options::*;
pub use reader::*;
pub use sample_reader::*;
pub use samples::*;
pub use schema::*;
pub use status::*;
pub use verify::*;
pub use version::*;
