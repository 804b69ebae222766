//! Chapter 5.9: the encoding *residual-tiers*.
//!
//! Elements are predicted, from the one before or from the row above. The residual of each, zigzag
//! coded, is its bit length, which tiers code, and its *extra bits*, which are those below its
//! highest one. Lengths are few and unevenly distributed; extra bits are noise and kept as they
//! are.
//!
//! The extra bits of a group of 64 are stored plane by plane, so a range needs whole groups, and
//! the lengths of all elements before it tell where its extra bits begin.

use super::plan::{TierPlan, histogram, write_block};
use super::stream::{TABLE_BYTES, TierScratch, TierStream, TierTables, describe_head, overrun, wrong_length};
use crate::codec::bits::{append_extra_bits, ends_in_zeros, sum_extra_bits};
use crate::codec::blocked::{Block, BlockLimits};
use crate::codec::{
    choice::{SampledPart, best_tier_transform, bit_lengths, transforms},
    encoding::{BlockCodec, BlockEncoder, VisitPlan, WORDS},
    geometry::RawPart,
    part::{Anatomy, PartSpec},
    scratch::{DecodeScratch, EncodeScratch},
    transform::Transform,
};
use crate::kernel::{Width, extra_bits, tiers::GROUP};
use crate::le::u64_of;
use crate::{Error, Result, memory};
use std::ops::Range;

struct StoredResiduals<'a> {
    width: Width,
    transform: Transform,
    lengths: TierStream<'a>,
    extra_bits: &'a [u8],
}

#[cold]
fn malformed(what: &str) -> Error {
    Error::corrupt("R-5.11", format!("residual-tiers: {what}"))
}

#[cold]
fn beyond() -> Error {
    Error::corrupt("R-5.9", "symbols of residual-tiers have more extra bits than the block")
}

impl StoredResiduals<'_> {
    /// Decodes the coded integers of elements `group` to `end`, to `out`, which has their length.
    /// `group` is the start of a group.
    fn coded_from(&self, group: usize, end: usize, out: &mut [u8], scratch: &mut TierScratch) -> Result<()> {
        let mut at = 0_u64;
        let most = self.extra_bits.len().saturating_mul(8);
        let mut out = out;
        // from the start, as the extra bits of earlier elements are not counted anywhere
        self.lengths.decode_range(&(0..end), scratch, |first, lengths| {
            check_lengths(self.width, lengths)?; // a whole part checks all literals instead
            // at most all
            let (skipped, lengths) = lengths.split_at(group.saturating_sub(first).min(lengths.len()));
            at = at.saturating_add(sum_extra_bits(skipped));
            let bits = usize::try_from(at).ok().filter(|&bits| bits <= most).ok_or_else(beyond)?;
            let block = out.split_off_mut(..lengths.len() * self.width.bytes()).ok_or_else(overrun)?;
            let next = extra_bits::best().deposit(self.width, lengths, self.extra_bits, bits, block);
            at = u64_of(next);
            if next <= most { Ok(()) } else { Err(beyond()) }
        })
    }

    /// Checks where the extra bits end, and that the bits after them are zero.
    fn check_end(&self, at: usize) -> Result<()> {
        if at.div_ceil(8) != self.extra_bits.len() {
            return Err(wrong_length());
        }
        if ends_in_zeros(self.extra_bits, at) { Ok(()) } else { Err(malformed("filling bits are not zero")) }
    }

    fn describe(&self, anatomy: &mut Anatomy) {
        self.lengths.describe(anatomy);
        anatomy.add("extra bits", "the bits of residuals below their highest", self.extra_bits);
    }

    fn decode(&self, out: &mut [u8], scratch: &mut TierScratch) -> Result<()> {
        let mut at = 0;
        let mut rest = &mut *out;
        self.lengths.decode(scratch, |_, lengths| {
            let block = rest.split_off_mut(..lengths.len() * self.width.bytes()).ok_or_else(overrun)?;
            at = extra_bits::best().deposit(self.width, lengths, self.extra_bits, at, block);
            Ok(())
        })?;
        self.check_end(at)?;
        self.transform.undo(self.width, out);
        Ok(())
    }

    /// Decodes the elements of a range, of `count` elements in all. Returns `false` if so many
    /// precede it that all cost little more.
    fn decode_range(
        &self,
        count: usize,
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        let restart = self.transform.start_of(range.start);
        if range.start - restart > count / 3 {
            return Ok(false);
        }
        let group = restart - restart % GROUP;
        // the extra bits of a group are stored plane by plane, so one needs the lengths of all
        let end = range.end.next_multiple_of(GROUP).min(count);
        let DecodeScratch { tiers, coded, .. } = scratch;
        if (group..end) == *range {
            self.coded_from(group, end, out, tiers)?;
            self.transform.undo(self.width, out);
            return Ok(true);
        }
        let bytes = |from: usize, to: usize| (from - group) * self.width.bytes()..(to - group) * self.width.bytes();
        memory::resize(coded, bytes(group, end).end, 0)?;
        self.coded_from(group, end, coded, tiers)?;
        self.transform.undo(self.width, coded.get_mut(bytes(restart, range.end)).ok_or_else(wrong_length)?);
        // equal lengths
        out.copy_from_slice(coded.get(bytes(range.start, range.end)).ok_or_else(wrong_length)?);
        Ok(true)
    }
}

/// Checks of some symbols.
fn check_lengths(width: Width, lengths: &[u8]) -> Result<()> {
    if lengths.iter().copied().max().is_some_and(|longest| usize::from(longest) > 8 * width.bytes()) {
        return Err(malformed("a rank or literal is no bit length of an element"));
    }
    Ok(())
}

pub(crate) struct ResidualBlocks;

fn check_tables(width: Width, tables: TierTables) -> Result<TierTables> {
    if tables.transform == Transform::Rotate {
        return Err(malformed("it cannot rotate"));
    }
    check_lengths(width, &tables.head.ranks).map(|()| tables)
}

fn parse<'a>(block: &Block<'a, TierTables>) -> Result<(StoredResiduals<'a>, usize)> {
    let (width, count) = block.spec.width_and_count()?;
    let stored = block.tables.split(count, 0, block.stored)?;
    let (transform, extra_bits) = (block.tables.transform, stored.rest);
    let residuals = StoredResiduals { width, transform, lengths: stored.symbols, extra_bits };
    Ok((residuals, count))
}

impl BlockCodec for ResidualBlocks {
    type Tables = TierTables;

    const ID: u16 = 5;
    const NAME: &'static str = "residual-tiers";
    const TABLE_BYTES: usize = TABLE_BYTES;
    const LIMITS: BlockLimits = WORDS;
    const IS_FOR_DEVICES: bool = true;
    const TABLES_RULE: &'static str = "R-5.17";

    fn parse_tables(&self, spec: PartSpec<'_>, tables: &[u8]) -> Result<TierTables> {
        check_tables(spec.width_and_count()?.0, TierTables::parse(tables)?)
    }

    fn kept_tables(&self, spec: PartSpec<'_>, tables: &[u8], scratch: &mut DecodeScratch) -> Result<TierTables> {
        check_tables(spec.width_and_count()?.0, scratch.tier_tables.get(tables)?)
    }

    fn decode(&self, block: &Block<'_, TierTables>, out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let (residuals, _) = parse(block)?;
        check_lengths(residuals.width, residuals.lengths.literals)?;
        residuals.decode(out, &mut scratch.tiers)
    }

    fn decode_range(
        &self,
        block: &Block<'_, TierTables>,
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        let (residuals, count) = parse(block)?;
        residuals.decode_range(count, range, out, scratch)
    }

    fn transform(&self, tables: &TierTables) -> Option<String> {
        Some(tables.transform.describe())
    }

    fn describe(&self, block: &Block<'_, TierTables>, anatomy: &mut Anatomy) -> Result<()> {
        describe_head(block.stored, anatomy);
        parse(block)?.0.describe(anatomy);
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

    fn each_plan(&self, part: RawPart<'_>, scratch: &mut EncodeScratch, visit: &mut VisitPlan<'_>) -> Result<()> {
        let RawPart { geometry, raw } = part;
        let spec = PartSpec::new(geometry.element_bytes, raw.len());
        let Ok((width, _)) = spec.width_and_count() else { return Ok(()) };
        for transform in transforms(width, part, scratch) {
            let EncodeScratch { symbols, coded, head, search, .. } = scratch;
            bit_lengths(transform, width, geometry, raw, coded, symbols);
            *head = TierPlan::new(&histogram(symbols), *search).head;
            let mut tables = Vec::new();
            TierTables::new(transform, *head).write(&mut tables);
            visit(&tables, &|bytes| bytes, scratch)?;
        }
        Ok(())
    }

    fn encode(
        &self,
        part: RawPart<'_>,
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<()> {
        let RawPart { geometry, .. } = part;
        let EncodeScratch { symbols, coded, head, tiers, words, .. } = scratch;
        let width = Width::from_bytes(geometry.element_bytes).ok_or_else(not_of_part)?;
        let bytes = elements.start * width.bytes()..elements.end * width.bytes();
        let block = symbols.get(elements.clone()).zip(coded.get(bytes));
        let (lengths, coded) = block.ok_or_else(not_of_part)?;
        write_block(head, std::iter::empty(), lengths, stored, tiers)?;
        append_extra_bits(width, lengths, coded, words, stored);
        Ok(())
    }
}

#[cold]
fn not_of_part() -> Error {
    Error::internal("a block has elements that its part has not")
}
