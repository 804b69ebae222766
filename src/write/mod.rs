//! Writes files.
//!
//! [`Writer`] in `writer.rs` collects samples into chunks, encodes the chunks, and commits. The
//! documentation of that module explains how a commit becomes durable, and what remains after a
//! crash. `pending_column.rs` and `pending_entries.rs` collect samples. `encode_pool.rs` encodes
//! chunks on several threads. `region_writer.rs` writes regions and the index. `start.rs` finds
//! where an append continues.
//!
//! `sink.rs` has the destinations: new files, existing files, and streams. `storage.rs` puts the
//! operating-system calls of the files behind a trait, so tests can simulate a disk that fails or
//! loses power.

mod encode_pool;
mod options;
mod pending_column;
mod pending_entries;
mod region_writer;
mod sample;
mod sink;
mod start;
mod storage;
#[cfg(test)]
mod tests;
mod writer;

pub use options::WriterOptions;
#[cfg(feature = "import")]
pub(crate) use options::hash_id;
pub use sink::{AppendFile, AtomicFile, Sink, Stream};
pub(crate) use writer::ChunkWriter;
pub use writer::{Summary, Writer};
