//! Bins and frequencies, laid out for encoding.

use super::{BINS, BinModel};
use crate::kernel::bins::model::{CLASSES, HAS_BYTE};

/// The tables of a [`BinModel`] that an encoder looks up.
///
/// Any model is safe to encode with.
pub struct EncoderModel {
    /// The lower byte of `V` of each bin.
    pub(super) low: [u8; BINS],
    /// The upper byte of `V` of each bin.
    pub(super) high: [u8; BINS],
    /// For each bin, [`HAS_BYTE`] if its elements have a byte of their own in the stream.
    pub(super) taken: [u8; BINS],
    /// For each bin, 2 to the power of the bits that its elements add to the state, 1 to 128.
    pub(super) scale: [u8; BINS],
    /// For each bin, the greatest upper byte of a state that its bits can be added to.
    pub(super) most_upper: [u8; BINS],
    /// Whether there are more than 32 bins.
    pub(super) is_wide: bool,
    pub(super) classes: [EncoderClass; CLASSES],
}

/// The frequencies of a class.
#[derive(Clone)]
pub(super) struct EncoderClass {
    /// `F` of each bin, or 0 if the bin cannot be coded.
    pub frequency: [u8; BINS],
    /// `C` of each bin.
    pub start: [u8; BINS],
    /// Lower and upper bytes of the [`reciprocal`] of each frequency.
    pub reciprocal: [[u8; BINS]; 2],
}

const NO_CLASS: EncoderClass = EncoderClass { frequency: [0; BINS], start: [0; BINS], reciprocal: [[0; BINS]; 2] };

impl Default for EncoderModel {
    fn default() -> Self {
        Self {
            low: [0; BINS],
            high: [0; BINS],
            taken: [0; BINS],
            scale: [1; BINS],
            most_upper: [u8::MAX; BINS],
            is_wide: false,
            classes: [NO_CLASS; CLASSES],
        }
    }
}

impl EncoderModel {
    /// Sets the tables to those of a model.
    pub fn set(&mut self, model: &BinModel) {
        (self.low, self.high, self.is_wide) = (model.low, model.high, model.is_wide);
        for bin in 0..BINS {
            // in bounds: below BINS
            let bits = model.taken[bin] & 7; // all of them, of a bin that can be coded
            self.taken[bin] = model.taken[bin] & HAS_BYTE;
            (self.scale[bin], self.most_upper[bin]) = (1 << bits, u8::MAX >> bits);
        }
        for (to, from) in self.classes.iter_mut().zip(&model.classes) {
            to.start = from.start;
            for bin in 0..BINS {
                // in bounds: below BINS
                let (start, frequency) = (from.start[bin], from.frequency[bin]);
                let has_slots = u16::from(start) + u16::from(frequency) <= 1 << 8;
                let frequency = if has_slots && can_be_coded(model, bin) { frequency } else { 0 };
                to.frequency[bin] = frequency;
                [to.reciprocal[0][bin], to.reciprocal[1][bin]] = reciprocal(frequency).to_le_bytes();
            }
        }
    }

    /// Returns the number of bins in the tables. Those that the model has not have frequency 0.
    pub(super) fn bin_count(&self) -> usize {
        if self.is_wide { BINS } else { BINS / 2 }
    }
}

/// Returns whether `K` is at most 15 and `V` a multiple of `2^K`, as demands. The bin is
/// below [`BINS`].
fn can_be_coded(model: &BinModel, bin: usize) -> bool {
    let (start, bits) = (u16::from_le_bytes([model.low[bin], model.high[bin]]), model.bits[bin]);
    bits <= 15 && u32::from(start) % (1 << bits) == 0
}

/// Returns the `m` with which vectors divide by `F`: `floor((2^16 - 1) / F)`, or 0 if `F` is 0.
///
/// For each `x` below `2^16`, `floor(x * m / 2^16)` is the quotient `floor(x / F)`, or one less.
/// For `2^16 - 1 = m * F + r` with an `r` below `F`. Therefore `x / F - x * m / 2^16` is
/// `x * (1 + r) / (F * 2^16)`: at least 0, and at most `x / 2^16`, which is below 1.
fn reciprocal(frequency: u8) -> u16 {
    u16::MAX.checked_div(frequency.into()).unwrap_or(0)
}
