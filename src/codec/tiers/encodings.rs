//! The encodings that use tiers: *exponent-tiers* (chapter 5.8) and *residual-tiers* (5.9).
//!
//! The lower bits of most floats are noise, but their exponents are not. *exponent-tiers* codes the
//! top byte of each element in tiers, and stores the planes of the lower bytes unchanged. Floats
//! are rotated first, which moves the exponent to the top byte. Nothing is predicted, so any
//! element decodes independently.
//!
//! *residual-tiers* predicts each element from the previous one or from the row above. It codes the
//! bit length of each zigzag residual in tiers. The bits below the highest one bit, the *extra
//! bits*, are stored unchanged. Lengths have few different values and a skewed distribution,
//! whereas extra bits are noise. The extra bits of each group of 64 elements are stored plane by
//! plane, so decoding a range requires whole groups. It also requires the lengths of all elements
//! before the range, because these determine where its extra bits begin.

use super::stream::{
    TABLE_BYTES, TierBlock, TierPlan, TierScratch, TierStream, TierTables, describe_header, histogram, overrun,
    write_block, wrong_length,
};
use crate::bytes::le::u64_of;
use crate::bytes::memory;
use crate::codec::{
    bits::{append_extra_bits, ends_in_zeros, join, split, sum_extra_bits},
    blocked::{Block, BlockCodec, BlockEncoder, BlockLimits, VisitPlan, WORD_LIMITS},
    choice::{SampledPart, best_tier_transform, bit_lengths, transforms},
    part::{Description, PartSpec, RawPart},
    scratch::{DecodeScratch, EncodeScratch},
    transform::Transform,
};
use crate::kernel::{Width, extra_bits, prefetch_cache_lines, tiers::GROUP};
use crate::{Error, Result};
use std::ops::Range;

// ---- exponent-tiers

struct StoredExponents<'a> {
    width: Width,
    rotate: bool,
    low_bytes: &'a [u8],
    symbols: TierStream<'a>,
    count: usize,
}

impl<'a> StoredExponents<'a> {
    #[inline]
    fn parse(block: &Block<'a, TierTables>) -> Result<Self> {
        let (width, count) = block.spec.width_and_count()?;
        let rotate = block.tables.transform == Transform::Rotate;
        // a width is at least 1
        match block.tables.split(count, count.saturating_mul(width.bytes() - 1), block.stored)? {
            TierBlock { low_bytes, symbols, rest: [] } => Ok(Self { width, rotate, low_bytes, symbols, count }),
            _ => Err(wrong_length()),
        }
    }

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
            let skip = range.start.saturating_sub(at); // the first group can begin before the range
            let symbols = symbols.get(skip..).unwrap_or(&[]);
            let block = out.split_off_mut(..symbols.len() * self.width.bytes()).ok_or_else(overrun)?;
            self.join(at + skip, symbols, block);
            Ok(())
        })
    }

    fn describe(&self, description: &mut Description) {
        for (byte, plane) in self.low_bytes.chunks_exact(self.count.max(1)).enumerate() {
            description.add(format!("byte {byte}"), "raw", plane);
        }
        self.symbols.describe(description);
    }

    /// Joins the symbols of the elements that begin at index `at` with their low bytes.
    fn join(&self, at: usize, symbols: &[u8], out: &mut [u8]) {
        let planes = self.low_bytes.chunks_exact(self.count.max(1));
        join(self.width, self.rotate, planes.map(|plane| plane.get(at..).unwrap_or(&[])), symbols, out);
    }
}

pub(crate) struct ExponentBlocks;

fn check_exponent_tables(tables: TierTables) -> Result<TierTables> {
    match tables.transform {
        Transform::Predict(_) => Err(Error::corrupt("R-5.10", "exponent-tiers does not allow prediction")),
        _ => Ok(tables),
    }
}

impl BlockCodec for ExponentBlocks {
    type Tables = TierTables;

    const ID: u16 = 4;
    const NAME: &'static str = "exponent-tiers";
    const TABLE_BYTES: usize = TABLE_BYTES;
    const LIMITS: BlockLimits = WORD_LIMITS;
    const IS_DEVICE_DECODABLE: bool = true;
    const TABLES_RULE: &'static str = "R-5.17";

    fn parse_tables(&self, _: PartSpec<'_>, tables: &[u8]) -> Result<TierTables> {
        check_exponent_tables(TierTables::parse(tables)?)
    }

    fn cached_tables(&self, _: PartSpec<'_>, tables: &[u8], scratch: &mut DecodeScratch) -> Result<TierTables> {
        check_exponent_tables(scratch.tier_tables.get(tables)?)
    }

    fn decode(&self, block: &Block<'_, TierTables>, out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        StoredExponents::parse(block)?.decode(out, &mut scratch.tiers)
    }

    fn decode_range(
        &self,
        block: &Block<'_, TierTables>,
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut DecodeScratch,
    ) -> Result<bool> {
        StoredExponents::parse(block)?.decode_range(range, out, &mut scratch.tiers).map(|()| true)
    }

    /// Prefetches the tiers, which are at the end of the block. Also prefetches one plane of low
    /// bytes, because elements of 2 bytes, the most common ones, have only one.
    fn prefetch(&self, block: &Block<'_, TierTables>, range: &Range<usize>) {
        let PartSpec { raw_bytes, element_bytes, .. } = block.spec;
        let low_bytes = raw_bytes - raw_bytes / element_bytes.max(1);
        prefetch_cache_lines(block.stored.get(low_bytes..).unwrap_or(&[]));
        prefetch_cache_lines(block.stored.get(range.clone()).unwrap_or(&[]));
    }

    fn transform(&self, tables: &TierTables) -> Option<String> {
        Some(tables.transform.describe())
    }

    fn describe(&self, block: &Block<'_, TierTables>, description: &mut Description) -> Result<()> {
        describe_header(block.stored, description);
        StoredExponents::parse(block)?.describe(description);
        Ok(())
    }
}

impl BlockEncoder for ExponentBlocks {
    fn estimate(&self, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> Option<usize> {
        let width = Width::from_bytes(part.geometry.element_bytes)?;
        let EncodeScratch { symbols, low_bytes, search, .. } = scratch;
        split(width, part.geometry.float, &part.sample.blocks.bytes, symbols, low_bytes);
        let bits = TierPlan::new(&histogram(symbols), *search).bits;
        // an estimate, so the cast can saturate
        Some((TABLE_BYTES as f64 + (bits as f64 / 8.0 + low_bytes.len() as f64) * part.sample_scale()) as usize)
    }

    fn each_plan(&self, part: RawPart<'_>, scratch: &mut EncodeScratch, visit: &mut VisitPlan<'_>) -> Result<()> {
        let RawPart { geometry, raw } = part;
        let spec = PartSpec::new(geometry.element_bytes, raw.len());
        let Ok((width, _)) = spec.width_and_count() else { return Ok(()) };
        let EncodeScratch { symbols, low_bytes, header, search, .. } = scratch;
        split(width, geometry.float, raw, symbols, low_bytes);
        let transform = if geometry.float { Transform::Rotate } else { Transform::None };
        *header = TierPlan::new(&histogram(symbols), *search).header;
        let mut tables = Vec::new();
        TierTables::new(transform, *header).write(&mut tables);
        visit(&tables, &|bytes| bytes, scratch).map(drop)
    }

    fn encode(
        &self,
        _: RawPart<'_>,
        elements: &Range<usize>,
        stored: &mut Vec<u8>,
        scratch: &mut EncodeScratch,
    ) -> Result<()> {
        let EncodeScratch { symbols, low_bytes, header, tiers, .. } = scratch;
        let planes = low_bytes.chunks_exact(symbols.len().max(1));
        // `low_bytes` has the planes of the whole part
        let planes = planes.map(|plane| plane.get(elements.clone()).unwrap_or(&[]));
        write_block(header, planes, symbols.get(elements.clone()).unwrap_or(&[]), stored, tiers)
    }
}

// ---- residual-tiers

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
    Error::corrupt("R-5.9", "residual-tiers: the symbols need more extra bits than the block has")
}

impl<'a> StoredResiduals<'a> {
    /// Parses a block. Also returns the number of its elements.
    fn parse(block: &Block<'a, TierTables>) -> Result<(Self, usize)> {
        let (width, count) = block.spec.width_and_count()?;
        let stored = block.tables.split(count, 0, block.stored)?;
        let (transform, extra_bits) = (block.tables.transform, stored.rest);
        let residuals = Self { width, transform, lengths: stored.symbols, extra_bits };
        Ok((residuals, count))
    }

    /// Decodes the coded integers of elements `group..end` to `out`, which must have their length.
    /// `group` must be the start of a group.
    fn coded_from(&self, group: usize, end: usize, out: &mut [u8], scratch: &mut TierScratch) -> Result<()> {
        let mut at = 0_u64;
        let max_bits = self.extra_bits.len().saturating_mul(8);
        let mut out = out;
        // from the first element, because the lengths of all earlier elements determine where the
        // extra bits begin
        self.lengths.decode_range(&(0..end), scratch, |first, lengths| {
            // when a whole block is decoded, all literals are checked instead
            check_lengths(self.width, lengths)?;
            // in bounds: at most the number of lengths
            let (skipped, lengths) = lengths.split_at(group.saturating_sub(first).min(lengths.len()));
            at = at.saturating_add(sum_extra_bits(skipped));
            let bits = usize::try_from(at).ok().filter(|&bits| bits <= max_bits).ok_or_else(beyond)?;
            let block = out.split_off_mut(..lengths.len() * self.width.bytes()).ok_or_else(overrun)?;
            let next = extra_bits::best().deposit(self.width, lengths, self.extra_bits, bits, block);
            at = u64_of(next);
            if next <= max_bits { Ok(()) } else { Err(beyond()) }
        })
    }

    /// Checks that the extra bits end at the end of the block, and that the bits after them are
    /// zero.
    fn check_end(&self, at: usize) -> Result<()> {
        if at.div_ceil(8) != self.extra_bits.len() {
            return Err(wrong_length());
        }
        if ends_in_zeros(self.extra_bits, at) { Ok(()) } else { Err(malformed("padding bits are not zero")) }
    }

    fn describe(&self, description: &mut Description) {
        self.lengths.describe(description);
        description.add("extra bits", "the bits of residuals below their highest one bit", self.extra_bits);
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

    /// Decodes a range of the `count` elements. Returns `false` if the range begins so far after a
    /// restart that decoding all elements would cost little more.
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
        // the extra bits of a group are stored plane by plane, so decoding any element requires the
        // lengths of the whole group
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

/// Checks for some symbols.
fn check_lengths(width: Width, lengths: &[u8]) -> Result<()> {
    if lengths.iter().copied().max().is_some_and(|longest| usize::from(longest) > 8 * width.bytes()) {
        return Err(malformed("a rank or literal exceeds the number of bits in an element"));
    }
    Ok(())
}

pub(crate) struct ResidualBlocks;

fn check_residual_tables(width: Width, tables: TierTables) -> Result<TierTables> {
    if tables.transform == Transform::Rotate {
        return Err(malformed("the transform is rotate, which is not allowed"));
    }
    check_lengths(width, &tables.header.ranks).map(|()| tables)
}

impl BlockCodec for ResidualBlocks {
    type Tables = TierTables;

    const ID: u16 = 5;
    const NAME: &'static str = "residual-tiers";
    const TABLE_BYTES: usize = TABLE_BYTES;
    const LIMITS: BlockLimits = WORD_LIMITS;
    const IS_DEVICE_DECODABLE: bool = true;
    const TABLES_RULE: &'static str = "R-5.17";

    fn parse_tables(&self, spec: PartSpec<'_>, tables: &[u8]) -> Result<TierTables> {
        check_residual_tables(spec.width_and_count()?.0, TierTables::parse(tables)?)
    }

    fn cached_tables(&self, spec: PartSpec<'_>, tables: &[u8], scratch: &mut DecodeScratch) -> Result<TierTables> {
        check_residual_tables(spec.width_and_count()?.0, scratch.tier_tables.get(tables)?)
    }

    fn decode(&self, block: &Block<'_, TierTables>, out: &mut [u8], scratch: &mut DecodeScratch) -> Result<()> {
        let (residuals, _) = StoredResiduals::parse(block)?;
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
        let (residuals, count) = StoredResiduals::parse(block)?;
        residuals.decode_range(count, range, out, scratch)
    }

    fn transform(&self, tables: &TierTables) -> Option<String> {
        Some(tables.transform.describe())
    }

    fn describe(&self, block: &Block<'_, TierTables>, description: &mut Description) -> Result<()> {
        describe_header(block.stored, description);
        StoredResiduals::parse(block)?.0.describe(description);
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
            let EncodeScratch { symbols, coded, header, search, .. } = scratch;
            bit_lengths(transform, width, geometry, raw, coded, symbols);
            *header = TierPlan::new(&histogram(symbols), *search).header;
            let mut tables = Vec::new();
            TierTables::new(transform, *header).write(&mut tables);
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
        let EncodeScratch { symbols, coded, header, tiers, words, .. } = scratch;
        let width = Width::from_bytes(geometry.element_bytes).ok_or_else(not_of_part)?;
        let bytes = elements.start * width.bytes()..elements.end * width.bytes();
        let block = symbols.get(elements.clone()).zip(coded.get(bytes));
        let (lengths, coded) = block.ok_or_else(not_of_part)?;
        write_block(header, std::iter::empty(), lengths, stored, tiers)?;
        append_extra_bits(width, lengths, coded, words, stored);
        Ok(())
    }
}

#[cold]
fn not_of_part() -> Error {
    Error::internal("a block has elements outside its part")
}
