//! Undoes predictions row by row: *delta*, *lorenzo*, and *separable* if rows are short and the
//! step above has no weight.
//!
//! Let `d[i] = x[i] - x[i-stride]` be the difference from the row above. *delta* stores `d` itself.
//! *lorenzo* stores the differences between neighbors in `d`, so each `d[i]` is a sum of residuals
//! from the start of the row: `d[i] = d[i-1] + r[i]`. The elements of the first row of a sample are
//! sums of this form, and so are all elements of a sample in which each element is predicted from
//! the previous one.
//!
//! The sums within a vector take as many steps as the index of an element has bits: for each pair
//! of adjacent units of `2^k` elements, step `k` adds the last element of the first unit to all
//! elements of the second. The sum of all previous vectors is added afterwards, so only one
//! addition waits for the previous vector.
//!
//! The loop depends on the length of the rows:
//!
//! * *wide*: rows longer than a vector. The row above is loaded.
//! * *narrow*: a vector holds one row. The row above stays in a register.
//! * *packed*: a vector holds several rows, see [`PackedRows`]. The loop sums along the rows and
//!   down the columns.

use super::separable::{self, FULL_WEIGHT};
use super::vectors::{Vectors, ZERO};
use super::{FilterBank, Kernel, Prediction, Predictor, Weights, filters};
use crate::kernel::dispatch::implement;
use crate::kernel::{BLOCK, Width, Word, block, copy, copy_short, for_width, set_block};
use std::ops::Range;

implement!([Avx2, Neon] Kernel {
    fn residuals(prediction: &Prediction, width: Width, elements: &[u8], out: &mut [u8]) => { residuals }
    fn undo(prediction: &Prediction, width: Width, data: &mut [u8]) => { undo }
    fn filter(bank: &FilterBank, codes: &[u8], numbers: &[u8], out: &mut [u8]) => { filters::residuals }
    fn undo_filter(bank: &FilterBank, codes: &[u8], data: &mut [u8]) => { filters::undo }
});

/// The extents of samples and rows, limited to the length of the data.
#[derive(Clone, Copy)]
struct Strides {
    /// The number of elements in a sample, 1 to `count`.
    restart: usize,
    /// The number of elements in a row, 1 to `restart`. Equals `restart` if each element except the
    /// first of a sample is predicted from the previous one.
    stride: usize,
}

impl Strides {
    /// Returns the strides for `count` elements, or `None` if there are no elements.
    #[inline(always)]
    fn new(prediction: &Prediction, count: usize) -> Option<Self> {
        // exact: on all targets of this crate, usize has at least 32 bits
        let restart = (prediction.restart.max(1) as usize).min(count);
        let stride = match prediction.stride {
            0 | 1 => restart,                         // the element above is the previous one
            stride => (stride as usize).min(restart), // exact for the same reason
        };
        (count > 0).then_some(Self { restart, stride })
    }
}

// ---- elements to residuals: no residual depends on another, so blocks may overlap

/// See [`Kernel::residuals`]. The compiler vectorizes the blocks.
#[inline(always)]
pub(super) fn residuals<T>(_: T, prediction: &Prediction, width: Width, elements: &[u8], out: &mut [u8]) {
    for_width!(width, W => match prediction.predictor {
        Predictor::Separable(weights) => separable::residuals::<W>(prediction, weights, elements, out),
        _ => all_residuals::<W>(prediction, elements, out),
    });
}

#[inline(always)]
fn all_residuals<W: Word>(prediction: &Prediction, elements: &[u8], out: &mut [u8]) {
    let count = elements.len() / W::BYTES;
    let Some(Strides { restart, stride }) = Strides::new(prediction, count) else { return };
    if restart == 1 {
        return code_range::<W, false, false>(elements, out, 0..count, stride);
    }
    for start in (0..count).step_by(restart) {
        let end = count.min(start + restart);
        let above = end.min(start + stride);
        code_element::<W, false, false>(elements, out, start, stride);
        code_range::<W, true, false>(elements, out, start + 1..above, stride);
        if prediction.predictor == Predictor::Delta {
            code_range::<W, false, true>(elements, out, above..end, stride);
        } else if above < end {
            code_range::<W, true, true>(elements, out, above + 1..end, stride);
            // the first element of a row has no left neighbor: it is coded again
            for first in (above..end).step_by(stride) {
                code_element::<W, false, true>(elements, out, first, stride);
            }
        }
    }
}

/// Codes the elements in `range`. All are predicted from the same neighbors: from the left
/// (`LEFT`), from above (`ABOVE`), or, if both are set, from the left, above and above left.
#[inline(always)]
fn code_range<W: Word, const LEFT: bool, const ABOVE: bool>(
    elements: &[u8],
    out: &mut [u8],
    range: Range<usize>,
    stride: usize,
) {
    let in_block = BLOCK / W::BYTES;
    if range.len() < in_block {
        for i in range {
            code_element::<W, LEFT, ABOVE>(elements, out, i, stride);
        }
        return;
    }
    let back = [Some(0), LEFT.then_some(1), ABOVE.then_some(stride), (LEFT && ABOVE).then_some(stride + 1)];
    for first in range.clone().step_by(in_block) {
        let first = first.min(range.end - in_block); // the last block overlaps the one before it
        let blocks = back.map(|back| back.map_or(&[0; BLOCK], |back| block(elements, (first - back) * W::BYTES)));
        let mut done = [0; BLOCK];
        for i in 0..in_block {
            residual::<W>(blocks.map(|block| W::get(block, i))).set(&mut done, i);
        }
        set_block(out, first * W::BYTES, &done);
    }
}

/// Like [`code_range`], for element `i`.
#[inline(always)]
fn code_element<W: Word, const LEFT: bool, const ABOVE: bool>(
    elements: &[u8],
    out: &mut [u8],
    i: usize,
    stride: usize,
) {
    let left = if LEFT { W::get(elements, i - 1) } else { W::default() };
    let above = if ABOVE { W::get(elements, i - stride) } else { W::default() };
    let above_left = if LEFT && ABOVE { W::get(elements, i - stride - 1) } else { W::default() };
    residual::<W>([W::get(elements, i), left, above, above_left]).set(out, i);
}

/// Returns the zigzag-coded residual of an element, given the element and its left, above and
/// above-left neighbors. A neighbor that the prediction does not use is 0.
#[inline(always)]
fn residual<W: Word>([this, left, above, above_left]: [W; 4]) -> W {
    this.minus(left.plus(above).minus(above_left)).zigzag()
}

// ---- residuals to elements, row by row

/// See [`Kernel::undo`].
#[inline(always)]
pub(super) fn undo<V: Vectors>(v: V, prediction: &Prediction, width: Width, data: &mut [u8]) {
    for_width!(width, W => Undo(v).any::<W>(prediction, data));
}

/// The minimum size of a sample, in bytes, for which setting up [`PackedRows`] is worthwhile.
const MIN_PACKED_BYTES: usize = 256;

/// Undoes predictions. Methods take a slice that extends to the end of the data, and undo only its
/// start. Loading a whole vector is faster than loading part of one, so loads can reach into bytes
/// that are not yet undone.
struct Undo<V>(V);

impl<V: Vectors> Undo<V> {
    /// Undoes any prediction.
    #[inline(always)]
    fn any<W: Word>(&self, prediction: &Prediction, data: &mut [u8]) {
        let weights = match prediction.predictor {
            Predictor::Delta => Weights { left: 0, above: 0 },
            Predictor::Lorenzo => Weights { left: FULL_WEIGHT, above: 0 },
            Predictor::Separable(weights) => weights,
        };
        match prediction.predictor {
            _ if weights.above == 0 && self.packed_samples::<W>(prediction, weights.left, data) => {}
            Predictor::Separable(weights) => separable::undo::<W, V>(self.0, prediction, weights, data),
            _ => self.all::<W>(prediction, data),
        }
    }

    /// Undoes all samples if a vector holds several rows, and returns whether it did. `left` is the
    /// weight of the error on the left.
    #[inline(always)]
    fn packed_samples<W: Word>(&self, prediction: &Prediction, left: u8, data: &mut [u8]) -> bool {
        let Some(Strides { restart, stride }) = Strides::new(prediction, data.len() / W::BYTES) else { return true };
        let (restart, stride) = (restart * W::BYTES, stride * W::BYTES);
        let is_packed = restart >= MIN_PACKED_BYTES && stride < restart && PackedRows::<V>::fit(stride);
        if !is_packed || W::BYTES > 4 && !matches!(left, 0 | FULL_WEIGHT) {
            return false;
        }
        let rows = PackedRows::new::<W>(self.0, stride, left);
        let mut rest = data;
        while !rest.is_empty() {
            rest = self.packed::<W>(&rows, rest, restart, stride);
        }
        true
    }

    /// Undoes *delta* and *lorenzo*.
    #[inline(always)]
    fn all<W: Word>(&self, prediction: &Prediction, data: &mut [u8]) {
        let Some(Strides { restart, stride }) = Strides::new(prediction, data.len() / W::BYTES) else { return };
        let (restart, stride) = (restart * W::BYTES, stride * W::BYTES);
        if restart == W::BYTES {
            return self.first_row::<W, false>(data, data.len());
        }
        let mut rest = data;
        while !rest.is_empty() {
            rest = match (stride <= V::BYTES, prediction.predictor == Predictor::Lorenzo) {
                (true, true) => self.narrow::<W, true>(rest, restart, stride),
                (true, false) => self.narrow::<W, false>(rest, restart, stride),
                (false, true) => self.wide::<W, true>(rest, restart, stride),
                (false, false) => self.wide::<W, false>(rest, restart, stride),
            };
        }
    }

    /// Undoes a sample of `len` bytes in rows of `stride` bytes. Returns the bytes after it.
    #[inline(always)]
    fn wide<'d, W: Word, const LORENZO: bool>(&self, data: &'d mut [u8], len: usize, stride: usize) -> &'d mut [u8] {
        let len = len.min(data.len());
        let first = stride.min(len);
        self.first_row::<W, true>(data, first);
        let (mut above, mut rest) = data.split_at_mut(first); // in bounds: `first` is at most `len`
        let mut left = len - first;
        while left > 0 {
            let row = stride.min(left);
            self.row::<W, LORENZO>(rest, row, above);
            (above, rest) = rest.split_at_mut(row); // in bounds: `rest` has `left` bytes
            left -= row;
        }
        rest
    }

    /// Undoes a sample of `len` bytes. Returns the bytes after it.
    #[inline(always)]
    fn packed<'d, W: Word>(&self, rows: &PackedRows<V>, data: &'d mut [u8], len: usize, stride: usize) -> &'d mut [u8] {
        let len = len.min(data.len());
        let first = stride.min(len);
        self.first_row::<W, true>(data, first);
        // in bounds: `first` is at most `len`
        let (above, others) = data.split_at_mut(first);
        rows.undo::<W>(above, others, len - first);
        others.get_mut(len - first..).unwrap_or_default()
    }

    /// Like [`wide`](Self::wide), for rows that fit in a vector, so the row above need not be
    /// loaded.
    #[inline(always)]
    fn narrow<'d, W: Word, const LORENZO: bool>(&self, data: &'d mut [u8], len: usize, stride: usize) -> &'d mut [u8] {
        let v = self.0;
        let mut left = len.min(data.len());
        let (mut above, mut sums, mut rest) = (v.zero(), true, data);
        while left > 0 {
            let residuals = self.load::<W>(rest);
            above = v.plus::<W>(above, if sums { v.sums::<W>(residuals) } else { residuals });
            sums = LORENZO;
            // in bounds: `rest` has `left` bytes
            let (row, after) = rest.split_at_mut(stride.min(left));
            left -= row.len();
            v.store(above, row);
            rest = after;
        }
        rest
    }

    /// Undoes a row of `len` bytes that has no row above it. If `SUM` is set, each element except
    /// the first is predicted from the previous one. Otherwise, the residuals are the elements.
    #[inline(always)]
    fn first_row<W: Word, const SUM: bool>(&self, data: &mut [u8], len: usize) {
        let v = self.0;
        let (mut rest, mut left, mut sum) = (data, len, v.zero());
        while left > 0 {
            let mut vector = self.load::<W>(rest);
            if SUM {
                let sums = v.sums::<W>(vector);
                vector = v.plus::<W>(sums, sum);
                sum = v.plus::<W>(sum, v.last::<W>(sums)); // waits for the previous vector
            }
            (rest, left) = self.store(vector, rest, left);
        }
    }

    /// Undoes a row of `len` bytes that is predicted from the row `above`.
    #[inline(always)]
    fn row<W: Word, const LORENZO: bool>(&self, data: &mut [u8], len: usize, above: &[u8]) {
        let v = self.0;
        let (mut rest, mut left, mut sum) = (data, len, v.zero());
        for above in above.chunks(V::BYTES).take(len.div_ceil(V::BYTES)) {
            let mut vector = self.load::<W>(rest);
            let mut above = v.load(above);
            if LORENZO {
                vector = v.sums::<W>(vector);
                above = v.plus::<W>(above, sum);
                sum = v.plus::<W>(sum, v.last::<W>(vector));
            }
            (rest, left) = self.store(v.plus::<W>(vector, above), rest, left);
        }
    }

    /// Stores the bytes of `vector`, at most `left`, at the start of `data`. Returns the bytes
    /// after them and the remainder of `left`.
    #[inline(always)]
    fn store<'d>(&self, vector: V::Vector, data: &'d mut [u8], left: usize) -> (&'d mut [u8], usize) {
        // in bounds: `data` has `left` bytes
        let (here, after) = data.split_at_mut(V::BYTES.min(left));
        self.0.store(vector, here);
        (after, left - here.len())
    }

    /// Loads residuals and undoes their zigzag code.
    #[inline(always)]
    fn load<W: Word>(&self, coded: &[u8]) -> V::Vector {
        self.0.unzigzag::<W>(self.0.load(coded))
    }
}

// ---- residuals to elements, several rows in a vector
//
// These rows are much shorter than a vector. An example is the channels of a pixel. An element is
// the sum of the differences in its column, from the first row to its own. A difference is the sum
// of the residuals in its row, from the first to its own. Both sums are prefix sums: one of
// elements that are a row apart, the other of neighbors. *separable* without a weight for the step
// above differs only along the row: a difference is a residual plus the weighted difference on its
// left.

/// The maximum number of steps of a prefix sum. A lane of 64 bytes has at least two rows, and a row
/// has at least two elements, so a sum has at most 32 terms.
const MAX_STEPS: usize = 5;

/// Undoes rows of `row` bytes, several in each vector.
struct PackedRows<V: Vectors> {
    v: V,
    /// The size of a row in bytes.
    row: usize,
    /// The total size of the rows in a lane, in bytes.
    lane: usize,
    /// The weight of the difference on the left.
    left: u8,
    /// The shuffles of the sums along a row. The first `along_count` are used.
    along: [V::Vector; MAX_STEPS],
    along_count: usize,
    /// The shuffles of the sums down the columns of a lane. The first `down_count` are used.
    down: [V::Vector; MAX_STEPS],
    down_count: usize,
    /// The shuffle that copies the last row of a lane to all of its rows.
    last: V::Vector,
}

impl<V: Vectors> PackedRows<V> {
    /// Returns whether at least two rows of `row` bytes fit in a vector.
    #[inline(always)]
    fn fit(row: usize) -> bool {
        row > 0 && V::LANE / row * (V::BYTES / V::LANE) > 1
    }

    /// Prepares to undo rows of `row` bytes, for which [`fit`](Self::fit) must be true. `left` is
    /// the weight of the error on the left.
    #[inline(always)]
    fn new<W: Word>(v: V, row: usize, left: u8) -> Self {
        let row = row.clamp(W::BYTES, V::LANE); // no change, because the row fits
        let rows = V::LANE / row;
        let columns = columns::<V>(row);
        let start_of_last = ((rows - 1) * row) as u8; // exact: an offset in a lane
        let mut packed = Self {
            v,
            row,
            lane: rows * row,
            left,
            along: [v.zero(); MAX_STEPS],
            along_count: steps(row / W::BYTES),
            down: [v.zero(); MAX_STEPS],
            down_count: steps(rows),
            last: order(v, &columns, |_, column| start_of_last + column),
        };
        for (step, to) in packed.along.iter_mut().enumerate().take(packed.along_count) {
            let back = (W::BYTES << step) as u8; // exact: less than a row
            *to = order(v, &columns, |k, column| if column >= back { k - back } else { ZERO });
        }
        for (step, to) in packed.down.iter_mut().enumerate().take(packed.down_count) {
            let back = (row << step) as u8; // exact: less than a lane
            *to = order(v, &columns, |k, _| k.checked_sub(back).unwrap_or(ZERO));
        }
        packed
    }

    /// Undoes the rows in the first `len` bytes of `data`. The row before them is `above`.
    #[inline(always)]
    fn undo<W: Word>(&self, above: &[u8], data: &mut [u8], len: usize) {
        let v = self.v;
        let vector_bytes = V::BYTES / V::LANE * self.lane;
        // a store extends to the end of its last lane
        let stored_bytes = vector_bytes - self.lane + V::LANE;
        let mut sum = self.copies(above);
        let (mut rest, mut left) = (data, len);
        let mut next = v.load_lanes(rest, self.lane);
        while left > 0 {
            let residuals = next;
            // loaded before the store overwrites the bytes after this vector
            next = v.load_lanes(rest.get(vector_bytes..).unwrap_or_default(), self.lane);
            let sums = self.sums::<W>(self.differences::<W>(v.unzigzag::<W>(residuals)));
            let elements = v.plus::<W>(sums, sum);
            // only this addition waits for the previous vector
            sum = v.plus::<W>(sum, v.shuffle(v.last_lane(sums), self.last));
            let done = vector_bytes.min(left);
            if left >= stored_bytes {
                v.store_lanes(elements, rest, self.lane);
            } else {
                let mut padded = [0; 64];
                v.store_lanes(elements, &mut padded, self.lane);
                // in bounds: both have at least `done` bytes
                copy_short(&padded[..done], &mut rest[..done]);
            }
            left -= done;
            rest = rest.get_mut(done..).unwrap_or_default();
        }
    }

    /// Returns a vector that repeats `row`.
    #[inline(always)]
    fn copies(&self, row: &[u8]) -> V::Vector {
        let mut rows = [0; 64];
        rows.chunks_mut(self.row).for_each(|to| copy(row, to));
        self.v.load_lanes(&rows, self.lane)
    }

    /// Returns the differences from the row above.
    #[inline(always)]
    fn differences<W: Word>(&self, residuals: V::Vector) -> V::Vector {
        let v = self.v;
        let mut differences = residuals;
        match self.left {
            0 => {}
            FULL_WEIGHT => {
                for &order in self.along.iter().take(self.along_count) {
                    differences = v.plus::<W>(differences, v.shuffle(differences, order));
                }
            }
            // each round completes one more column
            weight => {
                for _ in 1..self.row / W::BYTES {
                    let left = v.shuffle(differences, self.along[0]);
                    differences = v.plus::<W>(residuals, v.eighths::<W>(left, weight));
                }
            }
        }
        differences
    }

    /// Returns the sums down each column of a vector.
    #[inline(always)]
    fn sums<W: Word>(&self, mut sums: V::Vector) -> V::Vector {
        let v = self.v;
        for &order in self.down.iter().take(self.down_count) {
            sums = v.plus::<W>(sums, v.shuffle(sums, order));
        }
        if V::LANE < V::BYTES {
            sums = v.plus::<W>(sums, v.lane_before(v.shuffle(sums, self.last)));
        }
        sums
    }
}

/// Returns the number of steps of a prefix sum of `count` elements.
fn steps(count: usize) -> usize {
    count.next_power_of_two().trailing_zeros() as usize // exact: at most 64
}

/// Returns, for each byte of the lanes, its offset in its row.
#[inline(always)]
fn columns<V: Vectors>(row: usize) -> [u8; 64] {
    let mut columns = [0; 64];
    for lane in columns.chunks_mut(V::LANE) {
        for row in lane.chunks_mut(row) {
            row.iter_mut().zip(0..).for_each(|(to, column)| *to = column);
        }
    }
    columns
}

/// Returns the order that moves byte `from(k, column)` to byte `k` of each lane. `column` is the
/// offset of byte `k` in its row.
#[inline(always)]
fn order<V: Vectors>(v: V, columns: &[u8; 64], from: impl Fn(u8, u8) -> u8) -> V::Vector {
    let mut order = [0; 64]; // at least as long as a vector
    for (k, (to, &column)) in (0..).zip(order.iter_mut().zip(columns)) {
        *to = from(k % V::LANE as u8, column); // exact: at most 64
    }
    v.load(&order)
}
