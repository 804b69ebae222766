//! Chapter 5.7: symbols of one byte in three tiers of short codes.

use super::explain::Anatomy;
use crate::kernel::tiers::{GROUP, best, code_bytes};
use crate::le::structure;
use crate::{Error, Result, memory};
use std::ops::Range;

structure! {
    /// Chapter 5.7: the head of a tier stream.
    mod tier_head: 48 bytes {
        0 => WIDTH_1: u8,
        1 => WIDTH_2: u8,
        2 => WIDTH_3: u8,
        3 => SPACING: u8,
        4 => COUNT_2: u32,
        8 => COUNT_3: u32,
        12 => COUNT_4: u32,
        16 => RANKS: [u8; 32],
    }
}

structure! {
    /// Chapter 5.7: the counts of a checkpoint.
    pub(super) mod checkpoint: 12 bytes {
        0 => COUNT_2: u32,
        4 => COUNT_3: u32,
        8 => COUNT_4: u32,
    }
}

/// The length of the head of a tier stream.
pub(super) const HEAD_BYTES: usize = tier_head::SIZE;
/// The length of the table of ranks.
pub(super) const RANKS: usize = 32;
/// Symbols of tier 1 that are decoded at a time: they and what they become stay in the first-level cache.
const BLOCK: usize = 4096;

/// The head of a tier stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TierHead {
    /// Bits of a code of each tier.
    pub widths: [u8; 3],
    /// A checkpoint stands every `2^spacing` symbols.
    pub spacing: u8,
    /// Symbols that escape from each tier: the codes of the next, and the literals.
    pub escapes: [u32; 3],
    /// Symbols by rank.
    pub ranks: [u8; RANKS],
}

/// Codes of a width that are no escape.
pub(super) const fn plain_codes(width: u8) -> usize {
    (1 << width) - 1
}

impl TierHead {
    pub(super) fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        let ([width_1, width_2, width_3], [count_2, count_3, count_4]) = (self.widths, self.escapes);
        tier_head::WIDTH_1.put(&mut bytes, width_1);
        tier_head::WIDTH_2.put(&mut bytes, width_2);
        tier_head::WIDTH_3.put(&mut bytes, width_3);
        tier_head::SPACING.put(&mut bytes, self.spacing);
        tier_head::COUNT_2.put(&mut bytes, count_2);
        tier_head::COUNT_3.put(&mut bytes, count_3);
        tier_head::COUNT_4.put(&mut bytes, count_4);
        tier_head::RANKS.put(&mut bytes, self.ranks);
        bytes
    }

    /// Parses the head of a tier stream, except for the codes that fill up a tier.
    pub(super) fn parse(bytes: &[u8; HEAD_BYTES]) -> Result<Self> {
        let head = Self {
            widths: [tier_head::WIDTH_1.get(bytes), tier_head::WIDTH_2.get(bytes), tier_head::WIDTH_3.get(bytes)],
            spacing: tier_head::SPACING.get(bytes),
            escapes: [tier_head::COUNT_2.get(bytes), tier_head::COUNT_3.get(bytes), tier_head::COUNT_4.get(bytes)],
            ranks: tier_head::RANKS.get(bytes),
        };
        let [first, second, third] = head.widths;
        let in_range = (1..=3).contains(&first)
            && (1..=3).contains(&second)
            && (1..=4).contains(&third)
            && (6..=31).contains(&head.spacing);
        let reachable = if in_range { head.first_rank(3) } else { 0 };
        if in_range && head.ranks.iter().skip(reachable).all(|&rank| rank == 0) {
            return Ok(head);
        }
        Err(Error::corrupt("R-5.8", format!("the head of a tier stream is malformed: {bytes:02x?}")))
    }

    /// The rank of code 0 of tier `tier`, counted from 0; of tier 3, the number of ranks.
    fn first_rank(&self, tier: usize) -> usize {
        self.widths.iter().take(tier).map(|&width| plain_codes(width)).sum()
    }

    /// The symbols of the plain codes of a tier.
    pub(super) fn table(&self, tier: usize) -> [u8; 16] {
        let mut table = [0; 16];
        let ranks = self.ranks.get(self.first_rank(tier)..self.first_rank(tier + 1)); // at most 29 ranks, 15 of a tier
        table.iter_mut().zip(ranks.unwrap_or(&[])).for_each(|(entry, &rank)| *entry = rank);
        table
    }

    /// The codes of each tier, for `count` symbols, and the literals. `None` if they are too many for this machine.
    fn counts(&self, count: usize) -> Option<[usize; 4]> {
        let [second, third, literals] = self.escapes;
        Some([count, second.try_into().ok()?, third.try_into().ok()?, literals.try_into().ok()?])
    }

    /// Checkpoints of `count` symbols.
    pub(super) fn checkpoints(&self, count: usize) -> usize {
        count.div_ceil(1 << self.spacing).saturating_sub(1) // `spacing` is at most 31
    }
}

/// What stands before a symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Codes of each tier, and literals.
    pub codes: [usize; 4],
    /// Extra bits.
    pub extra_bits: u64,
}

/// The pieces of a tier stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct TierStream<'a> {
    pub head: TierHead,
    /// Codes of each tier, and literals.
    counts: [usize; 4],
    checkpoints: &'a [u8],
    checkpoint_bytes: usize,
    tiers: [&'a [u8]; 3],
    literals: &'a [u8],
}

#[cold]
fn wrong_counts() -> Error {
    Error::corrupt("R-5.9", "a tier or a checkpoint of a tier stream does not have as many codes as escape to it")
}

impl<'a> TierStream<'a> {
    /// Takes the pieces of the stream of `count` symbols, with checkpoints of so many bytes, from the start of `stored`; what is left
    /// is returned too. `None`: it is too short.
    pub(super) fn split(
        head: TierHead,
        count: usize,
        checkpoint_bytes: usize,
        stored: &'a [u8],
    ) -> Option<(Self, &'a [u8])> {
        let counts @ [_, second, third, literals] = head.counts(count)?;
        let [a, b, c] = head.widths.map(usize::from);
        let (checkpoints, rest) = stored.split_at_checked(head.checkpoints(count).checked_mul(checkpoint_bytes)?)?;
        let (first, rest) = rest.split_at_checked(code_bytes(a, count))?;
        let (second, rest) = rest.split_at_checked(code_bytes(b, second))?;
        let (third, rest) = rest.split_at_checked(code_bytes(c, third))?;
        let (literals, rest) = rest.split_at_checked(literals)?;
        Some((Self { head, counts, checkpoints, checkpoint_bytes, tiers: [first, second, third], literals }, rest))
    }

    /// Adds the pieces.
    pub(super) fn describe(&self, anatomy: &mut Anatomy) {
        let spacing = 1_u64 << self.head.spacing; // at most 31
        anatomy.add("checkpoints", format!("one every {spacing} elements"), self.checkpoints);
        let tiers = (1..).zip(self.tiers).zip(self.counts.iter().zip(self.head.widths));
        for ((tier, codes), (count, width)) in tiers {
            let plural = if width == 1 { "" } else { "s" };
            anatomy.add(format!("tier {tier}"), format!("{count} codes of {width} bit{plural}"), codes);
        }
        anatomy.add("literals", "one byte each", self.literals);
    }

    /// The literals.
    pub(super) fn literals(&self) -> &'a [u8] {
        self.literals
    }

    /// Decodes all symbols, but for the extra bits of the checkpoints. `each` gets them in order, some at a time, with the
    /// place of the first among all symbols.
    pub(super) fn decode(
        &self,
        scratch: &mut TierScratch,
        mut each: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.check_filling()?;
        self.check_upper_tiers()?;
        let escapes = self.decode_between(&Place::default(), &self.counts, scratch, |at, escapes, symbols| {
            let checkpoint = at.is_multiple_of(1 << self.head.spacing).then(|| self.find_checkpoint(at)).flatten();
            if checkpoint.is_some_and(|stored| stored.codes[1] != escapes) {
                return Err(wrong_counts());
            }
            each(at, symbols)
        })?;
        let [_, second, ..] = self.counts;
        if escapes == second { Ok(()) } else { Err(wrong_counts()) }
    }

    /// What stands before a symbol's group.
    pub(super) fn group_before(&self, symbol: usize) -> Result<Place> {
        let mut place = self.checkpoint_before(symbol)?;
        self.advance(&mut place, symbol - symbol % GROUP);
        Ok(place)
    }

    /// Decodes the symbols from a place, which is the start of a group, up to `end`, see [`TierStream::decode`].
    pub(super) fn decode_from(
        &self,
        from: &Place,
        end: usize,
        scratch: &mut TierScratch,
        mut each: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut to = *from;
        self.advance(&mut to, end);
        if to.codes.iter().zip(&self.counts).any(|(found, due)| found > due) {
            return Err(wrong_counts());
        }
        self.decode_between(from, &to.codes, scratch, |at, _, symbols| each(at, symbols))?;
        Ok(())
    }

    /// Decodes the symbols from one place to another; the first is at the start of a group. `each` is also told how many symbols have
    /// escaped from tier 1; returns how many have.
    fn decode_between(
        &self,
        from: &Place,
        to: &[usize; 4],
        scratch: &mut TierScratch,
        mut each: impl FnMut(usize, usize, &[u8]) -> Result<()>,
    ) -> Result<usize> {
        let TierScratch { symbols: [symbols_1, symbols_2, symbols_3] } = scratch;
        let ([first, second, third, _], [end_1, end_2, end_3, _]) = (from.codes, *to);
        // tiers 2 and 3 are decoded from the start of a group on, so that what escapes from there has to be there as well
        let second_from = second - second % GROUP;
        let third_due = third.checked_sub(self.escapes(1, second_from..second)).ok_or_else(wrong_counts)?;
        let third_from = third_due - third_due % GROUP;
        let literal_from = from.codes[3].checked_sub(self.escapes(2, third_from..third)).ok_or_else(wrong_counts)?;
        let literals = self.literals.get(literal_from..).unwrap_or(&[]);
        let (escaped, _) = self.tier(2, &self.head.table(2), third_from..end_3, literals, symbols_3)?;
        let escaped = escaped.get(third_due - third_from..).unwrap_or(&[]);
        let (escaped, _) = self.tier(1, &self.head.table(1), second_from..end_2, escaped, symbols_2)?;
        let escaped = escaped.get(second - second_from..).unwrap_or(&[]);
        let block_size = BLOCK.min(1 << self.head.spacing); // each checkpoint is the start of a block
        // made once: what was just stored byte by byte is loaded as a vector only when all stores before it are done, those of `each` too
        let table = self.head.table(0);
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

    /// Decodes some codes of a tier, the first of which is at the start of a group; the symbols that escaped from them are at the start of
    /// `escaped`. Returns the symbols, which are in `room`, and how many escaped.
    fn tier<'s>(
        &self,
        tier: usize,
        table: &[u8; 16],
        range: Range<usize>,
        escaped: &[u8],
        room: &'s mut Vec<u8>,
    ) -> Result<(&'s [u8], usize)> {
        if room.len() < range.len() {
            memory::resize(room, range.len(), 0)?; // never shorter, or it would be filled again and again
        }
        let out = room.get_mut(..range.len()).unwrap_or(&mut []);
        let (Some(&width), Some(codes)) = (self.head.widths.get(tier), self.tiers.get(tier)) else {
            return Ok((&[], 0));
        };
        let codes = codes.get(code_bytes(width.into(), range.start)..).unwrap_or(&[]);
        let escapes = best().merge(width.into(), codes, table, escaped, out);
        Ok((out, escapes))
    }

    /// The last checkpoint at or before a symbol.
    pub(super) fn checkpoint_before(&self, symbol: usize) -> Result<Place> {
        self.find_checkpoint(symbol).ok_or_else(wrong_counts)
    }

    fn find_checkpoint(&self, symbol: usize) -> Option<Place> {
        match symbol >> self.head.spacing {
            0 => Some(Place::default()),
            q => {
                let start = (q - 1).checked_mul(self.checkpoint_bytes)?;
                let stored = self.checkpoints.get(start..start.checked_add(self.checkpoint_bytes)?)?;
                let (counts, extra_bits) = stored.split_first_chunk()?;
                let count = |count: u32| usize::try_from(count).ok();
                Some(Place {
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

    /// Moves `place` forward to another symbol, but for the extra bits.
    pub(super) fn advance(&self, place: &mut Place, symbol: usize) {
        let [first, second, third, literal] = place.codes;
        let second_to = second.saturating_add(self.escapes(0, first..symbol));
        let third_to = third.saturating_add(self.escapes(1, second..second_to));
        let literal_to = literal.saturating_add(self.escapes(2, third..third_to));
        place.codes = [symbol, second_to, third_to, literal_to];
    }

    /// Escapes among some codes of a tier.
    fn escapes(&self, tier: usize, range: Range<usize>) -> usize {
        let (Some(&width), Some(codes)) = (self.head.widths.get(tier), self.tiers.get(tier)) else { return 0 };
        best().escapes(width.into(), codes, range)
    }

    /// the codes that fill up the last group of each tier are zero.
    fn check_filling(&self) -> Result<()> {
        for ((codes, width), count) in self.tiers.iter().zip(self.head.widths).zip(self.counts) {
            let last = codes.get(code_bytes(width.into(), count - count % GROUP)..).unwrap_or(&[]);
            let words = last.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
            if words.fold(0, |any, word| any | word) >> (count % GROUP) != 0 && count % GROUP != 0 {
                return Err(Error::corrupt("R-5.8", "the codes that fill up a tier are not zero"));
            }
        }
        Ok(())
    }

    /// of tiers 2 and 3: as many escape from them, up to each checkpoint, as it says.
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

    /// of the extra bits: whether so many may stand before a symbol.
    pub(super) fn check_extra_bits(&self, symbol: usize, extra_bits: u64) -> Result<()> {
        if !symbol.is_multiple_of(1 << self.head.spacing)
            || self.find_checkpoint(symbol).is_some_and(|stored| stored.extra_bits == extra_bits)
        {
            return Ok(());
        }
        let message = format!("a checkpoint of a tier stream is wrong: {extra_bits} extra bits stand before {symbol}");
        Err(Error::corrupt("R-5.9", message))
    }
}

/// Memory that decoding reuses: the symbols of each tier.
#[derive(Default)]
pub(super) struct TierScratch {
    symbols: [Vec<u8>; 3],
}
