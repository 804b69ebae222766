//! Floats of integers that are divided by a constant: the last step of the mapping *quotient*
//! (chapter 5.14 of the specification).

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod generic;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
mod terms;

use super::Width;
use super::implementation::{Implementation, implementations};
use super::width::common_count;
pub use terms::{FloatFormat, QuotientTerms};

/// The details below numbers: the extra bits of integers.
#[derive(Clone, Copy, Debug)]
pub struct NumberDetails<'a> {
    /// The integers, of two bytes each.
    pub integers: &'a [[u8; 2]],
    /// Their bit lengths.
    pub lengths: &'a [u8],
}

/// The kernels of one instruction set. All slices have as many elements.
pub trait Kernel: Sync {
    /// See [`Quotients::detail_lengths`].
    fn detail_lengths(&self, terms: &QuotientTerms, width: Width, numbers: &[u8], out: &mut [u8]);
    /// See [`Quotients::divide`].
    fn divide(&self, terms: &QuotientTerms, width: Width, numbers: &[u8], out: &mut [u8]);
    /// See [`Quotients::join`].
    fn join(&self, terms: &QuotientTerms, width: Width, numbers: &[u8], details: NumberDetails<'_>, out: &mut [u8]);
}

/// One implementation of quotients.
pub type Quotients = Implementation<dyn Kernel>;

impl Quotients {
    /// Sets `out` to the bit lengths of the integers whose extra bits are the details below
    /// numbers of `width`.
    ///
    /// `out` has a byte for each number. If a caller breaks this, only the numbers that both have
    /// are done (debug builds assert).
    pub fn detail_lengths(&self, terms: &QuotientTerms, width: Width, numbers: &[u8], out: &mut [u8]) {
        let count = common_count(width, numbers, out);
        // in bounds: `count` is the lesser of both
        self.kernel.detail_lengths(terms, width, &numbers[..count * width.bytes()], &mut out[..count]);
    }

    /// Sets `out` to the elements of numbers of `width` without details.
    ///
    /// `out` has an element for each number. If there are more numbers than elements, only the
    /// first are used. If there are fewer, the other elements keep their value.
    pub fn divide(&self, terms: &QuotientTerms, width: Width, numbers: &[u8], out: &mut [u8]) {
        let element = terms.format.width().bytes();
        let count = (numbers.len() / width.bytes()).min(out.len() / element);
        // in bounds: `count` is the lesser of both
        self.kernel.divide(terms, width, &numbers[..count * width.bytes()], &mut out[..count * element]);
    }

    /// Does the same with numbers above details. The divisor counts as 1.
    ///
    /// Each integer of the details has the bit length that
    /// [`detail_lengths`](Self::detail_lengths) returns. With others, elements are unspecified.
    pub fn join(
        &self,
        terms: &QuotientTerms,
        width: Width,
        numbers: &[u8],
        details: NumberDetails<'_>,
        out: &mut [u8],
    ) {
        let element = terms.format.width().bytes();
        let count = (numbers.len() / width.bytes()).min(out.len() / element);
        let count = count.min(details.integers.len()).min(details.lengths.len());
        // in bounds: `count` is the least of all
        let details = NumberDetails { integers: &details.integers[..count], lengths: &details.lengths[..count] };
        self.kernel.join(terms, width, &numbers[..count * width.bytes()], details, &mut out[..count * element]);
    }
}

implementations!(Kernel);
