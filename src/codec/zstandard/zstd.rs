//! Chapter 5.5: one frame.

use super::frame::check_frame;
use crate::Result;
use crate::codec::encoding::{Codec, Encoder};
use crate::codec::geometry::Geometry;
use crate::codec::part_spec::PartSpec;
use crate::codec::scratch::{DecodeScratch, EncodeScratch};

pub(in crate::codec) struct Zstd;

impl Codec for Zstd {
    fn id(&self) -> u16 {
        3
    }

    fn name(&self) -> &'static str {
        "zstd"
    }

    fn check(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<()> {
        check_frame(spec.raw_bytes, stored)
    }

    fn decode(&self, _: PartSpec<'_>, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        scratch.frames.zstd.decode(stored, out)
    }
}

impl Encoder for Zstd {
    fn encode(&self, _: &Geometry<'_>, raw: &[u8], stored: &mut Vec<u8>, scratch: &mut EncodeScratch) -> Result<bool> {
        scratch.frames.zstd.encode(raw, stored)?;
        Ok(true)
    }
}
