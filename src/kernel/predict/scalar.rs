//! The definition in code.

use super::{FilterBank, Kernel, Prediction, Predictor, SEGMENT};
use crate::kernel::Width;
use crate::kernel::cpu::Scalar;
use crate::kernel::word::{Word, for_width};

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
