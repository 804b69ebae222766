//! The numbers of a part, as writers make them.

use super::mapping::{Mapping, Widths};
use super::multiple::Multiple;
use super::palette::Palettes;
use super::quotient::Quotient;
use crate::codec::extra_bits::sum_extra_bits;
use crate::codec::geometry::Geometry;
use crate::kernel::quotients::NumberDetails;
use crate::kernel::{Width, extra_bits};
use crate::{Error, Result};
use std::ops::Range;

/// The numbers that others count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::codec) enum Bases {
    /// The least of each block: predicted numbers of a block begin near zero.
    OfBlocks,
    /// The least of the part: equal elements have equal numbers.
    OfPart,
    /// 0: the numbers are the upper bits of floats.
    Zero,
}

/// The numbers of a part, in memory that is reused.
#[derive(Default)]
pub(in crate::codec) struct Numbers {
    pub mapping: Mapping,
    /// The numbers, in the byte order of the file.
    pub bytes: Vec<u8>,
    /// The bytes that palettes take.
    palette_bytes: usize,
    /// The base of each block, if the mapping has bases.
    bases: Vec<i64>,
    /// The indices of exceptions.
    exceptions: Vec<usize>,
    /// The bit lengths whose extra bits are details; empty without details.
    lengths: Vec<u8>,
    /// The integers whose extra bits are details, of two bytes each.
    details: Vec<u8>,
    words: Vec<u64>,
    pub(super) quotient: QuotientScratch,
}

/// Memory that quotients need, with an entry for each element.
#[derive(Default)]
pub(super) struct QuotientScratch {
    /// The numbers, counted from 0.
    pub sums: Vec<i64>,
    /// The same as bytes: two's complement.
    pub wide: Vec<u8>,
    /// The elements that numbers and details give.
    pub decoded: Vec<u8>,
    /// Whether these are the ones that they are to give.
    pub is_right: Vec<bool>,
}

impl Numbers {
    /// Makes the numbers of elements in palettes, which are given for the elements of each block.
    pub(super) fn set_palettes(&mut self, palettes: Palettes, table_bytes: usize, numbers: impl FnOnce(&mut Vec<u8>)) {
        self.clear();
        self.palette_bytes = table_bytes;
        self.mapping = Mapping::Palette(palettes);
        numbers(&mut self.bytes);
    }

    /// Begins with the numbers of floats.
    pub(super) fn begin_quotient(&mut self, quotient: Quotient) {
        self.clear();
        self.mapping = Mapping::Quotient(quotient);
    }

    pub(super) fn push_base(&mut self, base: i64) {
        self.bases.push(base);
    }

    /// Returns the bit lengths and the integers of the details of `count` elements, to be set.
    pub(super) fn details_of_elements(&mut self, count: usize) -> (&mut [u8], &mut [[u8; 2]]) {
        self.lengths.resize(count, 0);
        self.details.resize(2 * count, 0);
        (&mut self.lengths, self.details.as_chunks_mut().0)
    }

    /// Returns the details of all elements; `None` if the mapping has none.
    pub(super) fn details_of_quotient(&self) -> Option<NumberDetails<'_>> {
        let integers = self.details.as_chunks().0;
        self.mapping.has_details().then_some(NumberDetails { integers, lengths: &self.lengths })
    }

    /// Makes an exception of element `i`, whose number has `bits` of details.
    pub(super) fn push_exception(&mut self, i: usize, bits: u8) {
        self.exceptions.push(i);
        if let (Some(length), Some(details)) = (self.lengths.get_mut(i), self.details.as_chunks_mut().0.get_mut(i)) {
            *length = bits + 1;
            *details = (1_u16 << bits).to_le_bytes();
        }
    }

    /// Makes the numbers of integers. With the base of the part, some may not fit: returns whether
    /// all do.
    pub(in crate::codec) fn set_multiple(
        &mut self,
        multiple: Multiple,
        bases: Bases,
        geometry: &Geometry<'_>,
        raw: &[u8],
    ) -> bool {
        self.clear();
        self.mapping = Mapping::Multiple(multiple);
        let (v, w) = (multiple.number_width.bytes(), geometry.element_bytes);
        let of_part = least(raw.chunks_exact(w.max(1)), w);
        let mut is_right = true;
        for (_, elements) in blocks(geometry, raw) {
            let base = match bases {
                Bases::OfBlocks => least(elements.clone(), w),
                Bases::OfPart => of_part,
                Bases::Zero => 0,
            };
            self.bases.push(base);
            for element in elements {
                let step = wide(element).wrapping_sub(base).cast_unsigned() & mask(w);
                let k = step.checked_div(multiple.factor).unwrap_or(0);
                is_right &= k <= mask(v) && k.wrapping_mul(multiple.factor) == step;
                self.bytes.extend(k.to_le_bytes().iter().take(v));
            }
        }
        is_right
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bases.clear();
        self.exceptions.clear();
        self.lengths.clear();
        self.details.clear();
    }

    /// Returns the bytes that the mapping takes besides the numbers. If the elements are a sample,
    /// one in `sampled_one_in` of all, the tables count for their share.
    pub(in crate::codec) fn other_bytes(&self, element_bytes: usize, sampled_one_in: usize) -> usize {
        let fields = match &self.mapping {
            Mapping::Palette(_) => self.palette_bytes,
            mapping => {
                let mut fields = Vec::new();
                mapping.write(&mut fields);
                fields.len()
            }
        };
        let details = usize::try_from(sum_extra_bits(&self.lengths) / 8).unwrap_or(usize::MAX);
        let exceptions = self.exceptions.len() * (2 + element_bytes);
        (fields / sampled_one_in.max(1) + 8 * self.bases.len() + exceptions).saturating_add(details)
    }

    /// Appends what a block, the one of some elements, has before its numbers.
    pub(in crate::codec) fn append_head(
        &mut self,
        widths: Widths,
        block: usize,
        elements: &Range<usize>,
        raw: &[u8],
        stored: &mut Vec<u8>,
    ) -> Result<()> {
        if let Mapping::None = self.mapping {
            return Ok(());
        }
        let start = self.exceptions.partition_point(|&i| i < elements.start);
        let end = self.exceptions.partition_point(|&i| i < elements.end);
        let exceptions = self.exceptions.get(start..end).unwrap_or(&[]);
        let short = |x: usize| u16::try_from(x).map_err(|_| not_mapped());
        stored.extend(short(exceptions.len())?.to_le_bytes());
        if self.mapping.has_base() {
            stored.extend(self.bases.get(block).ok_or_else(not_mapped)?.to_le_bytes());
        }
        let details_at = stored.len();
        if self.mapping.has_details() {
            stored.extend([0; 4]);
        }
        for i in exceptions {
            stored.extend(short(i - elements.start)?.to_le_bytes());
        }
        let w = widths.element.bytes();
        for i in exceptions {
            stored.extend_from_slice(raw.get(i * w..(i + 1) * w).ok_or_else(not_mapped)?);
        }
        if self.mapping.has_details() {
            let bytes = self.append_details(elements, stored)?;
            let field = stored.get_mut(details_at..).and_then(<[u8]>::first_chunk_mut).ok_or_else(not_mapped)?;
            *field = bytes.to_le_bytes();
        }
        Ok(())
    }

    /// Appends the details of a block. Returns their length.
    fn append_details(&mut self, elements: &Range<usize>, stored: &mut Vec<u8>) -> Result<u32> {
        let lengths = self.lengths.get(elements.clone()).ok_or_else(not_mapped)?;
        let details = self.details.get(2 * elements.start..2 * elements.end).ok_or_else(not_mapped)?;
        let bits = usize::try_from(sum_extra_bits(lengths)).map_err(|_| not_mapped())?;
        self.words.clear();
        self.words.resize(bits.div_ceil(64) + 1, 0);
        extra_bits::best().extract(Width::W2, lengths, details, &mut self.words, 0);
        let bytes = bits.div_ceil(8);
        stored.extend(self.words.iter().flat_map(|word| word.to_le_bytes()).take(bytes));
        u32::try_from(bytes).map_err(|_| not_mapped())
    }
}

#[cold]
fn not_mapped() -> Error {
    Error::internal("a block has elements that were not mapped")
}

/// Returns the range of each block, and its elements.
pub(super) fn blocks<'a>(
    geometry: &Geometry<'a>,
    raw: &'a [u8],
) -> impl Iterator<Item = (Range<usize>, std::slice::ChunksExact<'a, u8>)> {
    let w = geometry.element_bytes.max(1);
    geometry.block_ranges().map(move |block| {
        let elements = raw.get(block.start * w..block.end * w).unwrap_or(&[]);
        (block, elements.chunks_exact(w))
    })
}

/// Returns the elements of each block.
pub(super) fn blocks_of<'a, const W: usize>(
    geometry: &Geometry<'a>,
    raw: &'a [u8],
) -> impl Iterator<Item = &'a [[u8; W]]> {
    let elements = raw.as_chunks().0;
    geometry.block_ranges().map(|block| elements.get(block).unwrap_or(&[]))
}

/// Returns the bytes of an element as an integer.
pub(super) fn wide_of<const W: usize>(element: [u8; W]) -> i64 {
    let mut wide = [0; 8];
    wide.iter_mut().zip(element).for_each(|(to, from)| *to = from);
    i64::from_le_bytes(wide)
}

/// Returns the bytes of an element as an integer.
pub(super) fn wide(element: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide.iter_mut().zip(element).for_each(|(to, from)| *to = *from);
    i64::from_le_bytes(wide)
}

/// Returns the number whose lower bytes, as many as given, are those of `number`, in two's
/// complement.
pub(super) fn signed(number: i64, bytes: usize) -> i64 {
    let unused = 64 - 8 * bytes.clamp(1, 8);
    number << unused >> unused
}

/// Returns a mask of the lower bytes.
pub(super) fn mask(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes.clamp(1, 8))
}

/// Returns the element that the others of a block follow, modulo `256^w`, by the shortest way.
pub(super) fn least(elements: std::slice::ChunksExact<'_, u8>, w: usize) -> i64 {
    let first = elements.clone().next().map_or(0, wide);
    let steps = elements.map(|element| signed(wide(element).wrapping_sub(first), w));
    first.wrapping_add(steps.min().unwrap_or(0))
}
