//! Chapter 5: encodings. [`codec`] is the one place that maps ids to codecs; nothing else matches on ids.

mod constant;
mod exponent_tiers;
mod part;
mod planner;
mod raw;
mod residual_tiers;
mod tiers;
mod transform;
#[cfg(feature = "zstd")]
mod zstandard;
#[cfg(not(feature = "zstd"))]
#[path = "zstandard_absent.rs"]
mod zstandard;

pub(crate) use part::{ChunkDecoder, parts};
pub use planner::Profile;
pub(crate) use planner::{ChunkEncoder, EncodedChunk, RawChunk};

use crate::{Error, Result};
pub(crate) use zstandard::EncodeScratch;
use zstandard::{BitshuffleZstd, FrameScratch, PlanesZstd, Zstd};

/// Memory and contexts that decoders reuse.
#[derive(Default)]
pub(crate) struct DecodeScratch {
    #[cfg_attr(not(feature = "zstd"), expect(dead_code, reason = "only frames need it"))]
    frames: FrameScratch,
    tiers: tiers::TierScratch,
}

/// What a codec is told of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartSpec {
    /// Bytes of one element.
    pub element_bytes: usize,
    /// Decoded length.
    pub raw_bytes: usize,
}

/// One encoding of chapter 5.
pub(crate) trait Codec: Sync {
    /// Its id in the file.
    fn id(&self) -> u16;

    /// Its name in the specification.
    fn name(&self) -> &'static str;

    /// Whether this build can encode and decode it.
    fn check_built(&self) -> Result<()> {
        Ok(())
    }

    /// Whether the decoded bytes are the stored ones, so that nothing need be decoded.
    fn is_identity(&self) -> bool {
        false
    }

    /// Refuses stored bytes that cannot decode to `spec`, before memory is taken for it.
    fn check(&self, spec: PartSpec, stored: &[u8]) -> Result<()>;

    /// Decodes `stored`, for which [`Codec::check`] has passed, into `out`, which has `spec.raw_bytes`.
    fn decode(&self, spec: PartSpec, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()>;
}

/// An encoding that writers use.
pub(crate) trait Encoder: Codec {
    /// Encodes `raw` into `stored`, which it clears first. `false`: this encoding cannot express `raw`.
    fn encode(
        &self,
        element_bytes: usize,
        raw: &[u8],
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool>;
}

const RAW: &dyn Codec = &raw::Raw;
const CONSTANT: &dyn Encoder = &constant::Constant;
const BITSHUFFLE_ZSTD: &dyn Encoder = &BitshuffleZstd;
const ZSTD: &dyn Encoder = &Zstd;

/// The codec with id `n` at place `n`.
static REGISTRY: [&dyn Codec; 7] =
    [RAW, CONSTANT, BITSHUFFLE_ZSTD, ZSTD, &exponent_tiers::ExponentTiers, &residual_tiers::ResidualTiers, &PlanesZstd];

/// The codec with this id, if this release knows it.
#[inline]
pub(crate) fn codec(id: u16) -> Result<&'static dyn Codec> {
    let found = REGISTRY.get(usize::from(id)).copied();
    found.ok_or_else(|| Error::corrupt("R-5.1", format!("a chunk has the unknown encoding {id}")))
}

/// Refuses, when a file is opened, an encoding that this release or build cannot decode.
pub(crate) fn check_supported(id: u16) -> Result<()> {
    let codec = codec(id).map_err(|_| {
        let message =
            format!("the file uses encoding {id}, which this release does not know; read it with a newer tensilo");
        Error::too_new("R-7.6", message)
    })?;
    codec.check_built()
}

/// The number of elements of a part, if they are whole and of a width that the encodings 4 to 6 can express.
fn whole_elements(spec: PartSpec) -> Result<usize> {
    if matches!(spec.element_bytes, 1 | 2 | 4 | 8) && spec.raw_bytes.is_multiple_of(spec.element_bytes) {
        return Ok(spec.raw_bytes / spec.element_bytes);
    }
    Err(Error::corrupt("R-5.7", format!("{} bytes of elements of {}", spec.raw_bytes, spec.element_bytes)))
}

/// The name of an encoding, for people.
pub(crate) fn encoding_name(id: u16) -> String {
    codec(id).map_or_else(|_| format!("encoding-{id}"), |codec| codec.name().to_owned())
}

#[cfg(test)]
#[test]
fn codecs_stand_at_the_place_of_their_id() {
    assert!(REGISTRY.iter().zip(0..).all(|(codec, id)| codec.id() == id));
}
