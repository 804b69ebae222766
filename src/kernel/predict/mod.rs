//! Residuals of a prediction: the transforms *delta*, *lorenzo* and *separable* (chapter 5.6 of the
//! specification), and *filters* (chapter 5.15).
//!
//! Residuals are easy: none depends on another. To undo a prediction, each element needs the one
//! before it, and a vector must not wait for its own elements. Three ways get around that:
//!
//! * where elements are sums of residuals, [`rows`] adds up a vector in as many steps as the index
//!   of an element has bits. A vector may have several short rows;
//! * where products are between them, [`separable`] and [`filters`] do as many rows side by side as
//!   a vector has elements, because no row depends on another;
//! * for other widths, some rows are done side by side in words.
//!
//! All are made of the operations of [`vectors`].

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

/// How each element is predicted from those before it in its sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// How it is predicted if there is a row above it.
    pub predictor: Predictor,
    /// Elements of a sample. 0 counts as 1.
    pub restart: u32,
    /// Elements of a row. 0 counts as 1.
    pub stride: u32,
}

/// A prediction from the row above and the element on the left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predictor {
    /// The element above alone.
    Delta,
    /// The 2-D Lorenzo predictor (Ibarria et al., 2003): `left + above - above_left`.
    Lorenzo,
    /// A prediction down each row's column, and one of its errors along the row.
    Separable(Weights),
}

/// The weights of a separable prediction, in eighths, 0 to 8. An element is first predicted as the
/// one above, plus `above` of the step from the row before that one. What that prediction misses
/// is predicted as `left` of what it missed on the left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// The part of the error on the left.
    pub left: u8,
    /// The part of the last step down.
    pub above: u8,
}

/// The kernels of one instruction set. All slices have whole elements and equal lengths.
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

/// One implementation of predictions.
pub type Predict = Implementation<dyn Kernel>;

impl Predict {
    /// Sets `out` to the zigzag-coded residuals of `elements`.
    ///
    /// Both buffers have the same number of bytes, which is a multiple of the width. If a caller
    /// breaks this, only the whole elements that fit in both are coded (debug builds assert).
    pub fn residuals(&self, prediction: &Prediction, width: Width, elements: &[u8], out: &mut [u8]) {
        let (elements, out) = whole_elements(width, elements, out);
        self.kernel.residuals(prediction, width, elements, out);
    }

    /// Replaces the zigzag-coded residuals in `data` by their elements: the inverse of
    /// [`residuals`](Self::residuals).
    ///
    /// `data` begins at the start of a sample. A part of an element at its end keeps its bytes.
    pub fn undo(&self, prediction: &Prediction, width: Width, data: &mut [u8]) {
        let whole = data.len() - data.len() % width.bytes();
        if let Some(data) = data.get_mut(..whole) {
            self.kernel.undo(prediction, width, data);
        }
    }

    /// Sets `out` to the zigzag-coded residuals of `numbers` of 2 bytes, which filters predict.
    /// `codes` has the filter of each segment, modulo [`MAX_FILTERS`]; filter 0 if it ends before.
    ///
    /// Both buffers have the same number of bytes, which is even. If a caller breaks this, only the
    /// whole numbers that fit in both are coded (debug builds assert).
    pub fn filter(&self, bank: &FilterBank, codes: &[u8], numbers: &[u8], out: &mut [u8]) {
        let (numbers, out) = whole_elements(Width::W2, numbers, out);
        self.kernel.filter(bank, codes, numbers, out);
    }

    /// Replaces the zigzag-coded residuals in `data` by their numbers: the inverse of
    /// [`filter`](Self::filter).
    ///
    /// `data` begins at a restart of the prediction. A byte after its last number keeps its value.
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

/// Predicts number `i` from those before it, since the last restart.
fn predict_by_filter(bank: &FilterBank, codes: &[u8], numbers: &[u8], i: usize) -> u16 {
    let mut sum = 1_i32 << 11;
    let filter = bank.filter(codes, i / SEGMENT).iter().take(bank.taps);
    for (&coefficient, before) in filter.zip(1..=i % bank.restart_numbers()) {
        let number = u16::get(numbers, i - before).minus(bank.zero).cast_signed();
        sum = sum.wrapping_add(i32::from(coefficient).wrapping_mul(number.into()));
    }
    bank.zero.wrapping_add((sum >> 12) as u16) // modulo 2^16
}

/// Predicts element `i` from those before it in its sample.
fn predict<W: Word>(prediction: &Prediction, element: impl Fn(usize) -> W, i: usize) -> W {
    // exact: no target of this crate has a smaller usize
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
