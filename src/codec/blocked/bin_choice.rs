//! Chooses which elements of a part bins code, and by which mapping and transform.

use super::filter_choice::choose_filters;
use super::kept_choice::TransformChoice;
use crate::codec::bins::{
    Bases, MULTIPLE, Mapping, Numbers, PALETTE, PaletteOrder, QUOTIENT, WantedPalettes, find_multiple, find_palettes,
    find_quotients, find_upper_bits, may_have_palettes,
};
use crate::codec::geometry::Geometry;
use crate::codec::predict::{Coding, best_transform, entropy_bits};
use crate::codec::sampling::windows;
use crate::codec::scratch::EncodeScratch;
use crate::codec::transform::Transform;
use crate::kernel::Width;

/// Elements of a window that the estimate without prediction looks at.
const WINDOW: usize = 512;
/// If size counts, a mapping may take more of the sample than elements do, by one in this many
/// bytes.
const SAMPLE_ERRS_ONE_IN: usize = 32;
/// Gaps are chosen if they save one in this many bytes: they take time.
const GAPS_SAVE_ONE_IN: usize = 40;
/// A mapping is chosen if it saves one in this many bytes: it takes time.
const MAPPING_SAVES_ONE_IN: usize = 40;
/// The base of the part is taken instead of those of blocks if its estimate is not greater by more
/// than one in this many bytes.
const BASE_COSTS_ONE_IN: usize = 16;
/// The most elements of the innermost dimension that have palettes of their own.
const MOST_CHANNELS: u32 = 16;

/// Returns the transform whose coded integers take the fewest bits, and an estimate of the bytes.
fn choose_transform(width: Width, geometry: &Geometry<'_>, raw: &[u8], scratch: &mut EncodeScratch) -> TransformChoice {
    let (predicted, predicted_bytes) = best_transform(Coding::Bins, width, geometry, raw, scratch);
    let plain = if geometry.float { Transform::Rotate } else { Transform::None };
    let plain_bytes = plain_bytes(width, plain == Transform::Rotate, raw);
    let is_predictable = predicted_bytes < plain_bytes;
    if is_predictable {
        TransformChoice { transform: predicted, bytes: predicted_bytes, is_predictable }
    } else {
        TransformChoice { transform: plain, bytes: plain_bytes, is_predictable }
    }
}

/// Returns an estimate of the stored bytes of elements that are not predicted: what the highest
/// byte in use takes by itself, and all bytes below.
fn plain_bytes(width: Width, rotate: bool, raw: &[u8]) -> usize {
    match width {
        Width::W1 => plain_bytes_of::<1>(rotate, raw),
        Width::W2 => plain_bytes_of::<2>(rotate, raw),
        Width::W4 => plain_bytes_of::<4>(rotate, raw),
        Width::W8 => plain_bytes_of::<8>(rotate, raw),
    }
}

fn plain_bytes_of<const W: usize>(rotate: bool, raw: &[u8]) -> usize {
    let elements = raw.as_chunks::<W>().0;
    let mut counts = [[0; 256]; W];
    for window in windows(elements.len(), WINDOW) {
        for element in elements.get(window).unwrap_or(&[]) {
            let mut element = *element;
            if rotate {
                let mut below = element.last().map_or(0, |byte| byte >> 7);
                element.iter_mut().for_each(|byte| (*byte, below) = (*byte << 1 | below, *byte >> 7));
            }
            // in bounds
            counts.iter_mut().zip(element).for_each(|(counts, byte)| counts[usize::from(byte)] += 1);
        }
    }
    let top = counts.iter().rposition(|counts| counts.iter().skip(1).any(|&count| count > 0)).unwrap_or(0);
    let sampled: u32 = counts[top].iter().sum(); // in bounds; fewer than 2^32 elements
    let top_bits = entropy_bits(&counts[top]) / f64::from(sampled.max(1));
    // an estimate, and saturating
    (top_bits * elements.len() as f64 / 8.0) as usize + elements.len() * top
}

/// Chooses gaps, mapping and transform, and keeps elements and numbers in the scratch.
pub(super) fn choose(
    for_size: bool,
    width: Width,
    geometry: &Geometry<'_>,
    raw: &[u8],
    scratch: &mut EncodeScratch,
) -> TransformChoice {
    if let Some(choice) = scratch.bin_choice.get(for_size, geometry, raw) {
        return choice;
    }
    let of_all = choose_mapping(for_size, width, geometry, raw, scratch);
    let mut present = std::mem::take(&mut scratch.present);
    let mut choice = of_all;
    if present.find(width, geometry, raw) {
        swap_with_those_of_all(scratch);
        choice = choose_mapping(for_size, width, &present.geometry(geometry), &present.bytes, scratch);
        choice.bytes = choice.bytes.saturating_add(present.mark_bytes());
        if choice.bytes >= of_all.bytes - of_all.bytes / GAPS_SAVE_ONE_IN {
            swap_with_those_of_all(scratch);
            present.gaps = None;
            choice = of_all;
        }
    }
    scratch.present = present;
    scratch.bin_choice.set(for_size, geometry, raw, choice);
    choice
}

/// Keeps numbers and filters aside, and brings back those of a part with its gaps.
fn swap_with_those_of_all(scratch: &mut EncodeScratch) {
    std::mem::swap(&mut scratch.numbers, &mut scratch.numbers_of_all);
    std::mem::swap(&mut scratch.filters, &mut scratch.filters_of_all);
}

/// Chooses mapping, transform and filters, and keeps numbers and filters in the scratch.
fn choose_mapping(
    for_size: bool,
    width: Width,
    geometry: &Geometry<'_>,
    raw: &[u8],
    scratch: &mut EncodeScratch,
) -> TransformChoice {
    let of_elements = choose_transform(width, geometry, raw, scratch);
    // the search takes time, and mostly finds nothing: it begins with a sample
    let mut sample = std::mem::take(&mut scratch.bin_sample);
    sample.set(geometry, raw);
    let sampled = Geometry { blocks: &sample.ends, ..*geometry };
    let of_sample = choose_transform(width, &sampled, &sample.bytes, scratch);
    let sampled_one_in = raw.len() / sample.bytes.len().max(1);
    let first = Scope { for_size, sampled_one_in, kinds: [true; 4] };
    let (_, kinds) = search(first, width, (&sampled, &sample.bytes), (geometry, raw), of_sample, scratch);
    scratch.bin_sample = sample;
    let second = Scope { for_size, sampled_one_in: 1, kinds };
    let (choice, _) = search(second, width, (geometry, raw), (geometry, raw), of_elements, scratch);
    choose_filters(for_size, width, geometry, raw, choice, scratch)
}

/// The mappings that are searched, and where.
#[derive(Clone, Copy)]
struct Scope {
    /// Whether details may be written.
    for_size: bool,
    /// The elements are a sample of one in this many.
    sampled_one_in: usize,
    /// The kinds of mappings that are tried.
    kinds: [bool; 4],
}

/// Searches the best mapping, and keeps it and its numbers in the scratch; or none, if it does not
/// save enough. Returns the choice for it, or the one of elements, and the kinds that were better.
fn search(
    scope: Scope,
    width: Width,
    (geometry, raw): (&Geometry<'_>, &[u8]),
    whole: (&Geometry<'_>, &[u8]),
    of_elements: TransformChoice,
    scratch: &mut EncodeScratch,
) -> (TransformChoice, [bool; 4]) {
    let mut search = MappingSearch {
        scope,
        better: [false; 4],
        width,
        geometry,
        whole,
        most: match scope.sampled_one_in {
            1 => of_elements.bytes - of_elements.bytes / MAPPING_SAVES_ONE_IN,
            _ => of_elements.bytes,
        },
        choice: of_elements,
        of_elements: of_elements.bytes,
        best: std::mem::take(&mut scratch.numbers),
        tried: std::mem::take(&mut scratch.other_numbers),
        scratch,
    };
    search.best.mapping = Mapping::None;
    search.run(raw);
    let MappingSearch { choice, better, best, tried, scratch, .. } = search;
    (scratch.numbers, scratch.other_numbers) = (best, tried);
    (choice, better)
}

/// The search for the mapping of a part.
struct MappingSearch<'a> {
    scope: Scope,
    width: Width,
    geometry: &'a Geometry<'a>,
    /// All elements, of which those that are searched may be a sample.
    whole: (&'a Geometry<'a>, &'a [u8]),
    /// A mapping must take fewer bytes than this.
    most: usize,
    choice: TransformChoice,
    /// The kinds of mappings that were better than none.
    better: [bool; 4],
    /// The bytes of the elements themselves.
    of_elements: usize,
    best: Numbers,
    tried: Numbers,
    scratch: &'a mut EncodeScratch,
}

impl MappingSearch<'_> {
    fn run(&mut self, raw: &[u8]) {
        let is_predictable = self.choice.is_predictable;
        if self.has(PALETTE) {
            self.try_palettes(raw);
        }
        if self.has(MULTIPLE) {
            self.try_multiples(raw);
        }
        if self.has(QUOTIENT)
            && let Some(float_type) = self.geometry.float_type
        {
            for quotient in find_quotients(float_type, raw, self.scope.for_size && is_predictable) {
                self.tried.set_quotient(quotient, Bases::OfBlocks, self.geometry, raw);
                if self.compare(Bases::OfBlocks) {
                    self.tried.set_quotient(quotient, Bases::OfPart, self.geometry, raw);
                    self.compare(Bases::OfPart);
                }
            }
        }
    }

    fn has(&self, kind: u8) -> bool {
        self.scope.kinds.get(usize::from(kind)) == Some(&true)
    }

    fn try_palettes(&mut self, raw: &[u8]) {
        if may_have_palettes(PaletteOrder::ByValue, self.geometry, self.width, raw) {
            let channels = self.geometry.strides.into_iter().find(|&stride| (2..=MOST_CHANNELS).contains(&stride));
            for count in std::iter::once(1).chain(channels) {
                // exact: at most 16
                self.try_palettes_of(PaletteOrder::ByValue, count as usize, raw);
            }
        }
        if !matches!(self.choice.transform, Transform::Predict(_))
            && may_have_palettes(PaletteOrder::ByFrequency, self.geometry, self.width, raw)
        {
            self.try_palettes_of(PaletteOrder::ByFrequency, 1, raw);
        }
    }

    fn try_palettes_of(&mut self, order: PaletteOrder, count: usize, raw: &[u8]) {
        let (geometry, elements) = self.whole;
        let wanted = WantedPalettes { order, count, geometry, elements };
        if find_palettes(self.width, self.geometry, wanted, raw, &mut self.tried) {
            self.compare(Bases::OfBlocks);
        }
    }

    fn try_multiples(&mut self, raw: &[u8]) {
        if self.geometry.float {
            if let Some(multiple) = find_upper_bits(self.width, raw) {
                self.tried.set_multiple(multiple, Bases::Zero, self.geometry, raw);
                self.compare(Bases::Zero);
            }
        } else if let Some(multiple) = find_multiple(self.width, self.geometry, raw) {
            self.tried.set_multiple(multiple, Bases::OfBlocks, self.geometry, raw);
            if self.compare(Bases::OfBlocks) && self.tried.set_multiple(multiple, Bases::OfPart, self.geometry, raw) {
                self.compare(Bases::OfPart);
            }
        }
    }

    /// Keeps the mapping that was tried, if it is better. Returns whether it is kept and its
    /// numbers are not predicted: the base of the part suits them, since equal elements then have
    /// equal numbers. Estimates do not tell that.
    fn compare(&mut self, bases: Bases) -> bool {
        let width = self.tried.mapping.widths(self.width).number;
        // the upper bits of floats are floats, too, if the sign is the highest of them
        let float = bases == Bases::Zero && self.tried.mapping.keeps_sign(self.width);
        let geometry = Geometry { element_bytes: width.bytes(), float, float_type: None, ..*self.geometry };
        let mut choice = choose_transform(width, &geometry, &self.tried.bytes, self.scratch);
        choice.bytes =
            choice.bytes.saturating_add(self.tried.other_bytes(self.width.bytes(), self.scope.sampled_one_in));
        let kind = usize::from(self.tried.mapping.kind());
        if let Some(better) = self.better.get_mut(kind) {
            let error = if self.scope.for_size { self.of_elements / SAMPLE_ERRS_ONE_IN } else { 0 };
            *better |= choice.bytes < self.of_elements + error;
        }
        let is_predicted = matches!(choice.transform, Transform::Predict(_));
        let most = match bases {
            Bases::OfBlocks | Bases::Zero => self.most,
            Bases::OfPart => self.most + self.most / BASE_COSTS_ONE_IN,
        };
        let is_better = choice.bytes < most && (bases != Bases::OfPart || !is_predicted);
        if is_better {
            self.most = choice.bytes;
            self.choice = choice;
            std::mem::swap(&mut self.best, &mut self.tried);
        }
        is_better && !is_predicted
    }
}
