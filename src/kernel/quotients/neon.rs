//! NEON: loops that the compiler makes vectors of.

use super::generic::{detail_lengths, divide, join};
use super::{Kernel, NumberDetails, QuotientTerms};
use crate::kernel::Width;
use crate::kernel::compile::implement;
use crate::kernel::cpu::Neon;

implement!(Neon: Kernel {
    fn detail_lengths(terms: &QuotientTerms, width: Width, numbers: &[u8], out: &mut [u8]) => { match width {
        Width::W1 => detail_lengths::<_, 1>,
        Width::W2 => detail_lengths::<_, 2>,
        Width::W4 => detail_lengths::<_, 4>,
        Width::W8 => detail_lengths::<_, 8>,
    } }
    fn divide(terms: &QuotientTerms, width: Width, numbers: &[u8], out: &mut [u8]) => { match width {
        Width::W1 => divide::<_, 1>,
        Width::W2 => divide::<_, 2>,
        Width::W4 => divide::<_, 4>,
        Width::W8 => divide::<_, 8>,
    } }
    fn join(terms: &QuotientTerms, width: Width, numbers: &[u8], details: NumberDetails<'_>, out: &mut [u8]) => { match width {
        Width::W1 => join::<_, 1>,
        Width::W2 => join::<_, 2>,
        Width::W4 => join::<_, 4>,
        Width::W8 => join::<_, 8>,
    } }
});
