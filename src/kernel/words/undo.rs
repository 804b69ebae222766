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
use std::slice::ChunksMut;

/// An instruction set that computes with vectors of elements. That a value exists proves that this CPU can run it.
pub(super) trait Isa: Copy {
    /// A vector.
    type Vector: Copy;
    /// Bytes of a vector.
    const BYTES: usize;
    /// A vector of zero bits.
    fn zero(self) -> Self::Vector;
    /// A vector of `bytes`, of which there may be fewer than in a vector: then the bytes after them are of any value.
    fn load(self, bytes: &[u8]) -> Self::Vector;
    /// Sets `bytes`, of which there may be fewer than in a vector, to the first ones of `vector`.
    fn store(self, vector: Self::Vector, bytes: &mut [u8]);
    /// The sum of each two elements.
    fn plus<W: Word>(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// See [`Word::rotate_right`].
    fn rotate_right<W: Word>(self, vector: Self::Vector) -> Self::Vector;
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
        true => Undo::<I, true>(isa).all::<W>(prediction, data),
        false => Undo::<I, false>(isa).all::<W>(prediction, data),
    });
}

struct Undo<I, const FLOAT: bool>(I);

impl<I: Isa, const FLOAT: bool> Undo<I, FLOAT> {
    #[inline(always)]
    fn all<W: Word>(&self, prediction: &Prediction, data: &mut [u8]) {
        let Some(Geometry { restart, stride }) = Geometry::new(prediction, data.len() / W::BYTES) else { return };
        if restart == 1 {
            return self.apart::<W>(data);
        }
        for sample in data.chunks_mut(restart * W::BYTES) {
            let rows = sample.chunks_mut(stride * W::BYTES);
            match (stride * W::BYTES <= I::BYTES, prediction.gradient) {
                (true, true) => self.narrow::<W, true>(rows),
                (true, false) => self.narrow::<W, false>(rows),
                (false, true) => self.wide::<W, true>(rows),
                (false, false) => self.wide::<W, false>(rows),
            }
        }
    }

    /// Undoes a sample of any rows.
    #[inline(always)]
    fn wide<W: Word, const GRADIENT: bool>(&self, mut rows: ChunksMut<'_, u8>) {
        let Some(first) = rows.next() else { return };
        self.first_row::<W>(first);
        let mut above = first;
        for row in rows {
            self.row::<W, GRADIENT>(row, above);
            above = row;
        }
    }

    /// Undoes a sample of rows that each fit in a vector, so that the row above need not be loaded.
    #[inline(always)]
    fn narrow<W: Word, const GRADIENT: bool>(&self, rows: ChunksMut<'_, u8>) {
        let isa = self.0;
        let mut above = isa.zero();
        for (i, row) in rows.enumerate() {
            let residuals = self.load::<W>(row);
            let more = if GRADIENT || i == 0 { isa.sums::<W>(residuals) } else { residuals };
            above = isa.plus::<W>(above, more);
            isa.store(self.order::<W>(above), row);
        }
    }

    /// Undoes a row of which each element but the first is predicted from the one before.
    #[inline(always)]
    fn first_row<W: Word>(&self, row: &mut [u8]) {
        let isa = self.0;
        let mut sum = isa.zero();
        for row in row.chunks_mut(I::BYTES) {
            let vector = isa.sums::<W>(self.load::<W>(row));
            isa.store(self.order::<W>(isa.plus::<W>(vector, sum)), row);
            sum = isa.plus::<W>(sum, isa.last::<W>(vector)); // all that waits for the vector before
        }
    }

    /// Undoes a row of which the elements are predicted from those `above`.
    #[inline(always)]
    fn row<W: Word, const GRADIENT: bool>(&self, row: &mut [u8], above: &[u8]) {
        let isa = self.0;
        let mut sum = isa.zero();
        for (row, above) in row.chunks_mut(I::BYTES).zip(above.chunks(I::BYTES)) {
            let mut vector = self.load::<W>(row);
            let mut above = self.order::<W>(isa.load(above));
            if GRADIENT {
                vector = isa.sums::<W>(vector);
                above = isa.plus::<W>(above, sum);
                sum = isa.plus::<W>(sum, isa.last::<W>(vector));
            }
            isa.store(self.order::<W>(isa.plus::<W>(vector, above)), row);
        }
    }

    /// Undoes elements that are not predicted.
    #[inline(always)]
    fn apart<W: Word>(&self, data: &mut [u8]) {
        for part in data.chunks_mut(I::BYTES) {
            self.0.store(self.order::<W>(self.load::<W>(part)), part);
        }
    }

    /// The residuals of some coded integers.
    #[inline(always)]
    fn load<W: Word>(&self, coded: &[u8]) -> I::Vector {
        // a set lowest bit, rotated to the top, says that all others are inverted, as it does in a float
        self.0.order::<W>(self.0.rotate_right::<W>(self.0.load(coded)))
    }

    /// To the order of the numbers or from it.
    #[inline(always)]
    fn order<W: Word>(&self, vector: I::Vector) -> I::Vector {
        if FLOAT { self.0.order::<W>(vector) } else { vector }
    }
}

/// Copies as many bytes as `to` has, fewer than `from` and at most 64. (A call to `memcpy` would cost the caller its registers.)
#[inline(always)]
pub(super) fn copy_short(from: &[u8], to: &mut [u8]) {
    let Some(from) = from.get(..to.len()) else { return };
    let done = copy_ends::<32>(from, to)
        || copy_ends::<16>(from, to)
        || copy_ends::<8>(from, to)
        || copy_ends::<4>(from, to)
        || copy_ends::<2>(from, to)
        || copy_ends::<1>(from, to);
    debug_assert!(done || to.is_empty());
}

/// Copies the first and the last `N` bytes, if there are so many. Returns whether there are.
#[inline(always)]
fn copy_ends<const N: usize>(from: &[u8], to: &mut [u8]) -> bool {
    let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) else { return false };
    if let Some(to) = to.first_chunk_mut() {
        *to = *first;
    }
    if let Some(to) = to.last_chunk_mut() {
        *to = *last;
    }
    true
}
