//! AVX2 with BMI2: the lengths of a group are two vectors, and `pdep` and `pext` move extra bits.

use std::arch::x86_64::*;

use super::generic::{Planes, deposit, extract, lengths};
use super::{GROUP, Kernel};
use crate::kernel::Width;
use crate::kernel::bytes::first_bytes;
use crate::kernel::compile::implement;
use crate::kernel::cpu::Avx2;
use crate::kernel::vectors::x86_64::load_32;

implement!(Avx2: Kernel {
    fn lengths(width: Width, elements: &[u8], out: &mut [u8]) => { lengths }
    fn deposit(width: Width, lengths: &[u8], bits: &[u8], at: usize, out: &mut [u8]) -> usize => { match width {
        Width::W1 => deposit::<_, 8>,
        Width::W2 => deposit::<_, 16>,
        Width::W4 => deposit::<_, 32>,
        Width::W8 => deposit::<_, 64>,
    } }
    fn extract(width: Width, lengths: &[u8], elements: &[u8], words: &mut [u64], at: usize) -> usize => { match width {
        Width::W1 => extract::<_, 8>,
        Width::W2 => extract::<_, 16>,
        Width::W4 => extract::<_, 32>,
        Width::W8 => extract::<_, 64>,
    } }
});

impl Planes for Avx2 {
    type Lengths = [__m256i; 2];

    #[inline(always)]
    fn load(self, lengths: &[u8]) -> [__m256i; 2] {
        let mut padded = [0; GROUP];
        let (halves, _) = first_bytes(lengths, &mut padded).as_chunks();
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { [load_32(&halves[0]), load_32(&halves[1])] } // in bounds: two halves
    }

    #[inline(always)]
    fn longer(self, lengths: &mut [__m256i; 2]) -> u64 {
        let [low, high] = *lengths;
        // SAFETY: the token `self` proves that this CPU has AVX2.
        let [low_zeros, high_zeros] = unsafe {
            let (zero, one) = (_mm256_setzero_si256(), _mm256_set1_epi8(1));
            *lengths = [_mm256_subs_epu8(low, one), _mm256_subs_epu8(high, one)];
            [_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, zero)), _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, zero))]
        };
        !(u64::from(high_zeros.cast_unsigned()) << 32 | u64::from(low_zeros.cast_unsigned()))
    }

    #[inline(always)]
    fn deposit(self, bits: u64, mask: u64) -> u64 {
        // SAFETY: the token `self` proves that this CPU has BMI2.
        unsafe { _pdep_u64(bits, mask) }
    }

    #[inline(always)]
    fn extract(self, bits: u64, mask: u64) -> u64 {
        // SAFETY: the token `self` proves that this CPU has BMI2.
        unsafe { _pext_u64(bits, mask) }
    }
}
