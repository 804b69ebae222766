//! Chapter 5.7: the tiers of a block, which code symbols of one byte in short codes.

use super::anatomy::Anatomy;
use super::tier_codes::TierCodes;
use super::tier_head::TierHead;
use crate::kernel::tiers::GROUP;
use crate::{Error, Result, memory};
use std::ops::Range;

/// Symbols of tier 1 that are decoded at a time. They and their elements stay in the first-level
/// cache.
const BLOCK: usize = 4096;

/// A tier stream: its head, and where each of its four sections is.
#[derive(Clone, Copy, Debug)]
pub(super) struct TierStream<'a> {
    pub head: TierHead,
    /// Codes of each tier, and literals.
    counts: [usize; 4],
    tiers: [TierCodes<'a>; 3],
    /// The symbols of the codes of each tier, made once for all blocks: a load of a vector waits
    /// for the stores of its bytes, and for all stores before them.
    tables: [[u8; 16]; 3],
    literals: &'a [u8],
}

#[cold]
fn wrong_counts() -> Error {
    Error::corrupt("R-5.9", "a tier does not have as many codes as escape to it")
}

/// The error of a destination that is shorter than the symbols that are decoded to it.
#[cold]
pub(super) fn overrun() -> Error {
    Error::internal("more symbols of a tier stream were decoded than the part has elements")
}

impl<'a> TierStream<'a> {
    /// Splits the sections of a stream of `count` symbols from a block. They begin at `start`, or
    /// after the padding there. `tables` is [`TierHead::tables`]. Returns the stream and the bytes
    /// after it, or `None` if the block is too short.
    #[inline]
    pub(super) fn split(
        head: TierHead,
        tables: [[u8; 16]; 3],
        count: usize,
        block: &'a [u8],
        start: usize,
    ) -> Option<(Self, &'a [u8])> {
        let counts @ [_, second, third, literals] = head.counts(count)?;
        let [a, b, c] = head.widths.map(usize::from);
        let (first, end) = TierCodes::split(a, count, block, start)?;
        let (second, end) = TierCodes::split(b, second, block, end)?;
        let (third, end) = TierCodes::split(c, third, block, end)?;
        let (literals, rest) = block.get(end..)?.split_at_checked(literals)?;
        let tiers = [first, second, third];
        Some((Self { head, counts, tiers, tables, literals }, rest))
    }

    /// Adds the sections of the stream to a description.
    pub(super) fn describe(&self, anatomy: &mut Anatomy) {
        let tiers = (1..).zip(self.tiers).zip(self.counts.iter().zip(self.head.widths));
        for ((tier, codes), (count, width)) in tiers {
            let plural = if width == 1 { "" } else { "s" };
            anatomy.add("padding", "zero bytes", codes.padding());
            anatomy.add(format!("tier {tier}"), format!("{count} codes of {width} bit{plural}"), codes.stored());
        }
        anatomy.add("literals", "one byte each", self.literals);
    }

    /// Returns the literals.
    pub(super) fn literals(&self) -> &'a [u8] {
        self.literals
    }

    /// Decodes all symbols. Calls `each` with the index of a symbol and the
    /// symbols from there on, some at a time, in order.
    pub(super) fn decode(
        &self,
        scratch: &mut TierScratch,
        mut each: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.check_filling()?;
        let [count, second, third, literals] = self.counts;
        if self.is_short() {
            return each(0, self.decode_short(&(0..count), scratch)?);
        }
        if [self.escapes(1, 0..second), self.escapes(2, 0..third)] != [third, literals] {
            return Err(wrong_counts());
        }
        let escapes = self.decode_between(&[0; 4], &self.counts, scratch, each)?;
        if escapes == second { Ok(()) } else { Err(wrong_counts()) }
    }

    /// Returns whether all symbols are decoded at once.
    fn is_short(&self) -> bool {
        let [count, ..] = self.counts;
        count <= BLOCK
    }

    /// Decodes a range of the symbols of a short stream at once, which begins at the start of a
    /// group. The upper tiers are decoded whole: that costs less than finding a place in them.
    fn decode_short<'s>(&self, range: &Range<usize>, scratch: &'s mut TierScratch) -> Result<&'s [u8]> {
        let TierScratch { symbols: [symbols_1, symbols_2, symbols_3] } = scratch;
        let [count, count_2, count_3, count_4] = self.counts;
        let [table_1, table_2, table_3] = &self.tables;
        let (escaped, literals) = self.tier(2, table_3, 0..count_3, self.literals, symbols_3)?;
        let (escaped, third) = self.tier(1, table_2, 0..count_2, escaped, symbols_2)?;
        let before = self.escapes(0, 0..range.start);
        let escaped = escaped.get(before..).ok_or_else(wrong_counts)?;
        let (symbols, within) = self.tier(0, table_1, range.clone(), escaped, symbols_1)?;
        let second = before.saturating_add(within);
        let is_right = second == count_2 || (range.end < count && second < count_2);
        if is_right && [third, literals] == [count_3, count_4] { Ok(symbols) } else { Err(wrong_counts()) }
    }

    /// Decodes a range of the symbols, which begins at the start of a group. Calls `each` as
    /// [`TierStream::decode`] does.
    pub(super) fn decode_range(
        &self,
        range: &Range<usize>,
        scratch: &mut TierScratch,
        mut each: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        if self.is_short() {
            return each(range.start, self.decode_short(range, scratch)?);
        }
        let from = self.position_of(range.start);
        let to = self.position_of(range.end);
        if to.iter().zip(&self.counts).any(|(found, due)| found > due) {
            return Err(wrong_counts());
        }
        self.decode_between(&from, &to, scratch, each)?;
        Ok(())
    }

    /// Decodes the symbols from one position to another; the first is the start of a group. Returns
    /// the number of symbols that escape from tier 1.
    fn decode_between(
        &self,
        from: &[usize; 4],
        to: &[usize; 4],
        scratch: &mut TierScratch,
        mut each: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<usize> {
        let TierScratch { symbols: [symbols_1, symbols_2, symbols_3] } = scratch;
        let ([first, second, third, literal], [end_1, end_2, end_3, _]) = (*from, *to);
        // tiers 2 and 3 are decoded from the start of a group on, and so are the symbols that
        // escape from it
        let second_from = second - second % GROUP;
        let third_due = third.checked_sub(self.escapes(1, second_from..second)).ok_or_else(wrong_counts)?;
        let third_from = third_due - third_due % GROUP;
        let literal_from = literal.checked_sub(self.escapes(2, third_from..third)).ok_or_else(wrong_counts)?;
        let literals = self.literals.get(literal_from..).unwrap_or(&[]);
        let (escaped, _) = self.tier(2, &self.tables[2], third_from..end_3, literals, symbols_3)?;
        let escaped = escaped.get(third_due - third_from..).unwrap_or(&[]);
        let (escaped, _) = self.tier(1, &self.tables[1], second_from..end_2, escaped, symbols_2)?;
        let escaped = escaped.get(second - second_from..).unwrap_or(&[]);
        let [table, ..] = self.tables;
        let (mut at, mut escapes) = (first, 0);
        while at < end_1 {
            let block = at..end_1.min(at + BLOCK);
            let rest = escaped.get(escapes..).ok_or_else(wrong_counts)?;
            let (symbols, found) = self.tier(0, &table, block.clone(), rest, symbols_1)?;
            each(at, symbols)?;
            escapes += found;
            at = block.end;
        }
        Ok(escapes)
    }

    /// Decodes a range of the codes of a tier, which begins at the start of a group. `escaped`
    /// begins with the symbols that escape from them. Returns the symbols, which are in `buffer`,
    /// and the number of escapes.
    fn tier<'s>(
        &self,
        tier: usize,
        table: &[u8; 16],
        range: Range<usize>,
        escaped: &[u8],
        buffer: &'s mut Vec<u8>,
    ) -> Result<(&'s [u8], usize)> {
        if buffer.len() < range.len() {
            // never shortened, or each growth would fill it again
            memory::resize(buffer, range.len(), 0)?;
        }
        let out = buffer.get_mut(..range.len()).unwrap_or(&mut []);
        let escapes = self.tiers.get(tier).map_or(0, |codes| codes.merge(range.start, table, escaped, out));
        Ok((out, escapes))
    }

    /// Returns how many codes of each tier, and literals, precede a symbol.
    fn position_of(&self, symbol: usize) -> [usize; 4] {
        let second = self.escapes(0, 0..symbol);
        let third = self.escapes(1, 0..second);
        [symbol, second, third, self.escapes(2, 0..third)]
    }

    /// Counts the escapes among a range of the codes of a tier.
    fn escapes(&self, tier: usize, range: Range<usize>) -> usize {
        self.tiers.get(tier).map_or(0, |codes| codes.escapes(range))
    }

    /// Checks that the codes that fill up the last group of each tier, and the bytes before each
    /// tier, are zero.
    fn check_filling(&self) -> Result<()> {
        if self.tiers.iter().all(TierCodes::filling_is_zero) {
            return Ok(());
        }
        Err(Error::corrupt("R-5.8", "the codes that fill up a tier, or the bytes before it, are not zero"))
    }
}

/// Memory that decoding reuses: the symbols of each tier.
#[derive(Default)]
pub(super) struct TierScratch {
    symbols: [Vec<u8>; 3],
}
