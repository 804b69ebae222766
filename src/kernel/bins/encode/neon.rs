//! NEON: a group is four vectors.

use super::generic::{EncodeLanes, groups};
use super::{Coder, EncoderModel, GROUP, Kernel};
use crate::kernel::bins::generic::Lanes;
use crate::kernel::compile::implement;
use crate::kernel::compress::{WINDOW, compress};
use crate::kernel::cpu::Neon;
use crate::kernel::vectors::aarch64::load_64;
use std::arch::aarch64::*;

implement!(Neon: Kernel {
    fn groups(
        model: &EncoderModel,
        classes: &[u8],
        windows: &[[[u8; 2]; GROUP]],
        bins: &[[u8; GROUP]],
        coder: &mut Coder<'_>,
    ) => { groups }
});

type Quarters = [uint8x16_t; 4];

impl EncodeLanes for Neon {
    #[inline(always)]
    fn load_pairs(self, pairs: &[[u8; 2]; GROUP]) -> [Quarters; 2] {
        let (halves, _) = pairs.as_flattened().as_chunks();
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe {
            let (a, b) = (load_64(&halves[0]), load_64(&halves[1])); // in bounds: two halves
            [
                [vuzp1q_u8(a[0], a[1]), vuzp1q_u8(a[2], a[3]), vuzp1q_u8(b[0], b[1]), vuzp1q_u8(b[2], b[3])],
                [vuzp2q_u8(a[0], a[1]), vuzp2q_u8(a[2], a[3]), vuzp2q_u8(b[0], b[1]), vuzp2q_u8(b[2], b[3])],
            ]
        }
    }

    #[inline(always)]
    fn add(self, a: Quarters, b: Quarters) -> Quarters {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { [vaddq_u8(a[0], b[0]), vaddq_u8(a[1], b[1]), vaddq_u8(a[2], b[2]), vaddq_u8(a[3], b[3])] }
    }

    #[inline(always)]
    fn subtract(self, a: Quarters, b: Quarters) -> Quarters {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { [vsubq_u8(a[0], b[0]), vsubq_u8(a[1], b[1]), vsubq_u8(a[2], b[2]), vsubq_u8(a[3], b[3])] }
    }

    #[inline(always)]
    fn multiply_add(self, a: Quarters, b: Quarters, c: Quarters) -> [Quarters; 2] {
        let [mut lower, mut upper] = [a; 2];
        for i in 0..4 {
            // SAFETY: the token `self` proves that this CPU has NEON.
            unsafe {
                // in bounds: four quarters
                let first = vmlal_u8(vmovl_u8(vget_low_u8(c[i])), vget_low_u8(a[i]), vget_low_u8(b[i]));
                let second = vmlal_high_u8(vmovl_high_u8(c[i]), a[i], b[i]);
                let (first, second) = (vreinterpretq_u8_u16(first), vreinterpretq_u8_u16(second));
                (lower[i], upper[i]) = (vuzp1q_u8(first, second), vuzp2q_u8(first, second));
            }
        }
        [lower, upper]
    }

    #[inline(always)]
    fn at_most(self, a: Quarters, b: Quarters) -> Quarters {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { [vcleq_u8(a[0], b[0]), vcleq_u8(a[1], b[1]), vcleq_u8(a[2], b[2]), vcleq_u8(a[3], b[3])] }
    }

    #[inline(always)]
    fn divide(self, [lower, upper]: [Quarters; 2], by: Quarters, [low, high]: [Quarters; 2]) -> [Quarters; 2] {
        let mut results = [by; 2];
        for i in 0..4 {
            // SAFETY: the token `self` proves that this CPU has NEON.
            unsafe {
                // in bounds: four quarters
                let states = [vzip1q_u8(lower[i], upper[i]), vzip2q_u8(lower[i], upper[i])];
                let reciprocals = [vzip1q_u8(low[i], high[i]), vzip2q_u8(low[i], high[i])];
                let divisors = [vmovl_u8(vget_low_u8(by[i])), vmovl_high_u8(by[i])];
                let [quotients, remainders] = divide_16(self, states[0], divisors[0], reciprocals[0]);
                let [more_quotients, more_remainders] = divide_16(self, states[1], divisors[1], reciprocals[1]);
                results[0][i] = vuzp1q_u8(quotients, more_quotients);
                results[1][i] = vuzp1q_u8(remainders, more_remainders);
            }
        }
        results
    }

    #[inline(always)]
    fn compress(self, bits: u64, bytes: Quarters, to: &mut [u8; WINDOW]) {
        let mut group = [0; GROUP];
        self.store(bytes, &mut group);
        compress(self, bits, &group, to);
    }
}

/// Returns quotients and remainders of elements of two bytes, all as bytes but the divisors.
#[inline(always)]
fn divide_16(_: Neon, states: uint8x16_t, by: uint16x8_t, reciprocals: uint8x16_t) -> [uint8x16_t; 2] {
    // SAFETY: the token proves that this CPU has NEON.
    unsafe {
        let (states, reciprocals) = (vreinterpretq_u16_u8(states), vreinterpretq_u16_u8(reciprocals));
        let products = vmull_u16(vget_low_u16(states), vget_low_u16(reciprocals));
        let more_products = vmull_high_u16(states, reciprocals);
        // or one less
        let quotients = vshrn_high_n_u32::<16>(vshrn_n_u32::<16>(products), more_products);
        let remainders = vmlsq_u16(states, quotients, by);
        let is_less = vcgeq_u16(remainders, by);
        let quotients = vsubq_u16(quotients, is_less);
        let remainders = vsubq_u16(remainders, vandq_u16(is_less, by));
        [vreinterpretq_u8_u16(quotients), vreinterpretq_u8_u16(remainders)]
    }
}
