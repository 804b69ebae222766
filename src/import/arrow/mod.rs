//! The items of Arrow's Rust library that occur in the signatures of [`import`](super) and
//! [`export`](crate::export), under the names that they have in the crate `arrow`.
//!
//! The crate `arrow` itself is not a dependency: it includes kernels (casts, sorts, comparisons)
//! that take minutes to build and that tensilo does not use. The types are the same, so a program
//! that depends on `arrow` can pass its own batches.

pub(super) mod decode;
pub(super) mod elements;
mod fields;
pub(super) mod ipc_files;
mod metadata;
pub(super) mod paths;
pub(super) mod records;
pub(super) mod rows;
pub(super) mod schema_bytes;
pub(super) mod types;
pub(super) mod unified;

pub use arrow_array::{ffi, ffi_stream};
pub use arrow_buffer::buffer;
pub use arrow_ipc as ipc;

/// Arrays, their builders, and record batches.
pub mod array {
    pub use arrow_array::builder::*;
    pub use arrow_array::cast::*;
    pub use arrow_array::iterator::*;
    pub use arrow_array::*;
    pub use arrow_data::{ArrayData, ArrayDataBuilder};
}

/// Types of arrays, fields and schemas.
pub mod datatypes {
    pub use arrow_array::types::*;
    pub use arrow_array::{ArrowNumericType, ArrowPrimitiveType};
    pub use arrow_buffer::{ArrowNativeType, ToByteSlice, i256};
    pub use arrow_schema::{
        DataType, Field, FieldRef, Fields, IntervalUnit, Schema, SchemaBuilder, SchemaRef, TimeUnit, UnionFields,
        UnionMode,
    };
}

/// The error of Arrow's crates.
pub mod error {
    pub use arrow_schema::ArrowError;
}

/// Record batches and their readers.
pub mod record_batch {
    pub use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchOptions, RecordBatchReader, RecordBatchWriter};
}
