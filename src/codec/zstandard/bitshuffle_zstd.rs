//! Chapter 5.4: a frame of bit planes.

use super::frame::{FrameEncodeScratch, check_frame};
use crate::codec::encoding::{Codec, Encoder};
use crate::codec::geometry::Geometry;
use crate::codec::part_spec::PartSpec;
use crate::codec::sampling::windows;
use crate::codec::scratch::{DecodeScratch, EncodeScratch};
use crate::kernel::bitshuffle;
use crate::{Result, memory};

/// Elements of a window that is compressed for an estimate.
const WINDOW: usize = 2048;

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

impl Encoder for BitshuffleZstd {
    /// Compresses some windows with the quickest level.
    fn estimate(&self, geometry: &Geometry<'_>, raw: &[u8], scratch: &mut EncodeScratch) -> Option<usize> {
        let spec = PartSpec::new(geometry.element_bytes, raw.len());
        let (width, count) = spec.width_and_count().ok()?;
        let FrameEncodeScratch { quick, bytes, frame, .. } = &mut scratch.frames;
        let (mut sampled, mut stored) = (0, 0);
        for window in windows(count, WINDOW) {
            let elements = raw.get(window.start * width.bytes()..window.end * width.bytes())?;
            bytes.resize(elements.len(), 0);
            bitshuffle::best().shuffle(width, elements, bytes);
            quick.encode(bytes, frame).ok()?;
            sampled += window.len();
            stored += frame.len();
        }
        stored.checked_mul(count)?.checked_div(sampled)
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
