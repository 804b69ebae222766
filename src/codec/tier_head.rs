//! Chapter 5.7: the widths, ranks and counts of tiers.

/// The length of the table of ranks: as many can be reached.
pub(super) const RANKS: usize = 29;

/// The widths and ranks of tiers, and how many codes a block has of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TierHead {
    /// Bits of a code of each tier.
    pub widths: [u8; 3],
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
    /// Returns a head with no codes in tiers 2 and 3.
    pub(super) fn new(widths: [u8; 3], ranks: [u8; RANKS]) -> Self {
        Self { widths, escapes: [0; 3], ranks }
    }

    /// Returns whether holds.
    pub(super) fn is_valid(&self) -> bool {
        let [first, second, third] = self.widths;
        let in_range = (1..=3).contains(&first) && (1..=3).contains(&second) && (1..=4).contains(&third);
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
}
