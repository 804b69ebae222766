//! **tensilo** is an embeddable columnar tensor store: one self-describing file, checked to the last bit, out of which any
//! sample is read by its number at memory speed.
//!
//! * A [`Writer`] takes samples one at a time or in batches and writes a file front to back, into a file that appears when
//!   it is complete ([`AtomicFile`]) or any other [`Sink`]; [`Writer::append`] goes on with a file that exists.
//! * A [`Reader`] opens a file in constant time, from memory, a map or by position ([`Source`]).
//! * [`Column::view`] borrows a sample from the file; a [`Cursor`] reads, gathers and decodes; a `ParallelCursor` (feature
//!   `rayon`) gathers by many threads.
//! * [`verify()`] checks every byte; [`salvage()`] reads what is left of a damaged file.
//! * `import` and `export` (features `arrow`, `parquet`) convert from and to Apache Arrow and Parquet.
//!
//! The file format is defined by `format-spec/SPEC.md`, not by this code.
//!
//! ```
//! use tensilo::{ColumnSchema, DType, Reader, Schema, Shape, Stream, Value, Writer, WriterOptions, Profile};
//!
//! let schema = Schema::new([ColumnSchema::tensor("label", DType::I32, Shape::scalar())]);
//! let options = WriterOptions::new().profile(Profile::Raw);
//! let mut writer = Writer::new(Stream(Vec::new()), schema, &options)?;
//! for label in 0..1000_i32 {
//!     writer.push(&[Value::tensor(&[label])])?;
//! }
//! let file = writer.finish()?.sink.0;
//!
//! let reader = Reader::from_bytes(file)?;
//! let sample = reader.column("label")?.view(517)?.ok_or("raw chunks can be viewed")?;
//! assert_eq!(sample.as_slice::<i32>()?, [517]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layers
//!
//! Each module uses only those below it.
//!
//! | | modules | |
//! |---|---|---|
//! | 6 | `import`, `export`, `rewrite`, `mmap`, `file` | data and files of the outside world |
//! | 5 | `read`, `write` | chunks to samples and back; neither knows the other |
//! | 4 | `open` | sources of bytes, and the last commit of a file |
//! | 3 | `codec` | parts to stored bytes and back, and the choice of encodings |
//! | 2 | `format`, `batch` | bytes to structures and back, chapter by chapter |
//! | 1 | `kernel`, `checksum`, `pod`, `cast` | loops over elements |
//! | 0 | `error`, `limits`, `le`, `dtype`, `memory`, `names`, `threads` | |
//!
//! # Features
//!
//! `zstd` and `mmap` are on by default; `arrow`, `parquet` and `rayon` (`ParallelCursor`) are off. A file that needs a feature this build
//! lacks is refused when it is opened, with an error that names the feature.
//!
//! # Panics
//!
//! No function of this crate panics, on any input.
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
mod memory;
#[cfg(feature = "mmap")]
#[allow(unsafe_code, reason = "a mapped file can change under the reader: the caller promises that it does not")]
mod mmap;
mod names;
mod open;
mod pod;
mod read;
mod rewrite;
mod threads;
mod write;

pub use batch::{ColumnBatch, Value};
pub use codec::{Choice, Piece, Profile, Trial};
pub use error::{Advice, Error, ErrorKind, Result, display_path};
pub use format::{
    CastFacts, CastSpec, ColumnSchema, ContentId, DType, Extent, FileId, Metadata, RegionKind, Schema, Shape,
};
#[cfg(feature = "mmap")]
pub use mmap::MappedFile;
pub use open::{ColumnFacts, FileIdentity, InMemory, PositionedFile, Source};
pub use pod::Element;
#[cfg(feature = "rayon")]
pub use read::ParallelCursor;
pub use read::{
    ChunkInfo, Column, ColumnBuffer, Cursor, Damage, Explanation, Losses, LostSamples, OnLoss, OpenOptions, Reader,
    Rows, SalvageOptions, Salvaged, Sample, Verification, VerifyOptions, VerifyReport, salvage, verify,
};
pub use rewrite::RewriteOptions;
pub use write::{AppendedFile, AtomicFile, Sink, Stream, Summary, Writer, WriterOptions};

/// The examples of the README, compiled and run.
#[cfg(all(doctest, feature = "zstd"))]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
