//! Chapter 5.1: blocks of the decoded bytes, which adjoin each other.

use super::block_codec::{Block, BlockCodec, BlockEncoder};
use super::front::BlockLimits;
use crate::codec::geometry::Geometry;
use crate::codec::part_spec::PartSpec;
use crate::codec::scratch::{DecodeScratch, EncodeScratch};
use crate::{Error, Result};
use std::ops::Range;

pub(in crate::codec) struct RawBlocks;

impl BlockCodec for RawBlocks {
    type Tables = ();

    /// The values of a chunk begin at a multiple of 64, and are a view of the file.
    const LIMITS: BlockLimits = BlockLimits { max_elements: usize::MAX, front_align: 64, block_align: 1 };

    fn id(&self) -> u16 {
        0
    }

    fn name(&self) -> &'static str {
        "raw"
    }

    fn table_bytes(&self, _: &[u8]) -> Option<usize> {
        Some(0)
    }

    fn is_identity(&self) -> bool {
        true
    }

    fn parse_tables(&self, _: PartSpec<'_>, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn check(&self, (): &(), block: &Block<'_>) -> Result<()> {
        whole(block).map(drop)
    }

    fn decode(&self, (): &(), block: &Block<'_>, out: &mut [u8], _: &mut DecodeScratch) -> Result<()> {
        copy(block, 0..block.spec.raw_bytes, out)
    }

    fn decode_range(
        &self,
        (): &(),
        block: &Block<'_>,
        range: &Range<usize>,
        out: &mut [u8],
        _: &mut DecodeScratch,
    ) -> Result<bool> {
        let w = block.spec.element_bytes;
        // at most those of the block
        copy(block, range.start * w..range.end * w, out).map(|()| true)
    }
}

fn copy(block: &Block<'_>, bytes: Range<usize>, out: &mut [u8]) -> Result<()> {
    let from = whole(block)?.get(bytes).filter(|from| from.len() == out.len());
    let from = from.ok_or_else(|| Error::internal("a range of raw bytes lies outside its block"))?;
    out.copy_from_slice(from); // equal lengths
    Ok(())
}

/// Returns the stored bytes of a block, if they are as long as the decoded ones.
fn whole<'a>(block: &Block<'a>) -> Result<&'a [u8]> {
    if block.stored.len() == block.spec.raw_bytes {
        return Ok(block.stored);
    }
    let message = format!("expected {} raw bytes, found {}", block.spec.raw_bytes, block.stored.len());
    Err(Error::corrupt("R-5.3", message))
}

impl BlockEncoder for RawBlocks {
    fn plan(&self, _: &Geometry<'_>, _: &[u8], _: &mut Vec<u8>, _: &mut EncodeScratch) -> Result<bool> {
        Ok(true)
    }

    fn encode(
        &self,
        geometry: &Geometry<'_>,
        raw: &[u8],
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        _: &mut EncodeScratch,
    ) -> Result<()> {
        let w = geometry.element_bytes;
        // a part of the bytes
        stored.extend_from_slice(raw.get(elements.start * w..elements.end * w).unwrap_or(&[]));
        Ok(())
    }
}
