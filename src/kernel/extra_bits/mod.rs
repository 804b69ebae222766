//! Bit lengths and extra bits of integers (chapter 5.9 of the specification).
//!
//! The *bit length* of an integer is 0 for 0, and otherwise one more than the position of its
//! highest one bit. The bits below that one are its *extra bits*. Those of 64 integers, a group,
//! are stored bit plane by bit plane, from the lowest on. A plane has a bit for each integer whose
//! extra bits reach that far.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod generic;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use super::Width;
use super::implementation::{Implementation, implementations};
use super::width::common_count;

/// Integers in a group.
const GROUP: usize = 64;

/// The kernels of one instruction set. Each has as many lengths as elements.
pub trait Kernel: Sync {
    /// See [`ExtraBits::lengths`].
    fn lengths(&self, width: Width, elements: &[u8], out: &mut [u8]);
    /// See [`ExtraBits::deposit`].
    fn deposit(&self, width: Width, lengths: &[u8], bits: &[u8], at: usize, out: &mut [u8]) -> usize;
    /// See [`ExtraBits::extract`].
    fn extract(&self, width: Width, lengths: &[u8], elements: &[u8], words: &mut [u64], at: usize) -> usize;
}

/// One implementation of extra bits.
pub type ExtraBits = Implementation<dyn Kernel>;

impl ExtraBits {
    /// Sets `out` to the bit length of each of `elements`.
    ///
    /// `out` has a byte for each element. If a caller breaks this, only the elements that fit in
    /// both are done (debug builds assert).
    pub fn lengths(&self, width: Width, elements: &[u8], out: &mut [u8]) {
        let count = common_count(width, elements, out);
        // in bounds: `count` is the lesser of both
        self.kernel.lengths(width, &elements[..count * width.bytes()], &mut out[..count]);
    }

    /// Makes elements of their bit lengths and their extra bits, which begin at bit `at` of `bits`
    /// (bit 0 is the lowest of the first byte). Returns the bit at which they end.
    ///
    /// Bits beyond the end of `bits` are 0. If a length is greater than the width, all elements and
    /// the result are unspecified. `out` has as many elements as `lengths`. If a caller breaks
    /// this, only the elements that fit in both are done (debug builds assert).
    pub fn deposit(&self, width: Width, lengths: &[u8], bits: &[u8], at: usize, out: &mut [u8]) -> usize {
        let count = common_count(width, out, lengths);
        // in bounds: `count` is the lesser of both
        self.kernel.deposit(width, &lengths[..count], bits, at, &mut out[..count * width.bytes()])
    }

    /// Sets the extra bits of `elements` from bit `at` of `words` on: the inverse of
    /// [`deposit`](Self::deposit). Returns the bit at which they end.
    ///
    /// `lengths` has the bit lengths of the elements. `words` is 0 from bit `at` on, and has all
    /// extra bits and a word more. Bits that do not fit are lost.
    pub fn extract(&self, width: Width, lengths: &[u8], elements: &[u8], words: &mut [u64], at: usize) -> usize {
        let count = common_count(width, elements, lengths);
        // in bounds: `count` is the lesser of both
        self.kernel.extract(width, &lengths[..count], &elements[..count * width.bytes()], words, at)
    }
}

implementations!(Kernel);
