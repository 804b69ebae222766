//! Chapter 5: the encodings by id. Nothing else matches on ids.

use super::blocked::{BinBlocks, Blocked, ExponentBlocks, RawBlocks, ResidualBlocks};
use super::constant::Constant;
use super::encoding::Codec;
use super::exponent_tiers::ExponentTiers;
use super::raw::Raw;
use super::residual_tiers::ResidualTiers;
use super::zstandard::{BitshuffleBlocks, BitshuffleZstd, PlanesZstd, Zstd, ZstdBlocks, ZstdDictionary};
use crate::{Error, Result};

/// The encoding `raw`, which needs no encoder.
pub(super) const RAW: &dyn Codec = &Raw;

/// Blocks of what no encoding makes smaller.
pub(super) const RAW_BLOCKS: &Blocked<RawBlocks> = &Blocked(RawBlocks);

/// The codec with id `n` has index `n`.
pub(super) static REGISTRY: [&dyn Codec; 14] = [
    RAW,
    &Constant,
    &BitshuffleZstd,
    &Zstd,
    &ExponentTiers { spacing: 12 },
    &ResidualTiers { spacing: 12 },
    &PlanesZstd,
    &ZstdDictionary,
    &Blocked(RawBlocks),
    &Blocked(BitshuffleBlocks),
    &Blocked(ZstdBlocks),
    &Blocked(ExponentBlocks),
    &Blocked(ResidualBlocks),
    &Blocked(BinBlocks { for_size: true }),
];

/// Returns the codec with this id; fails if this release does not know it.
#[inline]
pub(crate) fn codec(id: u16) -> Result<&'static dyn Codec> {
    let found = REGISTRY.get(usize::from(id)).copied();
    found.ok_or_else(|| Error::corrupt("R-5.1", format!("a chunk has the unknown encoding {id}")))
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

/// Returns the name of an encoding, for people.
pub(crate) fn encoding_name(id: u16) -> String {
    codec(id).map_or_else(|_| format!("encoding-{id}"), |codec| codec.name().to_owned())
}

#[cfg(test)]
#[test]
fn the_index_of_a_codec_is_its_id() {
    assert!(REGISTRY.iter().zip(0..).all(|(codec, id)| codec.id() == id));
}
