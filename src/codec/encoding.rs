//! Chapter 5: the interface of an encoding.

use super::anatomy::Anatomy;
use super::blocked::BlockedCodec;
use super::geometry::Geometry;
use super::part_spec::PartSpec;
use super::sample::SampledPart;
use super::scratch::{DecodeScratch, EncodeScratch};
use crate::Result;
use std::ops::Range;

/// An encoding of chapter 5, as a decoder.
pub(crate) trait Codec: Sync {
    /// Returns the id in the file.
    fn id(&self) -> u16;

    /// Returns the name in the specification.
    fn name(&self) -> &'static str;

    /// Refuses an encoding that this build cannot encode and decode.
    fn check_built(&self) -> Result<()> {
        Ok(())
    }

    /// Returns whether the decoded bytes are the stored ones, so that nothing need be decoded.
    fn is_identity(&self) -> bool {
        false
    }

    /// Returns the encoding of the blocks, if this is one in blocks.
    fn blocks(&self) -> Option<&dyn BlockedCodec> {
        None
    }

    /// Returns the element that all others equal, if this encoding stores nothing else.
    /// [`Codec::check`] has passed.
    fn constant<'a>(&self, _stored: &'a [u8]) -> Option<&'a [u8]> {
        None
    }

    /// Returns whether decoding needs a table.
    fn needs_table(&self) -> bool {
        false
    }

    /// Returns the number of the table that is needed to decode `stored`, if one is.
    fn table(&self, _stored: &[u8]) -> Result<Option<u32>> {
        Ok(None)
    }

    /// Refuses stored bytes that cannot decode to `spec`, before memory is taken for it.
    fn check(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<()>;

    /// Decodes `stored`, for which [`Codec::check`] has passed, to `out`, which has
    /// `spec.raw_bytes`.
    fn decode(&self, spec: PartSpec<'_>, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()>;

    /// Decodes the elements of a range alone, to `out`, which has their length. The range is not
    /// empty and lies within the part. Returns `false` if this encoding cannot, or not for much
    /// less than all elements cost.
    ///
    /// [`Codec::check`] need not have passed. This function checks as much of it as it needs, so
    /// that one sample does not cost as much as all.
    fn decode_range(
        &self,
        _spec: PartSpec<'_>,
        _stored: &[u8],
        _range: &Range<usize>,
        _out: &mut [u8],
        _scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        Ok(false)
    }

    /// Describes the sections of `stored`, for which [`Codec::check`] has passed.
    fn anatomy(&self, _spec: PartSpec<'_>, stored: &[u8]) -> Result<Anatomy> {
        let mut anatomy = Anatomy::default();
        anatomy.add(self.name(), "", stored);
        Ok(anatomy)
    }
}

/// An encoding that writers use.
pub(crate) trait Encoder: Codec {
    /// Estimates the stored bytes of a part from a sample. Returns `None` if only encoding tells.
    fn estimate(&self, _part: &mut SampledPart<'_>, _scratch: &mut EncodeScratch) -> Option<usize> {
        None
    }

    /// Estimates the stored bytes of a part more closely and more slowly, after [`Self::estimate`],
    /// by encoding the blocks of its sample. Returns `None` if that would not help.
    fn estimate_by_encoding(&self, _part: &mut SampledPart<'_>, _scratch: &mut EncodeScratch) -> Result<Option<usize>> {
        Ok(None)
    }

    /// Encodes `raw`, which is not empty, to `stored`, which it clears first. Returns
    /// `false` if this encoding cannot express `raw`.
    fn encode(
        &self,
        geometry: &Geometry<'_>,
        raw: &[u8],
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool>;
}
