//! AVX-512 with VBMI and GFNI: 512 elements in a step, which is one cache line of every plane.
//!
//! A vector of 64 elements' bytes is eight matrices of 8 x 8 bits, one for each group.
//! `gf2p8affineqb` multiplies such a matrix, given as its *matrix* operand, with the eight unit
//! vectors, given as *data*: the result is its columns, that is, the transposed matrix. The operand
//! takes its rows last to first, so the byte permutation before it reverses them.

use std::arch::x86_64::*;

use super::super::{BitShuffle, Width, copy_tail, group_count, scalar, steps};

/// Groups in a step: whole cache lines, so that planes 4096 bytes apart, which all fall into one
/// set of the L1 cache, are each fetched once.
const STEP: usize = 64;

/// The implementation, if this CPU can run it.
pub(super) fn detect() -> Option<BitShuffle> {
    let detected = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("gfni");
    detected.then_some(BitShuffle { name: "avx512", shuffle, unshuffle })
}

fn shuffle(width: Width, src: &[u8], dst: &mut [u8]) {
    if group_count(width.bytes(), src.len()) < STEP {
        return scalar::shuffle(width, src, dst);
    }
    // SAFETY: only `detect` hands this function out, and only where the CPU has the features.
    unsafe {
        match width {
            Width::W1 => shuffle_width::<1>(src, dst),
            Width::W2 => shuffle_width::<2>(src, dst),
            Width::W4 => shuffle_width::<4>(src, dst),
            Width::W8 => shuffle_width::<8>(src, dst),
        }
    }
}

fn unshuffle(width: Width, src: &[u8], dst: &mut [u8]) {
    if group_count(width.bytes(), src.len()) < STEP {
        return scalar::unshuffle(width, src, dst);
    }
    // SAFETY: only `detect` hands this function out, and only where the CPU has the features.
    unsafe {
        match width {
            Width::W1 => unshuffle_width::<1>(src, dst),
            Width::W2 => unshuffle_width::<2>(src, dst),
            Width::W4 => unshuffle_width::<4>(src, dst),
            Width::W8 => unshuffle_width::<8>(src, dst),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn shuffle_width<const W: usize>(src: &[u8], dst: &mut [u8]) {
    let m = group_count(W, src.len());
    let mut bytes = [[_mm512_setzero_si512(); 8]; W];
    for i in steps(m, STEP) {
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
                store(line_mut(dst, (8 * j + bit) * m + i), *plane);
            }
        }
    }
    copy_tail(W, src, dst);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn unshuffle_width<const W: usize>(src: &[u8], dst: &mut [u8]) {
    let m = group_count(W, src.len());
    let mut bytes = [[_mm512_setzero_si512(); 8]; W];
    for i in steps(m, STEP) {
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
                store(out, *vector);
            }
        }
    }
    copy_tail(W, src, dst);
}

/// Splits 64 elements into `W` vectors: byte 0 of each element, byte 1, and so on. Each eight bytes
/// are in reverse.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi")]
pub(in super::super) fn split_bytes<const W: usize>(elements: &[[u8; 64]]) -> [__m512i; W] {
    let order = load(const { &split_order::<W>() });
    let mut vectors = [_mm512_setzero_si512(); W];
    for (vector, bytes) in vectors.iter_mut().zip(elements) {
        *vector = _mm512_permutexvar_epi8(order, load(bytes));
    }
    transpose_units(&mut vectors);
    vectors
}

/// Joins `W` vectors, byte 0 of 64 elements, byte 1, and so on, to elements.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(in super::super) fn join_bytes<const W: usize>(mut vectors: [__m512i; W]) -> [__m512i; W] {
    if let [low, high] = &mut vectors[..] {
        // `plane_order` has put the groups where these two in-lane steps want them.
        (*low, *high) = (_mm512_unpacklo_epi8(*low, *high), _mm512_unpackhi_epi8(*low, *high));
    } else if W > 2 {
        transpose_units(&mut vectors);
        let order = load(const { &join_order::<W>() });
        for vector in &mut vectors {
            *vector = _mm512_permutexvar_epi8(order, *vector);
        }
    }
    vectors
}

/// The eight plane lines of 512 bytes, given with each eight bytes in reverse.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
fn to_planes(mut vectors: [__m512i; 8]) -> [__m512i; 8] {
    let order = load(const { &TRANSPOSE });
    for vector in &mut vectors {
        *vector = _mm512_permutexvar_epi8(order, transpose_bits(*vector));
    }
    transpose_units(&mut vectors);
    vectors
}

/// The 512 bytes of which `lines` are the plane lines.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi,gfni")]
fn from_planes<const W: usize>(lines: [&[u8; 64]; 8]) -> [__m512i; 8] {
    let order = load(const { &plane_order::<W>() });
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

/// Transposes each eight bytes as a matrix of 8 x 8 bits, the last byte being row 0.
#[inline]
#[target_feature(enable = "avx512f,gfni")]
pub(in super::super) fn transpose_bits(rows: __m512i) -> __m512i {
    let identity = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
    _mm512_gf2p8affine_epi64_epi8::<0>(identity, rows)
}

/// Transposes a square of 2, 4 or 8 vectors, each of as many equal units.
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

/// Permutation that turns 8 x 8 bytes around.
pub(in super::super) const TRANSPOSE: [u8; 64] = {
    let mut order = [0; 64];
    let mut k = 0;
    while k < 64 {
        order[k] = (k % 8 * 8 + k / 8) as u8;
        k += 1;
    }
    order
};

/// Permutation that brings byte `j` of each element into unit `j`, each eight bytes in reverse.
pub(in super::super) const fn split_order<const W: usize>() -> [u8; 64] {
    let mut order = [0; 64];
    let mut k = 0;
    while k < 64 {
        let (j, element) = (k / (64 / W), k % (64 / W));
        order[k] = ((element ^ 7) * W + j) as u8;
        k += 1;
    }
    order
}

/// Permutation that joins elements whose byte `j` is in unit `j`.
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

/// Permutation that brings the eight plane bytes of each group together, in reverse. For two-byte
/// elements, groups 0 to 3 go to the lower half of each lane and groups 4 to 7 to the upper.
pub(in super::super) const fn plane_order<const W: usize>() -> [u8; 64] {
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

/// The cache line of `bytes` at offset `at`.
#[inline]
fn line(bytes: &[u8], at: usize) -> &[u8; 64] {
    &bytes[at..].as_chunks().0[0]
}

/// The cache line of `bytes` at offset `at`.
#[inline]
fn line_mut(bytes: &mut [u8], at: usize) -> &mut [u8; 64] {
    &mut bytes[at..].as_chunks_mut().0[0]
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(in super::super) fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the reference is good for 64 bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(in super::super) fn store(bytes: &mut [u8; 64], vector: __m512i) {
    // SAFETY: the reference is good for 64 bytes; the store needs no alignment.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), vector) }
}

/// The 16 bytes at `16 * lane` of four lines.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_lanes([a, b, c, d]: [&[u8; 64]; 4], lane: usize) -> __m512i {
    let vector = _mm512_castsi128_si512(load_lane(a, lane));
    let vector = _mm512_inserti32x4::<1>(vector, load_lane(b, lane));
    let vector = _mm512_inserti32x4::<2>(vector, load_lane(c, lane));
    _mm512_inserti32x4::<3>(vector, load_lane(d, lane))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_lane(bytes: &[u8; 64], lane: usize) -> __m128i {
    let bytes = &bytes.as_chunks::<16>().0[lane];
    // SAFETY: the reference is good for 16 bytes; the load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}
