//! AVX-512 with VBMI2: a group is one vector.
//!
//! Tables of 64 and 256 bytes are kept in registers for look-ups. Elements of two bytes are
//! computed separately for even and odd positions, so no bytes cross lanes, and lower and upper
//! bytes are blended instead of unpacked. Operations that only one port of the processor executes,
//! such as shifts, are avoided where possible.

use super::{GROUP, Lanes, MASK};
use crate::kernel::dispatch::{Avx512, intrinsics};
use crate::kernel::vectors::x86_64::{load_16, load_64, load_quarters, look_up_256, store_64};
use std::arch::x86_64::*;

/// Selects the bytes at odd positions.
const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;

/// The first entry has the indices that interleave the bytes of two vectors: for the first and for
/// the second half of the pairs. The second entry has the indices that undo this: for the lower and
/// for the upper bytes.
static ORDERS: [[[u8; 64]; 2]; 2] = {
    let mut orders = [[[0; 64]; 2]; 2];
    let mut i = 0;
    while i < 128 {
        // exact: below 128
        orders[0][i / 64][i % 64] = (i % 2 * 64 + i / 2) as u8;
        orders[1][i / 64][i % 64] = (i % 64 * 2 + i / 64) as u8;
        i += 1;
    }
    orders
};

intrinsics! {
    [Avx512]
    impl Lanes for Avx512 {
        fn load_pairs(v: Avx512, pairs: &[[u8; 2]; GROUP]) -> [__m512i; 2] {
            let (halves, _) = pairs.as_flattened().as_chunks();
            // in bounds: two halves
            let (first, second) = (load_64(&halves[0]), load_64(&halves[1]));
            let [low, high] = [load_64(&ORDERS[1][0]), load_64(&ORDERS[1][1])];
            [_mm512_permutex2var_epi8(first, low, second), _mm512_permutex2var_epi8(first, high, second)]
        }

        fn store_pairs(v: Avx512, low: __m512i, high: __m512i, to: &mut [[u8; 2]; GROUP]) {
            let (halves, _) = to.as_flattened_mut().as_chunks_mut();
            for (half, pairs) in halves.iter_mut().zip(&ORDERS[0]) {
                store_64(half, _mm512_permutex2var_epi8(low, load_64(pairs), high))
            }
        }

        fn look_up_slot(v: Avx512, table: &[u8; 256], slots: __m512i) -> __m512i {
            look_up_256(&load_quarters(table), slots)
        }

        fn look_up_bin(v: Avx512, table: &[u8; GROUP], bins: __m512i, _: bool) -> __m512i {
            _mm512_permutexvar_epi8(bins, load_64(table))
        }

        fn add(v: Avx512, a: __m512i, b: __m512i) -> __m512i {
            _mm512_add_epi8(a, b)
        }

        fn multiply_add(v: Avx512, a: __m512i, b: __m512i, c: __m512i) -> [__m512i; 2] {
            let [[even_a, odd_a], [even_b, odd_b], [even_c, odd_c]] = [widen(v, a), widen(v, b), widen(v, c)];
            let even = _mm512_add_epi16(_mm512_mullo_epi16(even_a, even_b), even_c);
            let odd = _mm512_add_epi16(_mm512_mullo_epi16(odd_a, odd_b), odd_c);
            pair(v, even, odd)
        }

        fn look_up_multiply_add(
            v: Avx512,
            table: &[u8; GROUP],
            bins: __m512i,
            _is_wide: bool,
            b: __m512i,
            c: __m512i,
        ) -> [__m512i; 2] {
            let (table, [even_c, odd_c]) = (load_64(table), widen(v, c));
            // masks replace shifts: if both factors are in the upper byte, their product is in the
            // upper half
            let even_a = _mm512_maskz_permutexvar_epi8(!ODD, bins, table);
            let odd_a = _mm512_maskz_permutexvar_epi8(ODD, bins, table);
            let even = _mm512_mullo_epi16(even_a, _mm512_maskz_mov_epi8(!ODD, b));
            let odd = _mm512_mulhi_epu16(odd_a, _mm512_maskz_mov_epi8(ODD, b));
            pair(v, _mm512_add_epi16(even, even_c), _mm512_add_epi16(odd, odd_c))
        }

        fn divide(v: Avx512, [lower, upper]: [__m512i; 2], by: __m512i, [low, high]: [__m512i; 2]) -> [__m512i; 2] {
            let [even, odd] = pair(v, lower, upper);
            let [even_by, odd_by] = widen(v, by);
            let [even_reciprocals, odd_reciprocals] = pair(v, low, high);
            let [even_quotients, even_remainders] = divide_16(v, even, even_by, even_reciprocals);
            let [odd_quotients, odd_remainders] = divide_16(v, odd, odd_by, odd_reciprocals);
            let [quotients, _] = pair(v, even_quotients, odd_quotients); // below 256
            let [remainders, _] = pair(v, even_remainders, odd_remainders);
            [quotients, remainders]
        }

        fn take_bits(v: Avx512, lower: __m512i, upper: __m512i, counts: __m512i) -> [__m512i; 3] {
            let counts = _mm512_and_si512(counts, _mm512_set1_epi8(15));
            let mask = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(load_16(&MASK)), counts);
            let ([even_counts, odd_counts], [even, odd]) = (widen(v, counts), pair(v, lower, upper));
            let (even, odd) = (_mm512_srlv_epi16(even, even_counts), _mm512_srlv_epi16(odd, odd_counts));
            let [new_lower, new_upper] = pair(v, even, odd);
            [_mm512_and_si512(lower, mask), new_lower, new_upper]
        }

        fn top_bits(v: Avx512, bytes: __m512i) -> u64 {
            _mm512_movepi8_mask(bytes)
        }

        fn less_equal(v: Avx512, a: __m512i, b: __m512i) -> u64 {
            _mm512_cmple_epu8_mask(a, b)
        }
    }
}

intrinsics! {
    [Avx512]
    /// Returns the bytes at even positions and at odd positions, widened to two bytes.
    fn widen(_: Avx512, bytes: __m512i) -> [__m512i; 2] {
        [_mm512_and_si512(bytes, _mm512_set1_epi16(255)), _mm512_srli_epi16(bytes, 8)]
    }

    /// Turns lower and upper bytes into the elements of two bytes at even and at odd positions, or
    /// the reverse: swaps the odd bytes of the first vector with the even bytes of the second.
    fn pair(_: Avx512, first: __m512i, second: __m512i) -> [__m512i; 2] {
        [
            _mm512_mask_blend_epi8(ODD, first, _mm512_slli_epi16(second, 8)),
            _mm512_mask_blend_epi8(ODD, _mm512_srli_epi16(first, 8), second),
        ]
    }

    /// Returns the quotients and remainders of elements of two bytes.
    fn divide_16(_: Avx512, states: __m512i, by: __m512i, reciprocals: __m512i) -> [__m512i; 2] {
        let quotients = _mm512_mulhi_epu16(states, reciprocals); // can be one too small
        let remainders = _mm512_sub_epi16(states, _mm512_mullo_epi16(quotients, by));
        let is_less = _mm512_cmpge_epu16_mask(remainders, by);
        let one_more = _mm512_mask_add_epi16(quotients, is_less, quotients, _mm512_set1_epi16(1));
        [one_more, _mm512_mask_sub_epi16(remainders, is_less, remainders, by)]
    }
}
