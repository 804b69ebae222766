//! Multiples: integers that have a common factor, or are near each other.

use super::faults::{cut, malformed, number_width};
use super::quotient::integer;
use crate::Result;
use crate::kernel::Width;
use crate::le::{Fields, structure};

structure! {
    /// Chapter 5.14: the fields of a multiple.
    mod fields: 12 bytes {
        0 => NUMBER_BYTES: u8,
        1 => RESERVED: [u8; 3],
        4 => FACTOR: u64,
    }
}

/// Elements `base + k * factor`, where `k` is a number and `base` is that of its block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::codec) struct Multiple {
    pub number_width: Width,
    pub factor: u64,
}

impl Multiple {
    /// Parses the fields.
    pub(super) fn parse(width: Width, rest: &mut Fields<'_>) -> Result<Self> {
        let bytes = rest.array().ok_or_else(cut)?;
        let number_width = number_width(fields::NUMBER_BYTES.get(&bytes), width.bytes())?;
        let factor = fields::FACTOR.get(&bytes);
        if factor == 0 || fields::RESERVED.get(&bytes) != [0; 3] {
            return Err(malformed("a factor of 0, or a reserved byte"));
        }
        Ok(Self { number_width, factor })
    }

    pub(super) fn write(&self, tables: &mut Vec<u8>) {
        let mut bytes = [0; fields::SIZE];
        fields::NUMBER_BYTES.put(&mut bytes, self.number_width as u8); // exact: the discriminants
        fields::FACTOR.put(&mut bytes, self.factor);
        tables.extend(bytes);
    }

    pub(super) fn describe(&self) -> String {
        format!("multiples of {}, from a base for each block", self.factor)
    }

    /// Sets `out` to the elements of numbers.
    pub(super) fn elements(&self, width: Width, numbers: &[u8], base: i64, out: &mut [u8]) {
        match self.number_width {
            Width::W1 => self.of_numbers::<1>(width, numbers, base, out),
            Width::W2 => self.of_numbers::<2>(width, numbers, base, out),
            Width::W4 => self.of_numbers::<4>(width, numbers, base, out),
            Width::W8 => self.of_numbers::<8>(width, numbers, base, out),
        }
    }

    fn of_numbers<const V: usize>(&self, width: Width, numbers: &[u8], base: i64, out: &mut [u8]) {
        let numbers = numbers.as_chunks::<V>().0;
        match width {
            Width::W1 => self.fill::<V, 1>(numbers, base, out),
            Width::W2 => self.fill::<V, 2>(numbers, base, out),
            Width::W4 => self.fill::<V, 4>(numbers, base, out),
            Width::W8 => self.fill::<V, 8>(numbers, base, out),
        }
    }

    fn fill<const V: usize, const W: usize>(&self, numbers: &[[u8; V]], base: i64, out: &mut [u8]) {
        let factor = self.factor.cast_signed();
        for (out, &k) in out.as_chunks_mut::<W>().0.iter_mut().zip(numbers) {
            let element = base.wrapping_add(integer(k).wrapping_mul(factor)).to_le_bytes();
            out.iter_mut().zip(element).for_each(|(to, from)| *to = from); // the lower bytes
        }
    }
}
