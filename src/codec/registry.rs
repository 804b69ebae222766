//! Chapter 5: the encodings by id. Nothing else matches on ids.
//!
//! An unknown id in a chunk is damage. One that the footer lists belongs to a newer
//! release, and only the columns that use it are refused.

use super::bins::BinBlocks;
use super::blocked::{Blocked, Constant, OneBlock, RawBlocks};
use super::encoding::Codec;
use super::tiers::{ExponentBlocks, ResidualBlocks};
use super::zstandard::{BitshuffleBlocks, PlaneBlocks, ZstdBlocks};
use crate::format::index::BLOCKS;
use crate::{Error, Result};

/// An encoding, for a part that is one block and for a part in several.
struct Forms {
    one: &'static dyn Codec,
    blocks: Option<&'static dyn Codec>,
}

macro_rules! forms {
    ($codec:expr) => {
        Forms { one: &OneBlock($codec), blocks: Some(&Blocked($codec)) }
    };
}

/// The encoding with id `n` has index `n`.
static REGISTRY: [Forms; 8] = [
    forms!(RawBlocks),
    Forms { one: &Constant, blocks: None },
    forms!(ZstdBlocks),
    forms!(BitshuffleBlocks),
    forms!(ExponentBlocks),
    forms!(ResidualBlocks),
    forms!(BinBlocks { for_size: true }),
    forms!(PlaneBlocks),
];

/// The encoding `raw`, which needs no encoder.
pub(super) const RAW: &dyn Codec = &OneBlock(RawBlocks);

/// Blocks of what no encoding makes smaller.
pub(super) const RAW_BLOCKS: &Blocked<RawBlocks> = &Blocked(RawBlocks);

fn find(id: u16) -> Option<&'static dyn Codec> {
    let forms = REGISTRY.get(usize::from(id & !BLOCKS))?;
    if id & BLOCKS == 0 { Some(forms.one) } else { forms.blocks }
}

/// Returns the codec of this field `encoding`; fails if this release does not know it.
#[inline]
pub(crate) fn codec(id: u16) -> Result<&'static dyn Codec> {
    find(id).ok_or_else(|| Error::corrupt("R-5.1", format!("a chunk has the unknown encoding {id:#06x}")))
}

/// Returns the codec of what an encoder writes for a part of one block, or of several.
pub(super) fn form(encoder: &dyn Codec, in_blocks: bool) -> Result<&'static dyn Codec> {
    codec(if in_blocks { encoder.id() } else { encoder.id() & !BLOCKS })
}

/// Refuses an encoding of a column that this release or build cannot decode.
pub(crate) fn check_supported(id: u16) -> Result<()> {
    known(id)?.check_built()
}

/// Returns the codec with this id, which the footer lists. If this release does not know it, the
/// column is not damaged, but too new.
pub(crate) fn known(id: u16) -> Result<&'static dyn Codec> {
    codec(id).map_err(|_| {
        let message =
            format!("the column uses encoding {id}, which this release does not know; read it with a newer tensilo");
        Error::too_new("R-7.6", message)
    })
}

/// Returns the name of an encoding, for people: with ` in blocks` if the part is in several.
pub(crate) fn encoding_name(id: u16) -> String {
    let in_blocks = if id & BLOCKS == 0 { "" } else { IN_BLOCKS };
    codec(id).map_or_else(|_| format!("encoding-{id}"), |codec| format!("{}{in_blocks}", codec.name()))
}

/// What the names of encodings of parts in several blocks end with.
const IN_BLOCKS: &str = " in blocks";

/// Returns the name of an encoding without what tells that the part is in several blocks.
pub(super) fn base_name(name: &str) -> &str {
    name.strip_suffix(IN_BLOCKS).unwrap_or(name)
}

/// Returns all encodings, of parts of one block and of parts in several.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = &'static dyn Codec> {
    REGISTRY.iter().flat_map(|forms| std::iter::once(forms.one).chain(forms.blocks))
}

#[cfg(test)]
#[test]
fn the_index_of_a_codec_is_its_id() {
    for (forms, id) in REGISTRY.iter().zip(0..) {
        assert_eq!(forms.one.id(), id);
        assert!(forms.blocks.is_none_or(|blocks| blocks.id() == id | BLOCKS));
    }
}
