//! The C library of **tensilo**, an embeddable columnar tensor store.
//!
//! `include/tensilo.h` declares and documents everything; cbindgen generates it from this crate.
//! Rust programs use the crates `tensilo` and `tensilo-data` instead.
//!
//! | handle | what it is |
//! |---|---|
//! | [`tensilo_reader`] | one open file |
//! | [`tensilo_cursor`] | reads samples of one column of a file |
//! | [`tensilo_buffer`] | memory of the library for samples that are ragged, nested or null |
//! | [`tensilo_dataset`] | one or more files, read as one sequence of samples |
//! | [`tensilo_loader`], [`tensilo_batches`], [`tensilo_batch`] | batches that threads read ahead |
//! | [`tensilo_sample_reader`] | batches of any samples of a dataset |
//! | [`tensilo_report`] | the result of a verification |
//! | [`tensilo_error`] | what is wrong, where, and what to do next |
//!
//! Functions that can fail return a status. Structs state their size, so that later releases can
//! add members. No panic crosses the boundary to C. The module `boundary` enforces these rules for
//! all functions. Each of the other modules contains a group of related handles.
#![allow(non_camel_case_types, reason = "the header uses the same names")]
#![allow(clippy::missing_safety_doc, reason = "the header states the rules for all functions once")]
#![deny(missing_docs, unsafe_op_in_unsafe_fn)]
#![warn(clippy::undocumented_unsafe_blocks, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

// In the order of the header. Each blank line keeps rustfmt from sorting the next module.
mod boundary;

mod schema;

mod reader;

mod cursor;

mod samples;

mod batch;

mod dataset;

mod loader;

mod lent_memory;

mod arrow;

mod verify;

pub use arrow::*;
pub use batch::*;
pub use boundary::error::*;
pub use cursor::*;
pub use dataset::*;
pub use lent_memory::*;
pub use loader::*;
pub use reader::*;
pub use samples::*;
pub use schema::*;
pub use verify::*;

use std::ffi::c_char;

/// Returns the version of the library, such as `0.1.0`. The string is static: do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn tensilo_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
