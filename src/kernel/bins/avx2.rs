//! AVX2: a group is two vectors.

use std::arch::x86_64::*;

use super::generic::{Lanes, groups, groups_of_two};
use super::model::Class;
use super::{BinModel, GROUP, Groups, Kernel};
use crate::kernel::compile::implement;
use crate::kernel::cpu::Avx2;
use crate::kernel::expand::{WINDOW, expand};
use crate::kernel::vectors::x86_64::{load_16, load_32, store_32, store_lanes};

implement!(Avx2: Kernel {
    fn groups(model: &BinModel, block: Groups<'_, '_>) => { groups }
    fn groups_of_two(model: &BinModel, blocks: [Groups<'_, '_>; 2]) => { groups_of_two }
});

/// For each number of bits, a mask of them.
const MASK: [u8; 16] = [0, 1, 3, 7, 15, 31, 63, 127, 255, 0, 0, 0, 0, 0, 0, 0];
/// For each number of bits, the upper byte of the factor whose product has the other bits of a
/// state in its upper half. That of no bits would be 2^16.
const FACTOR: [u8; 16] = [0, 128, 64, 32, 16, 8, 4, 2, 1, 0, 0, 0, 0, 0, 0, 0];

impl Lanes for Avx2 {
    type Bytes = [__m256i; 2];
    type Mask = [__m256i; 2];

    #[inline(always)]
    fn load(self, bytes: &[u8; GROUP]) -> [__m256i; 2] {
        let (halves, _) = bytes.as_chunks();
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { [load_32(&halves[0]), load_32(&halves[1])] } // in bounds: two halves
    }

    #[inline(always)]
    fn store(self, [a, b]: [__m256i; 2], to: &mut [u8; GROUP]) {
        let (halves, _) = to.as_chunks_mut();
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe {
            store_32(&mut halves[0], a); // in bounds: two halves
            store_32(&mut halves[1], b); // in bounds: two halves
        }
    }

    #[inline(always)]
    fn store_pairs(self, low: [__m256i; 2], high: [__m256i; 2], to: &mut [[u8; 2]; GROUP]) {
        let (quarters, _) = to.as_flattened_mut().as_chunks_mut::<16>();
        for ((quarters, low), high) in quarters.chunks_exact_mut(4).zip(low).zip(high) {
            let [a, b, c, d] = quarters else { continue }; // never: four of each
            // SAFETY: the token `self` proves that this CPU has AVX2.
            unsafe {
                store_lanes(a, c, _mm256_unpacklo_epi8(low, high));
                store_lanes(b, d, _mm256_unpackhi_epi8(low, high));
            }
        }
    }

    #[inline(always)]
    fn look_up_slot(self, table: &[u8; 256], [a, b]: [__m256i; 2]) -> [__m256i; 2] {
        [look_up_slot(self, table, a), look_up_slot(self, table, b)]
    }

    #[inline(always)]
    fn look_up_bin(self, table: &[u8; GROUP], [a, b]: [__m256i; 2], is_wide: bool) -> [__m256i; 2] {
        if is_wide {
            [look_up_64(self, table, a, a), look_up_64(self, table, b, b)]
        } else {
            let (rows, _) = table.as_chunks();
            // in bounds: four rows
            [look_up_32(self, &rows[0], &rows[1], a, a), look_up_32(self, &rows[0], &rows[1], b, b)]
        }
    }

    #[inline(always)]
    fn or(self, a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { [_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])] }
    }

    #[inline(always)]
    fn without_bins(
        self,
        class: &Class,
        bins: [__m256i; 2],
        slots: [__m256i; 2],
        upper: [__m256i; 2],
        is_wide: bool,
    ) -> [[__m256i; 2]; 2] {
        let frequencies = self.look_up_bin(&class.frequency, bins, is_wide);
        let starts = self.look_up_bin(&class.start, bins, is_wide);
        // SAFETY: the token `self` proves that this CPU has AVX2.
        let rests = unsafe { [_mm256_sub_epi8(slots[0], starts[0]), _mm256_sub_epi8(slots[1], starts[1])] };
        let low = multiply_add(self, frequencies[0], upper[0], rests[0]);
        let high = multiply_add(self, frequencies[1], upper[1], rests[1]);
        [[low[0], high[0]], [low[1], high[1]]]
    }

    #[inline(always)]
    fn take_bits(self, lower: [__m256i; 2], upper: [__m256i; 2], counts: [__m256i; 2]) -> [[__m256i; 2]; 3] {
        let a = take_bits(self, lower[0], upper[0], counts[0]);
        let b = take_bits(self, lower[1], upper[1], counts[1]);
        [[a[0], b[0]], [a[1], b[1]], [a[2], b[2]]]
    }

    #[inline(always)]
    fn zeros(self, [a, b]: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe {
            let zero = _mm256_setzero_si256();
            [_mm256_cmpeq_epi8(a, zero), _mm256_cmpeq_epi8(b, zero)]
        }
    }

    /// The bytes themselves: only top bits count.
    #[inline(always)]
    fn tops(self, bytes: [__m256i; 2]) -> [__m256i; 2] {
        bytes
    }

    #[inline(always)]
    fn bits(self, [a, b]: [__m256i; 2]) -> u64 {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        let [a, b] = unsafe { [_mm256_movemask_epi8(a), _mm256_movemask_epi8(b)] };
        u64::from(b.cast_unsigned()) << 32 | u64::from(a.cast_unsigned())
    }

    #[inline(always)]
    fn select(self, mask: [__m256i; 2], yes: [__m256i; 2], no: [__m256i; 2]) -> [__m256i; 2] {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { [_mm256_blendv_epi8(no[0], yes[0], mask[0]), _mm256_blendv_epi8(no[1], yes[1], mask[1])] }
    }

    #[inline(always)]
    fn expand(self, mask: [__m256i; 2], bits: u64, next: &[u8; WINDOW], no: [__m256i; 2]) -> [__m256i; 2] {
        self.select(mask, expand(self, bits, next), no)
    }
}

/// Returns 16 bytes in both lanes.
#[inline(always)]
fn row(_: Avx2, row: &[u8; 16]) -> __m256i {
    // SAFETY: the token proves that this CPU has AVX2.
    unsafe { _mm256_broadcastsi128_si256(load_16(row)) }
}

/// Returns the entry of each byte in a table of two rows, which bit 4 chooses. `low` has the lowest
/// four bits of `at`, or all if bit 7 is zero.
#[inline(always)]
fn look_up_32(token: Avx2, first: &[u8; 16], second: &[u8; 16], at: __m256i, low: __m256i) -> __m256i {
    let (first, second) = (row(token, first), row(token, second));
    // SAFETY: the token proves that this CPU has AVX2.
    unsafe {
        let (first, second) = (_mm256_shuffle_epi8(first, low), _mm256_shuffle_epi8(second, low));
        _mm256_blendv_epi8(first, second, _mm256_slli_epi16(at, 3))
    }
}

/// Returns the entry of each byte in a table of four rows, which bits 4 and 5 choose. `low` is as
/// in [`look_up_32`].
#[inline(always)]
fn look_up_64(token: Avx2, table: &[u8; 64], at: __m256i, low: __m256i) -> __m256i {
    let (rows, _) = table.as_chunks();
    // in bounds: four rows
    let first = look_up_32(token, &rows[0], &rows[1], at, low);
    let second = look_up_32(token, &rows[2], &rows[3], at, low);
    // SAFETY: the token proves that this CPU has AVX2.
    unsafe { _mm256_blendv_epi8(first, second, _mm256_slli_epi16(at, 2)) }
}

/// Returns the entry of each byte in a table of 16 rows.
#[inline(always)]
fn look_up_slot(token: Avx2, table: &[u8; 256], slots: __m256i) -> __m256i {
    let (quarters, _) = table.as_chunks();
    // SAFETY: the token proves that this CPU has AVX2.
    let low = unsafe { _mm256_and_si256(slots, _mm256_set1_epi8(15)) };
    // in bounds: four quarters
    let [a, b] = [look_up_64(token, &quarters[0], slots, low), look_up_64(token, &quarters[1], slots, low)];
    let [c, d] = [look_up_64(token, &quarters[2], slots, low), look_up_64(token, &quarters[3], slots, low)];
    // SAFETY: the token proves that this CPU has AVX2.
    unsafe {
        let bit_6 = _mm256_slli_epi16(slots, 1);
        _mm256_blendv_epi8(_mm256_blendv_epi8(a, b, bit_6), _mm256_blendv_epi8(c, d, bit_6), slots)
    }
}

/// Returns lower and upper bytes of elements of two bytes each, in the order of `unpack`.
#[inline(always)]
fn split(_: Avx2, first: __m256i, second: __m256i) -> [__m256i; 2] {
    // SAFETY: the token proves that this CPU has AVX2.
    unsafe {
        let low = _mm256_set1_epi16(255);
        let lower = _mm256_packus_epi16(_mm256_and_si256(first, low), _mm256_and_si256(second, low));
        [lower, _mm256_packus_epi16(_mm256_srli_epi16(first, 8), _mm256_srli_epi16(second, 8))]
    }
}

/// Returns lower and upper bytes of `a * b + c`.
#[inline(always)]
pub(super) fn multiply_add(token: Avx2, a: __m256i, b: __m256i, c: __m256i) -> [__m256i; 2] {
    // SAFETY: the token proves that this CPU has AVX2.
    let [first, second] = unsafe {
        let zero = _mm256_setzero_si256();
        let first = _mm256_mullo_epi16(_mm256_unpacklo_epi8(a, zero), _mm256_unpacklo_epi8(b, zero));
        let second = _mm256_mullo_epi16(_mm256_unpackhi_epi8(a, zero), _mm256_unpackhi_epi8(b, zero));
        [
            _mm256_add_epi16(first, _mm256_unpacklo_epi8(c, zero)),
            _mm256_add_epi16(second, _mm256_unpackhi_epi8(c, zero)),
        ]
    };
    split(token, first, second)
}

/// [`Lanes::take_bits`] of a half.
#[inline(always)]
fn take_bits(token: Avx2, lower: __m256i, upper: __m256i, counts: __m256i) -> [__m256i; 3] {
    let (mask, factor) = (row(token, &MASK), row(token, &FACTOR));
    // SAFETY: the token proves that this CPU has AVX2.
    let (raw, first, second) = unsafe {
        let counts = _mm256_and_si256(counts, _mm256_set1_epi8(15));
        let (mask, factor) = (_mm256_shuffle_epi8(mask, counts), _mm256_shuffle_epi8(factor, counts));
        let zero = _mm256_setzero_si256();
        let first = shift(token, _mm256_unpacklo_epi8(lower, upper), _mm256_unpacklo_epi8(zero, factor));
        let second = shift(token, _mm256_unpackhi_epi8(lower, upper), _mm256_unpackhi_epi8(zero, factor));
        (_mm256_and_si256(lower, mask), first, second)
    };
    let [lower, upper] = split(token, first, second);
    [raw, lower, upper]
}

/// Shifts elements of two bytes to the right: multiplies them by the powers of two whose exponents
/// are 16 less the counts, and takes the upper halves of the products. No element is shifted for
/// the factor 0. AVX2 cannot shift each by a count of its own.
#[inline(always)]
fn shift(_: Avx2, states: __m256i, factors: __m256i) -> __m256i {
    // SAFETY: the token proves that this CPU has AVX2.
    unsafe {
        let shifted = _mm256_mulhi_epu16(states, factors);
        _mm256_blendv_epi8(shifted, states, _mm256_cmpeq_epi16(factors, _mm256_setzero_si256()))
    }
}
