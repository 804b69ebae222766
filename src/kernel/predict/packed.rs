//! Undoing predictions of rows that are much shorter than a vector, such as the channels of a
//! pixel: each vector has several rows.
//!
//! In a row of the Lorenzo predictor, the differences to the row above are sums of residuals from
//! the start of the row on. An element is the sum of the differences in its column, down to its
//! row. Both are prefix sums: of neighbours, and of elements a row apart. In a row of *separable*,
//! a difference is a residual plus a part of the difference on its left. If the step above has no
//! weight, all else is the same.

use super::operations::Lanes;
use super::tiled::WHOLE;
use crate::kernel::bytes::{copy, copy_short};
use crate::kernel::word::Word;

/// The most steps of a prefix sum: a lane has at most 64 elements, and at least two rows or two
/// elements of a row.
const MOST_STEPS: usize = 5;

/// Undoes rows of `row` bytes.
pub(super) struct PackedRows<V: Lanes> {
    v: V,
    /// Bytes of a row.
    row: usize,
    /// Bytes of the rows in a lane.
    lane: usize,
    /// The weight of the difference on the left.
    left: u8,
    /// The shuffles of the sums along a row. The first few are used.
    along: [V::Vector; MOST_STEPS],
    along_count: usize,
    /// The shuffles of the sums down the columns of a lane. The first few are used.
    down: [V::Vector; MOST_STEPS],
    down_count: usize,
    /// Brings the last row of a lane to all of its rows.
    last: V::Vector,
}

impl<V: Lanes> PackedRows<V> {
    /// Returns whether a vector has at least two rows of `row` bytes.
    #[inline(always)]
    pub(super) fn fit(row: usize) -> bool {
        row > 0 && V::LANE / row * (V::BYTES / V::LANE) > 1
    }

    /// Returns what undoes rows of `row` bytes, which [`fit`](Self::fit). `left` is the weight of
    /// what was missed on the left.
    #[inline(always)]
    pub(super) fn new<W: Word>(v: V, row: usize, left: u8) -> Self {
        let row = row.clamp(W::BYTES, V::LANE); // it fits
        let rows = V::LANE / row;
        let columns = columns::<V>(row);
        let start_of_last = ((rows - 1) * row) as u8; // exact: in a lane
        let mut packed = Self {
            v,
            row,
            lane: rows * row,
            left,
            along: [v.zero(); MOST_STEPS],
            along_count: steps(row / W::BYTES),
            down: [v.zero(); MOST_STEPS],
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

    /// Undoes the rows in the first `len` bytes of `data`, which follow the row `above`.
    #[inline(always)]
    pub(super) fn undo<W: Word>(&self, above: &[u8], data: &mut [u8], len: usize) {
        let v = self.v;
        let vector_bytes = V::BYTES / V::LANE * self.lane;
        // a store goes on to the end of its last lane
        let stored_bytes = vector_bytes - self.lane + V::LANE;
        let mut sum = self.copies(above);
        let (mut rest, mut left) = (data, len);
        let mut next = v.load_lanes(rest, self.lane);
        while left > 0 {
            let residuals = next;
            // before the bytes after this vector are overwritten
            next = v.load_lanes(rest.get(vector_bytes..).unwrap_or_default(), self.lane);
            let sums = self.sums::<W>(self.differences::<W>(v.unzigzag::<W>(residuals)));
            let elements = v.plus::<W>(sums, sum);
            // only this waits for the vector before
            sum = v.plus::<W>(sum, v.shuffle(v.last_lane(sums), self.last));
            let done = vector_bytes.min(left);
            if left >= stored_bytes {
                v.store_lanes(elements, rest, self.lane);
            } else {
                let mut padded = [0; 64];
                v.store_lanes(elements, &mut padded, self.lane);
                // in bounds: both have as many
                copy_short(&padded[..done], &mut rest[..done]);
            }
            left -= done;
            rest = rest.get_mut(done..).unwrap_or_default();
        }
    }

    /// Returns a vector that has `row` as all of its rows.
    #[inline(always)]
    fn copies(&self, row: &[u8]) -> V::Vector {
        let mut rows = [0; 64];
        rows.chunks_mut(self.row).for_each(|to| copy(row, to));
        self.v.load_lanes(&rows, self.lane)
    }

    /// Returns the differences to the row above.
    #[inline(always)]
    fn differences<W: Word>(&self, residuals: V::Vector) -> V::Vector {
        let v = self.v;
        let mut differences = residuals;
        match self.left {
            0 => {}
            WHOLE => {
                for &order in self.along.iter().take(self.along_count) {
                    differences = v.plus::<W>(differences, v.shuffle(differences, order));
                }
            }
            // each round gives one more column its final form
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

/// Returns the steps of a prefix sum of `count` elements.
fn steps(count: usize) -> usize {
    count.next_power_of_two().trailing_zeros() as usize // exact: at most 64
}

/// Returns the offset in its row of each byte of the lanes.
#[inline(always)]
fn columns<V: Lanes>(row: usize) -> [u8; 64] {
    let mut columns = [0; 64];
    for lane in columns.chunks_mut(V::LANE) {
        for row in lane.chunks_mut(row) {
            row.iter_mut().zip(0..).for_each(|(to, column)| *to = column);
        }
    }
    columns
}

/// Returns the order that brings byte `from` of each lane to another, which is given with its
/// offset in its row.
#[inline(always)]
fn order<V: Lanes>(v: V, columns: &[u8; 64], from: impl Fn(u8, u8) -> u8) -> V::Vector {
    let mut order = [0; 64]; // at least a vector
    for (k, (to, &column)) in (0..).zip(order.iter_mut().zip(columns)) {
        *to = from(k % V::LANE as u8, column); // exact: at most 64
    }
    v.load(&order)
}

/// The index of [`Lanes::shuffle`] that gives 0.
const ZERO: u8 = 0x80;
