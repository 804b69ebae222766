//! AVX-512 with VBMI2: a group is one vector. Elements of two bytes are computed apart for even and
//! odd places.

use super::generic::{EncodeLanes, groups};
use super::{Coder, EncoderModel, GROUP, Kernel};
use crate::kernel::bins::avx512::{even_and_odd, split};
use crate::kernel::compile::implement;
use crate::kernel::compress::WINDOW;
use crate::kernel::cpu::Avx512;
use crate::kernel::vectors::x86_64::{load_64, store_64};
use std::arch::x86_64::*;

implement!(Avx512: Kernel {
    fn groups(
        model: &EncoderModel,
        classes: &[u8],
        windows: &[[[u8; 2]; GROUP]],
        bins: &[[u8; GROUP]],
        coder: &mut Coder<'_>,
    ) => { groups }
});

/// Selects the bytes at odd places.
const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;

/// The indices of the lower bytes in two vectors of elements of two bytes, and of the upper bytes.
static BYTES: [[u8; 64]; 2] = {
    let mut bytes = [[0; 64]; 2];
    let mut i = 0;
    while i < 64 {
        // exact: below 128
        (bytes[0][i], bytes[1][i]) = (2 * i as u8, 2 * i as u8 + 1);
        i += 1;
    }
    bytes
};

/// The index of each byte.
static IDENTITY: [u8; 64] = {
    let mut bytes = [0; 64];
    let mut i = 0;
    while i < 64 {
        bytes[i] = i as u8; // exact: below 64
        i += 1;
    }
    bytes
};

impl EncodeLanes for Avx512 {
    #[inline(always)]
    fn load_pairs(self, pairs: &[[u8; 2]; GROUP]) -> [__m512i; 2] {
        let (halves, _) = pairs.as_flattened().as_chunks();
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe {
            // in bounds: two halves
            let (first, second) = (load_64(&halves[0]), load_64(&halves[1]));
            BYTES.each_ref().map(|at| _mm512_permutex2var_epi8(first, load_64(at), second))
        }
    }

    #[inline(always)]
    fn add(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe { _mm512_add_epi8(a, b) }
    }

    #[inline(always)]
    fn subtract(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe { _mm512_sub_epi8(a, b) }
    }

    #[inline(always)]
    fn multiply_add(self, a: __m512i, b: __m512i, c: __m512i) -> [__m512i; 2] {
        let [even_a, odd_a] = even_and_odd(self, a);
        let [even_b, odd_b] = even_and_odd(self, b);
        let [even_c, odd_c] = even_and_odd(self, c);
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        let (even, odd) = unsafe {
            let even = _mm512_add_epi16(_mm512_mullo_epi16(even_a, even_b), even_c);
            (even, _mm512_add_epi16(_mm512_mullo_epi16(odd_a, odd_b), odd_c))
        };
        split(self, even, odd)
    }

    #[inline(always)]
    fn at_most(self, a: __m512i, b: __m512i) -> u64 {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe { _mm512_cmple_epu8_mask(a, b) }
    }

    #[inline(always)]
    fn divide(self, [lower, upper]: [__m512i; 2], by: __m512i, [low, high]: [__m512i; 2]) -> [__m512i; 2] {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        let zero = unsafe { _mm512_setzero_si512() };
        let [even, odd] = elements(self, lower, upper);
        let [even_by, odd_by] = elements(self, by, zero);
        let [even_reciprocals, odd_reciprocals] = elements(self, low, high);
        let [even_quotients, even_remainders] = divide_16(self, even, even_by, even_reciprocals);
        let [odd_quotients, odd_remainders] = divide_16(self, odd, odd_by, odd_reciprocals);
        [lower_bytes(self, even_quotients, odd_quotients), lower_bytes(self, even_remainders, odd_remainders)]
    }

    #[inline(always)]
    fn compress(self, bits: u64, bytes: __m512i, to: &mut [u8; WINDOW]) {
        let Some(to) = to.last_chunk_mut() else { return }; // never: a window is longer
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe {
            // the last `count` bytes are the compressed ones: indices are taken modulo 64
            let count = _mm512_set1_epi8(bits.count_ones() as i8); // exact: at most 64
            let order = _mm512_add_epi8(load_64(&IDENTITY), count);
            store_64(to, _mm512_permutexvar_epi8(order, _mm512_maskz_compress_epi8(bits, bytes)));
        }
    }
}

/// Returns the elements of two bytes at even places and those at odd places.
#[inline(always)]
fn elements(_: Avx512, lower: __m512i, upper: __m512i) -> [__m512i; 2] {
    // SAFETY: the token proves that this CPU has AVX-512.
    unsafe {
        let even = _mm512_mask_blend_epi8(ODD, lower, _mm512_slli_epi16(upper, 8));
        [even, _mm512_mask_blend_epi8(ODD, _mm512_srli_epi16(lower, 8), upper)]
    }
}

/// Returns the lower bytes of elements of two bytes at even and at odd places.
#[inline(always)]
fn lower_bytes(_: Avx512, even: __m512i, odd: __m512i) -> __m512i {
    // SAFETY: the token proves that this CPU has AVX-512.
    unsafe { _mm512_mask_blend_epi8(ODD, even, _mm512_slli_epi16(odd, 8)) }
}

/// Returns quotients and remainders of elements of two bytes.
#[inline(always)]
fn divide_16(_: Avx512, states: __m512i, by: __m512i, reciprocals: __m512i) -> [__m512i; 2] {
    // SAFETY: the token proves that this CPU has AVX-512.
    unsafe {
        let quotients = _mm512_mulhi_epu16(states, reciprocals); // or one less
        let remainders = _mm512_sub_epi16(states, _mm512_mullo_epi16(quotients, by));
        let is_less = _mm512_cmpge_epu16_mask(remainders, by);
        let one_more = _mm512_mask_add_epi16(quotients, is_less, quotients, _mm512_set1_epi16(1));
        [one_more, _mm512_mask_sub_epi16(remainders, is_less, remainders, by)]
    }
}
