//! Any of the mappings, and the sections of a block before its bins that mappings have.
//!
//! A mapping makes elements of the numbers that bins code. Before the numbers, a block has its
//! base, the positions and bytes of its exceptions, and details: the bits of elements below their
//! numbers. Exceptions are elements that no number gives; they are put in place last.

use super::multiple::Multiple;
use super::palette::Palettes;
use super::quotient::{MappedScratch, Quotient};
use crate::Result;
use crate::codec::bins::malformed_mapped;
use crate::codec::part::Anatomy;
use crate::kernel::Width;
use crate::le::Fields;
use std::ops::Range;

/// How elements follow from the numbers that are coded.
#[derive(Clone, Default)]
pub(crate) enum Mapping {
    /// An element is coded itself.
    #[default]
    None,
    /// A number names a value in a table.
    Palette(Palettes),
    /// A number is divided by a constant.
    Quotient(Quotient),
    /// A number is multiplied by a constant.
    Multiple(Multiple),
}

// The values of `mapping`.
const NONE: u8 = 0;
const PALETTE: u8 = 1;
const QUOTIENT: u8 = 2;
const MULTIPLE: u8 = 3;

/// The bytes of elements, and those of the numbers that they follow from.
#[derive(Clone, Copy)]
pub(crate) struct Widths {
    pub element: Width,
    pub number: Width,
}

impl Mapping {
    pub(crate) fn kind(&self) -> u8 {
        match self {
            Self::None => NONE,
            Self::Palette(_) => PALETTE,
            Self::Quotient(_) => QUOTIENT,
            Self::Multiple(_) => MULTIPLE,
        }
    }

    pub(in crate::codec::bins) fn is_known(kind: u8) -> bool {
        kind <= MULTIPLE
    }

    /// Becomes the mapping of elements of `width` that `fields` state. Reuses its memory.
    pub(in crate::codec::bins) fn set(&mut self, kind: u8, width: Width, fields: &mut Fields<'_>) -> Result<()> {
        match kind {
            PALETTE => {
                let mut palettes = match std::mem::take(self) {
                    Self::Palette(palettes) => palettes,
                    _ => Palettes::default(),
                };
                palettes.set(width, fields)?;
                *self = Self::Palette(palettes);
            }
            QUOTIENT => *self = Self::Quotient(Quotient::parse(width, fields)?),
            MULTIPLE => *self = Self::Multiple(Multiple::parse(width, fields)?),
            _ => *self = Self::None,
        }
        Ok(())
    }

    pub(in crate::codec::bins) fn write(&self, tables: &mut Vec<u8>) {
        match self {
            Self::None => {}
            Self::Palette(palettes) => palettes.write(tables),
            Self::Quotient(quotient) => quotient.write(tables),
            Self::Multiple(multiple) => multiple.write(tables),
        }
    }

    /// Returns the bytes of elements of `width`, and of their numbers.
    pub(crate) fn widths(&self, width: Width) -> Widths {
        let number = match self {
            Self::None => width,
            Self::Palette(palettes) => palettes.number_width(),
            Self::Quotient(quotient) => quotient.number_width,
            Self::Multiple(multiple) => multiple.number_width,
        };
        Widths { element: width, number }
    }

    pub(crate) fn has_details(&self) -> bool {
        matches!(self, Self::Quotient(quotient) if quotient.detail_bits > 0)
    }

    /// Returns whether numbers, counted from 0, are the upper bits of elements of `width`, and as
    /// many as bytes have.
    pub(crate) fn keeps_sign(&self, width: Width) -> bool {
        match self {
            Self::Multiple(multiple) => {
                let dropped = 8 * width.bytes().saturating_sub(multiple.number_width.bytes());
                multiple.factor.trailing_zeros() as usize == dropped // at most 64
            }
            _ => false,
        }
    }

    /// Returns whether blocks have a base, from which their numbers count.
    pub(super) fn has_base(&self) -> bool {
        matches!(self, Self::Quotient(_) | Self::Multiple(_))
    }

    pub(crate) fn describe(&self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Palette(palettes) => Some(palettes.describe()),
            Self::Quotient(quotient) => Some(quotient.describe()),
            Self::Multiple(multiple) => Some(multiple.describe()),
        }
    }
}

/// Groups of details have this many numbers.
const GROUP: usize = 64;

/// A block whose sections are told apart. Without a mapping, it has nothing but numbers.
#[derive(Clone, Copy)]
pub(crate) struct MappedBlock<'a> {
    mapping: &'a Mapping,
    count: usize,
    /// All sections before the details.
    head: &'a [u8],
    /// The index of each exception.
    positions: &'a [[u8; 2]],
    exceptions: &'a [u8],
    details: &'a [u8],
    /// The number that others count from; 0 unless the mapping has bases.
    base: i64,
    /// The block of numbers.
    pub numbers: &'a [u8],
}

impl<'a> MappedBlock<'a> {
    /// Splits a block of `count` elements: but for numbers and details.
    pub(crate) fn split(mapping: &'a Mapping, widths: Widths, count: usize, stored: &'a [u8]) -> Result<Self> {
        let mut fields = Fields::new(stored);
        let mut split = || {
            if let Mapping::None = mapping {
                let (head, positions, exceptions, details): (&[u8], &[_], &[u8], &[u8]) = Default::default();
                return Some(Self { mapping, count, head, positions, exceptions, details, base: 0, numbers: stored });
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
        let block = split().ok_or_else(|| malformed_mapped("it ends within its exceptions or details"))?;
        let ascends = block.positions().is_sorted_by(|a, b| a < b);
        if !ascends || block.positions().next_back().is_some_and(|last| last >= count) {
            return Err(malformed_mapped("the positions of exceptions do not ascend to at most the last element"));
        }
        Ok(block)
    }

    pub(crate) fn describe(&self, anatomy: &mut Anatomy) {
        let what = format!("{} elements that are stored as they are", self.positions.len());
        anatomy.add("exceptions", what, self.head);
        anatomy.add("details", "the bits of elements below their numbers", self.details);
    }

    fn positions(&self) -> impl DoubleEndedIterator<Item = usize> + 'a {
        self.positions.iter().map(|&position| u16::from_le_bytes(position).into())
    }

    /// Returns the numbers that the elements of a range follow from: those from the start of
    /// prediction on, which is given.
    pub(crate) fn numbers_for(&self, range: &Range<usize>, start: usize) -> Range<usize> {
        match self.mapping.has_details() {
            // details are found by counting the ones before them, by groups
            true => 0..range.end.next_multiple_of(GROUP).min(self.count),
            false => start..range.end,
        }
    }

    /// Sets `out` to the elements of a range. [`numbers_for`](Self::numbers_for) tells which
    /// `numbers` it needs.
    pub(crate) fn elements(
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
        let of_range = numbers.get((range.start - from) * v..).unwrap_or(&[]);
        match self.mapping {
            Mapping::None => {}
            Mapping::Palette(palettes) => palettes.elements(of_range, range.start, out)?,
            Mapping::Multiple(multiple) => multiple.elements(widths.element, of_range, self.base, out),
            Mapping::Quotient(quotient) if quotient.detail_bits == 0 => quotient.divide(self.base, of_range, out),
            Mapping::Quotient(quotient) => {
                // `numbers_for` begins with the first of the block
                quotient.read_details(self.base, numbers, numbers.len() == self.count * v, self.details, scratch)?;
                quotient.join(self.base, range.start, of_range, scratch, out);
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
