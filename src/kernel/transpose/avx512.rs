//! AVX-512: four squares at once.

use std::arch::x86_64::*;

use super::Kernel;
use super::avx2::few_to_rows;
use super::generic::{Squares, Tile};
use crate::kernel::Width;
use crate::kernel::compile::implement;
use crate::kernel::cpu::{Avx2, Avx512};
use crate::kernel::vectors::x86_64::{load_lines_64, store_lines_64};
use crate::kernel::word::Word;

implement!(Avx512: Kernel {
    fn to_rows(width: Width, rows: usize, columns: &[u8], out: &mut [u8]) => { match width {
        Width::W1 => to_rows::<u8, 16>,
        Width::W2 => to_rows::<u16, 8>,
        Width::W4 => to_rows::<u32, 4>,
        Width::W8 => to_rows::<u64, 2>,
    } }
});

/// See [`Kernel::to_rows`].
#[inline(always)]
fn to_rows<W: Word, const N: usize>(token: Avx512, _: Width, rows: usize, columns: &[u8], out: &mut [u8]) {
    let tile = Tile::new::<W>(rows, columns.len());
    if !tile.to_rows::<_, W, N>(token, columns, out) && !tile.to_rows::<_, W, N>(Avx2::from(token), columns, out) {
        few_to_rows::<W, N>(token.into(), tile, columns, out);
    }
}

impl Squares for Avx512 {
    type Vector = __m512i;
    const LANES: usize = 4;

    #[inline(always)]
    fn load<const N: usize>(self, bytes: &[u8], stride: usize, count: usize) -> [__m512i; N] {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe { load_lines_64(bytes, stride, count) }
    }

    #[inline(always)]
    fn store<const N: usize>(self, vectors: [__m512i; N], bytes: &mut [u8], stride: usize, count: usize) {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe { store_lines_64(bytes, stride, count, vectors) }
    }

    #[inline(always)]
    fn interleave<W: Word>(self, a: __m512i, b: __m512i) -> [__m512i; 2] {
        // SAFETY: the token `self` proves that this CPU has AVX-512.
        unsafe {
            match W::BYTES {
                1 => [_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)],
                2 => [_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)],
                4 => [_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)],
                _ => [_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)],
            }
        }
    }
}
