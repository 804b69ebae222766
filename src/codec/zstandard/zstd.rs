//! Chapter 5.5: a frame of text or bytes, perhaps with a dictionary.

use super::dictionary::MOST_BYTES;
use super::frame::check_frame;
use crate::codec::blocked::{Block, BlockCodec, BlockEncoder, NO_TABLE, VisitPlan, table_number};
use crate::codec::geometry::Geometry;
use crate::codec::part_spec::PartSpec;
use crate::codec::scratch::{DecodeScratch, EncodeScratch};
use crate::codec::search::Idea;
use crate::{Error, Result};
use std::ops::Range;

pub(in crate::codec) struct ZstdBlocks;

impl BlockCodec for ZstdBlocks {
    /// The table of the column.
    type Tables = Option<u32>;

    const TABLES_RULE: &'static str = "R-5.13";

    fn id(&self) -> u16 {
        2
    }

    fn name(&self) -> &'static str {
        "zstd"
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

    fn check(&self, _: &Option<u32>, block: &Block<'_>) -> Result<()> {
        check_frame(block.spec.raw_bytes, block.stored)
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
    /// Encodes one block with and without a dictionary. Short blocks gain most by it, so that
    /// several are encoded with it if there is one.
    fn each_plan(
        &self,
        geometry: &Geometry<'_>,
        raw: &[u8],
        scratch: &mut EncodeScratch,
        visit: &mut VisitPlan<'_>,
    ) -> Result<()> {
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
        geometry: &Geometry<'_>,
        raw: &[u8],
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<()> {
        let raw = geometry.bytes_of(raw, elements);
        let EncodeScratch { frames, dictionary, .. } = scratch;
        match dictionary {
            Some(dictionary) => frames.with_dictionary.encode(&dictionary.prepared, raw, &mut frames.frame)?,
            None => frames.zstd.encode(raw, &mut frames.frame)?,
        }
        stored.extend_from_slice(&frames.frame);
        Ok(())
    }
}
