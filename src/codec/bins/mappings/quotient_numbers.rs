//! The numbers of floats, as writers make them.

use super::numbers::{Bases, Numbers, QuotientScratch, mask};
use super::quotient::{Quotient, power_of_two};
use crate::codec::float_type::FloatType;
use crate::codec::geometry::Geometry;
use crate::kernel::Width;
use crate::kernel::quotients;
use half::{bf16, f16};

/// A float whose lowest bit has the value 1. A number that is added to it is rounded to an integer,
/// which the lowest bits of the sum contain.
const ROUNDS: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52

impl Numbers {
    /// Makes the numbers of floats. Those that do not give their elements are exceptions.
    pub(in crate::codec) fn set_quotient(
        &mut self,
        quotient: Quotient,
        bases: Bases,
        geometry: &Geometry<'_>,
        raw: &[u8],
    ) {
        self.begin_quotient(quotient);
        let mut scratch = std::mem::take(&mut self.quotient);
        self.set_sums(&quotient, raw, &mut scratch);
        self.decode_sums(&quotient, raw.len(), &mut scratch);
        match quotient.float_type.width() {
            Width::W1 => compare::<1>(raw, &mut scratch),
            Width::W2 => compare::<2>(raw, &mut scratch),
            Width::W4 => compare::<4>(raw, &mut scratch),
            Width::W8 => compare::<8>(raw, &mut scratch),
        }
        let QuotientScratch { sums, is_right, .. } = &scratch;
        let least = |sums: &[i64], is_right: &[bool]| {
            sums.iter().zip(is_right).filter(|(_, is_right)| **is_right).map(|(sum, _)| *sum).min()
        };
        let of_part = least(sums, is_right).unwrap_or(0);
        for block in geometry.block_ranges() {
            let sums = sums.get(block.clone()).unwrap_or(&[]);
            let is_right = is_right.get(block.clone()).unwrap_or(&[]);
            let base = if bases == Bases::OfPart { of_part } else { least(sums, is_right).unwrap_or(0) };
            self.push_base(base);
            match quotient.number_width {
                Width::W1 => self.append_counted::<1>(&quotient, base, block.start, sums, is_right),
                Width::W2 => self.append_counted::<2>(&quotient, base, block.start, sums, is_right),
                Width::W4 => self.append_counted::<4>(&quotient, base, block.start, sums, is_right),
                Width::W8 => self.append_counted::<8>(&quotient, base, block.start, sums, is_right),
            }
        }
        self.quotient = scratch;
    }

    /// Sets the numbers, counted from 0, and their details.
    fn set_sums(&mut self, quotient: &Quotient, raw: &[u8], scratch: &mut QuotientScratch) {
        match quotient.float_type {
            FloatType::Bf16 => self.set_sums_of(quotient, raw, scratch, |x| bf16::from_le_bytes(x).into()),
            FloatType::F16 => self.set_sums_of(quotient, raw, scratch, |x| f16::from_le_bytes(x).into()),
            FloatType::F32 => self.set_sums_of(quotient, raw, scratch, |x| f32::from_le_bytes(x).into()),
            FloatType::F64 => self.set_sums_of(quotient, raw, scratch, f64::from_le_bytes),
        }
    }

    fn set_sums_of<const W: usize>(
        &mut self,
        quotient: &Quotient,
        raw: &[u8],
        scratch: &mut QuotientScratch,
        value: impl Fn([u8; W]) -> f64,
    ) {
        let (divisor, scale) = (f64::from(quotient.divisor), power_of_two(quotient.exponent));
        // a number that is too great gives some integer, whose element is another
        let integer = |x: f64| {
            let rounded = (x * divisor * scale + ROUNDS).to_bits();
            rounded.cast_signed().wrapping_sub(ROUNDS.to_bits().cast_signed())
        };
        let integers = raw.as_chunks().0.iter().map(|&element| integer(value(element)));
        scratch.sums.clear();
        scratch.sums.extend(integers);
        let detail_bits = quotient.detail_bits;
        if detail_bits == 0 {
            return;
        }
        let (lengths, details) = self.details_of_elements(scratch.sums.len());
        for ((sum, length), details) in scratch.sums.iter_mut().zip(lengths).zip(details) {
            let integer = *sum;
            *sum = integer >> detail_bits;
            let bits = quotient.details_of(*sum);
            let below = (integer & ((1 << detail_bits) - 1)) >> (detail_bits - bits);
            *length = bits + 1;
            *details = (1_u16 << bits | below as u16).to_le_bytes(); // exact: at most 15 bits
        }
    }

    /// Decodes the numbers.
    fn decode_sums(&self, quotient: &Quotient, raw_bytes: usize, scratch: &mut QuotientScratch) {
        let QuotientScratch { sums, wide, decoded, .. } = scratch;
        decoded.resize(raw_bytes, 0);
        let width = match quotient.float_type {
            FloatType::F64 => {
                wide.resize(8 * sums.len(), 0);
                let wide = wide.as_chunks_mut().0;
                wide.iter_mut().zip(sums).for_each(|(to, sum)| *to = sum.to_le_bytes());
                Width::W8
            }
            _ => {
                // the lower half, which is all that a number has
                wide.resize(4 * sums.len(), 0);
                let wide = wide.as_chunks_mut().0;
                wide.iter_mut().zip(sums).for_each(|(to, sum)| *to = (*sum as i32).to_le_bytes());
                Width::W4
            }
        };
        let terms = quotient.terms(0);
        match self.details_of_quotient() {
            Some(details) => quotients::best().join(&terms, width, wide, details, decoded),
            None => quotients::best().divide(&terms, width, wide, decoded),
        }
    }

    /// Appends the numbers of a block, of `V` bytes, counted from its base.
    fn append_counted<const V: usize>(
        &mut self,
        quotient: &Quotient,
        base: i64,
        start: usize,
        sums: &[i64],
        is_right: &[bool],
    ) {
        let mut bytes = std::mem::take(&mut self.bytes);
        let end = bytes.len();
        bytes.resize(end + V * sums.len(), 0);
        let numbers = bytes.get_mut(end..).unwrap_or(&mut []).as_chunks_mut::<V>().0;
        let mut last = 0;
        for (i, ((&sum, &is_right), number)) in (start..).zip(sums.iter().zip(is_right).zip(numbers)) {
            let k = sum.wrapping_sub(base);
            if is_right && k.cast_unsigned() <= mask(V) {
                last = k;
            } else {
                // the number of its neighbour costs the least
                let bits = quotient.details_of(quotient.sum(base, last));
                self.push_exception(i, bits);
            }
            number.iter_mut().zip(last.to_le_bytes()).for_each(|(to, byte)| *to = byte);
        }
        self.bytes = bytes;
    }
}

/// Sets whether each element of `W` bytes is the one that was decoded.
fn compare<const W: usize>(raw: &[u8], scratch: &mut QuotientScratch) {
    let both = raw.as_chunks::<W>().0.iter().zip(scratch.decoded.as_chunks::<W>().0);
    scratch.is_right.clear();
    scratch.is_right.extend(both.map(|(element, decoded)| element == decoded));
}

impl Quotient {
    /// Returns whether a number without details gives an element.
    pub(super) fn gives(&self, element: &[u8]) -> bool {
        let exact = self.float_type.value(element) * f64::from(self.divisor) * power_of_two(self.exponent);
        let number = exact.round() as i64; // one that is too great gives another element
        self.sum(0, number) == number && self.element(number).to_le_bytes().starts_with(element)
    }
}
