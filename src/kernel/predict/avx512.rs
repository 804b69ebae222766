//! AVX-512 with VBMI and VBMI2.

use std::arch::x86_64::*;
use std::hint::black_box;

use super::generic::{self, residuals};
use super::operations::{COLUMNS, Lanes, Taps, Tiles, Vectors};
use super::{FilterBank, Kernel, Prediction, filters};
use crate::kernel::Width;
use crate::kernel::bytes::copy_short;
use crate::kernel::compile::implement;
use crate::kernel::cpu::{Avx2, Avx512};
use crate::kernel::vectors::RowOffsets;
use crate::kernel::vectors::x86_64::{load_32_rows, load_64, load_up_to_64, store_32_rows, store_64};
use crate::kernel::word::Word;

implement!(Avx512: Kernel {
    fn residuals(prediction: &Prediction, width: Width, elements: &[u8], out: &mut [u8]) => { residuals }
    fn undo(prediction: &Prediction, width: Width, data: &mut [u8]) => { undo }
    fn filter(bank: &FilterBank, codes: &[u8], numbers: &[u8], out: &mut [u8]) => { filters::residuals }
    fn undo_filter(bank: &FilterBank, codes: &[u8], data: &mut [u8]) => { undo_filter }
});

/// See [`Kernel::undo`].
#[inline(always)]
fn undo(token: Avx512, prediction: &Prediction, width: Width, data: &mut [u8]) {
    generic::undo(Masked::new(token), prediction, width, data);
}

/// See [`Kernel::undo_filter`].
#[inline(always)]
fn undo_filter(token: Avx512, bank: &FilterBank, codes: &[u8], data: &mut [u8]) {
    filters::undo(Masked::new(token), bank, codes, data);
}

/// The token, and masks of the second of each two units of 1, 2, 4, .. 32 bytes.
///
/// The masks are hidden from the compiler, which would turn shuffles with known masks into slower
/// instructions.
#[derive(Clone, Copy)]
struct Masked {
    token: Avx512,
    halves: [u64; 6],
}

impl Masked {
    #[inline(always)]
    fn new(token: Avx512) -> Self {
        Self { token, halves: *black_box(&HALVES) }
    }
}

static HALVES: [u64; 6] = [
    0xAAAA_AAAA_AAAA_AAAA,
    0xCCCC_CCCC_CCCC_CCCC,
    0xF0F0_F0F0_F0F0_F0F0,
    0xFF00_FF00_FF00_FF00,
    0xFFFF_0000_FFFF_0000,
    0xFFFF_FFFF_0000_0000,
];

impl Vectors for Masked {
    type Vector = __m512i;
    const BYTES: usize = 64;

    #[inline(always)]
    fn zero(self) -> __m512i {
        // SAFETY: the token in `self` proves that this CPU has AVX-512.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn load(self, bytes: &[u8]) -> __m512i {
        // SAFETY: the token in `self` proves that this CPU has AVX-512.
        unsafe { load_up_to_64(bytes) }
    }

    #[inline(always)]
    fn store(self, vector: __m512i, bytes: &mut [u8]) {
        if let Some(whole) = bytes.first_chunk_mut() {
            // SAFETY: the token in `self` proves that this CPU has AVX-512.
            unsafe { store_64(whole, vector) }
        } else {
            // a masked store would hold up the loads of the bytes after it until it is done
            let mut padded = [0; 64];
            // SAFETY: the token in `self` proves that this CPU has AVX-512.
            unsafe { store_64(&mut padded, vector) }
            copy_short(&padded, bytes);
        }
    }

    #[inline(always)]
    fn plus<W: Word>(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the token in `self` proves that this CPU has AVX-512.
        unsafe {
            match W::BYTES {
                1 => _mm512_add_epi8(a, b),
                2 => _mm512_add_epi16(a, b),
                4 => _mm512_add_epi32(a, b),
                _ => _mm512_add_epi64(a, b),
            }
        }
    }

    #[inline(always)]
    fn rotate_right<W: Word>(self, x: __m512i) -> __m512i {
        // SAFETY: the token in `self` proves that this CPU has AVX-512.
        unsafe {
            match W::BYTES {
                1 => {
                    let (low, high) = (_mm512_srli_epi16::<1>(x), _mm512_slli_epi16::<7>(x));
                    // each bit of the first operand selects a bit of the other two
                    _mm512_ternarylogic_epi64::<0xCA>(_mm512_set1_epi8(0x7F), low, high)
                }
                2 => _mm512_shrdi_epi16::<1>(x, x),
                4 => _mm512_ror_epi32::<1>(x),
                _ => _mm512_ror_epi64::<1>(x),
            }
        }
    }

    #[inline(always)]
    fn invert_negative<W: Word>(self, x: __m512i) -> __m512i {
        // SAFETY: the token in `self` proves that this CPU has AVX-512.
        unsafe {
            let (sign, others) = match W::BYTES {
                1 => (_mm512_movm_epi8(_mm512_movepi8_mask(x)), _mm512_set1_epi8(i8::MAX)),
                2 => (_mm512_srai_epi16::<15>(x), _mm512_set1_epi16(i16::MAX)),
                4 => (_mm512_srai_epi32::<31>(x), _mm512_set1_epi32(i32::MAX)),
                _ => (_mm512_srai_epi64::<63>(x), _mm512_set1_epi64(i64::MAX)),
            };
            // `x ^ (sign & others)`: the compiler would make two instructions of it
            _mm512_ternarylogic_epi64::<0x78>(x, sign, others)
        }
    }

    #[inline(always)]
    fn sums<W: Word>(self, mut sums: __m512i) -> __m512i {
        let [of_1, of_2, of_4, of_8, of_16, of_32] = self.halves;
        if W::BYTES <= 1 {
            sums = self.plus::<W>(sums, shuffle(self.token, sums, const { &spread::<1>(W::BYTES) }, of_1));
        }
        if W::BYTES <= 2 {
            sums = self.plus::<W>(sums, shuffle(self.token, sums, const { &spread::<2>(W::BYTES) }, of_2));
        }
        if W::BYTES <= 4 {
            sums = self.plus::<W>(sums, shuffle(self.token, sums, const { &spread::<4>(W::BYTES) }, of_4));
        }
        sums = self.plus::<W>(sums, shuffle(self.token, sums, const { &spread::<8>(W::BYTES) }, of_8));
        sums = self.plus::<W>(sums, shuffle(self.token, sums, const { &spread::<16>(W::BYTES) }, of_16));
        self.plus::<W>(sums, shuffle(self.token, sums, const { &spread::<32>(W::BYTES) }, of_32))
    }

    #[inline(always)]
    fn last<W: Word>(self, vector: __m512i) -> __m512i {
        shuffle(self.token, vector, const { &spread::<64>(W::BYTES) }, u64::MAX)
    }
}

impl Lanes for Masked {
    /// Shuffles go across the lanes of other instructions.
    const LANE: usize = 64;

    #[inline(always)]
    fn load_lanes(self, bytes: &[u8], _: usize) -> __m512i {
        self.load(bytes)
    }

    #[inline(always)]
    fn store_lanes(self, vector: __m512i, bytes: &mut [u8], _: usize) {
        if let Some(bytes) = bytes.first_chunk_mut() {
            // SAFETY: the token in `self` proves that this CPU has AVX-512.
            unsafe { store_64(bytes, vector) }
        }
    }

    #[inline(always)]
    fn shuffle(self, vector: __m512i, order: __m512i) -> __m512i {
        // SAFETY: the token in `self` proves that this CPU has AVX-512 with VBMI.
        unsafe {
            let mask = _mm512_testn_epi8_mask(order, _mm512_set1_epi8(i8::MIN));
            _mm512_maskz_permutexvar_epi8(mask, order, vector)
        }
    }

    #[inline(always)]
    fn lane_before(self, _: __m512i) -> __m512i {
        self.zero()
    }

    #[inline(always)]
    fn last_lane(self, vector: __m512i) -> __m512i {
        vector
    }

    #[inline(always)]
    fn eighths<W: Word>(self, x: __m512i, weight: u8) -> __m512i {
        // SAFETY: the token in `self` proves that this CPU has AVX-512.
        unsafe {
            match W::BYTES {
                // a product is divided by 2^15: an element is the upper byte of its factor
                1 => {
                    let weight = _mm512_set1_epi16(i16::from(weight) << 4);
                    let low = _mm512_mulhrs_epi16(_mm512_slli_epi16::<8>(x), weight);
                    let high = _mm512_mulhrs_epi16(_mm512_andnot_si512(_mm512_set1_epi16(0xFF), x), weight);
                    _mm512_or_si512(_mm512_and_si512(_mm512_set1_epi16(0xFF), low), _mm512_slli_epi16::<8>(high))
                }
                2 => _mm512_mulhrs_epi16(x, _mm512_set1_epi16(i16::from(weight) << 12)),
                _ => {
                    let (weight, seven) = (_mm512_set1_epi32(weight.into()), _mm512_set1_epi32(7));
                    let whole = _mm512_mullo_epi32(_mm512_srai_epi32::<3>(x), weight);
                    let rest = _mm512_mullo_epi16(_mm512_and_si512(x, seven), weight); // at most 49
                    let rest = _mm512_srli_epi32::<3>(_mm512_add_epi32(rest, _mm512_set1_epi32(4)));
                    _mm512_add_epi32(whole, rest)
                }
            }
        }
    }
}

impl Tiles for Masked {
    /// Most samples end within their last tile.
    type Fewer = Avx2;

    #[inline(always)]
    fn fewer(self) -> Avx2 {
        self.token.into()
    }

    #[inline(always)]
    fn load_rows(self, bytes: &[u8], rows: &RowOffsets) -> [__m512i; COLUMNS] {
        // SAFETY: the token in `self` proves that this CPU has AVX-512.
        unsafe { load_32_rows(bytes, rows) }
    }

    #[inline(always)]
    fn store_rows(self, tile: [__m512i; COLUMNS], bytes: &mut [u8], rows: &RowOffsets) {
        // SAFETY: the token in `self` proves that this CPU has AVX-512.
        unsafe { store_32_rows(bytes, rows, tile) }
    }

    #[inline(always)]
    fn interleave(self, a: __m512i, b: __m512i) -> [__m512i; 2] {
        // SAFETY: the token in `self` proves that this CPU has AVX-512.
        unsafe { [_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)] }
    }

    #[inline(always)]
    fn minus(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the token in `self` proves that this CPU has AVX-512.
        unsafe { _mm512_sub_epi16(a, b) }
    }

    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the token in `self` proves that this CPU has AVX-512.
        unsafe { _mm512_and_si512(a, b) }
    }

    #[inline(always)]
    fn multiply(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the token in `self` proves that this CPU has AVX-512.
        unsafe { _mm512_mulhrs_epi16(a, b) }
    }
}

/// A bit for each element of odd index.
const ODD: u32 = 0xAAAA_AAAA;

impl Taps for Masked {
    #[inline(always)]
    fn pairs(self, last: __m512i, before: __m512i) -> [__m512i; 2] {
        // SAFETY: the token in `self` proves that this CPU has AVX-512.
        unsafe {
            let even = _mm512_mask_blend_epi16(ODD, last, _mm512_slli_epi32::<16>(before));
            let odd = _mm512_mask_blend_epi16(ODD, _mm512_srli_epi32::<16>(last), before);
            [even, odd]
        }
    }

    #[inline(always)]
    fn add_products(self, sums: __m512i, pairs: __m512i, factors: __m512i) -> __m512i {
        // SAFETY: the token in `self` proves that this CPU has AVX-512.
        unsafe { _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, factors)) }
    }

    #[inline(always)]
    fn join_sums(self, [even, odd]: [__m512i; 2]) -> __m512i {
        // SAFETY: the token in `self` proves that this CPU has AVX-512.
        unsafe { _mm512_mask_blend_epi16(ODD, _mm512_srli_epi32::<12>(even), _mm512_slli_epi32::<4>(odd)) }
    }
}

/// Returns the bytes of `vector` in `order`, and 0 for each bit that `mask` does not have.
#[inline(always)]
fn shuffle(_: Avx512, vector: __m512i, order: &[u8; 64], mask: u64) -> __m512i {
    // SAFETY: the token proves that this CPU has AVX-512 with VBMI.
    unsafe { _mm512_maskz_permutexvar_epi8(mask, load_64(order), vector) }
}

/// Returns the order that brings, for each two units of `UNIT` bytes, the last element of the first
/// unit to all elements of the second. For units of 64 bytes, brings the last element of the vector
/// to all elements.
const fn spread<const UNIT: usize>(width: usize) -> [u8; 64] {
    let mut order = [0; 64];
    let mut k = 0;
    while k < 64 {
        let first = if UNIT == 64 { 64 } else { k / UNIT * UNIT };
        order[k] = if first >= width { (first - width + k % width) as u8 } else { 0 };
        k += 1;
    }
    order
}
