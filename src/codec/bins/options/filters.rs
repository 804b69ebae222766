//! Filters: linear prediction of numbers from many of the last ones.

use super::marks::{malformed, malformed_block};
use crate::Result;
use crate::codec::bins::class_codes::ClassCodes;
use crate::codec::bins::mappings::cut;
use crate::codec::transform::Transform;
use crate::kernel::Width;
use crate::kernel::predict::{self, FilterBank, MOST_FILTERS, MOST_TAPS, SEGMENT};
use crate::le::{Fields, structure};

structure! {
    /// Chapter 5.15: the fields of *filters* before the coefficients.
    mod fields_of_filters: 6 bytes {
        0 => TAPS: u8,
        1 => FILTER_COUNT: u8,
        2 => RESTART_SEGMENTS: u16,
        4 => ZERO: u16,
    }
}

/// Chapter 5.15: the fields of *filters*.
#[derive(Clone, Copy, Debug)]
pub(in crate::codec) struct Filters {
    pub(super) bank: FilterBank,
    pub(super) filter_count: usize,
}

impl Filters {
    /// Parses the fields: of them.
    pub(super) fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        use fields_of_filters::{FILTER_COUNT, RESTART_SEGMENTS, TAPS, ZERO};
        let head = fields.array().ok_or_else(cut)?;
        let (taps, filter_count) = (usize::from(TAPS.get(&head)), usize::from(FILTER_COUNT.get(&head)));
        let (restart, zero) = (RESTART_SEGMENTS.get(&head), ZERO.get(&head));
        if !(1..=MOST_TAPS).contains(&taps) || !(1..=MOST_FILTERS).contains(&filter_count) || restart == 0 {
            return Err(malformed(&format!(
                "{filter_count} filters of {taps} taps that restart after {restart} segments"
            )));
        }
        let mut coefficients = [[0; MOST_TAPS]; MOST_FILTERS];
        for filter in coefficients.iter_mut().take(filter_count) {
            for coefficient in filter.iter_mut().take(taps) {
                *coefficient = i16::from_le_bytes(fields.array().ok_or_else(cut)?);
            }
        }
        Ok(Self { bank: FilterBank { coefficients, taps, restart, zero }, filter_count })
    }

    /// Checks the numbers and the transform that filters are used with.
    pub(super) fn check_numbers(&self, number_width: Width, transform: Transform) -> Result<()> {
        match (number_width, transform) {
            (Width::W2, Transform::None) => Ok(()),
            _ => Err(malformed("filters of numbers that have not 2 bytes, or another transform")),
        }
    }

    pub(super) fn write(&self, tables: &mut Vec<u8>) {
        use fields_of_filters::{FILTER_COUNT, RESTART_SEGMENTS, SIZE, TAPS, ZERO};
        let FilterBank { coefficients, taps, restart, zero } = &self.bank;
        let mut head = [0; SIZE];
        TAPS.put(&mut head, *taps as u8); // exact: at most 16, as the next
        FILTER_COUNT.put(&mut head, self.filter_count as u8);
        RESTART_SEGMENTS.put(&mut head, *restart);
        ZERO.put(&mut head, *zero);
        tables.extend(head);
        let coefficients = coefficients.iter().take(self.filter_count).flat_map(|filter| filter.iter().take(*taps));
        tables.extend(coefficients.flat_map(|coefficient| coefficient.to_le_bytes()));
    }

    pub(super) fn codes(&self) -> ClassCodes {
        ClassCodes::new(self.filter_count)
    }

    pub(super) fn describe(&self) -> String {
        format!("{} filters of {} taps; ", self.filter_count, self.bank.taps)
    }

    /// Splits the filter codes of a block of `count` numbers from the bytes after them: of
    /// them.
    pub(in crate::codec) fn split<'a>(&self, count: usize, stored: &'a [u8]) -> Result<FilterBlock<'a>> {
        let (codes, segments) = (self.codes(), count.div_ceil(SEGMENT));
        let split = codes.bytes(segments).and_then(|bytes| stored.split_at_checked(bytes));
        let (stored, bins) = split.ok_or_else(|| malformed_block("it ends within its filter codes"))?;
        if !codes.are_valid(stored, segments) || !codes.end_in_zeros(stored, segments) {
            return Err(malformed_block("a filter code is out of range, or bits that fill up are not zero"));
        }
        Ok(FilterBlock { codes: stored, bins })
    }

    /// Returns the index of the number where prediction restarted last before number `i`, or at it.
    pub(in crate::codec) fn start_of(&self, i: usize) -> usize {
        i - i % self.bank.restart_numbers()
    }

    /// Replaces the coded integers of a block, from a restart on, by numbers. `first` is
    /// the index of the first of them.
    pub(in crate::codec) fn undo(&self, codes: &[u8], first: usize, data: &mut [u8], scratch: &mut Vec<u8>) {
        let of_block = self.codes();
        let segments = first / SEGMENT..(first + data.len() / Width::W2.bytes()).div_ceil(SEGMENT);
        scratch.clear();
        scratch.extend(segments.map(|segment| of_block.get(codes, segment)));
        predict::best().undo_filter(&self.bank, scratch, data);
    }
}

/// The filter codes of a block.
pub(in crate::codec) struct FilterBlock<'a> {
    pub codes: &'a [u8],
    /// The bytes after them.
    pub bins: &'a [u8],
}
