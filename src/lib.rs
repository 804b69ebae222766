//! **tensilo** is an embeddable columnar tensor store: one self-describing file, checked to the last bit, out of which any
//! sample is read by its number at memory speed.
#![deny(missing_docs, unsafe_code, unsafe_op_in_unsafe_fn)]
#![warn(clippy::undocumented_unsafe_blocks, clippy::unwrap_used, clippy::expect_used)]

#[cfg(feature = "arrow")]
mod arrow_type;
mod batch;
mod cast;
mod checksum;
mod codec;
mod dtype;
mod error;
#[cfg(feature = "arrow")]
pub mod export;
mod file;
mod format;
#[cfg(feature = "arrow")]
pub mod import;
#[allow(unsafe_code, reason = "SIMD: calls of target features and vector loads, each with its argument")]
pub mod kernel;
mod le;
pub mod limits;
#[cfg(feature = "mmap")]
#[allow(unsafe_code, reason = "a mapped file can change under the reader: the caller promises that it does not")]
mod mmap;
mod pod;
mod read;
mod write;

pub use batch::{ColumnBatch, Value};
pub use codec::Profile;
pub use error::{Error, ErrorKind, Result};
pub use file::PositionedFile;
pub use format::{CastFacts, CastSpec, ColumnSchema, DType, Extent, FileId, Metadata, RegionKind, Schema, Shape};
#[cfg(feature = "mmap")]
pub use mmap::MappedFile;
pub use pod::Element;
pub use read::{
    ChunkInfo, Column, ColumnBuffer, ColumnFacts, Cursor, Damage, InMemory, OpenOptions, Reader, Rows, Sample, Source,
    Verification, VerifyOptions, VerifyReport, verify,
};
pub use write::{AtomicFile, Sink, Stream, Summary, Writer, WriterOptions};
