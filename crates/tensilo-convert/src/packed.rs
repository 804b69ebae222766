//! Elements of 4 or 6 bits, packed as safetensors has them.
//!
//! The bits of a tensor are one sequence: element `i` has bits `i * bits` to `(i + 1) * bits - 1`,
//! and bit 0 of a byte comes first. Two elements of 4 bits share a byte, the first in its low half;
//! four of 6 bits take three bytes. A tensor ends with a whole byte.

use std::io::{self, Write};
use tensilo::DType;

/// Returns the bits of an element in packed formats, if it does not take whole bytes there.
pub(crate) fn packed_bits(dtype: DType) -> Option<u32> {
    Some(dtype.value_bits()).filter(|bits| dtype.is_small() && *bits < 8)
}

/// Returns `count` elements of `bits` bits, the first of which begins with bit `first_bit` of
/// `bytes`. What lies behind the bytes is zero.
pub(crate) fn unpack(bytes: &[u8], bits: u32, first_bit: u64, count: usize) -> Vec<u8> {
    let byte = |at: u64| usize::try_from(at).ok().and_then(|at| bytes.get(at)).copied().unwrap_or(0);
    let mask = u8::MAX >> (8 - bits.clamp(1, 8));
    let element = |i: usize| {
        // of bytes in memory, so that there are fewer than 2^64 bits
        let start = first_bit.saturating_add(u64::try_from(i).unwrap_or(u64::MAX).saturating_mul(bits.into()));
        let pair = u16::from_le_bytes([byte(start / 8), byte(start / 8 + 1)]);
        (pair >> (start % 8)).to_le_bytes()[0] & mask
    };
    (0..count).map(element).collect()
}

/// Packs the elements that are written to it, one in each byte.
pub(crate) struct Packer<W> {
    out: W,
    bits: u32,
    /// The bits that do not fill a byte yet, the first lowest, and their number, below 8.
    rest: u16,
    rest_bits: u32,
}

impl<W: Write> Packer<W> {
    pub(crate) fn new(out: W, bits: u32) -> Self {
        Self { out, bits, rest: 0, rest_bits: 0 }
    }
}

impl<W: Write> Write for Packer<W> {
    fn write(&mut self, elements: &[u8]) -> io::Result<usize> {
        let mut packed = Vec::with_capacity(elements.len());
        for &element in elements {
            self.rest |= u16::from(element) << self.rest_bits; // at most 8 bits above at most 7
            self.rest_bits += self.bits;
            if self.rest_bits >= 8 {
                packed.push(self.rest.to_le_bytes()[0]);
                self.rest >>= 8;
                self.rest_bits -= 8;
            }
        }
        self.out.write_all(&packed)?;
        Ok(elements.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_element_has_the_low_bits() {
        let mut packed = Vec::new();
        Packer::new(&mut packed, 4).write_all(&[0x1, 0xF, 0x0, 0x8]).unwrap();
        assert_eq!(packed, [0xF1, 0x80]);
        packed.clear();
        Packer::new(&mut packed, 6).write_all(&[0x3F, 0, 0x21, 0x10]).unwrap();
        assert_eq!(packed, [0b0011_1111, 0b0001_0000, 0b0100_0010]);
    }

    #[test]
    fn packed_elements_are_unpacked_from_any_of_them_on() {
        for bits in [4, 6] {
            let elements: Vec<u8> = (0..40_u32).map(|i| (i * 37 % (1 << bits)) as u8).collect();
            let mut packed = Vec::new();
            let mut packer = Packer::new(&mut packed, bits);
            // in pieces, as batches come
            elements.chunks(7).for_each(|piece| packer.write_all(piece).unwrap());
            assert_eq!(packed.len(), elements.len() * bits as usize / 8);
            for first in 0..elements.len() {
                let bit = first as u64 * u64::from(bits);
                let rest = unpack(&packed[bit as usize / 8..], bits, bit % 8, elements.len() - first);
                assert_eq!(rest, elements[first..], "{bits} bits, from {first}");
            }
        }
    }
}
