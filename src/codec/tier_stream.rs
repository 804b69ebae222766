//! Chapter 5.7: a tier stream, which codes symbols of one byte in three tiers of short codes.

use super::anatomy::Anatomy;
use super::tier_codes::TierCodes;
use super::tier_head::TierHead;
use crate::kernel::tiers::GROUP;
use crate::le::structure;
use crate::{Error, Result, memory};
use std::ops::Range;

structure! {
    /// Chapter 5.7: the counts of a checkpoint.
    pub(super) mod checkpoint: 12 bytes {
        0 => COUNT_2: u32,
        4 => COUNT_3: u32,
        8 => COUNT_4: u32,
    }
}

/// The length of a checkpoint.
pub(super) const CHECKPOINT_BYTES: usize = checkpoint::SIZE;
/// The length of a checkpoint that also counts extra bits, in a `u64` (chapter 5.9).
pub(super) const LONG_CHECKPOINT_BYTES: usize = CHECKPOINT_BYTES + size_of::<u64>();

/// Symbols of tier 1 that are decoded at a time. They and their elements stay in the first-level
/// cache.
const BLOCK: usize = 4096;

/// The counts of all that precedes a symbol, as a checkpoint states them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TierPosition {
    /// Codes of each tier, and literals. The first is the index of the symbol.
    pub codes: [usize; 4],
    /// Extra bits.
    pub extra_bits: u64,
}

/// A tier stream: its head, and where each of its five sections is.
#[derive(Clone, Copy, Debug)]
pub(super) struct TierStream<'a> {
    pub head: TierHead,
    /// Codes of each tier, and literals.
    counts: [usize; 4],
    checkpoints: &'a [u8],
    checkpoint_bytes: usize,
    tiers: [TierCodes<'a>; 3],
    /// The symbols of the codes of each tier, made once for all blocks: a load of a vector waits
    /// for the stores of its bytes, and for all stores before them.
    tables: [[u8; 16]; 3],
    literals: &'a [u8],
}

#[cold]
fn wrong_counts() -> Error {
    Error::corrupt("R-5.9", "a tier or a checkpoint of a tier stream does not have as many codes as escape to it")
}

/// The error of a destination that is shorter than the symbols that are decoded to it.
#[cold]
pub(super) fn overrun() -> Error {
    Error::internal("more symbols of a tier stream were decoded than the part has elements")
}

impl<'a> TierStream<'a> {
    /// Splits the sections of a stream of `count` symbols, whose checkpoints have
    /// `checkpoint_bytes`, from the start of `stored`. Returns the stream and the bytes after it;
    /// `None` if `stored` is too short.
    pub(super) fn split(
        head: TierHead,
        count: usize,
        checkpoint_bytes: usize,
        stored: &'a [u8],
    ) -> Option<(Self, &'a [u8])> {
        let counts @ [_, second, third, literals] = head.counts(count)?;
        let [a, b, c] = head.widths.map(usize::from);
        let (checkpoints, rest) = stored.split_at_checked(head.checkpoints(count).checked_mul(checkpoint_bytes)?)?;
        let (first, rest) = TierCodes::split(a, count, rest)?;
        let (second, rest) = TierCodes::split(b, second, rest)?;
        let (third, rest) = TierCodes::split(c, third, rest)?;
        let (literals, rest) = rest.split_at_checked(literals)?;
        let (tiers, tables) = ([first, second, third], head.tables());
        Some((Self { head, counts, checkpoints, checkpoint_bytes, tiers, tables, literals }, rest))
    }

    /// Splits the sections of the stream of a block (5.12) of `count` symbols, as
    /// [`TierStream::split`] does.
    #[inline]
    pub(super) fn split_cut(
        head: TierHead,
        tables: [[u8; 16]; 3],
        count: usize,
        stored: &'a [u8],
    ) -> Option<(Self, &'a [u8])> {
        let counts @ [_, second, third, literals] = head.counts(count)?;
        let [a, b, c] = head.widths.map(usize::from);
        let (first, rest) = TierCodes::split_cut(a, count, stored)?;
        let (second, rest) = TierCodes::split_cut(b, second, rest)?;
        let (third, rest) = TierCodes::split_cut(c, third, rest)?;
        let (literals, rest) = rest.split_at_checked(literals)?;
        let tiers = [first, second, third];
        Some((Self { head, counts, checkpoints: &[], checkpoint_bytes: 0, tiers, tables, literals }, rest))
    }

    /// Adds the sections of the stream to a description.
    pub(super) fn describe(&self, anatomy: &mut Anatomy) {
        let spacing = 1_u64 << self.head.spacing; // at most 31
        anatomy.add("checkpoints", format!("one every {spacing} elements"), self.checkpoints);
        let tiers = (1..).zip(self.tiers).zip(self.counts.iter().zip(self.head.widths));
        for ((tier, codes), (count, width)) in tiers {
            let plural = if width == 1 { "" } else { "s" };
            anatomy.add(format!("tier {tier}"), format!("{count} codes of {width} bit{plural}"), codes.stored());
        }
        anatomy.add("literals", "one byte each", self.literals);
    }

    /// Returns the literals.
    pub(super) fn literals(&self) -> &'a [u8] {
        self.literals
    }

    /// Decodes all symbols, except for the extra bits of the checkpoints. Calls
    /// `each` with the index of a symbol and the symbols from there on, some at a time, in order.
    pub(super) fn decode(
        &self,
        scratch: &mut TierScratch,
        mut each: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.check_filling()?;
        let [count, ..] = self.counts;
        if self.is_short() {
            return each(0, self.decode_short(&(0..count), scratch)?);
        }
        self.check_upper_tiers()?;
        let escapes =
            self.decode_between(&TierPosition::default(), &self.counts, scratch, |at, escapes, symbols| {
                let checkpoint = at.is_multiple_of(1 << self.head.spacing).then(|| self.find_checkpoint(at)).flatten();
                if checkpoint.is_some_and(|stored| stored.codes[1] != escapes) {
                    return Err(wrong_counts());
                }
                each(at, symbols)
            })?;
        let [_, second, ..] = self.counts;
        if escapes == second { Ok(()) } else { Err(wrong_counts()) }
    }

    /// Returns whether the stream has no checkpoints, and is decoded in few steps: that of a block
    /// of a chunk.
    fn is_short(&self) -> bool {
        let [count, ..] = self.counts;
        count <= BLOCK && self.head.checkpoints(count) == 0
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
        let mut from = self.checkpoint_before(range.start)?;
        self.advance(&mut from, range.start);
        let mut to = from;
        self.advance(&mut to, range.end);
        if to.codes.iter().zip(&self.counts).any(|(found, due)| found > due) {
            return Err(wrong_counts());
        }
        self.decode_between(&from, &to.codes, scratch, |at, _, symbols| each(at, symbols))?;
        Ok(())
    }

    /// Decodes the symbols from one position to another; the first is the start of a group. `each`
    /// also gets the number of symbols that have escaped from tier 1. Returns their number.
    fn decode_between(
        &self,
        from: &TierPosition,
        to: &[usize; 4],
        scratch: &mut TierScratch,
        mut each: impl FnMut(usize, usize, &[u8]) -> Result<()>,
    ) -> Result<usize> {
        let TierScratch { symbols: [symbols_1, symbols_2, symbols_3] } = scratch;
        let ([first, second, third, _], [end_1, end_2, end_3, _]) = (from.codes, *to);
        // tiers 2 and 3 are decoded from the start of a group on, and so are the symbols that
        // escape from it
        let second_from = second - second % GROUP;
        let third_due = third.checked_sub(self.escapes(1, second_from..second)).ok_or_else(wrong_counts)?;
        let third_from = third_due - third_due % GROUP;
        let literal_from = from.codes[3].checked_sub(self.escapes(2, third_from..third)).ok_or_else(wrong_counts)?;
        let literals = self.literals.get(literal_from..).unwrap_or(&[]);
        let (escaped, _) = self.tier(2, &self.tables[2], third_from..end_3, literals, symbols_3)?;
        let escaped = escaped.get(third_due - third_from..).unwrap_or(&[]);
        let (escaped, _) = self.tier(1, &self.tables[1], second_from..end_2, escaped, symbols_2)?;
        let escaped = escaped.get(second - second_from..).unwrap_or(&[]);
        // each checkpoint is the start of a block
        let block_size = BLOCK.min(1 << self.head.spacing);
        let [table, ..] = self.tables;
        let (mut at, mut escapes) = (first, 0);
        while at < end_1 {
            let block = at..end_1.min(at + block_size);
            let rest = escaped.get(escapes..).ok_or_else(wrong_counts)?;
            let (symbols, found) = self.tier(0, &table, block.clone(), rest, symbols_1)?;
            each(at, escapes, symbols)?;
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

    /// Returns the last checkpoint at or before a symbol.
    pub(super) fn checkpoint_before(&self, symbol: usize) -> Result<TierPosition> {
        self.find_checkpoint(symbol).ok_or_else(wrong_counts)
    }

    fn find_checkpoint(&self, symbol: usize) -> Option<TierPosition> {
        match symbol >> self.head.spacing {
            0 => Some(TierPosition::default()),
            q => {
                let start = (q - 1).checked_mul(self.checkpoint_bytes)?;
                let stored = self.checkpoints.get(start..start.checked_add(self.checkpoint_bytes)?)?;
                let (counts, extra_bits) = stored.split_first_chunk()?;
                let count = |count: u32| usize::try_from(count).ok();
                Some(TierPosition {
                    codes: [
                        q << self.head.spacing,
                        count(checkpoint::COUNT_2.get(counts))?,
                        count(checkpoint::COUNT_3.get(counts))?,
                        count(checkpoint::COUNT_4.get(counts))?,
                    ],
                    extra_bits: extra_bits.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)),
                })
            }
        }
    }

    /// Moves `position` forward to another symbol, except for its extra bits.
    pub(super) fn advance(&self, position: &mut TierPosition, symbol: usize) {
        let [first, second, third, literal] = position.codes;
        let second_to = second.saturating_add(self.escapes(0, first..symbol));
        let third_to = third.saturating_add(self.escapes(1, second..second_to));
        let literal_to = literal.saturating_add(self.escapes(2, third..third_to));
        position.codes = [symbol, second_to, third_to, literal_to];
    }

    /// Counts the escapes among a range of the codes of a tier.
    fn escapes(&self, tier: usize, range: Range<usize>) -> usize {
        self.tiers.get(tier).map_or(0, |codes| codes.escapes(range))
    }

    /// Checks that the codes that fill up the last group of each tier are zero.
    fn check_filling(&self) -> Result<()> {
        if self.tiers.iter().all(TierCodes::filling_is_zero) {
            return Ok(());
        }
        Err(Error::corrupt("R-5.8", "the codes that fill up a tier are not zero"))
    }

    /// Checks of tiers 2 and 3: each checkpoint states how many codes escape before it.
    fn check_upper_tiers(&self) -> Result<()> {
        let [count, ..] = self.counts;
        let mut before = [0; 4];
        for q in 1..=self.head.checkpoints(count) {
            let stored = self.checkpoint_before(q << self.head.spacing)?; // below `count`
            self.check_escapes(&before, &stored.codes)?;
            before = stored.codes;
        }
        self.check_escapes(&before, &self.counts)
    }

    fn check_escapes(&self, from: &[usize; 4], to: &[usize; 4]) -> Result<()> {
        let ([_, second, third, literal], [_, second_to, third_to, literal_to]) = (*from, *to);
        let right = second_to.checked_sub(second).is_some()
            && third.checked_add(self.escapes(1, second..second_to)) == Some(third_to)
            && literal.checked_add(self.escapes(2, third..third_to)) == Some(literal_to);
        if right { Ok(()) } else { Err(wrong_counts()) }
    }

    /// Checks of the extra bits: a checkpoint at `symbol` states that many before it.
    pub(super) fn check_extra_bits(&self, symbol: usize, extra_bits: u64) -> Result<()> {
        if !symbol.is_multiple_of(1 << self.head.spacing)
            || self.find_checkpoint(symbol).is_some_and(|stored| stored.extra_bits == extra_bits)
        {
            return Ok(());
        }
        let message =
            format!("a checkpoint of a tier stream is wrong: {extra_bits} extra bits precede symbol {symbol}");
        Err(Error::corrupt("R-5.9", message))
    }
}

/// Memory that decoding reuses: the symbols of each tier.
#[derive(Default)]
pub(super) struct TierScratch {
    symbols: [Vec<u8>; 3],
}
