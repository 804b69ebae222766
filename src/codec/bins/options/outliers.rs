//! Outliers: coded integers with bits above the window.

use super::marks::{MarkReader, Marks, RiceParameters, malformed, malformed_block};
use crate::Result;
use crate::codec::bins::mappings::cut;
use crate::kernel::Width;
use crate::le::Fields;

/// Chapter 5.15: the fields of *outliers*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::codec) struct Outliers {
    /// Bits of each outlier above the window.
    pub upper_bits: u8,
    pub(super) parameters: RiceParameters,
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
            false => Err(malformed(&format!("upper_bits is {upper_bits}"))),
        }
    }

    pub(super) fn write(&self, tables: &mut Vec<u8>) {
        tables.push(self.upper_bits);
        self.parameters.write(tables);
    }

    /// Splits the outliers of a block of `count` integers from the bytes after them.
    pub(in crate::codec) fn split<'a>(
        &self,
        count: usize,
        stored: &'a [u8],
        marks: &'a mut Marks,
    ) -> Result<OutlierBlock<'a>> {
        let after_marks = marks.read(self.parameters, count, stored)?;
        // fewer than 2^16 outliers of at most 48 bits
        let bits = marks.marked() * usize::from(self.upper_bits);
        let split = after_marks.split_at_checked(bits.div_ceil(8));
        let (uppers, bins) = split.ok_or_else(|| malformed_block("it ends within its uppers"))?;
        let used = bits % 8;
        if used > 0 && uppers.last().is_some_and(|last| last >> used != 0) {
            return Err(malformed_block("bits that fill up the uppers are not zero"));
        }
        Ok(OutlierBlock { upper_bits: self.upper_bits, marks, uppers, bins })
    }
}

/// The outliers of a block.
pub(in crate::codec) struct OutlierBlock<'a> {
    upper_bits: u8,
    marks: &'a Marks,
    uppers: &'a [u8],
    /// The bytes after them.
    pub bins: &'a [u8],
}

impl OutlierBlock<'_> {
    /// Adds the bits above the window to the first integers of the block.
    pub(in crate::codec) fn add(&self, width: Width, low_bytes: usize, integers: &mut [u8]) {
        match width {
            Width::W1 | Width::W2 => {} // have none
            Width::W4 => self.add_to::<4>(low_bytes, integers),
            Width::W8 => self.add_to::<8>(low_bytes, integers),
        }
    }

    fn add_to<const W: usize>(&self, low_bytes: usize, integers: &mut [u8]) {
        let integers = integers.as_chunks_mut::<W>().0;
        let mut uppers = MarkReader::new(self.uppers);
        for i in self.marks.stretches().flatten() {
            let Some(integer) = integers.get_mut(i) else { return };
            let upper = uppers.take(self.upper_bits).to_le_bytes();
            integer.iter_mut().skip(low_bytes + 2).zip(upper).for_each(|(to, upper)| *to |= upper);
        }
    }
}
