//! Outliers (chapter 5.15): coded integers with bits above the window.
//!
//! A window is the two bytes of an integer that bins code; the bytes below are stored as they are.
//! If a few integers are much longer than the others, the window lies where the others are, and the
//! bits above it are stored beside the positions of those few.
//!
//! Writers estimate the bits of each position of the window from the bit lengths of all integers.

use super::marks::{BitReader, BitWriter, Marks, PlannedMarks, RiceParameters};
use crate::Result;
use crate::codec::bins::{cut, malformed_marks, malformed_option};
use crate::codec::bits::ends_in_zeros;
use crate::codec::choice::{Idea, Search};
use crate::kernel::Width;
use crate::le::Fields;

/// Chapter 5.15: the fields of *outliers*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outliers {
    /// Bits of each outlier above the window.
    pub upper_bits: u8,
    pub(in crate::codec::bins) parameters: RiceParameters,
}

/// The most bits of a number that are above a window.
const MOST_UPPER_BITS: u8 = 48;

impl Outliers {
    /// Parses the fields: of them, but for the greatest `upper_bits` of the numbers.
    pub(super) fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        let [upper_bits] = fields.array().ok_or_else(cut)?;
        let parameters = RiceParameters::parse(fields)?;
        match (1..=MOST_UPPER_BITS).contains(&upper_bits) {
            true => Ok(Self { upper_bits, parameters }),
            false => Err(malformed_option(&format!("upper_bits is {upper_bits}"))),
        }
    }

    pub(super) fn write(&self, tables: &mut Vec<u8>) {
        tables.push(self.upper_bits);
        self.parameters.write(tables);
    }

    /// Splits the outliers of a block of `count` integers from the bytes after them.
    pub(crate) fn split<'a>(&self, count: usize, stored: &'a [u8], marks: &'a mut Marks) -> Result<OutlierBlock<'a>> {
        let after_marks = marks.read(self.parameters, count, stored)?;
        // fewer than 2^16 outliers of at most 48 bits
        let bits = marks.marked() * usize::from(self.upper_bits);
        let split = after_marks.split_at_checked(bits.div_ceil(8));
        let (uppers, bins) = split.ok_or_else(|| malformed_marks("it ends within its uppers"))?;
        if !ends_in_zeros(uppers, bits) {
            return Err(malformed_marks("bits that fill up the uppers are not zero"));
        }
        Ok(OutlierBlock { upper_bits: self.upper_bits, marks, uppers, bins })
    }
}

pub(crate) struct OutlierBlock<'a> {
    upper_bits: u8,
    marks: &'a Marks,
    uppers: &'a [u8],
    /// The bytes after them.
    pub bins: &'a [u8],
}

impl OutlierBlock<'_> {
    /// Adds the bits above the window to the first integers of the block.
    pub(crate) fn add(&self, width: Width, low_bytes: usize, integers: &mut [u8]) {
        match width {
            Width::W1 | Width::W2 => {} // have none
            Width::W4 => self.add_to::<4>(low_bytes, integers),
            Width::W8 => self.add_to::<8>(low_bytes, integers),
        }
    }

    fn add_to<const W: usize>(&self, low_bytes: usize, integers: &mut [u8]) {
        let integers = integers.as_chunks_mut::<W>().0;
        let mut uppers = BitReader::new(self.uppers);
        for i in self.marks.stretches().flatten() {
            let Some(integer) = integers.get_mut(i) else { return };
            let upper = uppers.take(self.upper_bits).to_le_bytes();
            integer.iter_mut().skip(low_bytes + 2).zip(upper).for_each(|(to, upper)| *to |= upper);
        }
    }
}

const WINDOW_BITS: usize = 16;
/// About what the position of an outlier takes, besides the logarithm of how rare it is.
const MARK_BITS: f64 = 2.0;
/// Bits of an integer below its highest one that its bin tells, about.
const BIN_TELLS: usize = 2;

/// Returns the bytes below the window with which integers take the fewest bits, and that number,
/// without what bins take. `counts` are the integers of each bit length.
pub(crate) fn low_bytes_of(counts: &[u32], search: Search) -> (usize, f64) {
    let longest = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
    let most = longest.saturating_sub(WINDOW_BITS).div_ceil(8);
    let bits = |low_bytes: usize| {
        let top = 8 * low_bytes + WINDOW_BITS;
        let offset = |length: usize| length.saturating_sub(1 + BIN_TELLS).max(8 * low_bytes) as f64;
        let offsets: f64 = counts.iter().enumerate().map(|(length, &count)| offset(length) * f64::from(count)).sum();
        let all: f64 = counts.iter().map(|&count| f64::from(count)).sum();
        let outliers: f64 = counts.iter().skip(top + 1).map(|&count| f64::from(count)).sum();
        let marks = if outliers > 0.0 { outliers * ((all / outliers).log2() + MARK_BITS) } else { 0.0 };
        // the bits above the window are of the longest
        let uppers = outliers * longest.saturating_sub(top) as f64;
        let beside: f64 =
            counts.iter().enumerate().skip(top + 1).map(|(length, &n)| (length - top) as f64 * f64::from(n)).sum();
        (low_bytes, offsets - beside + marks + uppers)
    };
    let least = if search.has(Idea::Outliers) { 0 } else { most };
    (least..=most).map(bits).min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((most, 0.0))
}

/// The outliers of a part, in memory that is reused.
#[derive(Default)]
pub(crate) struct OutlierPlan {
    /// `None` if there are none; the rest has no meaning then.
    pub outliers: Option<Outliers>,
    marks: PlannedMarks,
    /// The bits of each outlier above the window.
    uppers: Vec<u64>,
    /// The number of outliers up to the end of each block.
    ends: Vec<usize>,
}

impl OutlierPlan {
    pub(crate) fn clear(&mut self) {
        self.outliers = None;
        self.marks.clear();
        self.uppers.clear();
        self.ends.clear();
    }

    /// Adds a block of `count` elements, with the bits of each above the window.
    pub(crate) fn add_block(&mut self, count: usize, upper: impl Fn(usize) -> u64) {
        for (i, upper) in (0..count).map(|i| (i, upper(i))).filter(|(_, upper)| *upper != 0) {
            self.uppers.push(upper);
            self.marks.mark(i..i + 1);
        }
        self.marks.end_block(count);
        self.ends.push(self.uppers.len());
    }

    /// Ends the plan, when all blocks have been added.
    pub(crate) fn finish(&mut self) {
        let all = self.uppers.iter().fold(0, |all, &upper| all | upper);
        let upper_bits = (u64::BITS - all.leading_zeros()) as u8; // at most 64
        let parameters = || RiceParameters::best(&self.marks);
        self.outliers = (upper_bits > 0).then(|| Outliers { upper_bits, parameters: parameters() });
    }

    /// Appends the outliers of a block, if the part has outliers.
    pub(crate) fn append(&self, block: usize, stored: &mut Vec<u8>) {
        let Some(outliers) = self.outliers else { return };
        self.marks.write(outliers.parameters, block, stored);
        let end = |block: usize| self.ends.get(block).copied().unwrap_or(0);
        let uppers = self.uppers.get(block.checked_sub(1).map_or(0, end)..end(block));
        let mut bits = BitWriter::new(stored);
        for &upper in uppers.unwrap_or(&[]) {
            bits.push(upper, outliers.upper_bits.into());
        }
        bits.finish();
    }
}
