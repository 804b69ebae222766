//! The definition in code, bit by bit.

use super::{GROUP, Kernel};
use crate::kernel::Width;
use crate::kernel::cpu::Scalar;

impl Kernel for Scalar {
    fn lengths(&self, width: Width, elements: &[u8], out: &mut [u8]) {
        for (element, length) in elements.chunks_exact(width.bytes()).zip(out) {
            let mut bits = (0..8 * width.bytes()).filter(|&bit| bit_of(element, bit) != 0);
            *length = bits.next_back().map_or(0, |bit| bit as u8 + 1); // exact: below 64
        }
    }

    fn deposit(&self, width: Width, lengths: &[u8], bits: &[u8], mut at: usize, out: &mut [u8]) -> usize {
        let w = width.bytes();
        out.fill(0);
        let mut set = |i: usize, bit: usize, value: u8| {
            if let Some(byte) = out.get_mut(i * w + bit / 8) {
                *byte |= value << (bit % 8);
            }
        };
        for (i, &length) in lengths.iter().enumerate() {
            if (1..=8 * w).contains(&usize::from(length)) {
                set(i, usize::from(length) - 1, 1);
            }
        }
        each_extra_bit(width, lengths, |i, plane| {
            set(i, plane, bit_of(bits, at));
            at += 1;
        });
        at
    }

    fn extract(&self, width: Width, lengths: &[u8], elements: &[u8], words: &mut [u64], mut at: usize) -> usize {
        let w = width.bytes();
        each_extra_bit(width, lengths, |i, plane| {
            if let Some(word) = words.get_mut(at / 64) {
                let element = elements.get(i * w..i * w + w).unwrap_or(&[]);
                *word |= u64::from(bit_of(element, plane)) << (at % 64);
            }
            at += 1;
        });
        at
    }
}

/// Returns bit `bit` of `bytes`. Returns 0 if `bytes` ends before it.
fn bit_of(bytes: &[u8], bit: usize) -> u8 {
    bytes.get(bit / 8).map_or(0, |byte| byte >> (bit % 8) & 1)
}

/// Calls `each` with the index of the element and the plane of each extra bit, in stored order.
fn each_extra_bit(width: Width, lengths: &[u8], mut each: impl FnMut(usize, usize)) {
    for (group, lengths) in lengths.chunks(GROUP).enumerate() {
        for plane in 0..8 * width.bytes() {
            for (i, &length) in lengths.iter().enumerate() {
                if usize::from(length) > plane + 1 {
                    each(group * GROUP + i, plane);
                }
            }
        }
    }
}
