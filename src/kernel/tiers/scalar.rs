//! The definition in code, code by code.

use super::{GROUP, GROUP_BYTES, Kernel};
use crate::kernel::cpu::Scalar;
use std::ops::Range;

impl Kernel for Scalar {
    fn merge(
        &self,
        width: usize,
        codes: &[u8],
        last: &[u8; GROUP_BYTES],
        table: &[u8; 16],
        escaped: &[u8],
        out: &mut [u8],
    ) -> usize {
        let mut escapes = 0;
        let whole = out.len() - out.len() % GROUP;
        for (i, symbol) in out.iter_mut().enumerate() {
            let code = if i < whole { code(codes, width, i) } else { code(last, width, i - whole) };
            *symbol = if code == escape(width) {
                escapes += 1;
                escaped.get(escapes - 1).copied().unwrap_or(0)
            } else {
                table[usize::from(code)] // in bounds: a code has at most 4 bits
            };
        }
        escapes
    }

    fn split(&self, width: usize, code_of: &[u8; 256], symbols: &[u8], codes: &mut [u8], escaped: &mut [u8]) -> usize {
        let mut escapes = 0;
        codes.fill(0);
        for (i, &symbol) in symbols.iter().enumerate() {
            let code = code_of[usize::from(symbol)] & escape(width); // in bounds: a byte
            for plane in 0..width {
                if let Some(byte) = codes.get_mut(byte_of(width, plane, i)) {
                    *byte |= (code >> plane & 1) << (i % 8);
                }
            }
            if code == escape(width) {
                if let Some(to) = escaped.get_mut(escapes) {
                    *to = symbol;
                }
                escapes += 1;
            }
        }
        escapes
    }

    fn escapes(&self, width: usize, codes: &[u8], range: Range<usize>) -> usize {
        let count = codes.len() / (8 * width) * GROUP;
        (range.start..range.end.min(count)).filter(|&i| code(codes, width, i) == escape(width)).count()
    }
}

/// Returns the code of `width` bits that is an escape.
const fn escape(width: usize) -> u8 {
    (1 << width) - 1
}

/// Returns the offset of the byte that has bit `plane` of code `i`.
const fn byte_of(width: usize, plane: usize, i: usize) -> usize {
    i / GROUP * 8 * width + 8 * plane + i % GROUP / 8
}

/// Returns code `i` of `width` bits.
fn code(codes: &[u8], width: usize, i: usize) -> u8 {
    let bit = |plane| codes.get(byte_of(width, plane, i)).map_or(0, |byte| byte >> (i % 8) & 1);
    (0..width).map(|plane| bit(plane) << plane).sum()
}
