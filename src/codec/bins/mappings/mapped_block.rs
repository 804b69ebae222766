//! The sections of a block before its bins, if there is a mapping: exceptions and details.

use super::faults::malformed_block;
use super::mapping::{Mapping, Widths};
use super::quotient::{BlockNumbers, DetailBits, MappedScratch};
use crate::Result;
use crate::codec::anatomy::Anatomy;
use crate::le::Fields;
use std::ops::Range;

/// Groups of details have this many numbers.
const GROUP: usize = 64;

/// A block whose sections are told apart. Without a mapping, it has nothing but numbers.
#[derive(Clone, Copy)]
pub(in crate::codec) struct MappedBlock<'a> {
    mapping: &'a Mapping,
    /// The number of elements.
    count: usize,
    /// All sections before the details.
    head: &'a [u8],
    /// The index of each exception.
    positions: &'a [[u8; 2]],
    /// The elements of exceptions.
    exceptions: &'a [u8],
    details: &'a [u8],
    /// The number that others count from; 0 unless the mapping has bases.
    base: i64,
    /// The block of numbers.
    pub numbers: &'a [u8],
}

impl<'a> MappedBlock<'a> {
    /// Splits a block of `count` elements: but for numbers and details.
    pub(in crate::codec) fn split(
        mapping: &'a Mapping,
        widths: Widths,
        count: usize,
        stored: &'a [u8],
    ) -> Result<Self> {
        let mut fields = Fields::new(stored);
        let mut split = || {
            if let Mapping::None = mapping {
                return Some(Self::without_mapping(mapping, count, stored));
            }
            let exception_count = usize::from(u16::from_le_bytes(fields.array()?));
            let base = if mapping.has_base() { i64::from_le_bytes(fields.array()?) } else { 0 };
            let detail_bytes = if mapping.has_details() { usize::try_from(fields.u32()?).ok()? } else { 0 };
            // below 2^16 exceptions of at most 8 bytes
            let positions = fields.bytes(2 * exception_count)?.as_chunks().0;
            let exceptions = fields.bytes(widths.element.bytes() * exception_count)?;
            let head = stored.get(..stored.len() - fields.remaining())?;
            let details = fields.bytes(detail_bytes)?;
            let numbers = fields.bytes(fields.remaining())?;
            Some(Self { mapping, count, head, positions, exceptions, details, base, numbers })
        };
        let block = split().ok_or_else(|| malformed_block("it ends within its exceptions or details"))?;
        let ascends = block.positions().is_sorted_by(|a, b| a < b);
        if !ascends || block.positions().next_back().is_some_and(|last| last >= count) {
            return Err(malformed_block("the positions of exceptions do not ascend to at most the last element"));
        }
        Ok(block)
    }

    fn without_mapping(mapping: &'a Mapping, count: usize, numbers: &'a [u8]) -> Self {
        Self { mapping, count, head: &[], positions: &[], exceptions: &[], details: &[], base: 0, numbers }
    }

    /// Adds the sections to a description.
    pub(in crate::codec) fn describe(&self, anatomy: &mut Anatomy) {
        let what = format!("{} elements that are stored as they are", self.positions.len());
        anatomy.add("exceptions", what, self.head);
        anatomy.add("details", "the bits of elements below their numbers", self.details);
    }

    fn positions(&self) -> impl DoubleEndedIterator<Item = usize> + 'a {
        self.positions.iter().map(|&position| u16::from_le_bytes(position).into())
    }

    /// Returns the numbers that the elements of a range follow from: those from the start of
    /// prediction on, which is given.
    pub(in crate::codec) fn numbers_for(&self, range: &Range<usize>, start: usize) -> Range<usize> {
        match self.mapping.has_details() {
            // details before the range tell where those of the range are, by groups
            true => 0..range.end.next_multiple_of(GROUP).min(self.count),
            false => start..range.end,
        }
    }

    /// Sets `out` to the elements of a range. `numbers` are those of
    /// [`numbers_for`](Self::numbers_for).
    pub(in crate::codec) fn elements(
        &self,
        widths: Widths,
        numbers: &[u8],
        from: usize,
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut MappedScratch,
    ) -> Result<()> {
        let w = widths.element.bytes();
        let v = widths.number.bytes();
        match self.mapping {
            Mapping::None => {}
            Mapping::Palette(palettes) => {
                let numbers = numbers.get((range.start - from) * v..).unwrap_or(&[]);
                palettes.elements(numbers, range.start, out)?;
            }
            Mapping::Multiple(multiple) => {
                let numbers = numbers.get((range.start - from) * v..).unwrap_or(&[]);
                multiple.elements(widths.element, numbers, self.base, out);
            }
            Mapping::Quotient(quotient) => {
                let is_all = from == 0 && numbers.len() == self.count * v;
                let details = self.mapping.has_details().then_some(DetailBits { bits: self.details, is_all });
                let numbers = BlockNumbers { bytes: numbers, first: from, base: self.base };
                quotient.elements(numbers, details, range, out, scratch)?;
            }
        }
        for (position, exception) in self.positions().zip(self.exceptions.chunks_exact(w)) {
            if let Some(i) = position.checked_sub(range.start).filter(|_| position < range.end)
                && let Some(to) = out.get_mut(i * w..(i + 1) * w)
            {
                to.copy_from_slice(exception); // equal lengths
            }
        }
        Ok(())
    }
}
