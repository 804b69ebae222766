//! Chooses the bins of windows: of all partitions into dyadic intervals, about the cheapest.
//!
//! A bin is an interval of 2^K values that begins at a multiple of its length, so its offset is K
//! bits of a window. The search goes from the widest intervals to the narrowest and keeps an
//! interval whole if its halves cost more. The cost of a bin itself bounds their number: if there
//! are too many bins, the cost is raised, and then bisected down to about as many as there may be.

use crate::kernel::bins::BINS;

/// Values of a window.
const VALUES: usize = 1 << 16;
/// Values that are counted together if none of them occurs.
const RUN: usize = 64;
/// The bits that a bin costs in the tables: `K`, and its frequencies in some classes.
const BIN_BITS: f32 = 60.0;
/// Steps to the least cost of a bin with which there are not too many of them.
const BISECTIONS: usize = 4;
/// Nobody looks for more bins if there are only so many less than there may be.
const ENOUGH: usize = 4;
/// The least share of a bin that costs are estimated with. The least that can be coded is 1/256.
const LEAST_SHARE: f32 = 1.0 / 1024.0;

/// The bins of a part, in memory that is reused.
#[derive(Default)]
pub(crate) struct Partition {
    /// For each value, the number of windows below it.
    below: Vec<u32>,
    bin_of: Vec<u8>,
    /// `K` of each bin.
    pub bits: Vec<u8>,
    /// The same, of other bins that were tried.
    tried: Vec<u8>,
}

impl Partition {
    /// Chooses bins for windows, of which there is at least one. `value_bits` is 16, or 8 if the
    /// elements are bytes.
    pub(crate) fn choose(&mut self, windows: &[[u8; 2]], value_bits: u32) {
        self.count(windows);
        let search = |bin_bits: f32, bits: &mut Vec<u8>| {
            bits.clear();
            // bins are never wider than half of all values
            let half = 1 << (value_bits - 1);
            let search = Search { below: &self.below, total: windows.len() as f32, bin_bits };
            for start in [0, half] {
                search.best(start, value_bits - 1, bits);
            }
        };
        search(BIN_BITS, &mut self.bits);
        let (mut too_cheap, mut bin_bits) = (BIN_BITS, BIN_BITS);
        while self.bits.len() > BINS {
            (too_cheap, bin_bits) = (bin_bits, 1.5 * bin_bits + 8.0);
            search(bin_bits, &mut self.bits);
        }
        for _ in 0..BISECTIONS {
            if self.bits.len() > BINS - ENOUGH || too_cheap == bin_bits {
                break;
            }
            let middle = (too_cheap + bin_bits) / 2.0;
            search(middle, &mut self.tried);
            if self.tried.len() > BINS {
                too_cheap = middle;
            } else {
                bin_bits = middle;
                std::mem::swap(&mut self.bits, &mut self.tried);
            }
        }
        self.bin_of.resize(VALUES, 0);
        let mut start = 0;
        for (bin, &bits) in (0..).zip(&self.bits) {
            let end = start + (1 << bits);
            self.bin_of.get_mut(start..end).unwrap_or(&mut []).fill(bin);
            start = end;
        }
    }

    fn count(&mut self, windows: &[[u8; 2]]) {
        self.below.clear();
        self.below.resize(VALUES + 1, 0);
        let Some(counts) = self.below.last_chunk_mut::<VALUES>() else { return }; // never: one more
        for &window in windows {
            counts[usize::from(u16::from_le_bytes(window))] += 1; // in bounds: 2^16 values
        }
        let mut sum = 0_u32;
        for counts in counts.as_chunks_mut::<RUN>().0 {
            // most values do not occur, and vectors find them faster than they are summed
            if counts.iter().fold(0, |any, count| any | count) == 0 {
                counts.fill(sum);
                continue;
            }
            for count in counts {
                sum = sum.wrapping_add(*count); // fewer than 2^32 windows
                *count = sum;
            }
        }
    }

    pub(crate) fn bins_of(&self, windows: &[[u8; 2]], bins: &mut Vec<u8>) {
        bins.clear();
        // `None` if nothing was chosen
        let Some(bin_of) = self.bin_of.first_chunk::<VALUES>() else { return };
        // in bounds: 2^16 values
        bins.extend(windows.iter().map(|&window| bin_of[usize::from(u16::from_le_bytes(window))]));
    }
}

/// The search from the widest intervals to the narrowest.
struct Search<'a> {
    below: &'a [u32],
    total: f32,
    bin_bits: f32,
}

impl Search<'_> {
    fn count(&self, start: usize, end: usize) -> u32 {
        let below = |value| self.below.get(value).copied().unwrap_or(0);
        below(end) - below(start) // sums ascend
    }

    /// Appends `K` of the bins of an interval. Returns the bits that its windows cost with them.
    fn best(&self, start: usize, bits: u32, bins: &mut Vec<u8>) -> f32 {
        let count = self.count(start, start + (1 << bits));
        let whole = bins.len();
        bins.push(bits as u8); // exact: at most 15
        if count == 0 {
            return 0.0;
        }
        let count = count as f32;
        let share = (count / self.total).max(LEAST_SHARE);
        let excess = (share - count / self.total) * self.total * std::f32::consts::LOG2_E;
        let cost = count * (bits as f32 - share.log2()) + excess + self.bin_bits;
        // halves cannot save more than the bits of the offsets
        if bits == 0 || count * bits as f32 <= self.bin_bits {
            return cost;
        }
        bins.pop();
        let half = 1 << (bits - 1);
        let halves = self.best(start, bits - 1, bins) + self.best(start + half, bits - 1, bins);
        if halves < cost {
            return halves;
        }
        bins.truncate(whole);
        bins.push(bits as u8); // exact: at most 15
        cost
    }
}
