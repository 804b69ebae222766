//! The filters of linear prediction (chapter 5.15 of the specification).

/// Numbers of a segment, which has one filter.
pub const SEGMENT: usize = 128;
/// The most coefficients of a filter.
pub const MOST_TAPS: usize = 16;
/// The most filters of a bank.
pub const MOST_FILTERS: usize = 16;

/// Filters, and how prediction uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterBank {
    /// The coefficients of each filter in 4096ths. The first is for the last number. Those from
    /// `taps` on are 0.
    pub coefficients: [[i16; MOST_TAPS]; MOST_FILTERS],
    /// The number of coefficients: at most [`MOST_TAPS`].
    pub taps: usize,
    /// Segments after which prediction restarts. 0 counts as 1.
    pub restart: u16,
    /// The number that others are counted from.
    pub zero: u16,
}

impl FilterBank {
    /// Returns the numbers after which prediction restarts.
    pub fn restart_numbers(&self) -> usize {
        usize::from(self.restart.max(1)) * SEGMENT
    }

    /// Returns the filter of a segment, whose codes are given.
    pub(super) fn filter(&self, codes: &[u8], segment: usize) -> &[i16; MOST_TAPS] {
        let code = codes.get(segment).copied().unwrap_or(0);
        &self.coefficients[usize::from(code) % MOST_FILTERS] // in bounds
    }
}
