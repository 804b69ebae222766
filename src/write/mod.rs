//! Writing files.
//!
//! [`Writer`] in `writer.rs` collects samples into chunks, encodes them and commits; its module
//! documentation explains how a commit becomes durable, and what a crash at each moment leaves.
//! `pending_column.rs` and `pending_entries.rs` collect, `encode_pool.rs` encodes on several
//! threads, `region_writer.rs` writes regions and their index. `start.rs` finds where an append
//! continues. `sink.rs` has the destinations: new files, existing files, streams. `storage.rs` has
//! the operating-system calls that they make, behind a trait, so that tests can simulate a disk
//! that fails and loses power.

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
