//! Chapter 5.8: the top byte of each element in tiers, the bytes below it as they are.

use super::explain::Anatomy;
use super::sampling::windows;
use super::tier_plan::{TierPlan, histogram};
use super::tiers::{self, TierHead, TierStream};
use super::transform::{TRANSFORM_BYTES, Transform};
use super::{Codec, DecodeScratch, EncodeScratch, Encoder, Geometry, PartSpec};
use crate::kernel::{Width, words};
use crate::{Error, Result};
use std::ops::Range;

/// Elements of a window that is looked at for an estimate.
const WINDOW: usize = 512;

pub(super) struct ExponentTiers {
    /// The distance of the checkpoints it writes, see [`TierHead::spacing`].
    pub spacing: u8,
}

/// The stored bytes, taken apart.
struct Stored<'a> {
    width: Width,
    rotate: bool,
    low_bytes: &'a [u8],
    symbols: TierStream<'a>,
    count: usize,
}

#[cold]
fn wrong_length() -> Error {
    Error::corrupt("R-5.10", "the stored bytes of exponent-tiers do not end where their literals end")
}

/// Transform and head of the tier stream, at the start of the stored bytes, and what follows.
pub(super) fn heads(stored: &[u8]) -> Option<Result<(Transform, TierHead, &[u8])>> {
    let (transform, rest) = stored.split_first_chunk::<TRANSFORM_BYTES>()?;
    let (head, rest) = rest.split_first_chunk::<{ tiers::HEAD_BYTES }>()?;
    let parse = || Ok((Transform::parse(transform)?, TierHead::parse(head)?, rest));
    Some(parse())
}

/// The pieces that [`heads`] takes from the start of the stored bytes.
pub(super) fn heads_anatomy(transform: Transform, stored: &[u8]) -> Anatomy {
    let mut anatomy = Anatomy { transform: Some(transform.describe()), ..Anatomy::default() };
    let heads = stored.get(..TRANSFORM_BYTES + tiers::HEAD_BYTES).unwrap_or(stored);
    anatomy.add("heads", "transform; widths and ranks of the tiers", heads);
    anatomy
}

impl<'a> Stored<'a> {
    fn take_apart(spec: PartSpec, stored: &'a [u8]) -> Result<Self> {
        let (width, count) = super::whole_elements(spec)?;
        let (transform, head, rest) = heads(stored).ok_or_else(wrong_length)??;
        if matches!(transform, Transform::Predict(_)) {
            return Err(Error::corrupt("R-5.10", "exponent-tiers cannot predict"));
        }
        let low_bytes = count.saturating_mul(width.bytes() - 1); // a width is at least 1
        let (low_bytes, rest) = rest.split_at_checked(low_bytes).ok_or_else(wrong_length)?;
        match TierStream::split(head, count, 12, rest) {
            Some((symbols, [])) => {
                Ok(Self { width, rotate: transform == Transform::Rotate, low_bytes, symbols, count })
            }
            _ => Err(wrong_length()),
        }
    }

    /// Joins some symbols, from that of element `at` on, with their low bytes.
    fn join(&self, at: usize, symbols: &[u8], out: &mut [u8]) -> Result<()> {
        let mut low: [&[u8]; 7] = [&[]; 7];
        let planes = self.low_bytes.chunks_exact(self.count.max(1));
        for (low, plane) in low.iter_mut().zip(planes) {
            *low = plane.get(at..at + symbols.len()).ok_or_else(wrong_length)?; // there: one for each symbol
        }
        let low = low.get(..self.width.bytes() - 1).unwrap_or(&[]); // a width is 1 to 8
        words::best().join(self.width, self.rotate, low, symbols, out);
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

    fn check(&self, spec: PartSpec, stored: &[u8]) -> Result<()> {
        Stored::take_apart(spec, stored).map(|_| ())
    }

    fn decode(&self, spec: PartSpec, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let parts = Stored::take_apart(spec, stored)?;
        let mut out = out;
        parts.symbols.decode(&mut scratch.tiers, |at, symbols| {
            let block = out.split_off_mut(..symbols.len() * spec.element_bytes).ok_or_else(wrong_length)?; // never: one for each element
            parts.join(at, symbols, block)
        })
    }

    fn decode_range(
        &self,
        spec: PartSpec,
        stored: &[u8],
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        let parts = Stored::take_apart(spec, stored)?;
        let mut out = out;
        let from = parts.symbols.group_before(range.start)?;
        parts.symbols.decode_from(&from, range.end, &mut scratch.tiers, |at, symbols| {
            let skip = range.start.saturating_sub(at); // the first group may begin before the range
            let symbols = symbols.get(skip..).unwrap_or(&[]);
            let block = out.split_off_mut(..symbols.len() * spec.element_bytes).ok_or_else(wrong_length)?; // never: the range ends there
            parts.join(at + skip, symbols, block)
        })?;
        Ok(true)
    }

    fn anatomy(&self, spec: PartSpec, stored: &[u8]) -> Result<Anatomy> {
        let Stored { rotate, low_bytes, symbols, count, .. } = Stored::take_apart(spec, stored)?;
        let transform = if rotate { Transform::Rotate } else { Transform::None };
        let mut anatomy = heads_anatomy(transform, stored);
        for (byte, plane) in low_bytes.chunks_exact(count.max(1)).enumerate() {
            anatomy.add(format!("byte {byte}"), "as it is", plane);
        }
        symbols.describe(&mut anatomy);
        Ok(anatomy)
    }
}

impl Encoder for ExponentTiers {
    fn estimate(&self, geometry: &Geometry, raw: &[u8], scratch: &mut EncodeScratch) -> Option<usize> {
        let width = Width::from_bytes(geometry.element_bytes)?;
        let count = raw.len() / width.bytes();
        let EncodeScratch { symbols, sampled, low_bytes, .. } = scratch;
        sampled.clear();
        for window in windows(count, WINDOW) {
            let elements = raw.get(window.start * width.bytes()..window.end * width.bytes())?;
            split(width, geometry.float, elements, symbols, low_bytes);
            sampled.extend_from_slice(symbols);
        }
        let bits = TierPlan::new(&histogram(sampled), self.spacing).bits;
        let tiers = bits.checked_mul(count as u64)?.checked_div(8 * sampled.len() as u64)?; // exact: usize has at most 64 bits
        usize::try_from(tiers).ok()?.checked_add(count * (width.bytes() - 1))
    }

    fn encode(
        &self,
        geometry: &Geometry,
        raw: &[u8],
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool> {
        stored.clear();
        let spec = PartSpec { element_bytes: geometry.element_bytes, raw_bytes: raw.len() };
        let Ok((width, count)) = super::whole_elements(spec) else { return Ok(false) };
        let EncodeScratch { symbols, low_bytes, tiers, .. } = scratch;
        split(width, geometry.float, raw, symbols, low_bytes);
        let transform = if geometry.float { Transform::Rotate } else { Transform::None };
        let head = TierPlan::new(&histogram(symbols), geometry.spacing(count, self.spacing)).head;
        stored.extend_from_slice(&transform.to_bytes());
        stored.extend_from_slice(&head.to_bytes());
        stored.extend_from_slice(low_bytes);
        head.write(symbols, None, stored, tiers)?;
        Ok(true)
    }
}

/// Splits elements in their top bytes and the planes of the bytes below.
pub(super) fn split(width: Width, rotate: bool, elements: &[u8], top: &mut Vec<u8>, low: &mut Vec<u8>) {
    let count = elements.len() / width.bytes();
    top.resize(count, 0);
    low.resize(count * (width.bytes() - 1), 0);
    let mut planes: [&mut [u8]; 7] = Default::default();
    planes.iter_mut().zip(low.chunks_exact_mut(count.max(1))).for_each(|(plane, low)| *plane = low);
    let planes = planes.get_mut(..width.bytes() - 1).unwrap_or(&mut []); // a width is 1 to 8
    words::best().split(width, rotate, elements, planes, top);
}
