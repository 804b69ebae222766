//! AVX-512 with VBMI and VBMI2.

use std::arch::x86_64::*;

use super::body::implement;
use super::scalar::Word;
use super::undo::{Isa, copy_short};
use super::{Prediction, Width, Words};

/// The implementation, if this CPU can run it.
pub(super) fn detect() -> Option<Words> {
    let detected = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2");
    detected.then_some(Words { name: "avx512", kernel: &Avx512(HALVES) })
}

/// Only [`detect`] hands a value out, and only where the CPU has the features.
///
/// Holds masks: the second of each two units of 1, 2, 4, .. 32 bytes. Of masks that it knows, as constants, the compiler would make
/// instructions of their own.
#[derive(Clone, Copy)]
struct Avx512([u64; 6]);

const HALVES: [u64; 6] = [
    0xAAAA_AAAA_AAAA_AAAA,
    0xCCCC_CCCC_CCCC_CCCC,
    0xF0F0_F0F0_F0F0_F0F0,
    0xFF00_FF00_FF00_FF00,
    0xFFFF_0000_FFFF_0000,
    0xFFFF_FFFF_0000_0000,
];

implement!(Avx512, "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2");

impl Isa for Avx512 {
    type Vector = __m512i;
    const BYTES: usize = 64;

    #[inline(always)]
    fn zero(self) -> __m512i {
        // SAFETY: there is a value of `Avx512`, `self`, only where the CPU has the features.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn load(self, bytes: &[u8]) -> __m512i {
        let place: *const i8 = bytes.as_ptr().cast();
        // SAFETY: the slice is good for what is read of it, at most its length; the loads need no alignment.
        unsafe {
            match bytes.len() {
                64.. => _mm512_loadu_si512(place.cast()),
                len => _mm512_maskz_loadu_epi8((1 << len) - 1, place),
            }
        }
    }

    #[inline(always)]
    fn store(self, vector: __m512i, bytes: &mut [u8]) {
        if let Some(whole) = bytes.first_chunk_mut::<64>() {
            // SAFETY: the array is good for 64 bytes; the store needs no alignment.
            unsafe { _mm512_storeu_si512(whole.as_mut_ptr().cast(), vector) }
        } else {
            // a masked store would hold up the loads of what follows in memory until it is done
            let mut whole = [0; 64];
            // SAFETY: the array is good for 64 bytes; the store needs no alignment.
            unsafe { _mm512_storeu_si512(whole.as_mut_ptr().cast(), vector) }
            copy_short(&whole, bytes);
        }
    }

    #[inline(always)]
    fn plus<W: Word>(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: there is a value of `Avx512`, `self`, only where the CPU has the features.
        unsafe {
            match W::BYTES {
                1 => _mm512_add_epi8(a, b),
                2 => _mm512_add_epi16(a, b),
                4 => _mm512_add_epi32(a, b),
                _ => _mm512_add_epi64(a, b),
            }
        }
    }

    #[inline(always)]
    fn rotate_right<W: Word>(self, x: __m512i) -> __m512i {
        // SAFETY: there is a value of `Avx512`, `self`, only where the CPU has the features.
        unsafe {
            match W::BYTES {
                1 => {
                    let (low, high) = (_mm512_srli_epi16::<1>(x), _mm512_slli_epi16::<7>(x));
                    _mm512_ternarylogic_epi64::<0xCA>(_mm512_set1_epi8(0x7F), low, high) // of each bit, the first says which
                }
                2 => _mm512_shrdi_epi16::<1>(x, x),
                4 => _mm512_ror_epi32::<1>(x),
                _ => _mm512_ror_epi64::<1>(x),
            }
        }
    }

    #[inline(always)]
    fn order<W: Word>(self, x: __m512i) -> __m512i {
        // SAFETY: there is a value of `Avx512`, `self`, only where the CPU has the features.
        unsafe {
            let (sign, others) = match W::BYTES {
                1 => (_mm512_movm_epi8(_mm512_movepi8_mask(x)), _mm512_set1_epi8(i8::MAX)),
                2 => (_mm512_srai_epi16::<15>(x), _mm512_set1_epi16(i16::MAX)),
                4 => (_mm512_srai_epi32::<31>(x), _mm512_set1_epi32(i32::MAX)),
                _ => (_mm512_srai_epi64::<63>(x), _mm512_set1_epi64(i64::MAX)),
            };
            _mm512_ternarylogic_epi64::<0x78>(x, sign, others) // `x ^ (sign & others)`, of which the compiler would make more
        }
    }

    #[inline(always)]
    fn sums<W: Word>(self, mut sums: __m512i) -> __m512i {
        let [of_1, of_2, of_4, of_8, of_16, of_32] = self.0;
        if W::BYTES <= 1 {
            sums = self.plus::<W>(sums, self.spread(sums, const { &spread::<1>(W::BYTES) }, of_1));
        }
        if W::BYTES <= 2 {
            sums = self.plus::<W>(sums, self.spread(sums, const { &spread::<2>(W::BYTES) }, of_2));
        }
        if W::BYTES <= 4 {
            sums = self.plus::<W>(sums, self.spread(sums, const { &spread::<4>(W::BYTES) }, of_4));
        }
        sums = self.plus::<W>(sums, self.spread(sums, const { &spread::<8>(W::BYTES) }, of_8));
        sums = self.plus::<W>(sums, self.spread(sums, const { &spread::<16>(W::BYTES) }, of_16));
        self.plus::<W>(sums, self.spread(sums, const { &spread::<32>(W::BYTES) }, of_32))
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
        unsafe { _mm512_maskz_permutexvar_epi8(mask, self.load(order), vector) }
    }
}

/// Order for the second of each two units of `UNIT` bytes: the last element of the first, everywhere. For units of 64 bytes: the
/// last element of the vector, everywhere.
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
