//! Chunks: from decoded parts to a stored body, and back.
//!
//! `encoder.rs` chooses an encoding for each part and lays out the body. `decoder.rs` finds the
//! parts in a body and decodes them. `damaged.rs` recovers the intact samples of a damaged chunk.
//! `explain.rs` repeats the choice of an encoder and explains it to users.

mod damaged;
mod decoder;
mod encoder;
mod explain;

pub(crate) use damaged::{DamagedChunk, decode_intact};
pub(crate) use decoder::{ChunkDecoder, SideFacts, StoredChunk, parts, values_in_blocks};
#[cfg(test)]
pub(super) use encoder::saves_enough;
pub(crate) use encoder::{ChunkEncoder, EncodedChunk, RawChunk, ValueChoice};
pub(crate) use explain::Values;
pub use explain::{Choice, Trial};
