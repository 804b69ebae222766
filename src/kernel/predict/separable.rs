//! The transform *separable*: a prediction down the columns, followed by a prediction of its errors
//! along the rows.
//!
//! It is undone in two passes, both in place: the first turns residuals into errors, and the second
//! turns errors into elements.
//!
//! ```text
//! e[i] = r[i] + eighths(e[i-1], left)                    along the row
//! step[i] = e[i] + eighths(step[i-stride], above)        down the column
//! x[i] = x[i-stride] + step[i]
//! ```
//!
//! Down the columns, a vector holds neighbors in one row, and the steps of the row above stay in
//! registers. Along a row, each error depends on the error on its left, but on no other row.
//! Several rows are therefore undone side by side, so that the processor need not wait for one
//! error before it computes the next.
//!
//! If elements have 2 bytes, [`TiledUndo`] does this in vectors. A tile has 8 columns and as many
//! rows as a vector has elements. It is transposed, so that a vector holds one column, and one step
//! computes an error of each row. Then it is transposed back. Elements of other widths, narrow rows
//! and single rows are undone word by word, [`ROWS`] rows side by side.

use super::vectors::{COLUMNS, Vectors};
use super::{Prediction, Weights};
use crate::kernel::vectors::RowOffsets;
use crate::kernel::{Word, copy_short};
use std::mem::replace;

/// The number of rows that are undone side by side.
const ROWS: usize = 8;
/// The number of elements of a row that are coded at a time.
const ROW_SEGMENT: usize = 128;

/// Returns the sizes of a sample and of a row, in bytes.
fn extents<W: Word>(prediction: &Prediction) -> (usize, usize) {
    // exact: on all targets of this crate, usize has at least 32 bits
    let bytes = |elements: u32| (elements.max(1) as usize).saturating_mul(W::BYTES);
    (bytes(prediction.restart), bytes(prediction.stride))
}

// ---- elements to residuals

/// See [`Kernel::residuals`](super::Kernel::residuals).
#[inline(always)]
pub(super) fn residuals<W: Word>(prediction: &Prediction, weights: Weights, elements: &[u8], out: &mut [u8]) {
    let (restart, stride) = extents::<W>(prediction);
    for (sample, out) in elements.chunks(restart).zip(out.chunks_mut(restart)) {
        let mut above = None;
        for (row, out) in sample.chunks(stride).zip(out.chunks_mut(stride)) {
            row_residuals::<W>(weights, row, above, out);
            // the second row has no step above it: with the same row twice, the step is 0
            above = Some([row, above.map_or(row, |[above, _]| above)]);
        }
    }
}

/// Codes a row. `above` has the row above it and the row above that.
#[inline(always)]
fn row_residuals<W: Word>(weights: Weights, row: &[u8], above: Option<[&[u8]; 2]>, out: &mut [u8]) {
    let bytes = ROW_SEGMENT * W::BYTES;
    let left = if above.is_some() { weights.left } else { FULL_WEIGHT };
    let mut errors = [W::default(); ROW_SEGMENT + 1];
    let mut segments_above = above.map(|rows| rows.map(|row| row.chunks(bytes)));
    for (segment, out) in row.chunks(bytes).zip(out.chunks_mut(bytes)) {
        errors[0] = errors[ROW_SEGMENT]; // the last error of the previous segment
        let [_, segment_errors @ ..] = &mut errors;
        match &mut segments_above {
            Some([above, before]) => {
                let rows = [segment, above.next().unwrap_or(&[]), before.next().unwrap_or(&[])];
                step_errors(rows, weights.above, segment_errors);
            }
            None => segment_errors.iter_mut().zip(words(segment)).for_each(|(error, element)| *error = element),
        }
        code(&errors, left, out);
    }
}

/// Sets `errors` to the errors of the prediction down the columns.
#[inline(always)]
fn step_errors<W: Word>(rows: [&[u8]; 3], weight: u8, errors: &mut [W]) {
    let [row, above, before] = rows;
    let rows = words::<W>(row).zip(words::<W>(above)).zip(words::<W>(before));
    for (error, ((element, above), before)) in errors.iter_mut().zip(rows) {
        let step = above.minus(before).eighths(weight);
        *error = element.minus(above.plus(step));
    }
}

/// Codes all of `errors` except the first, which is the left neighbor of the second.
#[inline(always)]
fn code<W: Word>(errors: &[W; ROW_SEGMENT + 1], left: u8, out: &mut [u8]) {
    let [_, these @ ..] = errors;
    for ((to, this), before) in out.chunks_exact_mut(W::BYTES).zip(these).zip(errors) {
        this.minus(before.eighths(left)).zigzag().set(to, 0);
    }
}

#[inline(always)]
fn words<W: Word>(bytes: &[u8]) -> impl Iterator<Item = W> {
    bytes.chunks_exact(W::BYTES).map(|word| W::get(word, 0))
}

// ---- residuals to elements

/// See [`Kernel::undo`](super::Kernel::undo).
#[inline(always)]
pub(super) fn undo<W: Word, T: Vectors>(t: T, prediction: &Prediction, weights: Weights, data: &mut [u8]) {
    let (restart, stride) = extents::<W>(prediction);
    let tiled = TiledUndo::new(t, stride, weights);
    for sample in data.chunks_mut(restart) {
        // undoing a tile of few columns or of one row is slower than undoing its elements one by
        // one
        if W::BYTES == 2 && stride >= WIDTH && sample.len() > stride {
            tiled.sample(sample);
        } else {
            undo_sample::<W>(stride, weights, sample);
        }
    }
}

/// Undoes a sample word by word.
#[inline(always)]
fn undo_sample<W: Word>(stride: usize, weights: Weights, sample: &mut [u8]) {
    map::<W>(sample, W::unzigzag);
    let (first, others) = sample.split_at_mut(stride.min(sample.len())); // in bounds
    along::<W, 1>(first, stride, FULL_WEIGHT);
    let mut groups = others.chunks_exact_mut(stride.saturating_mul(ROWS));
    groups.by_ref().for_each(|rows| along::<W, ROWS>(rows, stride, weights.left));
    groups.into_remainder().chunks_mut(stride).for_each(|row| along::<W, 1>(row, stride, weights.left));
    down::<W>(sample, stride, weights.above);
}

#[inline(always)]
fn map<W: Word>(data: &mut [u8], f: impl Fn(W) -> W) {
    data.chunks_exact_mut(W::BYTES).for_each(|word| f(W::get(word, 0)).set(word, 0));
}

/// Replaces the residuals of `COUNT` rows with the errors of the downward prediction.
#[inline(always)]
fn along<W: Word, const COUNT: usize>(rows: &mut [u8], stride: usize, left: u8) {
    let (stride, count) = (stride / W::BYTES, rows.len() / COUNT / W::BYTES);
    let mut errors = [W::default(); COUNT];
    for column in 0..count {
        for (row, error) in errors.iter_mut().enumerate() {
            let slot = row * stride + column;
            *error = W::get(rows, slot).plus(error.eighths(left));
            error.set(rows, slot);
        }
    }
}

/// Replaces the errors of the downward prediction, in all rows but the first, with elements.
#[inline(always)]
fn down<W: Word>(sample: &mut [u8], stride: usize, weight: u8) {
    for start in (stride..sample.len()).step_by(stride) {
        let (above, row) = sample.split_at_mut(start); // in bounds: the start of a row
        let (before, above) = above.split_at(start - stride); // in bounds: the start of the row above
        let before = before.get(start.saturating_sub(2 * stride)..).filter(|before| !before.is_empty());
        let before = before.unwrap_or(above); // then the step is 0
        let rows = words::<W>(above).zip(words::<W>(before));
        for (word, (above, before)) in row.chunks_exact_mut(W::BYTES).take(stride / W::BYTES).zip(rows) {
            let step = above.minus(before).eighths(weight);
            W::get(word, 0).plus(above).plus(step).set(word, 0);
        }
    }
}

// ---- residuals to elements, in tiles

/// The size of a tile row in bytes.
const WIDTH: usize = COLUMNS * u16::BYTES;
/// The weight 1, in eighths: used along the first row of a sample.
pub(super) const FULL_WEIGHT: u8 = 8;

/// A weight for each element of a vector. For each element, at least one of the two fields is 0.
#[derive(Clone, Copy)]
struct Weight<V> {
    /// The weight as a fraction of 2^15.
    part: V,
    /// All ones if the weight is 1, which does not fit in `part`.
    whole: V,
}

impl<V: Copy> Weight<V> {
    /// Makes weights, given in eighths: one for the first element, and one for all others.
    #[inline(always)]
    fn new<T: Vectors<Vector = V>>(t: T, first: u8, others: u8) -> Self {
        let [mut part, mut whole] = [[0; 64]; 2]; // at least as long as a vector
        for i in 0..T::BYTES / 2 {
            match if i == 0 { first } else { others } {
                FULL_WEIGHT => u16::MAX.set(&mut whole, i),
                eighths => (u16::from(eighths) << 12).set(&mut part, i),
            }
        }
        Self { part: t.load(&part), whole: t.load(&whole) }
    }

    /// Returns `sum` plus the weighted `x`. See [`Word::eighths`].
    #[inline(always)]
    fn add<T: Vectors<Vector = V>>(&self, t: T, sum: V, x: V) -> V {
        // the product takes longest, so it is added last
        let sum = t.plus::<u16>(sum, t.and(x, self.whole));
        t.plus::<u16>(sum, t.multiply(x, self.part))
    }
}

/// Undoes the prediction along rows, in tiles.
struct RowUndo<T: Vectors> {
    t: T,
    /// The size of a row in bytes.
    stride: usize,
    /// The weights of the errors on the left in the first tile of a sample, by row.
    first: Weight<T::Vector>,
    /// The same for other tiles.
    left: Weight<T::Vector>,
}

impl<T: Vectors> RowUndo<T> {
    #[inline(always)]
    fn new(t: T, stride: usize, left: u8) -> Self {
        let [first, left] = [FULL_WEIGHT, left].map(|first| Weight::new(t, first, left));
        Self { t, stride, first, left }
    }

    /// Replaces the residuals of a group of rows with the errors of the downward prediction.
    ///
    /// If a tile has more rows than the group, the extra rows are copies of the last row and get
    /// its errors. They also get its weights: only the first row of a sample has other weights, and
    /// it is not the last row, because the first group has at least two rows.
    #[inline(always)]
    fn group(&self, rows: &mut [u8], is_first: bool) {
        let left = if is_first { &self.first } else { &self.left };
        let (stride, count) = (self.stride, rows.len().div_ceil(self.stride));
        let shortest = rows.len() - (count - 1) * stride; // the length of the last row, where a sample can end
        let in_rows = RowOffsets::new(stride, count);
        let width = stride.min(rows.len());
        let mut errors = self.t.zero();
        for column in (0..width).step_by(WIDTH) {
            if column + WIDTH <= shortest {
                errors = self.tile(rows.get_mut(column..).unwrap_or_default(), &in_rows, left, errors);
            } else if WIDTH <= width && width <= shortest {
                let start = width - WIDTH;
                self.last_tile(rows.get_mut(start..).unwrap_or_default(), &in_rows, left, column - start);
            } else {
                errors = self.copied_tile(rows, column, left, errors);
            }
        }
    }

    /// Like [`group`](Self::group), for one tile. `errors` has the errors on its left. Returns the
    /// errors in its last column.
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

    /// Like [`tile`](Self::tile), for the last tile of rows whose width is not a multiple of the
    /// width of a tile. The tile begins with the last `done` bytes of the previous tile, which are
    /// already errors.
    #[inline(always)]
    fn last_tile(&self, bytes: &mut [u8], rows: &RowOffsets, left: &Weight<T::Vector>, done: usize) {
        let t = self.t;
        let mut mask = [[0; WIDTH]; 4]; // at least as long as a vector
        mask.iter_mut().flat_map(|lane| lane.iter_mut().take(done)).for_each(|byte| *byte = u8::MAX);
        let mask = t.load(mask.as_flattened());
        let mut tile = t.load_rows(bytes, rows);
        for residuals in &mut tile {
            let undone = t.unzigzag::<u16>(*residuals);
            *residuals = t.plus::<u16>(undone, t.and(mask, t.minus(*residuals, undone)));
        }
        tile = t.transpose(tile);
        let mut errors = t.zero();
        for (i, column) in tile.iter_mut().enumerate() {
            errors = if i < done / u16::BYTES { *column } else { left.add(t, *column, errors) };
            *column = errors;
        }
        t.store_rows(t.transpose(tile), bytes, rows);
    }

    /// Like [`tile`](Self::tile), but in a copy, because the sample ends within the last row of the
    /// tile.
    #[inline(always)]
    fn copied_tile(&self, rows: &mut [u8], column: usize, left: &Weight<T::Vector>, errors: T::Vector) -> T::Vector {
        let mut copy = [[0; WIDTH]; 32]; // a tile has at most 32 rows
        for (row, part) in rows.chunks(self.stride).zip(&mut copy) {
            copy_short(row.get(column..).unwrap_or_default(), part);
        }
        let in_copy = RowOffsets::new(WIDTH, rows.len().div_ceil(self.stride));
        let errors = self.tile(copy.as_flattened_mut(), &in_copy, left, errors);
        for (row, part) in rows.chunks_mut(self.stride).zip(&copy) {
            copy_short(part, row.get_mut(column..).unwrap_or_default());
        }
        errors
    }
}

/// Undoes samples whose rows have at least [`WIDTH`] bytes.
struct TiledUndo<T: Vectors> {
    t: T,
    /// The size of a row in bytes.
    stride: usize,
    along: RowUndo<T>,
    /// The same for tiles of fewer rows.
    along_narrow: RowUndo<T::Narrower>,
    /// The weight of the step above.
    above: Weight<T::Vector>,
}

impl<T: Vectors> TiledUndo<T> {
    #[inline(always)]
    fn new(t: T, stride: usize, weights: Weights) -> Self {
        let above = Weight::new(t, weights.above, weights.above);
        let along = RowUndo::new(t, stride, weights.left);
        Self { t, stride, along, along_narrow: RowUndo::new(t.narrower(), stride, weights.left), above }
    }

    /// Undoes a sample of at least two rows.
    #[inline(always)]
    fn sample(&self, sample: &mut [u8]) {
        // the size in bytes of as many rows as a tile has
        let [group, narrow_group] = [T::BYTES, T::Narrower::BYTES].map(|bytes| self.stride.saturating_mul(bytes / 2));
        let (mut above, mut rest) = (&mut [][..], sample);
        while !rest.is_empty() {
            // in bounds: limited to the length
            let (rows, after) = rest.split_at_mut(rest.len().min(group));
            if narrow_group < group && rows.len() <= narrow_group {
                self.along_narrow.group(rows, above.is_empty());
            } else {
                self.along.group(rows, above.is_empty());
            }
            self.down_all(above, rows);
            (above, rest) = (rows, after);
        }
    }

    /// Replaces the errors of a group of rows with the elements. At the start of a sample, `above`
    /// is empty. Otherwise, it ends with at least two whole rows.
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

    /// Like [`down_all`](Self::down_all), for `N` vectors of each row, from byte `column` on.
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
                elements[i] = t.load(above.get(offset..).unwrap_or_default());
                steps[i] = t.minus(elements[i], t.load(before.get(offset..).unwrap_or_default()));
            }
        }
        let width = (self.stride - column).min(N * T::BYTES); // `column` is in the first row
        let mut rest = rows.get_mut(column..).unwrap_or_default();
        while !rest.is_empty() {
            if width < N * T::BYTES || rest.len() < N * T::BYTES {
                self.step(rest, width, &mut elements, &mut steps);
            } else {
                let (row, _) = rest.split_at_mut(N * T::BYTES); // in bounds: `rest` is long enough
                self.step(row, N * T::BYTES, &mut elements, &mut steps); // all lengths are constant
            }
            // the first row has no row above it, so it is not a step
            if replace(&mut is_first, false) {
                steps = [t.zero(); N];
            }
            rest = rest.get_mut(self.stride..).unwrap_or_default();
        }
    }

    /// Replaces the errors in `N` vectors of a row, at most `width` bytes, with the elements.
    /// `errors` can extend beyond the row, because loading a whole vector is faster than loading
    /// part of one. `elements` and `steps` belong to the row above, and become the elements and
    /// steps of this row.
    #[inline(always)]
    fn step<const N: usize>(
        &self,
        mut errors: &mut [u8],
        mut width: usize,
        elements: &mut [T::Vector; N],
        steps: &mut [T::Vector; N],
    ) {
        let t = self.t;
        for (element, step) in elements.iter_mut().zip(steps) {
            *step = self.above.add(t, t.load(errors), *step);
            *element = t.plus::<u16>(*element, *step);
            // in bounds: limited to the length
            let (slot, after) = errors.split_at_mut(width.min(T::BYTES).min(errors.len()));
            t.store(*element, slot);
            (errors, width) = (after, width - slot.len());
        }
    }
}
