//! Chapter 5: encodings, and chunks between their decoded parts and their stored bytes.
//!
//! [`ChunkEncoder`] chooses an encoding for each part of a chunk, [`ChunkDecoder`] decodes them. An
//! encoding implements the traits of `encoding.rs`; `registry.rs` maps ids to encodings, and
//! `profile.rs` lists those that writers choose from.

mod bins;
mod bits;
mod blocked;
mod choice;
mod chunk;
mod dictionary_body;
mod encoding;
mod geometry;
mod part;
mod registry;
mod scratch;
#[cfg(test)]
mod tests;
mod tiers;
mod transform;
#[cfg(feature = "zstd")]
mod zstandard;
#[cfg(not(feature = "zstd"))]
#[path = "zstandard/absent.rs"]
mod zstandard;

pub use blocked::{BlockScratch, StoredBlock};
pub(crate) use blocked::{
    FRONT_HEAD_BYTES, LEAST_IN_BLOCKS, StoredPart, check_front, first_block_elements, front_bytes,
};
pub use choice::{Idea, Profile, Search};
pub use chunk::{Choice, Trial};
pub(crate) use chunk::{
    ChunkDecoder, ChunkEncoder, DamagedChunk, EncodedChunk, RawChunk, SideFacts, StoredChunk, ValueChoice, Values,
    decode_intact, parts, values_in_blocks,
};
pub use part::Section;
pub(crate) use part::{Anatomy, Body, PartSpec, Tables};
pub(crate) use registry::{check_supported, encoding, encoding_name, known};
pub(crate) use zstandard::{Dictionary, EncodingDictionary, train};
