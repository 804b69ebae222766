//! Writing: `writer.rs` collects samples into chunks and encodes them, `commit.rs` makes them
//! durable, `append.rs` continues a file that exists. `sink.rs` and the files it names say where
//! the bytes go.

mod append;
mod appended;
mod atomic;
mod buffered;
mod chunk_writer;
mod commit;
mod encode_pool;
mod index_builder;
mod nested_sample;
mod options;
mod pending_column;
mod pending_items;
mod pending_lists;
mod region_writer;
mod single_sample;
mod sink;
mod storage;
#[cfg(test)]
mod tests;
mod training_texts;
mod unnamed;
mod writer;

pub use appended::AppendedFile;
pub use atomic::AtomicFile;
pub(crate) use chunk_writer::ChunkWriter;
pub use commit::Summary;
pub use options::WriterOptions;
#[cfg(feature = "import")]
pub(crate) use options::id_of;
pub use sink::{Sink, Stream};
pub use writer::Writer;
