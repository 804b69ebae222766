//! The elements of tensors: their Arrow types and arrays, their byte order, and packed elements of
//! 4 or 6 bits.
//!
//! Packed elements follow the layout of safetensors. The bits of a packed tensor are one sequence:
//! element `i` has bits `i * bits` to `(i + 1) * bits - 1`, and bit 0 of a byte comes first. Two
//! 4-bit elements share a byte, the first in its low half; four 6-bit elements occupy three bytes.
//! A tensor always fills whole bytes.

use std::io::{self, Write};
use tensilo::import::arrow::array::{ArrayData, ArrayRef, BooleanArray, make_array};
use tensilo::import::arrow::buffer::{BooleanBuffer, Buffer, MutableBuffer};
use tensilo::import::arrow::datatypes::{DataType, Field};
use tensilo::import::mark_dtype;
use tensilo::{DType, Error, Result};

/// Returns the Arrow field for elements of type `dtype`, which is not a string type. For complex
/// numbers, this is the field for their real and imaginary parts.
pub(crate) fn element_field(name: &str, dtype: DType, nullable: bool) -> Field {
    let data_type = match dtype {
        DType::Bf16 => return mark_dtype(Field::new(name, DataType::UInt16, nullable), dtype),
        DType::Complex64 => DataType::Float32,
        DType::F16 => DataType::Float16,
        DType::F32 => DataType::Float32,
        DType::F64 => DataType::Float64,
        DType::I8 => DataType::Int8,
        DType::I16 => DataType::Int16,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        DType::U16 => DataType::UInt16,
        DType::U32 => DataType::UInt32,
        DType::U64 => DataType::UInt64,
        DType::Bool => DataType::Boolean,
        small if small.is_small() => return mark_dtype(Field::new(name, DataType::UInt8, nullable), small),
        _ => DataType::UInt8,
    };
    Field::new(name, data_type, nullable)
}

/// Returns the size in bytes of the unit whose bytes are reversed to change the byte order: an
/// element, or the real or imaginary part of a complex number.
pub(crate) fn swap_width(dtype: DType) -> usize {
    if dtype == DType::Complex64 { 4 } else { dtype.element_bytes() }
}

/// Returns an array of elements, or of the real and imaginary parts of complex numbers. `bytes` are
/// in the byte order of this machine.
pub(crate) fn element_array(dtype: DType, bytes: MutableBuffer) -> Result<ArrayRef> {
    if dtype == DType::Bool {
        return bools(&bytes);
    }
    let count = bytes.len() / swap_width(dtype);
    let field = element_field("", dtype, false);
    let data = ArrayData::builder(field.data_type().clone()).len(count).add_buffer(Buffer::from(bytes)).build();
    data.map(make_array).map_err(|error| Error::bad_input(error.to_string()))
}

fn bools(bytes: &[u8]) -> Result<ArrayRef> {
    if let Some((i, value)) = bytes.iter().enumerate().find(|(_, byte)| **byte > 1) {
        return Err(Error::bad_input(format!("element {i} of a batch of bools is {value}, expected 0 or 1")));
    }
    let bits = BooleanBuffer::collect_bool(bytes.len(), |i| bytes.get(i) == Some(&1));
    Ok(std::sync::Arc::new(BooleanArray::new(bits, None)))
}

/// Reverses the bytes of each element of `width` bytes.
pub(crate) fn swap_bytes(width: usize, bytes: &mut [u8]) {
    if width > 1 {
        bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
}

/// Returns the number of bits of an element in packed formats, or `None` if it occupies whole
/// bytes.
pub(crate) fn packed_bits(dtype: DType) -> Option<u32> {
    Some(dtype.value_bits()).filter(|bits| dtype.is_small() && *bits < 8)
}

/// Returns `count` elements of `bits` bits, starting at bit `first_bit` of `bytes`. Bits beyond the
/// end are read as zero.
pub(crate) fn unpack(bytes: &[u8], bits: u32, first_bit: u64, count: usize) -> Vec<u8> {
    let byte = |at: u64| usize::try_from(at).ok().and_then(|at| bytes.get(at)).copied().unwrap_or(0);
    let mask = u8::MAX >> (8 - bits.clamp(1, 8));
    let element = |i: usize| {
        // the bytes are in memory, so they have fewer than 2^64 bits
        let start = first_bit.saturating_add(u64::try_from(i).unwrap_or(u64::MAX).saturating_mul(bits.into()));
        let pair = u16::from_le_bytes([byte(start / 8), byte(start / 8 + 1)]);
        (pair >> (start % 8)).to_le_bytes()[0] & mask
    };
    (0..count).map(element).collect()
}

/// Packs the elements that are written to it. Each written byte is one element.
pub(crate) struct Packer<W> {
    out: W,
    bits: u32,
    /// The bits that do not fill a byte yet, lowest first. `rest_bits` is their number, at most 7.
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
            self.rest |= u16::from(element) << self.rest_bits; // fits: at most 8 + 7 bits
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
            // in chunks, as batches arrive
            elements.chunks(7).for_each(|chunk| packer.write_all(chunk).unwrap());
            assert_eq!(packed.len(), elements.len() * bits as usize / 8);
            for first in 0..elements.len() {
                let bit = first as u64 * u64::from(bits);
                let rest = unpack(&packed[bit as usize / 8..], bits, bit % 8, elements.len() - first);
                assert_eq!(rest, elements[first..], "{bits} bits, from {first}");
            }
        }
    }
}
