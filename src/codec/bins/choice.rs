//! Chooses the gaps, mapping, transform and filters of a part that is encoded with bins.
//!
//! The size of each combination of these is estimated on segments of the part. The best few
//! combinations are tried on some blocks of the part, and the one with the smallest result encodes
//! the whole part. An exhaustive search encodes the part with all combinations. Both searches
//! enumerate the same combinations, so the regret of a choice (how much larger its result is than
//! the result of the best combination) measures only the errors of the estimates.
//!
//! The enumeration has three nested loops: with and without gaps; each mapping, and none; each
//! prediction of the numbers, and none. For 2-byte numbers, filters are also tried in place of a
//! prediction. Three shortcuts keep the enumeration fast; an exhaustive search does not use them.
//! First, for the numbers of a mapping, only differences and the predictions that suit the elements
//! best are tried. Second, if the first estimates of a mapping are far above the best estimate, no
//! more predictions are tried for it. Third, filters, and the weights of separable predictions, are
//! fitted only if the estimate of the prediction that they replace is close to the best.

use super::dictionaries::{DictionaryOrder, DictionaryPlan, DictionaryRequest, find_dictionaries};
use super::mapping::{Bases, Mapping, Numbers};
use super::multiples::{find_float_multiples, find_int_multiple, find_upper_bits};
use super::options::Present;
use super::plan::{BinChoice, Combination, Dictionaries, Numbering};
use crate::Result;
use crate::codec::{
    bits::split,
    choice::{
        CostModel, SampledPart, Search, Technique, best_weights, bin_predictions, drop_first_rows, refine,
        transform_blocks,
    },
    part::Geometry,
    scratch::EncodeScratch,
    transform::Transform,
};
use crate::kernel::{
    Width, extra_bits,
    predict::{Prediction, Predictor},
};

/// A combination becomes a finalist, and is encoded, if its estimate exceeds the smallest estimate
/// by at most 1/N. The number of finalists is also limited.
const FINALIST_MARGIN_DIVISOR: f64 = 8.0;
const MAX_FINALISTS: usize = 2;
const MAX_FINALISTS_FOR_SIZE: usize = 4;
/// More predictions are tried for a mapping if the smaller of its first two estimates exceeds the
/// smallest estimate so far by at most 1/N.
const PREDICTION_MARGIN_DIVISOR: f64 = 2.0;
/// For the numbers of a mapping, only this many predictions are tried: the ones that suit the
/// elements best. Differences are always tried as well, because they suit numbers even if the
/// elements are noisy.
const MAX_PREDICTIONS: usize = 2;
const MAX_PREDICTIONS_FOR_SIZE: usize = 6;
/// Filters and weights take time to fit. They are tried if the estimate of the prediction that they
/// replace exceeds the smallest estimate by at most 1/N.
const FIT_MARGIN_DIVISOR: f64 = 8.0;
/// The minimum number of elements to which weights are fitted.
const MIN_WEIGHT_FIT_ELEMENTS: usize = 1024;
/// The maximum length of an innermost dimension whose channels can have their own dictionaries.
const MAX_CHANNELS: u32 = 16;

/// What a profile allows bins to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BinSettings {
    /// Whether only the stored size matters, not the decoding speed. Float multiples can then also
    /// store low-order bits of elements, which are slow to decode.
    pub for_size: bool,
    pub width: Width,
}

impl BinSettings {
    fn max_finalists(&self) -> usize {
        if self.for_size { MAX_FINALISTS_FOR_SIZE } else { MAX_FINALISTS }
    }

    fn max_predictions(&self) -> usize {
        if self.for_size { MAX_PREDICTIONS_FOR_SIZE } else { MAX_PREDICTIONS }
    }
}

/// The elements of a part, or some of them.
#[derive(Clone, Copy)]
struct Elements<'a> {
    geometry: Geometry<'a>,
    bytes: &'a [u8],
    /// The stored size of the gap marks between them.
    mark_bytes: usize,
    /// How many elements of the part each of these elements represents.
    sample_scale: f64,
}

/// A function that is called with each combination, for all elements.
type VisitWhole<'v> = dyn FnMut(Combination, &mut EncodeScratch) -> Result<()> + 'v;

/// Calls `visit` for each finalist that fits the part, with its gaps, numbers and filters in the
/// scratch.
pub(crate) fn each_finalist(
    choice: &BinChoice,
    settings: BinSettings,
    geometry: &Geometry<'_>,
    raw: &[u8],
    scratch: &mut EncodeScratch,
    visit: &mut VisitWhole<'_>,
) -> Result<()> {
    let whole = Elements::whole(*geometry, raw);
    let mut present = std::mem::take(&mut scratch.present);
    present.gaps = None;
    if choice.finalists.iter().any(|combination| combination.has_gaps) {
        present.find(settings.width, geometry, raw);
    }
    for combination in &choice.finalists {
        let has_gaps = combination.has_gaps;
        if has_gaps && present.gaps.is_none() {
            continue;
        }
        let elements = if has_gaps { whole.between(&present) } else { whole };
        let numbering = match choice.is_fitted {
            true => Some(combination.numbering),
            false => fit_numbering(settings, combination.numbering, elements, &mut scratch.dictionaries),
        };
        let Some(numbering) = numbering else { continue };
        let combination = Combination { numbering, ..*combination };
        if !set(settings, &combination, elements, scratch) {
            continue;
        }
        if has_gaps {
            std::mem::swap(&mut scratch.present, &mut present);
        }
        let visited = visit(combination, scratch);
        if has_gaps {
            std::mem::swap(&mut scratch.present, &mut present);
        }
        visited?;
    }
    scratch.present = present;
    Ok(())
}

/// Adapts a numbering that was chosen for other elements to these elements. Returns `None` if it
/// does not suit them.
fn fit_numbering(
    settings: BinSettings,
    numbering: Numbering,
    elements: Elements<'_>,
    dictionaries: &mut Vec<DictionaryPlan>,
) -> Option<Numbering> {
    let Elements { geometry, bytes, .. } = elements;
    match numbering {
        Numbering::None | Numbering::FloatMultiple(..) => Some(numbering),
        Numbering::Dictionaries(candidate) => {
            let request = DictionaryRequest {
                order: candidate.order,
                count: candidate.count,
                geometry: &geometry,
                elements: bytes,
                sample: None,
            };
            dictionaries.clear();
            dictionaries.push(find_dictionaries(settings.width, request)?);
            Some(Numbering::Dictionaries(Dictionaries { index: 0, ..candidate }))
        }
        Numbering::IntMultiple(_, Bases::Zero) => {
            find_upper_bits(settings.width, bytes).map(|int_multiple| Numbering::IntMultiple(int_multiple, Bases::Zero))
        }
        Numbering::IntMultiple(_, bases) => find_int_multiple(settings.width, &geometry, bytes)
            .map(|int_multiple| Numbering::IntMultiple(int_multiple, bases)),
    }
}

/// Chooses the combinations that are worth encoding.
pub(crate) fn choose(settings: BinSettings, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> BinChoice {
    let SampledPart { geometry, raw, .. } = *part;
    let sample = std::mem::take(&mut part.sample);
    let whole = Elements::whole(geometry, raw);
    let segments = &sample.segments;
    let sampled = whole.subset(geometry.in_blocks(&segments.ends), &segments.bytes);
    scratch.dictionaries.clear();
    let mut found = Vec::new();
    let estimated = each_combination(settings, whole, sampled, scratch, &mut |combination, subset, scratch| {
        let bytes = estimate_bytes(settings, &combination, subset, scratch);
        found.push(Combination { bytes, ..combination });
        Ok(bytes)
    });
    debug_assert!(estimated.is_ok(), "estimates do not fail");
    found.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
    let min_bytes = found.first().map_or(0.0, |first| first.bytes);
    found.retain(|combination| combination.bytes <= min_bytes + min_bytes / FINALIST_MARGIN_DIVISOR);
    let mut finalists = finalists(settings, found);
    if let Some(best) = finalists.first_mut()
        && scratch.search.has(Technique::PartBase)
        && let Some(other) =
            best.with_part_base().filter(|other| !other.has_gaps && set(settings, other, sampled, scratch))
    {
        let bytes = estimate_bytes(settings, &other, sampled, scratch);
        if bytes < best.bytes {
            *best = Combination { bytes, ..other };
        }
    }
    part.sample = sample;
    BinChoice { finalists, is_fitted: true }
}

/// Returns the best combinations, best first. If only the stored size matters, they include the
/// best combination with a different kind of mapping and the best combination with a different
/// prediction.
fn finalists(settings: BinSettings, mut sorted: Vec<Combination>) -> Vec<Combination> {
    let mut finalists = Vec::new();
    let take = |index: Option<usize>, sorted: &mut Vec<Combination>| index.map(|index| sorted.remove(index));
    let Some(best) = take((!sorted.is_empty()).then_some(0), &mut sorted) else { return finalists };
    finalists.push(best);
    if settings.for_size {
        let numbering = std::mem::discriminant(&best.numbering);
        let other = sorted.iter().position(|other| std::mem::discriminant(&other.numbering) != numbering);
        finalists.extend(take(other, &mut sorted));
        let prediction = |candidate: &Combination| (candidate.has_gaps, candidate.transform, candidate.has_filters);
        let other = sorted.iter().position(|other| prediction(other) != prediction(&best));
        finalists.extend(take(other, &mut sorted));
    }
    let rest = settings.max_finalists().saturating_sub(finalists.len());
    finalists.extend(sorted.into_iter().take(rest));
    finalists
}

/// Calls `visit` for each combination, for all elements, with its gaps, numbers and filters in the
/// scratch.
pub(crate) fn each_choice(
    settings: BinSettings,
    geometry: &Geometry<'_>,
    raw: &[u8],
    scratch: &mut EncodeScratch,
    visit: &mut VisitWhole<'_>,
) -> Result<()> {
    let whole = Elements::whole(*geometry, raw);
    scratch.dictionaries.clear();
    each_combination(settings, whole, whole, scratch, &mut |combination, _, scratch| {
        visit(combination, scratch).map(|()| 0.0)
    })
}

/// A function that is called with each combination and the elements outside its gaps. It returns an
/// estimate of the size in bytes.
type Visit<'v> = dyn FnMut(Combination, Elements<'_>, &mut EncodeScratch) -> Result<f64> + 'v;

/// Calls `visit` for each combination, for a subset of the elements, with its numbers and filters
/// in the scratch. If the subset has all elements, the gaps are also in the scratch.
fn each_combination(
    settings: BinSettings,
    whole: Elements<'_>,
    subset: Elements<'_>,
    scratch: &mut EncodeScratch,
    visit: &mut Visit<'_>,
) -> Result<()> {
    scratch.present.gaps = None;
    each_numbering(settings, false, whole, subset, scratch, visit)?;
    if !scratch.search.has(Technique::Gaps) {
        return Ok(());
    }
    let (mut whole_present, mut subset_present) = (Present::default(), Present::default());
    let Elements { geometry, bytes, .. } = subset;
    if !subset_present.find(settings.width, &geometry, bytes)
        || !whole_present.find(settings.width, &whole.geometry, whole.bytes)
    {
        return Ok(());
    }
    if bytes.len() == whole.bytes.len() {
        // the subset has all elements, so the visitor may encode them
        scratch.present.find(settings.width, &whole.geometry, whole.bytes);
    }
    let whole = whole.between(&whole_present);
    let between = subset.between(&subset_present);
    let subset = Elements { mark_bytes: between.mark_bytes, ..whole.subset(between.geometry, between.bytes) };
    each_numbering(settings, true, whole, subset, scratch, visit)
}

impl<'a> Elements<'a> {
    fn whole(geometry: Geometry<'a>, bytes: &'a [u8]) -> Self {
        Self { geometry, bytes, mark_bytes: 0, sample_scale: 1.0 }
    }

    fn subset<'s>(&self, geometry: Geometry<'s>, bytes: &'s [u8]) -> Elements<'s> {
        let sample_scale = self.bytes.len().max(1) as f64 / bytes.len().max(1) as f64;
        Elements { geometry, bytes, mark_bytes: 0, sample_scale }
    }

    /// Returns the start of the first block: `count` elements, or two rows if two rows are longer.
    fn start(&self, count: usize) -> ([u32; 1], &'a [u8]) {
        let first = self.geometry.blocks.first().map_or(0, |&end| end as usize);
        let end = first.min(count.max(2 * self.geometry.longest_row(first / 2)));
        // within a block
        ([end as u32], self.bytes.get(..end * self.geometry.element_bytes).unwrap_or(&[]))
    }

    fn between(&self, present: &'a Present) -> Elements<'a> {
        Elements {
            mark_bytes: present.mark_bytes(),
            ..Elements::whole(present.geometry(&self.geometry), &present.bytes)
        }
    }
}

fn each_numbering(
    settings: BinSettings,
    has_gaps: bool,
    whole: Elements<'_>,
    subset: Elements<'_>,
    scratch: &mut EncodeScratch,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let search = scratch.search;
    let mut min_bytes = f64::INFINITY;
    // for each stride, the best prediction from the row above; and the combinations in which
    // filters can replace the prediction
    let mut planar: Vec<(u32, Combination)> = Vec::new();
    let mut lines = Vec::new();
    let mut likely: Option<Vec<Prediction>> = None;
    for numbering in numberings(settings, whole, subset, search, &mut scratch.dictionaries) {
        if !set_numbers(numbering, subset, scratch) {
            continue;
        }
        scratch.filters.filters = None;
        let (width, geometry) = number_geometry(settings.width, numbering, &scratch.numbers, &subset.geometry);
        let predictions = match &likely {
            Some(likely) if !search.is_exhaustive => likely.clone(),
            _ => bin_predictions(&geometry, search),
        };
        let transforms = std::iter::once(Transform::None).chain(predictions.iter().copied().map(Transform::Predict));
        let mut estimates = Vec::new();
        let may_be_filtered = width == Width::W2 && search.has(Technique::Filters);
        let mut numbering_min_bytes = f64::INFINITY;
        let mut line: Option<Combination> = None;
        let candidate = |transform| Combination { has_gaps, numbering, transform, has_filters: false, bytes: 0.0 };
        for (i, transform) in transforms.enumerate() {
            if i == 2 && numbering_min_bytes > min_bytes + min_bytes / PREDICTION_MARGIN_DIVISOR {
                break;
            }
            let bytes = visit(candidate(transform), subset, scratch)?;
            numbering_min_bytes = numbering_min_bytes.min(bytes);
            let combination = Combination { bytes, ..candidate(transform) };
            if let Transform::Predict(prediction) = transform {
                estimates.push((bytes, prediction));
            }
            match transform {
                Transform::Predict(prediction) if prediction.stride > 1 => {
                    match planar.iter_mut().find(|(stride, _)| *stride == prediction.stride) {
                        Some((_, best)) if best.bytes <= combination.bytes => {}
                        Some((_, best)) => *best = combination,
                        None => planar.push((prediction.stride, combination)),
                    }
                }
                _ if may_be_filtered && line.is_none_or(|best| bytes < best.bytes) => line = Some(combination),
                _ => {}
            }
        }
        min_bytes = min_bytes.min(numbering_min_bytes);
        lines.extend(line);
        if likely.is_none() {
            estimates.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            let mut best: Vec<_> =
                estimates.into_iter().map(|(_, prediction)| prediction).take(settings.max_predictions()).collect();
            best.extend(predictions.first().filter(|delta| !best.contains(delta)));
            likely = Some(best);
        }
        if search.is_exhaustive {
            let planar = predictions
                .into_iter()
                .filter(|candidate| candidate.stride > 1 && candidate.predictor == Predictor::Delta);
            for prediction in planar {
                visit_weighted(settings, candidate(Transform::Predict(prediction)), subset, scratch, visit)?;
            }
            if may_be_filtered {
                visit_filtered(settings, candidate(Transform::None), subset, scratch, visit)?;
            }
        }
    }
    if search.is_exhaustive {
        return Ok(());
    }
    let is_likely = |best: &Combination| best.bytes <= min_bytes + min_bytes / FIT_MARGIN_DIVISOR;
    let mut planar: Vec<Combination> = planar.into_iter().map(|(_, best)| best).filter(is_likely).collect();
    planar.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
    for best in planar.into_iter().take(if settings.for_size { usize::MAX } else { 1 }) {
        set_numbers(best.numbering, subset, scratch);
        scratch.filters.filters = None;
        visit_weighted(settings, best, subset, scratch, visit)?;
    }
    for best in lines.into_iter().filter(is_likely) {
        // filters are fitted to the numbers, so one base for the whole part is tried here already
        let with_part_base = best.with_part_base().filter(|_| search.has(Technique::PartBase));
        for candidate in [Some(best), with_part_base].into_iter().flatten() {
            if set_numbers(candidate.numbering, subset, scratch) {
                visit_filtered(settings, candidate, subset, scratch, visit)?;
            }
        }
    }
    Ok(())
}

/// Visits a combination with the best separable prediction in place of another prediction from the
/// row above.
fn visit_weighted(
    settings: BinSettings,
    combination: Combination,
    subset: Elements<'_>,
    scratch: &mut EncodeScratch,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let Transform::Predict(prediction) = combination.transform else { return Ok(()) };
    if !scratch.search.has(Technique::Separable) {
        return Ok(());
    }
    let weighted = |weights| {
        let prediction = Prediction { predictor: Predictor::Separable(weights), ..prediction };
        Combination { transform: Transform::Predict(prediction), ..combination }
    };
    let (start, start_bytes) =
        subset.start(if settings.for_size { 4 * MIN_WEIGHT_FIT_ELEMENTS } else { MIN_WEIGHT_FIT_ELEMENTS });
    // with the same `sample_scale`, so tables cost as much as in an estimate of all elements
    let start = Elements { geometry: subset.geometry.in_blocks(&start), bytes: start_bytes, ..subset };
    if !set_numbers(combination.numbering, start, scratch) {
        return Ok(());
    }
    let weights = best_weights(|weights| estimate_bytes(settings, &weighted(weights), start, scratch));
    set_numbers(combination.numbering, subset, scratch);
    visit(weighted(weights), subset, scratch).map(drop)
}

/// Visits a combination with filters in place of a prediction.
fn visit_filtered(
    settings: BinSettings,
    combination: Combination,
    subset: Elements<'_>,
    scratch: &mut EncodeScratch,
    visit: &mut Visit<'_>,
) -> Result<()> {
    if set_filters(settings, combination.numbering, subset, !scratch.search.is_exhaustive, scratch) {
        visit(Combination { transform: Transform::None, has_filters: true, ..combination }, subset, scratch)?;
    }
    scratch.filters.filters = None;
    Ok(())
}

fn numberings(
    settings: BinSettings,
    whole: Elements<'_>,
    subset: Elements<'_>,
    search: Search,
    dictionaries: &mut Vec<DictionaryPlan>,
) -> Vec<Numbering> {
    let mut all = vec![Numbering::None];
    let Elements { geometry, bytes, .. } = whole;
    let width = settings.width;
    let mut add_dictionary = |order, count: u32| {
        let count = count as usize; // exact: at most 16
        let sample = (!search.is_exhaustive).then_some(subset.bytes);
        let request = DictionaryRequest { order, count, geometry: &geometry, elements: bytes, sample };
        if let Some(found) = find_dictionaries(width, request) {
            all.push(Numbering::Dictionaries(Dictionaries { order, count, index: dictionaries.len() }));
            dictionaries.push(found);
        }
    };
    if search.has(Technique::Dictionaries) && width != Width::W1 {
        add_dictionary(DictionaryOrder::ByValue, 1);
        let channels = geometry.strides.into_iter().find(|&stride| (2..=MAX_CHANNELS).contains(&stride));
        if let Some(channels) = channels.filter(|_| search.has(Technique::ChannelDictionaries)) {
            add_dictionary(DictionaryOrder::ByValue, channels);
        }
    }
    // 1-byte elements have no shorter numbers, and 2-byte floats have few bits that are not noise
    let may_be_categorical = width.bytes() > 2 || width == Width::W2 && !geometry.float;
    if search.has(Technique::FrequencyDictionaries) && may_be_categorical {
        add_dictionary(DictionaryOrder::ByFrequency, 1);
    }
    // other searches try one base for the whole part later, and only for the best combination
    let both = search.is_exhaustive && search.has(Technique::PartBase);
    let bases = [Bases::PerBlock, Bases::PerPart].into_iter().take(if both { 2 } else { 1 });
    if geometry.float {
        if search.has(Technique::UpperBits)
            && let Some(int_multiple) = find_upper_bits(width, bytes)
        {
            all.push(Numbering::IntMultiple(int_multiple, Bases::Zero));
        }
    } else if search.has(Technique::IntMultiples)
        && let Some(int_multiple) = find_int_multiple(width, &geometry, bytes)
    {
        all.extend(bases.clone().map(|bases| Numbering::IntMultiple(int_multiple, bases)));
    }
    if search.has(Technique::FloatMultiples)
        && let Some(float_type) = geometry.float_type
    {
        let float_multiples =
            find_float_multiples(float_type, bytes, settings.for_size && search.has(Technique::Details));
        let float_multiples = float_multiples
            .into_iter()
            .filter(|float_multiple| float_multiple.divisor == 1 || search.has(Technique::Divisors));
        all.extend(float_multiples.flat_map(|float_multiple| {
            bases.clone().map(move |bases| Numbering::FloatMultiple(float_multiple, bases))
        }));
    }
    all
}

/// Computes the numbers of some elements. Returns whether that is possible.
fn set_numbers(numbering: Numbering, subset: Elements<'_>, scratch: &mut EncodeScratch) -> bool {
    let EncodeScratch { numbers, dictionaries, .. } = scratch;
    match numbering {
        Numbering::None => {
            numbers.mapping = Mapping::None;
            true
        }
        Numbering::Dictionaries(Dictionaries { index, .. }) => dictionaries
            .get(index)
            .map(|found| numbers.set_dictionaries(found, &subset.geometry, subset.bytes))
            .is_some(),
        Numbering::IntMultiple(int_multiple, bases) => {
            numbers.set_int_multiple(int_multiple, bases, &subset.geometry, subset.bytes)
        }
        Numbering::FloatMultiple(float_multiple, bases) => {
            numbers.set_float_multiple(float_multiple, bases, &subset.geometry, subset.bytes);
            true
        }
    }
}

/// Returns the width and the geometry of the numbers of elements with this geometry.
fn number_geometry<'a>(
    width: Width,
    numbering: Numbering,
    numbers: &Numbers,
    geometry: &Geometry<'a>,
) -> (Width, Geometry<'a>) {
    if let Numbering::None = numbering {
        return (width, *geometry);
    }
    let number = numbers.mapping.widths(width).number;
    // the upper bits of floats are also floats if the highest of them is the sign
    let is_upper = matches!(numbering, Numbering::IntMultiple(_, Bases::Zero));
    let float = is_upper && numbers.mapping.keeps_sign(width);
    (number, Geometry { element_bytes: number.bytes(), float, float_type: None, ..*geometry })
}

/// Fits filters to the numbers in the scratch. Returns whether they seem worthwhile. Filters
/// require 2-byte numbers, but a dictionary that is fitted to fewer values can have 1-byte numbers.
fn set_filters(
    settings: BinSettings,
    numbering: Numbering,
    elements: Elements<'_>,
    is_sample: bool,
    scratch: &mut EncodeScratch,
) -> bool {
    let EncodeScratch { numbers, filters, .. } = scratch;
    let (width, geometry) = number_geometry(settings.width, numbering, numbers, &elements.geometry);
    let integers = if let Numbering::None = numbering { elements.bytes } else { &numbers.bytes };
    width == Width::W2 && filters.find(if settings.for_size { 16 } else { 8 }, is_sample, &geometry, integers)
}

/// Computes the numbers and filters of a combination for these elements. Returns whether that is
/// possible.
fn set(settings: BinSettings, combination: &Combination, elements: Elements<'_>, scratch: &mut EncodeScratch) -> bool {
    scratch.filters.filters = None;
    set_numbers(combination.numbering, elements, scratch)
        && (!combination.has_filters || set_filters(settings, combination.numbering, elements, false, scratch))
}

/// Estimates the size of all elements from the elements whose numbers are in the scratch.
fn estimate_bytes(
    settings: BinSettings,
    combination: &Combination,
    elements: Elements<'_>,
    scratch: &mut EncodeScratch,
) -> f64 {
    let EncodeScratch { numbers, filters, coded, symbols, low_bytes, search, .. } = scratch;
    let (width, geometry) = number_geometry(settings.width, combination.numbering, numbers, &elements.geometry);
    let is_mapped = !matches!(combination.numbering, Numbering::None);
    let integers = if is_mapped { numbers.bytes.as_slice() } else { elements.bytes };
    match filters.filters {
        Some(_) => filters.residuals(&geometry, integers, coded),
        None => transform_blocks(combination.transform, width, &geometry, integers, coded),
    }
    symbols.resize(coded.len() / width.bytes(), 0);
    extra_bits::best().lengths(width, coded, symbols);
    refine(width, coded, symbols);
    let row_scale = drop_first_rows(&geometry, symbols);
    let coded = CostModel { may_have_classes: search.has(Technique::Classes), sample_scale: elements.sample_scale };
    let mut bits = coded.residual_bits(symbols) * row_scale;
    if combination.transform == Transform::None && filters.filters.is_none() {
        split(width, false, integers, symbols, low_bytes);
        bits = bits.min(coded.plain_bits(symbols, low_bytes, geometry.float));
    }
    let shared = elements.sample_scale as usize; // the cast saturates; at least 1
    let mut other = if is_mapped { numbers.other_bytes(settings.width.bytes(), shared) } else { 0 };
    other += elements.mark_bytes;
    (bits / 8.0 + other as f64 + filters.other_bytes(elements.sample_scale)) * elements.sample_scale
}
