//! Chooses gaps, mapping, transform and filters of a part of bins.
//!
//! All combinations are estimated on pieces of the part. The best few encode some of its blocks,
//! and the smallest of these encodes the part. An exhaustive search encodes the part with all. Both
//! enumerate the same combinations, so that a regret measures what estimates miss and nothing else.
//!
//! What is enumerated: gaps or none; then each mapping, or none; then each prediction of its
//! numbers, or none; and filters in place of a prediction, for numbers of two bytes.

use super::mapping::{Bases, Mapping, Numbers};
use super::multiples::{find_multiple, find_quotients, find_upper_bits};
use super::options::Present;
use super::palettes::{FoundPalettes, PaletteOrder, WantedPalettes, find_palettes};
use super::plan::{BinChoice, Combination, Numbering, Palettes};
use crate::Result;
use crate::codec::{
    bits::split,
    choice::{
        Coded, Idea, SampledPart, Search, best_weights, bin_predictions, drop_first_rows, refine, transform_blocks,
    },
    part::Geometry,
    scratch::EncodeScratch,
    transform::Transform,
};
use crate::kernel::{
    Width, extra_bits,
    predict::{Prediction, Predictor},
};

/// Combinations are encoded if their estimate is greater than the least by at most one in this
/// many; at most that many of them.
const CLOSE_ONE_IN: f64 = 8.0;
const MOST_FINALISTS: usize = 2;
const MOST_FINALISTS_FOR_SIZE: usize = 4;
/// Further predictions of a mapping are looked at if the first of them is greater than the least by
/// at most one in this many.
const PROMISING_ONE_IN: f64 = 2.0;
/// The predictions that are tried for numbers of a mapping: the best predictions of the elements,
/// and differences, which suit numbers even if elements have noise.
const MOST_LIKELY: usize = 2;
const MOST_LIKELY_FOR_SIZE: usize = 6;
/// Filters and weights are looked at if what they may replace is greater than the least by at most
/// one in this many: fitting them takes time.
const LIKELY_ONE_IN: f64 = 8.0;
/// The elements that weights are fitted to, at least.
const WEIGHED: usize = 1024;
/// The most elements of the innermost dimension that have palettes of their own.
const MOST_CHANNELS: u32 = 16;

/// What bins of a profile may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Means {
    /// Whether details below numbers may be used, which are slow to decode.
    pub for_size: bool,
    pub width: Width,
}

impl Means {
    fn most_finalists(&self) -> usize {
        if self.for_size { MOST_FINALISTS_FOR_SIZE } else { MOST_FINALISTS }
    }

    fn most_likely(&self) -> usize {
        if self.for_size { MOST_LIKELY_FOR_SIZE } else { MOST_LIKELY }
    }
}

/// Elements of a part, or some of them.
#[derive(Clone, Copy)]
struct Elements<'a> {
    geometry: Geometry<'a>,
    bytes: &'a [u8],
    /// The stored bytes of the gaps between them.
    mark_bytes: usize,
    /// The elements of the part for each of these.
    one_in: f64,
}

/// A visitor of combinations for all elements.
type VisitWhole<'v> = dyn FnMut(Combination, &mut EncodeScratch) -> Result<()> + 'v;

/// Calls `visit` for each of the combinations that a part can have. Its gaps, numbers and
/// filters are in the scratch.
pub(crate) fn each_finalist(
    choice: &BinChoice,
    means: Means,
    geometry: &Geometry<'_>,
    raw: &[u8],
    scratch: &mut EncodeScratch,
    visit: &mut VisitWhole<'_>,
) -> Result<()> {
    let whole = Elements::whole(*geometry, raw);
    let mut present = std::mem::take(&mut scratch.present);
    present.gaps = None;
    if choice.finalists.iter().any(|combination| combination.has_gaps) {
        present.find(means.width, geometry, raw);
    }
    for combination in &choice.finalists {
        let has_gaps = combination.has_gaps;
        if has_gaps && present.gaps.is_none() {
            continue;
        }
        let elements = if has_gaps { whole.between(&present) } else { whole };
        let numbering = match choice.is_fitted {
            true => Some(combination.numbering),
            false => fitted(means, combination.numbering, elements, &mut scratch.palettes),
        };
        let Some(numbering) = numbering else { continue };
        let combination = Combination { numbering, ..*combination };
        if !set(means, &combination, elements, scratch) {
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

/// Fits a numbering, which other elements have, to these. `None` if they cannot have it.
fn fitted(
    means: Means,
    numbering: Numbering,
    elements: Elements<'_>,
    palettes: &mut Vec<FoundPalettes>,
) -> Option<Numbering> {
    let Elements { geometry, bytes, .. } = elements;
    match numbering {
        Numbering::None | Numbering::Quotient(..) => Some(numbering),
        Numbering::Palettes(of) => {
            let wanted =
                WantedPalettes { order: of.order, count: of.count, geometry: &geometry, elements: bytes, sample: None };
            palettes.clear();
            palettes.push(find_palettes(means.width, wanted)?);
            Some(Numbering::Palettes(Palettes { place: 0, ..of }))
        }
        Numbering::Multiple(_, Bases::Zero) => {
            find_upper_bits(means.width, bytes).map(|multiple| Numbering::Multiple(multiple, Bases::Zero))
        }
        Numbering::Multiple(_, bases) => {
            find_multiple(means.width, &geometry, bytes).map(|multiple| Numbering::Multiple(multiple, bases))
        }
    }
}

/// Chooses the combinations that are worth encoding.
pub(crate) fn choose(means: Means, part: &mut SampledPart<'_>, scratch: &mut EncodeScratch) -> BinChoice {
    let SampledPart { geometry, raw, .. } = *part;
    let sample = std::mem::take(&mut part.sample);
    let whole = Elements::whole(geometry, raw);
    let pieces = &sample.pieces;
    let of_pieces = whole.some(geometry.in_blocks(&pieces.ends), &pieces.bytes);
    scratch.palettes.clear();
    let mut found = Vec::new();
    let estimated = each_combination(means, whole, of_pieces, scratch, &mut |combination, some, scratch| {
        let bytes = bytes_of(means, &combination, some, scratch);
        found.push(Combination { bytes, ..combination });
        Ok(bytes)
    });
    debug_assert!(estimated.is_ok(), "estimates do not fail");
    found.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
    let least = found.first().map_or(0.0, |first| first.bytes);
    found.retain(|combination| combination.bytes <= least + least / CLOSE_ONE_IN);
    let mut finalists = finalists(means, found);
    if let Some(best) = finalists.first_mut()
        && scratch.search.has(Idea::PartBase)
        && let Some(other) = best.of_part().filter(|other| !other.has_gaps && set(means, other, of_pieces, scratch))
    {
        let bytes = bytes_of(means, &other, of_pieces, scratch);
        if bytes < best.bytes {
            *best = Combination { bytes, ..other };
        }
    }
    part.sample = sample;
    BinChoice { finalists, is_fitted: true }
}

/// Returns the best combinations, the best one first. For the smallest profile, also returns the
/// best one with another kind of mapping and the best one with another prediction.
fn finalists(means: Means, mut sorted: Vec<Combination>) -> Vec<Combination> {
    let mut finalists = Vec::new();
    let take = |place: Option<usize>, sorted: &mut Vec<Combination>| place.map(|place| sorted.remove(place));
    let Some(best) = take((!sorted.is_empty()).then_some(0), &mut sorted) else { return finalists };
    finalists.push(best);
    if means.for_size {
        let numbering = std::mem::discriminant(&best.numbering);
        let other = sorted.iter().position(|other| std::mem::discriminant(&other.numbering) != numbering);
        finalists.extend(take(other, &mut sorted));
        let prediction = |of: &Combination| (of.has_gaps, of.transform, of.has_filters);
        let other = sorted.iter().position(|other| prediction(other) != prediction(&best));
        finalists.extend(take(other, &mut sorted));
    }
    let rest = means.most_finalists().saturating_sub(finalists.len());
    finalists.extend(sorted.into_iter().take(rest));
    finalists
}

/// Calls `visit` for each combination of all elements. Gaps, numbers and filters are in the
/// scratch.
pub(crate) fn each_choice(
    means: Means,
    geometry: &Geometry<'_>,
    raw: &[u8],
    scratch: &mut EncodeScratch,
    visit: &mut VisitWhole<'_>,
) -> Result<()> {
    let whole = Elements::whole(*geometry, raw);
    scratch.palettes.clear();
    each_combination(means, whole, whole, scratch, &mut |combination, _, scratch| {
        visit(combination, scratch).map(|()| 0.0)
    })
}

/// A visitor of combinations and of the elements that are not gaps. Returns an estimate of the
/// bytes.
type Visit<'v> = dyn FnMut(Combination, Elements<'_>, &mut EncodeScratch) -> Result<f64> + 'v;

/// Calls `visit` for each combination, on some elements of all. Numbers and filters are in the
/// scratch, and, if these are all elements, gaps.
fn each_combination(
    means: Means,
    whole: Elements<'_>,
    some: Elements<'_>,
    scratch: &mut EncodeScratch,
    visit: &mut Visit<'_>,
) -> Result<()> {
    scratch.present.gaps = None;
    each_numbering(means, false, whole, some, scratch, visit)?;
    if !scratch.search.has(Idea::Gaps) {
        return Ok(());
    }
    let (mut of_all, mut of_some) = (Present::default(), Present::default());
    let Elements { geometry, bytes, .. } = some;
    if !of_some.find(means.width, &geometry, bytes) || !of_all.find(means.width, &whole.geometry, whole.bytes) {
        return Ok(());
    }
    if bytes.len() == whole.bytes.len() {
        // what is visited may be encoded
        scratch.present.find(means.width, &whole.geometry, whole.bytes);
    }
    let whole = whole.between(&of_all);
    let between = some.between(&of_some);
    let some = Elements { mark_bytes: between.mark_bytes, ..whole.some(between.geometry, between.bytes) };
    each_numbering(means, true, whole, some, scratch, visit)
}

impl<'a> Elements<'a> {
    fn whole(geometry: Geometry<'a>, bytes: &'a [u8]) -> Self {
        Self { geometry, bytes, mark_bytes: 0, one_in: 1.0 }
    }

    fn some<'s>(&self, geometry: Geometry<'s>, bytes: &'s [u8]) -> Elements<'s> {
        let one_in = self.bytes.len().max(1) as f64 / bytes.len().max(1) as f64;
        Elements { geometry, bytes, mark_bytes: 0, one_in }
    }

    /// Returns the start of the first block, of `count` elements or two rows.
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
    means: Means,
    has_gaps: bool,
    whole: Elements<'_>,
    some: Elements<'_>,
    scratch: &mut EncodeScratch,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let search = scratch.search;
    let mut least = f64::INFINITY;
    // the best prediction from the row above for each stride, and combinations that filters may
    // predict
    let mut planar: Vec<(u32, Combination)> = Vec::new();
    let mut lines = Vec::new();
    let mut likely: Option<Vec<Prediction>> = None;
    for numbering in numberings(means, whole, some, search, &mut scratch.palettes) {
        if !set_numbers(numbering, some, scratch) {
            continue;
        }
        scratch.filters.filters = None;
        let (width, geometry) = of_numbers(means.width, numbering, &scratch.numbers, &some.geometry);
        let predictions = match &likely {
            Some(likely) if !search.is_exhaustive => likely.clone(),
            _ => bin_predictions(&geometry, search),
        };
        let transforms = std::iter::once(Transform::None).chain(predictions.iter().copied().map(Transform::Predict));
        let mut estimates = Vec::new();
        let may_be_filtered = width == Width::W2 && search.has(Idea::Filters);
        let mut own = f64::INFINITY;
        let mut line: Option<Combination> = None;
        let of = |transform| Combination { has_gaps, numbering, transform, has_filters: false, bytes: 0.0 };
        for (i, transform) in transforms.enumerate() {
            if i == 2 && own > least + least / PROMISING_ONE_IN {
                break;
            }
            let bytes = visit(of(transform), some, scratch)?;
            own = own.min(bytes);
            let combination = Combination { bytes, ..of(transform) };
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
        least = least.min(own);
        lines.extend(line);
        if likely.is_none() {
            estimates.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            let mut best: Vec<_> =
                estimates.into_iter().map(|(_, prediction)| prediction).take(means.most_likely()).collect();
            best.extend(predictions.first().filter(|delta| !best.contains(delta)));
            likely = Some(best);
        }
        if search.is_exhaustive {
            let planar = predictions.into_iter().filter(|of| of.stride > 1 && of.predictor == Predictor::Delta);
            for prediction in planar {
                visit_weighted(means, of(Transform::Predict(prediction)), some, scratch, visit)?;
            }
            if may_be_filtered {
                visit_filtered(means, of(Transform::None), some, scratch, visit)?;
            }
        }
    }
    if search.is_exhaustive {
        return Ok(());
    }
    let is_likely = |best: &Combination| best.bytes <= least + least / LIKELY_ONE_IN;
    let mut planar: Vec<Combination> = planar.into_iter().map(|(_, best)| best).filter(is_likely).collect();
    planar.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
    for best in planar.into_iter().take(if means.for_size { usize::MAX } else { 1 }) {
        set_numbers(best.numbering, some, scratch);
        scratch.filters.filters = None;
        visit_weighted(means, best, some, scratch, visit)?;
    }
    for best in lines.into_iter().filter(is_likely) {
        // filters count from one number for all blocks
        let of_part = best.of_part().filter(|_| search.has(Idea::PartBase));
        for of in [Some(best), of_part].into_iter().flatten() {
            if set_numbers(of.numbering, some, scratch) {
                visit_filtered(means, of, some, scratch, visit)?;
            }
        }
    }
    Ok(())
}

/// Visits the best separable prediction in place of another from the row above.
fn visit_weighted(
    means: Means,
    combination: Combination,
    some: Elements<'_>,
    scratch: &mut EncodeScratch,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let Transform::Predict(prediction) = combination.transform else { return Ok(()) };
    if !scratch.search.has(Idea::Separable) {
        return Ok(());
    }
    let weighted = |weights| {
        let prediction = Prediction { predictor: Predictor::Separable(weights), ..prediction };
        Combination { transform: Transform::Predict(prediction), ..combination }
    };
    let (start, start_bytes) = some.start(if means.for_size { 4 * WEIGHED } else { WEIGHED });
    // tables count as much as in an estimate of all
    let start = Elements { geometry: some.geometry.in_blocks(&start), bytes: start_bytes, ..some };
    if !set_numbers(combination.numbering, start, scratch) {
        return Ok(());
    }
    let weights = best_weights(|weights| bytes_of(means, &weighted(weights), start, scratch));
    set_numbers(combination.numbering, some, scratch);
    visit(weighted(weights), some, scratch).map(drop)
}

/// Visits filters in place of a prediction.
fn visit_filtered(
    means: Means,
    combination: Combination,
    some: Elements<'_>,
    scratch: &mut EncodeScratch,
    visit: &mut Visit<'_>,
) -> Result<()> {
    if set_filters(means, combination.numbering, some, !scratch.search.is_exhaustive, scratch) {
        visit(Combination { transform: Transform::None, has_filters: true, ..combination }, some, scratch)?;
    }
    scratch.filters.filters = None;
    Ok(())
}

fn numberings(
    means: Means,
    whole: Elements<'_>,
    some: Elements<'_>,
    search: Search,
    palettes: &mut Vec<FoundPalettes>,
) -> Vec<Numbering> {
    let mut all = vec![Numbering::None];
    let Elements { geometry, bytes, .. } = whole;
    let width = means.width;
    let mut add_palettes = |order, count: u32| {
        let count = count as usize; // exact: at most 16
        let sample = (!search.is_exhaustive).then_some(some.bytes);
        let wanted = WantedPalettes { order, count, geometry: &geometry, elements: bytes, sample };
        if let Some(found) = find_palettes(width, wanted) {
            all.push(Numbering::Palettes(Palettes { order, count, place: palettes.len() }));
            palettes.push(found);
        }
    };
    if search.has(Idea::Palettes) && width != Width::W1 {
        add_palettes(PaletteOrder::ByValue, 1);
        let channels = geometry.strides.into_iter().find(|&stride| (2..=MOST_CHANNELS).contains(&stride));
        if let Some(channels) = channels.filter(|_| search.has(Idea::ChannelPalettes)) {
            add_palettes(PaletteOrder::ByValue, channels);
        }
    }
    // numbers would be as long, and floats have few bits besides noise
    let may_be_names = width.bytes() > 2 || width == Width::W2 && !geometry.float;
    if search.has(Idea::FrequencyPalettes) && may_be_names {
        add_palettes(PaletteOrder::ByFrequency, 1);
    }
    // else the base of the part is tried for the best combinations
    let both = search.is_exhaustive && search.has(Idea::PartBase);
    let bases = [Bases::OfBlocks, Bases::OfPart].into_iter().take(if both { 2 } else { 1 });
    if geometry.float {
        if search.has(Idea::UpperBits)
            && let Some(multiple) = find_upper_bits(width, bytes)
        {
            all.push(Numbering::Multiple(multiple, Bases::Zero));
        }
    } else if search.has(Idea::Multiples)
        && let Some(multiple) = find_multiple(width, &geometry, bytes)
    {
        all.extend(bases.clone().map(|bases| Numbering::Multiple(multiple, bases)));
    }
    if search.has(Idea::Quotients)
        && let Some(float_type) = geometry.float_type
    {
        let quotients = find_quotients(float_type, bytes, means.for_size && search.has(Idea::Details));
        let quotients = quotients.into_iter().filter(|quotient| quotient.divisor == 1 || search.has(Idea::Divisors));
        all.extend(quotients.flat_map(|quotient| bases.clone().map(move |bases| Numbering::Quotient(quotient, bases))));
    }
    all
}

/// Sets the numbers of some elements. Returns whether that is possible.
fn set_numbers(numbering: Numbering, some: Elements<'_>, scratch: &mut EncodeScratch) -> bool {
    let EncodeScratch { numbers, palettes, .. } = scratch;
    match numbering {
        Numbering::None => {
            numbers.mapping = Mapping::None;
            true
        }
        Numbering::Palettes(Palettes { place, .. }) => {
            palettes.get(place).map(|found| numbers.set_palettes(found, &some.geometry, some.bytes)).is_some()
        }
        Numbering::Multiple(multiple, bases) => numbers.set_multiple(multiple, bases, &some.geometry, some.bytes),
        Numbering::Quotient(quotient, bases) => {
            numbers.set_quotient(quotient, bases, &some.geometry, some.bytes);
            true
        }
    }
}

/// Returns the width and the geometry of the numbers of elements with this geometry.
fn of_numbers<'a>(
    width: Width,
    numbering: Numbering,
    numbers: &Numbers,
    geometry: &Geometry<'a>,
) -> (Width, Geometry<'a>) {
    if let Numbering::None = numbering {
        return (width, *geometry);
    }
    let number = numbers.mapping.widths(width).number;
    // the upper bits of floats are floats, too, if the sign is the highest of them
    let is_upper = matches!(numbering, Numbering::Multiple(_, Bases::Zero));
    let float = is_upper && numbers.mapping.keeps_sign(width);
    (number, Geometry { element_bytes: number.bytes(), float, float_type: None, ..*geometry })
}

/// Fits filters to the numbers of elements that are in the scratch. Returns whether they seem to
/// pay. Filters need numbers of two bytes, and a palette that is fitted to fewer values may have
/// numbers of one.
fn set_filters(
    means: Means,
    numbering: Numbering,
    elements: Elements<'_>,
    is_sample: bool,
    scratch: &mut EncodeScratch,
) -> bool {
    let EncodeScratch { numbers, filters, .. } = scratch;
    let (width, geometry) = of_numbers(means.width, numbering, numbers, &elements.geometry);
    let integers = if let Numbering::None = numbering { elements.bytes } else { &numbers.bytes };
    width == Width::W2 && filters.find(if means.for_size { 16 } else { 8 }, is_sample, &geometry, integers)
}

/// Sets the numbers and filters that a combination has for these elements. Returns whether that is
/// possible.
fn set(means: Means, combination: &Combination, elements: Elements<'_>, scratch: &mut EncodeScratch) -> bool {
    scratch.filters.filters = None;
    set_numbers(combination.numbering, elements, scratch)
        && (!combination.has_filters || set_filters(means, combination.numbering, elements, false, scratch))
}

/// Returns an estimate of the bytes of all elements, from those whose numbers are in the scratch.
fn bytes_of(means: Means, combination: &Combination, elements: Elements<'_>, scratch: &mut EncodeScratch) -> f64 {
    let EncodeScratch { numbers, filters, coded, symbols, low_bytes, search, .. } = scratch;
    let (width, geometry) = of_numbers(means.width, combination.numbering, numbers, &elements.geometry);
    let is_mapped = !matches!(combination.numbering, Numbering::None);
    let integers = if is_mapped { numbers.bytes.as_slice() } else { elements.bytes };
    match filters.filters {
        Some(_) => filters.residuals(&geometry, integers, coded),
        None => transform_blocks(combination.transform, width, &geometry, integers, coded),
    }
    symbols.resize(coded.len() / width.bytes(), 0);
    extra_bits::best().lengths(width, coded, symbols);
    refine(width, coded, symbols);
    let one_in_left = drop_first_rows(&geometry, symbols);
    let coded = Coded { may_have_classes: search.has(Idea::Classes), one_in: elements.one_in };
    let mut bits = coded.residual_bits(symbols) * one_in_left;
    if combination.transform == Transform::None && filters.filters.is_none() {
        split(width, false, integers, symbols, low_bytes);
        bits = bits.min(coded.plain_bits(symbols, low_bytes, geometry.float));
    }
    let shared = elements.one_in as usize; // saturating, and at least 1
    let mut other = if is_mapped { numbers.other_bytes(means.width.bytes(), shared) } else { 0 };
    other += elements.mark_bytes;
    (bits / 8.0 + other as f64 + filters.other_bytes(elements.one_in)) * elements.one_in
}
