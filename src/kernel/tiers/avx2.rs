//! AVX2: a group is two vectors.

use std::arch::x86_64::*;
use std::ops::Range;

use super::generic::{Vectors, merge, split};
use super::{GROUP, GROUP_BYTES, Kernel, generic};
use crate::kernel::compile::implement;
use crate::kernel::cpu::Avx2;
use crate::kernel::vectors::x86_64::{load_16, load_32, store_32};

implement!(Avx2: Kernel {
    fn merge(width: usize, codes: &[u8], last: &[u8; GROUP_BYTES], table: &[u8; 16], escaped: &[u8], out: &mut [u8]) -> usize => { match width {
        1 => merge::<_, 1>,
        2 => merge::<_, 2>,
        3 => merge::<_, 3>,
        _ => merge::<_, 4>,
    } }
    fn split(width: usize, code_of: &[u8; 256], symbols: &[u8], codes: &mut [u8], escaped: &mut [u8]) -> usize => { match width {
        1 => split::<_, 1>,
        2 => split::<_, 2>,
        3 => split::<_, 3>,
        _ => split::<_, 4>,
    } }
    fn escapes(width: usize, codes: &[u8], range: Range<usize>) -> usize => { escapes }
});

/// See [`Kernel::escapes`]. Compiled without AVX2, because counting in vectors takes longer.
#[inline(never)]
#[target_feature(enable = "popcnt")]
fn escapes(token: Avx2, width: usize, codes: &[u8], range: Range<usize>) -> usize {
    generic::escapes(token, width, codes, range)
}

/// The codes of 16 symbols that have the same upper four bits. All bits of a code are inverted, so
/// that an escape is 0.
#[derive(Clone, Copy)]
pub(super) struct CodeRow {
    upper: __m256i,
    codes: __m256i,
}

/// The rows in which any symbol has a code.
pub(super) struct CodeRows {
    rows: [CodeRow; 16],
    count: usize,
}

impl Vectors for Avx2 {
    type Symbols = __m256i;
    type Codes = CodeRows;

    #[inline(always)]
    fn store_eight(self, eight: __m128i, out: &mut [u8; 8]) {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        *out = unsafe { _mm_cvtsi128_si64(eight) }.to_le_bytes();
    }

    #[inline(always)]
    fn store(self, [low, high]: [__m256i; 2], out: &mut [u8; GROUP]) {
        let (halves, _) = out.as_chunks_mut();
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe {
            store_32(&mut halves[0], low); // in bounds: two halves
            store_32(&mut halves[1], high); // in bounds: two halves
        }
    }

    #[inline(always)]
    fn load_symbols(self, table: &[u8; 16]) -> __m256i {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe { _mm256_broadcastsi128_si256(load_16(table)) }
    }

    #[inline(always)]
    fn add_symbols<const W: usize>(
        self,
        [low, high]: [__m256i; 2],
        words: &[[u8; 8]],
        symbols: __m256i,
    ) -> [__m256i; 2] {
        let [low_codes, high_codes] = [codes::<W>(self, words, 0), codes::<W>(self, words, 1)];
        // SAFETY: the token `self` proves that this CPU has AVX2.
        unsafe {
            [
                _mm256_or_si256(low, _mm256_shuffle_epi8(symbols, low_codes)),
                _mm256_or_si256(high, _mm256_shuffle_epi8(symbols, high_codes)),
            ]
        }
    }

    #[inline(always)]
    fn no_codes(self) -> CodeRows {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        let zero = unsafe { _mm256_setzero_si256() };
        CodeRows { rows: [CodeRow { upper: zero, codes: zero }; 16], count: 0 }
    }

    #[inline(always)]
    fn load_codes<const W: usize>(self, codes: &mut CodeRows, code_of: &[u8; 256]) {
        let escape = (1 << W) - 1;
        let mut count = 0;
        for (upper, row_codes) in code_of.as_chunks::<16>().0.iter().enumerate() {
            let row_codes = row_codes.map(|code| code & escape ^ escape);
            if let Some(row) = codes.rows.get_mut(count).filter(|_| row_codes != [0; 16]) {
                // SAFETY: the token `self` proves that this CPU has AVX2.
                let upper = unsafe { _mm256_set1_epi8((upper << 4) as i8) }; // exact: all 8 bits
                *row = CodeRow { upper, codes: self.load_symbols(&row_codes) };
                count += 1;
            }
        }
        codes.count = count;
    }

    #[inline(always)]
    fn codes_of(self, symbols: &[u8; GROUP], codes: &CodeRows) -> [__m256i; 2] {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        let mut inverted = unsafe { [_mm256_setzero_si256(); 2] };
        for row in codes.rows.get(..codes.count).unwrap_or(&[]) {
            for (inverted, symbols) in inverted.iter_mut().zip(symbols.as_chunks().0) {
                // Symbols of this row become 0x70 to 0x7F, for which the shuffle takes the lower
                // four bits. Any other becomes 0x80 or more, for which the shuffle gives 0.
                // SAFETY: the token `self` proves that this CPU has AVX2.
                unsafe {
                    let lower = _mm256_xor_si256(load_32(symbols), row.upper);
                    let index = _mm256_adds_epu8(lower, _mm256_set1_epi8(0x70));
                    *inverted = _mm256_or_si256(*inverted, _mm256_shuffle_epi8(row.codes, index));
                }
            }
        }
        inverted
    }

    #[inline(always)]
    fn plane(self, [low, high]: [__m256i; 2], bit: u8) -> u64 {
        // SAFETY: the token `self` proves that this CPU has AVX2.
        let [low, high] = unsafe {
            let to_top = _mm_cvtsi32_si128(7 - i32::from(bit));
            [_mm256_movemask_epi8(_mm256_sll_epi16(low, to_top)), _mm256_movemask_epi8(_mm256_sll_epi16(high, to_top))]
        };
        !(u64::from(high.cast_unsigned()) << 32 | u64::from(low.cast_unsigned()))
    }
}

/// Returns the codes of half a group, which has `W` words.
#[inline(always)]
fn codes<const W: usize>(token: Avx2, words: &[[u8; 8]], half: usize) -> __m256i {
    // SAFETY: `token` proves that this CPU has AVX2.
    let mut codes = unsafe { _mm256_setzero_si256() };
    for (bit, word) in words.iter().take(W).enumerate() {
        let plane = (u64::from_le_bytes(*word) >> (32 * half)) as u32; // exact: the half alone
        let ones = spread(token, plane);
        // SAFETY: `token` proves that this CPU has AVX2.
        codes = unsafe { _mm256_or_si256(codes, _mm256_and_si256(ones, _mm256_set1_epi8(1 << bit))) };
    }
    codes
}

/// Returns a byte for each bit: all ones if it is set, and zero otherwise.
#[inline(always)]
fn spread(_: Avx2, bits: u32) -> __m256i {
    // SAFETY: the token proves that this CPU has AVX2.
    unsafe {
        let bytes = _mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303);
        let each = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
        let bits = _mm256_shuffle_epi8(_mm256_set1_epi32(bits.cast_signed()), bytes);
        _mm256_cmpeq_epi8(_mm256_and_si256(bits, each), each)
    }
}
