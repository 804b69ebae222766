//! Chapter 5.8: exponent-tiers codes the top byte of each element in tiers and keeps the other
//! bytes.

use super::anatomy::Anatomy;
use super::encoding::{Codec, Encoder};
use super::geometry::Geometry;
use super::part_spec::PartSpec;
use super::sample::SampledPart;
use super::scratch::{DecodeScratch, EncodeScratch};
use super::tier_head::{HEAD_BYTES, heads, heads_anatomy};
use super::tier_plan::{TierPlan, histogram};
use super::tier_stream::{CHECKPOINT_BYTES, TierScratch, TierStream, overrun};
use super::transform::Transform;
use crate::kernel::tiers::GROUP;
use crate::kernel::{Width, byte_planes};
use crate::{Error, Result};
use std::ops::Range;

pub(super) struct ExponentTiers {
    /// The spacing of the checkpoints that it writes, see
    /// [`TierHead::spacing`](super::tier_head::TierHead::spacing).
    pub spacing: u8,
}

/// The sections of stored bytes, of a part or of a block.
pub(super) struct StoredExponents<'a> {
    pub width: Width,
    pub rotate: bool,
    pub low_bytes: &'a [u8],
    pub symbols: TierStream<'a>,
    pub count: usize,
}

#[cold]
fn wrong_length() -> Error {
    Error::corrupt("R-5.10", "the stored bytes of exponent-tiers do not end where their literals end")
}

impl<'a> StoredExponents<'a> {
    fn parse(spec: PartSpec<'_>, stored: &'a [u8]) -> Result<Self> {
        let (width, count) = spec.width_and_count()?;
        let (transform, head, rest) = heads(stored).ok_or_else(wrong_length)??;
        if matches!(transform, Transform::Predict(_)) {
            return Err(Error::corrupt("R-5.10", "exponent-tiers cannot predict"));
        }
        let low_bytes = count.saturating_mul(width.bytes() - 1); // a width is at least 1
        let (low_bytes, rest) = rest.split_at_checked(low_bytes).ok_or_else(wrong_length)?;
        match TierStream::split(head, count, CHECKPOINT_BYTES, rest) {
            Some((symbols, [])) => {
                Ok(Self { width, rotate: transform == Transform::Rotate, low_bytes, symbols, count })
            }
            _ => Err(wrong_length()),
        }
    }

    /// Decodes all elements.
    pub(super) fn decode(&self, out: &mut [u8], scratch: &mut TierScratch) -> Result<()> {
        let mut out = out;
        self.symbols.decode(scratch, |at, symbols| {
            let block = out.split_off_mut(..symbols.len() * self.width.bytes()).ok_or_else(overrun)?;
            self.join(at, symbols, block)
        })
    }

    /// Decodes the elements of a range.
    pub(super) fn decode_range(&self, range: &Range<usize>, out: &mut [u8], scratch: &mut TierScratch) -> Result<()> {
        let mut out = out;
        let groups = range.start - range.start % GROUP..range.end;
        self.symbols.decode_range(&groups, scratch, |at, symbols| {
            let skip = range.start.saturating_sub(at); // the first group may begin before the range
            let symbols = symbols.get(skip..).unwrap_or(&[]);
            let block = out.split_off_mut(..symbols.len() * self.width.bytes()).ok_or_else(overrun)?;
            self.join(at + skip, symbols, block)
        })
    }

    /// Adds the sections to a description.
    pub(super) fn describe(&self, anatomy: &mut Anatomy) {
        for (byte, plane) in self.low_bytes.chunks_exact(self.count.max(1)).enumerate() {
            anatomy.add(format!("byte {byte}"), "as it is", plane);
        }
        self.symbols.describe(anatomy);
    }

    /// Joins symbols, the first of which is that of element `at`, with their low bytes.
    fn join(&self, at: usize, symbols: &[u8], out: &mut [u8]) -> Result<()> {
        let mut low: [&[u8]; 7] = [&[]; 7];
        let planes = self.low_bytes.chunks_exact(self.count.max(1));
        for (low, plane) in low.iter_mut().zip(planes) {
            // has one for each symbol
            *low = plane.get(at..at + symbols.len()).ok_or_else(wrong_length)?;
        }
        let low = low.get(..self.width.bytes() - 1).unwrap_or(&[]); // a width is 1 to 8
        byte_planes::best().join(self.width, self.rotate, low, symbols, out);
        Ok(())
    }
}

impl Codec for ExponentTiers {
    fn id(&self) -> u16 {
        4
    }

    fn name(&self) -> &'static str {
        "exponent-tiers"
    }

    fn check(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<()> {
        StoredExponents::parse(spec, stored).map(|_| ())
    }

    fn decode(&self, spec: PartSpec<'_>, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        StoredExponents::parse(spec, stored)?.decode(out, &mut scratch.tiers)
    }

    fn decode_range(
        &self,
        spec: PartSpec<'_>,
        stored: &[u8],
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        StoredExponents::parse(spec, stored)?.decode_range(range, out, &mut scratch.tiers)?;
        Ok(true)
    }

    fn anatomy(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<Anatomy> {
        let parts = StoredExponents::parse(spec, stored)?;
        let transform = if parts.rotate { Transform::Rotate } else { Transform::None };
        let mut anatomy = heads_anatomy(transform, stored);
        parts.describe(&mut anatomy);
        Ok(anatomy)
    }
}

impl Encoder for ExponentTiers {
    fn estimate(&self, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Option<usize> {
        let width = Width::from_bytes(part.geometry.element_bytes)?;
        let EncodeScratch { symbols, low_bytes, search, .. } = scratch;
        split(width, part.geometry.float, &part.sample.blocks.bytes, symbols, low_bytes);
        let bits = TierPlan::new(&histogram(symbols), self.spacing, *search).bits;
        // an estimate, and saturating
        Some((HEAD_BYTES as f64 + (bits as f64 / 8.0 + low_bytes.len() as f64) * part.one_in()) as usize)
    }

    fn encode(
        &self,
        geometry: &Geometry<'_>,
        raw: &[u8],
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool> {
        stored.clear();
        let spec = PartSpec::new(geometry.element_bytes, raw.len());
        let Ok((width, count)) = spec.width_and_count() else { return Ok(false) };
        let EncodeScratch { symbols, low_bytes, tiers, search, .. } = scratch;
        split(width, geometry.float, raw, symbols, low_bytes);
        let transform = if geometry.float { Transform::Rotate } else { Transform::None };
        let head = TierPlan::new(&histogram(symbols), geometry.spacing(count, self.spacing), *search).head;
        stored.extend_from_slice(&transform.to_bytes());
        stored.extend_from_slice(&head.to_bytes());
        stored.extend_from_slice(low_bytes);
        head.write(symbols, None, stored, tiers)?;
        Ok(true)
    }
}

/// Splits elements into their top bytes and the planes of the bytes below.
pub(super) fn split(width: Width, rotate: bool, elements: &[u8], top: &mut Vec<u8>, low: &mut Vec<u8>) {
    let count = elements.len() / width.bytes();
    top.resize(count, 0);
    low.resize(count * (width.bytes() - 1), 0);
    let mut planes: [&mut [u8]; 7] = Default::default();
    planes.iter_mut().zip(low.chunks_exact_mut(count.max(1))).for_each(|(plane, low)| *plane = low);
    let planes = planes.get_mut(..width.bytes() - 1).unwrap_or(&mut []); // a width is 1 to 8
    byte_planes::best().split(width, rotate, elements, planes, top);
}
