//! NEON: one square at a time.

use std::arch::aarch64::*;

use super::Kernel;
use super::generic::{Squares, Tile, elements};
use crate::kernel::Width;
use crate::kernel::compile::implement;
use crate::kernel::cpu::Neon;
use crate::kernel::vectors::aarch64::{load_lines, store_lines};
use crate::kernel::word::Word;

implement!(Neon: Kernel {
    fn to_rows(width: Width, rows: usize, columns: &[u8], out: &mut [u8]) => { match width {
        Width::W1 => to_rows::<u8, 16>,
        Width::W2 => to_rows::<u16, 8>,
        Width::W4 => to_rows::<u32, 4>,
        Width::W8 => to_rows::<u64, 2>,
    } }
});

/// See [`Kernel::to_rows`].
#[inline(always)]
fn to_rows<W: Word, const N: usize>(token: Neon, _: Width, rows: usize, columns: &[u8], out: &mut [u8]) {
    let tile = Tile::new::<W>(rows, columns.len());
    if !tile.to_rows::<_, W, N>(token, columns, out) {
        elements::<W>(tile, columns, out);
    }
}

impl Squares for Neon {
    type Vector = uint8x16_t;
    const LANES: usize = 1;

    #[inline(always)]
    fn load<const N: usize>(self, bytes: &[u8], stride: usize, count: usize) -> [uint8x16_t; N] {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { load_lines(bytes, stride, count) }
    }

    #[inline(always)]
    fn store<const N: usize>(self, vectors: [uint8x16_t; N], bytes: &mut [u8], stride: usize, count: usize) {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { store_lines(bytes, stride, count, vectors) }
    }

    #[inline(always)]
    fn interleave<W: Word>(self, a: uint8x16_t, b: uint8x16_t) -> [uint8x16_t; 2] {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe {
            match W::BYTES {
                1 => [vzip1q_u8(a, b), vzip2q_u8(a, b)],
                2 => {
                    let (a, b) = (vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b));
                    [vreinterpretq_u8_u16(vzip1q_u16(a, b)), vreinterpretq_u8_u16(vzip2q_u16(a, b))]
                }
                4 => {
                    let (a, b) = (vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b));
                    [vreinterpretq_u8_u32(vzip1q_u32(a, b)), vreinterpretq_u8_u32(vzip2q_u32(a, b))]
                }
                _ => {
                    let (a, b) = (vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b));
                    [vreinterpretq_u8_u64(vzip1q_u64(a, b)), vreinterpretq_u8_u64(vzip2q_u64(a, b))]
                }
            }
        }
    }
}
