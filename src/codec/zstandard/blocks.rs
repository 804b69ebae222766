//! Chapter 5.12: blocks that are Zstandard frames.

use super::frame::check_frame;
use crate::codec::blocked::{Block, BlockCodec, BlockEncoder, NO_TABLE, table_number};
use crate::codec::encoding::Encoder;
use crate::codec::geometry::Geometry;
use crate::codec::part_spec::PartSpec;
use crate::codec::sample::SampledPart;
use crate::codec::scratch::{DecodeScratch, EncodeScratch};
use crate::codec::zstandard::BitshuffleZstd;
use crate::kernel::bitshuffle;
use crate::{Error, Result, memory};
use std::ops::Range;

/// Frames of bit planes.
pub(in crate::codec) struct BitshuffleBlocks;

/// Frames of text and bytes.
pub(in crate::codec) struct ZstdBlocks;

impl BlockCodec for BitshuffleBlocks {
    type Tables = ();

    fn id(&self) -> u16 {
        9
    }

    fn name(&self) -> &'static str {
        "blocked-bitshuffle-zstd"
    }

    fn table_bytes(&self, _: &[u8]) -> Option<usize> {
        Some(0)
    }

    fn parse_tables(&self, _: PartSpec<'_>, _: &[u8]) -> Result<()> {
        Ok(())
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

impl BlockEncoder for BitshuffleBlocks {
    fn estimate(&self, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Option<usize> {
        BitshuffleZstd.estimate(part, scratch)
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
        let mut frame = std::mem::take(&mut scratch.frames.frame);
        let encoded = BitshuffleZstd.encode(geometry, bytes_of(geometry, raw, elements), &mut frame, scratch);
        stored.extend_from_slice(&frame);
        scratch.frames.frame = frame;
        encoded.map(|_| ())
    }
}

impl BlockCodec for ZstdBlocks {
    /// The table of the column.
    type Tables = Option<u32>;

    fn id(&self) -> u16 {
        10
    }

    fn name(&self) -> &'static str {
        "blocked-zstd"
    }

    fn table_bytes(&self, _: &[u8]) -> Option<usize> {
        Some(size_of::<u32>())
    }

    fn needs_table(&self) -> bool {
        true
    }

    fn table(&self, tables: &[u8]) -> Option<u32> {
        table_number(tables)
    }

    fn parse_tables(&self, _: PartSpec<'_>, tables: &[u8]) -> Result<Option<u32>> {
        Ok(table_number(tables))
    }

    fn decode(
        &self,
        table: &Option<u32>,
        block: &Block<'_>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<()> {
        check_frame(block.spec.raw_bytes, block.stored)?;
        match (block.spec.dictionary, table) {
            (Some(dictionary), Some(_)) => scratch.frames.zstd.decode_with(dictionary.prepared(), block.stored, out),
            (_, None) => scratch.frames.zstd.decode(block.stored, out),
            (None, Some(_)) => Err(Error::internal("a part is decoded without its table")),
        }
    }
}

impl BlockEncoder for ZstdBlocks {
    /// Returns 0, which no other estimate beats, if the column has a dictionary.
    fn estimate(&self, _: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Option<usize> {
        scratch.dictionary.is_some().then_some(0)
    }

    fn plan(&self, _: &Geometry<'_>, _: &[u8], tables: &mut Vec<u8>, scratch: &mut EncodeScratch) -> Result<bool> {
        let table = scratch.dictionary.as_ref().map_or(NO_TABLE, |dictionary| dictionary.table);
        tables.extend_from_slice(&table.to_le_bytes());
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
        let raw = bytes_of(geometry, raw, elements);
        let EncodeScratch { frames, dictionary, .. } = scratch;
        match dictionary {
            Some(dictionary) => frames.with_dictionary.encode(&dictionary.prepared, raw, &mut frames.frame)?,
            None => frames.zstd.encode(raw, &mut frames.frame)?,
        }
        stored.extend_from_slice(&frames.frame);
        Ok(())
    }
}

fn bytes_of<'a>(geometry: &Geometry<'_>, raw: &'a [u8], elements: &Range<usize>) -> &'a [u8] {
    // a part of the bytes
    raw.get(elements.start * geometry.element_bytes..elements.end * geometry.element_bytes).unwrap_or(&[])
}
