//! Chapter 5.7: the head of a tier stream.

use super::anatomy::Anatomy;
use super::transform::{TRANSFORM_BYTES, Transform};
use crate::le::structure;
use crate::{Error, Result};

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

/// The length of the head of a tier stream.
pub(super) const HEAD_BYTES: usize = tier_head::SIZE;
/// The length of the table of ranks.
pub(super) const RANKS: usize = 32;
/// The greatest [`TierHead::spacing`]. Fewer than `2^31` symbols then have no checkpoints.
pub(super) const NO_CHECKPOINTS: u8 = 31;

/// The head of a tier stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TierHead {
    /// Bits of a code of each tier.
    pub widths: [u8; 3],
    /// A checkpoint follows every `2^spacing` symbols.
    pub spacing: u8,
    /// The numbers of symbols that escape from each tier: the codes of the next, and the literals.
    pub escapes: [u32; 3],
    /// The symbols by rank.
    pub ranks: [u8; RANKS],
}

/// Returns the number of codes of a width that are not the escape.
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
        if head.is_valid() {
            return Ok(head);
        }
        Err(Error::corrupt("R-5.8", format!("the head of a tier stream is malformed: {bytes:02x?}")))
    }

    /// Returns the head of the tier stream of a block, which has no checkpoints. The numbers of
    /// escapes are not set.
    pub(super) fn of_block(widths: [u8; 3], ranks: [u8; RANKS]) -> Self {
        Self { widths, spacing: NO_CHECKPOINTS, escapes: [0; 3], ranks }
    }

    /// Returns whether holds.
    pub(super) fn is_valid(&self) -> bool {
        let [first, second, third] = self.widths;
        let in_range = (1..=3).contains(&first)
            && (1..=3).contains(&second)
            && (1..=4).contains(&third)
            && (6..=NO_CHECKPOINTS).contains(&self.spacing);
        in_range && self.ranks.iter().skip(self.first_rank(3)).all(|&rank| rank == 0)
    }

    /// Returns the rank of code 0 of tier `tier`, counted from 0; for 3, the number of ranks.
    fn first_rank(&self, tier: usize) -> usize {
        self.widths.iter().take(tier).map(|&width| plain_codes(width)).sum()
    }

    /// Returns the symbols of the codes of a tier that are not the escape.
    pub(super) fn table(&self, tier: usize) -> [u8; 16] {
        let mut table = [0; 16];
        // at most 29 ranks, 15 of a tier
        let ranks = self.ranks.get(self.first_rank(tier)..self.first_rank(tier + 1));
        table.iter_mut().zip(ranks.unwrap_or(&[])).for_each(|(entry, &rank)| *entry = rank);
        table
    }

    /// Returns the symbols of the codes of each tier.
    pub(super) fn tables(&self) -> [[u8; 16]; 3] {
        [self.table(0), self.table(1), self.table(2)]
    }

    /// Returns the number of codes of each tier, for `count` symbols, and of literals. Returns
    /// `None` if they are too many for this machine.
    pub(super) fn counts(&self, count: usize) -> Option<[usize; 4]> {
        let [second, third, literals] = self.escapes;
        Some([count, second.try_into().ok()?, third.try_into().ok()?, literals.try_into().ok()?])
    }

    /// Returns the number of checkpoints of `count` symbols.
    pub(super) fn checkpoints(&self, count: usize) -> usize {
        count.div_ceil(1 << self.spacing).saturating_sub(1) // `spacing` is at most 31
    }
}

/// Parses transform and head of the tier stream, which stored bytes begin with. Returns them and
/// the bytes after them; `None` if the stored bytes are too short.
pub(super) fn heads(stored: &[u8]) -> Option<Result<(Transform, TierHead, &[u8])>> {
    let (transform, rest) = stored.split_first_chunk::<TRANSFORM_BYTES>()?;
    let (head, rest) = rest.split_first_chunk::<{ HEAD_BYTES }>()?;
    let parse = || Ok((Transform::parse(transform)?, TierHead::parse(head)?, rest));
    Some(parse())
}

/// Describes the bytes that [`heads`] parses.
pub(super) fn heads_anatomy(transform: Transform, stored: &[u8]) -> Anatomy {
    let mut anatomy = Anatomy { transform: Some(transform.describe()), ..Anatomy::default() };
    let heads = stored.get(..TRANSFORM_BYTES + HEAD_BYTES).unwrap_or(stored);
    anatomy.add("heads", "transform; widths and ranks of the tiers", heads);
    anatomy
}
