//! The definition in code.

use super::Kernel;
use crate::kernel::Width;
use crate::kernel::cpu::Scalar;
use crate::kernel::word::{Word, for_width};
use std::ops::Range;

impl Kernel for Scalar {
    fn to_rows(&self, width: Width, rows: usize, columns: &[u8], out: &mut [u8]) {
        let row = columns.len() / width.bytes() / rows.max(1);
        for_width!(width, W => copy::<W>([rows, row], [0..rows, 0..row], columns, out));
    }
}

/// Sets the elements of some rows and columns of a tile of `rows` rows and `row` columns.
#[inline(always)]
pub(super) fn copy<W: Word>([rows, row]: [usize; 2], [some, of]: [Range<usize>; 2], columns: &[u8], out: &mut [u8]) {
    for r in some {
        for column in of.clone() {
            W::get(columns, column * rows + r).set(out, r * row + column);
        }
    }
}
