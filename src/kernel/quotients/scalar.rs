//! The definition in code.

use super::terms::{FloatFormat, QuotientTerms};
use super::{Kernel, NumberDetails};
use crate::kernel::Width;
use crate::kernel::cpu::Scalar;

impl Kernel for Scalar {
    fn detail_lengths(&self, terms: &QuotientTerms, width: Width, numbers: &[u8], out: &mut [u8]) {
        for (number, length) in sums(terms, width, numbers).zip(out) {
            let bits = 64 - (number ^ (number >> 63)).leading_zeros();
            let below = terms.format.precision().saturating_sub(bits).min(terms.most_details());
            *length = below as u8 + 1; // exact: at most 15
        }
    }

    fn divide(&self, terms: &QuotientTerms, width: Width, numbers: &[u8], out: &mut [u8]) {
        let elements = out.chunks_exact_mut(terms.format.width().bytes());
        for (number, element) in sums(terms, width, numbers).zip(elements) {
            set(terms, number, element);
        }
    }

    fn join(&self, terms: &QuotientTerms, width: Width, numbers: &[u8], details: NumberDetails<'_>, out: &mut [u8]) {
        let elements = out.chunks_exact_mut(terms.format.width().bytes());
        let details = details.integers.iter().zip(details.lengths);
        let most = terms.most_details();
        let undivided = QuotientTerms { divisor: 1, ..*terms };
        for ((number, (&integer, &length)), element) in sums(terms, width, numbers).zip(details).zip(elements) {
            let bits = u32::from(length.wrapping_sub(1) & 15);
            let details = i64::from(u16::from_le_bytes(integer)) - (1 << bits);
            let integer = (number << most).wrapping_add(details << most.saturating_sub(bits));
            set(&undivided, integer, element);
        }
    }
}

/// Returns numbers, counted from the base, as far as there are bits for them.
fn sums(terms: &QuotientTerms, width: Width, numbers: &[u8]) -> impl Iterator<Item = i64> {
    let bits = if terms.format == FloatFormat::F64 { 64 } else { 32 };
    let unused = 64 - bits + terms.most_details();
    numbers.chunks_exact(width.bytes()).map(move |number| {
        let mut wide = [0; 8];
        wide.iter_mut().zip(number).for_each(|(to, from)| *to = *from);
        terms.base.wrapping_add(i64::from_le_bytes(wide)) << unused >> unused
    })
}

/// Sets an element to the quotient of an integer.
fn set(terms: &QuotientTerms, integer: i64, element: &mut [u8]) {
    element.iter_mut().zip(terms.element(integer).to_le_bytes()).for_each(|(to, from)| *to = from);
}
