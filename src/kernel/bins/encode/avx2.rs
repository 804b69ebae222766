//! AVX2: a group is two vectors.

use super::generic::{EncodeLanes, groups};
use super::{Coder, EncoderModel, GROUP, Kernel};
use crate::kernel::bins::avx2::multiply_add;
use crate::kernel::bins::generic::Lanes;
use crate::kernel::compile::implement;
use crate::kernel::compress::{WINDOW, compress};
use crate::kernel::cpu::Avx2;
use crate::kernel::vectors::x86_64::load_32;
use std::arch::x86_64::*;

implement!(Avx2: Kernel {
    fn groups(
        model: &EncoderModel,
        classes: &[u8],
        windows: &[[[u8; 2]; GROUP]],
        bins: &[[u8; GROUP]],
        coder: &mut Coder<'_>,
    ) => { groups }
});

impl EncodeLanes for Avx2 {
    #[inline(always)]
    fn load_pairs(self, pairs: &[[u8; 2]; GROUP]) -> [[__m256i; 2]; 2] {
        let (halves, _) = pairs.as_chunks();
        // in bounds: two halves
        let [[a, b], [c, d]] = [load_pairs(self, &halves[0]), load_pairs(self, &halves[1])];
        [[a, c], [b, d]]
    }

    #[inline(always)]
    fn add(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { [_mm256_add_epi8(a[0], b[0]), _mm256_add_epi8(a[1], b[1])] }
    }

    #[inline(always)]
    fn subtract(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { [_mm256_sub_epi8(a[0], b[0]), _mm256_sub_epi8(a[1], b[1])] }
    }

    #[inline(always)]
    fn multiply_add(self, a: [__m256i; 2], b: [__m256i; 2], c: [__m256i; 2]) -> [[__m256i; 2]; 2] {
        let low = multiply_add(self, a[0], b[0], c[0]);
        let high = multiply_add(self, a[1], b[1], c[1]);
        [[low[0], high[0]], [low[1], high[1]]]
    }

    #[inline(always)]
    fn at_most(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe {
            let least = [_mm256_min_epu8(a[0], b[0]), _mm256_min_epu8(a[1], b[1])];
            [_mm256_cmpeq_epi8(least[0], a[0]), _mm256_cmpeq_epi8(least[1], a[1])]
        }
    }

    #[inline(always)]
    fn divide(
        self,
        [lower, upper]: [[__m256i; 2]; 2],
        by: [__m256i; 2],
        [first, second]: [[__m256i; 2]; 2],
    ) -> [[__m256i; 2]; 2] {
        let [a, b] = divide(self, [lower[0], upper[0]], by[0], [first[0], second[0]]);
        let [c, d] = divide(self, [lower[1], upper[1]], by[1], [first[1], second[1]]);
        [[a, c], [b, d]]
    }

    #[inline(always)]
    fn compress(self, bits: u64, bytes: [__m256i; 2], to: &mut [u8; WINDOW]) {
        let mut group = [0; GROUP];
        self.store(bytes, &mut group);
        compress(self, bits, &group, to);
    }
}

/// [`EncodeLanes::load_pairs`] of a half.
#[inline(always)]
fn load_pairs(_: Avx2, pairs: &[[u8; 2]; GROUP / 2]) -> [__m256i; 2] {
    let (halves, _) = pairs.as_flattened().as_chunks();
    // SAFETY: the token proves that this CPU has AVX2.
    unsafe {
        let (first, second) = (load_32(&halves[0]), load_32(&halves[1])); // in bounds: two halves
        let low = _mm256_set1_epi16(255);
        let lower = _mm256_packus_epi16(_mm256_and_si256(first, low), _mm256_and_si256(second, low));
        let upper = _mm256_packus_epi16(_mm256_srli_epi16(first, 8), _mm256_srli_epi16(second, 8));
        // a pack alternates between the two in steps of eight
        [_mm256_permute4x64_epi64(lower, 0b11_01_10_00), _mm256_permute4x64_epi64(upper, 0b11_01_10_00)]
    }
}

/// [`EncodeLanes::divide`] of a half.
#[inline(always)]
fn divide(token: Avx2, [lower, upper]: [__m256i; 2], by: __m256i, [low, high]: [__m256i; 2]) -> [__m256i; 2] {
    // SAFETY: the token proves that this CPU has AVX2.
    unsafe {
        let zero = _mm256_setzero_si256();
        let states = [_mm256_unpacklo_epi8(lower, upper), _mm256_unpackhi_epi8(lower, upper)];
        let by = [_mm256_unpacklo_epi8(by, zero), _mm256_unpackhi_epi8(by, zero)];
        let reciprocals = [_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high)];
        let [quotients, remainders] = divide_16(token, states[0], by[0], reciprocals[0]);
        let [more_quotients, more_remainders] = divide_16(token, states[1], by[1], reciprocals[1]);
        // all are below 256
        [_mm256_packus_epi16(quotients, more_quotients), _mm256_packus_epi16(remainders, more_remainders)]
    }
}

/// Returns quotients and remainders of elements of two bytes.
#[inline(always)]
fn divide_16(_: Avx2, states: __m256i, by: __m256i, reciprocals: __m256i) -> [__m256i; 2] {
    // SAFETY: the token proves that this CPU has AVX2.
    unsafe {
        let quotients = _mm256_mulhi_epu16(states, reciprocals); // or one less
        let remainders = _mm256_sub_epi16(states, _mm256_mullo_epi16(quotients, by));
        let is_less = _mm256_cmpeq_epi16(_mm256_max_epu16(remainders, by), remainders);
        [_mm256_sub_epi16(quotients, is_less), _mm256_sub_epi16(remainders, _mm256_and_si256(is_less, by))]
    }
}
