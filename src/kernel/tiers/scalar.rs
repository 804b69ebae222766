//! The definition, code by code and bit by bit.

use super::{GROUP, Kernel, Tiers};
use crate::kernel::Width;

pub(super) const TIERS: Tiers = Tiers { name: "scalar", kernel: &Scalar };

struct Scalar;

/// Code `i` of the groups of codes of `width` bits.
fn code(codes: &[u8], width: usize, i: usize) -> usize {
    let group = i / GROUP * 8 * width;
    let bit = |plane: usize| {
        let byte = codes.get(group + 8 * plane + i % GROUP / 8).copied().unwrap_or(0);
        usize::from(byte >> (i % 8) & 1)
    };
    (0..width).map(|plane| bit(plane) << plane).sum()
}

fn bit_of(bytes: &[u8], bit: usize) -> u8 {
    bytes.get(bit / 8).map_or(0, |byte| byte >> (bit % 8) & 1)
}

/// Calls `each` with the elements' indices and the planes of their extra bits, in the order of the file.
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

impl Kernel for Scalar {
    fn merge(&self, width: usize, codes: &[u8], table: &[u8; 16], escaped: &[u8], out: &mut [u8]) -> usize {
        let escape = (1 << width) - 1;
        let mut escapes = 0;
        for (i, symbol) in out.iter_mut().enumerate() {
            let code = code(codes, width, i);
            *symbol = if code == escape {
                escapes += 1;
                escaped.get(escapes - 1).copied().unwrap_or(0)
            } else {
                table.get(code).copied().unwrap_or(0) // a code has at most 4 bits
            };
        }
        escapes
    }

    fn split(&self, width: usize, code_of: &[u8; 256], symbols: &[u8], codes: &mut [u8], escaped: &mut [u8]) -> usize {
        let escape = (1 << width) - 1;
        let mut escapes = 0;
        codes.fill(0);
        for (i, &symbol) in symbols.iter().enumerate() {
            let code = code_of[usize::from(symbol)] & escape; // in bounds: a byte
            for plane in 0..width {
                if let Some(byte) = codes.get_mut(i / GROUP * 8 * width + 8 * plane + i % GROUP / 8) {
                    *byte |= (code >> plane & 1) << (i % 8);
                }
            }
            if code == escape {
                if let Some(place) = escaped.get_mut(escapes) {
                    *place = symbol;
                }
                escapes += 1;
            }
        }
        escapes
    }

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
