//! Chapter 5.2: constant stores one element, which is repeated.

use super::encoding::{Codec, Encoder};
use super::geometry::Geometry;
use super::part_spec::PartSpec;
use super::sample::SampledPart;
use super::scratch::{DecodeScratch, EncodeScratch};
use crate::{Error, Result};
use std::ops::Range;

pub(super) struct Constant;

impl Codec for Constant {
    fn id(&self) -> u16 {
        1
    }

    fn name(&self) -> &'static str {
        "constant"
    }

    fn check(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<()> {
        let whole = spec.raw_bytes != 0 && spec.raw_bytes.is_multiple_of(spec.element_bytes);
        if stored.len() == spec.element_bytes && whole {
            return Ok(());
        }
        let message = format!(
            "a constant of {} bytes cannot fill {} bytes of elements of {}",
            stored.len(),
            spec.raw_bytes,
            spec.element_bytes
        );
        Err(Error::corrupt("R-5.4", message))
    }

    fn constant<'a>(&self, stored: &'a [u8]) -> Option<&'a [u8]> {
        Some(stored)
    }

    fn decode(&self, spec: PartSpec<'_>, stored: &[u8], out: &mut [u8], _: &mut DecodeScratch) -> Result<()> {
        // each step copies all that is filled, so that a few long copies do
        let mut filled = spec.element_bytes;
        if let Some(first) = out.get_mut(..filled) {
            first.copy_from_slice(stored); // equal lengths: `check` has passed
        }
        while filled != 0 && filled < out.len() {
            let (done, rest) = out.split_at_mut(filled);
            let length = done.len().min(rest.len());
            // in bounds: the lesser of both lengths
            rest[..length].copy_from_slice(&done[..length]);
            filled += length;
        }
        Ok(())
    }

    fn decode_range(
        &self,
        spec: PartSpec<'_>,
        stored: &[u8],
        _: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        self.check(spec, stored)?;
        self.decode(spec, stored, out, scratch).map(|()| true)
    }
}

/// Returns the element that all others equal, if they do.
fn repeated(element_bytes: usize, raw: &[u8]) -> Option<&[u8]> {
    let (first, rest) = raw.split_at_checked(element_bytes)?;
    // all elements are equal if and only if the bytes equal themselves shifted by one element
    let shifted = raw.len().checked_sub(element_bytes)?;
    let is_repeated = !first.is_empty() && raw.len().is_multiple_of(element_bytes) && raw.get(..shifted) == Some(rest);
    is_repeated.then_some(first)
}

impl Encoder for Constant {
    fn estimate(&self, part: &mut SampledPart<'_>, _: &mut EncodeScratch) -> Option<usize> {
        repeated(part.geometry.element_bytes, part.raw).map(<[u8]>::len)
    }

    fn encode(&self, geometry: &Geometry<'_>, raw: &[u8], stored: &mut Vec<u8>, _: &mut EncodeScratch) -> Result<bool> {
        stored.clear();
        let Some(element) = repeated(geometry.element_bytes, raw) else { return Ok(false) };
        stored.extend_from_slice(element);
        Ok(true)
    }
}
