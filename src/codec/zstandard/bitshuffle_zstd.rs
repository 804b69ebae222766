//! Chapter 5.4: a frame of bit planes.

use super::frame::{FrameEncodeScratch, check_frame};
use crate::codec::encoding::{Codec, Encoder};
use crate::codec::geometry::Geometry;
use crate::codec::part_spec::PartSpec;
use crate::codec::sample::{Pieces, SampledPart};
use crate::codec::scratch::{DecodeScratch, EncodeScratch};
use crate::kernel::{Width, bitshuffle};
use crate::{Result, memory};

pub(in crate::codec) struct BitshuffleZstd;

impl Codec for BitshuffleZstd {
    fn id(&self) -> u16 {
        2
    }

    fn name(&self) -> &'static str {
        "bitshuffle-zstd"
    }

    fn check(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<()> {
        spec.width_and_count()?;
        check_frame(spec.raw_bytes, stored)
    }

    fn decode(&self, spec: PartSpec<'_>, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let (width, _) = spec.width_and_count()?;
        let scratch = &mut scratch.frames;
        memory::resize(&mut scratch.bytes, spec.raw_bytes, 0)?;
        scratch.zstd.decode(stored, &mut scratch.bytes)?;
        bitshuffle::best().unshuffle(width, &scratch.bytes, out);
        Ok(())
    }
}

/// The quickest level of Zstandard takes more than others by about one in this many bytes.
const QUICKEST_MISSES_ONE_IN: usize = 8;

impl Encoder for BitshuffleZstd {
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

    fn encode(
        &self,
        geometry: &Geometry<'_>,
        raw: &[u8],
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool> {
        let spec = PartSpec::new(geometry.element_bytes, raw.len());
        let Ok((width, _)) = spec.width_and_count() else { return Ok(false) };
        let scratch = &mut scratch.frames;
        scratch.bytes.resize(raw.len(), 0);
        bitshuffle::best().shuffle(width, raw, &mut scratch.bytes);
        scratch.zstd.encode(&scratch.bytes, stored)?;
        Ok(true)
    }
}
