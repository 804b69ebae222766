//! NEON: vectors of one lane.

use std::arch::aarch64::*;

use super::Kernel;
use super::generic::{STEP, Vectors, shuffle, unshuffle};
use crate::kernel::Width;
use crate::kernel::compile::implement;
use crate::kernel::cpu::Neon;
use crate::kernel::vectors::aarch64::{load_16, store_16};

/// Vectors of a cache line.
const PARTS: usize = STEP / 16;

implement!(Neon: Kernel {
    fn shuffle(width: Width, src: &[u8], dst: &mut [u8]) => { match width {
        Width::W1 => shuffle::<_, PARTS, 1, 8>,
        Width::W2 => shuffle::<_, PARTS, 1, 16>,
        Width::W4 => shuffle::<_, PARTS, 2, 16>,
        Width::W8 => shuffle::<_, PARTS, 4, 16>,
    } }
    fn unshuffle(width: Width, src: &[u8], dst: &mut [u8]) => { match width {
        Width::W1 => unshuffle::<_, PARTS, 1, 8>,
        Width::W2 => unshuffle::<_, PARTS, 1, 16>,
        Width::W4 => unshuffle::<_, PARTS, 2, 16>,
        Width::W8 => unshuffle::<_, PARTS, 4, 16>,
    } }
});

impl Vectors for Neon {
    type Vector = uint8x16_t;

    #[inline(always)]
    fn zero(self) -> uint8x16_t {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { vdupq_n_u8(0) }
    }

    #[inline(always)]
    fn gather(self, lanes: &[[u8; 16]], index: usize, _: usize) -> uint8x16_t {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { load_16(&lanes[index]) }
    }

    #[inline(always)]
    fn scatter(self, vector: uint8x16_t, lanes: &mut [[u8; 16]], index: usize, _: usize) {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { store_16(&mut lanes[index], vector) }
    }

    #[inline(always)]
    fn load(self, line: &[u8; STEP], part: usize) -> uint8x16_t {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { load_16(&line.as_chunks().0[part]) }
    }

    #[inline(always)]
    fn store(self, vector: uint8x16_t, line: &mut [u8; STEP], part: usize) {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { store_16(&mut line.as_chunks_mut().0[part], vector) }
    }

    #[inline(always)]
    fn zip(self, a: uint8x16_t, b: uint8x16_t) -> [uint8x16_t; 2] {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { [vzip1q_u8(a, b), vzip2q_u8(a, b)] }
    }

    #[inline(always)]
    fn swap_bits<const SHIFT: i32>(self, a: uint8x16_t, b: uint8x16_t, mask: u8) -> [uint8x16_t; 2] {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe {
            let mask = vdupq_n_u8(mask);
            [vbslq_u8(mask, a, vshlq_n_u8::<SHIFT>(b)), vbslq_u8(mask, vshrq_n_u8::<SHIFT>(a), b)]
        }
    }
}
