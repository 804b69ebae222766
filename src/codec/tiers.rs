//! Chapter 5.7: symbols of one byte in three tiers of short codes.

use crate::le::{array_at, u32_at};
use crate::{Error, Result};
use std::ops::Range;

pub(super) const HEAD_BYTES: usize = 48;
const RANKS: usize = 32;
/// Codes in a group.
const GROUP: usize = 64;
/// Symbols from one checkpoint to the next.
const CHECKPOINT: usize = 4096;
const CHECKPOINT_BYTES: usize = 12;

/// The head of a tier stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TierHead {
    /// Bits of a code of each tier.
    pub widths: [u8; 3],
    /// Symbols that escape from each tier: the codes of the next, and the literals.
    pub escapes: [u32; 3],
    /// Symbols by rank.
    pub ranks: [u8; RANKS],
}

/// Codes of a width that are no escape.
const fn plain_codes(width: u8) -> usize {
    (1 << width) - 1
}

impl TierHead {
    /// but for the codes that fill up a tier.
    pub(super) fn parse(bytes: &[u8; HEAD_BYTES]) -> Result<Self> {
        let [first, second, third, reserved] = array_at::<0, 4, HEAD_BYTES>(bytes);
        let head = Self {
            widths: [first, second, third],
            escapes: [u32_at::<4, HEAD_BYTES>(bytes), u32_at::<8, HEAD_BYTES>(bytes), u32_at::<12, HEAD_BYTES>(bytes)],
            ranks: array_at::<16, RANKS, HEAD_BYTES>(bytes),
        };
        let in_range = (1..=3).contains(&first) && (1..=3).contains(&second) && (1..=4).contains(&third);
        let reachable = if in_range { head.first_rank(3) } else { 0 };
        if in_range && reserved == 0 && head.ranks.iter().skip(reachable).all(|&rank| rank == 0) {
            return Ok(head);
        }
        Err(Error::corrupt("R-5.8", format!("the head of a tier stream is malformed: {bytes:02x?}")))
    }

    /// The rank of code 0 of tier `tier`, counted from 0; of tier 3, the number of ranks.
    fn first_rank(&self, tier: usize) -> usize {
        self.widths.iter().take(tier).map(|&width| plain_codes(width)).sum()
    }

    /// The symbols of the plain codes of a tier.
    fn table(&self, tier: usize) -> [u8; 16] {
        let (from, to) = (self.first_rank(tier), self.first_rank(tier + 1));
        let ranks = self.ranks.get(from..to).unwrap_or(&[]); // at most 29 ranks, 15 of a tier
        let mut table = [0; 16];
        table.iter_mut().zip(ranks).for_each(|(entry, &rank)| *entry = rank);
        table
    }

    /// Stored bytes of each tier, for `count` symbols. `None` if they are too many for this machine.
    fn tier_bytes(&self, count: usize) -> Option<[usize; 3]> {
        let [second, third, _] = self.escapes;
        let bytes = |width: u8, count: usize| count.div_ceil(GROUP).checked_mul(8 * usize::from(width));
        let [a, b, c] = self.widths;
        Some([bytes(a, count)?, bytes(b, usize::try_from(second).ok()?)?, bytes(c, usize::try_from(third).ok()?)?])
    }
}

/// The pieces of a tier stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct TierStream<'a> {
    pub head: TierHead,
    count: usize,
    checkpoints: &'a [u8],
    tiers: [&'a [u8]; 3],
    literals: &'a [u8],
}

/// Bytes of the checkpoints of `count` symbols.
pub(super) fn checkpoint_bytes(count: usize) -> usize {
    count.div_ceil(CHECKPOINT).saturating_sub(1) * CHECKPOINT_BYTES // fewer than `count` bytes
}

impl<'a> TierStream<'a> {
    /// Takes the pieces of the stream of `count` symbols from the start of `stored`; what is left is returned too.
    /// `None`: it is too short.
    pub(super) fn split(
        head: TierHead,
        count: usize,
        checkpoint_bytes: usize,
        stored: &'a [u8],
    ) -> Option<(Self, &'a [u8])> {
        let [a, b, c] = head.tier_bytes(count)?;
        let (checkpoints, rest) = stored.split_at_checked(checkpoint_bytes)?;
        let (first, rest) = rest.split_at_checked(a)?;
        let (second, rest) = rest.split_at_checked(b)?;
        let (third, rest) = rest.split_at_checked(c)?;
        let (literals, rest) = rest.split_at_checked(usize::try_from(head.escapes[2]).ok()?)?;
        Some((Self { head, count, checkpoints, tiers: [first, second, third], literals }, rest))
    }

    /// Decodes all symbols into `scratch`: but for the checkpoints.
    pub(super) fn decode_all<'s>(&self, scratch: &'s mut TierScratch) -> Result<&'s [u8]> {
        let [second, third, _] = self.head.escapes.map(|count| count as usize); // exact: as long as the tiers, which are there
        let TierScratch { symbols: [symbols_1, symbols_2, symbols_3] } = scratch;
        symbols_3.resize(third, 0);
        symbols_2.resize(second, 0);
        symbols_1.resize(self.count, 0);
        let counts = [
            self.tier(2, third, self.literals, symbols_3),
            self.tier(1, second, symbols_3, symbols_2),
            self.tier(0, self.count, symbols_2, symbols_1),
        ];
        let [third_found, second_found, first_found] = counts;
        let found = [first_found, second_found, third_found];
        if found.iter().zip(self.head.escapes).any(|(&found, due)| u32::try_from(found) != Ok(due)) {
            let message = format!("{found:?} symbols escape from the tiers, not {:?}", self.head.escapes);
            return Err(Error::corrupt("R-5.9", message));
        }
        self.check_filling()?;
        Ok(symbols_1)
    }

    /// Decodes the `count` codes of a tier; the symbols that escaped are in `escaped`. Returns how many there are.
    fn tier(&self, tier: usize, count: usize, escaped: &[u8], out: &mut [u8]) -> usize {
        let (Some(&width), Some(codes)) = (self.head.widths.get(tier), self.tiers.get(tier)) else { return 0 };
        let table = self.head.table(tier);
        let mut escapes = 0;
        for (i, symbol) in out.iter_mut().enumerate().take(count) {
            let code = code(codes, width.into(), i);
            *symbol = if code == plain_codes(width) {
                escapes += 1;
                escaped.get(escapes - 1).copied().unwrap_or(0)
            } else {
                table.get(code).copied().unwrap_or(0) // a code has at most 4 bits
            };
        }
        escapes
    }

    /// the codes that fill up the last group of each tier are zero.
    fn check_filling(&self) -> Result<()> {
        let [second, third, _] = self.head.escapes.map(|count| count as usize); // as in `decode`
        for ((codes, width), count) in self.tiers.iter().zip(self.head.widths).zip([self.count, second, third]) {
            let mut filling = count..count.next_multiple_of(GROUP);
            if filling.any(|i| code(codes, width.into(), i) != 0) {
                return Err(Error::corrupt("R-5.8", "the codes that fill up a tier are not zero"));
            }
        }
        Ok(())
    }
}

/// Code `i` of a tier of `width` bits.
fn code(codes: &[u8], width: usize, i: usize) -> usize {
    let group = i / GROUP * 8 * width;
    let bit = |plane: usize| {
        let byte = codes.get(group + 8 * plane + i % GROUP / 8).copied().unwrap_or(0);
        usize::from(byte >> (i % 8) & 1)
    };
    (0..width).map(|plane| bit(plane) << plane).sum()
}

/// Memory that decoding reuses: the symbols of each tier.
#[derive(Default)]
pub(super) struct TierScratch {
    symbols: [Vec<u8>; 3],
}

impl TierStream<'_> {
    /// of the checkpoints.
    pub(super) fn check_checkpoints(&self) -> Result<()> {
        let mut before = [0_usize; 3];
        for (q, stored) in self.checkpoints.chunks_exact(CHECKPOINT_BYTES).enumerate() {
            let mut range = q * CHECKPOINT..(q + 1) * CHECKPOINT; // below the count of symbols
            for (tier, escaped) in before.iter_mut().enumerate() {
                let from = *escaped;
                *escaped += self.escapes(tier, range);
                range = from..*escaped;
            }
            let found = before.map(|count| u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
            if found.as_flattened() != stored {
                let message = format!("checkpoint {q} of a tier stream is {stored:02x?}, not {before:?}");
                return Err(Error::corrupt("R-5.9", message));
            }
        }
        Ok(())
    }

    /// Escapes among some codes of a tier.
    fn escapes(&self, tier: usize, range: Range<usize>) -> usize {
        let (Some(&width), Some(codes)) = (self.head.widths.get(tier), self.tiers.get(tier)) else { return 0 };
        range.filter(|&i| code(codes, width.into(), i) == plain_codes(width)).count()
    }
}
