//! AVX-512 with VBMI and GFNI: 512 elements per step.
//!
//! A vector that has one byte of each of 64 elements consists of eight matrices of 8 x 8 bits, one
//! for each group. `gf2p8affineqb` multiplies each matrix in its *matrix* operand by the vectors in
//! its *data* operand. If these are the eight unit vectors, the results are the columns of the
//! matrix, so the instruction transposes it. It expects the rows of a matrix from last to first, so
//! the byte permutation before it reverses the rows.

use std::arch::x86_64::*;

use super::{Kernel, STEP, copy_tail, group_count, line, line_mut, steps};
use crate::kernel::dispatch::{Avx512, Scalar, implement};
use crate::kernel::vectors::x86_64::{load_16, load_64, store_64};
use crate::kernel::{Width, Word};

implement!([Avx512] Kernel {
    fn shuffle(width: Width, src: &[u8], dst: &mut [u8]) => { for W in width => shuffle::<{ W::BYTES }> }
    fn unshuffle(width: Width, src: &[u8], dst: &mut [u8]) => { for W in width => unshuffle::<{ W::BYTES }> }
});

/// [`Kernel::shuffle`] for elements of `W` bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn shuffle<const W: usize>(_: Avx512, width: Width, src: &[u8], dst: &mut [u8]) {
    let m = group_count(W, src.len());
    if m < STEP {
        return Scalar.shuffle(width, src, dst);
    }
    let mut bytes = [[_mm512_setzero_si512(); 8]; W];
    for i in steps(m) {
        let elements = &src[8 * W * i..][..8 * W * STEP];
        for (v, part) in elements.as_chunks::<64>().0.chunks_exact(W).enumerate() {
            let vectors = split_bytes::<W>(part);
            for j in 0..W {
                bytes[j][v] = vectors[j];
            }
        }
        for (j, vectors) in bytes.iter().enumerate() {
            let planes = to_planes(*vectors);
            for (bit, plane) in planes.iter().enumerate() {
                store_64(line_mut(dst, (8 * j + bit) * m + i), *plane);
            }
        }
    }
    copy_tail(W, src, dst);
}

/// [`Kernel::unshuffle`] for elements of `W` bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn unshuffle<const W: usize>(_: Avx512, width: Width, src: &[u8], dst: &mut [u8]) {
    let m = group_count(W, src.len());
    if m < STEP {
        return Scalar.unshuffle(width, src, dst);
    }
    let mut bytes = [[_mm512_setzero_si512(); 8]; W];
    for i in steps(m) {
        for (j, vectors) in bytes.iter_mut().enumerate() {
            *vectors = from_planes::<W>(std::array::from_fn(|bit| line(src, (8 * j + bit) * m + i)));
        }
        let elements = &mut dst[8 * W * i..][..8 * W * STEP];
        for (v, part) in elements.as_chunks_mut::<64>().0.chunks_exact_mut(W).enumerate() {
            let mut vectors = [_mm512_setzero_si512(); W];
            for j in 0..W {
                vectors[j] = bytes[j][v];
            }
            let vectors = join_bytes(vectors);
            for (out, vector) in part.iter_mut().zip(&vectors) {
                store_64(out, *vector);
            }
        }
    }
    copy_tail(W, src, dst);
}

/// Returns the 64 bytes that have these eight bit planes.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
pub(in crate::kernel) fn bytes_of_planes(planes: __m512i) -> __m512i {
    let order = load_64(const { &plane_order::<1>() });
    transpose_bits(_mm512_permutexvar_epi8(order, planes))
}

/// Returns the 64 elements that have these bit planes. Each plane has 8 bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(in crate::kernel) fn elements_of_planes<const W: usize>(planes: &[[u8; 64]; W]) -> [__m512i; W] {
    let order = load_64(const { &plane_order::<W>() });
    let mut bytes = [_mm512_setzero_si512(); W];
    for (bytes, planes) in bytes.iter_mut().zip(planes) {
        *bytes = transpose_bits(_mm512_permutexvar_epi8(order, load_64(planes)));
    }
    join_bytes(bytes)
}

/// Splits 64 elements into `W` vectors: byte 0 of each element, byte 1, and so on. The bytes of
/// each group are in reverse order.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi")]
fn split_bytes<const W: usize>(elements: &[[u8; 64]]) -> [__m512i; W] {
    let order = load_64(const { &split_order::<W>() });
    let mut vectors = [_mm512_setzero_si512(); W];
    for (vector, bytes) in vectors.iter_mut().zip(elements) {
        *vector = _mm512_permutexvar_epi8(order, load_64(bytes));
    }
    transpose_units(&mut vectors);
    vectors
}

/// Joins `W` vectors (byte 0 of each element, byte 1, and so on) into 64 elements.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn join_bytes<const W: usize>(mut vectors: [__m512i; W]) -> [__m512i; W] {
    if let [low, high] = &mut vectors[..] {
        // `plane_order` has brought the groups into the lanes that these two steps need
        (*low, *high) = (_mm512_unpacklo_epi8(*low, *high), _mm512_unpackhi_epi8(*low, *high));
    } else if W > 2 {
        transpose_units(&mut vectors);
        let order = load_64(const { &join_order::<W>() });
        for vector in &mut vectors {
            *vector = _mm512_permutexvar_epi8(order, *vector);
        }
    }
    vectors
}

/// Returns the cache line of each of the eight planes of 512 bytes. In `vectors`, the bytes of each
/// group are in reverse order.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
fn to_planes(mut vectors: [__m512i; 8]) -> [__m512i; 8] {
    let order = load_64(const { &TRANSPOSE });
    for vector in &mut vectors {
        *vector = _mm512_permutexvar_epi8(order, transpose_bits(*vector));
    }
    transpose_units(&mut vectors);
    vectors
}

/// Returns the 512 bytes whose eight planes have these cache lines.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
fn from_planes<const W: usize>(lines: [&[u8; 64]; 8]) -> [__m512i; 8] {
    let order = load_64(const { &plane_order::<W>() });
    let mut vectors = [_mm512_setzero_si512(); 8];
    for lane in 0..4 {
        let even = load_lanes([lines[0], lines[2], lines[4], lines[6]], lane);
        let odd = load_lanes([lines[1], lines[3], lines[5], lines[7]], lane);
        vectors[2 * lane] = _mm512_unpacklo_epi64(even, odd);
        vectors[2 * lane + 1] = _mm512_unpackhi_epi64(even, odd);
    }
    for vector in &mut vectors {
        *vector = transpose_bits(_mm512_permutexvar_epi8(order, *vector));
    }
    vectors
}

/// Transposes each group of eight bytes as a matrix of 8 x 8 bits. The last byte is row 0.
#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn transpose_bits(rows: __m512i) -> __m512i {
    let identity = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
    _mm512_gf2p8affine_epi64_epi8::<0>(identity, rows)
}

/// Transposes a square: 2, 4 or 8 vectors, each divided into as many equal units as there are
/// vectors.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose_units(vectors: &mut [__m512i]) {
    match vectors {
        [a, b] => {
            (*a, *b) = (_mm512_shuffle_i64x2::<0b01_00_01_00>(*a, *b), _mm512_shuffle_i64x2::<0b11_10_11_10>(*a, *b));
        }
        [a, b, c, d] => [*a, *b, *c, *d] = transpose_lanes([*a, *b, *c, *d]),
        [a, b, c, d, e, f, g, h] => {
            let even = transpose_lanes([
                _mm512_unpacklo_epi64(*a, *b),
                _mm512_unpacklo_epi64(*c, *d),
                _mm512_unpacklo_epi64(*e, *f),
                _mm512_unpacklo_epi64(*g, *h),
            ]);
            let odd = transpose_lanes([
                _mm512_unpackhi_epi64(*a, *b),
                _mm512_unpackhi_epi64(*c, *d),
                _mm512_unpackhi_epi64(*e, *f),
                _mm512_unpackhi_epi64(*g, *h),
            ]);
            [*a, *c, *e, *g] = even;
            [*b, *d, *f, *h] = odd;
        }
        _ => {}
    }
}

/// Transposes 4 x 4 lanes of 16 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose_lanes([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let ab_low = _mm512_shuffle_i64x2::<0b01_00_01_00>(a, b);
    let ab_high = _mm512_shuffle_i64x2::<0b11_10_11_10>(a, b);
    let cd_low = _mm512_shuffle_i64x2::<0b01_00_01_00>(c, d);
    let cd_high = _mm512_shuffle_i64x2::<0b11_10_11_10>(c, d);
    [
        _mm512_shuffle_i64x2::<0b10_00_10_00>(ab_low, cd_low),
        _mm512_shuffle_i64x2::<0b11_01_11_01>(ab_low, cd_low),
        _mm512_shuffle_i64x2::<0b10_00_10_00>(ab_high, cd_high),
        _mm512_shuffle_i64x2::<0b11_01_11_01>(ab_high, cd_high),
    ]
}

/// The permutation that transposes 8 x 8 bytes.
const TRANSPOSE: [u8; 64] = {
    let mut order = [0; 64];
    let mut k = 0;
    while k < 64 {
        order[k] = (k % 8 * 8 + k / 8) as u8;
        k += 1;
    }
    order
};

/// The permutation that moves byte `j` of each element to unit `j`, with the bytes of each group in
/// reverse order.
const fn split_order<const W: usize>() -> [u8; 64] {
    let mut order = [0; 64];
    let mut k = 0;
    while k < 64 {
        let (j, element) = (k / (64 / W), k % (64 / W));
        order[k] = ((element ^ 7) * W + j) as u8;
        k += 1;
    }
    order
}

/// The permutation that joins elements whose byte `j` is in unit `j`.
const fn join_order<const W: usize>() -> [u8; 64] {
    let mut order = [0; 64];
    let mut k = 0;
    while k < 64 {
        let (element, j) = (k / W, k % W);
        order[k] = (j * (64 / W) + element) as u8;
        k += 1;
    }
    order
}

/// The permutation that gathers the eight plane bytes of each group, in reverse order. If elements
/// have two bytes, groups 0 to 3 go to the lower halves of the lanes, and groups 4 to 7 to the
/// upper halves.
const fn plane_order<const W: usize>() -> [u8; 64] {
    let mut order = [0; 64];
    let mut k = 0;
    while k < 64 {
        let (slot, bit) = (k / 8, 7 - k % 8);
        let group = if W == 2 { slot / 2 + slot % 2 * 4 } else { slot };
        order[k] = (bit * 8 + group) as u8;
        k += 1;
    }
    order
}

/// Loads lane `lane` of four cache lines.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_lanes(lines: [&[u8; 64]; 4], lane: usize) -> __m512i {
    let [a, b, c, d] = lines.map(|line| load_16(&line.as_chunks().0[lane])); // in bounds: lane < 4
    let vector = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(a), b);
    _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(vector, c), d)
}
