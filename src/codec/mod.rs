//! Chapter 5: encodings, and chunks between their decoded parts and their stored bytes.
//!
//! [`ChunkEncoder`] chooses an encoding for each part of a chunk, [`ChunkDecoder`] decodes them. An
//! encoding implements the traits of `blocked/encoding.rs`. Here are the encodings by id, and
//! nothing else matches on ids; `choice/profile.rs` lists those that writers choose from.
//!
//! An unknown id in a chunk is damage. One that the footer lists belongs to a newer
//! release, and only the columns that use it are refused.

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
pub use choice::{Idea, Profile, Search};
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

/// The encoding with id `n` has index `n`.
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

/// The encoding of what no other makes smaller.
const RAW_BLOCKS: &Blocked<RawBlocks> = &Blocked(RawBlocks);
/// A part that is one block of it, which needs no encoder.
const RAW: Encoding = Encoding::new(RAW_BLOCKS, false);
/// A part that is several blocks of it.
const RAW_IN_BLOCKS: Encoding = Encoding::new(RAW_BLOCKS, true);

fn find(field: u16) -> Option<Encoding> {
    let codec = *REGISTRY.get(usize::from(field & !BLOCKS))?;
    let in_blocks = field & BLOCKS != 0;
    (!in_blocks || !codec.is_constant()).then_some(Encoding::new(codec, in_blocks))
}

/// Returns what a field `encoding` states; fails if this release does not know it.
#[inline]
pub(crate) fn encoding(field: u16) -> Result<Encoding> {
    find(field).ok_or_else(|| Error::corrupt("R-5.1", format!("a chunk has the unknown encoding {field:#06x}")))
}

/// Returns the encoding of what an encoder writes for a part of one block, or of several.
fn encoding_of(encoder: &dyn Codec, in_blocks: bool) -> Result<Encoding> {
    encoding(encoder.id() | if in_blocks && !encoder.is_constant() { BLOCKS } else { 0 })
}

/// Refuses an encoding of a column that this release or build cannot decode.
pub(crate) fn check_supported(id: u16) -> Result<()> {
    known(id)?.check_built()
}

/// Returns the encoding with this id, which the footer lists. If this release does not know it, the
/// column is not damaged, but too new.
pub(crate) fn known(id: u16) -> Result<Encoding> {
    encoding(id).map_err(|_| {
        let message =
            format!("the column uses encoding {id}, which this release does not know; read it with a newer tensilo");
        Error::too_new("R-7.6", message)
    })
}

/// Returns the name of an encoding, for people: with ` in blocks` if the part is in several.
pub(crate) fn encoding_name(id: u16) -> String {
    let in_blocks = if id & BLOCKS == 0 { "" } else { IN_BLOCKS };
    find(id).map_or_else(|| format!("encoding-{id}"), |found| format!("{}{in_blocks}", found.name()))
}

/// What the names of encodings of parts in several blocks end with.
const IN_BLOCKS: &str = " in blocks";

/// Returns the name of an encoding without what tells that the part is in several blocks.
fn base_name(name: &str) -> &str {
    name.strip_suffix(IN_BLOCKS).unwrap_or(name)
}

/// Returns all encodings, of parts of one block and of parts in several.
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
