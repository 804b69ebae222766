//! The definition in code.

use super::coder::{index, window};
use super::model::HAS_BYTE;
use super::{BinModel, GROUP, Groups, Kernel};
use crate::kernel::cpu::Scalar;

impl Kernel for Scalar {
    fn groups(&self, model: &BinModel, Groups { classes, coder, out }: Groups<'_, '_>) {
        for (out, &class) in out.iter_mut().zip(classes) {
            let bins = coder.bins(model, class, GROUP);
            let raw = coder.raw(model, &bins, |taken| taken);
            for ((out, &bin), raw) in out.iter_mut().zip(&bins).zip(raw) {
                let has_byte = model.taken[index(bin)] & HAS_BYTE != 0; // in bounds: below BINS
                let low = if has_byte { coder.next_byte() } else { 0 };
                *out = window(model, bin, raw, low);
            }
        }
    }
}
