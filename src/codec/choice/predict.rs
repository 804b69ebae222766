//! The predictions that encoders try, and the best one for residual tiers.
//!
//! Candidates are the differences along each axis of a sample, the 2-D Lorenzo predictor, and for
//! bins separable predictions with fitted weights. All are estimated on small pieces of the part;
//! the best few on whole blocks, whose first rows nothing predicts.

use super::estimate::drop_first_rows;
use super::sample::{Pieces, SampledPart};
use super::search::{Idea, Search};
use crate::codec::{
    geometry::{Geometry, RawPart},
    scratch::EncodeScratch,
    tiers::{Histogram, TIER_TABLE_BYTES, TierPlan, histogram},
    transform::Transform,
};
use crate::kernel::predict::{self, Prediction, Predictor, Weights};
use crate::kernel::{Width, extra_bits};

/// The most elements of a sample that bins predict from the sample before.
const SHORT_SAMPLE: u32 = 4096;
/// Changes of a weight by an eighth, in the search for weights.
const MOST_STEPS: usize = 4;
/// The transforms that are looked at on all of the sample.
const MOST_CLOSE: usize = 2;
/// The weights of the 2-D Lorenzo predictor.
const LORENZO: (u8, u8) = (8, 0);

/// Returns the predictions that are tried: delta along each axis, and the 2-D Lorenzo predictor
/// (Ibarria et al., 2003) over the axis and the innermost one.
pub(crate) fn predictions(geometry: &Geometry<'_>, search: Search) -> impl Iterator<Item = Prediction> + use<> {
    let Geometry { restart, strides, .. } = *geometry;
    let delta = move |stride| Prediction { predictor: Predictor::Delta, restart, stride };
    let planar = strides.into_iter().map(move |stride| Prediction { predictor: Predictor::Lorenzo, restart, stride });
    let rows = planar.flat_map(move |lorenzo| [delta(lorenzo.stride), lorenzo]);
    let rows = rows.filter(move |row| row.stride > 1 && row.stride < restart);
    let rows = rows.filter(move |row| search.has(Idea::Rows) && allows(search, row.predictor));
    std::iter::once(delta(1)).chain(rows)
}

fn allows(search: Search, predictor: Predictor) -> bool {
    predictor != Predictor::Lorenzo || search.has(Idea::Lorenzo)
}

/// Returns the predictions of bins, which may also go across short samples: a block of bins is
/// decoded from its start in any case.
pub(crate) fn bin_predictions(geometry: &Geometry<'_>, search: Search) -> Vec<Prediction> {
    let across = geometry.restart <= SHORT_SAMPLE && search.has(Idea::AcrossSamples);
    let across = across.then_some(Geometry { restart: u32::MAX, ..*geometry });
    predictions(geometry, search).chain(across.iter().flat_map(|across| predictions(across, search))).collect()
}

/// Returns the transforms that residual tiers may have.
pub(crate) fn tier_transforms(geometry: &Geometry<'_>, search: Search) -> Vec<Transform> {
    let none = (!geometry.float).then_some(Transform::None);
    none.into_iter().chain(predictions(geometry, search).map(Transform::Predict)).collect()
}

/// Returns the transforms that residual tiers are encoded with: the best, or in an exhaustive
/// search all.
pub(crate) fn transforms(width: Width, part: RawPart<'_>, scratch: &mut EncodeScratch) -> Vec<Transform> {
    if scratch.search.is_exhaustive {
        return tier_transforms(part.geometry, scratch.search);
    }
    if let Some(transform) = scratch.tier_transform.take() {
        return vec![transform];
    }
    vec![scratch.estimated(part, |part, scratch| best_tier_transform(width, part, scratch)).0]
}

/// Returns the best transform for residual tiers, and an estimate of their stored bytes.
pub(crate) fn best_tier_transform(
    width: Width,
    part: &mut SampledPart<'_>,
    scratch: &mut EncodeScratch,
) -> (Transform, usize) {
    let search = scratch.search;
    let bits_of = |counts: &Histogram| TierPlan::new(counts, search).bits + count_extra_bits(counts);
    let all = tier_transforms(&part.geometry, search).into_iter();
    let quick = all
        .map(|transform| (bits_of(&lengths(width, transform, part, &part.sample.pieces, false, scratch)), transform));
    let mut quick: Vec<(u64, Transform)> = quick.collect();
    quick.sort_by_key(|(bits, _)| *bits);
    let close = quick.iter().take(MOST_CLOSE).map(|&(_, transform)| transform);
    let close = close
        .map(|transform| (bits_of(&lengths(width, transform, part, &part.sample.blocks, true, scratch)), transform));
    let (bits, best) = close.min_by_key(|(bits, _)| *bits).unwrap_or((0, Transform::None));
    // an estimate, and saturating
    (best, (TIER_TABLE_BYTES as f64 + bits as f64 / 8.0 * part.one_in()) as usize)
}

/// Returns the counts of bit lengths in some pieces of a part after a transform, with or without
/// the first row of each.
fn lengths(
    width: Width,
    transform: Transform,
    part: &SampledPart<'_>,
    pieces: &Pieces,
    has_first_rows: bool,
    scratch: &mut EncodeScratch,
) -> Histogram {
    let EncodeScratch { coded, symbols, .. } = scratch;
    let geometry = part.geometry.in_blocks(&pieces.ends);
    bit_lengths(transform, width, &geometry, &pieces.bytes, coded, symbols);
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

/// Returns the best weights of separable predictions that were tried: from some usual ones
/// downhill, one weight at a time. Those that are another predictor are left out.
pub(crate) fn best_weights(mut bits_of: impl FnMut(Weights) -> f64) -> Weights {
    let mut known: Vec<((u8, u8), f64)> = Vec::new();
    let mut cost = |(left, above)| {
        // a step back is the point before
        if let Some(known) = known.iter().find(|(weights, _)| *weights == (left, above)) {
            return *known;
        }
        let cost = ((left, above), bits_of(Weights { left, above }));
        known.push(cost);
        cost
    };
    let (first, second) = (cost((8, 2)), cost((5, 4)));
    let (mut best, mut bits) = if second.1 < first.1 { second } else { first };
    for _ in 0..MOST_STEPS {
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
