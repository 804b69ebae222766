//! Coded integers to elements, row by row.
//!
//! In a row of a gradient, the differences to the row above are the sums of the coded integers from the start of the row on, for
//! `m[i] - m[i-stride] = (m[i-1] - m[i-stride-1]) + r[i]`. The first row of a sample is such sums alone, and so is a whole sample
//! whose elements are predicted from the one before. The sums of a vector are made in it, in as many steps as the number of its
//! elements has bits, and then those of all the vectors before it are added.
//!
//! The elements of a row stand in their final form as soon as the row is done. Where that is not the order of the numbers, the
//! row below restores it, which is as cheap as an access.

use super::Prediction;
use super::body::Geometry;
use super::scalar::{Word, for_width};
use crate::kernel::Width;

/// An instruction set that computes with vectors of elements. That a value exists proves that this CPU can run it.
pub(super) trait Isa: Copy {
    /// A vector.
    type Vector: Copy;
    /// Bytes of a vector.
    const BYTES: usize;
    /// A vector of zero bits.
    fn zero(self) -> Self::Vector;
    /// The `len <= BYTES` bytes of `data` from `at` on, which are there; the bytes after them are of any value.
    fn load(self, data: &[u8], at: usize, len: usize) -> Self::Vector;
    /// Sets the `len <= BYTES` bytes of `data` from `at` on, which are there, to the first ones of `vector`.
    fn store(self, vector: Self::Vector, data: &mut [u8], at: usize, len: usize);
    /// The sum of each two elements.
    fn plus<W: Word>(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// See [`Word::unzigzag`].
    fn unzigzag<W: Word>(self, vector: Self::Vector) -> Self::Vector;
    /// See [`Word::order`].
    fn order<W: Word>(self, vector: Self::Vector) -> Self::Vector;
    /// The sum of each element and all before it in the vector.
    fn sums<W: Word>(self, vector: Self::Vector) -> Self::Vector;
    /// The last element, everywhere.
    fn last<W: Word>(self, vector: Self::Vector) -> Self::Vector;
}

/// See [`Words::undo`](super::Words::undo).
#[inline(always)]
pub(super) fn undo<I: Isa>(isa: I, prediction: &Prediction, width: Width, data: &mut [u8]) {
    for_width!(width, W => match prediction.float {
        true => all::<I, W, true>(isa, prediction, data),
        false => all::<I, W, false>(isa, prediction, data),
    });
}

#[inline(always)]
fn all<I: Isa, W: Word, const FLOAT: bool>(isa: I, prediction: &Prediction, data: &mut [u8]) {
    let Some(Geometry { restart, stride }) = Geometry::new(prediction, data.len() / W::BYTES) else { return };
    let (restart, stride) = (restart * W::BYTES, stride * W::BYTES);
    let len = data.len();
    let mut rows = Rows { isa, data, stride };
    if restart == W::BYTES {
        return rows.row::<W, FLOAT, false, false>(0, len); // nothing is predicted
    }
    for start in (0..len).step_by(restart) {
        let end = len.min(start + restart);
        if stride <= I::BYTES {
            match prediction.gradient {
                true => rows.narrow::<W, FLOAT, true>(start, end),
                false => rows.narrow::<W, FLOAT, false>(start, end),
            }
            continue;
        }
        let above = end.min(start + stride);
        rows.row::<W, FLOAT, true, false>(start, above);
        for first in (above..end).step_by(stride) {
            match prediction.gradient {
                true => rows.row::<W, FLOAT, true, true>(first, end.min(first + stride)),
                false => rows.row::<W, FLOAT, false, true>(first, end.min(first + stride)),
            }
        }
    }
}

/// Rows of `stride` bytes; places in `data` are in bytes too.
struct Rows<'d, I> {
    isa: I,
    data: &'d mut [u8],
    stride: usize,
}

impl<I: Isa> Rows<'_, I> {
    /// Undoes the row, or the part of a row, from `start` to `end`. With `SUM` elements are predicted from the one before, with
    /// `ABOVE` from the one above, with both from those and the one above left.
    #[inline(always)]
    fn row<W: Word, const FLOAT: bool, const SUM: bool, const ABOVE: bool>(&mut self, start: usize, end: usize) {
        let mut sum = self.isa.zero();
        let mut at = start;
        while end - at >= I::BYTES {
            sum = self.vector::<W, FLOAT, SUM, ABOVE>(at, I::BYTES, sum);
            at += I::BYTES;
        }
        if at < end {
            self.vector::<W, FLOAT, SUM, ABOVE>(at, end - at, sum);
        }
    }

    /// Undoes `len` bytes of a row; `sum` is that of the row before them, everywhere. Returns that with them.
    #[inline(always)]
    fn vector<W: Word, const FLOAT: bool, const SUM: bool, const ABOVE: bool>(
        &mut self,
        at: usize,
        len: usize,
        mut sum: I::Vector,
    ) -> I::Vector {
        let isa = self.isa;
        let mut vector = isa.unzigzag::<W>(isa.load(self.data, at, len));
        if SUM {
            vector = isa.sums::<W>(vector);
            let more = isa.last::<W>(vector);
            vector = isa.plus::<W>(vector, sum);
            sum = isa.plus::<W>(sum, more); // the only step that waits for the vector before
        }
        if ABOVE {
            let above = isa.load(self.data, at - self.stride, len);
            vector = isa.plus::<W>(vector, if FLOAT { isa.order::<W>(above) } else { above });
        }
        let vector = if FLOAT { isa.order::<W>(vector) } else { vector };
        isa.store(vector, self.data, at, len);
        sum
    }

    /// Undoes a sample of rows that each fit in a vector, so that the row above need not be loaded.
    #[inline(always)]
    fn narrow<W: Word, const FLOAT: bool, const GRADIENT: bool>(&mut self, start: usize, end: usize) {
        let isa = self.isa;
        let mut above = isa.zero();
        for at in (start..end).step_by(self.stride) {
            let len = self.stride.min(end - at);
            let row = isa.unzigzag::<W>(isa.load(self.data, at, len));
            let row = if GRADIENT || at == start { isa.sums::<W>(row) } else { row };
            above = isa.plus::<W>(above, row);
            let done = if FLOAT { isa.order::<W>(above) } else { above };
            isa.store(done, self.data, at, len);
        }
    }
}
