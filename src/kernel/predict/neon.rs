//! NEON.

use std::arch::aarch64::*;

use super::generic::{residuals, undo};
use super::operations::{COLUMNS, Lanes, Taps, Tiles, Vectors};
use super::{FilterBank, Kernel, Prediction, filters};
use crate::kernel::Width;
use crate::kernel::bytes::copy_short;
use crate::kernel::compile::implement;
use crate::kernel::cpu::Neon;
use crate::kernel::vectors::RowOffsets;
use crate::kernel::vectors::aarch64::{load_16, load_rows, store_16, store_rows};
use crate::kernel::word::Word;

implement!(Neon: Kernel {
    fn residuals(prediction: &Prediction, width: Width, elements: &[u8], out: &mut [u8]) => { residuals }
    fn undo(prediction: &Prediction, width: Width, data: &mut [u8]) => { undo }
    fn filter(bank: &FilterBank, codes: &[u8], numbers: &[u8], out: &mut [u8]) => { filters::residuals }
    fn undo_filter(bank: &FilterBank, codes: &[u8], data: &mut [u8]) => { filters::undo }
});

impl Vectors for Neon {
    type Vector = uint8x16_t;
    const BYTES: usize = 16;

    #[inline(always)]
    fn zero(self) -> uint8x16_t {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { vdupq_n_u8(0) }
    }

    #[inline(always)]
    fn load(self, bytes: &[u8]) -> uint8x16_t {
        let mut padded = [0; 16];
        let whole = bytes.first_chunk().unwrap_or_else(|| {
            copy_short(bytes, &mut padded);
            &padded
        });
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { load_16(whole) }
    }

    #[inline(always)]
    fn store(self, vector: uint8x16_t, bytes: &mut [u8]) {
        let mut padded = [0; 16];
        let whole = bytes.first_chunk_mut();
        let short = whole.is_none();
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { store_16(whole.unwrap_or(&mut padded), vector) }
        if short {
            copy_short(&padded, bytes);
        }
    }

    #[inline(always)]
    fn plus<W: Word>(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe {
            match W::BYTES {
                1 => vaddq_u8(a, b),
                2 => vreinterpretq_u8_u16(vaddq_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b))),
                4 => vreinterpretq_u8_u32(vaddq_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b))),
                _ => vreinterpretq_u8_u64(vaddq_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b))),
            }
        }
    }

    /// Shifts right by one, and inserts the lowest bit at the top.
    #[inline(always)]
    fn rotate_right<W: Word>(self, x: uint8x16_t) -> uint8x16_t {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe {
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
    }

    #[inline(always)]
    fn invert_negative<W: Word>(self, x: uint8x16_t) -> uint8x16_t {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe {
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
    }

    #[inline(always)]
    fn sums<W: Word>(self, mut sums: uint8x16_t) -> uint8x16_t {
        if W::BYTES <= 1 {
            sums = self.plus::<W>(sums, shuffle(self, sums, const { &spread::<1>(W::BYTES) }));
        }
        if W::BYTES <= 2 {
            sums = self.plus::<W>(sums, shuffle(self, sums, const { &spread::<2>(W::BYTES) }));
        }
        if W::BYTES <= 4 {
            sums = self.plus::<W>(sums, shuffle(self, sums, const { &spread::<4>(W::BYTES) }));
        }
        self.plus::<W>(sums, shuffle(self, sums, const { &spread::<8>(W::BYTES) }))
    }

    #[inline(always)]
    fn last<W: Word>(self, vector: uint8x16_t) -> uint8x16_t {
        shuffle(self, vector, const { &spread::<16>(W::BYTES) })
    }
}

impl Lanes for Neon {
    const LANE: usize = 16;

    #[inline(always)]
    fn load_lanes(self, bytes: &[u8], _: usize) -> uint8x16_t {
        self.load(bytes)
    }

    #[inline(always)]
    fn store_lanes(self, vector: uint8x16_t, bytes: &mut [u8], _: usize) {
        if let Some(bytes) = bytes.first_chunk_mut() {
            // SAFETY: the token `self` proves that this CPU has NEON.
            unsafe { store_16(bytes, vector) }
        }
    }

    #[inline(always)]
    fn shuffle(self, vector: uint8x16_t, order: uint8x16_t) -> uint8x16_t {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { vqtbl1q_u8(vector, order) }
    }

    #[inline(always)]
    fn lane_before(self, _: uint8x16_t) -> uint8x16_t {
        self.zero()
    }

    #[inline(always)]
    fn last_lane(self, vector: uint8x16_t) -> uint8x16_t {
        vector
    }

    /// Multiplies, and shifts right with rounding.
    #[inline(always)]
    fn eighths<W: Word>(self, x: uint8x16_t, weight: u8) -> uint8x16_t {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe {
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
    }
}

impl Tiles for Neon {
    type Fewer = Self;

    #[inline(always)]
    fn fewer(self) -> Self {
        self
    }

    #[inline(always)]
    fn load_rows(self, bytes: &[u8], rows: &RowOffsets) -> [uint8x16_t; COLUMNS] {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { load_rows(bytes, rows) }
    }

    #[inline(always)]
    fn store_rows(self, tile: [uint8x16_t; COLUMNS], bytes: &mut [u8], rows: &RowOffsets) {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { store_rows(bytes, rows, tile) }
    }

    #[inline(always)]
    fn interleave(self, a: uint8x16_t, b: uint8x16_t) -> [uint8x16_t; 2] {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe {
            let (a, b) = (vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b));
            [vreinterpretq_u8_u16(vzip1q_u16(a, b)), vreinterpretq_u8_u16(vzip2q_u16(a, b))]
        }
    }

    #[inline(always)]
    fn minus(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { vreinterpretq_u8_u16(vsubq_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b))) }
    }

    #[inline(always)]
    fn and(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe { vandq_u8(a, b) }
    }

    #[inline(always)]
    fn multiply(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe {
            // doubles the product and takes the upper half of it: the same as 15 bits less
            vreinterpretq_u8_s16(vqrdmulhq_s16(vreinterpretq_s16_u8(a), vreinterpretq_s16_u8(b)))
        }
    }
}

impl Taps for Neon {
    #[inline(always)]
    fn pairs(self, last: uint8x16_t, before: uint8x16_t) -> [uint8x16_t; 2] {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe {
            let (last, before) = (vreinterpretq_u32_u8(last), vreinterpretq_u32_u8(before));
            // shifts one of them, and inserts it into the other
            let (even, odd) = (vsliq_n_u32::<16>(last, before), vsriq_n_u32::<16>(before, last));
            [vreinterpretq_u8_u32(even), vreinterpretq_u8_u32(odd)]
        }
    }

    #[inline(always)]
    fn add_products(self, sums: uint8x16_t, pairs: uint8x16_t, factors: uint8x16_t) -> uint8x16_t {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe {
            let (pairs, factors) = (vreinterpretq_s16_u8(pairs), vreinterpretq_s16_u8(factors));
            let low = vmull_s16(vget_low_s16(pairs), vget_low_s16(factors));
            let both = vpaddq_s32(low, vmull_high_s16(pairs, factors));
            vreinterpretq_u8_s32(vaddq_s32(vreinterpretq_s32_u8(sums), both))
        }
    }

    #[inline(always)]
    fn join_sums(self, [even, odd]: [uint8x16_t; 2]) -> uint8x16_t {
        // SAFETY: the token `self` proves that this CPU has NEON.
        unsafe {
            let (even, odd) = (vreinterpretq_u32_u8(even), vreinterpretq_u32_u8(odd));
            let lower = vdupq_n_u32(0xFFFF);
            vreinterpretq_u8_u32(vbslq_u32(lower, vshrq_n_u32::<12>(even), vshlq_n_u32::<4>(odd)))
        }
    }
}

/// Returns the bytes of `vector` in `order`. An index beyond the vector gives 0.
#[inline(always)]
fn shuffle(_: Neon, vector: uint8x16_t, order: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the token proves that this CPU has NEON.
    unsafe { vqtbl1q_u8(vector, load_16(order)) }
}

/// Returns the order that brings, for each two units of `UNIT` bytes, the last element of the first
/// unit to all elements of the second. For units of 16 bytes, brings the last element of the vector
/// to all elements.
const fn spread<const UNIT: usize>(width: usize) -> [u8; 16] {
    let mut order = [0xFF; 16];
    let mut k = 0;
    while k < 16 {
        if UNIT == 16 {
            order[k] = (16 - width + k % width) as u8;
        } else if k / UNIT % 2 == 1 && UNIT >= width {
            order[k] = (k / UNIT * UNIT - width + k % width) as u8;
        }
        k += 1;
    }
    order
}
