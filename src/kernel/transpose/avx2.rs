//! AVX2: two squares at once.

use std::arch::x86_64::*;

use super::Kernel;
use super::generic::{Squares, Tile, elements};
use crate::kernel::Width;
use crate::kernel::compile::implement;
use crate::kernel::cpu::Avx2;
use crate::kernel::vectors::x86_64::{load_lines_16, load_lines_32, store_lines_16, store_lines_32};
use crate::kernel::word::Word;

implement!(Avx2: Kernel {
    fn to_rows(width: Width, rows: usize, columns: &[u8], out: &mut [u8]) => { match width {
        Width::W1 => to_rows::<u8, 16>,
        Width::W2 => to_rows::<u16, 8>,
        Width::W4 => to_rows::<u32, 4>,
        Width::W8 => to_rows::<u64, 2>,
    } }
});

/// See [`Kernel::to_rows`].
#[inline(always)]
fn to_rows<W: Word, const N: usize>(token: Avx2, _: Width, rows: usize, columns: &[u8], out: &mut [u8]) {
    let tile = Tile::new::<W>(rows, columns.len());
    if !tile.to_rows::<_, W, N>(token, columns, out) {
        few_to_rows::<W, N>(token, tile, columns, out);
    }
}

/// Does the same with a tile of few columns.
#[inline(always)]
pub(super) fn few_to_rows<W: Word, const N: usize>(token: Avx2, tile: Tile, columns: &[u8], out: &mut [u8]) {
    if !tile.to_rows::<_, W, N>(Single(token), columns, out) {
        elements::<W>(tile, columns, out);
    }
}

/// Vectors of one lane.
#[derive(Clone, Copy)]
struct Single(Avx2);

impl Squares for Single {
    type Vector = __m128i;
    const LANES: usize = 1;

    #[inline(always)]
    fn load<const N: usize>(self, bytes: &[u8], stride: usize, count: usize) -> [__m128i; N] {
        // SAFETY: the token in `self` proves that this CPU has AVX2.
        unsafe { load_lines_16(bytes, stride, count) }
    }

    #[inline(always)]
    fn store<const N: usize>(self, vectors: [__m128i; N], bytes: &mut [u8], stride: usize, count: usize) {
        // SAFETY: the token in `self` proves that this CPU has AVX2.
        unsafe { store_lines_16(bytes, stride, count, vectors) }
    }

    #[inline(always)]
    fn interleave<W: Word>(self, a: __m128i, b: __m128i) -> [__m128i; 2] {
        // SAFETY: the token in `self` proves that this CPU has AVX2.
        unsafe {
            match W::BYTES {
                1 => [_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)],
                2 => [_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b)],
                4 => [_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)],
                _ => [_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b)],
            }
        }
    }
}

impl Squares for Avx2 {
    type Vector = __m256i;
    const LANES: usize = 2;

    #[inline(always)]
    fn load<const N: usize>(self, bytes: &[u8], stride: usize, count: usize) -> [__m256i; N] {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { load_lines_32(bytes, stride, count) }
    }

    #[inline(always)]
    fn store<const N: usize>(self, vectors: [__m256i; N], bytes: &mut [u8], stride: usize, count: usize) {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { store_lines_32(bytes, stride, count, vectors) }
    }

    #[inline(always)]
    fn interleave<W: Word>(self, a: __m256i, b: __m256i) -> [__m256i; 2] {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe {
            match W::BYTES {
                1 => [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)],
                2 => [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)],
                4 => [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)],
                _ => [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)],
            }
        }
    }
}
