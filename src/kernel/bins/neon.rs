//! NEON: a group is four vectors.

use std::arch::aarch64::*;

use super::generic::{Lanes, groups, groups_of_two};
use super::model::Class;
use super::{BinModel, GROUP, Groups, Kernel};
use crate::kernel::compile::implement;
use crate::kernel::cpu::Neon;
use crate::kernel::expand::{WINDOW, expand};
use crate::kernel::vectors::aarch64::{load_16, load_64, mask_of, store_64};

implement!(Neon: Kernel {
    fn groups(model: &BinModel, block: Groups<'_, '_>) => { groups }
    fn groups_of_two(model: &BinModel, blocks: [Groups<'_, '_>; 2]) => { groups_of_two }
});

/// For each number of bits, a mask of them.
const MASK: [u8; 16] = [0, 1, 3, 7, 15, 31, 63, 127, 255, 0, 0, 0, 0, 0, 0, 0];

type Quarters = [uint8x16_t; 4];

impl Lanes for Neon {
    type Bytes = Quarters;
    type Mask = Quarters;

    #[inline(always)]
    fn load(self, bytes: &[u8; GROUP]) -> Quarters {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { load_64(bytes) }
    }

    #[inline(always)]
    fn store(self, bytes: Quarters, to: &mut [u8; GROUP]) {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { store_64(to, bytes) }
    }

    #[inline(always)]
    fn store_pairs(self, low: Quarters, high: Quarters, to: &mut [[u8; 2]; GROUP]) {
        let (halves, _) = to.as_flattened_mut().as_chunks_mut::<GROUP>();
        for (half, at) in halves.iter_mut().zip([0, 2]) {
            // in bounds: at most 3
            let (low, high) = ([low[at], low[at + 1]], [high[at], high[at + 1]]);
            // SAFETY: the token `self` proves that this CPU has NEON.
            unsafe {
                // in bounds: two of each
                let (a, b) = (vzipq_u8(low[0], high[0]), vzipq_u8(low[1], high[1]));
                store_64(half, [a.0, a.1, b.0, b.1]);
            }
        }
    }

    #[inline(always)]
    fn look_up_slot(self, table: &[u8; 256], slots: Quarters) -> Quarters {
        let (quarters, _) = table.as_chunks();
        let mut found = slots;
        for found in &mut found {
            // SAFETY: the token `self` proves that this CPU has NEON.
            unsafe {
                let (slots, quarter) = (*found, vdupq_n_u8(64));
                // in bounds: four quarters
                *found = vqtbl4q_u8(load_table(self, &quarters[0]), slots);
                let mut at = slots;
                for quarter_table in &quarters[1..] {
                    // an index outside of this quarter keeps what was found
                    at = vsubq_u8(at, quarter);
                    *found = vqtbx4q_u8(*found, load_table(self, quarter_table), at);
                }
            }
        }
        found
    }

    #[inline(always)]
    fn look_up_bin(self, table: &[u8; GROUP], mut bins: Quarters, _: bool) -> Quarters {
        let table = load_table(self, table);
        for bins in &mut bins {
            // SAFETY: the token `self` proves that this CPU has NEON.
            *bins = unsafe { vqtbl4q_u8(table, *bins) };
        }
        bins
    }

    #[inline(always)]
    fn or(self, a: Quarters, b: Quarters) -> Quarters {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { [vorrq_u8(a[0], b[0]), vorrq_u8(a[1], b[1]), vorrq_u8(a[2], b[2]), vorrq_u8(a[3], b[3])] }
    }

    #[inline(always)]
    fn without_bins(
        self,
        class: &Class,
        bins: Quarters,
        slots: Quarters,
        upper: Quarters,
        is_wide: bool,
    ) -> [Quarters; 2] {
        let frequencies = self.look_up_bin(&class.frequency, bins, is_wide);
        let starts = self.look_up_bin(&class.start, bins, is_wide);
        let [mut lower, mut next_upper] = [slots; 2];
        for i in 0..4 {
            // SAFETY: the token `self` proves that this CPU has NEON.
            unsafe {
                // in bounds: four quarters
                let (a, b, c) = (frequencies[i], upper[i], vsubq_u8(slots[i], starts[i]));
                let first = vmlal_u8(vmovl_u8(vget_low_u8(c)), vget_low_u8(a), vget_low_u8(b));
                let second = vmlal_high_u8(vmovl_high_u8(c), a, b);
                let (first, second) = (vreinterpretq_u8_u16(first), vreinterpretq_u8_u16(second));
                (lower[i], next_upper[i]) = (vuzp1q_u8(first, second), vuzp2q_u8(first, second));
            }
        }
        [lower, next_upper]
    }

    #[inline(always)]
    fn take_bits(self, lower: Quarters, upper: Quarters, counts: Quarters) -> [Quarters; 3] {
        let mut taken = [lower; 3];
        for i in 0..4 {
            // SAFETY: the token `self` proves that this CPU has NEON.
            unsafe {
                // in bounds: four quarters
                let counts = vandq_u8(counts[i], vdupq_n_u8(15));
                let right = vnegq_s8(vreinterpretq_s8_u8(counts));
                let states = (vzip1q_u8(lower[i], upper[i]), vzip2q_u8(lower[i], upper[i]));
                let first = vshlq_u16(vreinterpretq_u16_u8(states.0), vmovl_s8(vget_low_s8(right)));
                let second = vshlq_u16(vreinterpretq_u16_u8(states.1), vmovl_high_s8(right));
                let (first, second) = (vreinterpretq_u8_u16(first), vreinterpretq_u8_u16(second));
                taken[0][i] = vandq_u8(lower[i], vqtbl1q_u8(load_16(&MASK), counts));
                (taken[1][i], taken[2][i]) = (vuzp1q_u8(first, second), vuzp2q_u8(first, second));
            }
        }
        taken
    }

    #[inline(always)]
    fn zeros(self, mut bytes: Quarters) -> Quarters {
        for bytes in &mut bytes {
            // SAFETY: the token `self` proves that this CPU has NEON.
            *bytes = unsafe { vceqzq_u8(*bytes) };
        }
        bytes
    }

    #[inline(always)]
    fn tops(self, mut bytes: Quarters) -> Quarters {
        for bytes in &mut bytes {
            // SAFETY: the token `self` proves that this CPU has NEON.
            *bytes = unsafe { vcltzq_s8(vreinterpretq_s8_u8(*bytes)) };
        }
        bytes
    }

    #[inline(always)]
    fn bits(self, mask: Quarters) -> u64 {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { mask_of(mask) }
    }

    #[inline(always)]
    fn select(self, mask: Quarters, yes: Quarters, no: Quarters) -> Quarters {
        let mut selected = no;
        for i in 0..4 {
            // in bounds: four quarters
            // SAFETY: the token `self` proves that this CPU has NEON.
            selected[i] = unsafe { vbslq_u8(mask[i], yes[i], no[i]) };
        }
        selected
    }

    #[inline(always)]
    fn expand(self, mask: Quarters, bits: u64, next: &[u8; WINDOW], no: Quarters) -> Quarters {
        self.select(mask, expand(self, bits, next), no)
    }
}

/// Returns a table of 64 bytes.
#[inline(always)]
fn load_table(_: Neon, table: &[u8; 64]) -> uint8x16x4_t {
    // SAFETY: the token proves that this CPU has NEON.
    let [a, b, c, d] = unsafe { load_64(table) };
    uint8x16x4_t(a, b, c, d)
}
