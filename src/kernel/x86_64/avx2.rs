//! AVX2: 512 elements in a step, which is one cache line of every plane.
//!
//! A group is `8 * W` bytes: `C` columns of `N` bytes, 16 or a one-byte element's 8. The bytes of
//! its columns are transposed, so that vector `W * t + j` holds byte `j` of element `t` of 32 groups.
//! Transposing the bits across the eight vectors of one `j` then gives 32 bytes of eight planes. The
//! inverse takes the same two steps in reverse.

use std::arch::x86_64::*;

use super::super::{BitShuffle, Width, copy_tail, group_count, scalar, steps};

/// Groups in a step: whole cache lines, so that planes 4096 bytes apart, which all fall into one
/// set of the L1 cache, are each fetched once.
const STEP: usize = 64;

/// Groups in a part of a step: the bytes of a vector.
const PART: usize = 32;

/// Parts of a step.
const PARTS: usize = STEP / PART;

/// The implementation, if this CPU can run it.
pub(in super::super) fn detect() -> Option<BitShuffle> {
    let detected = is_x86_feature_detected!("avx2");
    detected.then_some(BitShuffle { name: "avx2", shuffle, unshuffle })
}

pub(in super::super) fn shuffle(width: Width, src: &[u8], dst: &mut [u8]) {
    if group_count(width.bytes(), src.len()) < STEP {
        return scalar::shuffle(width, src, dst);
    }
    // SAFETY: only `detect`, here and of the tiers, hands this function out, and only where the CPU has AVX2.
    unsafe {
        match width {
            Width::W1 => shuffle_columns::<1, 8>(src, dst),
            Width::W2 => shuffle_columns::<1, 16>(src, dst),
            Width::W4 => shuffle_columns::<2, 16>(src, dst),
            Width::W8 => shuffle_columns::<4, 16>(src, dst),
        }
    }
}

pub(in super::super) fn unshuffle(width: Width, src: &[u8], dst: &mut [u8]) {
    if group_count(width.bytes(), src.len()) < STEP {
        return scalar::unshuffle(width, src, dst);
    }
    // SAFETY: only `detect`, here and of the tiers, hands this function out, and only where the CPU has AVX2.
    unsafe {
        match width {
            Width::W1 => unshuffle_columns::<1, 8>(src, dst),
            Width::W2 => unshuffle_columns::<1, 16>(src, dst),
            Width::W4 => unshuffle_columns::<2, 16>(src, dst),
            Width::W8 => unshuffle_columns::<4, 16>(src, dst),
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn shuffle_columns<const C: usize, const N: usize>(src: &[u8], dst: &mut [u8]) {
    let w = C * N / 8;
    let m = group_count(w, src.len());
    let mut parts = [[[_mm256_setzero_si256(); N]; C]; PARTS];
    for i in steps(m, STEP) {
        let groups = src[8 * w * i..][..8 * w * STEP].chunks_exact(8 * w * PART);
        for (columns, groups) in parts.iter_mut().zip(groups) {
            load_groups(groups, columns);
        }
        for j in 0..w {
            let mut lines = [[_mm256_setzero_si256(); PARTS]; 8];
            for (part, columns) in parts.iter().enumerate() {
                let mut bytes = [_mm256_setzero_si256(); 8];
                for (t, vector) in bytes.iter_mut().enumerate() {
                    *vector = columns.as_flattened()[w * t + j];
                }
                for (line, plane) in lines.iter_mut().zip(&transpose_bits(bytes)) {
                    line[part] = *plane;
                }
            }
            for (bit, line) in lines.iter().enumerate() {
                store_line(&mut dst[(8 * j + bit) * m + i..], line);
            }
        }
    }
    copy_tail(w, src, dst);
}

#[inline]
#[target_feature(enable = "avx2")]
fn unshuffle_columns<const C: usize, const N: usize>(src: &[u8], dst: &mut [u8]) {
    let w = C * N / 8;
    let m = group_count(w, src.len());
    let mut parts = [[[_mm256_setzero_si256(); N]; C]; PARTS];
    for i in steps(m, STEP) {
        for j in 0..w {
            let mut lines = [[_mm256_setzero_si256(); PARTS]; 8];
            for (bit, line) in lines.iter_mut().enumerate() {
                *line = load_line(&src[(8 * j + bit) * m + i..]);
            }
            for (part, columns) in parts.iter_mut().enumerate() {
                let mut planes = [_mm256_setzero_si256(); 8];
                for (plane, line) in planes.iter_mut().zip(&lines) {
                    *plane = line[part];
                }
                for (t, vector) in transpose_bits(planes).iter().enumerate() {
                    columns.as_flattened_mut()[w * t + j] = *vector;
                }
            }
        }
        let groups = dst[8 * w * i..][..8 * w * STEP].chunks_exact_mut(8 * w * PART);
        for (columns, groups) in parts.iter().zip(groups) {
            store_groups(groups, columns);
        }
    }
    copy_tail(w, src, dst);
}

/// Loads 32 groups and transposes them: vector `c` receives byte `c` of each group.
#[inline]
#[target_feature(enable = "avx2")]
fn load_groups<const C: usize, const N: usize>(groups: &[u8], columns: &mut [[__m256i; N]; C]) {
    let (lower, upper) = groups.as_chunks::<16>().0.split_at(C * N);
    for (c, column) in columns.iter_mut().enumerate() {
        let mut rows = [_mm256_setzero_si256(); N];
        for (r, row) in rows.iter_mut().enumerate() {
            *row = load_lanes(&lower[C * r + c], &upper[C * r + c]);
        }
        for _ in 0..4 {
            rows = zip_halves(rows);
        }
        *column = rows;
    }
}

/// Inverse of [`load_groups`].
#[inline]
#[target_feature(enable = "avx2")]
fn store_groups<const C: usize, const N: usize>(groups: &mut [u8], columns: &[[__m256i; N]; C]) {
    let (lower, upper) = groups.as_chunks_mut::<16>().0.split_at_mut(C * N);
    for (c, column) in columns.iter().enumerate() {
        let mut rows = *column;
        for _ in 0..N.ilog2() {
            rows = zip_halves(rows);
        }
        for (r, row) in rows.iter().enumerate() {
            store_lanes(&mut lower[C * r + c], &mut upper[C * r + c], *row);
        }
    }
}

/// Zips the bytes of the first half of the vectors with those of the second, lane by lane.
///
/// With the number of its vector above its place in the lane as the address of a byte, this rotates
/// the bits of the address left by one. Four times bring the 4 bits of the place to the top; as
/// many more as the number of a vector has bits bring them back.
#[inline]
#[target_feature(enable = "avx2")]
fn zip_halves<const N: usize>(vectors: [__m256i; N]) -> [__m256i; N] {
    let mut zipped = [_mm256_setzero_si256(); N];
    for k in 0..N / 2 {
        zipped[2 * k] = _mm256_unpacklo_epi8(vectors[k], vectors[N / 2 + k]);
        zipped[2 * k + 1] = _mm256_unpackhi_epi8(vectors[k], vectors[N / 2 + k]);
    }
    zipped
}

/// Transposes 8 x 8 bits across the vectors: bit `r` of vector `c` of the result is bit `c` of
/// vector `r`.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose_bits(mut x: [__m256i; 8]) -> [__m256i; 8] {
    for k in [0, 1, 2, 3] {
        (x[k], x[k + 4]) = swap_bits::<4>(x[k], x[k + 4], 0x0F);
    }
    for k in [0, 1, 4, 5] {
        (x[k], x[k + 2]) = swap_bits::<2>(x[k], x[k + 2], 0x33);
    }
    for k in [0, 2, 4, 6] {
        (x[k], x[k + 1]) = swap_bits::<1>(x[k], x[k + 1], 0x55);
    }
    x
}

/// Swaps the bits `mask << SHIFT` of each byte of `a` with the bits `mask` of `b`.
#[inline]
#[target_feature(enable = "avx2")]
fn swap_bits<const SHIFT: i32>(a: __m256i, b: __m256i, mask: i8) -> (__m256i, __m256i) {
    let differ = _mm256_xor_si256(_mm256_srli_epi16::<SHIFT>(a), b);
    let differ = _mm256_and_si256(differ, _mm256_set1_epi8(mask));
    (_mm256_xor_si256(a, _mm256_slli_epi16::<SHIFT>(differ)), _mm256_xor_si256(b, differ))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_lanes(lower: &[u8; 16], upper: &[u8; 16]) -> __m256i {
    // SAFETY: both references are good for 16 bytes; the loads need no alignment.
    unsafe { _mm256_loadu2_m128i(upper.as_ptr().cast(), lower.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_lanes(lower: &mut [u8; 16], upper: &mut [u8; 16], vector: __m256i) {
    // SAFETY: both references are good for 16 bytes; the stores need no alignment.
    unsafe { _mm256_storeu2_m128i(upper.as_mut_ptr().cast(), lower.as_mut_ptr().cast(), vector) }
}

/// The first line of `bytes`.
#[inline]
#[target_feature(enable = "avx2")]
fn load_line(bytes: &[u8]) -> [__m256i; PARTS] {
    let line: *const __m256i = bytes[..STEP].as_ptr().cast();
    // SAFETY: the slice is good for two vectors; the loads need no alignment.
    unsafe { [_mm256_loadu_si256(line), _mm256_loadu_si256(line.add(1))] }
}

/// Stores the first line of `bytes`.
#[inline]
#[target_feature(enable = "avx2")]
fn store_line(bytes: &mut [u8], vectors: &[__m256i; PARTS]) {
    let line: *mut __m256i = bytes[..STEP].as_mut_ptr().cast();
    // SAFETY: the slice is good for two vectors; the stores need no alignment.
    unsafe {
        _mm256_storeu_si256(line, vectors[0]);
        _mm256_storeu_si256(line.add(1), vectors[1]);
    }
}
