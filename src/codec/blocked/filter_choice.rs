//! Chooses filters in place of a prediction from one neighbour.

use super::kept_choice::TransformChoice;
use crate::codec::bins::Mapping;
use crate::codec::geometry::Geometry;
use crate::codec::predict::bits_in_classes;
use crate::codec::scratch::EncodeScratch;
use crate::codec::transform::Transform;
use crate::kernel::Width;
use crate::kernel::predict::{self, Prediction, Predictor};

/// Filters are chosen if they save one in this many bytes, if size counts, and otherwise: they take
/// time.
const FILTERS_SAVE_ONE_IN: [usize; 2] = [60, 40];
/// Elements of the shortest sample that is predicted by filters.
const LEAST_IN_SAMPLE: u32 = 512;
/// Coefficients of a filter and about the classes that its residuals are coded in, if size counts.
const SMALLEST: (usize, usize) = (16, 16);
/// The same otherwise.
const FASTER: (usize, usize) = (8, 4);

/// Returns the choice with filters, if they are better than the one that is given. Keeps them, and
/// the numbers that they predict, in the scratch.
pub(super) fn choose_filters(
    for_size: bool,
    width: Width,
    geometry: &Geometry<'_>,
    raw: &[u8],
    choice: TransformChoice,
    scratch: &mut EncodeScratch,
) -> TransformChoice {
    scratch.filters.filters = None;
    if !is_of_a_line(choice.transform) || geometry.restart < LEAST_IN_SAMPLE {
        return choice;
    }
    let mut numbers = std::mem::take(&mut scratch.other_numbers);
    let is_mapped = !matches!(scratch.numbers.mapping, Mapping::None);
    let short = match is_mapped {
        true => numbers.set_short(&scratch.numbers.mapping, geometry, raw).then_some(numbers.bytes.as_slice()),
        false => (width == Width::W2 && !geometry.float).then_some(raw),
    };
    let (taps, class_count) = if for_size { SMALLEST } else { FASTER };
    let [of_size, of_speed] = FILTERS_SAVE_ONE_IN;
    let save_one_in = if for_size { of_size } else { of_speed };
    let mut better = None;
    if let Some(short) = short
        && scratch.filters.find(taps, geometry, short)
    {
        set_residuals(choice.transform, geometry, short, &mut scratch.coded);
        let before = bits_in_classes(Width::W2, class_count, scratch);
        scratch.filters.residuals(geometry, short, &mut scratch.coded);
        let saved = before - bits_in_classes(Width::W2, class_count, scratch);
        let saved = (saved / 8.0) as usize; // an estimate, and saturating
        let bytes = choice.bytes.saturating_add(scratch.filters.other_bytes()).saturating_sub(saved);
        // numbers that are too long for 2 bytes become exceptions
        let [exceptions, before] = [&numbers, &scratch.numbers].map(|numbers| numbers.other_bytes(width.bytes(), 1));
        let more = if is_mapped { exceptions.saturating_sub(before) } else { 0 };
        let bytes = bytes.saturating_add(more);
        let filtered = TransformChoice { transform: Transform::None, bytes, is_predictable: true };
        better = Some(filtered).filter(|_| bytes < choice.bytes - choice.bytes / save_one_in);
    }
    match better {
        None => scratch.filters.filters = None,
        Some(_) if is_mapped => std::mem::swap(&mut scratch.numbers, &mut numbers),
        Some(_) => {}
    }
    scratch.other_numbers = numbers;
    better.unwrap_or(choice)
}

/// Sets `coded` to the coded integers of numbers of 2 bytes.
fn set_residuals(transform: Transform, geometry: &Geometry<'_>, numbers: &[u8], coded: &mut Vec<u8>) {
    coded.clear();
    coded.extend_from_slice(numbers);
    let Transform::Predict(prediction) = transform else { return };
    for block in geometry.block_ranges() {
        let bytes = 2 * block.start..2 * block.end;
        let (Some(numbers), Some(coded)) = (numbers.get(bytes.clone()), coded.get_mut(bytes)) else { return };
        predict::best().residuals(&prediction, Width::W2, numbers, coded);
    }
}

/// Returns whether elements are integers that are predicted from the one before, or not at all.
fn is_of_a_line(transform: Transform) -> bool {
    match transform {
        Transform::None => true,
        Transform::Rotate => false,
        Transform::Predict(Prediction { predictor, float, stride, .. }) => {
            predictor == Predictor::Delta && !float && stride == 1
        }
    }
}
