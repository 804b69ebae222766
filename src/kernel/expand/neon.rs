//! NEON: a group is four vectors.

use super::Eights;
use crate::kernel::cpu::Neon;
use crate::kernel::vectors::aarch64::load_8;
use std::arch::aarch64::*;

impl Eights for Neon {
    type Group = [uint8x16_t; 4];
    type Eight = uint8x8_t;

    #[inline(always)]
    fn zero(self) -> uint8x8_t {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { vdup_n_u8(0) }
    }

    #[inline(always)]
    fn shuffle(self, bytes: &[u8; 8], order: &[u8; 8]) -> uint8x8_t {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { vtbl1_u8(load_8(bytes), load_8(order)) }
    }

    #[inline(always)]
    fn join(self, [a, b, c, d, e, f, g, h]: [uint8x8_t; 8]) -> [uint8x16_t; 4] {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { [vcombine_u8(a, b), vcombine_u8(c, d), vcombine_u8(e, f), vcombine_u8(g, h)] }
    }
}
