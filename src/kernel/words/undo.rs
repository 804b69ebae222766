//! Coded integers to elements, row by row.
//!
//! In a row of the Lorenzo predictor, the differences to the row above are sums of coded integers
//! from the start of the row on: `m[i] - m[i-stride] = (m[i-1] - m[i-stride-1]) + r[i]`. The first
//! row of a sample is such sums alone, and so is a whole sample whose elements are predicted from
//! the one before. The sums of a vector are made in it, in as many steps as the number of its
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
    /// The first vector of `bytes`; if those are fewer, with bytes of any value after them.
    fn load(self, bytes: &[u8]) -> Self::Vector;
    /// Sets `bytes`, at most as many as those of a vector, to the first ones of `vector`.
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

/// Undoes what stands at the start of slices that go on to the end of the data: a load of a whole vector, which may reach into what is
/// not yet undone, takes less time than one of a part.
struct Undo<I, const FLOAT: bool>(I);

impl<I: Isa, const FLOAT: bool> Undo<I, FLOAT> {
    #[inline(always)]
    fn all<W: Word>(&self, prediction: &Prediction, data: &mut [u8]) {
        let Some(Geometry { restart, stride }) = Geometry::new(prediction, data.len() / W::BYTES) else { return };
        let (restart, stride) = (restart * W::BYTES, stride * W::BYTES);
        if restart == W::BYTES {
            return self.first_row::<W, false>(data, data.len());
        }
        let mut rest = data;
        while !rest.is_empty() {
            rest = match (stride <= I::BYTES, prediction.lorenzo) {
                (true, true) => self.narrow::<W, true>(rest, restart, stride),
                (true, false) => self.narrow::<W, false>(rest, restart, stride),
                (false, true) => self.wide::<W, true>(rest, restart, stride),
                (false, false) => self.wide::<W, false>(rest, restart, stride),
            };
        }
    }

    /// Undoes a sample of `len` bytes in rows of `stride`. Returns what follows.
    #[inline(always)]
    fn wide<'d, W: Word, const LORENZO: bool>(&self, data: &'d mut [u8], len: usize, stride: usize) -> &'d mut [u8] {
        let len = len.min(data.len());
        let first = stride.min(len);
        self.first_row::<W, true>(data, first);
        let (mut above, mut rest) = data.split_at_mut(first); // `first` is at most `len`
        let mut left = len - first;
        while left > 0 {
            let row = stride.min(left);
            self.row::<W, LORENZO>(rest, row, above);
            (above, rest) = rest.split_at_mut(row); // there are `left` bytes
            left -= row;
        }
        rest
    }

    /// The same where rows each fit in a vector, so that the row above need not be loaded.
    #[inline(always)]
    fn narrow<'d, W: Word, const LORENZO: bool>(&self, data: &'d mut [u8], len: usize, stride: usize) -> &'d mut [u8] {
        let isa = self.0;
        let mut left = len.min(data.len());
        let (mut above, mut sums, mut rest) = (isa.zero(), true, data);
        while left > 0 {
            let residuals = self.load::<W>(rest);
            above = isa.plus::<W>(above, if sums { isa.sums::<W>(residuals) } else { residuals });
            sums = LORENZO;
            let (row, after) = rest.split_at_mut(stride.min(left)); // there are `left` bytes
            left -= row.len();
            isa.store(self.order::<W>(above), row);
            rest = after;
        }
        rest
    }

    /// Undoes a row of `len` bytes, of which each element but the first is predicted from the one before; without `SUM` none is.
    #[inline(always)]
    fn first_row<W: Word, const SUM: bool>(&self, data: &mut [u8], len: usize) {
        let isa = self.0;
        let (mut rest, mut left, mut sum) = (data, len, isa.zero());
        while left > 0 {
            let mut vector = self.load::<W>(rest);
            if SUM {
                let sums = isa.sums::<W>(vector);
                vector = isa.plus::<W>(sums, sum);
                sum = isa.plus::<W>(sum, isa.last::<W>(sums)); // all that waits for the vector before
            }
            (rest, left) = self.store::<W>(vector, rest, left);
        }
    }

    /// Undoes a row of `len` bytes, of which the elements are predicted from those `above`.
    #[inline(always)]
    fn row<W: Word, const LORENZO: bool>(&self, data: &mut [u8], len: usize, above: &[u8]) {
        let isa = self.0;
        let (mut rest, mut left, mut sum) = (data, len, isa.zero());
        for above in above.chunks(I::BYTES).take(len.div_ceil(I::BYTES)) {
            let mut vector = self.load::<W>(rest);
            let mut above = self.order::<W>(isa.load(above));
            if LORENZO {
                vector = isa.sums::<W>(vector);
                above = isa.plus::<W>(above, sum);
                sum = isa.plus::<W>(sum, isa.last::<W>(vector));
            }
            (rest, left) = self.store::<W>(isa.plus::<W>(vector, above), rest, left);
        }
    }

    /// Sets the start of `data` to `vector`, in its final form, at most `left` bytes of it. Returns what follows and stays of `left`.
    #[inline(always)]
    fn store<'d, W: Word>(&self, vector: I::Vector, data: &'d mut [u8], left: usize) -> (&'d mut [u8], usize) {
        let (here, after) = data.split_at_mut(I::BYTES.min(left)); // there are `left` bytes
        self.0.store(self.order::<W>(vector), here);
        (after, left - here.len())
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

/// Copies as many bytes as both have, at most 63. (A call to `memcpy` would cost the caller its registers.)
#[inline(always)]
pub(super) fn copy_short(from: &[u8], to: &mut [u8]) {
    let len = from.len().min(to.len());
    let (Some(from), Some(to)) = (from.get(..len), to.get_mut(..len)) else { return };
    let done = copy_ends::<32>(from, to)
        || copy_ends::<16>(from, to)
        || copy_ends::<8>(from, to)
        || copy_ends::<4>(from, to)
        || copy_ends::<2>(from, to)
        || copy_ends::<1>(from, to);
    debug_assert!(done || len == 0, "bytes are there");
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
