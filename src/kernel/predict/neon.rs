//! NEON: vectors of 128 bits.
//!
//! Shifts that insert bits (`sli`, `sri`) rotate elements, and pair the elements of two vectors.
//! Products are twice as wide as their factors, and narrowing shifts round them. Multiplying by a
//! weight in eighths therefore takes one multiplication and one shift, at any width.

use super::vectors::{COLUMNS, Vectors};
use crate::kernel::dispatch::{Neon, intrinsics};
use crate::kernel::vectors::RowOffsets;
use crate::kernel::vectors::aarch64::{load_16, load_rows, store_16, store_rows};
use crate::kernel::{Word, copy_short};
use std::arch::aarch64::*;

intrinsics! {
    [Neon]
    impl Vectors for Neon {
        type Vector = uint8x16_t;
        type Narrower = Neon;
        const BYTES: usize = 16;
        const LANE: usize = 16;

        fn zero(v: Neon) -> uint8x16_t {
            vdupq_n_u8(0)
        }

        fn load(v: Neon, bytes: &[u8]) -> uint8x16_t {
            if let Some(whole) = bytes.first_chunk() {
                load_16(whole)
            } else {
                let mut padded = [0; 16];
                copy_short(bytes, &mut padded);
                load_16(&padded)
            }
        }

        fn store(v: Neon, vector: uint8x16_t, bytes: &mut [u8]) {
            if let Some(whole) = bytes.first_chunk_mut() {
                store_16(whole, vector);
            } else {
                let mut padded = [0; 16];
                store_16(&mut padded, vector);
                copy_short(&padded, bytes);
            }
        }

        fn plus<W: Word>(v: Neon, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
            match W::BYTES {
                1 => vaddq_u8(a, b),
                2 => vreinterpretq_u8_u16(vaddq_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b))),
                4 => vreinterpretq_u8_u32(vaddq_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b))),
                _ => vreinterpretq_u8_u64(vaddq_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b))),
            }
        }

        /// Shifts right by one bit, and inserts the lowest bit at the top.
        fn rotate_right<W: Word>(v: Neon, x: uint8x16_t) -> uint8x16_t {
            match W::BYTES {
                1 => vsliq_n_u8::<7>(vshrq_n_u8::<1>(x), x),
                2 => {
                    let x = vreinterpretq_u16_u8(x);
                    vreinterpretq_u8_u16(vsliq_n_u16::<15>(vshrq_n_u16::<1>(x), x))
                }
                4 => {
                    let x = vreinterpretq_u32_u8(x);
                    vreinterpretq_u8_u32(vsliq_n_u32::<31>(vshrq_n_u32::<1>(x), x))
                }
                _ => {
                    let x = vreinterpretq_u64_u8(x);
                    vreinterpretq_u8_u64(vsliq_n_u64::<63>(vshrq_n_u64::<1>(x), x))
                }
            }
        }

        fn invert_negative<W: Word>(v: Neon, x: uint8x16_t) -> uint8x16_t {
            let others = match W::BYTES {
                1 => vshrq_n_u8::<1>(vreinterpretq_u8_s8(vshrq_n_s8::<7>(vreinterpretq_s8_u8(x)))),
                2 => {
                    let sign = vshrq_n_s16::<15>(vreinterpretq_s16_u8(x));
                    vreinterpretq_u8_u16(vshrq_n_u16::<1>(vreinterpretq_u16_s16(sign)))
                }
                4 => {
                    let sign = vshrq_n_s32::<31>(vreinterpretq_s32_u8(x));
                    vreinterpretq_u8_u32(vshrq_n_u32::<1>(vreinterpretq_u32_s32(sign)))
                }
                _ => {
                    let sign = vshrq_n_s64::<63>(vreinterpretq_s64_u8(x));
                    vreinterpretq_u8_u64(vshrq_n_u64::<1>(vreinterpretq_u64_s64(sign)))
                }
            };
            veorq_u8(x, others)
        }

        fn shuffle(v: Neon, vector: uint8x16_t, order: uint8x16_t) -> uint8x16_t {
            vqtbl1q_u8(vector, order)
        }

        /// Multiplies, and shifts right with rounding.
        fn eighths<W: Word>(v: Neon, x: uint8x16_t, weight: u8) -> uint8x16_t {
            match W::BYTES {
                1 => {
                    let (x, weight) = (vreinterpretq_s8_u8(x), vdupq_n_s8(weight.cast_signed()));
                    let low = vrshrn_n_s16::<3>(vmull_s8(vget_low_s8(x), vget_low_s8(weight)));
                    vreinterpretq_u8_s8(vrshrn_high_n_s16::<3>(low, vmull_high_s8(x, weight)))
                }
                2 => {
                    let (x, weight) = (vreinterpretq_s16_u8(x), vdupq_n_s16(weight.into()));
                    let low = vrshrn_n_s32::<3>(vmull_s16(vget_low_s16(x), vget_low_s16(weight)));
                    vreinterpretq_u8_s16(vrshrn_high_n_s32::<3>(low, vmull_high_s16(x, weight)))
                }
                _ => {
                    let (x, weight) = (vreinterpretq_s32_u8(x), vdupq_n_s32(weight.into()));
                    let low = vrshrn_n_s64::<3>(vmull_s32(vget_low_s32(x), vget_low_s32(weight)));
                    vreinterpretq_u8_s32(vrshrn_high_n_s64::<3>(low, vmull_high_s32(x, weight)))
                }
            }
        }

        fn narrower(v: Neon) -> Neon {
            v
        }

        fn load_rows(v: Neon, bytes: &[u8], rows: &RowOffsets) -> [uint8x16_t; COLUMNS] {
            load_rows(bytes, rows)
        }

        fn store_rows(v: Neon, tile: [uint8x16_t; COLUMNS], bytes: &mut [u8], rows: &RowOffsets) {
            store_rows(bytes, rows, tile)
        }

        fn interleave(v: Neon, a: uint8x16_t, b: uint8x16_t) -> [uint8x16_t; 2] {
            let (a, b) = (vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b));
            [vreinterpretq_u8_u16(vzip1q_u16(a, b)), vreinterpretq_u8_u16(vzip2q_u16(a, b))]
        }

        fn minus(v: Neon, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
            vreinterpretq_u8_u16(vsubq_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)))
        }

        fn and(v: Neon, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
            vandq_u8(a, b)
        }

        fn multiply(v: Neon, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
            // doubles the product and takes its upper half: the same as a shift by 15 bits
            vreinterpretq_u8_s16(vqrdmulhq_s16(vreinterpretq_s16_u8(a), vreinterpretq_s16_u8(b)))
        }

        fn pairs(v: Neon, last: uint8x16_t, before: uint8x16_t) -> [uint8x16_t; 2] {
            let (last, before) = (vreinterpretq_u32_u8(last), vreinterpretq_u32_u8(before));
            // shifts one vector, and inserts it into the other
            let (even, odd) = (vsliq_n_u32::<16>(last, before), vsriq_n_u32::<16>(before, last));
            [vreinterpretq_u8_u32(even), vreinterpretq_u8_u32(odd)]
        }

        fn add_products(v: Neon, sums: uint8x16_t, pairs: uint8x16_t, factors: uint8x16_t) -> uint8x16_t {
            let (pairs, factors) = (vreinterpretq_s16_u8(pairs), vreinterpretq_s16_u8(factors));
            let low = vmull_s16(vget_low_s16(pairs), vget_low_s16(factors));
            let both = vpaddq_s32(low, vmull_high_s16(pairs, factors));
            vreinterpretq_u8_s32(vaddq_s32(vreinterpretq_s32_u8(sums), both))
        }

        fn join_sums(v: Neon, [even, odd]: [uint8x16_t; 2]) -> uint8x16_t {
            let (even, odd) = (vreinterpretq_u32_u8(even), vreinterpretq_u32_u8(odd));
            let lower = vdupq_n_u32(0xFFFF);
            vreinterpretq_u8_u32(vbslq_u32(lower, vshrq_n_u32::<12>(even), vshlq_n_u32::<4>(odd)))
        }
    }
}
