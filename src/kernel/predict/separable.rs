//! The transform *separable*, one pass over rows after the other.
//!
//! Along a row, each error depends on the one on its left, but on no other row: undoing does some
//! rows side by side, so that the processor need not wait for the one before. [`Tiled`] does so in
//! vectors, if elements have 2 bytes.

use super::operations::Tiles;
use super::tiled::{Tiled, WHOLE, WIDTH};
use super::{Prediction, Weights};
use crate::kernel::word::Word;

/// Rows that are undone side by side.
const ROWS: usize = 8;
/// Elements of a row that are coded at once.
const PIECE: usize = 128;

/// Returns the bytes of a sample, and of a row.
fn extents<W: Word>(prediction: &Prediction) -> (usize, usize) {
    // exact: no target of this crate has a smaller usize
    let bytes = |elements: u32| (elements.max(1) as usize).saturating_mul(W::BYTES);
    (bytes(prediction.restart), bytes(prediction.stride))
}

// ---- elements to residuals

/// See [`Kernel::residuals`](super::Kernel::residuals).
#[inline(always)]
pub(super) fn residuals<W: Word>(prediction: &Prediction, weights: Weights, elements: &[u8], out: &mut [u8]) {
    let (restart, stride) = extents::<W>(prediction);
    for (sample, out) in elements.chunks(restart).zip(out.chunks_mut(restart)) {
        let mut above = None;
        for (row, out) in sample.chunks(stride).zip(out.chunks_mut(stride)) {
            row_residuals::<W>(weights, row, above, out);
            // of the second row, no step is known
            above = Some([row, above.map_or(row, |[above, _]| above)]);
        }
    }
}

/// Codes a row. `above` has the row above it, and the one above that.
#[inline(always)]
fn row_residuals<W: Word>(weights: Weights, row: &[u8], above: Option<[&[u8]; 2]>, out: &mut [u8]) {
    let bytes = PIECE * W::BYTES;
    let left = if above.is_some() { weights.left } else { WHOLE };
    let mut errors = [W::default(); PIECE + 1];
    let mut pieces_above = above.map(|rows| rows.map(|row| row.chunks(bytes)));
    for (piece, out) in row.chunks(bytes).zip(out.chunks_mut(bytes)) {
        errors[0] = errors[PIECE]; // the last of the piece before
        let [_, of_piece @ ..] = &mut errors;
        match &mut pieces_above {
            Some([above, before]) => {
                let rows = [piece, above.next().unwrap_or(&[]), before.next().unwrap_or(&[])];
                step_errors(rows, weights.above, of_piece);
            }
            None => of_piece.iter_mut().zip(words(piece)).for_each(|(error, element)| *error = element),
        }
        code(&errors, left, out);
    }
}

/// Sets `errors` to what the prediction down misses.
#[inline(always)]
fn step_errors<W: Word>(rows: [&[u8]; 3], weight: u8, errors: &mut [W]) {
    let [row, above, before] = rows;
    let rows = words::<W>(row).zip(words::<W>(above)).zip(words::<W>(before));
    for (error, ((element, above), before)) in errors.iter_mut().zip(rows) {
        let step = above.minus(before).eighths(weight);
        *error = element.minus(above.plus(step));
    }
}

/// Codes errors, which begin with the one on the left of the first.
#[inline(always)]
fn code<W: Word>(errors: &[W; PIECE + 1], left: u8, out: &mut [u8]) {
    let [_, these @ ..] = errors;
    for ((to, this), before) in out.chunks_exact_mut(W::BYTES).zip(these).zip(errors) {
        this.minus(before.eighths(left)).zigzag().set(to, 0);
    }
}

#[inline(always)]
fn words<W: Word>(bytes: &[u8]) -> impl Iterator<Item = W> {
    bytes.chunks_exact(W::BYTES).map(|word| W::get(word, 0))
}

// ---- residuals to elements

/// See [`Kernel::undo`](super::Kernel::undo).
#[inline(always)]
pub(super) fn undo<W: Word, T: Tiles>(t: T, prediction: &Prediction, weights: Weights, data: &mut [u8]) {
    let (restart, stride) = extents::<W>(prediction);
    let tiled = Tiled::new(t, stride, weights);
    for sample in data.chunks_mut(restart) {
        // a tile of few columns or of one row takes longer than its elements one by one
        if W::BYTES == 2 && stride >= WIDTH && sample.len() > stride {
            tiled.sample(sample);
        } else {
            undo_sample::<W>(stride, weights, sample);
        }
    }
}

/// Undoes a sample in words.
#[inline(always)]
fn undo_sample<W: Word>(stride: usize, weights: Weights, sample: &mut [u8]) {
    map::<W>(sample, W::unzigzag);
    let (first, others) = sample.split_at_mut(stride.min(sample.len())); // in bounds
    along::<W, 1>(first, stride, WHOLE);
    let mut groups = others.chunks_exact_mut(stride.saturating_mul(ROWS));
    groups.by_ref().for_each(|rows| along::<W, ROWS>(rows, stride, weights.left));
    groups.into_remainder().chunks_mut(stride).for_each(|row| along::<W, 1>(row, stride, weights.left));
    down::<W>(sample, stride, weights.above);
}

#[inline(always)]
fn map<W: Word>(data: &mut [u8], f: impl Fn(W) -> W) {
    data.chunks_exact_mut(W::BYTES).for_each(|word| f(W::get(word, 0)).set(word, 0));
}

/// Replaces the residuals of some rows by errors of the prediction down.
#[inline(always)]
fn along<W: Word, const COUNT: usize>(rows: &mut [u8], stride: usize, left: u8) {
    let (stride, count) = (stride / W::BYTES, rows.len() / COUNT / W::BYTES);
    let mut errors = [W::default(); COUNT];
    for column in 0..count {
        for (row, error) in errors.iter_mut().enumerate() {
            let place = row * stride + column;
            *error = W::get(rows, place).plus(error.eighths(left));
            error.set(rows, place);
        }
    }
}

/// Replaces the errors of the prediction down, in all rows but the first, by elements.
#[inline(always)]
fn down<W: Word>(sample: &mut [u8], stride: usize, weight: u8) {
    for start in (stride..sample.len()).step_by(stride) {
        let (above, row) = sample.split_at_mut(start); // in bounds: a start of a row
        let (before, above) = above.split_at(start - stride); // in bounds: that of the row above
        let before = before.get(start.saturating_sub(2 * stride)..).filter(|before| !before.is_empty());
        let before = before.unwrap_or(above); // no step
        let rows = words::<W>(above).zip(words::<W>(before));
        for (word, (above, before)) in row.chunks_exact_mut(W::BYTES).take(stride / W::BYTES).zip(rows) {
            let step = above.minus(before).eighths(weight);
            W::get(word, 0).plus(above).plus(step).set(word, 0);
        }
    }
}
