//! Writing: `writer.rs` collects samples into chunks, encodes them and makes them durable.
//! `start.rs` says where it begins: with a new file, or with one that exists. `sink.rs` and the
//! files that it names say where the bytes go.

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
