//! NEON: a group is four vectors.
//!
//! A look-up uses a table of 64 bytes in four registers. For an index beyond the table, it returns
//! 0 or leaves the result of an earlier look-up unchanged. A table of 256 bytes therefore takes
//! four look-ups. Bytes are widened to elements of two bytes, and each element is shifted by its
//! own count.

use super::{GROUP, Lanes, MASK};
use crate::kernel::dispatch::{Neon, intrinsics};
use crate::kernel::vectors::aarch64::{load_16, load_64, load_table, store_64};
use std::arch::aarch64::*;

type Quarters = [uint8x16_t; 4];

intrinsics! {
    [Neon]
    impl Lanes for Neon {
        fn load_pairs(v: Neon, pairs: &[[u8; 2]; GROUP]) -> [Quarters; 2] {
            let (halves, _) = pairs.as_flattened().as_chunks();
            let (a, b) = (load_64(&halves[0]), load_64(&halves[1])); // in bounds: two halves
            [
                [vuzp1q_u8(a[0], a[1]), vuzp1q_u8(a[2], a[3]), vuzp1q_u8(b[0], b[1]), vuzp1q_u8(b[2], b[3])],
                [vuzp2q_u8(a[0], a[1]), vuzp2q_u8(a[2], a[3]), vuzp2q_u8(b[0], b[1]), vuzp2q_u8(b[2], b[3])],
            ]
        }

        fn store_pairs(v: Neon, low: Quarters, high: Quarters, to: &mut [[u8; 2]; GROUP]) {
            let (halves, _) = to.as_flattened_mut().as_chunks_mut::<GROUP>();
            for (half, at) in halves.iter_mut().zip([0, 2]) {
                // in bounds: both indices are at most 3
                let (low, high) = ([low[at], low[at + 1]], [high[at], high[at + 1]]);
                // in bounds: two of each
                let (a, b) = (vzipq_u8(low[0], high[0]), vzipq_u8(low[1], high[1]));
                store_64(half, [a.0, a.1, b.0, b.1]);
            }
        }

        fn look_up_slot(v: Neon, table: &[u8; 256], slots: Quarters) -> Quarters {
            let (quarters, _) = table.as_chunks();
            let mut found = slots;
            for found in &mut found {
                let (slots, quarter) = (*found, vdupq_n_u8(64));
                // in bounds: four quarters
                *found = vqtbl4q_u8(load_table(&quarters[0]), slots);
                let mut at = slots;
                for quarter_table in &quarters[1..] {
                    // an index outside this quarter keeps the entry found so far
                    at = vsubq_u8(at, quarter);
                    *found = vqtbx4q_u8(*found, load_table(quarter_table), at);
                }
            }
            found
        }

        fn look_up_bin(v: Neon, table: &[u8; GROUP], mut bins: Quarters, _: bool) -> Quarters {
            let table = load_table(table);
            for bins in &mut bins {
                *bins = vqtbl4q_u8(table, *bins);
            }
            bins
        }

        fn add(v: Neon, a: Quarters, b: Quarters) -> Quarters {
            [vaddq_u8(a[0], b[0]), vaddq_u8(a[1], b[1]), vaddq_u8(a[2], b[2]), vaddq_u8(a[3], b[3])]
        }

        fn multiply_add(v: Neon, a: Quarters, b: Quarters, c: Quarters) -> [Quarters; 2] {
            let [mut lower, mut upper] = [a; 2];
            for i in 0..4 {
                // in bounds: four quarters
                let first = vmlal_u8(vmovl_u8(vget_low_u8(c[i])), vget_low_u8(a[i]), vget_low_u8(b[i]));
                let second = vmlal_high_u8(vmovl_high_u8(c[i]), a[i], b[i]);
                let (first, second) = (vreinterpretq_u8_u16(first), vreinterpretq_u8_u16(second));
                (lower[i], upper[i]) = (vuzp1q_u8(first, second), vuzp2q_u8(first, second));
            }
            [lower, upper]
        }

        fn divide(v: Neon, [lower, upper]: [Quarters; 2], by: Quarters, [low, high]: [Quarters; 2]) -> [Quarters; 2] {
            let mut results = [by; 2];
            for i in 0..4 {
                // in bounds: four quarters
                let states = [vzip1q_u8(lower[i], upper[i]), vzip2q_u8(lower[i], upper[i])];
                let reciprocals = [vzip1q_u8(low[i], high[i]), vzip2q_u8(low[i], high[i])];
                let divisors = [vmovl_u8(vget_low_u8(by[i])), vmovl_high_u8(by[i])];
                let [quotients, remainders] = divide_16(v, states[0], divisors[0], reciprocals[0]);
                let [more_quotients, more_remainders] = divide_16(v, states[1], divisors[1], reciprocals[1]);
                results[0][i] = vuzp1q_u8(quotients, more_quotients);
                results[1][i] = vuzp1q_u8(remainders, more_remainders);
            }
            results
        }

        fn take_bits(v: Neon, lower: Quarters, upper: Quarters, counts: Quarters) -> [Quarters; 3] {
            let mut taken = [lower; 3];
            for i in 0..4 {
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
            taken
        }

        fn top_bits(v: Neon, mut bytes: Quarters) -> Quarters {
            for bytes in &mut bytes {
                *bytes = vcltzq_s8(vreinterpretq_s8_u8(*bytes));
            }
            bytes
        }

        fn less_equal(v: Neon, a: Quarters, b: Quarters) -> Quarters {
            [vcleq_u8(a[0], b[0]), vcleq_u8(a[1], b[1]), vcleq_u8(a[2], b[2]), vcleq_u8(a[3], b[3])]
        }
    }
}

intrinsics! {
    [Neon]
    /// Returns the quotients and remainders of elements of two bytes. All arguments except the
    /// divisors are vectors of bytes.
    fn divide_16(_: Neon, states: uint8x16_t, by: uint16x8_t, reciprocals: uint8x16_t) -> [uint8x16_t; 2] {
        let (states, reciprocals) = (vreinterpretq_u16_u8(states), vreinterpretq_u16_u8(reciprocals));
        let products = vmull_u16(vget_low_u16(states), vget_low_u16(reciprocals));
        let more_products = vmull_high_u16(states, reciprocals);
        // can be one too small
        let quotients = vshrn_high_n_u32::<16>(vshrn_n_u32::<16>(products), more_products);
        let remainders = vmlsq_u16(states, quotients, by);
        let is_less = vcgeq_u16(remainders, by);
        let quotients = vsubq_u16(quotients, is_less);
        let remainders = vsubq_u16(remainders, vandq_u16(is_less, by));
        [vreinterpretq_u8_u16(quotients), vreinterpretq_u8_u16(remainders)]
    }
}
