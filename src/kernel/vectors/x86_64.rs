//! Loads and stores with AVX2 and AVX-512.
//!
//! Each `unsafe` block below relies on one of three facts. Most functions take a reference to an
//! array that is as long as the vector and need not be aligned. Functions that take a slice check
//! its length, or they mask the bytes beyond its end: a masked load or store accesses only the
//! bytes whose mask bits are set.

use super::RowOffsets;
use std::arch::x86_64::*;

/// Loads 16 bytes.
#[inline]
#[target_feature(enable = "sse2")]
pub fn load_16(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: the reference is valid for 16 bytes. The load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// Stores 16 bytes.
#[inline]
#[target_feature(enable = "sse2")]
pub fn store_16(bytes: &mut [u8; 16], vector: __m128i) {
    // SAFETY: the reference is valid for 16 bytes. The store needs no alignment.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), vector) }
}

/// Loads 32 bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub fn load_32(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the reference is valid for 32 bytes. The load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// Stores 32 bytes.
#[inline]
#[target_feature(enable = "avx2")]
pub fn store_32(bytes: &mut [u8; 32], vector: __m256i) {
    // SAFETY: the reference is valid for 32 bytes. The store needs no alignment.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), vector) }
}

/// Loads a lower and an upper lane.
#[inline]
#[target_feature(enable = "avx2")]
pub fn load_lanes(lower: &[u8; 16], upper: &[u8; 16]) -> __m256i {
    // SAFETY: both references are valid for 16 bytes. The loads need no alignment.
    unsafe { _mm256_loadu2_m128i(upper.as_ptr().cast(), lower.as_ptr().cast()) }
}

/// Stores the lower lane and the upper lane.
#[inline]
#[target_feature(enable = "avx2")]
pub fn store_lanes(lower: &mut [u8; 16], upper: &mut [u8; 16], vector: __m256i) {
    // SAFETY: both references are valid for 16 bytes. The stores need no alignment.
    unsafe { _mm256_storeu2_m128i(upper.as_mut_ptr().cast(), lower.as_mut_ptr().cast(), vector) }
}

/// Loads 16 bytes of each row: row `i` into the lower lane of vector `i`, and row `i + 8` into its
/// upper lane. Returns zeros if `bytes` does not contain all rows.
#[inline]
#[target_feature(enable = "avx2")]
pub fn load_rows(bytes: &[u8], rows: &RowOffsets) -> [__m256i; 8] {
    let mut vectors = [_mm256_setzero_si256(); 8];
    if rows.end <= bytes.len() {
        for (i, vector) in vectors.iter_mut().enumerate() {
            // SAFETY: the slice has 16 bytes at each offset, because `end` is at least 16 more than
            // the offset, and the slice has at least `end` bytes. The loads need no alignment.
            *vector = unsafe {
                let lower = bytes.as_ptr().add(rows.offsets[i]);
                let upper = bytes.as_ptr().add(rows.offsets[i + 8]);
                _mm256_loadu2_m128i(upper.cast(), lower.cast())
            };
        }
    }
    vectors
}

/// Stores rows at the offsets from which [`load_rows`] loads them. Does nothing if `bytes` does not
/// contain all rows.
#[inline]
#[target_feature(enable = "avx2")]
pub fn store_rows(bytes: &mut [u8], rows: &RowOffsets, vectors: [__m256i; 8]) {
    if rows.end <= bytes.len() {
        for (i, vector) in vectors.into_iter().enumerate() {
            // SAFETY: the slice has 16 bytes at each offset, because `end` is at least 16 more than
            // the offset, and the slice has at least `end` bytes. The stores need no alignment.
            unsafe {
                let lower = bytes.as_mut_ptr().add(rows.offsets[i]);
                let upper = bytes.as_mut_ptr().add(rows.offsets[i + 8]);
                _mm256_storeu2_m128i(upper.cast(), lower.cast(), vector);
            }
        }
    }
}

/// Loads 16 bytes of each row: rows `i`, `i + 8`, `i + 16` and `i + 24` into the lanes of vector
/// `i`. Returns zeros if `bytes` does not contain all rows.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn load_32_rows(bytes: &[u8], rows: &RowOffsets) -> [__m512i; 8] {
    let mut vectors = [_mm512_setzero_si512(); 8];
    if rows.end <= bytes.len() {
        // SAFETY: the slice has 16 bytes at each offset, because `end` is at least 16 more than the
        // offset, and the slice has at least `end` bytes. The loads need no alignment.
        let lane = |row: usize| unsafe { _mm_loadu_si128(bytes.as_ptr().add(rows.offsets[row]).cast()) };
        for (i, vector) in vectors.iter_mut().enumerate() {
            let lower = _mm256_set_m128i(lane(i + 8), lane(i));
            let upper = _mm256_set_m128i(lane(i + 24), lane(i + 16));
            *vector = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(lower), upper);
        }
    }
    vectors
}

/// Stores rows at the offsets from which [`load_32_rows`] loads them. Does nothing if `bytes` does
/// not contain all rows.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn store_32_rows(bytes: &mut [u8], rows: &RowOffsets, vectors: [__m512i; 8]) {
    if rows.end <= bytes.len() {
        let start = bytes.as_mut_ptr();
        // SAFETY: the slice has 16 bytes at each offset, because `end` is at least 16 more than the
        // offset, and the slice has at least `end` bytes. The stores need no alignment.
        let store = |row: usize, lane| unsafe { _mm_storeu_si128(start.add(rows.offsets[row]).cast(), lane) };
        for (i, vector) in vectors.into_iter().enumerate() {
            store(i, _mm512_castsi512_si128(vector));
            store(i + 8, _mm512_extracti32x4_epi32::<1>(vector));
            store(i + 16, _mm512_extracti32x4_epi32::<2>(vector));
            store(i + 24, _mm512_extracti32x4_epi32::<3>(vector));
        }
    }
}

/// Loads 64 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn load_64(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the reference is valid for 64 bytes. The load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Stores 64 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn store_64(bytes: &mut [u8; 64], vector: __m512i) {
    // SAFETY: the reference is valid for 64 bytes. The store needs no alignment.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), vector) }
}

/// Loads 16 floats.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn load_floats(floats: &[f32; 16]) -> __m512 {
    // SAFETY: the reference is valid for 64 bytes. The load needs no alignment.
    unsafe { _mm512_loadu_ps(floats.as_ptr()) }
}

/// Stores 16 floats.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn store_floats(floats: &mut [f32; 16], vector: __m512) {
    // SAFETY: the reference is valid for 64 bytes. The store needs no alignment.
    unsafe { _mm512_storeu_ps(floats.as_mut_ptr(), vector) }
}

/// Loads 16 elements of two bytes as floats.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn load_words(words: &[u16; 16]) -> __m512 {
    // SAFETY: the reference is valid for 32 bytes. The load needs no alignment.
    let words = unsafe { _mm256_loadu_si256(words.as_ptr().cast()) };
    _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(words))
}

/// Loads the first 64 bytes of `bytes`. If `bytes` is shorter, pads it with zeros.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub fn load_up_to_64(bytes: &[u8]) -> __m512i {
    let mask = match bytes.len() {
        64.. => return load_64(bytes.first_chunk().unwrap_or(&[0; 64])), // never zeros: there are at least 64
        len => (1 << len) - 1,
    };
    // SAFETY: the mask selects only bytes of the slice, and a masked load reads no other bytes.
    unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
}

/// Stores the bytes of the vector that fit in `bytes`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub fn store_up_to_64(bytes: &mut [u8], vector: __m512i) {
    match bytes.first_chunk_mut() {
        Some(bytes) => store_64(bytes, vector),
        None => {
            let mask = (1 << bytes.len()) - 1; // fewer than 64
            // SAFETY: the mask selects only bytes of the slice, and a masked store writes no other
            // bytes.
            unsafe { _mm512_mask_storeu_epi8(bytes.as_mut_ptr().cast(), mask, vector) }
        }
    }
}

/// Loads a table of 256 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
pub fn load_quarters(table: &[u8; 256]) -> [__m512i; 4] {
    let mut quarters = [_mm512_setzero_si512(); 4];
    for (quarter, bytes) in quarters.iter_mut().zip(table.as_chunks().0) {
        *quarter = load_64(bytes);
    }
    quarters
}

/// Looks up each byte in a table of 256 entries.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub fn look_up_256([a, b, c, d]: &[__m512i; 4], bytes: __m512i) -> __m512i {
    let low = _mm512_permutex2var_epi8(*a, bytes, *b);
    let high = _mm512_permutex2var_epi8(*c, bytes, *d);
    _mm512_mask_blend_epi8(_mm512_movepi8_mask(bytes), low, high)
}
