//! Quotients: integers, divided by a constant.

use super::faults::{cut, malformed, malformed_block, number_width};
use crate::codec::float_type::FloatType;
use crate::kernel::quotients::{NumberDetails, QuotientTerms};
use crate::kernel::{Width, extra_bits, quotients};
use crate::le::{Fields, structure, u64_of};
use crate::{Result, memory};
use std::ops::Range;

structure! {
    /// Chapter 5.14: the fields of a quotient.
    mod fields: 12 bytes {
        0 => NUMBER_BYTES: u8,
        1 => FLOAT_TYPE: u8,
        2 => DETAIL_BITS: u8,
        3 => RESERVED: u8,
        4 => DIVISOR: u32,
        8 => EXPONENT: [u8; 2],
        10 => RESERVED_END: [u8; 2],
    }
}

/// The most bits below a number.
pub(super) const MOST_DETAIL_BITS: u8 = 15;
/// The greatest divisor. An `f32` has it and all integers below.
const MOST_DIVISOR: u32 = 1 << 24;

/// Elements `N / (divisor * 2^exponent)`. `N` is a number, counted from the base of its block, and
/// the details below it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::codec) struct Quotient {
    pub number_width: Width,
    pub float_type: FloatType,
    /// The most bits of an integer that are below its number.
    pub detail_bits: u8,
    pub divisor: u32,
    pub exponent: i16,
}

impl Quotient {
    /// Parses the fields.
    pub(super) fn parse(width: Width, rest: &mut Fields<'_>) -> Result<Self> {
        let bytes = rest.array().ok_or_else(cut)?;
        let float_type = FloatType::from_code(fields::FLOAT_TYPE.get(&bytes)).filter(|known| known.width() == width);
        let quotient = Self {
            number_width: number_width(fields::NUMBER_BYTES.get(&bytes), width.bytes())?,
            float_type: float_type.ok_or_else(|| malformed("a float_type of other elements"))?,
            detail_bits: fields::DETAIL_BITS.get(&bytes),
            divisor: fields::DIVISOR.get(&bytes),
            exponent: i16::from_le_bytes(fields::EXPONENT.get(&bytes)),
        };
        let has_no_more = fields::RESERVED.get(&bytes) == 0 && fields::RESERVED_END.get(&bytes) == [0; 2];
        match quotient.is_valid() && has_no_more {
            true => Ok(quotient),
            false => Err(malformed("a field of a quotient is out of range")),
        }
    }

    /// Returns whether the fields are in range.
    pub(super) fn is_valid(&self) -> bool {
        let (most_bits, most_exponent) = if self.float_type == FloatType::F64 { (64, 1022) } else { (32, 126) };
        self.detail_bits <= MOST_DETAIL_BITS
            && 8 * self.number_width.bytes() + usize::from(self.detail_bits) <= most_bits
            && (1..=MOST_DIVISOR).contains(&self.divisor)
            && (self.divisor == 1 || self.detail_bits == 0)
            && self.exponent.unsigned_abs() <= most_exponent
    }

    pub(super) fn write(&self, tables: &mut Vec<u8>) {
        let mut bytes = [0; fields::SIZE];
        fields::NUMBER_BYTES.put(&mut bytes, self.number_width as u8); // exact: the discriminants
        fields::FLOAT_TYPE.put(&mut bytes, self.float_type.code());
        fields::DETAIL_BITS.put(&mut bytes, self.detail_bits);
        fields::DIVISOR.put(&mut bytes, self.divisor);
        fields::EXPONENT.put(&mut bytes, self.exponent.to_le_bytes());
        tables.extend(bytes);
    }

    pub(super) fn describe(&self) -> String {
        let details = match self.detail_bits {
            0 => String::new(),
            bits => format!(", up to {bits} bits of details"),
        };
        format!("numbers / ({} * 2^{}){details}", self.divisor, self.exponent)
    }

    /// Returns a number, counted from `base`, as far as there are bits for it.
    #[inline(always)]
    pub(super) fn sum(&self, base: i64, k: i64) -> i64 {
        let bits = if self.float_type == FloatType::F64 { 64 } else { 32 };
        let unused = 64 - bits + u32::from(self.detail_bits);
        base.wrapping_add(k) << unused >> unused
    }

    /// Returns the bits of details below a number, counted from 0.
    #[inline(always)]
    pub(super) fn details_of(&self, k: i64) -> u8 {
        let length = 64 - (k ^ (k >> 63)).leading_zeros();
        let below = self.float_type.precision().saturating_sub(length);
        below.min(self.detail_bits.into()) as u8 // at most 15
    }

    /// Returns the float of an integer, as its bits.
    #[inline(always)]
    pub(super) fn element(&self, n: i64) -> u64 {
        self.terms(0).element(n)
    }

    pub(super) fn terms(&self, base: i64) -> QuotientTerms {
        let Self { detail_bits, divisor, exponent, .. } = *self;
        QuotientTerms { format: self.float_type.format(), detail_bits, divisor, exponent, base }
    }

    /// Sets `out` to the elements of a range of a block. If there are details, numbers begin with
    /// the first of the block.
    pub(super) fn elements(
        &self,
        numbers: BlockNumbers<'_>,
        details: Option<DetailBits<'_>>,
        range: &Range<usize>,
        out: &mut [u8],
        scratch: &mut MappedScratch,
    ) -> Result<()> {
        let BlockNumbers { bytes: numbers, first, base } = numbers;
        if let Some(details) = details {
            self.read_details(numbers, base, details, scratch)?;
        }
        let skip = range.start.saturating_sub(first);
        let numbers = numbers.get(skip * self.number_width.bytes()..).unwrap_or(&[]);
        match details {
            None => quotients::best().divide(&self.terms(base), self.number_width, numbers, out),
            Some(_) => {
                let details = scratch.details_from(skip);
                quotients::best().join(&self.terms(base), self.number_width, numbers, details, out);
            }
        }
        Ok(())
    }

    /// Reads the details below numbers, to the scratch.
    fn read_details(
        &self,
        numbers: &[u8],
        base: i64,
        details: DetailBits<'_>,
        scratch: &mut MappedScratch,
    ) -> Result<()> {
        let MappedScratch { lengths, details: integers } = scratch;
        let count = numbers.len() / self.number_width.bytes();
        memory::resize(lengths, count, 0)?;
        memory::resize(integers, 2 * count, 0)?;
        quotients::best().detail_lengths(&self.terms(base), self.number_width, numbers, lengths);
        let bits = extra_bits::best().deposit(Width::W2, lengths, details.bits, 0, integers);
        details.check(u64_of(bits))
    }
}

/// Returns the power of two of an exponent of at most 1,022.
pub(super) fn power_of_two(exponent: i16) -> f64 {
    let biased = (1023 + exponent.clamp(-1022, 1022)).unsigned_abs(); // 1 to 2,045: normal
    f64::from_bits(u64::from(biased) << 52)
}

/// Memory for the details of a block.
#[derive(Default)]
pub(in crate::codec) struct MappedScratch {
    /// The bit lengths whose extra bits are details.
    lengths: Vec<u8>,
    /// The integers of which details are the extra bits, of two bytes each.
    details: Vec<u8>,
}

impl MappedScratch {
    /// Returns the details that were read, but for some.
    fn details_from(&self, skip: usize) -> NumberDetails<'_> {
        let integers = self.details.as_chunks().0;
        NumberDetails {
            integers: integers.get(skip..).unwrap_or(&[]),
            lengths: self.lengths.get(skip..).unwrap_or(&[]),
        }
    }
}

/// Some numbers of a block.
#[derive(Clone, Copy)]
pub(super) struct BlockNumbers<'a> {
    pub bytes: &'a [u8],
    /// The index of the first in the block.
    pub first: usize,
    /// The number that others count from.
    pub base: i64,
}

/// The details of a block.
#[derive(Clone, Copy)]
pub(super) struct DetailBits<'a> {
    pub bits: &'a [u8],
    /// Whether they are those of all numbers.
    pub is_all: bool,
}

impl DetailBits<'_> {
    /// Checks of details that have this many bits.
    fn check(&self, bits: u64) -> Result<()> {
        let bytes = usize::try_from(bits.div_ceil(8)).unwrap_or(usize::MAX);
        let fills_up = self.bits.last().is_none_or(|last| bits.is_multiple_of(8) || last >> (bits % 8) == 0);
        let is_right = if self.is_all { bytes == self.bits.len() && fills_up } else { bytes <= self.bits.len() };
        if is_right { Ok(()) } else { Err(malformed_block("detail_bytes, or bits that fill up the details")) }
    }
}

/// Returns a number of `V` bytes.
#[inline(always)]
pub(super) fn integer<const V: usize>(bytes: [u8; V]) -> i64 {
    let mut wide = [0; 8];
    wide.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    i64::from_le_bytes(wide)
}
