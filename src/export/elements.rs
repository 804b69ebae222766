//! The elements of a column, as they go into an Arrow buffer.

use super::field::Parts;
use super::packed::{self, Append};
use crate::arrow_type::stored_element;
use crate::le::u64_of;
use crate::{DType, Error, Result};
use arrow_buffer::{BooleanBufferBuilder, Buffer, MutableBuffer, ToByteSlice};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};
use half::f16;
use std::num::NonZeroU64;

/// How elements change on their way.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Not at all.
    Copy,
    /// bf16 to f32.
    Widen,
    /// bf16, f16 or f32 to a wider type, of values that were rounded from it.
    Unround(fn(&[u8], &mut MutableBuffer)),
    /// i64 to i32.
    Narrow,
    /// A byte to a bit.
    Pack,
    /// The values of a decimal or an interval to one of these.
    Convert(Append),
}

/// The elements of an array that grows.
pub(super) struct ElementsBuilder {
    data_type: DataType,
    change: Change,
    source_width: usize,
    count: usize,
    bytes: MutableBuffer,
    bits: BooleanBufferBuilder,
}

impl ElementsBuilder {
    /// Makes the elements of a column of type `source`, which become `data_type`.
    pub(super) fn new(source: DType, data_type: DataType, parts: Parts) -> Self {
        let change = match (source, &data_type) {
            (DType::Bf16, DataType::Float64) => {
                Change::Unround(|from, to| unround(from, to, |b| f64::from(widened(b))))
            }
            (DType::Bf16, _) => Change::Widen,
            (DType::F16, DataType::Float32) => {
                Change::Unround(|from, to| unround(from, to, |b| f16::from_ne_bytes(b).to_f32()))
            }
            (DType::F16, DataType::Float64) => {
                Change::Unround(|from, to| unround(from, to, |b| f16::from_ne_bytes(b).to_f64()))
            }
            (DType::F32, DataType::Float64) => {
                Change::Unround(|from, to| unround(from, to, |b| f64::from(f32::from_ne_bytes(b))))
            }
            (DType::Bool, _) => Change::Pack,
            (DType::I64, DataType::Date32 | DataType::Time32(_)) => Change::Narrow,
            (_, data_type) => packed::appender(source, data_type, parts).map_or(Change::Copy, Change::Convert),
        };
        let source_width = source_bytes(source, &data_type);
        Self {
            data_type,
            change,
            source_width,
            count: 0,
            bytes: MutableBuffer::new(0),
            bits: BooleanBufferBuilder::new(0),
        }
    }

    /// Appends elements, given as bytes in memory order.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        match self.change {
            Change::Copy => self.bytes.extend_from_slice(bytes),
            Change::Widen => self.append_widened(bytes),
            Change::Unround(unround) => unround(bytes, &mut self.bytes),
            Change::Narrow => self.append_narrowed(bytes)?,
            Change::Pack => self.append_packed(bytes)?,
            Change::Convert(append) => append(bytes, &mut self.bytes, &self.data_type)?,
        }
        // at least 1; they are in memory, so the sum fits
        self.count += bytes.len() / self.source_width;
        Ok(())
    }

    /// Keeps all bits of each value, also those of a NaN.
    fn append_widened(&mut self, bytes: &[u8]) {
        self.bytes.reserve(bytes.len().saturating_mul(2));
        for value in bytes.as_chunks::<2>().0 {
            self.bytes.extend_from_slice(&widened(*value).to_ne_bytes());
        }
    }

    fn append_narrowed(&mut self, bytes: &[u8]) -> Result<()> {
        for value in bytes.as_chunks::<8>().0 {
            let value = i64::from_ne_bytes(*value);
            let narrow = i32::try_from(value).map_err(|_| {
                Error::over_limit(format!("the value {value} does not fit into {}, which has 32 bits", self.data_type))
            })?;
            self.bytes.extend_from_slice(&narrow.to_ne_bytes());
        }
        Ok(())
    }

    fn append_packed(&mut self, bytes: &[u8]) -> Result<()> {
        for &byte in bytes {
            if byte > 1 {
                return Err(Error::corrupt("R-4.9", "a bool is neither 0 nor 1"));
            }
            self.bits.append(byte == 1);
        }
        Ok(())
    }

    /// Returns the elements and their number, and empties the buffer.
    pub(super) fn take(&mut self) -> (Buffer, usize) {
        let bytes = std::mem::replace(&mut self.bytes, MutableBuffer::new(0));
        let count = std::mem::take(&mut self.count);
        match self.change {
            Change::Pack => (self.bits.finish().into_inner(), count),
            _ => (bytes.into(), count),
        }
    }

    /// Returns the elements as an array without nulls, and empties the buffer.
    pub(super) fn take_array(&mut self) -> std::result::Result<ArrayData, ArrowError> {
        let (buffer, count) = self.take();
        ArrayData::builder(self.data_type.clone()).len(count).add_buffer(buffer).build()
    }
}

/// bf16 is the upper half of an f32.
fn widened(value: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_ne_bytes(value)) << 16)
}

fn unround<const N: usize, T: ToByteSlice>(from: &[u8], to: &mut MutableBuffer, widen: impl Fn([u8; N]) -> T) {
    for value in from.as_chunks::<N>().0 {
        to.extend_from_slice(widen(*value).to_byte_slice());
    }
}

/// Returns the number of stored values that one element is made of.
pub(super) fn values_per_element(data_type: &DataType) -> NonZeroU64 {
    let extent = stored_element(data_type).and_then(|stored| stored.extent);
    extent.and_then(|extent| NonZeroU64::new(extent.into())).unwrap_or(NonZeroU64::MIN)
}

/// Returns the bytes of the values that one element is made of.
pub(super) fn source_bytes(dtype: DType, data_type: &DataType) -> usize {
    let values = usize::try_from(values_per_element(data_type).get()).unwrap_or(1); // at most 32
    dtype.element_bytes().saturating_mul(values)
}

/// Returns the bytes of one element after its change, at most.
pub(super) fn exported_bytes(dtype: DType, data_type: &DataType) -> u64 {
    if stored_element(data_type).is_some() {
        return data_type.primitive_width().map_or(0, u64_of);
    }
    match dtype {
        DType::Bf16 => 4,
        dtype => u64_of(dtype.element_bytes()),
    }
}
