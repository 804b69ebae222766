//! AVX-512.

use std::arch::x86_64::*;

use super::body::implement;
use super::scalar::Word;
use super::undo::Isa;
use super::{Prediction, Width, Words};

/// The implementation, if this CPU can run it.
pub(super) fn detect() -> Option<Words> {
    let detected = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2");
    detected.then_some(Words { name: "avx512", kernel: &Avx512(()) })
}

/// Only [`detect`] hands a value out, and only where the CPU has the features.
#[derive(Clone, Copy)]
struct Avx512(());

implement!(Avx512, "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2");

/// Calls the intrinsic for elements of the width of `$word`.
macro_rules! by_width {
    ($word:ident, [$w1:ident, $w2:ident, $w4:ident, $w8:ident], $args:tt) => {
        // SAFETY: there is a value of `Avx512`, `self`, only where the CPU has the features.
        unsafe {
            match $word::BYTES {
                1 => $w1 $args,
                2 => $w2 $args,
                4 => $w4 $args,
                _ => $w8 $args,
            }
        }
    };
}

impl Isa for Avx512 {
    type Vector = __m512i;
    const BYTES: usize = 64;

    #[inline(always)]
    fn zero(self) -> __m512i {
        // SAFETY: there is a value of `Avx512`, `self`, only where the CPU has the features.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn load(self, data: &[u8], at: usize, len: usize) -> __m512i {
        let Some(bytes) = data.get(at..).and_then(|rest| rest.get(..len)) else { return self.zero() };
        // SAFETY: the slice is good for `len` bytes, and no other is read; the load needs no alignment.
        unsafe { _mm512_maskz_loadu_epi8(first(len), bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, vector: __m512i, data: &mut [u8], at: usize, len: usize) {
        let Some(bytes) = data.get_mut(at..).and_then(|rest| rest.get_mut(..len)) else { return };
        // SAFETY: the slice is good for `len` bytes, and no other is written; the store needs no alignment.
        unsafe { _mm512_mask_storeu_epi8(bytes.as_mut_ptr().cast(), first(len), vector) }
    }

    #[inline(always)]
    fn plus<W: Word>(self, a: __m512i, b: __m512i) -> __m512i {
        by_width!(W, [_mm512_add_epi8, _mm512_add_epi16, _mm512_add_epi32, _mm512_add_epi64], (a, b))
    }

    #[inline(always)]
    fn unzigzag<W: Word>(self, vector: __m512i) -> __m512i {
        // SAFETY: there is a value of `Avx512`, `self`, only where the CPU has the features.
        unsafe {
            let ones = _mm512_set1_epi8(-1);
            match W::BYTES {
                1 => {
                    let half = _mm512_and_si512(_mm512_srli_epi16::<1>(vector), _mm512_set1_epi8(0x7F));
                    let odd = _mm512_test_epi8_mask(vector, _mm512_set1_epi8(1));
                    _mm512_mask_sub_epi8(half, odd, ones, half)
                }
                2 => {
                    let half = _mm512_srli_epi16::<1>(vector);
                    let odd = _mm512_test_epi16_mask(vector, _mm512_set1_epi16(1));
                    _mm512_mask_sub_epi16(half, odd, ones, half)
                }
                4 => {
                    let half = _mm512_srli_epi32::<1>(vector);
                    let odd = _mm512_test_epi32_mask(vector, _mm512_set1_epi32(1));
                    _mm512_mask_sub_epi32(half, odd, ones, half)
                }
                _ => {
                    let half = _mm512_srli_epi64::<1>(vector);
                    let odd = _mm512_test_epi64_mask(vector, _mm512_set1_epi64(1));
                    _mm512_mask_sub_epi64(half, odd, ones, half)
                }
            }
        }
    }

    /// Subtracts those of which the top bit is set from all ones but the top one.
    #[inline(always)]
    fn order<W: Word>(self, x: __m512i) -> __m512i {
        // SAFETY: there is a value of `Avx512`, `self`, only where the CPU has the features.
        unsafe {
            match W::BYTES {
                1 => _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(x), _mm512_set1_epi8(i8::MAX), x),
                2 => _mm512_mask_sub_epi16(x, _mm512_movepi16_mask(x), _mm512_set1_epi16(i16::MAX), x),
                4 => _mm512_mask_sub_epi32(x, _mm512_movepi32_mask(x), _mm512_set1_epi32(i32::MAX), x),
                _ => _mm512_mask_sub_epi64(x, _mm512_movepi64_mask(x), _mm512_set1_epi64(i64::MAX), x),
            }
        }
    }

    #[inline(always)]
    fn sums<W: Word>(self, mut sums: __m512i) -> __m512i {
        if W::BYTES <= 1 {
            sums = self.plus::<W>(sums, self.spread(sums, const { &spread::<1>(W::BYTES) }, 0xAAAA_AAAA_AAAA_AAAA));
        }
        if W::BYTES <= 2 {
            sums = self.plus::<W>(sums, self.spread(sums, const { &spread::<2>(W::BYTES) }, 0xCCCC_CCCC_CCCC_CCCC));
        }
        if W::BYTES <= 4 {
            sums = self.plus::<W>(sums, self.spread(sums, const { &spread::<4>(W::BYTES) }, 0xF0F0_F0F0_F0F0_F0F0));
        }
        sums = self.plus::<W>(sums, self.spread(sums, const { &spread::<8>(W::BYTES) }, 0xFF00_FF00_FF00_FF00));
        sums = self.plus::<W>(sums, self.spread(sums, const { &spread::<16>(W::BYTES) }, 0xFFFF_0000_FFFF_0000));
        self.plus::<W>(sums, self.spread(sums, const { &spread::<32>(W::BYTES) }, 0xFFFF_FFFF_0000_0000))
    }

    #[inline(always)]
    fn last<W: Word>(self, vector: __m512i) -> __m512i {
        self.spread(vector, const { &spread::<64>(W::BYTES) }, u64::MAX)
    }
}

impl Avx512 {
    /// The bytes of `vector` in `order` where `mask` has a bit, and 0.
    #[inline(always)]
    fn spread(self, vector: __m512i, order: &[u8; 64], mask: u64) -> __m512i {
        // SAFETY: there is a value of `Avx512`, `self`, only where the CPU has the features.
        unsafe { _mm512_maskz_permutexvar_epi8(mask, self.load(order, 0, 64), vector) }
    }
}

/// Permutation for the second of each two units of `unit` bytes: the last element of the first, everywhere. (Of the whole vector,
/// for a unit of 64 bytes.)
const fn spread<const UNIT: usize>(width: usize) -> [u8; 64] {
    let mut order = [0; 64];
    let mut k = 0;
    while k < 64 {
        let first = if UNIT == 64 { 64 } else { k / UNIT * UNIT };
        order[k] = if first >= width { (first - width + k % width) as u8 } else { 0 };
        k += 1;
    }
    order
}

/// The first `len` bytes of a vector.
#[inline(always)]
fn first(len: usize) -> u64 {
    if len >= 64 { u64::MAX } else { (1 << len) - 1 }
}
