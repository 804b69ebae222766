//! Chooses a prediction: the one whose residuals take the fewest bits in some windows of the part.

use super::geometry::Geometry;
use super::sampling::windows;
use super::scratch::EncodeScratch;
use super::tier_plan::{Histogram, TierPlan, histogram};
use super::transform::Transform;
use crate::kernel::predict::Prediction;
use crate::kernel::{Width, extra_bits, predict};

/// The least number of elements of a window.
const WINDOW: usize = 1024;

/// Returns the best transform for residuals, and an estimate of their stored bytes in tiers.
pub(super) fn best_transform(
    width: Width,
    geometry: &Geometry<'_>,
    raw: &[u8],
    scratch: &mut EncodeScratch,
) -> (Transform, usize) {
    let count = raw.len() / width.bytes();
    let none = (!geometry.float).then_some(Transform::None);
    let candidates = none.into_iter().chain(predictions(geometry).map(Transform::Predict));
    let costs = candidates.map(|transform| (transform, sampled_bits(transform, width, geometry, raw, scratch)));
    let best = costs.min_by(|(_, a), (_, b)| a.total_cmp(b));
    let (transform, bits) = best.unwrap_or((Transform::None, f64::from(u32::MAX)));
    (transform, (bits * count as f64 / 8.0) as usize) // an estimate, and saturating
}

/// Returns the predictions that are tried: delta along each axis, and the 2-D Lorenzo predictor
/// (Ibarria et al., 2003) over the axis and the innermost one.
pub(super) fn predictions(geometry: &Geometry<'_>) -> impl Iterator<Item = Prediction> {
    let Geometry { float, restart, strides, .. } = *geometry;
    let delta = move |stride| Prediction { lorenzo: false, float, restart, stride };
    let planar = strides.into_iter().map(move |stride| Prediction { lorenzo: true, float, restart, stride });
    let rows = planar.flat_map(move |lorenzo| [delta(lorenzo.stride), lorenzo]);
    std::iter::once(delta(1)).chain(rows.filter(move |row| row.stride > 1 && row.stride < restart))
}

/// Returns the mean bits of a residual in the windows.
fn sampled_bits(
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
    // a window begins with a sample or, if samples are long, with a row, whose elements do not
    // count
    let (unit, skip) = if restart <= 2 * WINDOW { (restart, 0) } else { (row, row) };
    let length = WINDOW.max(2 * row).next_multiple_of(unit.max(1));
    scratch.sampled.clear();
    for window in windows(raw.len() / width.bytes(), length) {
        let Some(elements) = raw.get(window.start * width.bytes()..window.end * width.bytes()) else { continue };
        bit_lengths(transform, width, elements, scratch);
        let skip = if window.start == 0 || geometry.restarts_at(window.start) { 0 } else { skip };
        scratch.sampled.extend_from_slice(scratch.symbols.get(skip..).unwrap_or(&[]));
    }
    let counts = histogram(&scratch.sampled);
    let bits = TierPlan::new(&counts, 31).bits + count_extra_bits(&counts);
    bits as f64 / scratch.sampled.len().max(1) as f64
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
