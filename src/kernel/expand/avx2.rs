//! AVX2: a group is two vectors.

use super::Eights;
use crate::kernel::cpu::Avx2;
use std::arch::x86_64::*;

impl Eights for Avx2 {
    type Group = [__m256i; 2];
    type Eight = __m128i;

    #[inline(always)]
    fn zero(self) -> __m128i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { _mm_setzero_si128() }
    }

    #[inline(always)]
    fn shuffle(self, bytes: &[u8; 8], order: &[u8; 8]) -> __m128i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe {
            let bytes = _mm_cvtsi64_si128(i64::from_le_bytes(*bytes));
            _mm_shuffle_epi8(bytes, _mm_cvtsi64_si128(i64::from_le_bytes(*order)))
        }
    }

    #[inline(always)]
    fn join(self, [a, b, c, d, e, f, g, h]: [__m128i; 8]) -> [__m256i; 2] {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe {
            [
                _mm256_set_m128i(_mm_unpacklo_epi64(c, d), _mm_unpacklo_epi64(a, b)),
                _mm256_set_m128i(_mm_unpacklo_epi64(g, h), _mm_unpacklo_epi64(e, f)),
            ]
        }
    }
}
