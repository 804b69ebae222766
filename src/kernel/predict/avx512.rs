//! AVX-512 with VBMI and VBMI2: vectors of one lane, with masked shuffles.
//!
//! A step of a prefix sum is one shuffle: for each pair of adjacent units of 2^k bytes, it copies
//! the last element of the first unit to all elements of the second, and a mask clears the first.
//! Many samples end within their last tile, and a tile of AVX-512 takes longer than a tile of AVX2.
//! AVX2 therefore handles a tile if at most half of its rows are needed.

use super::vectors::{COLUMNS, Vectors};
use super::{FilterBank, Kernel, Prediction, filters, rows};
use crate::kernel::dispatch::{Avx2, Avx512, implement, intrinsics};
use crate::kernel::vectors::RowOffsets;
use crate::kernel::vectors::x86_64::{load_32_rows, load_64, load_up_to_64, store_32_rows, store_64};
use crate::kernel::{Width, Word, copy_short};
use std::arch::x86_64::*;
use std::hint::black_box;

implement!([Avx512] Kernel {
    fn residuals(prediction: &Prediction, width: Width, elements: &[u8], out: &mut [u8]) => { rows::residuals }
    fn undo(prediction: &Prediction, width: Width, data: &mut [u8]) => { undo }
    fn filter(bank: &FilterBank, codes: &[u8], numbers: &[u8], out: &mut [u8]) => { filters::residuals }
    fn undo_filter(bank: &FilterBank, codes: &[u8], data: &mut [u8]) => { undo_filter }
});

#[inline(always)]
fn undo(token: Avx512, prediction: &Prediction, width: Width, data: &mut [u8]) {
    rows::undo(Avx512Masks::new(token), prediction, width, data);
}

#[inline(always)]
fn undo_filter(token: Avx512, bank: &FilterBank, codes: &[u8], data: &mut [u8]) {
    filters::undo(Avx512Masks::new(token), bank, codes, data);
}

/// The token, and masks that select the second unit of each pair, for units of 1, 2, 4, ... 32
/// bytes.
///
/// The masks are hidden from the compiler, because it would turn shuffles with known masks into
/// slower instructions.
#[derive(Clone, Copy)]
struct Avx512Masks {
    token: Avx512,
    halves: [u64; 6],
}

impl Avx512Masks {
    #[inline(always)]
    fn new(token: Avx512) -> Self {
        Self { token, halves: *black_box(&HALVES) }
    }
}

impl From<Avx512Masks> for Avx512 {
    #[inline(always)]
    fn from(masked: Avx512Masks) -> Self {
        masked.token
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

intrinsics! {
    [Avx512]
    impl Vectors for Avx512Masks {
        type Vector = __m512i;
        type Narrower = Avx2;
        const BYTES: usize = 64;
        const LANE: usize = 64;

        fn zero(v: Avx512Masks) -> __m512i {
            _mm512_setzero_si512()
        }

        fn load(v: Avx512Masks, bytes: &[u8]) -> __m512i {
            load_up_to_64(bytes)
        }

        fn store(v: Avx512Masks, vector: __m512i, bytes: &mut [u8]) {
            if let Some(whole) = bytes.first_chunk_mut() {
                store_64(whole, vector)
            } else {
                // a masked store would stall later loads of the bytes after it
                let mut padded = [0; 64];
                store_64(&mut padded, vector);
                copy_short(&padded, bytes);
            }
        }

        fn plus<W: Word>(v: Avx512Masks, a: __m512i, b: __m512i) -> __m512i {
            match W::BYTES {
                1 => _mm512_add_epi8(a, b),
                2 => _mm512_add_epi16(a, b),
                4 => _mm512_add_epi32(a, b),
                _ => _mm512_add_epi64(a, b),
            }
        }

        fn rotate_right<W: Word>(v: Avx512Masks, x: __m512i) -> __m512i {
            match W::BYTES {
                1 => {
                    let (low, high) = (_mm512_srli_epi16::<1>(x), _mm512_slli_epi16::<7>(x));
                    // each bit of the first operand selects a bit from one of the other two
                    _mm512_ternarylogic_epi64::<0xCA>(_mm512_set1_epi8(0x7F), low, high)
                }
                2 => _mm512_shrdi_epi16::<1>(x, x),
                4 => _mm512_ror_epi32::<1>(x),
                _ => _mm512_ror_epi64::<1>(x),
            }
        }

        fn invert_negative<W: Word>(v: Avx512Masks, x: __m512i) -> __m512i {
            let (sign, others) = match W::BYTES {
                1 => (_mm512_movm_epi8(_mm512_movepi8_mask(x)), _mm512_set1_epi8(i8::MAX)),
                2 => (_mm512_srai_epi16::<15>(x), _mm512_set1_epi16(i16::MAX)),
                4 => (_mm512_srai_epi32::<31>(x), _mm512_set1_epi32(i32::MAX)),
                _ => (_mm512_srai_epi64::<63>(x), _mm512_set1_epi64(i64::MAX)),
            };
            // `x ^ (sign & others)`: the compiler would emit two instructions
            _mm512_ternarylogic_epi64::<0x78>(x, sign, others)
        }

        fn sums<W: Word>(v: Avx512Masks, mut sums: __m512i) -> __m512i {
            let [of_1, of_2, of_4, of_8, of_16, of_32] = v.halves;
            if W::BYTES <= 1 {
                sums = v.plus::<W>(sums, shuffle(v.token, sums, const { &spread::<1>(W::BYTES) }, of_1));
            }
            if W::BYTES <= 2 {
                sums = v.plus::<W>(sums, shuffle(v.token, sums, const { &spread::<2>(W::BYTES) }, of_2));
            }
            if W::BYTES <= 4 {
                sums = v.plus::<W>(sums, shuffle(v.token, sums, const { &spread::<4>(W::BYTES) }, of_4));
            }
            sums = v.plus::<W>(sums, shuffle(v.token, sums, const { &spread::<8>(W::BYTES) }, of_8));
            sums = v.plus::<W>(sums, shuffle(v.token, sums, const { &spread::<16>(W::BYTES) }, of_16));
            v.plus::<W>(sums, shuffle(v.token, sums, const { &spread::<32>(W::BYTES) }, of_32))
        }

        fn last<W: Word>(v: Avx512Masks, vector: __m512i) -> __m512i {
            shuffle(v.token, vector, const { &spread::<64>(W::BYTES) }, u64::MAX)
        }

        fn shuffle(v: Avx512Masks, vector: __m512i, order: __m512i) -> __m512i {
            let mask = _mm512_testn_epi8_mask(order, _mm512_set1_epi8(i8::MIN));
            _mm512_maskz_permutexvar_epi8(mask, order, vector)
        }

        fn eighths<W: Word>(v: Avx512Masks, x: __m512i, weight: u8) -> __m512i {
            match W::BYTES {
                // `mulhrs` divides the product by 2^15, so an element is placed in the upper byte
                // of a factor
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

        fn narrower(v: Avx512Masks) -> Avx2 {
            v.token.into()
        }

        fn load_rows(v: Avx512Masks, bytes: &[u8], rows: &RowOffsets) -> [__m512i; COLUMNS] {
            load_32_rows(bytes, rows)
        }

        fn store_rows(v: Avx512Masks, tile: [__m512i; COLUMNS], bytes: &mut [u8], rows: &RowOffsets) {
            store_32_rows(bytes, rows, tile)
        }

        fn interleave(v: Avx512Masks, a: __m512i, b: __m512i) -> [__m512i; 2] {
            [_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)]
        }

        fn minus(v: Avx512Masks, a: __m512i, b: __m512i) -> __m512i {
            _mm512_sub_epi16(a, b)
        }

        fn and(v: Avx512Masks, a: __m512i, b: __m512i) -> __m512i {
            _mm512_and_si512(a, b)
        }

        fn multiply(v: Avx512Masks, a: __m512i, b: __m512i) -> __m512i {
            _mm512_mulhrs_epi16(a, b)
        }

        fn pairs(v: Avx512Masks, last: __m512i, before: __m512i) -> [__m512i; 2] {
            let even = _mm512_mask_blend_epi16(ODD, last, _mm512_slli_epi32::<16>(before));
            let odd = _mm512_mask_blend_epi16(ODD, _mm512_srli_epi32::<16>(last), before);
            [even, odd]
        }

        fn add_products(v: Avx512Masks, sums: __m512i, pairs: __m512i, factors: __m512i) -> __m512i {
            _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, factors))
        }

        fn join_sums(v: Avx512Masks, [even, odd]: [__m512i; 2]) -> __m512i {
            _mm512_mask_blend_epi16(ODD, _mm512_srli_epi32::<12>(even), _mm512_slli_epi32::<4>(odd))
        }
    }
}

/// A mask of the elements with odd indices.
const ODD: u32 = 0xAAAA_AAAA;

intrinsics! {
    [Avx512]
    /// Returns the bytes of `vector` in `order`, and 0 where the bit in `mask` is not set.
    fn shuffle(_: Avx512, vector: __m512i, order: &[u8; 64], mask: u64) -> __m512i {
        _mm512_maskz_permutexvar_epi8(mask, load_64(order), vector)
    }
}

/// Returns an order for shuffles. For each pair of units of `UNIT` bytes, it copies the last
/// element of the first unit to all elements of the second. If `UNIT` is 64, it copies the last
/// element of the vector to all elements.
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
