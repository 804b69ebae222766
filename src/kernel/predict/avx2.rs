//! AVX2.

use std::arch::x86_64::*;

use super::generic::{residuals, undo};
use super::operations::{COLUMNS, Lanes, Taps, Tiles, Vectors};
use super::{FilterBank, Kernel, Prediction, filters};
use crate::kernel::Width;
use crate::kernel::bytes::copy_short;
use crate::kernel::compile::implement;
use crate::kernel::cpu::Avx2;
use crate::kernel::vectors::RowOffsets;
use crate::kernel::vectors::x86_64::{load_32, load_lanes, load_rows, store_16, store_32, store_rows};
use crate::kernel::word::Word;

implement!(Avx2: Kernel {
    fn residuals(prediction: &Prediction, width: Width, elements: &[u8], out: &mut [u8]) => { residuals }
    fn undo(prediction: &Prediction, width: Width, data: &mut [u8]) => { undo }
    fn filter(bank: &FilterBank, codes: &[u8], numbers: &[u8], out: &mut [u8]) => { filters::residuals }
    fn undo_filter(bank: &FilterBank, codes: &[u8], data: &mut [u8]) => { filters::undo }
});

impl Vectors for Avx2 {
    type Vector = __m256i;
    const BYTES: usize = 32;

    #[inline(always)]
    fn zero(self) -> __m256i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    fn load(self, bytes: &[u8]) -> __m256i {
        if let Some(whole) = bytes.first_chunk() {
            // SAFETY: the token `self` proves that this CPU has AVX2.
            unsafe { load_32(whole) }
        } else {
            let mut padded = [0; 32];
            copy_short(bytes, &mut padded);
            // SAFETY: the token `self` proves that this CPU has AVX2.
            unsafe { load_32(&padded) }
        }
    }

    #[inline(always)]
    fn store(self, vector: __m256i, bytes: &mut [u8]) {
        if let Some(whole) = bytes.first_chunk_mut() {
            // SAFETY: the token `self` proves that this CPU has AVX2.
            unsafe { store_32(whole, vector) }
        } else {
            let mut padded = [0; 32];
            // SAFETY: the token `self` proves that this CPU has AVX2.
            unsafe { store_32(&mut padded, vector) }
            copy_short(&padded, bytes);
        }
    }

    #[inline(always)]
    fn plus<W: Word>(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe {
            match W::BYTES {
                1 => _mm256_add_epi8(a, b),
                2 => _mm256_add_epi16(a, b),
                4 => _mm256_add_epi32(a, b),
                _ => _mm256_add_epi64(a, b),
            }
        }
    }

    #[inline(always)]
    fn rotate_right<W: Word>(self, x: __m256i) -> __m256i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe {
            let (half, lowest) = match W::BYTES {
                1 => {
                    // no instruction shifts bytes: the mask takes out the bits of the next byte
                    let others = _mm256_set1_epi8(i8::MAX);
                    (
                        _mm256_and_si256(_mm256_srli_epi16::<1>(x), others),
                        _mm256_andnot_si256(others, _mm256_slli_epi16::<7>(x)),
                    )
                }
                2 => (_mm256_srli_epi16::<1>(x), _mm256_slli_epi16::<15>(x)),
                4 => (_mm256_srli_epi32::<1>(x), _mm256_slli_epi32::<31>(x)),
                _ => (_mm256_srli_epi64::<1>(x), _mm256_slli_epi64::<63>(x)),
            };
            _mm256_or_si256(half, lowest)
        }
    }

    #[inline(always)]
    fn invert_negative<W: Word>(self, x: __m256i) -> __m256i {
        let zero = self.zero();
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe {
            let (sign, others) = match W::BYTES {
                1 => (_mm256_cmpgt_epi8(zero, x), _mm256_set1_epi8(i8::MAX)),
                2 => (_mm256_srai_epi16::<15>(x), _mm256_set1_epi16(i16::MAX)),
                4 => (_mm256_srai_epi32::<31>(x), _mm256_set1_epi32(i32::MAX)),
                _ => (_mm256_cmpgt_epi64(zero, x), _mm256_set1_epi64x(i64::MAX)),
            };
            _mm256_xor_si256(x, _mm256_and_si256(sign, others))
        }
    }

    #[inline(always)]
    fn sums<W: Word>(self, mut sums: __m256i) -> __m256i {
        if W::BYTES <= 1 {
            sums = self.plus::<W>(sums, shuffle(self, sums, const { &spread::<1>(W::BYTES) }));
        }
        if W::BYTES <= 2 {
            sums = self.plus::<W>(sums, shuffle(self, sums, const { &spread::<2>(W::BYTES) }));
        }
        if W::BYTES <= 4 {
            sums = self.plus::<W>(sums, shuffle(self, sums, const { &spread::<4>(W::BYTES) }));
        }
        sums = self.plus::<W>(sums, shuffle(self, sums, const { &spread::<8>(W::BYTES) }));
        let lasts = shuffle(self, sums, const { &spread::<16>(W::BYTES) });
        // SAFETY: the token `self` proves that this CPU has AVX2.
        let zero_and_lower = unsafe { _mm256_permute2x128_si256::<0x08>(lasts, lasts) };
        self.plus::<W>(sums, zero_and_lower)
    }

    #[inline(always)]
    fn last<W: Word>(self, vector: __m256i) -> __m256i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        let upper = unsafe { _mm256_permute4x64_epi64::<0b11_11_11_11>(vector) };
        shuffle(self, upper, const { &spread::<16>(W::BYTES) })
    }
}

impl Lanes for Avx2 {
    const LANE: usize = 16;

    #[inline(always)]
    fn load_lanes(self, bytes: &[u8], lane: usize) -> __m256i {
        let mut padded = [0; 32];
        let bytes = if bytes.len() < lane + 16 {
            copy_short(bytes, &mut padded);
            &padded
        } else {
            bytes
        };
        match (bytes.first_chunk(), bytes.get(lane..).and_then(<[u8]>::first_chunk)) {
            // SAFETY: the token `self` proves that this CPU has AVX2.
            (Some(lower), Some(upper)) => unsafe { load_lanes(lower, upper) },
            _ => self.zero(), // never: both lanes are there, or in `padded`
        }
    }

    #[inline(always)]
    fn store_lanes(self, vector: __m256i, bytes: &mut [u8], lane: usize) {
        // the upper one goes over what follows the lower one
        // SAFETY: the token `self` proves that this CPU has AVX2.
        let [lower, upper] = unsafe { [_mm256_castsi256_si128(vector), _mm256_extracti128_si256::<1>(vector)] };
        for (start, part) in [(0, lower), (lane, upper)] {
            if let Some(to) = bytes.get_mut(start..).and_then(<[u8]>::first_chunk_mut) {
                // SAFETY: the token `self` proves that this CPU has AVX2.
                unsafe { store_16(to, part) }
            }
        }
    }

    #[inline(always)]
    fn shuffle(self, vector: __m256i, order: __m256i) -> __m256i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { _mm256_shuffle_epi8(vector, order) }
    }

    #[inline(always)]
    fn lane_before(self, vector: __m256i) -> __m256i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { _mm256_permute2x128_si256::<0x08>(vector, vector) }
    }

    #[inline(always)]
    fn last_lane(self, vector: __m256i) -> __m256i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { _mm256_permute2x128_si256::<0x11>(vector, vector) }
    }

    #[inline(always)]
    fn eighths<W: Word>(self, x: __m256i, weight: u8) -> __m256i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe {
            match W::BYTES {
                // a product is divided by 2^15: an element is the upper byte of its factor
                1 => {
                    let weight = _mm256_set1_epi16(i16::from(weight) << 4);
                    let low = _mm256_mulhrs_epi16(_mm256_slli_epi16::<8>(x), weight);
                    let high = _mm256_mulhrs_epi16(_mm256_andnot_si256(_mm256_set1_epi16(0xFF), x), weight);
                    _mm256_or_si256(_mm256_and_si256(_mm256_set1_epi16(0xFF), low), _mm256_slli_epi16::<8>(high))
                }
                2 => _mm256_mulhrs_epi16(x, _mm256_set1_epi16(i16::from(weight) << 12)),
                _ => {
                    let (weight, seven) = (_mm256_set1_epi32(weight.into()), _mm256_set1_epi32(7));
                    let whole = _mm256_mullo_epi32(_mm256_srai_epi32::<3>(x), weight);
                    let rest = _mm256_mullo_epi16(_mm256_and_si256(x, seven), weight); // at most 49
                    let rest = _mm256_srli_epi32::<3>(_mm256_add_epi32(rest, _mm256_set1_epi32(4)));
                    _mm256_add_epi32(whole, rest)
                }
            }
        }
    }
}

impl Tiles for Avx2 {
    type Fewer = Self;

    #[inline(always)]
    fn fewer(self) -> Self {
        self
    }

    #[inline(always)]
    fn load_rows(self, bytes: &[u8], rows: &RowOffsets) -> [__m256i; COLUMNS] {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { load_rows(bytes, rows) }
    }

    #[inline(always)]
    fn store_rows(self, tile: [__m256i; COLUMNS], bytes: &mut [u8], rows: &RowOffsets) {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { store_rows(bytes, rows, tile) }
    }

    #[inline(always)]
    fn interleave(self, a: __m256i, b: __m256i) -> [__m256i; 2] {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)] }
    }

    #[inline(always)]
    fn minus(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { _mm256_sub_epi16(a, b) }
    }

    #[inline(always)]
    fn and(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { _mm256_and_si256(a, b) }
    }

    #[inline(always)]
    fn multiply(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { _mm256_mulhrs_epi16(a, b) }
    }
}

impl Taps for Avx2 {
    #[inline(always)]
    fn pairs(self, last: __m256i, before: __m256i) -> [__m256i; 2] {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe {
            let even = _mm256_blend_epi16::<0xAA>(last, _mm256_slli_epi32::<16>(before));
            let odd = _mm256_blend_epi16::<0xAA>(_mm256_srli_epi32::<16>(last), before);
            [even, odd]
        }
    }

    #[inline(always)]
    fn add_products(self, sums: __m256i, pairs: __m256i, factors: __m256i) -> __m256i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, factors)) }
    }

    #[inline(always)]
    fn join_sums(self, [even, odd]: [__m256i; 2]) -> __m256i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { _mm256_blend_epi16::<0xAA>(_mm256_srli_epi32::<12>(even), _mm256_slli_epi32::<4>(odd)) }
    }
}

/// Returns the bytes of each lane of `vector` in `order`. An index with its top bit set gives 0.
#[inline(always)]
fn shuffle(_: Avx2, vector: __m256i, order: &[u8; 32]) -> __m256i {
    // SAFETY: the token proves that this CPU has AVX2.
    unsafe { _mm256_shuffle_epi8(vector, load_32(order)) }
}

/// Returns the order that brings, for each two units of `UNIT` bytes, the last element of the first
/// unit to all elements of the second. For units of 16 bytes, brings the last element of a lane to
/// all of its elements.
const fn spread<const UNIT: usize>(width: usize) -> [u8; 32] {
    let mut order = [0x80; 32];
    let mut k = 0;
    while k < 32 {
        let lane = k % 16;
        if UNIT == 16 {
            order[k] = (16 - width + k % width) as u8;
        } else if lane / UNIT % 2 == 1 && UNIT >= width {
            order[k] = (lane / UNIT * UNIT - width + k % width) as u8;
        }
        k += 1;
    }
    order
}
