//! Encodings (chapter 5): from the decoded parts of a chunk to stored bytes, and back.
//!
//! A chunk has up to three parts: validity, shape and values. Each part is encoded separately, as
//! one block or as several blocks that decode independently. From the outside in:
//!
//! * `chunk`: [`ChunkEncoder`] chooses an encoding for each part and lays out the body.
//!   [`ChunkDecoder`] finds the parts in a body and decodes them.
//! * `choice`: how encoders choose, with profiles, samples and estimates.
//! * `blocked`: the division of a part into blocks, which is the same for all encodings.
//! * `tiers`, `bins`, `zstandard` and `blocked/raw.rs`: the encodings, which handle single blocks.
//! * `transform`, `bits`: the steps that several encodings share.
//!
//! An encoding implements the traits of `blocked/encoding.rs`. This module maps ids to encodings,
//! and `choice/profile.rs` lists the encodings that writers choose from. An unknown id in a chunk
//! is damage. An unknown id in the footer belongs to a newer release, and only the columns
//! that use it are refused.

mod bins;
mod bits;
mod blocked;
mod choice;
mod chunk;
mod part;
mod scratch;
#[cfg(test)]
mod tests;
mod tiers;
mod transform;
mod zstandard;

pub(crate) use blocked::{
    BLOCK_INDEX_HEADER_BYTES, MIN_BLOCKED_BYTES, StoredPart, block_index_bytes, check_block_index, first_block_elements,
};
pub use blocked::{BlockScratch, StoredBlock};
pub use choice::{Profile, Search, Technique};
pub use chunk::{Choice, Trial};
pub(crate) use chunk::{
    ChunkDecoder, ChunkEncoder, DamagedChunk, EncodedChunk, RawChunk, SideFacts, StoredChunk, ValueChoice, Values,
    decode_intact, parts, values_in_blocks,
};
pub use part::Section;
pub(crate) use part::{Body, Description, PartSpec, Tables};
pub(crate) use zstandard::{ZstdDictionary, ZstdEncoderDictionary, train};

use self::bins::BinBlocks;
use self::blocked::{Blocked, Codec, Constant, Encoding, RawBlocks};
use self::tiers::{ExponentBlocks, ResidualBlocks};
use self::zstandard::{BitshuffleBlocks, PlaneBlocks, ZstdBlocks};
use crate::format::index::BLOCKS;
use crate::{Error, Result};

/// The encoding with id `n` is at index `n`.
static REGISTRY: [&dyn Codec; 8] = [
    RAW_BLOCKS,
    &Blocked(Constant),
    &Blocked(ZstdBlocks),
    &Blocked(BitshuffleBlocks),
    &Blocked(ExponentBlocks),
    &Blocked(ResidualBlocks),
    &Blocked(BinBlocks { for_size: true }),
    &Blocked(PlaneBlocks),
];

/// The fallback for parts that no other encoding makes smaller.
const RAW_BLOCKS: &Blocked<RawBlocks> = &Blocked(RawBlocks);
/// Raw, as one block. The stored bytes are the decoded bytes, so no encoder is needed.
const RAW: Encoding = Encoding::new(RAW_BLOCKS, false);
/// Raw, as several blocks.
const RAW_IN_BLOCKS: Encoding = Encoding::new(RAW_BLOCKS, true);

fn find(field: u16) -> Option<Encoding> {
    let codec = *REGISTRY.get(usize::from(field & !BLOCKS))?;
    let in_blocks = field & BLOCKS != 0;
    (!in_blocks || !codec.is_constant()).then_some(Encoding::new(codec, in_blocks))
}

/// Parses a field `encoding`. Fails if this release does not support its value.
#[inline]
pub(crate) fn encoding(field: u16) -> Result<Encoding> {
    find(field).ok_or_else(|| Error::corrupt("R-5.1", format!("a chunk has the unknown encoding {field:#06x}")))
}

/// Returns the encoding that an encoder writes: for a part with several blocks if `in_blocks`, else
/// for a part that is one block.
fn encoding_of(encoder: &dyn Codec, in_blocks: bool) -> Result<Encoding> {
    encoding(encoder.id() | if in_blocks && !encoder.is_constant() { BLOCKS } else { 0 })
}

/// Refuses an encoding of a column that this release or build cannot decode.
pub(crate) fn check_supported(id: u16) -> Result<()> {
    known(id)?.check_built()
}

/// Returns the encoding with an id that the footer lists. If this release does not support it, the
/// column is too new, not damaged.
pub(crate) fn known(id: u16) -> Result<Encoding> {
    encoding(id).map_err(|_| {
        let message =
            format!("the column uses encoding {id}, which this release does not support; use a newer tensilo");
        Error::too_new("R-7.6", message)
    })
}

/// Returns the display name of an encoding, followed by ` in blocks` if the part has several
/// blocks.
pub(crate) fn encoding_name(id: u16) -> String {
    let in_blocks = if id & BLOCKS == 0 { "" } else { IN_BLOCKS };
    find(id).map_or_else(|| format!("encoding-{id}"), |found| format!("{}{in_blocks}", found.name()))
}

/// The suffix of the display name of an encoding if the part has several blocks.
const IN_BLOCKS: &str = " in blocks";

/// Strips [`IN_BLOCKS`] from a display name.
fn base_name(name: &str) -> &str {
    name.strip_suffix(IN_BLOCKS).unwrap_or(name)
}

/// Returns all encodings, each with one block and with several.
#[cfg(test)]
fn all_encodings() -> impl Iterator<Item = Encoding> {
    (0..8).flat_map(|id| [id, id | BLOCKS]).filter_map(find)
}

#[cfg(test)]
#[test]
fn the_index_of_a_codec_is_its_id() {
    for (codec, id) in REGISTRY.iter().zip(0..) {
        assert_eq!(codec.id(), id);
    }
}
