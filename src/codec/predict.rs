//! Chooses a prediction: the one whose residuals take the fewest bits in some windows of the part.

use super::bins::low_bytes_of;
use super::geometry::Geometry;
use super::sampling::windows;
use super::scratch::EncodeScratch;
use super::tier_plan::{Histogram, TierPlan, histogram};
use super::transform::Transform;
use crate::kernel::bins::GROUP;
use crate::kernel::predict::{Prediction, Predictor, Weights};
use crate::kernel::{Width, extra_bits, predict};

/// The least number of elements of a window.
const WINDOW: usize = 1024;

/// Changes of a weight by an eighth, in the search for weights.
const MOST_STEPS: usize = 4;

/// About what classes, which estimates leave out, save of residuals: measured on log-mel and pitch
/// posteriors.
const CLASSES_SAVE: f64 = 1.0 / 64.0;

/// The bits of a frequency in the tables.
const FREQUENCY_BITS: f64 = 8.0;

/// How residuals are coded: what predictions are judged by.
#[derive(Clone, Copy)]
pub(super) enum Coding {
    /// Bit lengths in tiers, and extra bits.
    Tiers,
    /// Bins.
    Bins,
}

impl Coding {
    /// Sets `symbols`, the bit lengths of coded integers, to the symbols that are counted.
    fn refine(self, width: Width, coded: &[u8], symbols: &mut [u8]) {
        match (self, width) {
            (Self::Tiers, _) => {}
            (Self::Bins, Width::W1) => coded.iter().zip(symbols).for_each(|(&x, to)| *to = refine_short(x.into())),
            (Self::Bins, Width::W2) => {
                let coded = coded.as_chunks().0.iter().map(|&bytes| u16::from_le_bytes(bytes));
                coded.zip(symbols).for_each(|(x, to)| *to = refine_short(x));
            }
            (Self::Bins, Width::W4) => refine::<4>(coded, symbols),
            (Self::Bins, Width::W8) => refine::<8>(coded, symbols),
        }
    }

    /// Returns the bits of coded integers whose symbols have this histogram.
    fn bits(self, counts: &Histogram) -> f64 {
        match self {
            Self::Tiers => (TierPlan::new(counts, 31).bits + count_extra_bits(counts)) as f64,
            Self::Bins => {
                let mut lengths = [0; 65];
                for (symbol, &count) in counts.iter().enumerate() {
                    // as `refine` sets symbols; those of the longest integers are 4 * 62 + 3
                    lengths[(symbol / 4 + 2).min(64)] += count; // in bounds
                }
                (entropy_bits(counts) + low_bytes_of(&lengths).1) * (1.0 - CLASSES_SAVE)
            }
        }
    }
}

/// Sets `symbols`, the bit lengths of coded integers of `W` bytes, to symbols that also tell the
/// two bits below the highest one, as if there were four bins for each bit length.
fn refine<const W: usize>(coded: &[u8], symbols: &mut [u8]) {
    for (symbol, coded) in symbols.iter_mut().zip(coded.as_chunks::<W>().0) {
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(coded).for_each(|(to, from)| *to = *from);
        let open = symbol.saturating_sub(3);
        // at most 4 * 61 + 7, since `open` leaves three bits
        *symbol = 4 * open + (u64::from_le_bytes(bytes) >> open) as u8;
    }
}

/// Returns the symbol that [`refine`] sets for an integer: vectors have no shifts by two bytes, but
/// floats have bit length and highest bits of an integer side by side.
fn refine_short(integer: u16) -> u8 {
    let float = f32::from(integer).to_bits() >> 21;
    // exact: at most 4 * 14 + 3, since floats of integers from 4 begin with 4 * 129
    if integer < 4 { integer as u8 } else { float.wrapping_sub(4 * 128) as u8 }
}

/// Returns the bits of symbols with this histogram, if each takes as many as its share asks.
pub(super) fn entropy_bits(counts: &Histogram) -> f64 {
    let total: u32 = counts.iter().sum(); // fewer than 2^32 symbols
    let bits = |&count: &u32| f64::from(count) * (f64::from(total) / f64::from(count)).log2();
    counts.iter().filter(|count| **count > 0).map(bits).sum()
}

/// Returns the bits of the coded integers in the scratch, in bins whose frequencies follow their
/// scale: groups are divided by their mean symbol into as many classes.
pub(super) fn bits_in_classes(width: Width, class_count: usize, scratch: &mut EncodeScratch) -> f64 {
    let EncodeScratch { coded, symbols, .. } = scratch;
    symbols.resize(coded.len() / width.bytes(), 0);
    extra_bits::best().lengths(width, coded, symbols);
    Coding::Bins.refine(width, coded, symbols);
    let sum = |group: &[u8]| group.iter().map(|&symbol| u32::from(symbol)).sum::<u32>();
    let mut groups: Vec<&[u8]> = symbols.chunks_exact(GROUP).collect();
    groups.sort_by_key(|group| sum(group));
    let classes = groups.chunks(groups.len().div_ceil(class_count.max(1)).max(1));
    let bits = |class: &[&[u8]]| {
        let counts = histogram(&class.concat());
        let used = counts.iter().filter(|count| **count > 0).count();
        Coding::Bins.bits(&counts) + FREQUENCY_BITS * used as f64
    };
    classes.map(bits).sum()
}

/// Returns the best transform for residuals, and an estimate of their stored bytes.
pub(super) fn best_transform(
    coding: Coding,
    width: Width,
    geometry: &Geometry<'_>,
    raw: &[u8],
    scratch: &mut EncodeScratch,
) -> (Transform, usize) {
    let count = raw.len() / width.bytes();
    let none = (!geometry.float).then_some(Transform::None);
    let mut bits_of = |transform| sampled_bits(coding, transform, width, geometry, raw, scratch);
    let across = across_samples(coding, geometry);
    let predictions = predictions(geometry).chain(across.iter().flat_map(predictions));
    let candidates = none.into_iter().chain(predictions.map(Transform::Predict));
    let costs = candidates.map(|transform| (transform, bits_of(transform)));
    let best = costs.min_by(|(_, a), (_, b)| a.total_cmp(b));
    let mut best = best.unwrap_or((Transform::None, f64::from(u32::MAX)));
    if let (Coding::Bins, Transform::Predict(prediction)) = (coding, best.0)
        && prediction.stride > 1
    {
        let weighted =
            |weights| Transform::Predict(Prediction { predictor: Predictor::Separable(weights), ..prediction });
        best = best_weights(best, weighted, bits_of);
    }
    (best.0, (best.1 * count as f64 / 8.0) as usize) // an estimate, and saturating
}

/// Returns the geometry to predict short samples from those before them. A block of bins is decoded
/// from its start in any case.
fn across_samples<'a>(coding: Coding, geometry: &Geometry<'a>) -> Option<Geometry<'a>> {
    let is_short = usize::try_from(geometry.restart).is_ok_and(|restart| restart <= 4 * WINDOW);
    let bins = matches!(coding, Coding::Bins);
    (bins && is_short).then_some(Geometry { restart: u32::MAX, ..*geometry })
}

/// Returns the best of a transform, given with its bits, and separable ones: from some usual
/// weights downhill, one weight at a time.
fn best_weights(
    given: (Transform, f64),
    weighted: impl Fn(Weights) -> Transform,
    mut bits_of: impl FnMut(Transform) -> f64,
) -> (Transform, f64) {
    let mut known: Vec<((u8, u8), f64)> = Vec::new();
    let mut cost = |(left, above)| {
        // a step back is the point before
        if let Some(known) = known.iter().find(|(weights, _)| *weights == (left, above)) {
            return *known;
        }
        let cost = ((left, above), bits_of(weighted(Weights { left, above })));
        known.push(cost);
        cost
    };
    let (mut best, mut bits) =
        [cost((8, 2)), cost((5, 4))].into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(((8, 0), given.1));
    for _ in 0..MOST_STEPS {
        let (left, above) = best;
        let near = [(left + 1, above), (left.wrapping_sub(1), above), (left, above + 1), (left, above.wrapping_sub(1))];
        let tried = near.into_iter().filter(|&(left, above)| left.max(above) <= 8).map(&mut cost);
        match tried.min_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((weights, fewer)) if fewer < bits => (best, bits) = (weights, fewer),
            _ => break,
        }
    }
    let (left, above) = best;
    if bits < given.1 { (weighted(Weights { left, above }), bits) } else { given }
}

/// Returns the predictions that are tried: delta along each axis, and the 2-D Lorenzo predictor
/// (Ibarria et al., 2003) over the axis and the innermost one.
pub(super) fn predictions(geometry: &Geometry<'_>) -> impl Iterator<Item = Prediction> {
    let Geometry { float, restart, strides, .. } = *geometry;
    let delta = move |stride| Prediction { predictor: Predictor::Delta, float, restart, stride };
    let planar =
        strides.into_iter().map(move |stride| Prediction { predictor: Predictor::Lorenzo, float, restart, stride });
    let rows = planar.flat_map(move |lorenzo| [delta(lorenzo.stride), lorenzo]);
    std::iter::once(delta(1)).chain(rows.filter(move |row| row.stride > 1 && row.stride < restart))
}

/// Returns the mean bits of a residual in the windows.
fn sampled_bits(
    coding: Coding,
    transform: Transform,
    width: Width,
    geometry: &Geometry<'_>,
    raw: &[u8],
    scratch: &mut EncodeScratch,
) -> f64 {
    let wide = |x: u32| usize::try_from(x).unwrap_or(usize::MAX);
    let (restart, row) = match transform {
        Transform::Predict(prediction) => (wide(prediction.restart), wide(prediction.stride)),
        _ => (1, 1),
    };
    // a window begins with a sample or, if samples are long, with two rows, which the others are
    // predicted from: their elements do not count. One is enough for most predictors, but only what
    // was estimated in the same windows can be compared
    let (unit, skip) = if restart <= 2 * WINDOW { (restart, 0) } else { (row, 2 * row) };
    let length = WINDOW.max(4 * row).next_multiple_of(unit.max(1));
    scratch.sampled.clear();
    for window in windows(raw.len() / width.bytes(), length) {
        let end = match coding {
            Coding::Tiers => window.end,
            // always in blocks, and prediction begins anew with each
            Coding::Bins => window.end.min(geometry.block_end(window.start)),
        };
        let Some(elements) = raw.get(window.start * width.bytes()..end * width.bytes()) else { continue };
        bit_lengths(transform, width, elements, scratch);
        coding.refine(width, &scratch.coded, &mut scratch.symbols);
        let skip = if window.start.is_multiple_of(restart.max(1)) { 0 } else { skip };
        scratch.sampled.extend_from_slice(scratch.symbols.get(skip..).unwrap_or(&[]));
    }
    let counts = histogram(&scratch.sampled);
    coding.bits(&counts) / scratch.sampled.len().max(1) as f64
}

/// Computes the coded integers of elements, to `scratch.coded`, and their bit lengths, to
/// `scratch.symbols`.
pub(super) fn bit_lengths(transform: Transform, width: Width, elements: &[u8], scratch: &mut EncodeScratch) {
    let EncodeScratch { coded, symbols, .. } = scratch;
    coded.resize(elements.len(), 0);
    symbols.resize(elements.len() / width.bytes(), 0);
    bit_lengths_of(transform, width, elements, coded, symbols);
}

/// Computes the coded integers of elements, to `coded`, and their bit lengths, to `lengths`. Both
/// have as many elements.
pub(super) fn bit_lengths_of(
    transform: Transform,
    width: Width,
    elements: &[u8],
    coded: &mut [u8],
    lengths: &mut [u8],
) {
    match transform {
        Transform::Predict(prediction) => predict::best().residuals(&prediction, width, elements, coded),
        _ => coded.copy_from_slice(elements), // equal lengths
    }
    extra_bits::best().lengths(width, coded, lengths);
}

/// Returns the number of extra bits of integers whose bit lengths have this histogram.
pub(super) fn count_extra_bits(lengths: &Histogram) -> u64 {
    (0_u64..).zip(lengths).map(|(length, &count)| length.saturating_sub(1) * u64::from(count)).sum()
}

#[cfg(test)]
mod tests {
    use super::{refine, refine_short};

    #[test]
    fn symbols_of_short_integers() {
        for integer in 0..=u16::MAX {
            let mut symbol = [(u16::BITS - integer.leading_zeros()) as u8];
            refine::<2>(&integer.to_le_bytes(), &mut symbol);
            assert_eq!(refine_short(integer), symbol[0], "{integer}");
        }
    }
}
