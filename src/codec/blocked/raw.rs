//! The trivial encodings: *raw* (chapter 5.1) and *constant* (5.2).
//!
//! The stored bytes of a raw part are its decoded bytes, so readers use them in place. Its blocks
//! are therefore contiguous, and a part that is divided into blocks is still a single view of the
//! file. A constant part stores one element, which is repeated. Operations that need no elements,
//! such as a check, do not expand it.

use super::encoding::{BlockCodec, BlockEncoder, VisitPlan};
use super::part::{Block, BlockLimits};
use crate::codec::{
    choice::SampledPart,
    part::{PartSpec, RawPart},
    scratch::{DecodeScratch, EncodeScratch},
};
use crate::{Error, Result};
use std::ops::Range;

pub(crate) struct RawBlocks;

impl BlockCodec for RawBlocks {
    type Tables = ();

    const ID: u16 = 0;
    const NAME: &'static str = "raw";
    const IS_IDENTITY: bool = true;
    const IS_DEVICE_DECODABLE: bool = true;
    /// The first block begins at a multiple of 64, and the others follow without padding, so that
    /// all blocks can be viewed in place.
    const LIMITS: BlockLimits = BlockLimits { max_elements: usize::MAX, block_index_align: 64, block_align: 1 };

    fn parse_tables(&self, _: PartSpec<'_>, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn check(&self, block: &Block<'_, ()>) -> Result<()> {
        whole(block).map(drop)
    }

    fn decode(&self, block: &Block<'_, ()>, out: &mut [u8], _: &mut DecodeScratch) -> Result<()> {
        copy(block, 0..block.spec.raw_bytes, out)
    }

    fn decode_range(
        &self,
        block: &Block<'_, ()>,
        range: &Range<usize>,
        out: &mut [u8],
        _: &mut DecodeScratch,
    ) -> Result<bool> {
        let w = block.spec.element_bytes;
        // no overflow: at most the length of the block
        copy(block, range.start * w..range.end * w, out).map(|()| true)
    }
}

fn copy(block: &Block<'_, ()>, bytes: Range<usize>, out: &mut [u8]) -> Result<()> {
    let from = whole(block)?.get(bytes).filter(|from| from.len() == out.len());
    let from = from.ok_or_else(|| Error::internal("a range of raw bytes lies outside its block"))?;
    out.copy_from_slice(from); // equal lengths
    Ok(())
}

/// Returns the stored bytes of a block, if they are as long as the decoded bytes.
fn whole<'a>(block: &Block<'a, ()>) -> Result<&'a [u8]> {
    if block.stored.len() == block.spec.raw_bytes {
        return Ok(block.stored);
    }
    let message = format!("expected {} raw bytes, found {}", block.spec.raw_bytes, block.stored.len());
    Err(Error::corrupt("R-5.3", message))
}

impl BlockEncoder for RawBlocks {
    fn each_plan(&self, _: RawPart<'_>, scratch: &mut EncodeScratch, visit: &mut VisitPlan<'_>) -> Result<()> {
        visit(&[], &|bytes| bytes, scratch).map(drop)
    }

    fn encode(
        &self,
        part: RawPart<'_>,
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        _: &mut EncodeScratch,
    ) -> Result<()> {
        stored.extend_from_slice(part.bytes_of(elements));
        Ok(())
    }
}

pub(crate) struct Constant;

impl BlockCodec for Constant {
    type Tables = ();

    const ID: u16 = 1;
    const NAME: &'static str = "constant";
    const IS_CONSTANT: bool = true;
    const IS_DEVICE_DECODABLE: bool = true;

    fn parse_tables(&self, _: PartSpec<'_>, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn check(&self, block: &Block<'_, ()>) -> Result<()> {
        let Block { spec, stored, .. } = block;
        let whole = spec.raw_bytes != 0 && spec.raw_bytes.is_multiple_of(spec.element_bytes);
        if stored.len() == spec.element_bytes && whole {
            return Ok(());
        }
        let message = format!(
            "a constant of {} bytes cannot fill {} bytes of {}-byte elements",
            stored.len(),
            spec.raw_bytes,
            spec.element_bytes
        );
        Err(Error::corrupt("R-5.4", message))
    }

    fn decode(&self, block: &Block<'_, ()>, out: &mut [u8], _: &mut DecodeScratch) -> Result<()> {
        self.check(block)?;
        // each step doubles the filled bytes, so a few long copies suffice
        let mut filled = block.spec.element_bytes;
        if let Some(first) = out.get_mut(..filled) {
            first.copy_from_slice(block.stored); // equal lengths
        }
        while filled != 0 && filled < out.len() {
            let (done, rest) = out.split_at_mut(filled);
            let length = done.len().min(rest.len());
            // in bounds: the smaller of the two lengths
            rest[..length].copy_from_slice(&done[..length]);
            filled += length;
        }
        Ok(())
    }

    fn decode_range(
        &self,
        block: &Block<'_, ()>,
        _: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        self.decode(block, out, scratch).map(|()| true)
    }
}

/// Returns the repeated element if all elements are equal.
fn repeated(element_bytes: usize, raw: &[u8]) -> Option<&[u8]> {
    let (first, rest) = raw.split_at_checked(element_bytes)?;
    // all elements are equal if and only if the bytes equal themselves shifted by one element
    let shifted = raw.len().checked_sub(element_bytes)?;
    let is_repeated = !first.is_empty() && raw.len().is_multiple_of(element_bytes) && raw.get(..shifted) == Some(rest);
    is_repeated.then_some(first)
}

impl BlockEncoder for Constant {
    fn estimate(&self, part: &mut SampledPart<'_>, _: &mut EncodeScratch) -> Option<usize> {
        repeated(part.geometry.element_bytes, part.raw).map(<[u8]>::len)
    }

    fn each_plan(&self, part: RawPart<'_>, scratch: &mut EncodeScratch, visit: &mut VisitPlan<'_>) -> Result<()> {
        match repeated(part.geometry.element_bytes, part.raw) {
            Some(_) => visit(&[], &|bytes| bytes, scratch).map(drop),
            None => Ok(()),
        }
    }

    fn encode(&self, part: RawPart<'_>, _: &Range<usize>, stored: &mut Vec<u8>, _: &mut EncodeScratch) -> Result<()> {
        stored.extend(part.raw.iter().take(part.geometry.element_bytes));
        Ok(())
    }

    /// Appends one element, regardless of the planned blocks.
    fn append(&self, part: RawPart<'_>, _: &[u8], stored: &mut Vec<u8>, scratch: &mut EncodeScratch) -> Result<bool> {
        self.encode(part, &(0..0), stored, scratch).map(|()| true)
    }
}
