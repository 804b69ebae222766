//! Chapter 5.8: exponent-tiers.

use super::block_codec::{Block, BlockCodec, BlockEncoder, WORDS};
use super::front::BlockLimits;
use super::tiers::{TABLE_BYTES, TierBlock, TierTables, describe_head, write_block, wrong_length};
use crate::codec::anatomy::Anatomy;
use crate::codec::exponent_tiers::{StoredExponents, split};
use crate::codec::geometry::Geometry;
use crate::codec::part_spec::PartSpec;
use crate::codec::sample::SampledPart;
use crate::codec::scratch::{DecodeScratch, EncodeScratch};
use crate::codec::tier_plan::{TierPlan, histogram};
use crate::codec::transform::Transform;
use crate::kernel::{Width, prefetch};
use crate::{Error, Result};
use std::ops::Range;

pub(in crate::codec) struct ExponentBlocks;

fn check_tables(tables: TierTables) -> Result<TierTables> {
    match tables.transform {
        Transform::Predict(_) => Err(Error::corrupt("R-5.10", "exponent-tiers cannot predict")),
        _ => Ok(tables),
    }
}

#[inline]
fn parse<'a>(tables: &TierTables, block: &Block<'a>) -> Result<StoredExponents<'a>> {
    let (width, count) = block.spec.width_and_count()?;
    let rotate = tables.transform == Transform::Rotate;
    // a width is at least 1
    match tables.split(count, count.saturating_mul(width.bytes() - 1), block.stored)? {
        TierBlock { low_bytes, symbols, rest: [] } => Ok(StoredExponents { width, rotate, low_bytes, symbols, count }),
        _ => Err(wrong_length()),
    }
}

impl BlockCodec for ExponentBlocks {
    type Tables = TierTables;

    const LIMITS: BlockLimits = WORDS;
    const TABLES_RULE: &'static str = "R-5.17";

    fn id(&self) -> u16 {
        4
    }

    fn name(&self) -> &'static str {
        "exponent-tiers"
    }

    fn table_bytes(&self, _: &[u8]) -> Option<usize> {
        Some(TABLE_BYTES)
    }

    fn parse_tables(&self, _: PartSpec<'_>, tables: &[u8]) -> Result<TierTables> {
        check_tables(TierTables::parse(tables)?)
    }

    fn kept_tables(&self, _: PartSpec<'_>, tables: &[u8], scratch: &mut DecodeScratch) -> Result<TierTables> {
        check_tables(scratch.tier_tables.get(tables)?)
    }

    fn decode(
        &self,
        tables: &TierTables,
        block: &Block<'_>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<()> {
        parse(tables, block)?.decode(out, &mut scratch.tiers)
    }

    fn decode_range(
        &self,
        tables: &TierTables,
        block: &Block<'_>,
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        parse(tables, block)?.decode_range(range, out, &mut scratch.tiers).map(|()| true)
    }

    /// Announces the tiers, which end the block, and one plane of low bytes: most elements have no
    /// other.
    fn announce(&self, block: &Block<'_>, range: &Range<usize>) {
        let PartSpec { raw_bytes, element_bytes, .. } = block.spec;
        let low_bytes = raw_bytes - raw_bytes / element_bytes.max(1);
        prefetch(block.stored.get(low_bytes..).unwrap_or(&[]));
        prefetch(block.stored.get(range.clone()).unwrap_or(&[]));
    }

    fn transform(&self, tables: &TierTables) -> Option<String> {
        Some(tables.transform.describe())
    }

    fn describe(&self, tables: &TierTables, block: &Block<'_>, anatomy: &mut Anatomy) -> Result<()> {
        describe_head(block.stored, anatomy);
        parse(tables, block)?.describe(anatomy);
        Ok(())
    }
}

impl BlockEncoder for ExponentBlocks {
    fn estimate(&self, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Option<usize> {
        let width = Width::from_bytes(part.geometry.element_bytes)?;
        let EncodeScratch { symbols, low_bytes, search, .. } = scratch;
        split(width, part.geometry.float, &part.sample.blocks.bytes, symbols, low_bytes);
        let bits = TierPlan::new(&histogram(symbols), *search).bits;
        // an estimate, and saturating
        Some((TABLE_BYTES as f64 + (bits as f64 / 8.0 + low_bytes.len() as f64) * part.one_in()) as usize)
    }

    fn plan(
        &self,
        geometry: &Geometry<'_>,
        raw: &[u8],
        tables: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool> {
        let spec = PartSpec::new(geometry.element_bytes, raw.len());
        let Ok((width, _)) = spec.width_and_count() else { return Ok(false) };
        let EncodeScratch { symbols, low_bytes, head, search, .. } = scratch;
        split(width, geometry.float, raw, symbols, low_bytes);
        let transform = if geometry.float { Transform::Rotate } else { Transform::None };
        *head = TierPlan::new(&histogram(symbols), *search).head;
        TierTables::new(transform, *head).write(tables);
        Ok(true)
    }

    fn encode(
        &self,
        _: &Geometry<'_>,
        _: &[u8],
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<()> {
        let EncodeScratch { symbols, low_bytes, head, tiers, .. } = scratch;
        let planes = low_bytes.chunks_exact(symbols.len().max(1));
        // those of the part
        let planes = planes.map(|plane| plane.get(elements.clone()).unwrap_or(&[]));
        write_block(head, planes, symbols.get(elements.clone()).unwrap_or(&[]), stored, tiers)
    }
}
