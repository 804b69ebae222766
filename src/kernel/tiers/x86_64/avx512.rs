//! AVX-512 with VBMI2 and GFNI: a group of 64 codes or elements in a step.
//!
//! Planes become codes or elements, and the reverse, as in the bit-shuffle of the same instruction set. Escapes are spread over
//! the symbols by `vpexpandb` and collected by `vpcompressb`, extra bits by `pdep` and `pext`.

use std::arch::x86_64::*;
use std::ops::Range;

use super::super::portable::{self, BLOCK, copy};
use super::super::{GROUP, Kernel, Tiers};
use crate::kernel::Width;
use crate::kernel::x86_64::avx512::{
    TRANSPOSE, join_bytes, load, plane_order, split_bytes, split_order, store, transpose_bits,
};

/// The implementation, if this CPU can run it.
pub(super) fn detect() -> Option<Tiers> {
    let detected = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("gfni")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    detected.then_some(Tiers { name: "avx512", kernel: &Avx512 })
}

struct Avx512;

// SAFETY, of all calls: only `detect` hands this out, and only where the CPU has the features.
impl Kernel for Avx512 {
    fn merge(&self, width: usize, codes: &[u8], table: &[u8; 16], escaped: &[u8], out: &mut [u8]) -> usize {
        // SAFETY: see above.
        unsafe {
            match width {
                1 => merge::<1>(codes, table, escaped, out),
                2 => merge::<2>(codes, table, escaped, out),
                3 => merge::<3>(codes, table, escaped, out),
                _ => merge::<4>(codes, table, escaped, out),
            }
        }
    }

    fn split(&self, width: usize, code_of: &[u8; 256], symbols: &[u8], codes: &mut [u8], escaped: &mut [u8]) -> usize {
        // SAFETY: see above.
        unsafe {
            match width {
                1 => split::<1>(code_of, symbols, codes, escaped),
                2 => split::<2>(code_of, symbols, codes, escaped),
                3 => split::<3>(code_of, symbols, codes, escaped),
                _ => split::<4>(code_of, symbols, codes, escaped),
            }
        }
    }

    fn escapes(&self, width: usize, codes: &[u8], range: Range<usize>) -> usize {
        // SAFETY: see above.
        unsafe { escapes(width, codes, range) }
    }

    fn lengths(&self, width: Width, elements: &[u8], out: &mut [u8]) {
        // SAFETY: see above.
        unsafe { lengths(width, elements, out) }
    }

    fn deposit(&self, width: Width, lengths: &[u8], bits: &[u8], at: usize, out: &mut [u8]) -> usize {
        // SAFETY: see above.
        unsafe {
            match width {
                Width::W1 => deposit::<1>(lengths, bits, at, out),
                Width::W2 => deposit::<2>(lengths, bits, at, out),
                Width::W4 => deposit::<4>(lengths, bits, at, out),
                Width::W8 => deposit::<8>(lengths, bits, at, out),
            }
        }
    }

    fn extract(&self, width: Width, lengths: &[u8], elements: &[u8], words: &mut [u64], at: usize) -> usize {
        // SAFETY: see above.
        unsafe {
            match width {
                Width::W1 => extract::<1>(lengths, elements, words, at),
                Width::W2 => extract::<2>(lengths, elements, words, at),
                Width::W4 => extract::<4>(lengths, elements, words, at),
                Width::W8 => extract::<8>(lengths, elements, words, at),
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,gfni,bmi2,popcnt")]
fn merge<const W: usize>(codes: &[u8], table: &[u8; 16], escaped: &[u8], out: &mut [u8]) -> usize {
    let table = broadcast(table);
    let mut escapes = 0;
    let mut groups = codes.chunks_exact(8 * W);
    let (whole, rest) = out.as_chunks_mut::<GROUP>();
    for (out, group) in whole.iter_mut().zip(&mut groups) {
        let mask = portable::escape_mask(group);
        let next = load_up_to(escaped.get(escapes..).unwrap_or(&[]));
        store(out, _mm512_mask_expand_epi8(symbols::<W>(group, table), mask, next));
        escapes += mask.count_ones() as usize; // exact: at most 64
    }
    if let Some(group) = groups.next() {
        let mask = portable::escape_mask(group) & lowest(rest.len());
        let next = load_up_to(escaped.get(escapes..).unwrap_or(&[]));
        store_up_to(rest, _mm512_mask_expand_epi8(symbols::<W>(group, table), mask, next));
        escapes += mask.count_ones() as usize; // exact: at most 64
    }
    escapes
}

#[target_feature(enable = "popcnt")]
fn escapes(width: usize, codes: &[u8], range: Range<usize>) -> usize {
    super::super::escapes(width, codes, range)
}

/// The symbols of a group of codes, in `table`, which is the same in each lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni,bmi2")]
fn symbols<const W: usize>(group: &[u8], table: __m512i) -> __m512i {
    let planes = _mm512_permutexvar_epi8(load(const { &plane_order::<1>() }), load_up_to(group));
    _mm512_shuffle_epi8(table, transpose_bits(planes))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,gfni,bmi2,popcnt")]
fn split<const W: usize>(code_of: &[u8; 256], symbols: &[u8], codes: &mut [u8], escaped: &mut [u8]) -> usize {
    let mut tables = [_mm512_setzero_si512(); 4];
    for (table, codes) in tables.iter_mut().zip(code_of.as_chunks().0) {
        *table = load(codes);
    }
    let mut escapes = 0;
    for (symbols, codes) in symbols.chunks(GROUP).zip(codes.chunks_exact_mut(8 * W)) {
        let present = lowest(symbols.len());
        let symbols = load_up_to(symbols);
        let group = _mm512_maskz_mov_epi8(present, look_up(&tables, symbols));
        store_up_to(codes, planes_of(group));
        let escape = _mm512_set1_epi8((1 << W) - 1);
        let mask = _mm512_mask_cmpeq_epi8_mask(present, _mm512_and_si512(group, escape), escape);
        // what follows the escapes is overwritten by the next ones
        store_up_to(escaped.get_mut(escapes..).unwrap_or(&mut []), _mm512_maskz_compress_epi8(mask, symbols));
        escapes += mask.count_ones() as usize; // exact: at most 64
    }
    escapes
}

/// The entry of each byte in a table of 256.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn look_up([a, b, c, d]: &[__m512i; 4], bytes: __m512i) -> __m512i {
    let low = _mm512_permutex2var_epi8(*a, bytes, *b);
    let high = _mm512_permutex2var_epi8(*c, bytes, *d);
    _mm512_mask_blend_epi8(_mm512_movepi8_mask(bytes), low, high)
}

/// The eight planes of 64 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
fn planes_of(bytes: __m512i) -> __m512i {
    planes_of_reversed(_mm512_permutexvar_epi8(load(const { &split_order::<1>() }), bytes))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512cd,lzcnt")]
fn lengths(width: Width, elements: &[u8], out: &mut [u8]) {
    portable::lengths(width, elements, out);
}

/// The eight planes of 64 bytes, given with each eight in reverse.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
fn planes_of_reversed(bytes: __m512i) -> __m512i {
    _mm512_permutexvar_epi8(load(const { &TRANSPOSE }), transpose_bits(bytes))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni,bmi1,bmi2,popcnt")]
fn deposit<const W: usize>(lengths: &[u8], bits: &[u8], mut at: usize, out: &mut [u8]) -> usize {
    let blocks = lengths.chunks(BLOCK * GROUP).zip(out.chunks_mut(BLOCK * GROUP * W));
    for (lengths, out) in blocks {
        let mut block = [[[0; 64]; W]; BLOCK];
        for (lengths, planes) in lengths.chunks(GROUP).zip(&mut block) {
            let lengths = load_up_to(lengths);
            let (words, _) = planes.as_flattened_mut().as_chunks_mut();
            let (pairs, _) = words.as_chunks_mut();
            let pairs = pairs.iter_mut().map(|[even, odd]| [even, odd]);
            at = portable::deposit_planes(pairs, bits, at, nonzero(lengths), |bits, mask| _pdep_u64(bits, mask));
        }
        for (planes, out) in block.iter().zip(out.chunks_mut(GROUP * W)) {
            for (vector, out) in elements(planes).into_iter().zip(out.chunks_mut(64)) {
                store_up_to(out, vector);
            }
        }
    }
    at
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni,bmi1,bmi2,popcnt")]
fn extract<const W: usize>(lengths: &[u8], elements: &[u8], words: &mut [u64], at: usize) -> usize {
    let mut writer = portable::BitWriter::new(words, at);
    let blocks = lengths.chunks(BLOCK * GROUP).zip(elements.chunks(BLOCK * GROUP * W));
    for (lengths, elements) in blocks {
        let mut block = [[[0; 64]; W]; BLOCK];
        for (planes, elements) in block.iter_mut().zip(elements.chunks(GROUP * W)) {
            element_planes(elements, planes);
        }
        for (lengths, planes) in lengths.chunks(GROUP).zip(&block) {
            let lengths = load_up_to(lengths);
            let planes = planes.as_flattened().as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
            portable::extract_planes(planes, &mut writer, nonzero(lengths), |plane, mask| _pext_u64(plane, mask));
        }
    }
    writer.finish()
}

/// Call by call, which lengths are greater than 0, 1, 2 and so on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn nonzero(mut lengths: __m512i) -> impl FnMut() -> u64 {
    move || {
        let mask = _mm512_test_epi8_mask(lengths, lengths);
        lengths = _mm512_subs_epu8(lengths, _mm512_set1_epi8(1));
        mask
    }
}

/// The elements of a group, of which these are the planes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn elements<const W: usize>(planes: &[[u8; 64]; W]) -> [__m512i; W] {
    let order = load(const { &plane_order::<W>() });
    let mut bytes = [_mm512_setzero_si512(); W];
    for (bytes, planes) in bytes.iter_mut().zip(planes) {
        *bytes = transpose_bits(_mm512_permutexvar_epi8(order, load(planes)));
    }
    join_bytes(bytes)
}

/// The planes of a group of elements, the last of which may be missing.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn element_planes<const W: usize>(elements: &[u8], planes: &mut [[u8; 64]; W]) {
    let vectors = match elements.as_chunks() {
        (whole, []) if whole.len() == W => split_bytes::<W>(whole),
        _ => {
            let mut group = [[0; 64]; W];
            copy(elements, group.as_flattened_mut());
            split_bytes::<W>(&group)
        }
    };
    for (planes, bytes) in planes.iter_mut().zip(vectors) {
        store(planes, planes_of_reversed(bytes));
    }
}

/// The lowest `count` bits.
#[inline]
#[target_feature(enable = "bmi2")]
fn lowest(count: usize) -> u64 {
    _bzhi_u64(u64::MAX, count.min(64) as u32) // exact
}

/// The first 64 bytes of `bytes`, or all there are and zeros.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
fn load_up_to(bytes: &[u8]) -> __m512i {
    match bytes.first_chunk() {
        Some(bytes) => load(bytes),
        // SAFETY: the mask selects no byte beyond the slice, and no other is read.
        None => unsafe { _mm512_maskz_loadu_epi8(lowest(bytes.len()), bytes.as_ptr().cast()) },
    }
}

/// Stores as much of the vector as there is room for.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
fn store_up_to(bytes: &mut [u8], vector: __m512i) {
    match bytes.first_chunk_mut() {
        Some(bytes) => store(bytes, vector),
        // SAFETY: the mask selects no byte beyond the slice, and no other is written.
        None => unsafe { _mm512_mask_storeu_epi8(bytes.as_mut_ptr().cast(), lowest(bytes.len()), vector) },
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast(bytes: &[u8; 16]) -> __m512i {
    // SAFETY: the reference is good for 16 bytes; the load needs no alignment.
    _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
}
