//! NEON: a shuffle of eight bytes.

use super::Shuffle;
use crate::kernel::cpu::Neon;
use crate::kernel::vectors::aarch64::{load_8, store_8};
use std::arch::aarch64::*;

impl Shuffle for Neon {
    #[inline(always)]
    fn shuffle(self, bytes: &[u8; 8], order: &[u8; 8]) -> [u8; 8] {
        let mut shuffled = [0; 8];
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { store_8(&mut shuffled, vtbl1_u8(load_8(bytes), load_8(order))) }
        shuffled
    }
}
