//! NEON, for aarch64: 512 elements in a step, which is one cache line of every plane.
//!
//! A group is `8 * W` bytes: `C` columns of `N` bytes, 16 or a one-byte element's 8. The bytes of
//! its columns are transposed, so that vector `W * t + j` holds byte `j` of element `t` of 16 groups.
//! Transposing the bits across the eight vectors of one `j` then gives 16 bytes of eight planes. The
//! inverse takes the same two steps in reverse.

use std::arch::aarch64::*;
use std::arch::is_aarch64_feature_detected;

use super::{BitShuffle, Width, copy_tail, group_count, scalar, steps};

/// Groups in a step: whole cache lines, so that planes 4096 bytes apart, which all fall into one
/// set of the L1 cache, are each fetched once.
const STEP: usize = 64;

/// Groups in a part of a step: the bytes of a vector.
const PART: usize = 16;

/// Parts of a step.
const PARTS: usize = STEP / PART;

/// The implementation, if this CPU can run it.
pub(super) fn detect() -> Option<BitShuffle> {
    let detected = is_aarch64_feature_detected!("neon");
    detected.then_some(BitShuffle { name: "neon", shuffle, unshuffle })
}

pub(super) fn shuffle(width: Width, src: &[u8], dst: &mut [u8]) {
    if group_count(width.bytes(), src.len()) < STEP {
        return scalar::shuffle(width, src, dst);
    }
    // SAFETY: only `detect`, here and of the tiers, hands this function out, and only where the CPU has NEON.
    unsafe {
        match width {
            Width::W1 => shuffle_columns::<1, 8>(src, dst),
            Width::W2 => shuffle_columns::<1, 16>(src, dst),
            Width::W4 => shuffle_columns::<2, 16>(src, dst),
            Width::W8 => shuffle_columns::<4, 16>(src, dst),
        }
    }
}

pub(super) fn unshuffle(width: Width, src: &[u8], dst: &mut [u8]) {
    if group_count(width.bytes(), src.len()) < STEP {
        return scalar::unshuffle(width, src, dst);
    }
    // SAFETY: only `detect`, here and of the tiers, hands this function out, and only where the CPU has NEON.
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
#[target_feature(enable = "neon")]
fn shuffle_columns<const C: usize, const N: usize>(src: &[u8], dst: &mut [u8]) {
    let w = C * N / 8;
    let m = group_count(w, src.len());
    let mut parts = [[[vdupq_n_u8(0); N]; C]; PARTS];
    for i in steps(m, STEP) {
        let groups = src[8 * w * i..][..8 * w * STEP].chunks_exact(8 * w * PART);
        for (columns, groups) in parts.iter_mut().zip(groups) {
            load_groups(groups, columns);
        }
        for j in 0..w {
            let mut lines = [[vdupq_n_u8(0); PARTS]; 8];
            for (part, columns) in parts.iter().enumerate() {
                let mut bytes = [vdupq_n_u8(0); 8];
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
#[target_feature(enable = "neon")]
fn unshuffle_columns<const C: usize, const N: usize>(src: &[u8], dst: &mut [u8]) {
    let w = C * N / 8;
    let m = group_count(w, src.len());
    let mut parts = [[[vdupq_n_u8(0); N]; C]; PARTS];
    for i in steps(m, STEP) {
        for j in 0..w {
            let mut lines = [[vdupq_n_u8(0); PARTS]; 8];
            for (bit, line) in lines.iter_mut().enumerate() {
                *line = load_line(&src[(8 * j + bit) * m + i..]);
            }
            for (part, columns) in parts.iter_mut().enumerate() {
                let mut planes = [vdupq_n_u8(0); 8];
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

/// Loads 16 groups and transposes them: vector `c` receives byte `c` of each group.
#[inline]
#[target_feature(enable = "neon")]
fn load_groups<const C: usize, const N: usize>(groups: &[u8], columns: &mut [[uint8x16_t; N]; C]) {
    let groups = groups.as_chunks().0;
    for (c, column) in columns.iter_mut().enumerate() {
        let mut rows = [vdupq_n_u8(0); N];
        for (r, row) in rows.iter_mut().enumerate() {
            *row = load(&groups[C * r + c]);
        }
        for _ in 0..4 {
            rows = zip_halves(rows);
        }
        *column = rows;
    }
}

/// Inverse of [`load_groups`].
#[inline]
#[target_feature(enable = "neon")]
fn store_groups<const C: usize, const N: usize>(groups: &mut [u8], columns: &[[uint8x16_t; N]; C]) {
    let groups = groups.as_chunks_mut().0;
    for (c, column) in columns.iter().enumerate() {
        let mut rows = *column;
        for _ in 0..N.ilog2() {
            rows = zip_halves(rows);
        }
        for (r, row) in rows.iter().enumerate() {
            store(&mut groups[C * r + c], *row);
        }
    }
}

/// Zips the bytes of the first half of the vectors with those of the second.
///
/// With the number of its vector above its place in it as the address of a byte, this rotates the
/// bits of the address left by one. Four times bring the 4 bits of the place to the top; as many
/// more as the number of a vector has bits bring them back.
#[inline]
#[target_feature(enable = "neon")]
fn zip_halves<const N: usize>(vectors: [uint8x16_t; N]) -> [uint8x16_t; N] {
    let mut zipped = [vdupq_n_u8(0); N];
    for k in 0..N / 2 {
        zipped[2 * k] = vzip1q_u8(vectors[k], vectors[N / 2 + k]);
        zipped[2 * k + 1] = vzip2q_u8(vectors[k], vectors[N / 2 + k]);
    }
    zipped
}

/// Transposes 8 x 8 bits across the vectors: bit `r` of vector `c` of the result is bit `c` of
/// vector `r`.
#[inline]
#[target_feature(enable = "neon")]
fn transpose_bits(mut x: [uint8x16_t; 8]) -> [uint8x16_t; 8] {
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
#[target_feature(enable = "neon")]
fn swap_bits<const SHIFT: i32>(a: uint8x16_t, b: uint8x16_t, mask: u8) -> (uint8x16_t, uint8x16_t) {
    let mask = vdupq_n_u8(mask);
    (vbslq_u8(mask, a, vshlq_n_u8::<SHIFT>(b)), vbslq_u8(mask, vshrq_n_u8::<SHIFT>(a), b))
}

/// The first line of `bytes`.
#[inline]
#[target_feature(enable = "neon")]
fn load_line(bytes: &[u8]) -> [uint8x16_t; PARTS] {
    let mut line = [vdupq_n_u8(0); PARTS];
    for (vector, bytes) in line.iter_mut().zip(bytes.as_chunks().0) {
        *vector = load(bytes);
    }
    line
}

/// Stores the first line of `bytes`.
#[inline]
#[target_feature(enable = "neon")]
fn store_line(bytes: &mut [u8], line: &[uint8x16_t; PARTS]) {
    for (vector, bytes) in line.iter().zip(bytes.as_chunks_mut().0) {
        store(bytes, *vector);
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the reference is good for 16 bytes; the load needs no alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store(bytes: &mut [u8; 16], vector: uint8x16_t) {
    // SAFETY: the reference is good for 16 bytes; the store needs no alignment.
    unsafe { vst1q_u8(bytes.as_mut_ptr(), vector) }
}
