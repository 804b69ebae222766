//! Chapter 5.7, for writers: chooses widths and ranks from a histogram, and writes the stream.

use super::search::{Idea, Search};
use super::tier_codes::{WORD_BYTES, cut};
use super::tier_head::{RANKS, TierHead, plain_codes};
use crate::kernel::tiers::{best, code_bytes};

/// The number of times that each symbol occurs, of `N`, a power of two.
pub(super) type Counts<const N: usize> = [u32; N];
/// The same of any bytes.
pub(super) type Histogram = Counts<256>;

/// Counts `symbols`.
pub(super) fn histogram(symbols: &[u8]) -> Histogram {
    let mut counts = [[0; 256]; 4];
    count(symbols, &mut counts);
    sum_of(counts)
}

/// Adds `symbols`, which are below `N`, to four counts, so that equal symbols in a row do not wait
/// for each other.
pub(super) fn count<const N: usize>(symbols: &[u8], counts: &mut [Counts<N>; 4]) {
    let (quads, rest) = symbols.as_chunks::<4>();
    for quad in quads {
        for (counts, &symbol) in counts.iter_mut().zip(quad) {
            counts[usize::from(symbol) & (N - 1)] += 1; // in bounds
        }
    }
    let [first, ..] = counts;
    rest.iter().for_each(|&symbol| first[usize::from(symbol) & (N - 1)] += 1); // in bounds
}

/// Returns the sum of four counts.
pub(super) fn sum_of<const N: usize>([mut sum, second, third, fourth]: [Counts<N>; 4]) -> Counts<N> {
    for (sum, ((a, b), c)) in sum.iter_mut().zip(second.iter().zip(&third).zip(&fourth)) {
        *sum += a + b + c; // fewer than 2^32 symbols
    }
    sum
}

/// Widths and ranks for a histogram.
#[derive(Clone, Copy, Debug)]
pub(super) struct TierPlan {
    pub head: TierHead,
    /// Bits of all codes and literals, without those that fill up groups.
    pub bits: u64,
}

/// The widths without [`Idea::TierWidths`].
const FIXED_WIDTHS: [u8; 3] = [2, 3, 4];

impl TierPlan {
    /// Returns the plan of the fewest bits; of equal ones, that with the narrowest first codes.
    pub(super) fn new(histogram: &Histogram, search: Search) -> Self {
        let mut order: Vec<(u32, u8)> =
            histogram.iter().copied().zip(0..=255).filter(|(count, _)| *count > 0).collect();
        order.sort_unstable_by_key(|&(count, symbol)| (std::cmp::Reverse(count), symbol));
        let count: u32 = order.iter().map(|(count, _)| count).sum();
        let mut left = [count; RANKS + 1]; // symbols of this rank and those after it
        for (rank, (count, _)) in order.iter().take(RANKS).enumerate() {
            // in bounds: `take`; a part of the sum
            left[rank + 1..].iter_mut().for_each(|left| *left -= count);
        }
        let plans = (1..=3).flat_map(|a| (1..=3).flat_map(move |b| (1..=4).map(move |c| [a, b, c])));
        let plans = plans.filter(|widths| search.has(Idea::TierWidths) || *widths == FIXED_WIDTHS);
        let plans = plans.map(|widths| {
            let escapes = escapes(&left, widths);
            (bits(count, widths, escapes), widths, escapes)
        });
        // there are 36
        let (bits, widths, escapes) = plans.min_by_key(|(bits, ..)| *bits).unwrap_or_default();
        let mut ranks = [0; RANKS];
        let reachable = widths.map(plain_codes).iter().sum();
        ranks.iter_mut().zip(&order).take(reachable).for_each(|(rank, (_, symbol))| *rank = *symbol);
        Self { head: TierHead { widths, escapes, ranks }, bits }
    }
}

/// Returns the numbers of symbols that escape from each tier. `left` has the number of symbols from
/// each rank on.
fn escapes(left: &[u32; RANKS + 1], widths: [u8; 3]) -> [u32; 3] {
    let mut first = 0;
    widths.map(|width| {
        first += plain_codes(width);
        left.get(first).copied().unwrap_or(0) // at most 29
    })
}

fn bits(count: u32, widths: [u8; 3], [second, third, literals]: [u32; 3]) -> u64 {
    let codes = [count, second, third].into_iter().zip(widths);
    codes.map(|(count, width)| u64::from(count) * u64::from(width)).sum::<u64>() + 8 * u64::from(literals)
}

/// Memory that encoding reuses: the symbols that escaped from each tier.
#[derive(Default)]
pub(super) struct TierEncodeScratch {
    escaped: [Vec<u8>; 3],
}

impl TierHead {
    /// Appends the sections of the stream of a block, which begins at `block`: some of the symbols
    /// from whose histogram this head was planned. Returns the numbers of symbols that escape from
    /// each tier.
    pub(super) fn write(
        &self,
        symbols: &[u8],
        block: usize,
        stored: &mut Vec<u8>,
        scratch: &mut TierEncodeScratch,
    ) -> [usize; 3] {
        let [first, second, third] = &mut scratch.escaped;
        let mut write_tier = |tier: usize, symbols: &[u8], escaped: &mut Vec<u8>| {
            stored.resize(block + (stored.len() - block).next_multiple_of(WORD_BYTES), 0);
            self.write_tier(tier, symbols, escaped, stored);
            cut(self.width(tier), symbols.len(), stored);
        };
        write_tier(0, symbols, first);
        write_tier(1, first, second);
        write_tier(2, second, third);
        stored.extend_from_slice(third);
        [first.len(), second.len(), third.len()]
    }

    /// Appends the codes of a tier; the symbols that escape go to `escaped`.
    fn write_tier(&self, tier: usize, symbols: &[u8], escaped: &mut Vec<u8>, stored: &mut Vec<u8>) {
        let width = self.width(tier);
        let start = stored.len();
        stored.resize(start + code_bytes(width, symbols.len()), 0);
        escaped.resize(symbols.len(), 0);
        let codes = stored.get_mut(start..).unwrap_or(&mut []);
        let escapes = best().split(width, &self.code_of(tier), symbols, codes, escaped);
        escaped.truncate(escapes);
    }

    fn width(&self, tier: usize) -> usize {
        self.widths.get(tier).copied().map_or(1, usize::from) // there are three
    }

    /// Returns the code of each symbol in a tier.
    fn code_of(&self, tier: usize) -> [u8; 256] {
        let mut codes = [u8::MAX; 256]; // the lower bits of which are an escape
        let plain = self.widths.get(tier).map_or(0, |&width| plain_codes(width));
        let table = self.table(tier);
        // unused ranks are 0 and come last, so the lower rank has to win
        for (code, &symbol) in (0..).zip(&table).take(plain).collect::<Vec<_>>().into_iter().rev() {
            codes[usize::from(symbol)] = code; // in bounds: a byte
        }
        codes
    }
}
