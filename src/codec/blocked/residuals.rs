//! Chapter 5.9: residual-tiers.

use super::block_codec::{Block, BlockCodec, BlockEncoder, VisitPlan, WORDS};
use super::front::BlockLimits;
use super::tiers::{TABLE_BYTES, TierTables, describe_head, write_block};
use crate::codec::anatomy::Anatomy;
use crate::codec::extra_bits::sum_extra_bits;
use crate::codec::geometry::Geometry;
use crate::codec::part_spec::PartSpec;
use crate::codec::predict::{best_tier_transform, transform_blocks, transforms};
use crate::codec::residual_tiers::{StoredResiduals, check_lengths, malformed};
use crate::codec::sample::SampledPart;
use crate::codec::scratch::{DecodeScratch, EncodeScratch};
use crate::codec::tier_plan::{TierPlan, histogram};
use crate::codec::transform::Transform;
use crate::kernel::{Width, extra_bits};
use crate::{Error, Result};
use std::ops::Range;

pub(in crate::codec) struct ResidualBlocks;

fn check_tables(width: Width, tables: TierTables) -> Result<TierTables> {
    if tables.transform == Transform::Rotate {
        return Err(malformed("it cannot rotate"));
    }
    check_lengths(width, &tables.head.ranks).map(|()| tables)
}

fn parse<'a>(tables: &TierTables, block: &Block<'a>) -> Result<(StoredResiduals<'a>, usize)> {
    let (width, count) = block.spec.width_and_count()?;
    let stored = tables.split(count, 0, block.stored)?;
    let (transform, extra_bits) = (tables.transform, stored.rest);
    let residuals = StoredResiduals { width, transform, lengths: stored.symbols, extra_bits };
    Ok((residuals, count))
}

impl BlockCodec for ResidualBlocks {
    type Tables = TierTables;

    const LIMITS: BlockLimits = WORDS;
    const TABLES_RULE: &'static str = "R-5.17";

    fn id(&self) -> u16 {
        5
    }

    fn name(&self) -> &'static str {
        "residual-tiers"
    }

    fn table_bytes(&self, _: &[u8]) -> Option<usize> {
        Some(TABLE_BYTES)
    }

    fn parse_tables(&self, spec: PartSpec<'_>, tables: &[u8]) -> Result<TierTables> {
        check_tables(spec.width_and_count()?.0, TierTables::parse(tables)?)
    }

    fn kept_tables(&self, spec: PartSpec<'_>, tables: &[u8], scratch: &mut DecodeScratch) -> Result<TierTables> {
        check_tables(spec.width_and_count()?.0, scratch.tier_tables.get(tables)?)
    }

    fn decode(
        &self,
        tables: &TierTables,
        block: &Block<'_>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<()> {
        let (residuals, _) = parse(tables, block)?;
        check_lengths(residuals.width, residuals.lengths.literals())?;
        residuals.decode(out, &mut scratch.tiers)
    }

    fn decode_range(
        &self,
        tables: &TierTables,
        block: &Block<'_>,
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        let (residuals, count) = parse(tables, block)?;
        residuals.decode_range(count, range, out, scratch)
    }

    fn transform(&self, tables: &TierTables) -> Option<String> {
        Some(tables.transform.describe())
    }

    fn describe(&self, tables: &TierTables, block: &Block<'_>, anatomy: &mut Anatomy) -> Result<()> {
        describe_head(block.stored, anatomy);
        parse(tables, block)?.0.describe(anatomy);
        Ok(())
    }
}

impl BlockEncoder for ResidualBlocks {
    fn estimate(&self, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Option<usize> {
        let width = Width::from_bytes(part.geometry.element_bytes)?;
        let (transform, bytes) = best_tier_transform(width, part, scratch);
        scratch.tier_transform = Some(transform);
        Some(bytes)
    }

    fn each_plan(
        &self,
        geometry: &Geometry<'_>,
        raw: &[u8],
        scratch: &mut EncodeScratch,
        visit: &mut VisitPlan<'_>,
    ) -> Result<()> {
        let Some(width) = Width::from_bytes(geometry.element_bytes) else { return Ok(()) };
        for transform in transforms(width, geometry, raw, scratch) {
            let mut tables = Vec::new();
            if self.plan_with(transform, geometry, raw, &mut tables, scratch)? {
                visit(&tables, &|bytes| bytes, scratch)?;
            }
        }
        Ok(())
    }

    fn encode(
        &self,
        geometry: &Geometry<'_>,
        _: &[u8],
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<()> {
        let EncodeScratch { symbols, coded, head, tiers, words, .. } = scratch;
        let width = Width::from_bytes(geometry.element_bytes).ok_or_else(not_of_part)?;
        let bytes = elements.start * width.bytes()..elements.end * width.bytes();
        let block = symbols.get(elements.clone()).zip(coded.get(bytes));
        let (lengths, coded) = block.ok_or_else(not_of_part)?;
        write_block(head, std::iter::empty(), lengths, stored, tiers)?;
        // at most 8 for each byte of the block
        let bits = usize::try_from(sum_extra_bits(lengths)).map_err(|_| not_of_part())?;
        words.clear();
        words.resize(bits.div_ceil(64) + 1, 0);
        extra_bits::best().extract(width, lengths, coded, words, 0);
        let extra = words.iter().flat_map(|word| word.to_le_bytes()).take(bits.div_ceil(8));
        stored.extend(extra);
        Ok(())
    }
}

#[cold]
fn not_of_part() -> Error {
    Error::internal("a block has elements that its part has not")
}

impl ResidualBlocks {
    /// Plans blocks with a transform, see [`BlockEncoder::plan`].
    fn plan_with(
        &self,
        transform: Transform,
        geometry: &Geometry<'_>,
        raw: &[u8],
        tables: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<bool> {
        let spec = PartSpec::new(geometry.element_bytes, raw.len());
        let Ok((width, count)) = spec.width_and_count() else { return Ok(false) };
        let EncodeScratch { symbols, coded, head, search, .. } = scratch;
        transform_blocks(transform, width, geometry, raw, coded);
        symbols.resize(count, 0);
        extra_bits::best().lengths(width, coded, symbols);
        *head = TierPlan::new(&histogram(symbols), *search).head;
        TierTables::new(transform, *head).write(tables);
        Ok(true)
    }
}
