//! NEON: a group is four vectors.

use std::arch::aarch64::*;
use std::ops::Range;

use super::generic::{Vectors, escapes, merge, split};
use super::{GROUP, GROUP_BYTES, Kernel};
use crate::kernel::compile::implement;
use crate::kernel::cpu::Neon;
use crate::kernel::vectors::aarch64::{BIT_OF_BYTE, load_16, load_64, mask_of, store_8, store_64};

implement!(Neon: Kernel {
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

impl Vectors for Neon {
    type Symbols = uint8x16_t;
    type Codes = [uint8x16x4_t; 4];

    #[inline(always)]
    fn store_eight(self, eight: uint8x8_t, out: &mut [u8; 8]) {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { store_8(out, eight) }
    }

    #[inline(always)]
    fn store(self, group: [uint8x16_t; 4], out: &mut [u8; GROUP]) {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { store_64(out, group) }
    }

    #[inline(always)]
    fn load_symbols(self, table: &[u8; 16]) -> uint8x16_t {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { load_16(table) }
    }

    #[inline(always)]
    fn add_symbols<const W: usize>(
        self,
        mut group: [uint8x16_t; 4],
        words: &[[u8; 8]],
        symbols: uint8x16_t,
    ) -> [uint8x16_t; 4] {
        for (quarter, added) in group.iter_mut().enumerate() {
            // SAFETY: the token `self` proves that this CPU has NEON.
            unsafe {
                let mut codes = vdupq_n_u8(0);
                for (bit, word) in words.iter().take(W).enumerate() {
                    // in bounds: a word has 8 bytes, a group 4 quarters
                    let bits = vcombine_u8(vdup_n_u8(word[2 * quarter]), vdup_n_u8(word[2 * quarter + 1]));
                    let ones = vtstq_u8(bits, load_16(&BIT_OF_BYTE));
                    codes = vorrq_u8(codes, vandq_u8(ones, vdupq_n_u8(1 << bit)));
                }
                *added = vorrq_u8(*added, vqtbl1q_u8(symbols, codes));
            }
        }
        group
    }

    #[inline(always)]
    fn no_codes(self) -> [uint8x16x4_t; 4] {
        // SAFETY: the token `self` proves that this CPU has NEON.
        let zero = unsafe { vdupq_n_u8(0) };
        [uint8x16x4_t(zero, zero, zero, zero); 4]
    }

    #[inline(always)]
    fn load_codes<const W: usize>(self, tables: &mut [uint8x16x4_t; 4], code_of: &[u8; 256]) {
        for (table, codes) in tables.iter_mut().zip(code_of.as_chunks().0) {
            // SAFETY: the token `self` proves that this CPU has NEON.
            let [a, b, c, d] = unsafe { load_64(codes) };
            *table = uint8x16x4_t(a, b, c, d);
        }
    }

    #[inline(always)]
    fn codes_of(self, symbols: &[u8; GROUP], tables: &[uint8x16x4_t; 4]) -> [uint8x16_t; 4] {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe {
            let mut group = load_64(symbols);
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
    }

    #[inline(always)]
    fn plane(self, [a, b, c, d]: [uint8x16_t; 4], bit: u8) -> u64 {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe {
            let bit = vdupq_n_u8(1 << bit);
            mask_of([vtstq_u8(a, bit), vtstq_u8(b, bit), vtstq_u8(c, bit), vtstq_u8(d, bit)])
        }
    }
}
