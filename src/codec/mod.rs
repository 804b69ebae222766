//! Chapter 5: encodings. [`codec`] is the one place that maps ids to codecs; nothing else matches on ids.

mod constant;
mod explain;
mod exponent_tiers;
mod part;
mod planner;
mod predict;
mod profile;
mod raw;
mod residual_tiers;
mod sampling;
#[cfg(test)]
mod tests;
mod tier_plan;
mod tiers;
mod transform;
#[cfg(feature = "zstd")]
mod zstandard;
#[cfg(not(feature = "zstd"))]
#[path = "zstandard/absent.rs"]
mod zstandard;

pub(crate) use explain::{Anatomy, Values};
pub use explain::{Choice, Piece, Trial};
pub(crate) use part::{ChunkDecoder, SideFacts, parts};
pub(crate) use planner::{ChunkEncoder, EncodedChunk, RawChunk};
pub use profile::Profile;

use crate::format::schema::Layout;
use crate::kernel::Width;
use crate::{Error, Result};
use exponent_tiers::ExponentTiers;
use residual_tiers::ResidualTiers;
use std::ops::Range;
use zstandard::{BitshuffleZstd, FrameEncodeScratch, FrameScratch, PlanesZstd, Zstd};

/// Memory and contexts that decoders reuse.
#[derive(Default)]
pub(crate) struct DecodeScratch {
    #[cfg_attr(not(feature = "zstd"), expect(dead_code, reason = "only frames need it"))]
    frames: FrameScratch,
    tiers: tiers::TierScratch,
    /// Coded integers of some elements.
    coded: Vec<u8>,
}

/// Memory and contexts that encoders reuse.
#[derive(Default)]
pub(crate) struct EncodeScratch {
    #[cfg_attr(not(feature = "zstd"), expect(dead_code, reason = "only frames need it"))]
    frames: FrameEncodeScratch,
    tiers: tier_plan::TierEncodeScratch,
    /// A symbol for each element.
    symbols: Vec<u8>,
    /// Symbols of all windows that an estimate looks at.
    sampled: Vec<u8>,
    /// The planes of the bytes below.
    low_bytes: Vec<u8>,
    /// Coded integers.
    coded: Vec<u8>,
    /// Extra bits.
    words: Vec<u64>,
}

/// What a codec is told of a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartSpec {
    /// Bytes of one element.
    pub element_bytes: usize,
    /// Decoded length.
    pub raw_bytes: usize,
}

/// What an encoder is told of a part. It decides how small the result is, and nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    /// Bytes of one element.
    pub element_bytes: usize,
    /// The elements are floats.
    pub float: bool,
    /// Elements after which prediction starts anew: those of one sample, or a multiple.
    pub restart: u32,
    /// Elements from one to the next along axes, 0 if there is none.
    pub strides: [u32; 2],
}

/// Scalars are predicted from the samples before them, but after so many anew, so that one can be decoded alone.
const SCALARS: u32 = 1024;

impl Geometry {
    /// That of the values of a column.
    fn of_values(layout: &Layout) -> Self {
        let sample = u32::try_from(layout.inner_bytes / layout.element_bytes).unwrap_or(u32::MAX);
        Self {
            element_bytes: layout.element_bytes,
            float: layout.dtype.is_float(),
            restart: match sample {
                _ if layout.is_ragged() => u32::MAX,
                0 | 1 => SCALARS,
                sample => sample,
            },
            strides: layout.strides,
        }
    }

    /// That of numbers in a row.
    fn of_numbers(element_bytes: usize) -> Self {
        Self { element_bytes, float: false, restart: u32::MAX, strides: [0; 2] }
    }

    /// Whether prediction starts anew with element `i`.
    fn restarts_at(&self, i: usize) -> bool {
        u32::try_from(i).is_ok_and(|i| i.is_multiple_of(self.restart))
    }

    /// The distance of checkpoints of `count` elements: none are needed where a reader would decode all of them anyway.
    fn spacing(&self, count: usize, spacing: u8) -> u8 {
        let alone = u32::try_from(count).is_ok_and(|count| count <= self.restart) && self.restart != SCALARS;
        if alone { 31 } else { spacing }
    }
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

    /// The element that all others equal, where the stored bytes are no more than that; [`Codec::check`] has passed.
    fn constant<'a>(&self, _stored: &'a [u8]) -> Option<&'a [u8]> {
        None
    }

    /// Refuses stored bytes that cannot decode to `spec`, before memory is taken for it.
    fn check(&self, spec: PartSpec, stored: &[u8]) -> Result<()>;

    /// Decodes `stored`, for which [`Codec::check`] has passed, into `out`, which has `spec.raw_bytes`.
    fn decode(&self, spec: PartSpec, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()>;

    /// Decodes some elements alone, to `out`, which is as long as they; `false`: this encoding cannot, or not for much less than all elements
    /// cost. The range is not empty and within the part.
    ///
    /// [`Codec::check`] need not have passed: what is needed of it is checked here, so that one sample does not cost what all do.
    fn decode_range(
        &self,
        _spec: PartSpec,
        _stored: &[u8],
        _range: &Range<usize>,
        _out: &mut [u8],
        _scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        Ok(false)
    }

    /// What stored bytes are made of, for which [`Codec::check`] has passed.
    fn anatomy(&self, _spec: PartSpec, stored: &[u8]) -> Result<Anatomy> {
        let mut anatomy = Anatomy::default();
        anatomy.add(self.name(), "", stored);
        Ok(anatomy)
    }
}

/// An encoding that writers use.
pub(crate) trait Encoder: Codec {
    /// Stored bytes that `raw` would take, guessed from some of it; `None` if only encoding tells.
    fn estimate(&self, _geometry: &Geometry, _raw: &[u8], _scratch: &mut EncodeScratch) -> Option<usize> {
        None
    }

    /// Encodes `raw`, which is not empty, into `stored`, which it clears first. `false`: this encoding cannot express `raw`.
    fn encode(
        &self,
        geometry: &Geometry,
        raw: &[u8],
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool>;
}

const RAW: &dyn Codec = &raw::Raw;

/// The codec with id `n` at place `n`.
static REGISTRY: [&dyn Codec; 7] = [
    RAW,
    &constant::Constant,
    &BitshuffleZstd,
    &Zstd,
    &ExponentTiers { spacing: 12 },
    &ResidualTiers { spacing: 12 },
    &PlanesZstd,
];

/// The codec with this id, if this release knows it.
#[inline]
pub(crate) fn codec(id: u16) -> Result<&'static dyn Codec> {
    let found = REGISTRY.get(usize::from(id)).copied();
    found.ok_or_else(|| Error::corrupt("R-5.1", format!("a chunk has the unknown encoding {id}")))
}

/// Refuses, when a file is opened, an encoding that this release or build cannot decode.
pub(crate) fn check_supported(id: u16) -> Result<()> {
    known(id)?.check_built()
}

/// The codec with this id, which the file uses: if this release does not know it, the file is not damaged, but too new.
pub(crate) fn known(id: u16) -> Result<&'static dyn Codec> {
    codec(id).map_err(|_| {
        let message =
            format!("the file uses encoding {id}, which this release does not know; read it with a newer tensilo");
        Error::too_new("R-7.6", message)
    })
}

/// Width and number of the elements of a part, if they are whole and of a width that the
/// encodings 4 to 6 can express.
fn whole_elements(spec: PartSpec) -> Result<(Width, usize)> {
    if let Some(width) = Width::from_bytes(spec.element_bytes)
        && spec.raw_bytes.is_multiple_of(width.bytes())
    {
        return Ok((width, spec.raw_bytes / width.bytes()));
    }
    Err(Error::corrupt("R-4.5", format!("{} bytes of elements of {}", spec.raw_bytes, spec.element_bytes)))
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
