//! Linear prediction by filters (chapter 5.15 of the specification).
//!
//! In this module, a *row* consists of the numbers between two restarts of the prediction. A number
//! depends on up to 16 numbers before it in its row, and on no other row. The rows of a group are
//! therefore undone side by side, as in *separable*: a tile has as many rows as a vector has
//! elements, and is transposed so that a vector has one number of each row.
//!
//! Each number requires up to 16 products. One instruction multiplies two numbers of 2 bytes by two
//! coefficients, and adds both products in 32 bits. Numbers are therefore kept in *pairs* of
//! consecutive numbers of a row. As a pair gets older, it is multiplied by later coefficients. The
//! pairs form a ring, so numbers do not have to be shifted. Only the newest pair must wait for the
//! previous number, so its products are added last.

use super::vectors::{COLUMNS, Vectors};
use crate::kernel::Word;
use crate::kernel::vectors::RowOffsets;

/// The length of a segment, in numbers. Each segment has one filter.
pub const SEGMENT: usize = 128;
/// The maximum number of coefficients of a filter.
pub const MAX_TAPS: usize = 16;
/// The maximum number of filters of a bank.
pub const MAX_FILTERS: usize = 16;

/// Filters, and how they are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterBank {
    /// The coefficients of each filter, in 4096ths. The first coefficient applies to the most
    /// recent number. Coefficients from index `taps` on are 0.
    pub coefficients: [[i16; MAX_TAPS]; MAX_FILTERS],
    /// The number of coefficients per filter, at most [`MAX_TAPS`].
    pub taps: usize,
    /// The number of segments after which the prediction restarts. 0 is treated as 1.
    pub restart: u16,
    /// The number that filters treat as 0. It is subtracted from each number before the products.
    pub zero: u16,
}

impl FilterBank {
    /// Returns how many numbers there are between restarts of the prediction.
    pub fn restart_numbers(&self) -> usize {
        usize::from(self.restart.max(1)) * SEGMENT
    }

    /// Returns the filter of a segment, given the codes of all segments.
    pub(super) fn filter(&self, codes: &[u8], segment: usize) -> &[i16; MAX_TAPS] {
        let code = codes.get(segment).copied().unwrap_or(0);
        &self.coefficients[usize::from(code) % MAX_FILTERS] // in bounds
    }
}

/// The size of a segment in bytes.
const SEGMENT_BYTES: usize = SEGMENT * u16::BYTES;
/// The maximum number of rows in a group.
const MAX_ROWS: usize = 32;
/// Half of the unit to which sums are rounded.
const HALF: u32 = 1 << 11;

// ---- numbers to residuals

/// See [`Kernel::filter`](super::Kernel::filter). The compiler vectorizes the loops.
#[inline(always)]
pub(super) fn residuals<T>(_: T, bank: &FilterBank, codes: &[u8], numbers: &[u8], out: &mut [u8]) {
    let restart = usize::from(bank.restart.max(1));
    // the numbers of a segment, preceded by the last numbers of the previous segment
    let mut counted = [0_i32; MAX_TAPS + SEGMENT];
    let segments = numbers.chunks(SEGMENT_BYTES).zip(out.chunks_mut(SEGMENT_BYTES));
    for (segment, (numbers, out)) in segments.enumerate() {
        match segment.is_multiple_of(restart) {
            true => counted = [0; MAX_TAPS + SEGMENT],
            false => counted.copy_within(SEGMENT.., 0),
        }
        let (_, these) = counted.split_at_mut(MAX_TAPS); // in bounds
        for (to, number) in these.iter_mut().zip(numbers.as_chunks().0) {
            *to = u16::from_le_bytes(*number).wrapping_sub(bank.zero).cast_signed().into();
        }
        let mut sums = [HALF.cast_signed(); SEGMENT];
        let filter = bank.filter(codes, segment).iter().take(bank.taps);
        for (tap, &coefficient) in filter.enumerate() {
            // no underflow: `tap` is below MAX_TAPS
            let before = counted.iter().skip(MAX_TAPS - 1 - tap);
            for (sum, &number) in sums.iter_mut().zip(before) {
                *sum = sum.wrapping_add(i32::from(coefficient).wrapping_mul(number));
            }
        }
        let these = counted.iter().skip(MAX_TAPS);
        for ((to, number), sum) in out.as_chunks_mut().0.iter_mut().zip(these).zip(sums) {
            let residual = number.wrapping_sub(sum >> 12) as u16; // modulo 2^16
            *to = residual.zigzag().to_le_bytes();
        }
    }
}

// ---- residuals to numbers

/// See [`Kernel::undo_filter`](super::Kernel::undo_filter).
#[inline(always)]
pub(super) fn undo<T: Vectors>(t: T, bank: &FilterBank, codes: &[u8], data: &mut [u8]) {
    match bank.taps {
        0..=8 => undo_groups::<T, 8>(t, bank, codes, data),
        _ => undo_groups::<T, 16>(t, bank, codes, data),
    }
}

#[inline(always)]
fn undo_groups<T: Vectors, const TAPS: usize>(t: T, bank: &FilterBank, codes: &[u8], data: &mut [u8]) {
    let restart = usize::from(bank.restart.max(1));
    // no overflow: `restart` is below 2^16
    let stride = restart * SEGMENT_BYTES;
    let [wide_rows, narrow_rows] = [T::BYTES, T::Narrower::BYTES].map(|bytes| bytes / u16::BYTES);
    let mut codes = codes;
    for group in data.chunks_mut(wide_rows * stride) {
        if narrow_rows < wide_rows && group.len() <= narrow_rows * stride {
            RowGroup::<T::Narrower, TAPS>::new(t.narrower(), bank).undo(group, stride, codes);
        } else {
            RowGroup::<T, TAPS>::new(t, bank).undo(group, stride, codes);
        }
        codes = codes.get(wide_rows * restart..).unwrap_or_default();
    }
}

/// The coefficients for a segment of each row, in pairs. Each pair of vectors has the coefficients
/// for the even rows, followed by the coefficients for the odd rows.
type Factors<V, const TAPS: usize> = [[V; 2]; TAPS];

/// A group of rows that are undone side by side. `TAPS` is 8 or 16.
struct RowGroup<'b, T: Vectors, const TAPS: usize> {
    t: T,
    bank: &'b FilterBank,
    zero: T::Vector,
    half: T::Vector,
    /// The last number of each row, and the number before the last.
    last: [T::Vector; 2],
    /// Earlier pairs. Each is stored at the index of the number that followed it, modulo `TAPS`.
    pairs: [[T::Vector; 2]; TAPS],
}

impl<'b, T: Vectors, const TAPS: usize> RowGroup<'b, T, TAPS> {
    #[inline(always)]
    fn new(t: T, bank: &'b FilterBank) -> Self {
        let [mut zero, mut half] = [[0; 64]; 2]; // each at least as long as a vector
        (0..32).for_each(|i| bank.zero.set(&mut zero, i));
        (0..16).for_each(|i| HALF.set(&mut half, i));
        let [zero, half] = [t.load(&zero), t.load(&half)];
        Self { t, bank, zero, half, last: [t.zero(); 2], pairs: [[t.zero(); 2]; TAPS] }
    }

    /// Replaces the residuals of a group with the numbers. Only the last row of the group can be
    /// short.
    #[inline(always)]
    fn undo(&mut self, group: &mut [u8], stride: usize, codes: &[u8]) {
        let count = group.len().div_ceil(stride);
        let shortest = group.len() - (count - 1) * stride;
        let in_group = RowOffsets::new(stride, count);
        for column in (0..stride.min(group.len())).step_by(SEGMENT_BYTES) {
            let factors = self.factors(codes.get(column / SEGMENT_BYTES..).unwrap_or_default(), stride, count);
            if column + SEGMENT_BYTES <= shortest {
                self.segment(group.get_mut(column..).unwrap_or_default(), &in_group, &factors);
            } else {
                self.copied_segment(group, stride, column, &factors);
            }
        }
    }

    /// Returns the coefficients for a segment of each row. If a tile has more rows than the group,
    /// the extra rows use the coefficients of the last row.
    #[inline(always)]
    fn factors(&self, codes: &[u8], stride: usize, count: usize) -> Factors<T::Vector, TAPS> {
        let mut factors = [[[0; 64]; 2]; TAPS]; // each at least as long as a vector
        for row in 0..T::BYTES / u16::BYTES {
            let filter = self.bank.filter(codes, row.min(count - 1) * (stride / SEGMENT_BYTES));
            for (factors, [first, second]) in factors.iter_mut().zip(filter.as_chunks().0) {
                let pair = u32::from(second.cast_unsigned()) << 16 | u32::from(first.cast_unsigned());
                pair.set(&mut factors[row % 2], row / 2);
            }
        }
        let mut loaded = [[self.zero; 2]; TAPS];
        for (to, [even, odd]) in loaded.iter_mut().zip(&factors) {
            *to = [self.t.load(even), self.t.load(odd)];
        }
        loaded
    }

    /// Replaces the residuals of a segment of each row.
    #[inline(always)]
    fn segment(&mut self, bytes: &mut [u8], rows: &RowOffsets, factors: &Factors<T::Vector, TAPS>) {
        for start in (0..SEGMENT).step_by(TAPS) {
            for first in (0..TAPS).step_by(COLUMNS) {
                let bytes = bytes.get_mut((start + first) * u16::BYTES..).unwrap_or_default();
                self.tile(bytes, rows, factors, first);
            }
        }
    }

    /// Replaces the residuals of a tile whose first number has index `first` modulo `TAPS`.
    #[inline(always)]
    fn tile(&mut self, bytes: &mut [u8], rows: &RowOffsets, factors: &Factors<T::Vector, TAPS>, first: usize) {
        let t = self.t;
        let mut tile = t.load_rows(bytes, rows);
        for residuals in &mut tile {
            *residuals = t.unzigzag::<u16>(*residuals);
        }
        tile = t.transpose(tile);
        for (i, number) in tile.iter_mut().enumerate() {
            let newest = t.pairs(self.last[0], self.last[1]);
            let mut sums = [self.half; 2];
            // the products with the newest pair are added last, because all other pairs are known
            // earlier
            for pair in (1..TAPS / 2).rev() {
                let pairs = &self.pairs[(first + i + TAPS - 2 * pair) % TAPS]; // in bounds
                for ((sum, pair), factors) in sums.iter_mut().zip(pairs).zip(&factors[pair]) {
                    *sum = t.add_products(*sum, *pair, *factors);
                }
            }
            for ((sum, pair), factors) in sums.iter_mut().zip(newest).zip(&factors[0]) {
                *sum = t.add_products(*sum, pair, *factors);
            }
            self.pairs[(first + i) % TAPS] = newest; // in bounds
            self.last = [t.plus::<u16>(*number, t.join_sums(sums)), self.last[0]];
            *number = t.plus::<u16>(self.last[0], self.zero);
        }
        t.store_rows(t.transpose(tile), bytes, rows);
    }

    /// Replaces the residuals of a segment in a copy, because the last row ends within the segment.
    #[inline(always)]
    fn copied_segment(&mut self, group: &mut [u8], stride: usize, column: usize, factors: &Factors<T::Vector, TAPS>) {
        let mut copy = [[0; SEGMENT_BYTES]; MAX_ROWS];
        let mut count = 0;
        for (row, copy) in group.chunks(stride).zip(&mut copy) {
            let of_row = row.get(column..).unwrap_or_default();
            copy.iter_mut().zip(of_row).for_each(|(to, from)| *to = *from);
            count += 1;
        }
        let in_copy = RowOffsets::new(SEGMENT_BYTES, count);
        self.segment(copy.as_flattened_mut(), &in_copy, factors);
        for (row, copy) in group.chunks_mut(stride).zip(&copy) {
            let of_row = row.get_mut(column..).unwrap_or_default();
            of_row.iter_mut().zip(copy).for_each(|(to, from)| *to = *from);
        }
    }
}
