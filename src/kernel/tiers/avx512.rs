//! AVX-512 with VBMI2 and GFNI: a group is one vector.
//!
//! Planes become codes, and codes planes, as in the bit-shuffle. `vpexpandb` spreads escapes over
//! the symbols, and `vpcompressb` collects them.

use std::arch::x86_64::*;
use std::ops::Range;

use super::generic::escape_mask;
use super::{GROUP, GROUP_BYTES, Kernel, generic};
use crate::kernel::bitshuffle::avx512::{bytes_of_planes, planes_of_bytes};
use crate::kernel::compile::implement;
use crate::kernel::cpu::Avx512;
use crate::kernel::vectors::x86_64::{
    load_16, load_64, load_up_to_64, look_up_256, lowest_bits, store_64, store_up_to_64,
};

implement!(Avx512: Kernel {
    fn merge(width: usize, codes: &[u8], last: &[u8; GROUP_BYTES], table: &[u8; 16], escaped: &[u8], out: &mut [u8]) -> usize => { match width {
        1 => merge::<1>,
        2 => merge::<2>,
        3 => merge::<3>,
        _ => merge::<4>,
    } }
    fn split(width: usize, code_of: &[u8; 256], symbols: &[u8], codes: &mut [u8], escaped: &mut [u8]) -> usize => { match width {
        1 => split::<1>,
        2 => split::<2>,
        3 => split::<3>,
        _ => split::<4>,
    } }
    fn escapes(width: usize, codes: &[u8], range: Range<usize>) -> usize => { escapes }
});

/// See [`Kernel::escapes`]. Compiled without AVX-512, because counting in vectors takes longer.
#[inline(never)]
#[target_feature(enable = "popcnt")]
fn escapes(token: Avx512, width: usize, codes: &[u8], range: Range<usize>) -> usize {
    generic::escapes(token, width, codes, range)
}

/// [`Kernel::merge`] of codes of `W` bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,gfni,bmi2,popcnt")]
fn merge<const W: usize>(
    _: Avx512,
    _: usize,
    codes: &[u8],
    last: &[u8; GROUP_BYTES],
    table: &[u8; 16],
    escaped: &[u8],
    out: &mut [u8],
) -> usize {
    let table = _mm512_broadcast_i32x4(load_16(table));
    let mut escapes = 0;
    let (whole, rest) = out.as_chunks_mut::<GROUP>();
    for (out, group) in whole.iter_mut().zip(codes.chunks_exact(8 * W)) {
        let mask = escape_mask(group.as_chunks().0);
        let next = load_up_to_64(escaped.get(escapes..).unwrap_or(&[]));
        store_64(out, _mm512_mask_expand_epi8(symbols(group, table), mask, next));
        escapes += mask.count_ones() as usize; // exact: at most 64
    }
    if !rest.is_empty() {
        let group = &last[..8 * W]; // in bounds: W is at most 4
        let mask = escape_mask(group.as_chunks().0) & lowest_bits(rest.len());
        let next = load_up_to_64(escaped.get(escapes..).unwrap_or(&[]));
        store_up_to_64(rest, _mm512_mask_expand_epi8(symbols(group, table), mask, next));
        escapes += mask.count_ones() as usize; // exact: at most 64
    }
    escapes
}

/// Returns the symbols of a group of codes. Each lane of `table` has the symbols of all codes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni,bmi2")]
fn symbols(group: &[u8], table: __m512i) -> __m512i {
    _mm512_shuffle_epi8(table, bytes_of_planes(load_up_to_64(group)))
}

/// [`Kernel::split`] of codes of `W` bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,gfni,bmi2,popcnt")]
fn split<const W: usize>(
    _: Avx512,
    _: usize,
    code_of: &[u8; 256],
    symbols: &[u8],
    codes: &mut [u8],
    escaped: &mut [u8],
) -> usize {
    let mut tables = [_mm512_setzero_si512(); 4];
    for (table, codes) in tables.iter_mut().zip(code_of.as_chunks().0) {
        *table = load_64(codes);
    }
    let mut escapes = 0;
    for (symbols, codes) in symbols.chunks(GROUP).zip(codes.chunks_exact_mut(8 * W)) {
        let present = lowest_bits(symbols.len());
        let symbols = load_up_to_64(symbols);
        let group = _mm512_maskz_mov_epi8(present, look_up_256(&tables, symbols));
        store_up_to_64(codes, planes_of_bytes(group));
        let escape = _mm512_set1_epi8((1 << W) - 1);
        let mask = _mm512_mask_cmpeq_epi8_mask(present, _mm512_and_si512(group, escape), escape);
        // the next escapes overwrite the bytes after these
        store_up_to_64(escaped.get_mut(escapes..).unwrap_or(&mut []), _mm512_maskz_compress_epi8(mask, symbols));
        escapes += mask.count_ones() as usize; // exact: at most 64
    }
    escapes
}
