//! Estimates the size of coded integers without encoding them, and finds the best predictions.
//!
//! For tiers, a [`TierPlan`] computes the size from a histogram of bit lengths.
//!
//! For bins, estimates do not choose the actual bins. Instead, each integer has a symbol that
//! stands in for its bin. A residual below 16 is its own symbol. The symbol of a larger residual
//! combines its bit length with the two bits below its highest one bit. An element that is not
//! predicted has two symbols: its highest byte and the byte below that, because a window of bins
//! covers both. The estimate is the entropy of the symbols plus the number of bits that they do not
//! determine. Groups of symbols can be divided into classes, as in bins.
//!
//! The estimates compare differences along each axis of a sample, the 2-D Lorenzo predictor and,
//! for bins, separable predictions with fitted weights. All predictions are estimated on short
//! segments of the part. The best few are then estimated on whole blocks. Whole blocks include the
//! first rows, which have no row above them to predict from.

use super::sample::{SampledPart, SampledRanges, Search, Technique};
use crate::codec::{
    bits::{planes, wide},
    part::{Geometry, RawPart},
    scratch::EncodeScratch,
    tiers::{Histogram, TIER_TABLE_BYTES, TierPlan, count, histogram, sum_of},
    transform::Transform,
};
use crate::kernel::{
    Width,
    bins::{CLASSES, GROUP},
    extra_bits,
    predict::{self, Prediction, Predictor, Weights},
};
use std::sync::LazyLock;

/// The size of a frequency in the tables, in bits.
const FREQUENCY_BITS: f64 = 8.0;
/// The size of the class code of a group, in bits.
const CLASS_BITS: f64 = 2.0;

/// For counts below this, the result of [`bits_of`] is looked up.
const SMALL_COUNTS: usize = 1024;
static COUNT_BITS: LazyLock<[f32; SMALL_COUNTS]> =
    LazyLock::new(|| std::array::from_fn(|count| bits_of(count as f64) as f32));

/// Returns a count times its logarithm. The entropy of symbols is computed from these products.
fn bits_of(count: f64) -> f64 {
    if count == 0.0 { 0.0 } else { count * count.log2() }
}

/// Returns the entropy of symbols with this histogram, in bits.
pub(crate) fn entropy_bits(counts: &[u32]) -> f64 {
    let small = &*COUNT_BITS;
    let total: u32 = counts.iter().sum(); // fewer than 2^32 symbols
    let bits = |&count: &u32| small.get(count as usize).map_or_else(|| bits_of(count.into()), |&bits| bits.into());
    bits_of(total.into()) - counts.iter().map(bits).sum::<f64>()
}

/// Drops the first row of each block. First rows are more frequent in a sample than in the whole
/// part, so with them, predictions from the row above would seem more expensive than they are.
/// Returns the number of bit lengths before the call, divided by the number after it.
pub(crate) fn drop_first_rows(geometry: &Geometry<'_>, lengths: &mut Vec<u8>) -> f64 {
    let all = lengths.len();
    let mut left = 0;
    for block in geometry.block_ranges() {
        let end = block.end.min(all);
        let start = (block.start + geometry.longest_row(block.len() / 2)).min(end);
        lengths.copy_within(start..end, left);
        left += end - start;
    }
    lengths.truncate(left);
    all as f64 / left.max(1) as f64
}

/// The symbols of a group, and the next lower byte of each of its elements.
type Group<'a> = (&'a [u8], &'a [u8]);

/// The properties of a coder that determine the cost of symbols.
#[derive(Clone, Copy)]
pub(crate) struct CostModel {
    /// Whether groups can belong to different classes.
    pub may_have_classes: bool,
    /// The number of elements of the part per symbol of the sample. The tables are stored once for
    /// the whole part, so their cost for the sample is divided by this number.
    pub sample_scale: f64,
}

impl CostModel {
    /// Estimates the size, in bits, of the residuals that [`refine`] replaced with these symbols.
    pub(crate) fn residual_bits(&self, symbols: &[u8]) -> f64 {
        let open = |counts: &Histogram| {
            let open = (0..=u8::MAX).zip(counts).map(|(symbol, count)| open_bits(symbol) * count);
            f64::from(open.sum::<u32>()) // no overflow: a sample is short
        };
        self.bits(symbols, &[], u8::MAX, &open)
    }

    /// Estimates the size, in bits, of elements that are coded without prediction. `symbols` has
    /// their highest bytes, and `low_bytes` has the planes of the other bytes.
    pub(crate) fn plain_bits(&self, symbols: &[u8], low_bytes: &[u8], float: bool) -> f64 {
        let planes: Vec<&[u8]> = planes(low_bytes, symbols).collect();
        let top = planes.iter().rposition(|plane| plane.iter().any(|&byte| byte != 0)).unwrap_or(0);
        let symbols = planes.get(top).copied().unwrap_or(&[]);
        // groups of floats with both signs differ in magnitude, but hardly in sign
        let mask = if float { 0x7F } else { u8::MAX };
        // a window also covers the next lower byte
        let below = top.checked_sub(1).and_then(|below| planes.get(below).copied()).unwrap_or(&[]);
        8.0 * top.saturating_sub(1) as f64 * symbols.len() as f64 + self.bits(symbols, below, mask, &|_| 0.0)
    }

    /// Estimates the size, in bits, of symbols and of the bytes below them, if there are any.
    /// Returns the smaller of two estimates: with one class, and with several. Groups are assigned
    /// to classes by the sum of their masked symbols. `open` returns the number of bits that the
    /// symbols do not determine.
    fn bits(&self, symbols: &[u8], below: &[u8], mask: u8, open: &dyn Fn(&Histogram) -> f64) -> f64 {
        let entropy = |counts: &Histogram| {
            let used = counts.iter().filter(|count| **count > 0).count();
            entropy_bits(counts) + FREQUENCY_BITS * used as f64 / self.sample_scale
        };
        let bits = |[symbols, below, below_zeros]: &[Histogram; 3]| {
            entropy(symbols) + open(symbols) + entropy(below) + entropy(below_zeros)
        };
        let sum = |group: &[u8]| group.iter().map(|&symbol| u32::from(symbol & mask)).sum::<u32>();
        let groups = symbols.chunks(GROUP).zip(below.chunks(GROUP).chain(std::iter::repeat(&[][..])));
        let mut groups: Vec<(u32, Group<'_>)> = groups.map(|group| (sum(group.0), group)).collect();
        groups.sort_unstable_by_key(|(sum, _)| *sum);
        let class_count = if self.may_have_classes { CLASSES } else { 1 };
        let (mut one, mut in_classes) = ([[0; 256]; 3], CLASS_BITS * groups.len() as f64);
        for class in groups.chunks(groups.len().div_ceil(class_count).max(1)) {
            let mut counts = [[0; 256]; 4]; // four, as in `histogram`
            // the bytes below a zero symbol are counted separately, because the symbol already
            // tells them apart from the other bytes
            let mut below_counts = [[0; 256]; 2];
            for (_, (symbols, below)) in class {
                count(symbols, &mut counts);
                for (&symbol, &below) in symbols.iter().zip(*below) {
                    below_counts[usize::from(symbol == 0)][usize::from(below)] += 1; // in bounds
                }
            }
            let [below, below_zeros] = below_counts;
            let counts = [sum_of(counts), below, below_zeros];
            for (one, counts) in one.iter_mut().zip(&counts) {
                one.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
            in_classes += bits(&counts);
        }
        bits(&one).min(in_classes)
    }
}

/// Integers below this are their own symbols.
const EXACT_SYMBOLS: u8 = 16;

/// Returns the number of bits that a symbol does not determine: all bits below the highest three.
fn open_bits(symbol: u8) -> u32 {
    symbol.checked_sub(EXACT_SYMBOLS).map_or(0, |above| u32::from(above / 4) + 2)
}

/// Replaces the bit lengths in `symbols` with the symbols on which estimates are based. `coded` has
/// the integers.
pub(crate) fn refine(width: Width, coded: &[u8], symbols: &mut [u8]) {
    match width {
        Width::W1 => coded.iter().zip(symbols).for_each(|(&x, to)| *to = refine_short(x.into())),
        Width::W2 => {
            let coded = coded.as_chunks().0.iter().map(|&bytes| u16::from_le_bytes(bytes));
            coded.zip(symbols).for_each(|(x, to)| *to = refine_short(x));
        }
        Width::W4 => refine_wide::<4>(coded, symbols),
        Width::W8 => refine_wide::<8>(coded, symbols),
    }
}

fn refine_wide<const W: usize>(coded: &[u8], symbols: &mut [u8]) {
    for (symbol, coded) in symbols.iter_mut().zip(coded.as_chunks::<W>().0) {
        let integer = wide(coded).cast_unsigned();
        *symbol = match *symbol {
            // no overflow: at most 16 + 4 * 59 + 3
            length @ 5.. => EXACT_SYMBOLS + 4 * (length - 5) + (integer >> (length - 3)) as u8 % 4,
            _ => integer as u8, // less than 16
        };
    }
}

/// Returns the symbol that [`refine_wide`] sets for an integer. Vector instructions cannot shift
/// each 2-byte integer by a different count. In a float of the same value, however, the bit length
/// (in the exponent) is next to the highest bits.
fn refine_short(integer: u16) -> u8 {
    let float = f32::from(integer).to_bits() >> 21;
    // exact: `float` is at least 4 * 131 for integers of 16 or more
    if integer < EXACT_SYMBOLS.into() {
        integer as u8
    } else {
        float.wrapping_sub(4 * 131 - u32::from(EXACT_SYMBOLS)) as u8
    }
}

// ---- predictions

/// The maximum length, in elements, of samples that bins predict from the previous sample.
const SHORT_SAMPLE: u32 = 4096;
/// The maximum number of steps in the search for weights. Each step changes a weight by an eighth.
const MAX_WEIGHT_STEPS: usize = 4;
/// The maximum number of transforms that are compared on whole blocks.
const MAX_CLOSE_TRANSFORMS: usize = 2;
/// The weights of the 2-D Lorenzo predictor.
const LORENZO: (u8, u8) = (8, 0);

/// Returns the predictions that are tried: delta along each axis and, for each axis except the
/// innermost one, also the 2-D Lorenzo predictor (Ibarria et al., 2003) over that axis and the
/// innermost one.
pub(crate) fn predictions(geometry: &Geometry<'_>, search: Search) -> impl Iterator<Item = Prediction> + use<> {
    let Geometry { restart, strides, .. } = *geometry;
    let delta = move |stride| Prediction { predictor: Predictor::Delta, restart, stride };
    let planar = strides.into_iter().map(move |stride| Prediction { predictor: Predictor::Lorenzo, restart, stride });
    let rows = planar.flat_map(move |lorenzo| [delta(lorenzo.stride), lorenzo]);
    let rows = rows.filter(move |row| row.stride > 1 && row.stride < restart);
    let rows = rows.filter(move |row| search.has(Technique::Rows) && allows(search, row.predictor));
    std::iter::once(delta(1)).chain(rows)
}

fn allows(search: Search, predictor: Predictor) -> bool {
    predictor != Predictor::Lorenzo || search.has(Technique::Lorenzo)
}

/// Returns the predictions for bins. They can also predict a short sample from the previous one,
/// because a block of bins is always decoded from its start.
pub(crate) fn bin_predictions(geometry: &Geometry<'_>, search: Search) -> Vec<Prediction> {
    let across = geometry.restart <= SHORT_SAMPLE && search.has(Technique::AcrossSamples);
    let across = across.then_some(Geometry { restart: u32::MAX, ..*geometry });
    predictions(geometry, search).chain(across.iter().flat_map(|across| predictions(across, search))).collect()
}

/// Returns the transforms that residual tiers can use.
pub(crate) fn tier_transforms(geometry: &Geometry<'_>, search: Search) -> Vec<Transform> {
    let none = (!geometry.float).then_some(Transform::None);
    none.into_iter().chain(predictions(geometry, search).map(Transform::Predict)).collect()
}

/// Returns the transforms to encode residual tiers with: the best one, or all in an exhaustive
/// search.
pub(crate) fn transforms(width: Width, part: RawPart<'_>, scratch: &mut EncodeScratch) -> Vec<Transform> {
    if scratch.search.is_exhaustive {
        return tier_transforms(part.geometry, scratch.search);
    }
    if let Some(transform) = scratch.tier_transform.take() {
        return vec![transform];
    }
    vec![scratch.estimated(part, |part, scratch| best_tier_transform(width, part, scratch)).0]
}

/// Returns the best transform for residual tiers, and an estimate of their stored size in bytes.
pub(crate) fn best_tier_transform(
    width: Width,
    part: &mut SampledPart<'_>,
    scratch: &mut EncodeScratch,
) -> (Transform, usize) {
    let search = scratch.search;
    let bits_of = |counts: &Histogram| TierPlan::new(counts, search).bits + count_extra_bits(counts);
    let all = tier_transforms(&part.geometry, search).into_iter();
    let quick = all
        .map(|transform| (bits_of(&lengths(width, transform, part, &part.sample.segments, false, scratch)), transform));
    let mut quick: Vec<(u64, Transform)> = quick.collect();
    quick.sort_by_key(|(bits, _)| *bits);
    let close = quick.iter().take(MAX_CLOSE_TRANSFORMS).map(|&(_, transform)| transform);
    let close = close
        .map(|transform| (bits_of(&lengths(width, transform, part, &part.sample.blocks, true, scratch)), transform));
    let (bits, best) = close.min_by_key(|(bits, _)| *bits).unwrap_or((0, Transform::None));
    // an estimate, so the cast can saturate
    (best, (TIER_TABLE_BYTES as f64 + bits as f64 / 8.0 * part.sample_scale()) as usize)
}

/// Applies a transform to sampled segments of a part, and returns the histogram of the bit lengths.
/// If `has_first_rows` is false, omits the first row of each segment.
fn lengths(
    width: Width,
    transform: Transform,
    part: &SampledPart<'_>,
    segments: &SampledRanges,
    has_first_rows: bool,
    scratch: &mut EncodeScratch,
) -> Histogram {
    let EncodeScratch { coded, symbols, .. } = scratch;
    let geometry = part.geometry.in_blocks(&segments.ends);
    bit_lengths(transform, width, &geometry, &segments.bytes, coded, symbols);
    if !has_first_rows {
        drop_first_rows(&geometry, symbols);
    }
    histogram(symbols)
}

/// Sets `coded` to the coded integers of elements, block by block.
pub(crate) fn transform_blocks(
    transform: Transform,
    width: Width,
    geometry: &Geometry<'_>,
    elements: &[u8],
    coded: &mut Vec<u8>,
) {
    let Transform::Predict(prediction) = transform else {
        coded.clear();
        coded.extend_from_slice(elements);
        return;
    };
    coded.resize(elements.len(), 0);
    let w = width.bytes();
    for block in geometry.block_ranges() {
        let bytes = block.start * w..block.end * w;
        let (Some(elements), Some(coded)) = (elements.get(bytes.clone()), coded.get_mut(bytes)) else { return };
        predict::best().residuals(&prediction, width, elements, coded);
    }
}

/// Searches for the best weights of a separable prediction. Starts from the better of two common
/// pairs, and changes one weight at a time as long as the size decreases. Skips the pair that is
/// equivalent to the Lorenzo predictor.
pub(crate) fn best_weights(mut bits_of: impl FnMut(Weights) -> f64) -> Weights {
    let mut known: Vec<((u8, u8), f64)> = Vec::new();
    let mut cost = |(left, above)| {
        // a step back leads to a pair whose cost is known
        if let Some(known) = known.iter().find(|(weights, _)| *weights == (left, above)) {
            return *known;
        }
        let cost = ((left, above), bits_of(Weights { left, above }));
        known.push(cost);
        cost
    };
    let (first, second) = (cost((8, 2)), cost((5, 4)));
    let (mut best, mut bits) = if second.1 < first.1 { second } else { first };
    for _ in 0..MAX_WEIGHT_STEPS {
        let (left, above) = best;
        let near = [(left + 1, above), (left.wrapping_sub(1), above), (left, above + 1), (left, above.wrapping_sub(1))];
        let tried =
            near.into_iter().filter(|&(left, above)| left.max(above) <= 8 && (left, above) != LORENZO).map(&mut cost);
        match tried.min_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((weights, fewer)) if fewer < bits => (best, bits) = (weights, fewer),
            _ => break,
        }
    }
    Weights { left: best.0, above: best.1 }
}

/// Computes the coded integers of elements, block by block, and their bit lengths.
pub(crate) fn bit_lengths(
    transform: Transform,
    width: Width,
    geometry: &Geometry<'_>,
    elements: &[u8],
    coded: &mut Vec<u8>,
    lengths: &mut Vec<u8>,
) {
    transform_blocks(transform, width, geometry, elements, coded);
    lengths.resize(coded.len() / width.bytes(), 0);
    extra_bits::best().lengths(width, coded, lengths);
}

/// Returns the number of extra bits of integers whose bit lengths have this histogram.
pub(crate) fn count_extra_bits(lengths: &[u32]) -> u64 {
    (0_u64..).zip(lengths).map(|(length, &count)| length.saturating_sub(1) * u64::from(count)).sum()
}

#[cfg(test)]
mod tests {
    use super::{refine_short, refine_wide};

    #[test]
    fn symbols_of_short_integers() {
        for integer in 0..=u16::MAX {
            let mut symbol = [(u16::BITS - integer.leading_zeros()) as u8];
            refine_wide::<2>(&integer.to_le_bytes(), &mut symbol);
            assert_eq!(refine_short(integer), symbol[0], "{integer}");
        }
    }
}
