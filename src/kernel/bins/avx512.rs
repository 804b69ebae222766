//! AVX-512 with VBMI2: a group is one vector, and states are one vector of lower bytes and one of
//! upper bytes. Elements of two bytes are computed apart for even and odd places.

use std::arch::x86_64::*;

use super::generic::{Lanes, groups, groups_of_two};
use super::model::Class;
use super::{BinModel, GROUP, Groups, Kernel};
use crate::kernel::compile::implement;
use crate::kernel::cpu::Avx512;
use crate::kernel::expand::WINDOW;
use crate::kernel::vectors::x86_64::{load_16, load_64, look_up_256, store_64};

implement!(Avx512: Kernel {
    fn groups(model: &BinModel, block: Groups<'_, '_>) => { groups }
    fn groups_of_two(model: &BinModel, blocks: [Groups<'_, '_>; 2]) => { groups_of_two }
});

/// For each number of bits, a mask of them.
const MASK: [u8; 16] = [0, 1, 3, 7, 15, 31, 63, 127, 255, 0, 0, 0, 0, 0, 0, 0];
/// Selects the bytes at odd places.
const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;

/// The indices that interleave the bytes of two vectors: those of the first half of the pairs, and
/// of the second.
static PAIRS: [[u8; 64]; 2] = {
    let mut pairs = [[0; 64]; 2];
    let mut i = 0;
    while i < 64 {
        // exact: below 128
        pairs[i / 32][2 * (i % 32)] = i as u8;
        pairs[i / 32][2 * (i % 32) + 1] = i as u8 + 64;
        i += 1;
    }
    pairs
};

impl Lanes for Avx512 {
    type Bytes = __m512i;
    type Mask = u64;

    #[inline(always)]
    fn load(self, bytes: &[u8; GROUP]) -> __m512i {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe { load_64(bytes) }
    }

    #[inline(always)]
    fn store(self, bytes: __m512i, to: &mut [u8; GROUP]) {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe { store_64(to, bytes) }
    }

    #[inline(always)]
    fn store_pairs(self, low: __m512i, high: __m512i, to: &mut [[u8; 2]; GROUP]) {
        let (halves, _) = to.as_flattened_mut().as_chunks_mut();
        for (half, pairs) in halves.iter_mut().zip(&PAIRS) {
            // SAFETY: the token `self` proves that this CPU has AVX-512.
            unsafe { store_64(half, _mm512_permutex2var_epi8(low, load_64(pairs), high)) }
        }
    }

    #[inline(always)]
    fn look_up_slot(self, table: &[u8; 256], slots: __m512i) -> __m512i {
        let (quarters, _) = table.as_chunks();
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe {
            // in bounds: four quarters
            let first = [load_64(&quarters[0]), load_64(&quarters[1])];
            look_up_256(&[first[0], first[1], load_64(&quarters[2]), load_64(&quarters[3])], slots)
        }
    }

    #[inline(always)]
    fn look_up_bin(self, table: &[u8; GROUP], bins: __m512i, _: bool) -> __m512i {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe { _mm512_permutexvar_epi8(bins, load_64(table)) }
    }

    #[inline(always)]
    fn or(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe { _mm512_or_si512(a, b) }
    }

    #[inline(always)]
    fn without_bins(self, class: &Class, bins: __m512i, slots: __m512i, upper: __m512i, _: bool) -> [__m512i; 2] {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        let (even, odd) = unsafe {
            let (frequencies, starts) = (load_64(&class.frequency), load_64(&class.start));
            let rests = _mm512_sub_epi8(slots, _mm512_permutexvar_epi8(bins, starts));
            let even = _mm512_mullo_epi16(
                _mm512_maskz_permutexvar_epi8(!ODD, bins, frequencies),
                _mm512_maskz_mov_epi8(!ODD, upper),
            );
            // the upper half of the product of upper bytes
            let odd = _mm512_mulhi_epu16(
                _mm512_maskz_permutexvar_epi8(ODD, bins, frequencies),
                _mm512_maskz_mov_epi8(ODD, upper),
            );
            (
                _mm512_add_epi16(even, _mm512_maskz_mov_epi8(!ODD, rests)),
                _mm512_add_epi16(odd, _mm512_srli_epi16(rests, 8)),
            )
        };
        split(self, even, odd)
    }

    #[inline(always)]
    fn take_bits(self, lower: __m512i, upper: __m512i, counts: __m512i) -> [__m512i; 3] {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        let (raw, even, odd) = unsafe {
            let counts = _mm512_and_si512(counts, _mm512_set1_epi8(15));
            let mask = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(load_16(&MASK)), counts);
            let [even_counts, odd_counts] = even_and_odd(self, counts);
            let even = _mm512_mask_blend_epi8(ODD, lower, _mm512_slli_epi16(upper, 8));
            let odd = _mm512_mask_blend_epi8(ODD, _mm512_srli_epi16(lower, 8), upper);
            let (even, odd) = (_mm512_srlv_epi16(even, even_counts), _mm512_srlv_epi16(odd, odd_counts));
            (_mm512_and_si512(lower, mask), even, odd)
        };
        let [lower, upper] = split(self, even, odd);
        [raw, lower, upper]
    }

    #[inline(always)]
    fn zeros(self, bytes: __m512i) -> u64 {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe { _mm512_testn_epi8_mask(bytes, bytes) }
    }

    #[inline(always)]
    fn tops(self, bytes: __m512i) -> u64 {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe { _mm512_movepi8_mask(bytes) }
    }

    #[inline(always)]
    fn bits(self, mask: u64) -> u64 {
        mask
    }

    #[inline(always)]
    fn select(self, mask: u64, yes: __m512i, no: __m512i) -> __m512i {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe { _mm512_mask_blend_epi8(mask, no, yes) }
    }

    #[inline(always)]
    fn expand(self, mask: u64, _: u64, next: &[u8; WINDOW], no: __m512i) -> __m512i {
        let next = next.first_chunk().unwrap_or(&[0; GROUP]); // a window is longer
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe { _mm512_mask_expand_epi8(no, mask, load_64(next)) }
    }
}

/// Returns the bytes at even places and those at odd places, as elements of two bytes.
#[inline(always)]
pub(super) fn even_and_odd(_: Avx512, bytes: __m512i) -> [__m512i; 2] {
    // SAFETY: the token proves that this CPU has AVX-512.
    unsafe { [_mm512_and_si512(bytes, _mm512_set1_epi16(255)), _mm512_srli_epi16(bytes, 8)] }
}

/// Returns lower and upper bytes of elements of two bytes at even and at odd places.
#[inline(always)]
pub(super) fn split(_: Avx512, even: __m512i, odd: __m512i) -> [__m512i; 2] {
    // SAFETY: the token proves that this CPU has AVX-512.
    unsafe {
        let lower = _mm512_mask_blend_epi8(ODD, even, _mm512_slli_epi16(odd, 8));
        [lower, _mm512_mask_blend_epi8(ODD, _mm512_srli_epi16(even, 8), odd)]
    }
}
