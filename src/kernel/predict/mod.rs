//! Residuals of a prediction: the transforms *delta*, *lorenzo* and *separable* (chapter 5.6 of the
//! specification), and *filters* (chapter 5.15).

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod filter_bank;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod filters;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod generic;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod operations;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod packed;
mod scalar;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod separable;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod tiled;

pub use filter_bank::{FilterBank, MOST_FILTERS, MOST_TAPS, SEGMENT};

use super::Width;
use super::implementation::{Implementation, implementations};
use super::width::whole_elements;

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
    /// `codes` has the filter of each segment, modulo [`MOST_FILTERS`]; filter 0 if it ends before.
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
