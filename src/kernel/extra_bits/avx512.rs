//! AVX-512 with VBMI and GFNI, and BMI2: a group is one vector for each byte of its elements.

use std::arch::x86_64::*;

use super::generic::{BLOCK, BitWriter, Planes, deposit_planes, extract_planes, lengths};
use super::{GROUP, Kernel};
use crate::kernel::Width;
use crate::kernel::bitshuffle::avx512::{elements_of_planes, planes_of_elements};
use crate::kernel::compile::implement;
use crate::kernel::cpu::Avx512;
use crate::kernel::vectors::x86_64::{load_up_to_64, store_up_to_64};

implement!(Avx512: Kernel {
    fn lengths(width: Width, elements: &[u8], out: &mut [u8]) => { lengths }
    fn deposit(width: Width, lengths: &[u8], bits: &[u8], at: usize, out: &mut [u8]) -> usize => { match width {
        Width::W1 => deposit::<1>,
        Width::W2 => deposit::<2>,
        Width::W4 => deposit::<4>,
        Width::W8 => deposit::<8>,
    } }
    fn extract(width: Width, lengths: &[u8], elements: &[u8], words: &mut [u64], at: usize) -> usize => { match width {
        Width::W1 => extract::<1>,
        Width::W2 => extract::<2>,
        Width::W4 => extract::<4>,
        Width::W8 => extract::<8>,
    } }
});

impl Planes for Avx512 {
    type Lengths = __m512i;

    #[inline(always)]
    fn load(self, lengths: &[u8]) -> __m512i {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe { load_up_to_64(lengths) }
    }

    #[inline(always)]
    fn longer(self, lengths: &mut __m512i) -> u64 {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe {
            let mask = _mm512_test_epi8_mask(*lengths, *lengths);
            *lengths = _mm512_subs_epu8(*lengths, _mm512_set1_epi8(1));
            mask
        }
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

/// [`Kernel::deposit`] of elements of `W` bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni,bmi1,bmi2,popcnt")]
fn deposit<const W: usize>(
    token: Avx512,
    _: Width,
    lengths: &[u8],
    bits: &[u8],
    mut at: usize,
    out: &mut [u8],
) -> usize {
    for (lengths, out) in lengths.chunks(BLOCK * GROUP).zip(out.chunks_mut(BLOCK * GROUP * W)) {
        let mut block = [[[0; 64]; W]; BLOCK];
        for (lengths, planes) in lengths.chunks(GROUP).zip(&mut block) {
            let (words, _) = planes.as_flattened_mut().as_chunks_mut();
            let (pairs, _) = words.as_chunks_mut();
            let pairs = pairs.iter_mut().map(|[even, odd]| [even, odd]);
            at = deposit_planes(token, pairs, bits, at, token.load(lengths));
        }
        for (planes, out) in block.iter().zip(out.chunks_mut(GROUP * W)) {
            for (vector, out) in elements_of_planes(planes).into_iter().zip(out.chunks_mut(64)) {
                store_up_to_64(out, vector);
            }
        }
    }
    at
}

/// [`Kernel::extract`] of elements of `W` bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni,bmi1,bmi2,popcnt")]
fn extract<const W: usize>(
    token: Avx512,
    _: Width,
    lengths: &[u8],
    elements: &[u8],
    words: &mut [u64],
    at: usize,
) -> usize {
    let mut writer = BitWriter::new(words, at);
    for (lengths, elements) in lengths.chunks(BLOCK * GROUP).zip(elements.chunks(BLOCK * GROUP * W)) {
        let mut block = [[[0; 64]; W]; BLOCK];
        for (planes, elements) in block.iter_mut().zip(elements.chunks(GROUP * W)) {
            planes_of_elements(elements, planes);
        }
        for (lengths, planes) in lengths.chunks(GROUP).zip(&block) {
            let planes = planes.as_flattened().as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
            extract_planes(token, planes, &mut writer, token.load(lengths));
        }
    }
    writer.finish()
}
