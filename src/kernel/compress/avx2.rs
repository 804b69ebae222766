//! AVX2: a shuffle of eight bytes.

use super::Shuffle;
use crate::kernel::cpu::Avx2;
use std::arch::x86_64::*;

impl Shuffle for Avx2 {
    #[inline(always)]
    fn shuffle(self, bytes: &[u8; 8], order: &[u8; 8]) -> [u8; 8] {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        let shuffled = unsafe {
            let bytes = _mm_cvtsi64_si128(i64::from_le_bytes(*bytes));
            _mm_cvtsi128_si64(_mm_shuffle_epi8(bytes, _mm_cvtsi64_si128(i64::from_le_bytes(*order))))
        };
        shuffled.to_le_bytes()
    }
}
