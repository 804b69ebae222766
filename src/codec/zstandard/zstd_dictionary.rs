//! Chapter 5.11: one frame that needs a dictionary.

use super::dictionary::MOST_BYTES;
use super::frame::check_frame;
use crate::codec::dictionary_body::table;
use crate::codec::encoding::{Codec, Encoder};
use crate::codec::geometry::Geometry;
use crate::codec::part_spec::PartSpec;
use crate::codec::sample::SampledPart;
use crate::codec::scratch::{DecodeScratch, EncodeScratch};
use crate::{Error, Result};

pub(in crate::codec) struct ZstdDictionary;

impl Codec for ZstdDictionary {
    fn id(&self) -> u16 {
        7
    }

    fn name(&self) -> &'static str {
        "zstd-dictionary"
    }

    fn needs_table(&self) -> bool {
        true
    }

    fn table(&self, stored: &[u8]) -> Result<Option<u32>> {
        table(stored).map(|(table, _)| Some(table))
    }

    fn check(&self, spec: PartSpec<'_>, stored: &[u8]) -> Result<()> {
        check_frame(spec.raw_bytes, table(stored)?.1)
    }

    fn decode(&self, spec: PartSpec<'_>, stored: &[u8], out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let dictionary = spec.dictionary.ok_or_else(|| Error::internal("a part is decoded without its table"))?;
        scratch.frames.zstd.decode_with(dictionary.prepared(), table(stored)?.1, out)
    }
}

impl Encoder for ZstdDictionary {
    /// Returns 0, which no other estimate beats, if the column has a dictionary.
    fn estimate(&self, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Option<usize> {
        (scratch.dictionary.is_some() && part.raw.len() <= MOST_BYTES).then_some(0)
    }

    fn encode(&self, _: &Geometry<'_>, raw: &[u8], stored: &mut Vec<u8>, scratch: &mut EncodeScratch) -> Result<bool> {
        let Some(dictionary) = scratch.dictionary.clone() else { return Ok(false) };
        let frames = &mut scratch.frames;
        frames.with_dictionary.encode(&dictionary.prepared, raw, &mut frames.frame)?;
        stored.clear();
        stored.extend_from_slice(&dictionary.table.to_le_bytes());
        stored.extend_from_slice(&frames.frame);
        Ok(true)
    }
}
