//! Undoing the transform *separable* of elements of 2 bytes, in square tiles.
//!
//! Along a row, each error depends on the one on its left, but on no other row. Transposed, a tile
//! has a column in each vector, so that each step undoes an error of all its rows. Transposed back,
//! it has a row in each, and each step down undoes the elements of all its columns.

use super::Weights;
use super::vectors::{COLUMNS, Tiles, Vectors};
use crate::kernel::bytes::copy_short;
use crate::kernel::word::Word;
use std::mem::replace;

/// Bytes of a row of a tile.
const WIDTH: usize = COLUMNS * u16::BYTES;
/// The weight of all of an error: the prediction along the first row of a sample.
const WHOLE: u8 = 8;

/// A weight for each element of a vector. One of the two is 0.
#[derive(Clone, Copy)]
struct Weight<V> {
    /// The weight as a part of 2^15.
    part: V,
    /// All bits if the weight is 1, which is no such part.
    whole: V,
}

impl<V: Copy> Weight<V> {
    #[inline(always)]
    fn new<T: Tiles<Vector = V>>(t: T, eighths: impl Fn(usize) -> u8) -> Self {
        let [mut part, mut whole] = [[0; 64]; 2]; // at least a vector
        for i in 0..T::BYTES / 2 {
            match eighths(i) {
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

/// Undoes `data`, in samples of `restart` bytes and rows of `stride` bytes.
#[inline(always)]
pub(super) fn undo<T: Tiles, const FLOAT: bool>(
    t: T,
    restart: usize,
    stride: usize,
    weights: Weights,
    data: &mut [u8],
) {
    let mut tiles = Tiled::<T, FLOAT> {
        t,
        stride,
        left: Weight::new(t, |row| if row == 0 { WHOLE } else { weights.left }),
        above: Weight::new(t, |_| weights.above),
    };
    let below = Weight::new(t, |_| weights.left);
    let group = stride.saturating_mul(T::BYTES / 2);
    let mut rest = data;
    while !rest.is_empty() {
        let mut left = restart.min(rest.len());
        let first = tiles.left;
        let mut above: &[u8] = &[];
        while left > 0 {
            let len = group.min(left);
            let (rows, after) = rest.split_at_mut(len); // in bounds: `rest` has `left` bytes
            tiles.rows(above, rows);
            (above, rest) = (rows, after);
            left -= len;
            tiles.left = below;
        }
        tiles.left = first;
    }
}

struct Tiled<T: Vectors, const FLOAT: bool> {
    t: T,
    /// Bytes of a row.
    stride: usize,
    /// The weights of the error on the left, for each row.
    left: Weight<T::Vector>,
    /// The weight of the step above.
    above: Weight<T::Vector>,
}

impl<T: Tiles, const FLOAT: bool> Tiled<T, FLOAT> {
    /// Undoes the first `len` bytes of `data`, at most as many rows as a tile has. `above` is empty
    /// at the start of a sample, and otherwise ends with at least two rows.
    #[inline(always)]
    fn rows(&self, above: &[u8], rows: &mut [u8]) {
        self.along(rows);
        let width = self.stride.min(rows.len());
        let pairs = width - width % (2 * T::BYTES);
        for column in (0..pairs).step_by(2 * T::BYTES) {
            self.down::<2>(above, rows, column);
        }
        for column in (pairs..width).step_by(T::BYTES) {
            self.down::<1>(above, rows, column);
        }
    }

    /// Replaces the residuals of some rows by errors of the prediction down.
    #[inline(always)]
    fn along(&self, rows: &mut [u8]) {
        let (stride, width) = (self.stride, self.stride.min(rows.len()));
        let are_whole = rows.len() >= stride.saturating_mul(T::BYTES / 2);
        let mut error = self.t.zero();
        let mut edge = [[0; WIDTH]; 32]; // at least as many rows as a tile has
        for column in (0..width).step_by(WIDTH) {
            if are_whole && column + WIDTH <= width {
                error = self.tile(rows.get_mut(column..).unwrap_or_default(), stride, error);
            } else {
                for (row, part) in rows.chunks(stride).zip(&mut edge) {
                    copy_short(row.get(column..).unwrap_or_default(), part);
                }
                error = self.tile(edge.as_flattened_mut(), WIDTH, error);
                for (row, part) in rows.chunks_mut(stride).zip(&edge) {
                    copy_short(part, row.get_mut(column..).unwrap_or_default());
                }
            }
        }
    }

    /// Does the same with a tile. `error` has that on the left of each row. Returns the last.
    #[inline(always)]
    fn tile(&self, rows: &mut [u8], stride: usize, mut error: T::Vector) -> T::Vector {
        let t = self.t;
        let mut tile = t.load_rows(rows, stride);
        for coded in &mut tile {
            *coded = t.unzigzag::<u16>(*coded);
        }
        tile = t.transpose(tile);
        for residuals in &mut tile {
            error = self.left.add(t, *residuals, error);
            *residuals = error;
        }
        t.store_rows(t.transpose(tile), rows, stride);
        error
    }

    /// Replaces the errors of `N` vectors of each row by elements.
    #[inline(always)]
    fn down<const N: usize>(&self, above: &[u8], rows: &mut [u8], column: usize) {
        let t = self.t;
        let [mut elements, mut steps] = [[t.zero(); N]; 2];
        let mut is_first = above.is_empty();
        if !is_first {
            // in bounds: `above` has at least two rows
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
                // of constant length
                Some((whole, _)) => self.step(whole, &mut elements, &mut steps),
                None => self.step(row, &mut elements, &mut steps),
            }
            if replace(&mut is_first, false) {
                steps = [t.zero(); N];
            }
        }
    }

    /// Replaces the errors in `N` vectors by elements. Both others have those of the row above.
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
