//! Chapter 5.8: the encoding *exponent-tiers*.
//!
//! The lower bits of most floats are noise; their exponents are not. The top byte of each element,
//! of floats rotated so that it is the exponent, is coded in tiers, and the planes of the bytes
//! below are kept as they are. Nothing is predicted, so any element is decoded alone.

use super::plan::{TierPlan, histogram, write_block};
use super::stream::{
    TABLE_BYTES, TierBlock, TierScratch, TierStream, TierTables, describe_head, overrun, wrong_length,
};
use crate::codec::bits::{join, split};
use crate::codec::blocked::{Block, BlockLimits};
use crate::codec::{
    choice::SampledPart,
    encoding::{BlockCodec, BlockEncoder, VisitPlan, WORDS},
    geometry::RawPart,
    part::{Anatomy, PartSpec},
    scratch::{DecodeScratch, EncodeScratch},
    transform::Transform,
};
use crate::kernel::tiers::GROUP;
use crate::kernel::{Width, prefetch};
use crate::{Error, Result};
use std::ops::Range;

struct StoredExponents<'a> {
    width: Width,
    rotate: bool,
    low_bytes: &'a [u8],
    symbols: TierStream<'a>,
    count: usize,
}

impl StoredExponents<'_> {
    fn decode(&self, out: &mut [u8], scratch: &mut TierScratch) -> Result<()> {
        let mut out = out;
        self.symbols.decode(scratch, |at, symbols| {
            let block = out.split_off_mut(..symbols.len() * self.width.bytes()).ok_or_else(overrun)?;
            self.join(at, symbols, block);
            Ok(())
        })
    }

    fn decode_range(&self, range: &Range<usize>, out: &mut [u8], scratch: &mut TierScratch) -> Result<()> {
        let mut out = out;
        let groups = range.start - range.start % GROUP..range.end;
        self.symbols.decode_range(&groups, scratch, |at, symbols| {
            let skip = range.start.saturating_sub(at); // the first group may begin before the range
            let symbols = symbols.get(skip..).unwrap_or(&[]);
            let block = out.split_off_mut(..symbols.len() * self.width.bytes()).ok_or_else(overrun)?;
            self.join(at + skip, symbols, block);
            Ok(())
        })
    }

    fn describe(&self, anatomy: &mut Anatomy) {
        for (byte, plane) in self.low_bytes.chunks_exact(self.count.max(1)).enumerate() {
            anatomy.add(format!("byte {byte}"), "as it is", plane);
        }
        self.symbols.describe(anatomy);
    }

    /// Joins symbols, the first of which is that of element `at`, with their low bytes.
    fn join(&self, at: usize, symbols: &[u8], out: &mut [u8]) {
        let planes = self.low_bytes.chunks_exact(self.count.max(1));
        join(self.width, self.rotate, planes.map(|plane| plane.get(at..).unwrap_or(&[])), symbols, out);
    }
}

pub(crate) struct ExponentBlocks;

fn check_tables(tables: TierTables) -> Result<TierTables> {
    match tables.transform {
        Transform::Predict(_) => Err(Error::corrupt("R-5.10", "exponent-tiers cannot predict")),
        _ => Ok(tables),
    }
}

#[inline]
fn parse<'a>(block: &Block<'a, TierTables>) -> Result<StoredExponents<'a>> {
    let (width, count) = block.spec.width_and_count()?;
    let rotate = block.tables.transform == Transform::Rotate;
    // a width is at least 1
    match block.tables.split(count, count.saturating_mul(width.bytes() - 1), block.stored)? {
        TierBlock { low_bytes, symbols, rest: [] } => Ok(StoredExponents { width, rotate, low_bytes, symbols, count }),
        _ => Err(wrong_length()),
    }
}

impl BlockCodec for ExponentBlocks {
    type Tables = TierTables;

    const ID: u16 = 4;
    const NAME: &'static str = "exponent-tiers";
    const TABLE_BYTES: usize = TABLE_BYTES;
    const LIMITS: BlockLimits = WORDS;
    const IS_FOR_DEVICES: bool = true;
    const TABLES_RULE: &'static str = "R-5.17";

    fn parse_tables(&self, _: PartSpec<'_>, tables: &[u8]) -> Result<TierTables> {
        check_tables(TierTables::parse(tables)?)
    }

    fn kept_tables(&self, _: PartSpec<'_>, tables: &[u8], scratch: &mut DecodeScratch) -> Result<TierTables> {
        check_tables(scratch.tier_tables.get(tables)?)
    }

    fn decode(&self, block: &Block<'_, TierTables>, out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        parse(block)?.decode(out, &mut scratch.tiers)
    }

    fn decode_range(
        &self,
        block: &Block<'_, TierTables>,
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        parse(block)?.decode_range(range, out, &mut scratch.tiers).map(|()| true)
    }

    /// Announces the tiers, which end the block, and one plane of low bytes: most elements have no
    /// other.
    fn announce(&self, block: &Block<'_, TierTables>, range: &Range<usize>) {
        let PartSpec { raw_bytes, element_bytes, .. } = block.spec;
        let low_bytes = raw_bytes - raw_bytes / element_bytes.max(1);
        prefetch(block.stored.get(low_bytes..).unwrap_or(&[]));
        prefetch(block.stored.get(range.clone()).unwrap_or(&[]));
    }

    fn transform(&self, tables: &TierTables) -> Option<String> {
        Some(tables.transform.describe())
    }

    fn describe(&self, block: &Block<'_, TierTables>, anatomy: &mut Anatomy) -> Result<()> {
        describe_head(block.stored, anatomy);
        parse(block)?.describe(anatomy);
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

    fn each_plan(&self, part: RawPart<'_>, scratch: &mut EncodeScratch, visit: &mut VisitPlan<'_>) -> Result<()> {
        let RawPart { geometry, raw } = part;
        let spec = PartSpec::new(geometry.element_bytes, raw.len());
        let Ok((width, _)) = spec.width_and_count() else { return Ok(()) };
        let EncodeScratch { symbols, low_bytes, head, search, .. } = scratch;
        split(width, geometry.float, raw, symbols, low_bytes);
        let transform = if geometry.float { Transform::Rotate } else { Transform::None };
        *head = TierPlan::new(&histogram(symbols), *search).head;
        let mut tables = Vec::new();
        TierTables::new(transform, *head).write(&mut tables);
        visit(&tables, &|bytes| bytes, scratch).map(drop)
    }

    fn encode(
        &self,
        _: RawPart<'_>,
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
