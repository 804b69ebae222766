//! Predictions and their residuals: the transforms *delta*, *lorenzo* and *separable* (chapter 5.6
//! of the specification), and the option *filters* (chapter 5.15).
//!
//! Neighboring elements are similar, so encodings store only the difference between each element
//! and its prediction. A sample is treated as rows of `stride` elements. *delta* predicts that an
//! element equals the element above it. *lorenzo* predicts `left + above - above_left`. *separable*
//! extrapolates down the column, and then uses the error on the left as a correction. *filters* are
//! linear predictions from up to 16 preceding numbers. The first row is predicted from the left,
//! the first column from above, and the first element as 0. Arithmetic wraps around, so undoing is
//! exact.
//!
//! Encoding is easy to vectorize: all elements are known, and no residual depends on another.
//! Decoding is a recurrence: each element depends on the element before it, so the lanes of a
//! vector would depend on each other. Let `r` be the residuals after their zigzag code is undone,
//! and `d` the differences from the row above. Then *lorenzo* is undone by
//!
//! ```text
//! d[i] = d[i-1] + r[i]                                   along the row
//! x[i] = x[i-stride] + d[i]                              down the column
//! ```
//!
//! and *separable* by the same two passes, with a weight and a rounding in each:
//!
//! ```text
//! e[i] = r[i] + eighths(e[i-1], left)                    along the row
//! step[i] = e[i] + eighths(step[i-stride], above)        down the column
//! x[i] = x[i-stride] + step[i]
//! ```
//!
//! [`eighths`](Word::eighths) returns a weighted and rounded value. The first row of a sample has
//! no row above it: `x[i] = x[i-1] + r[i]`. The second row has no step above it, so the step above
//! is taken as 0.
//!
//! The pass down the columns is easy: a vector holds neighbors in one row, which do not depend on
//! each other. The pass along the rows has two cases:
//!
//! * **Only sums.** *delta* and *lorenzo* are undone by prefix sums. [`rows`] computes the prefix
//!   sums of a vector of `n` lanes in `log2(n)` steps. Only the carry is passed from vector to
//!   vector. A vector can hold several short rows, such as the channels of pixels.
//! * **Products between the sums.** Rounding rules out prefix sums, but no row depends on another
//!   row in this pass. [`separable`] and [`filters`] therefore undo as many rows side by side as a
//!   vector has elements: they transpose a tile of 8 columns, and each step advances all of its
//!   rows. Elements that are not 2 bytes wide are decoded in scalar words, a few rows at a time.
//!
//! All loops are built from the operations of [`vectors`], which each instruction set implements.
//! `impl Kernel for Scalar` below is the definition in code.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod filters;
#[cfg(target_arch = "aarch64")]
mod neon;
mod rows;
mod separable;
mod vectors;

pub use filters::{FilterBank, MAX_FILTERS, MAX_TAPS, SEGMENT};

use super::dispatch::{Implementation, Scalar, implementations};
use super::{Width, Word, for_width, whole_elements};

/// How each element is predicted from earlier elements of its sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// The prediction of elements that have a row above.
    pub predictor: Predictor,
    /// The number of elements per sample. 0 is treated as 1.
    pub restart: u32,
    /// The number of elements per row. 0 is treated as 1.
    pub stride: u32,
}

/// A method to predict an element from the rows above it and from the elements on its left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predictor {
    /// The element above.
    Delta,
    /// The 2-D Lorenzo predictor (Ibarria et al., 2003): `left + above - above_left`.
    Lorenzo,
    /// A prediction down the column, followed by a prediction of its errors along the row.
    Separable(Weights),
}

/// The weights of a separable prediction, in eighths, from 0 to 8. The first prediction of an
/// element is the element above it, plus `above` eighths of the last step down to that element. The
/// error of this prediction is then predicted as `left` eighths of the error on the left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// The weight of the error on the left.
    pub left: u8,
    /// The weight of the last step down.
    pub above: u8,
}

/// The kernels of one instruction set. The slices of elements have equal lengths and contain whole
/// elements.
pub trait Kernel: Sync {
    /// See [`Predict::residuals`].
    fn residuals(&self, prediction: &Prediction, width: Width, elements: &[u8], out: &mut [u8]);
    /// See [`Predict::undo`].
    fn undo(&self, prediction: &Prediction, width: Width, data: &mut [u8]);
    /// See [`Predict::filter`].
    fn filter(&self, bank: &FilterBank, codes: &[u8], numbers: &[u8], out: &mut [u8]);
    /// See [`Predict::undo_filter`].
    fn undo_filter(&self, bank: &FilterBank, codes: &[u8], data: &mut [u8]);
}

/// One implementation of the kernels for predictions.
pub type Predict = Implementation<dyn Kernel>;

impl Predict {
    /// Sets `out` to the zigzag-coded residuals of `elements`.
    ///
    /// Both buffers must have the same length, a multiple of the width. Debug builds assert this.
    /// Release builds code only the whole elements that fit in both.
    pub fn residuals(&self, prediction: &Prediction, width: Width, elements: &[u8], out: &mut [u8]) {
        let (elements, out) = whole_elements(width, elements, out);
        self.kernel.residuals(prediction, width, elements, out);
    }

    /// Replaces the zigzag-coded residuals in `data` with the elements: the inverse of
    /// [`residuals`](Self::residuals).
    ///
    /// `data` must begin at the start of a sample. An incomplete element at its end is left
    /// unchanged.
    pub fn undo(&self, prediction: &Prediction, width: Width, data: &mut [u8]) {
        let whole = data.len() - data.len() % width.bytes();
        if let Some(data) = data.get_mut(..whole) {
            self.kernel.undo(prediction, width, data);
        }
    }

    /// Sets `out` to the zigzag-coded residuals of `numbers`, which have 2 bytes each and are
    /// predicted by filters. `codes` has the number of a filter for each segment, modulo
    /// [`MAX_FILTERS`]. Segments beyond the end of `codes` have filter 0.
    ///
    /// Both buffers must have the same even length. Debug builds assert this. Release builds code
    /// only the whole numbers that fit in both.
    pub fn filter(&self, bank: &FilterBank, codes: &[u8], numbers: &[u8], out: &mut [u8]) {
        let (numbers, out) = whole_elements(Width::W2, numbers, out);
        self.kernel.filter(bank, codes, numbers, out);
    }

    /// Replaces the zigzag-coded residuals in `data` with the numbers: the inverse of
    /// [`filter`](Self::filter).
    ///
    /// `data` must begin where the prediction restarts. A trailing odd byte is left unchanged.
    pub fn undo_filter(&self, bank: &FilterBank, codes: &[u8], data: &mut [u8]) {
        let whole = data.len() - data.len() % Width::W2.bytes();
        if let Some(data) = data.get_mut(..whole) {
            self.kernel.undo_filter(bank, codes, data);
        }
    }
}

implementations!(Kernel);

// ---- the definition in code

impl Kernel for Scalar {
    fn residuals(&self, prediction: &Prediction, width: Width, elements: &[u8], out: &mut [u8]) {
        for_width!(width, W => {
            let element = |i| W::get(elements, i);
            for i in 0..elements.len() / W::BYTES {
                let residual = element(i).minus(predict::<W>(prediction, element, i));
                residual.zigzag().set(out, i);
            }
        });
    }

    fn undo(&self, prediction: &Prediction, width: Width, data: &mut [u8]) {
        for_width!(width, W => {
            for i in 0..data.len() / W::BYTES {
                let residual = W::get(data, i).unzigzag();
                let predicted = predict::<W>(prediction, |i| W::get(data, i), i);
                residual.plus(predicted).set(data, i);
            }
        });
    }

    fn filter(&self, bank: &FilterBank, codes: &[u8], numbers: &[u8], out: &mut [u8]) {
        for i in 0..numbers.len() / 2 {
            let predicted = predict_by_filter(bank, codes, numbers, i);
            u16::get(numbers, i).minus(predicted).zigzag().set(out, i);
        }
    }

    fn undo_filter(&self, bank: &FilterBank, codes: &[u8], data: &mut [u8]) {
        for i in 0..data.len() / 2 {
            let predicted = predict_by_filter(bank, codes, data, i);
            u16::get(data, i).unzigzag().plus(predicted).set(data, i);
        }
    }
}

/// Predicts number `i` from the numbers since the last restart.
fn predict_by_filter(bank: &FilterBank, codes: &[u8], numbers: &[u8], i: usize) -> u16 {
    let mut sum = 1_i32 << 11;
    let filter = bank.filter(codes, i / SEGMENT).iter().take(bank.taps);
    for (&coefficient, before) in filter.zip(1..=i % bank.restart_numbers()) {
        let number = u16::get(numbers, i - before).minus(bank.zero).cast_signed();
        sum = sum.wrapping_add(i32::from(coefficient).wrapping_mul(number.into()));
    }
    bank.zero.wrapping_add((sum >> 12) as u16) // modulo 2^16
}

/// Predicts element `i` from earlier elements of its sample.
fn predict<W: Word>(prediction: &Prediction, element: impl Fn(usize) -> W, i: usize) -> W {
    // exact: on all targets of this crate, usize has at least 32 bits
    let (restart, stride) = (prediction.restart.max(1) as usize, prediction.stride.max(1) as usize);
    let j = i % restart;
    if j == 0 {
        return W::default();
    }
    if j < stride {
        return element(i - 1);
    }
    let is_first = j.is_multiple_of(stride);
    match prediction.predictor {
        Predictor::Lorenzo if !is_first => element(i - 1).plus(element(i - stride)).minus(element(i - stride - 1)),
        Predictor::Delta | Predictor::Lorenzo => element(i - stride),
        Predictor::Separable(weights) => {
            let has_step = j - j % stride >= 2 * stride; // two rows above
            let above = |i: usize| match has_step {
                true => {
                    let (above, before) = (element(i - stride), element(i - 2 * stride));
                    above.plus(above.minus(before).eighths(weights.above))
                }
                false => element(i - stride),
            };
            match is_first {
                true => above(i),
                false => above(i).plus(element(i - 1).minus(above(i - 1)).eighths(weights.left)),
            }
        }
    }
}
