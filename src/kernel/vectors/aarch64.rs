//! Loads and stores with NEON.
//!
//! Most functions take a reference to an array that is as long as the vector and need not be
//! aligned. Functions that take a slice check its length. NEON has no instruction that makes a bit
//! mask from a comparison. [`mask_of`] therefore keeps one bit of each byte, and adds neighbors
//! until each sum has the bits of eight bytes.

use super::RowOffsets;
use std::arch::aarch64::*;

/// Loads 16 bytes.
#[inline]
#[target_feature(enable = "neon")]
pub fn load_16(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the reference is valid for 16 bytes. The load needs no alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// Stores 16 bytes.
#[inline]
#[target_feature(enable = "neon")]
pub fn store_16(bytes: &mut [u8; 16], vector: uint8x16_t) {
    // SAFETY: the reference is valid for 16 bytes. The store needs no alignment.
    unsafe { vst1q_u8(bytes.as_mut_ptr(), vector) }
}

/// Loads 16 bytes of each of the first 8 rows. Returns zeros if `bytes` does not contain all rows.
#[inline]
#[target_feature(enable = "neon")]
pub fn load_rows(bytes: &[u8], rows: &RowOffsets) -> [uint8x16_t; 8] {
    let mut vectors = [vdupq_n_u8(0); 8];
    if rows.end <= bytes.len() {
        for (vector, offset) in vectors.iter_mut().zip(rows.offsets) {
            // SAFETY: the slice has 16 bytes at each offset, because `end` is at least 16 more than
            // the offset, and the slice has at least `end` bytes. The load needs no alignment.
            *vector = unsafe { vld1q_u8(bytes.as_ptr().add(offset)) };
        }
    }
    vectors
}

/// Stores rows at the offsets from which [`load_rows`] loads them. Does nothing if `bytes` does not
/// contain all rows.
#[inline]
#[target_feature(enable = "neon")]
pub fn store_rows(bytes: &mut [u8], rows: &RowOffsets, vectors: [uint8x16_t; 8]) {
    if rows.end <= bytes.len() {
        for (vector, offset) in vectors.into_iter().zip(rows.offsets) {
            // SAFETY: the slice has 16 bytes at each offset, because `end` is at least 16 more than
            // the offset, and the slice has at least `end` bytes. The store needs no alignment.
            unsafe { vst1q_u8(bytes.as_mut_ptr().add(offset), vector) }
        }
    }
}

/// Loads 8 bytes.
#[inline]
#[target_feature(enable = "neon")]
pub fn load_8(bytes: &[u8; 8]) -> uint8x8_t {
    // SAFETY: the reference is valid for 8 bytes. The load needs no alignment.
    unsafe { vld1_u8(bytes.as_ptr()) }
}

/// Stores 8 bytes.
#[inline]
#[target_feature(enable = "neon")]
pub fn store_8(bytes: &mut [u8; 8], vector: uint8x8_t) {
    // SAFETY: the reference is valid for 8 bytes. The store needs no alignment.
    unsafe { vst1_u8(bytes.as_mut_ptr(), vector) }
}

/// Loads 64 bytes.
#[inline]
#[target_feature(enable = "neon")]
pub fn load_64(bytes: &[u8; 64]) -> [uint8x16_t; 4] {
    let (quarters, _) = bytes.as_chunks();
    let mut vectors = [vdupq_n_u8(0); 4];
    for (vector, quarter) in vectors.iter_mut().zip(quarters) {
        *vector = load_16(quarter);
    }
    vectors
}

/// Loads a table of 64 bytes.
#[inline]
#[target_feature(enable = "neon")]
pub fn load_table(table: &[u8; 64]) -> uint8x16x4_t {
    let [a, b, c, d] = load_64(table);
    uint8x16x4_t(a, b, c, d)
}

/// Stores 64 bytes.
#[inline]
#[target_feature(enable = "neon")]
pub fn store_64(bytes: &mut [u8; 64], vectors: [uint8x16_t; 4]) {
    let (quarters, _) = bytes.as_chunks_mut();
    for (quarter, vector) in quarters.iter_mut().zip(vectors) {
        store_16(quarter, vector);
    }
}

/// Returns a bit for each of 64 bytes. Each byte must be all ones or all zeros.
#[inline]
#[target_feature(enable = "neon")]
pub fn mask_of([a, b, c, d]: [uint8x16_t; 4]) -> u64 {
    let bits = load_16(&BIT_OF_BYTE);
    let ab = vpaddq_u8(vandq_u8(a, bits), vandq_u8(b, bits));
    let cd = vpaddq_u8(vandq_u8(c, bits), vandq_u8(d, bits));
    let sums = vpaddq_u8(ab, cd); // each the sum of four bytes, in order
    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
}

/// For each of 16 bytes, the bit that stands for it in a byte of a mask.
pub const BIT_OF_BYTE: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
