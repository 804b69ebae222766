//! Chapter 5.13: bins, as an encoding of blocks.

use super::block_codec::{Block, BlockCodec};
use crate::codec::anatomy::Anatomy;
use crate::codec::bins::{BinTables, StoredBins, table_bytes};
use crate::codec::part_spec::PartSpec;
use crate::codec::scratch::DecodeScratch;
use crate::{Error, Result, memory};
use std::ops::Range;
use std::sync::Arc;

pub(in crate::codec) struct BinBlocks;

impl BlockCodec for BinBlocks {
    type Tables = Arc<BinTables>;

    fn id(&self) -> u16 {
        13
    }

    fn name(&self) -> &'static str {
        "blocked-bins"
    }

    fn table_bytes(&self, front: &[u8]) -> Option<usize> {
        table_bytes(front)
    }

    fn parse_tables(&self, spec: PartSpec<'_>, tables: &[u8]) -> Result<Arc<BinTables>> {
        BinTables::parse(spec, tables).map(Arc::new)
    }

    fn kept_tables(&self, spec: PartSpec<'_>, tables: &[u8], scratch: &mut DecodeScratch) -> Result<Arc<BinTables>> {
        scratch.bin_tables.get(spec, tables)
    }

    fn decode(
        &self,
        tables: &Arc<BinTables>,
        block: &Block<'_>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<()> {
        StoredBins::split(tables, block.spec, block.stored)?.decode(out, &mut scratch.windows)?;
        tables.transform.undo(block.spec.width_and_count()?.0, out);
        Ok(())
    }

    /// Decodes all elements before the end of the range: a state codes every 64th element.
    fn decode_range(
        &self,
        tables: &Arc<BinTables>,
        block: &Block<'_>,
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        let (width, _) = block.spec.width_and_count()?;
        let w = width.bytes();
        let DecodeScratch { coded, windows, .. } = scratch;
        memory::resize(coded, range.end * w, 0)?; // at most the block
        StoredBins::split(tables, block.spec, block.stored)?.decode(coded, windows)?;
        let from = tables.transform.start_of(range.start) * w;
        tables.transform.undo(width, coded.get_mut(from..).unwrap_or(&mut []));
        let found = coded.get(range.start * w..).filter(|found| found.len() == out.len());
        // equal lengths
        out.copy_from_slice(found.ok_or_else(|| Error::internal("a range lies outside its block"))?);
        Ok(true)
    }

    fn transform(&self, tables: &Arc<BinTables>) -> Option<String> {
        Some(tables.transform.describe())
    }

    fn describe(&self, tables: &Arc<BinTables>, block: &Block<'_>, anatomy: &mut Anatomy) -> Result<()> {
        StoredBins::split(tables, block.spec, block.stored)?.describe(anatomy);
        Ok(())
    }
}
