//! AVX2: a group is two vectors.
//!
//! A shuffle looks up entries in a table of 16, so a longer table takes several shuffles. To select
//! between two results, a bit of the index is shifted to the top of its byte. Elements of two bytes
//! are unpacked from bytes and packed again, lane by lane. AVX2 cannot shift each of them by its
//! own count, so such a shift is a multiplication.

use super::{GROUP, Lanes, MASK};
use crate::kernel::dispatch::{Avx2, intrinsics};
use crate::kernel::vectors::x86_64::{load_16, load_32, store_lanes};
use std::arch::x86_64::*;

/// For each number of bits to remove, the upper byte of the factor that moves the other bits of a
/// state to the upper half of the product. The factor for 0 bits would be 2^16, which does not fit,
/// so [`shift`] handles the entry 0 separately.
const FACTOR: [u8; 16] = [0, 128, 64, 32, 16, 8, 4, 2, 1, 0, 0, 0, 0, 0, 0, 0];

intrinsics! {
    [Avx2]
    impl Lanes for Avx2 {
        fn load_pairs(v: Avx2, pairs: &[[u8; 2]; GROUP]) -> [[__m256i; 2]; 2] {
            let (halves, _) = pairs.as_chunks();
            // in bounds: two halves
            let [[a, b], [c, d]] = [load_pairs(v, &halves[0]), load_pairs(v, &halves[1])];
            [[a, c], [b, d]]
        }

        fn store_pairs(v: Avx2, low: [__m256i; 2], high: [__m256i; 2], to: &mut [[u8; 2]; GROUP]) {
            let (quarters, _) = to.as_flattened_mut().as_chunks_mut::<16>();
            for ((quarters, low), high) in quarters.chunks_exact_mut(4).zip(low).zip(high) {
                let [a, b, c, d] = quarters else { continue }; // never: there are four of each
                store_lanes(a, c, _mm256_unpacklo_epi8(low, high));
                store_lanes(b, d, _mm256_unpackhi_epi8(low, high));
            }
        }

        fn look_up_slot(v: Avx2, table: &[u8; 256], [a, b]: [__m256i; 2]) -> [__m256i; 2] {
            [look_up_slot(v, table, a), look_up_slot(v, table, b)]
        }

        fn look_up_bin(v: Avx2, table: &[u8; GROUP], [a, b]: [__m256i; 2], is_wide: bool) -> [__m256i; 2] {
            if is_wide {
                [look_up_64(v, table, a, a), look_up_64(v, table, b, b)]
            } else {
                let (rows, _) = table.as_chunks();
                // in bounds: four rows
                [look_up_32(v, &rows[0], &rows[1], a, a), look_up_32(v, &rows[0], &rows[1], b, b)]
            }
        }

        fn add(v: Avx2, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
            [_mm256_add_epi8(a[0], b[0]), _mm256_add_epi8(a[1], b[1])]
        }

        fn multiply_add(v: Avx2, a: [__m256i; 2], b: [__m256i; 2], c: [__m256i; 2]) -> [[__m256i; 2]; 2] {
            let low = multiply_add(v, a[0], b[0], c[0]);
            let high = multiply_add(v, a[1], b[1], c[1]);
            [[low[0], high[0]], [low[1], high[1]]]
        }

        fn divide(
            v: Avx2,
            [lower, upper]: [[__m256i; 2]; 2],
            by: [__m256i; 2],
            [first, second]: [[__m256i; 2]; 2],
        ) -> [[__m256i; 2]; 2] {
            let [a, b] = divide(v, [lower[0], upper[0]], by[0], [first[0], second[0]]);
            let [c, d] = divide(v, [lower[1], upper[1]], by[1], [first[1], second[1]]);
            [[a, c], [b, d]]
        }

        fn take_bits(v: Avx2, lower: [__m256i; 2], upper: [__m256i; 2], counts: [__m256i; 2]) -> [[__m256i; 2]; 3] {
            let a = take_bits(v, lower[0], upper[0], counts[0]);
            let b = take_bits(v, lower[1], upper[1], counts[1]);
            [[a[0], b[0]], [a[1], b[1]], [a[2], b[2]]]
        }

        /// Returns the bytes unchanged: only the top bit of each byte is used.
        fn top_bits(v: Avx2, bytes: [__m256i; 2]) -> [__m256i; 2] {
            bytes
        }

        fn less_equal(v: Avx2, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
            let min = [_mm256_min_epu8(a[0], b[0]), _mm256_min_epu8(a[1], b[1])];
            [_mm256_cmpeq_epi8(min[0], a[0]), _mm256_cmpeq_epi8(min[1], a[1])]
        }
    }
}

intrinsics! {
    [Avx2]
    /// [`Lanes::load_pairs`] for half a group.
    fn load_pairs(v: Avx2, pairs: &[[u8; 2]; GROUP / 2]) -> [__m256i; 2] {
        let (halves, _) = pairs.as_flattened().as_chunks();
        // in bounds: two halves. Pack instructions alternate between their operands, in steps of
        // eight bytes
        let [lower, upper] = split(v, load_32(&halves[0]), load_32(&halves[1]));
        [_mm256_permute4x64_epi64(lower, 0b11_01_10_00), _mm256_permute4x64_epi64(upper, 0b11_01_10_00)]
    }

    /// Returns the lower and upper bytes of elements of two bytes, in the order that unpack
    /// instructions expect.
    fn split(_: Avx2, first: __m256i, second: __m256i) -> [__m256i; 2] {
        let low = _mm256_set1_epi16(255);
        let lower = _mm256_packus_epi16(_mm256_and_si256(first, low), _mm256_and_si256(second, low));
        [lower, _mm256_packus_epi16(_mm256_srli_epi16(first, 8), _mm256_srli_epi16(second, 8))]
    }

    /// Repeats 16 bytes in both lanes.
    fn row(_: Avx2, row: &[u8; 16]) -> __m256i {
        _mm256_broadcastsi128_si256(load_16(row))
    }

    /// Looks up each byte in a table of two rows. Bit 4 of `at` chooses the row. `low` has the
    /// lowest four bits of `at`. It can have the other bits too if bit 7 is zero.
    fn look_up_32(v: Avx2, first: &[u8; 16], second: &[u8; 16], at: __m256i, low: __m256i) -> __m256i {
        let (first, second) = (row(v, first), row(v, second));
        let (first, second) = (_mm256_shuffle_epi8(first, low), _mm256_shuffle_epi8(second, low));
        _mm256_blendv_epi8(first, second, _mm256_slli_epi16(at, 3))
    }

    /// Looks up each byte in a table of four rows. Bits 4 and 5 of `at` choose the row. `low` has
    /// the same bits as in [`look_up_32`].
    fn look_up_64(v: Avx2, table: &[u8; 64], at: __m256i, low: __m256i) -> __m256i {
        let (rows, _) = table.as_chunks();
        // in bounds: four rows
        let first = look_up_32(v, &rows[0], &rows[1], at, low);
        let second = look_up_32(v, &rows[2], &rows[3], at, low);
        _mm256_blendv_epi8(first, second, _mm256_slli_epi16(at, 2))
    }

    /// Looks up each byte in a table of 16 rows.
    fn look_up_slot(v: Avx2, table: &[u8; 256], slots: __m256i) -> __m256i {
        let (quarters, _) = table.as_chunks();
        let low = _mm256_and_si256(slots, _mm256_set1_epi8(15));
        // in bounds: four quarters
        let [a, b] = [look_up_64(v, &quarters[0], slots, low), look_up_64(v, &quarters[1], slots, low)];
        let [c, d] = [look_up_64(v, &quarters[2], slots, low), look_up_64(v, &quarters[3], slots, low)];
        let bit_6 = _mm256_slli_epi16(slots, 1);
        _mm256_blendv_epi8(_mm256_blendv_epi8(a, b, bit_6), _mm256_blendv_epi8(c, d, bit_6), slots)
    }

    /// Returns the lower and upper bytes of `a * b + c`.
    fn multiply_add(v: Avx2, a: __m256i, b: __m256i, c: __m256i) -> [__m256i; 2] {
        let zero = _mm256_setzero_si256();
        let first = _mm256_mullo_epi16(_mm256_unpacklo_epi8(a, zero), _mm256_unpacklo_epi8(b, zero));
        let second = _mm256_mullo_epi16(_mm256_unpackhi_epi8(a, zero), _mm256_unpackhi_epi8(b, zero));
        let [first, second] = [
            _mm256_add_epi16(first, _mm256_unpacklo_epi8(c, zero)),
            _mm256_add_epi16(second, _mm256_unpackhi_epi8(c, zero)),
        ];
        split(v, first, second)
    }

    /// [`Lanes::divide`] for half a group.
    fn divide(v: Avx2, [lower, upper]: [__m256i; 2], by: __m256i, [low, high]: [__m256i; 2]) -> [__m256i; 2] {
        let zero = _mm256_setzero_si256();
        let states = [_mm256_unpacklo_epi8(lower, upper), _mm256_unpackhi_epi8(lower, upper)];
        let by = [_mm256_unpacklo_epi8(by, zero), _mm256_unpackhi_epi8(by, zero)];
        let reciprocals = [_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high)];
        let [quotients, remainders] = divide_16(v, states[0], by[0], reciprocals[0]);
        let [more_quotients, more_remainders] = divide_16(v, states[1], by[1], reciprocals[1]);
        // all are below 256
        [_mm256_packus_epi16(quotients, more_quotients), _mm256_packus_epi16(remainders, more_remainders)]
    }

    /// Returns the quotients and remainders of elements of two bytes.
    fn divide_16(_: Avx2, states: __m256i, by: __m256i, reciprocals: __m256i) -> [__m256i; 2] {
        let quotients = _mm256_mulhi_epu16(states, reciprocals); // can be one too small
        let remainders = _mm256_sub_epi16(states, _mm256_mullo_epi16(quotients, by));
        let is_less = _mm256_cmpeq_epi16(_mm256_max_epu16(remainders, by), remainders);
        [_mm256_sub_epi16(quotients, is_less), _mm256_sub_epi16(remainders, _mm256_and_si256(is_less, by))]
    }

    /// [`Lanes::take_bits`] for half a group.
    fn take_bits(v: Avx2, lower: __m256i, upper: __m256i, counts: __m256i) -> [__m256i; 3] {
        let counts = _mm256_and_si256(counts, _mm256_set1_epi8(15));
        let mask = _mm256_shuffle_epi8(row(v, &MASK), counts);
        let factor = _mm256_shuffle_epi8(row(v, &FACTOR), counts);
        let raw = _mm256_and_si256(lower, mask);
        let zero = _mm256_setzero_si256();
        let first = shift(v, _mm256_unpacklo_epi8(lower, upper), _mm256_unpacklo_epi8(zero, factor));
        let second = shift(v, _mm256_unpackhi_epi8(lower, upper), _mm256_unpackhi_epi8(zero, factor));
        let [lower, upper] = split(v, first, second);
        [raw, lower, upper]
    }

    /// Shifts each element of two bytes right by its own count: multiplies it by 2^(16 - count),
    /// and takes the upper half of the product. A factor of 0 means no shift.
    fn shift(_: Avx2, states: __m256i, factors: __m256i) -> __m256i {
        let shifted = _mm256_mulhi_epu16(states, factors);
        _mm256_blendv_epi8(shifted, states, _mm256_cmpeq_epi16(factors, _mm256_setzero_si256()))
    }
}
