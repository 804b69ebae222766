//! **tensilo** is an embeddable columnar tensor store. One self-describing file holds the tensors,
//! texts and byte strings of a training set. Every byte is covered by a checksum, and any sample
//! can be read by its index at memory speed.
//!
//! * A [`Writer`] takes samples one at a time or in batches, and writes a file from front to back.
//!   The destination is a file that appears only when it is complete
//!   ([`AtomicFile`](sink::AtomicFile)), or any other [`Sink`](sink::Sink). [`Writer::append`]
//!   continues an existing file.
//! * A [`Reader`] opens a file in constant time: from memory, from a memory map, or with positional
//!   reads ([`Source`](source::Source)).
//! * [`Column::view`] borrows a sample from the file. A [`Cursor`] reads, gathers and decodes. A
//!   `ParallelCursor` (feature `rayon`) gathers on several threads.
//! * [`verify`](verify::verify) checks every byte. [`salvage`](salvage::salvage) reads the intact
//!   samples of a damaged file.
//! * `import` and `export` (features `arrow` and `parquet`) convert from and to Apache Arrow and
//!   Parquet. `import` (feature `import`) also converts tensilo files.
//!
//! `format-spec/SPEC.md` and the documents that it lists define the file format; this crate
//! implements it. The guide in `docs/` has chapters on converting, reading, writing, profiles,
//! damage and benchmarks, and `examples/` has short programs.
//!
//! ```
//! use tensilo::sink::Stream;
//! use tensilo::{ColumnSchema, DType, Profile, Reader, Schema, Shape, Value};
//! use tensilo::{Writer, WriterOptions};
//!
//! let schema = Schema::new([ColumnSchema::tensor("label", DType::I32, Shape::scalar())]);
//! let options = WriterOptions::new().profile(Profile::Raw);
//! let mut writer = Writer::new(Stream(Vec::new()), schema, &options)?;
//! for label in 0..1000_i32 {
//!     writer.push(&[Value::tensor(&[label])])?;
//! }
//! let file = writer.into_bytes()?;
//!
//! let reader = Reader::from_bytes(file)?;
//! let column = reader.column("label")?;
//! let sample = column.view(517)?.ok_or("raw chunks can be viewed")?;
//! assert_eq!(sample.as_slice::<i32>()?, [517]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! The root has the types that most programs use. The other items are in modules. [`source`] and
//! [`sink`] read and write the bytes of a file. [`verify`], [`salvage`] and [`explain`] examine
//! files, and [`facts`] has the facts that files record about themselves. [`stages`] splits a read
//! into three stages. [`nested`] has lists and structs. [`search`] restricts what encoders try.
//! [`error`] defines the advice that errors contain, and [`limits`] the limits of the format.
//! `import` and `export` convert other formats.
//!
//! # Layers
//!
//! A module uses only modules of its own layer and of the layers below. `tests/tidy` checks this,
//! and writes the table.
//!
//! | | modules | |
//! |---|---|---|
//! | 6 | `import`, `export`, `rewrite`, `mmap`, `logical` | formats |
//! | 5 | `read`, `write` | samples from chunks, chunks from samples; neither uses the other |
//! | 4 | `open` | sources of bytes, and the last commit of a file |
//! | 3 | `codec` | chunks to stored bytes and back, and the choice of encodings |
//! | 2 | `format`, `batch`, `value` | bytes to structures and back |
//! | 1 | `bytes`, `kernel` | memory, and loops over elements |
//! | 0 | `element`, `error`, `limits`, `names`, `threads` | basics |
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `zstd` | yes | the encodings `zstd`, `bitshuffle-zstd` and `planes-zstd` |
//! | `mmap` | yes | `Reader::map` |
//! | `rayon` | no | `ParallelCursor` |
//! | `glob` | no | `source::paths_matching`: the files that match a pattern |
//! | `import` | no | `import` of tensilo files; implies `glob` |
//! | `arrow` | no | `import` and `export` for Arrow; implies `import` |
//! | `parquet` | no | the same for Parquet; implies `arrow` |
//!
//! If a file needs a feature that this build lacks, the file cannot be opened, and the error names
//! the feature.
//!
//! # Debug builds
//!
//! Without optimization, this crate is 40 to 275 times slower. For debug builds of your program,
//! set `[profile.dev.package.tensilo] opt-level = 3` in the `Cargo.toml` of the program. Set the
//! same for `crc32fast`, `half`, `bytemuck` and `zstd-sys`.
//!
//! # Platforms
//!
//! The minimum supported Rust version is 1.89. `docs/src/promises.md` lists the tested platforms,
//! and what later releases will not change.
//!
//! # Panics
//!
//! No function of this crate panics, whatever the input.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(missing_docs, unsafe_code, unsafe_op_in_unsafe_fn)]
#![warn(clippy::undocumented_unsafe_blocks, clippy::unwrap_used, clippy::expect_used)]
#![cfg_attr(not(test), warn(clippy::panic, clippy::todo, clippy::unimplemented, clippy::unreachable, clippy::exit))]

mod batch;
mod bytes;
mod codec;
mod element;
pub mod error;
#[cfg(feature = "arrow")]
pub mod export;
mod format;
#[cfg(feature = "import")]
pub mod import;
#[allow(unsafe_code, reason = "SIMD: functions with target features, and vector loads; each has its safety argument")]
mod kernel;
pub mod limits;
mod logical;
#[cfg(feature = "mmap")]
#[allow(unsafe_code, reason = "a mapped file can change while it is read; the caller promises that it does not")]
mod mmap;
mod names;
mod open;
mod read;
mod rewrite;
mod threads;
mod value;
mod write;

/// Restricts which techniques encoders may use. This shows how much each technique saves, and how
/// much an encoder loses by not trying all combinations.
pub mod search {
    pub use crate::codec::{Search, Technique};
}

pub use batch::ColumnBatch;
pub use bytes::pod::Element;
pub use codec::Profile;
pub use error::{Error, ErrorKind, Result};
pub use format::{CastSource, CastSpec, ColumnSchema, DType, Extent, Metadata, Schema, Shape};
/// The crate that defines `bf16` and `f16`, in the version that this crate uses.
pub use half;
pub use logical::logical_type::LogicalType;
pub use names::parse_byte_count;
#[cfg(feature = "rayon")]
pub use read::ParallelCursor;
pub use read::stages;
pub use read::{Column, ColumnBuffer, Cursor, OpenOptions, Reader, Rows, Sample, Verification};
pub use value::Value;
pub use write::{Summary, Writer, WriterOptions};

pub mod source {
    //! Sources of bytes to read from: memory, memory maps, files, and other implementations of
    //! [`Source`].

    #[cfg(feature = "mmap")]
    pub use crate::mmap::MappedFile;
    pub use crate::open::foreign::explain_missing;
    #[cfg(feature = "glob")]
    pub use crate::open::pattern::paths_matching;
    pub use crate::open::{
        CoalesceConfig, FileIdentity, InMemory, PositionedFile, RangeError, ReadMemory, Requests, Source,
        default_open_files, is_on_network, range_length,
    };
}

pub mod sink {
    //! Destinations to write to: files that appear when they are complete, streams, and other
    //! implementations of [`Sink`].

    pub use crate::write::{AppendFile, AtomicFile, Sink, Stream};
}

pub mod nested {
    //! Lists: the samples of nested columns, individually and in batches. Structs: the columns that
    //! are the fields of a struct.
    //!
    //! [`ColumnSchema::list`](crate::ColumnSchema::list) declares a column of lists, and
    //! [`ColumnBatch::in_lists`](crate::ColumnBatch::in_lists) pushes them.

    pub use crate::batch::{ListBatch, ListBuffer};
    pub use crate::format::{FieldNode, ListLevel};
    pub use crate::read::List;
}

pub mod verify {
    //! Checks a whole file: every byte, and optionally every value.

    pub use crate::read::{FileState, Finding, FindingKind, VerifyOptions, VerifyReport, verify};
}

pub mod salvage {
    //! Reads the intact samples of a damaged file.

    pub use crate::read::{Losses, LostSamples, OnLoss, SalvageOptions, Salvaged, all_lost, salvage};
    pub use crate::rewrite::{RewriteOptions, UNCONFIRMED};
}

pub mod explain {
    //! Explains stored chunks: what they consist of, and how large they would be with other
    //! encodings.

    pub use crate::codec::{Choice, Section, Trial};
    pub use crate::read::Explanation;
}

pub mod facts {
    //! Facts about files, columns, chunks and blocks that are known without decoding.

    pub use crate::format::{CastFacts, ContentId, FileId, RegionKind};
    pub use crate::open::ColumnFacts;
    pub use crate::read::{BlockInfo, ChunkBlocks, ChunkInfo, ColdRead};
}

/// The examples of the README, compiled and run.
#[cfg(all(doctest, feature = "zstd"))]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

/// The examples of the guide, compiled and run.
#[cfg(all(doctest, feature = "zstd"))]
#[doc = include_str!("../docs/src/start.md")]
#[doc = include_str!("../docs/src/reading.md")]
#[doc = include_str!("../docs/src/writing.md")]
struct GuideExamples;
