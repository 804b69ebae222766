//! The encodings that store a block as a single frame: *zstd* (chapter 5.5) and *bitshuffle-zstd*
//! (5.4).
//!
//! Text and bytes are compressed as they are, perhaps with a dictionary of the column. Numbers are
//! transposed to bit planes first, so that equal bits adjoin each other. A frame is checked before
//! memory is taken for it, see `frame.rs`.

use super::frame::{FrameEncodeScratch, MOST_BYTES, check_frame};
use crate::codec::blocked::Block;
use crate::codec::{
    choice::{Idea, Pieces, SampledPart},
    encoding::{BlockCodec, BlockEncoder, NO_TABLE, VisitPlan, table_number},
    geometry::RawPart,
    part::PartSpec,
    scratch::{DecodeScratch, EncodeScratch},
};
use crate::kernel::{Width, bitshuffle};
use crate::{Error, Result, memory};
use std::ops::Range;

pub(crate) struct ZstdBlocks;

impl BlockCodec for ZstdBlocks {
    /// The table of the column.
    type Tables = Option<u32>;

    const ID: u16 = 2;
    const NAME: &'static str = "zstd";
    const TABLE_BYTES: usize = size_of::<u32>();
    const NEEDS_TABLE: bool = true;
    const TABLES_RULE: &'static str = "R-5.13";

    fn table(&self, tables: &[u8]) -> Option<u32> {
        table_number(tables)
    }

    fn parse_tables(&self, _: PartSpec<'_>, tables: &[u8]) -> Result<Option<u32>> {
        Ok(table_number(tables))
    }

    fn check(&self, block: &Block<'_, Option<u32>>) -> Result<()> {
        check_frame(block.spec.raw_bytes, block.stored)
    }

    fn decode(&self, block: &Block<'_, Option<u32>>, out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        check_frame(block.spec.raw_bytes, block.stored)?;
        match (block.spec.dictionary, block.tables) {
            (Some(dictionary), Some(_)) => scratch.frames.zstd.decode_with(dictionary.prepared(), block.stored, out),
            (_, None) => scratch.frames.zstd.decode(block.stored, out),
            (None, Some(_)) => Err(Error::internal("a part is decoded without its table")),
        }
    }
}

impl BlockEncoder for ZstdBlocks {
    /// Encodes one block with and without a dictionary. Short blocks gain most by it, so that
    /// several are encoded with it if there is one.
    fn each_plan(&self, part: RawPart<'_>, scratch: &mut EncodeScratch, visit: &mut VisitPlan<'_>) -> Result<()> {
        let RawPart { geometry, raw } = part;
        let search = scratch.search;
        let dictionary = scratch.dictionary.take().filter(|_| search.has(Idea::ZstdDictionary));
        let is_long = !geometry.is_in_blocks() && raw.len() > MOST_BYTES;
        let dictionary = dictionary.filter(|_| !is_long);
        let mut visited = Ok(false);
        if search.has(Idea::Zstd) && !(geometry.is_in_blocks() && dictionary.is_some()) {
            visited = visit(&NO_TABLE.to_le_bytes(), &|bytes| bytes, scratch);
        }
        if let Some(table) = dictionary.as_ref().map(|dictionary| dictionary.table) {
            scratch.dictionary = dictionary;
            visited = visited.and_then(|_| visit(&table.to_le_bytes(), &|bytes| bytes, scratch));
        }
        visited.map(drop)
    }

    fn encode(
        &self,
        part: RawPart<'_>,
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<()> {
        let raw = part.bytes_of(elements);
        let EncodeScratch { frames, dictionary, .. } = scratch;
        match dictionary {
            Some(dictionary) => frames.with_dictionary.encode(&dictionary.prepared, raw, &mut frames.frame)?,
            None => frames.zstd.encode(raw, &mut frames.frame)?,
        }
        stored.extend_from_slice(&frames.frame);
        Ok(())
    }
}

pub(crate) struct BitshuffleBlocks;

impl BlockCodec for BitshuffleBlocks {
    type Tables = ();

    const ID: u16 = 3;
    const NAME: &'static str = "bitshuffle-zstd";

    fn parse_tables(&self, _: PartSpec<'_>, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn check(&self, block: &Block<'_, ()>) -> Result<()> {
        check_frame(block.spec.raw_bytes, block.stored)
    }

    fn decode(&self, block: &Block<'_, ()>, out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
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

    fn each_plan(&self, _: RawPart<'_>, scratch: &mut EncodeScratch, visit: &mut VisitPlan<'_>) -> Result<()> {
        visit(&[], &|bytes| bytes, scratch).map(drop)
    }

    fn encode(
        &self,
        part: RawPart<'_>,
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<()> {
        let raw = part.bytes_of(elements);
        let width = Width::from_bytes(part.geometry.element_bytes);
        let width = width.ok_or_else(|| Error::internal("elements of this length have no bit planes"))?;
        let scratch = &mut scratch.frames;
        scratch.bytes.resize(raw.len(), 0);
        bitshuffle::best().shuffle(width, raw, &mut scratch.bytes);
        scratch.zstd.encode(&scratch.bytes, &mut scratch.frame)?;
        stored.extend_from_slice(&scratch.frame);
        Ok(())
    }
}
