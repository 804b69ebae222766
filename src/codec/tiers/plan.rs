//! Tiers (chapter 5.7), for writers: chooses widths and ranks from a histogram, and writes blocks.
//!
//! Of the 36 widths of three tiers, the plan takes those with which all codes and literals of a
//! part have the fewest bits. Ranks are by frequency. The head is the same for all blocks of a
//! part; what escapes is counted for each.

use super::stream::{RANKS, TierHead, TierTables, WORD_BYTES, block_head, plain_codes, tier_tables};
use crate::codec::choice::{Idea, Search};
use crate::kernel::tiers::{GROUP, best, code_bytes};
use crate::{Error, Result};

/// The number of times that each symbol occurs.
pub(crate) type Histogram = [u32; 256];

pub(crate) fn histogram(symbols: &[u8]) -> Histogram {
    let mut counts = [[0; 256]; 4];
    count(symbols, &mut counts);
    sum_of(counts)
}

/// Adds `symbols` to four counts, so that equal symbols in a row do not wait for each other.
pub(crate) fn count(symbols: &[u8], counts: &mut [Histogram; 4]) {
    let (quads, rest) = symbols.as_chunks::<4>();
    for quad in quads {
        for (counts, &symbol) in counts.iter_mut().zip(quad) {
            counts[usize::from(symbol)] += 1; // in bounds
        }
    }
    let [first, ..] = counts;
    rest.iter().for_each(|&symbol| first[usize::from(symbol)] += 1); // in bounds
}

pub(crate) fn sum_of([mut sum, second, third, fourth]: [Histogram; 4]) -> Histogram {
    for (sum, ((a, b), c)) in sum.iter_mut().zip(second.iter().zip(&third).zip(&fourth)) {
        *sum += a + b + c; // fewer than 2^32 symbols
    }
    sum
}

/// Widths and ranks for a histogram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TierPlan {
    pub head: TierHead,
    /// Bits of all codes and literals, without those that fill up groups.
    pub bits: u64,
}

/// The widths without [`Idea::TierWidths`].
const FIXED_WIDTHS: [u8; 3] = [2, 3, 4];

impl TierPlan {
    /// Returns the plan of the fewest bits; of equal ones, that with the narrowest first codes.
    pub(crate) fn new(histogram: &Histogram, search: Search) -> Self {
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
pub(crate) struct TierEncodeScratch {
    escaped: [Vec<u8>; 3],
}

impl TierHead {
    /// Appends the sections of the stream of a block, which begins at `block`: some of the symbols
    /// from whose histogram this head was planned. Returns the numbers of symbols that escape from
    /// each tier.
    fn write(&self, symbols: &[u8], block: usize, stored: &mut Vec<u8>, scratch: &mut TierEncodeScratch) -> [usize; 3] {
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

/// Cuts the words of the last group of `count` codes, with which `stored` ends, to the bytes that
/// have codes.
fn cut(width: usize, count: usize, stored: &mut Vec<u8>) {
    let kept = (count % GROUP).div_ceil(8);
    let Some(start) = stored.len().checked_sub(8 * width).filter(|_| kept > 0) else { return };
    for word in 1..width {
        // within the group
        stored.copy_within(start + 8 * word..start + 8 * word + kept, start + kept * word);
    }
    stored.truncate(start + kept * width);
}

impl TierTables {
    pub(super) fn write(&self, tables: &mut Vec<u8>) {
        let mut tiers = [0; tier_tables::SIZE];
        tier_tables::WIDTHS.put(&mut tiers, self.head.widths);
        tier_tables::BY_RANK.put(&mut tiers, self.head.ranks);
        tables.extend_from_slice(&self.transform.to_bytes());
        tables.extend_from_slice(&tiers);
    }
}

/// Appends a block: low bytes, and the tier stream of symbols for which `head` was planned.
pub(super) fn write_block<'l>(
    head: &TierHead,
    low_bytes: impl Iterator<Item = &'l [u8]>,
    symbols: &[u8],
    stored: &mut Vec<u8>,
    scratch: &mut TierEncodeScratch,
) -> Result<()> {
    let start = stored.len();
    stored.resize(start + block_head::SIZE, 0);
    low_bytes.for_each(|plane| stored.extend_from_slice(plane));
    let [count_2, count_3, count_4] = head.write(symbols, start, stored, scratch);
    let field = |count| u16::try_from(count).map_err(|_| Error::internal("a block has too many elements"));
    let mut block = [0; block_head::SIZE];
    block_head::COUNT_2.put(&mut block, field(count_2)?);
    block_head::COUNT_3.put(&mut block, field(count_3)?);
    block_head::COUNT_4.put(&mut block, field(count_4)?);
    stored.iter_mut().skip(start).zip(block).for_each(|(to, from)| *to = from);
    Ok(())
}
