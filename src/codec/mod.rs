//! Chapter 5: encodings, and chunks between their decoded parts and their stored bytes.
//!
//! [`ChunkEncoder`] chooses an encoding for each part of a chunk, [`ChunkDecoder`] decodes them. An
//! encoding implements the traits of `encoding.rs`; `registry.rs` maps ids to encodings, and
//! `profile.rs` lists those that writers choose from.

mod anatomy;
mod bins;
mod blocked;
mod body;
mod chunk_decoder;
mod chunk_encoder;
mod chunk_parts;
mod constant;
mod damaged_chunk;
mod dictionary_body;
mod encoding;
mod estimate;
mod explain;
mod exponent_tiers;
mod extra_bits;
mod float_type;
mod geometry;
mod part_spec;
mod predict;
mod profile;
mod registry;
mod residual_tiers;
mod sample;
mod scratch;
mod search;
#[cfg(test)]
mod tests;
mod tier_codes;
mod tier_head;
mod tier_plan;
mod tier_stream;
mod transform;
#[cfg(feature = "zstd")]
mod zstandard;
#[cfg(not(feature = "zstd"))]
#[path = "zstandard/absent.rs"]
mod zstandard;

pub(crate) use anatomy::Anatomy;
pub use anatomy::Section;
pub(crate) use blocked::{
    BlockedCodec, BlockedPart, FRONT_HEAD_BYTES, LEAST_IN_BLOCKS, check_front, first_block_elements, front_bytes,
};
pub(crate) use body::Body;
pub(crate) use chunk_decoder::{ChunkDecoder, SideFacts};
pub(crate) use chunk_encoder::{ChunkEncoder, EncodedChunk, RawChunk, ValueChoice};
pub(crate) use chunk_parts::{StoredChunk, parts, values_in_blocks};
pub(crate) use damaged_chunk::{DamagedChunk, decode_intact};
pub(crate) use explain::Values;
pub use explain::{Choice, Trial};
pub(crate) use part_spec::{PartSpec, Tables};
pub use profile::Profile;
pub(crate) use registry::{check_supported, codec, encoding_name, known};
pub use search::{Idea, Search};
pub(crate) use zstandard::{Dictionary, EncodingDictionary, train};
