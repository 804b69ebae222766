//! Mappings (chapter 5.14): numbers, which bins code in place of elements that are coarser than
//! their type, such as prices stored as f64.
//!
//! This file has the code that all mappings share: how readers split a block, and how writers
//! compute the numbers of a part. `dictionaries.rs` and `multiples.rs` have the mappings
//! themselves: their fields, how they decode, and how writers find them.
//!
//! Before the numbers, a block has its base, the positions and bytes of its patches, and *details*:
//! low-order bits of elements, which the numbers do not contain. Patches are elements that no
//! number reproduces. They overwrite the decoded elements at their positions.
//!
//! Each mapping fills [`Numbers`] with a number for each element, the base of each block, and
//! patches. Numbers are never trusted. Writers decode float multiples with the kernel that readers
//! use, compare the result with the elements, and make a patch of every element that differs. So a
//! mapping that was found in a sample and does not fit the other elements costs space, but never
//! changes a value.

use super::dictionaries::{Dictionaries, DictionaryPlan};
use super::malformed_mapped;
use super::multiples::{FloatMultiple, IntMultiple, MappedScratch, min_base, power_of_two};
use crate::bytes::le::Fields;
use crate::codec::{
    bits::{append_extra_bits, mask, sum_extra_bits, wide, with_width},
    part::{Description, FloatType, Geometry},
};
use crate::kernel::{
    Width,
    float_multiples::{self, NumberDetails},
};
use crate::{Error, Result};
use half::{bf16, f16};
use std::ops::Range;

/// How elements are computed from the numbers that are coded.
#[derive(Clone, Default)]
pub(crate) enum Mapping {
    /// Elements are coded directly.
    #[default]
    None,
    /// A number is the index of a value.
    Dictionary(Dictionaries),
    /// An element is a number divided by a constant.
    FloatMultiple(FloatMultiple),
    /// An element is a number multiplied by a constant.
    IntMultiple(IntMultiple),
}

// The values of the field `mapping`.
const NONE: u8 = 0;
const DICTIONARY: u8 = 1;
const FLOAT_MULTIPLE: u8 = 2;
const INT_MULTIPLE: u8 = 3;

/// The widths of elements and of their numbers.
#[derive(Clone, Copy)]
pub(crate) struct Widths {
    pub element: Width,
    pub number: Width,
}

impl Mapping {
    pub(crate) fn kind(&self) -> u8 {
        match self {
            Self::None => NONE,
            Self::Dictionary(_) => DICTIONARY,
            Self::FloatMultiple(_) => FLOAT_MULTIPLE,
            Self::IntMultiple(_) => INT_MULTIPLE,
        }
    }

    pub(super) fn is_known(kind: u8) -> bool {
        kind <= INT_MULTIPLE
    }

    /// Parses a mapping of elements of `width` in place, and checks. Reuses the memory of
    /// the previous mapping.
    pub(super) fn set(&mut self, kind: u8, width: Width, fields: &mut Fields<'_>) -> Result<()> {
        match kind {
            DICTIONARY => {
                let mut dictionaries = match std::mem::take(self) {
                    Self::Dictionary(dictionaries) => dictionaries,
                    _ => Dictionaries::default(),
                };
                dictionaries.set(width, fields)?;
                *self = Self::Dictionary(dictionaries);
            }
            FLOAT_MULTIPLE => *self = Self::FloatMultiple(FloatMultiple::parse(width, fields)?),
            INT_MULTIPLE => *self = Self::IntMultiple(IntMultiple::parse(width, fields)?),
            _ => *self = Self::None,
        }
        Ok(())
    }

    pub(super) fn write(&self, tables: &mut Vec<u8>) {
        match self {
            Self::None => {}
            Self::Dictionary(dictionaries) => dictionaries.write(tables),
            Self::FloatMultiple(float_multiple) => float_multiple.write(tables),
            Self::IntMultiple(int_multiple) => int_multiple.write(tables),
        }
    }

    /// Returns the widths of elements of `width` and of their numbers.
    pub(crate) fn widths(&self, width: Width) -> Widths {
        let number = match self {
            Self::None => width,
            Self::Dictionary(dictionaries) => dictionaries.number_width(),
            Self::FloatMultiple(float_multiple) => float_multiple.number_width,
            Self::IntMultiple(int_multiple) => int_multiple.number_width,
        };
        Widths { element: width, number }
    }

    pub(crate) fn has_details(&self) -> bool {
        matches!(self, Self::FloatMultiple(float_multiple) if float_multiple.detail_bits > 0)
    }

    /// Returns whether numbers with a base of 0 are whole upper bytes of elements of `width`,
    /// including the sign.
    pub(crate) fn keeps_sign(&self, width: Width) -> bool {
        match self {
            Self::IntMultiple(int_multiple) => {
                let dropped = 8 * width.bytes().saturating_sub(int_multiple.number_width.bytes());
                int_multiple.factor.trailing_zeros() as usize == dropped // at most 64
            }
            _ => false,
        }
    }

    /// Returns whether blocks have a base, which is added to their numbers.
    pub(super) fn has_base(&self) -> bool {
        matches!(self, Self::FloatMultiple(_) | Self::IntMultiple(_))
    }

    pub(crate) fn describe(&self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Dictionary(dictionaries) => Some(dictionaries.describe()),
            Self::FloatMultiple(float_multiple) => Some(float_multiple.describe()),
            Self::IntMultiple(int_multiple) => Some(int_multiple.describe()),
        }
    }
}

/// The size of a group, in numbers. Details are located group by group.
const GROUP: usize = 64;

/// The sections of a block. Without a mapping, there are only numbers.
#[derive(Clone, Copy)]
pub(crate) struct MappedBlock<'a> {
    mapping: &'a Mapping,
    count: usize,
    /// All sections before the details.
    header: &'a [u8],
    /// The index of each patched element in the block.
    positions: &'a [[u8; 2]],
    patches: &'a [u8],
    details: &'a [u8],
    /// The base that is added to numbers; 0 if the mapping has no bases.
    base: i64,
    /// The block of numbers.
    pub numbers: &'a [u8],
}

impl<'a> MappedBlock<'a> {
    /// Splits a block of `count` elements, and checks except for numbers and details.
    pub(crate) fn split(mapping: &'a Mapping, widths: Widths, count: usize, stored: &'a [u8]) -> Result<Self> {
        let mut fields = Fields::new(stored);
        let mut split = || {
            if let Mapping::None = mapping {
                let (header, positions, patches, details): (&[u8], &[_], &[u8], &[u8]) = Default::default();
                return Some(Self { mapping, count, header, positions, patches, details, base: 0, numbers: stored });
            }
            let patch_count = usize::from(u16::from_le_bytes(fields.array()?));
            let base = if mapping.has_base() { i64::from_le_bytes(fields.array()?) } else { 0 };
            let detail_bytes = if mapping.has_details() { usize::try_from(fields.u32()?).ok()? } else { 0 };
            // no overflow: fewer than 2^16 patches of at most 8 bytes
            let positions = fields.bytes(2 * patch_count)?.as_chunks().0;
            let patches = fields.bytes(widths.element.bytes() * patch_count)?;
            let header = stored.get(..stored.len() - fields.remaining())?;
            let details = fields.bytes(detail_bytes)?;
            let numbers = fields.bytes(fields.remaining())?;
            Some(Self { mapping, count, header, positions, patches, details, base, numbers })
        };
        let block = split().ok_or_else(|| malformed_mapped("it ends within its patches or details"))?;
        let ascends = block.positions().is_sorted_by(|a, b| a < b);
        if !ascends || block.positions().next_back().is_some_and(|last| last >= count) {
            return Err(malformed_mapped("the positions of patches do not ascend, or lie beyond the last element"));
        }
        Ok(block)
    }

    pub(crate) fn describe(&self, description: &mut Description) {
        let what = format!("{} elements that are stored unchanged", self.positions.len());
        description.add("patches", what, self.header);
        description.add(
            "details",
            "low-order bits of the elements, which the integers after the mapping do not contain",
            self.details,
        );
    }

    fn positions(&self) -> impl DoubleEndedIterator<Item = usize> + 'a {
        self.positions.iter().map(|&position| u16::from_le_bytes(position).into())
    }

    /// Returns the range of numbers that are needed to decode a range of elements, if prediction
    /// restarts at `start`.
    pub(crate) fn numbers_for(&self, range: &Range<usize>, start: usize) -> Range<usize> {
        match self.mapping.has_details() {
            // to find details, the lengths of all details before them are added up, in whole groups
            true => 0..range.end.next_multiple_of(GROUP).min(self.count),
            false => start..range.end,
        }
    }

    /// Decodes the elements of a range to `out`. `numbers` are the numbers in the range that
    /// [`numbers_for`](Self::numbers_for) returns, which begins at `from`.
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
        let range_numbers = numbers.get((range.start - from) * v..).unwrap_or(&[]);
        match self.mapping {
            Mapping::None => {}
            Mapping::Dictionary(dictionaries) => dictionaries.elements(range_numbers, range.start, out)?,
            Mapping::IntMultiple(int_multiple) => int_multiple.elements(widths.element, range_numbers, self.base, out),
            Mapping::FloatMultiple(float_multiple) if float_multiple.detail_bits == 0 => {
                float_multiple.divide(self.base, range_numbers, out)
            }
            Mapping::FloatMultiple(float_multiple) => {
                // with details, `numbers_for` starts at the first number of the block
                float_multiple.read_details(
                    self.base,
                    numbers,
                    numbers.len() == self.count * v,
                    self.details,
                    scratch,
                )?;
                float_multiple.join(self.base, range.start, range_numbers, scratch, out);
            }
        }
        for (position, patch) in self.positions().zip(self.patches.chunks_exact(w)) {
            if let Some(i) = position.checked_sub(range.start).filter(|_| position < range.end)
                && let Some(to) = out.get_mut(i * w..(i + 1) * w)
            {
                to.copy_from_slice(patch); // equal lengths
            }
        }
        Ok(())
    }
}

// ---- the numbers of a part

/// The bases that are added to numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bases {
    /// The minimum of each block, so that the first numbers of a block, for which there is nothing
    /// to predict from, are small.
    PerBlock,
    /// The minimum of the part, so equal elements have equal numbers in all blocks.
    PerPart,
    /// 0, because the numbers are the upper bits of floats.
    Zero,
}

/// The numbers of a part, in memory that is reused.
#[derive(Default)]
pub(crate) struct Numbers {
    pub mapping: Mapping,
    /// The numbers, in the byte order of the file.
    pub bytes: Vec<u8>,
    /// The stored size of dictionaries.
    dictionary_bytes: usize,
    /// The base of each block, if the mapping has bases.
    bases: Vec<i64>,
    patches: Vec<usize>,
    /// The bit lengths of the integers in `details`; empty without details.
    lengths: Vec<u8>,
    /// For each element, a 2-byte integer whose extra bits are its details.
    details: Vec<u8>,
    words: Vec<u64>,
    float_multiple: FloatMultipleScratch,
}

/// Memory for float multiples, with an entry for each element.
#[derive(Default)]
struct FloatMultipleScratch {
    /// The numbers with a base of 0.
    sums: Vec<i64>,
    /// The same numbers as bytes, in two's complement.
    wide: Vec<u8>,
    /// The elements decoded from numbers and details.
    decoded: Vec<u8>,
    /// Whether each decoded element equals the original element.
    is_exact: Vec<bool>,
}

/// A float whose lowest bit has the value 1. Adding a number to it rounds the number to an integer,
/// which is in the lowest bits of the sum.
const ROUNDING_BIAS: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52

impl Numbers {
    fn begin(&mut self, mapping: Mapping) {
        self.mapping = mapping;
        self.bytes.clear();
        self.bases.clear();
        self.patches.clear();
        self.lengths.clear();
        self.details.clear();
    }

    pub(crate) fn set_dictionaries(&mut self, found: &DictionaryPlan, geometry: &Geometry<'_>, raw: &[u8]) {
        self.begin(Mapping::Dictionary(found.dictionaries.clone()));
        self.dictionary_bytes = found.bytes;
        found.append_numbers(geometry, raw, &mut self.bytes);
    }

    /// Computes the numbers of integer elements. Returns whether all numbers fit; with one base for
    /// the part, some can be too large.
    pub(crate) fn set_int_multiple(
        &mut self,
        int_multiple: IntMultiple,
        bases: Bases,
        geometry: &Geometry<'_>,
        raw: &[u8],
    ) -> bool {
        self.begin(Mapping::IntMultiple(int_multiple));
        let (v, w) = (int_multiple.number_width.bytes(), geometry.element_bytes.max(1));
        let part_base = min_base(raw, w);
        let mut is_exact = true;
        for block in geometry.blocks_of(raw) {
            let base = match bases {
                Bases::PerBlock => min_base(block, w),
                Bases::PerPart => part_base,
                Bases::Zero => 0,
            };
            self.bases.push(base);
            for element in block.chunks_exact(w) {
                let step = wide(element).wrapping_sub(base).cast_unsigned() & mask(w);
                let k = step.checked_div(int_multiple.factor).unwrap_or(0);
                is_exact &= k <= mask(v) && k.wrapping_mul(int_multiple.factor) == step;
                self.bytes.extend(k.to_le_bytes().iter().take(v));
            }
        }
        is_exact
    }

    /// Computes the numbers of floats. Elements that their numbers do not reproduce become patches.
    pub(crate) fn set_float_multiple(
        &mut self,
        float_multiple: FloatMultiple,
        bases: Bases,
        geometry: &Geometry<'_>,
        raw: &[u8],
    ) {
        self.begin(Mapping::FloatMultiple(float_multiple));
        let mut scratch = std::mem::take(&mut self.float_multiple);
        match float_multiple.float_type {
            FloatType::Bf16 => self.set_sums(&float_multiple, raw, &mut scratch, |x| bf16::from_le_bytes(x).into()),
            FloatType::F16 => self.set_sums(&float_multiple, raw, &mut scratch, |x| f16::from_le_bytes(x).into()),
            FloatType::F32 => self.set_sums(&float_multiple, raw, &mut scratch, |x| f32::from_le_bytes(x).into()),
            FloatType::F64 => self.set_sums(&float_multiple, raw, &mut scratch, f64::from_le_bytes),
        }
        self.decode_sums(&float_multiple, raw.len(), &mut scratch);
        with_width!(float_multiple.float_type.width(), W => compare::<W>(raw, &mut scratch));
        let FloatMultipleScratch { sums, is_exact, .. } = &scratch;
        let min_base = |sums: &[i64], is_exact: &[bool]| {
            sums.iter().zip(is_exact).filter(|(_, is_exact)| **is_exact).map(|(sum, _)| *sum).min()
        };
        let part_base = min_base(sums, is_exact).unwrap_or(0);
        for block in geometry.block_ranges() {
            let sums = sums.get(block.clone()).unwrap_or(&[]);
            let is_exact = is_exact.get(block.clone()).unwrap_or(&[]);
            let base = if bases == Bases::PerPart { part_base } else { min_base(sums, is_exact).unwrap_or(0) };
            self.bases.push(base);
            let start = block.start;
            with_width!(float_multiple.number_width, V => self.append_from_base::<V>(&float_multiple, base, start, sums, is_exact));
        }
        self.float_multiple = scratch;
    }

    /// Sets the numbers with a base of 0, and their details.
    fn set_sums<const W: usize>(
        &mut self,
        float_multiple: &FloatMultiple,
        raw: &[u8],
        scratch: &mut FloatMultipleScratch,
        value: impl Fn([u8; W]) -> f64,
    ) {
        let (divisor, scale) = (f64::from(float_multiple.divisor), power_of_two(float_multiple.exponent));
        // a number that is too large becomes an integer that decodes to a different element
        let integer = |x: f64| {
            let rounded = (x * divisor * scale + ROUNDING_BIAS).to_bits();
            rounded.cast_signed().wrapping_sub(ROUNDING_BIAS.to_bits().cast_signed())
        };
        let integers = raw.as_chunks().0.iter().map(|&element| integer(value(element)));
        scratch.sums.clear();
        scratch.sums.extend(integers);
        let detail_bits = float_multiple.detail_bits;
        if detail_bits == 0 {
            return;
        }
        self.lengths.resize(scratch.sums.len(), 0);
        self.details.resize(2 * scratch.sums.len(), 0);
        let details = self.lengths.iter_mut().zip(self.details.as_chunks_mut().0);
        for (sum, (length, details)) in scratch.sums.iter_mut().zip(details) {
            let integer = *sum;
            *sum = integer >> detail_bits;
            let bits = float_multiple.details_of(*sum);
            let below = (integer & ((1 << detail_bits) - 1)) >> (detail_bits - bits);
            *length = bits + 1;
            *details = (1_u16 << bits | below as u16).to_le_bytes(); // exact: at most 15 bits
        }
    }

    fn decode_sums(&self, float_multiple: &FloatMultiple, raw_bytes: usize, scratch: &mut FloatMultipleScratch) {
        let FloatMultipleScratch { sums, wide, decoded, .. } = scratch;
        decoded.resize(raw_bytes, 0);
        // only f64 needs more than the lower half of a number
        let width = if float_multiple.float_type == FloatType::F64 { Width::W8 } else { Width::W4 };
        wide.resize(width.bytes() * sums.len(), 0);
        match width {
            Width::W8 => wide.as_chunks_mut().0.iter_mut().zip(sums).for_each(|(to, sum)| *to = sum.to_le_bytes()),
            _ => wide.as_chunks_mut().0.iter_mut().zip(sums).for_each(|(to, sum)| *to = (*sum as i32).to_le_bytes()),
        }
        let terms = float_multiple.terms(0);
        match self.mapping.has_details() {
            true => {
                let details = NumberDetails { integers: self.details.as_chunks().0, lengths: &self.lengths };
                float_multiples::best().join(&terms, width, wide, details, decoded);
            }
            false => float_multiples::best().divide(&terms, width, wide, decoded),
        }
    }

    /// Appends the numbers of a block, with `V` bytes each. The base of the block is subtracted
    /// from them.
    fn append_from_base<const V: usize>(
        &mut self,
        float_multiple: &FloatMultiple,
        base: i64,
        start: usize,
        sums: &[i64],
        is_exact: &[bool],
    ) {
        let end = self.bytes.len();
        self.bytes.resize(end + V * sums.len(), 0);
        let numbers = self.bytes.get_mut(end..).unwrap_or(&mut []).as_chunks_mut::<V>().0;
        let details = self.details.as_chunks_mut().0;
        let mut last = 0;
        for (i, ((&sum, &is_exact), number)) in (start..).zip(sums.iter().zip(is_exact).zip(numbers)) {
            let k = sum.wrapping_sub(base);
            if is_exact && k.cast_unsigned() <= mask(V) {
                last = k;
            } else {
                // repeating the previous number costs the least
                self.patches.push(i);
                if let (Some(length), Some(details)) = (self.lengths.get_mut(i), details.get_mut(i)) {
                    let bits = float_multiple.details_of(float_multiple.sum(base, last));
                    *length = bits + 1;
                    *details = (1_u16 << bits).to_le_bytes();
                }
            }
            number.iter_mut().zip(last.to_le_bytes()).for_each(|(to, byte)| *to = byte);
        }
    }

    /// Returns the size of the mapping in bytes, without the numbers. If the elements are a sample
    /// that has one in `sample_scale` elements, only that share of the tables is included.
    pub(crate) fn other_bytes(&self, element_bytes: usize, sample_scale: usize) -> usize {
        let fields = match &self.mapping {
            Mapping::Dictionary(_) => self.dictionary_bytes,
            mapping => {
                let mut fields = Vec::new();
                mapping.write(&mut fields);
                fields.len()
            }
        };
        let details = usize::try_from(sum_extra_bits(&self.lengths) / 8).unwrap_or(usize::MAX);
        let patches = self.patches.len() * (2 + element_bytes);
        (fields / sample_scale.max(1) + 8 * self.bases.len() + patches).saturating_add(details)
    }

    /// Appends the sections that precede the numbers in the block of these elements.
    pub(crate) fn append_header(
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
        let start = self.patches.partition_point(|&i| i < elements.start);
        let end = self.patches.partition_point(|&i| i < elements.end);
        let patches = self.patches.get(start..end).unwrap_or(&[]);
        let short = |x: usize| u16::try_from(x).map_err(|_| not_mapped());
        stored.extend(short(patches.len())?.to_le_bytes());
        if self.mapping.has_base() {
            stored.extend(self.bases.get(block).ok_or_else(not_mapped)?.to_le_bytes());
        }
        let details_offset = stored.len();
        if self.mapping.has_details() {
            stored.extend([0; 4]);
        }
        for i in patches {
            stored.extend(short(i - elements.start)?.to_le_bytes());
        }
        let w = widths.element.bytes();
        for i in patches {
            stored.extend_from_slice(raw.get(i * w..(i + 1) * w).ok_or_else(not_mapped)?);
        }
        if self.mapping.has_details() {
            let lengths = self.lengths.get(elements.clone()).ok_or_else(not_mapped)?;
            let details = self.details.get(2 * elements.start..2 * elements.end).ok_or_else(not_mapped)?;
            let bytes = append_extra_bits(Width::W2, lengths, details, &mut self.words, stored);
            let field = stored.get_mut(details_offset..).and_then(<[u8]>::first_chunk_mut).ok_or_else(not_mapped)?;
            *field = u32::try_from(bytes).map_err(|_| not_mapped())?.to_le_bytes();
        }
        Ok(())
    }
}

#[cold]
fn not_mapped() -> Error {
    Error::internal("a block has elements that were not mapped")
}

/// Records for each `W`-byte element whether it was decoded exactly.
fn compare<const W: usize>(raw: &[u8], scratch: &mut FloatMultipleScratch) {
    let both = raw.as_chunks::<W>().0.iter().zip(scratch.decoded.as_chunks::<W>().0);
    scratch.is_exact.clear();
    scratch.is_exact.extend(both.map(|(element, decoded)| element == decoded));
}
