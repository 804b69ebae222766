//! AVX2: vectors of two lanes.

use std::arch::x86_64::*;

use super::Kernel;
use super::generic::{STEP, Vectors, shuffle, unshuffle};
use crate::kernel::Width;
use crate::kernel::compile::implement;
use crate::kernel::cpu::Avx2;
use crate::kernel::vectors::x86_64::{load_32, load_lanes, store_32, store_lanes};

/// Vectors of a cache line.
const PARTS: usize = STEP / 32;

implement!(Avx2: Kernel {
    fn shuffle(width: Width, src: &[u8], dst: &mut [u8]) => { match width {
        Width::W1 => shuffle::<_, PARTS, 1, 8>,
        Width::W2 => shuffle::<_, PARTS, 1, 16>,
        Width::W4 => shuffle::<_, PARTS, 2, 16>,
        Width::W8 => shuffle::<_, PARTS, 4, 16>,
    } }
    fn unshuffle(width: Width, src: &[u8], dst: &mut [u8]) => { match width {
        Width::W1 => unshuffle::<_, PARTS, 1, 8>,
        Width::W2 => unshuffle::<_, PARTS, 1, 16>,
        Width::W4 => unshuffle::<_, PARTS, 2, 16>,
        Width::W8 => unshuffle::<_, PARTS, 4, 16>,
    } }
});

impl Vectors for Avx2 {
    type Vector = __m256i;

    #[inline(always)]
    fn zero(self) -> __m256i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    fn gather(self, lanes: &[[u8; 16]], index: usize, distance: usize) -> __m256i {
        let (lower, upper) = lanes.split_at(distance);
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { load_lanes(&lower[index], &upper[index]) }
    }

    #[inline(always)]
    fn scatter(self, vector: __m256i, lanes: &mut [[u8; 16]], index: usize, distance: usize) {
        let (lower, upper) = lanes.split_at_mut(distance);
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { store_lanes(&mut lower[index], &mut upper[index], vector) }
    }

    #[inline(always)]
    fn load(self, line: &[u8; STEP], part: usize) -> __m256i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { load_32(&line.as_chunks().0[part]) }
    }

    #[inline(always)]
    fn store(self, vector: __m256i, line: &mut [u8; STEP], part: usize) {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { store_32(&mut line.as_chunks_mut().0[part], vector) }
    }

    #[inline(always)]
    fn zip(self, a: __m256i, b: __m256i) -> [__m256i; 2] {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)] }
    }

    #[inline(always)]
    fn swap_bits<const SHIFT: i32>(self, a: __m256i, b: __m256i, mask: u8) -> [__m256i; 2] {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe {
            let differ = _mm256_xor_si256(_mm256_srli_epi16::<SHIFT>(a), b);
            let differ = _mm256_and_si256(differ, _mm256_set1_epi8(mask.cast_signed()));
            [_mm256_xor_si256(a, _mm256_slli_epi16::<SHIFT>(differ)), _mm256_xor_si256(b, differ)]
        }
    }
}
