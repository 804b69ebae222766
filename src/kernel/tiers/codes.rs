//! How planes become codes, and codes symbols, and back, in each instruction set.
//!
//! Planes become bytes by the same instruction as in the bit-shuffle of AVX-512. AVX2 and NEON make
//! all ones or zeros of each bit, and keep the bit of its plane. A table of 256 codes is four
//! look-ups in registers of AVX-512 and NEON. AVX2 can only look up 16 bytes at once, so that it
//! takes a step for each row of 16 symbols of which any has a code: one or two of most tables.

use crate::kernel::bytes::pad;
use crate::kernel::dispatch::intrinsics;
use crate::kernel::vectors::Group;
#[cfg(target_arch = "x86_64")]
use {
    crate::kernel::bitshuffle::avx512::bytes_of_planes,
    crate::kernel::dispatch::{Avx2, Avx512},
    crate::kernel::vectors::x86_64::{load_16, load_quarters, load_up_to_64, look_up_256},
    std::arch::x86_64::*,
};
#[cfg(target_arch = "aarch64")]
use {
    crate::kernel::dispatch::Neon,
    crate::kernel::vectors::aarch64::{BIT_OF_BYTE, load_16, load_table, mask_of},
    std::arch::aarch64::*,
};

/// Codes and symbols in vectors.
pub(super) trait Codes: Group {
    /// The symbols of 16 codes.
    type Symbols: Copy;
    /// The codes of 256 symbols.
    type Table;

    /// Loads the symbols of 16 codes.
    fn load_symbols(self, symbols: &[u8; 16]) -> Self::Symbols;
    /// Returns the symbols of a group of codes, which has `W` words.
    fn symbols<const W: usize>(self, words: &[[u8; 8]], symbols: Self::Symbols) -> Self::Bytes;
    /// Replaces the symbols whose bit is set, which are zero, by the next bytes of `escaped`. Zeros
    /// follow its end.
    #[inline(always)]
    fn replace(self, symbols: Self::Bytes, bits: u64, escaped: &[u8]) -> Self::Bytes {
        let padded; // only set near the end: it would take longer than the rest
        let next = match escaped.first_chunk() {
            Some(whole) => whole,
            None => {
                padded = pad(escaped);
                &padded
            }
        };
        self.or(self.expand(bits, next), symbols)
    }
    /// Loads the codes of 256 symbols, of which the lower `W` bits count.
    fn load_codes<const W: usize>(self, code_of: &[u8; 256]) -> Self::Table;
    /// Returns the codes of a group of symbols, in any form that [`plane`](Self::plane) takes.
    fn codes(self, symbols: Self::Bytes, table: &Self::Table) -> Self::Bytes;
    /// Returns bit `bit` of each code.
    fn plane(self, codes: Self::Bytes, bit: u8) -> u64;
}

/// The codes of 16 symbols that have the same upper four bits. All bits of a code are inverted, so
/// that an escape is 0.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct CodeRow {
    upper: __m256i,
    codes: __m256i,
}

/// The rows in which any symbol has a code.
#[cfg(target_arch = "x86_64")]
pub(super) struct CodeRows {
    rows: [CodeRow; 16],
    count: usize,
}

intrinsics! {
    [Avx2]
    impl Codes for Avx2 {
        type Symbols = __m256i;
        type Table = CodeRows;

        fn load_symbols(v: Avx2, symbols: &[u8; 16]) -> __m256i {
            _mm256_broadcastsi128_si256(load_16(symbols))
        }

        fn symbols<const W: usize>(v: Avx2, words: &[[u8; 8]], symbols: __m256i) -> [__m256i; 2] {
            let [low, high] = [codes::<W>(v, words, 0), codes::<W>(v, words, 1)];
            [_mm256_shuffle_epi8(symbols, low), _mm256_shuffle_epi8(symbols, high)]
        }

        fn load_codes<const W: usize>(v: Avx2, code_of: &[u8; 256]) -> CodeRows {
            let zero = _mm256_setzero_si256();
            let mut table = CodeRows { rows: [CodeRow { upper: zero, codes: zero }; 16], count: 0 };
            let escape = (1 << W) - 1;
            for (upper, codes) in code_of.as_chunks::<16>().0.iter().enumerate() {
                let codes = codes.map(|code| code & escape ^ escape);
                if let Some(row) = table.rows.get_mut(table.count).filter(|_| codes != [0; 16]) {
                    let upper = _mm256_set1_epi8((upper << 4) as i8); // exact: all 8 bits
                    *row = CodeRow { upper, codes: v.load_symbols(&codes) };
                    table.count += 1;
                }
            }
            table
        }

        fn codes(v: Avx2, symbols: [__m256i; 2], table: &CodeRows) -> [__m256i; 2] {
            let mut inverted = [_mm256_setzero_si256(); 2];
            for row in table.rows.get(..table.count).unwrap_or(&[]) {
                for (inverted, symbols) in inverted.iter_mut().zip(symbols) {
                    // Symbols of this row become 0x70 to 0x7F, for which the shuffle takes the
                    // lower four bits. Any other becomes 0x80 or more, for which the shuffle gives
                    // 0.
                    let index = _mm256_adds_epu8(_mm256_xor_si256(symbols, row.upper), _mm256_set1_epi8(0x70));
                    *inverted = _mm256_or_si256(*inverted, _mm256_shuffle_epi8(row.codes, index));
                }
            }
            inverted
        }

        fn plane(v: Avx2, [low, high]: [__m256i; 2], bit: u8) -> u64 {
            let to_top = _mm_cvtsi32_si128(7 - i32::from(bit));
            !v.bits([_mm256_sll_epi16(low, to_top), _mm256_sll_epi16(high, to_top)])
        }
    }
}

intrinsics! {
    [Avx2]
    /// Returns the codes of half a group, which has `W` words.
    fn codes<const W: usize>(v: Avx2, words: &[[u8; 8]], half: usize) -> __m256i {
        let mut codes = _mm256_setzero_si256();
        for (bit, word) in words.iter().take(W).enumerate() {
            let plane = (u64::from_le_bytes(*word) >> (32 * half)) as u32; // exact: the half alone
            codes = _mm256_or_si256(codes, _mm256_and_si256(spread(v, plane), _mm256_set1_epi8(1 << bit)));
        }
        codes
    }

    /// Returns a byte for each bit: all ones if it is set, and zero otherwise.
    fn spread(_: Avx2, bits: u32) -> __m256i {
        let bytes = _mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303);
        let each = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
        let bits = _mm256_shuffle_epi8(_mm256_set1_epi32(bits.cast_signed()), bytes);
        _mm256_cmpeq_epi8(_mm256_and_si256(bits, each), each)
    }
}

intrinsics! {
    [Avx512]
    impl Codes for Avx512 {
        type Symbols = __m512i;
        type Table = [__m512i; 4];

        fn load_symbols(v: Avx512, symbols: &[u8; 16]) -> __m512i {
            _mm512_broadcast_i32x4(load_16(symbols))
        }

        fn symbols<const W: usize>(v: Avx512, words: &[[u8; 8]], symbols: __m512i) -> __m512i {
            let planes = load_up_to_64(words[..W].as_flattened()); // in bounds: as many words
            _mm512_shuffle_epi8(symbols, bytes_of_planes(planes))
        }

        // one step instead of two, and no copy near the end: a tenth of the time of a merge
        fn replace(v: Avx512, symbols: __m512i, bits: u64, escaped: &[u8]) -> __m512i {
            _mm512_mask_expand_epi8(symbols, bits, load_up_to_64(escaped))
        }

        fn load_codes<const W: usize>(v: Avx512, code_of: &[u8; 256]) -> [__m512i; 4] {
            load_quarters(code_of)
        }

        fn codes(v: Avx512, symbols: __m512i, table: &[__m512i; 4]) -> __m512i {
            look_up_256(table, symbols)
        }

        fn plane(v: Avx512, codes: __m512i, bit: u8) -> u64 {
            _mm512_test_epi8_mask(codes, _mm512_set1_epi8(1 << bit))
        }
    }
}

intrinsics! {
    [Neon]
    impl Codes for Neon {
        type Symbols = uint8x16_t;
        type Table = [uint8x16x4_t; 4];

        fn load_symbols(v: Neon, symbols: &[u8; 16]) -> uint8x16_t {
            load_16(symbols)
        }

        fn symbols<const W: usize>(v: Neon, words: &[[u8; 8]], symbols: uint8x16_t) -> [uint8x16_t; 4] {
            let mut group = [symbols; 4];
            for (quarter, of_quarter) in group.iter_mut().enumerate() {
                let mut codes = vdupq_n_u8(0);
                for (bit, word) in words.iter().take(W).enumerate() {
                    // in bounds: a word has 8 bytes, a group 4 quarters
                    let bits = vcombine_u8(vdup_n_u8(word[2 * quarter]), vdup_n_u8(word[2 * quarter + 1]));
                    let ones = vtstq_u8(bits, load_16(&BIT_OF_BYTE));
                    codes = vorrq_u8(codes, vandq_u8(ones, vdupq_n_u8(1 << bit)));
                }
                *of_quarter = vqtbl1q_u8(symbols, codes);
            }
            group
        }

        fn load_codes<const W: usize>(v: Neon, code_of: &[u8; 256]) -> [uint8x16x4_t; 4] {
            let [a, b, c, d] = code_of.as_chunks().0 else { return [load_table(&[0; 64]); 4] }; // never
            [load_table(a), load_table(b), load_table(c), load_table(d)]
        }

        fn codes(v: Neon, symbols: [uint8x16_t; 4], tables: &[uint8x16x4_t; 4]) -> [uint8x16_t; 4] {
            let mut group = symbols;
            for vector in &mut group {
                let mut symbols = *vector;
                *vector = vdupq_n_u8(0);
                for table in tables {
                    *vector = vorrq_u8(*vector, vqtbl4q_u8(*table, symbols)); // 0 unless below 64
                    symbols = vsubq_u8(symbols, vdupq_n_u8(64));
                }
            }
            group
        }

        fn plane(v: Neon, [a, b, c, d]: [uint8x16_t; 4], bit: u8) -> u64 {
            let bit = vdupq_n_u8(1 << bit);
            mask_of([vtstq_u8(a, bit), vtstq_u8(b, bit), vtstq_u8(c, bit), vtstq_u8(d, bit)])
        }
    }
}
