//! Undoing the transform *separable* of elements of 2 bytes, one group of rows after the other.
//!
//! Along a row, each error depends on the one on its left, but on no other row. A tile has as many
//! rows as a vector has elements. It is transposed, so that a vector has one of its columns, and
//! one step undoes an error of each row.
//!
//! Down the columns, each element is the one above plus a step, and
//! `step[i] = error[i] + eighths(step[i-1])`. This is the same recurrence as along a row.

use super::Weights;
use super::operations::{COLUMNS, Tiles, Vectors};
use crate::kernel::bytes::copy_short;
use crate::kernel::vectors::RowOffsets;
use crate::kernel::word::Word;
use std::mem::replace;

/// Bytes of a row of a tile.
pub(super) const WIDTH: usize = COLUMNS * u16::BYTES;
/// The weight of all of an error: the prediction along the first row of a sample.
pub(super) const WHOLE: u8 = 8;

/// A weight for each element of a vector. One of the two is 0.
#[derive(Clone, Copy)]
struct Weight<V> {
    /// The weight as a part of 2^15.
    part: V,
    /// All bits if the weight is 1, which is no such part.
    whole: V,
}

impl<V: Copy> Weight<V> {
    /// Returns the weights of the first element and of all others, in eighths.
    #[inline(always)]
    fn new<T: Tiles<Vector = V>>(t: T, first: u8, others: u8) -> Self {
        let [mut part, mut whole] = [[0; 64]; 2]; // at least a vector
        for i in 0..T::BYTES / 2 {
            match if i == 0 { first } else { others } {
                WHOLE => u16::MAX.set(&mut whole, i),
                eighths => (u16::from(eighths) << 12).set(&mut part, i),
            }
        }
        Self { part: t.load(&part), whole: t.load(&whole) }
    }

    /// Returns `sum` plus the weighted `x`. See [`Word::eighths`].
    #[inline(always)]
    fn add<T: Tiles<Vector = V>>(&self, t: T, sum: V, x: V) -> V {
        // the product takes longest, and is added last
        let sum = t.plus::<u16>(sum, t.and(x, self.whole));
        t.plus::<u16>(sum, t.multiply(x, self.part))
    }
}

/// Undoes samples whose rows have at least [`WIDTH`] bytes.
pub(super) struct Tiled<T: Vectors, const FLOAT: bool> {
    t: T,
    /// Bytes of a row.
    stride: usize,
    /// The weights of the errors on the left, for each row of a tile at the start of a sample.
    first: Weight<T::Vector>,
    /// The same for other tiles.
    left: Weight<T::Vector>,
    /// The weight of the step above.
    above: Weight<T::Vector>,
}

impl<T: Tiles, const FLOAT: bool> Tiled<T, FLOAT> {
    #[inline(always)]
    pub(super) fn new(t: T, stride: usize, weights: Weights) -> Self {
        let [first, left] = [WHOLE, weights.left].map(|first| Weight::new(t, first, weights.left));
        Self { t, stride, first, left, above: Weight::new(t, weights.above, weights.above) }
    }

    /// Undoes a sample of at least two rows.
    #[inline(always)]
    pub(super) fn sample(&self, sample: &mut [u8]) {
        let group = self.stride.saturating_mul(T::BYTES / 2); // a row for each element of a vector
        let (mut above, mut rest) = (&mut [][..], sample);
        let mut left = &self.first;
        while !rest.is_empty() {
            // in bounds: limited to the length
            let (rows, after) = rest.split_at_mut(rest.len().min(group));
            self.along(rows, left);
            self.down_all(above, rows);
            (above, rest, left) = (rows, after, &self.left);
        }
    }

    /// Replaces the residuals of a group of rows by errors of the prediction down.
    ///
    /// If a tile has more rows, they are copies of the last. They also have its weights, because
    /// the first group has at least two rows. Therefore they get its errors.
    #[inline(always)]
    fn along(&self, rows: &mut [u8], left: &Weight<T::Vector>) {
        let (stride, count) = (self.stride, rows.len().div_ceil(self.stride));
        let shortest = rows.len() - (count - 1) * stride; // the last: a sample may end within it
        let [in_rows, in_edge] = [RowOffsets::new(stride, count), RowOffsets::new(WIDTH, count)];
        let mut errors = self.t.zero();
        for column in (0..stride.min(rows.len())).step_by(WIDTH) {
            if column + WIDTH <= shortest {
                errors = self.tile(rows.get_mut(column..).unwrap_or_default(), &in_rows, left, errors);
            } else {
                let mut edge = [[0; WIDTH]; 16]; // at least as many rows as a tile has
                for (row, part) in rows.chunks(stride).zip(&mut edge) {
                    copy_short(row.get(column..).unwrap_or_default(), part);
                }
                errors = self.tile(edge.as_flattened_mut(), &in_edge, left, errors);
                for (row, part) in rows.chunks_mut(stride).zip(&edge) {
                    copy_short(part, row.get_mut(column..).unwrap_or_default());
                }
            }
        }
    }

    /// Does the same with a tile. `errors` has those on its left. Returns those in its last column.
    #[inline(always)]
    fn tile(&self, bytes: &mut [u8], rows: &RowOffsets, left: &Weight<T::Vector>, mut errors: T::Vector) -> T::Vector {
        let t = self.t;
        let mut tile = t.load_rows(bytes, rows);
        for residuals in &mut tile {
            *residuals = t.unzigzag::<u16>(*residuals);
        }
        tile = t.transpose(tile);
        for column in &mut tile {
            errors = left.add(t, *column, errors);
            *column = errors;
        }
        t.store_rows(t.transpose(tile), bytes, rows);
        errors
    }

    /// Replaces the errors of a group of rows by elements. `above` is empty at the start of a
    /// sample, and otherwise ends with at least two rows.
    #[inline(always)]
    fn down_all(&self, above: &[u8], rows: &mut [u8]) {
        let width = self.stride.min(rows.len());
        let pairs = width - width % (2 * T::BYTES);
        for column in (0..pairs).step_by(2 * T::BYTES) {
            self.down::<2>(above, rows, column);
        }
        for column in (pairs..width).step_by(T::BYTES) {
            self.down::<1>(above, rows, column);
        }
    }

    /// Does the same with `N` vectors of each row, which begin at byte `column` of it.
    #[inline(always)]
    fn down<const N: usize>(&self, above: &[u8], rows: &mut [u8], column: usize) {
        let t = self.t;
        let [mut elements, mut steps] = [[t.zero(); N]; 2];
        let mut is_first = above.is_empty();
        if !is_first {
            // in bounds: at least two rows
            let (before, above) = above.split_at(above.len() - self.stride);
            let (_, before) = before.split_at(before.len() - self.stride);
            for i in 0..N {
                let offset = column + i * T::BYTES;
                elements[i] = self.order(t.load(above.get(offset..).unwrap_or_default()));
                steps[i] = self.order(t.load(before.get(offset..).unwrap_or_default()));
                steps[i] = t.minus(elements[i], steps[i]);
            }
        }
        for row in rows.chunks_mut(self.stride) {
            let row = row.get_mut(column..).unwrap_or_default();
            match row.split_at_mut_checked(N * T::BYTES) {
                Some((row, _)) => self.step(row, &mut elements, &mut steps), // of constant length
                None => self.step(row, &mut elements, &mut steps),
            }
            // the first row is no step down from anything
            if replace(&mut is_first, false) {
                steps = [t.zero(); N];
            }
        }
    }

    /// Replaces the errors in `N` vectors of a row by elements. Takes the elements and the steps of
    /// the row above, and replaces them by those of the row.
    #[inline(always)]
    fn step<const N: usize>(&self, mut errors: &mut [u8], elements: &mut [T::Vector; N], steps: &mut [T::Vector; N]) {
        let t = self.t;
        for (element, step) in elements.iter_mut().zip(steps) {
            // in bounds: limited to the length
            let (place, after) = errors.split_at_mut(errors.len().min(T::BYTES));
            *step = self.above.add(t, t.load(place), *step);
            *element = t.plus::<u16>(*element, *step);
            t.store(self.order(*element), place);
            errors = after;
        }
    }

    /// Maps floats to integers that ascend as they do, or back.
    #[inline(always)]
    fn order(&self, vector: T::Vector) -> T::Vector {
        if FLOAT { self.t.order::<u16>(vector) } else { vector }
    }
}
