//! Chunks between their decoded parts and their stored bytes.
//!
//! `encoder.rs` chooses an encoding for each part of a chunk, `decoder.rs` finds and decodes the
//! parts. `damaged.rs` finds what is left of a damaged chunk, and `explain.rs` repeats for people
//! what an encoder has chosen.

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
