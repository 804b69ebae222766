//! Chapter 5.4: a frame of bit planes.

use super::frame::{FrameEncodeScratch, check_frame};
use crate::codec::blocked::{Block, BlockCodec, BlockEncoder};
use crate::codec::geometry::Geometry;
use crate::codec::part_spec::PartSpec;
use crate::codec::sample::{Pieces, SampledPart};
use crate::codec::scratch::{DecodeScratch, EncodeScratch};
use crate::kernel::{Width, bitshuffle};
use crate::{Error, Result, memory};
use std::ops::Range;

pub(in crate::codec) struct BitshuffleBlocks;

impl BlockCodec for BitshuffleBlocks {
    type Tables = ();

    fn id(&self) -> u16 {
        3
    }

    fn name(&self) -> &'static str {
        "bitshuffle-zstd"
    }

    fn table_bytes(&self, _: &[u8]) -> Option<usize> {
        Some(0)
    }

    fn parse_tables(&self, _: PartSpec<'_>, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn check(&self, (): &(), block: &Block<'_>) -> Result<()> {
        check_frame(block.spec.raw_bytes, block.stored)
    }

    fn decode(&self, (): &(), block: &Block<'_>, out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let (width, _) = block.spec.width_and_count()?;
        check_frame(block.spec.raw_bytes, block.stored)?;
        let scratch = &mut scratch.frames;
        memory::resize(&mut scratch.bytes, block.spec.raw_bytes, 0)?;
        scratch.zstd.decode(block.stored, &mut scratch.bytes)?;
        bitshuffle::best().unshuffle(width, &scratch.bytes, out);
        Ok(())
    }
}

/// The quickest level of Zstandard takes more than others by about one in this many bytes.
const QUICKEST_MISSES_ONE_IN: usize = 8;

impl BlockEncoder for BitshuffleBlocks {
    /// Compresses half of the sample with the fastest level, which finds less than the profile's.
    fn estimate(&self, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Option<usize> {
        let width = Width::from_bytes(part.geometry.element_bytes)?;
        let FrameEncodeScratch { quick, bytes, frame, .. } = &mut scratch.frames;
        let Pieces { bytes: sample, ends } = &part.sample.blocks;
        let half = ends.get(ends.len().div_ceil(2).wrapping_sub(1)).map_or(0, |&end| end as usize);
        let elements = sample.get(..half * width.bytes()).unwrap_or(&[]);
        bytes.resize(elements.len(), 0);
        bitshuffle::best().shuffle(width, elements, bytes);
        quick.encode(bytes, frame).ok()?;
        let one_in = part.raw.len() as f64 / elements.len().max(1) as f64;
        let estimate = (frame.len() as f64 * one_in) as usize; // saturating
        Some(estimate - estimate / QUICKEST_MISSES_ONE_IN)
    }

    fn plan(&self, _: &Geometry<'_>, _: &[u8], _: &mut Vec<u8>, _: &mut EncodeScratch) -> Result<bool> {
        Ok(true)
    }

    fn encode(
        &self,
        geometry: &Geometry<'_>,
        raw: &[u8],
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<()> {
        let raw = geometry.bytes_of(raw, elements);
        let width = Width::from_bytes(geometry.element_bytes);
        let width = width.ok_or_else(|| Error::internal("elements of this length have no bit planes"))?;
        let scratch = &mut scratch.frames;
        scratch.bytes.resize(raw.len(), 0);
        bitshuffle::best().shuffle(width, raw, &mut scratch.bytes);
        scratch.zstd.encode(&scratch.bytes, &mut scratch.frame)?;
        stored.extend_from_slice(&scratch.frame);
        Ok(())
    }
}
