//! Converts the elements of a column and appends them to an Arrow buffer.
//!
//! Most elements are copied unchanged. Bools are packed to bits. Each other conversion has its own
//! function, which [`conversion`] selects: bf16 to f32, floats to the wider type from which they
//! were rounded, times to 32 bits, and decimals and intervals from their stored values.
//!
//! A decimal of 16 or 32 bytes can have more digits than its type allows. Arrow stores all bytes,
//! but Parquet stores only as many bytes as the digits of the type need, and would silently
//! truncate the value. In this case, an export to Parquet fails.

use super::field::Repetition;
use crate::bytes::le::u64_of;
use crate::logical::arrow_type::stored_element;
use crate::{DType, Error, Result};
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, Buffer, IntervalMonthDayNano, MutableBuffer, i256};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, IntervalUnit};
use half::f16;
use std::fmt::Display;
use std::num::NonZeroU64;

/// Converts elements to a type and appends them. The first argument has the bytes of their stored
/// values, in native byte order.
type Convert = fn(&[u8], &mut MutableBuffer, &DataType) -> Result<()>;

/// How elements are converted.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Copied unchanged.
    Copy,
    /// Packed from bytes to bits.
    Pack,
    Convert(Convert),
}

/// The elements of a growing array.
pub(super) struct ElementsBuilder {
    data_type: DataType,
    change: Change,
    source_width: usize,
    count: usize,
    bytes: MutableBuffer,
    bits: BooleanBufferBuilder,
}

impl ElementsBuilder {
    /// Creates a builder for elements of type `source` that become `data_type`.
    pub(super) fn new(source: DType, data_type: DataType, repetition: Repetition) -> Self {
        let change = match source {
            DType::Bool => Change::Pack,
            source => conversion(source, &data_type, repetition).map_or(Change::Copy, Change::Convert),
        };
        let source_width = source_bytes(source, &data_type);
        let (bytes, bits) = (MutableBuffer::new(0), BooleanBufferBuilder::new(0));
        Self { data_type, change, source_width, count: 0, bytes, bits }
    }

    /// Appends elements, given as bytes in native byte order.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        match self.change {
            Change::Copy => self.bytes.extend_from_slice(bytes),
            Change::Pack => self.append_packed(bytes)?,
            Change::Convert(convert) => convert(bytes, &mut self.bytes, &self.data_type)?,
        }
        // the width is at least 1; no overflow: the elements are in memory
        self.count += bytes.len() / self.source_width;
        Ok(())
    }

    fn append_packed(&mut self, bytes: &[u8]) -> Result<()> {
        for &byte in bytes {
            if byte > 1 {
                return Err(Error::corrupt("R-4.9", format!("a bool is {byte}, expected 0 or 1")));
            }
            self.bits.append(byte == 1);
        }
        Ok(())
    }

    /// Takes the elements and their number.
    pub(super) fn take(&mut self) -> (Buffer, usize) {
        let bytes = std::mem::replace(&mut self.bytes, MutableBuffer::new(0));
        let count = std::mem::take(&mut self.count);
        match self.change {
            Change::Pack => (self.bits.finish().into_inner(), count),
            _ => (bytes.into(), count),
        }
    }

    /// Takes the elements as an array without nulls.
    pub(super) fn take_array(&mut self) -> std::result::Result<ArrayData, ArrowError> {
        let (buffer, count) = self.take();
        ArrayData::builder(self.data_type.clone()).len(count).add_buffer(buffer).build()
    }
}

/// Returns the number of stored values per element.
pub(super) fn values_per_element(data_type: &DataType) -> NonZeroU64 {
    let extent = stored_element(data_type).and_then(|stored| stored.extent);
    extent.and_then(|extent| NonZeroU64::new(extent.into())).unwrap_or(NonZeroU64::MIN)
}

/// Returns the size, in bytes, of the stored values of one element.
pub(super) fn source_bytes(dtype: DType, data_type: &DataType) -> usize {
    let values = usize::try_from(values_per_element(data_type).get()).unwrap_or(1); // at most 32
    dtype.element_bytes().saturating_mul(values)
}

/// Returns an upper bound on the size, in bytes, of one exported element.
pub(super) fn exported_bytes(dtype: DType, data_type: &DataType) -> u64 {
    if stored_element(data_type).is_some() {
        return data_type.primitive_width().map_or(0, u64_of);
    }
    match dtype {
        DType::Bf16 => 4,
        dtype => u64_of(dtype.element_bytes()),
    }
}

/// Returns the conversion for elements that are stored as values of type `source`; `None` if their
/// bytes do not change.
fn conversion(source: DType, data_type: &DataType, repetition: Repetition) -> Option<Convert> {
    let is_parquet = repetition == Repetition::Optional;
    Some(match (source, data_type) {
        (DType::Bf16, DataType::Float64) => |from, to, _| append(from, to, |x| f64::from(bf16_to_f32(x))),
        (DType::Bf16, _) => |from, to, _| append(from, to, bf16_to_f32),
        (DType::F16, DataType::Float32) => |from, to, _| append(from, to, |x| f16::from_ne_bytes(x).to_f32()),
        (DType::F16, DataType::Float64) => |from, to, _| append(from, to, |x| f16::from_ne_bytes(x).to_f64()),
        (DType::F32, DataType::Float64) => |from, to, _| append(from, to, |x| f64::from(f32::from_ne_bytes(x))),
        (DType::I64, DataType::Date32 | DataType::Time32(_)) => append_narrowed,
        (_, DataType::Interval(IntervalUnit::MonthDayNano)) => append_intervals,
        (DType::I32, DataType::Decimal64(..)) => |from, to, _| append(from, to, |x| i64::from(i32::from_ne_bytes(x))),
        (DType::I32, DataType::Decimal128(..)) => |from, to, _| append(from, to, |x| i128::from(i32::from_ne_bytes(x))),
        (DType::I64, DataType::Decimal128(..)) => |from, to, _| append(from, to, |x| i128::from(i64::from_ne_bytes(x))),
        (_, DataType::Decimal128(..)) if is_parquet => append_checked_128,
        (_, DataType::Decimal128(..)) => |from, to, _| append(from, to, i128::from_le_bytes),
        (DType::I32, DataType::Decimal256(..)) => |from, to, _| append(from, to, |x| i256::from(i32::from_ne_bytes(x))),
        (DType::I64, DataType::Decimal256(..)) => |from, to, _| append(from, to, |x| i256::from(i64::from_ne_bytes(x))),
        (_, DataType::Decimal256(..=38, _)) if is_parquet => {
            |from, to, data_type| append_checked_256(from, to, data_type, |x| i256::from(i128::from_le_bytes(x)))
        }
        (_, DataType::Decimal256(..=38, _)) => |from, to, _| append(from, to, |x| i256::from(i128::from_le_bytes(x))),
        (_, DataType::Decimal256(..)) if is_parquet => {
            |from, to, data_type| append_checked_256(from, to, data_type, i256::from_le_bytes)
        }
        (_, DataType::Decimal256(..)) => |from, to, _| append(from, to, i256::from_le_bytes),
        _ => return None,
    })
}

/// Widens a bf16, which is the upper half of an f32. Keeps all bits, even of a NaN.
fn bf16_to_f32(value: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_ne_bytes(value)) << 16)
}

fn append<const N: usize, T: ArrowNativeType>(
    from: &[u8],
    to: &mut MutableBuffer,
    convert: impl Fn([u8; N]) -> T,
) -> Result<()> {
    from.as_chunks::<N>().0.iter().for_each(|bytes| to.push(convert(*bytes)));
    Ok(())
}

fn append_narrowed(from: &[u8], to: &mut MutableBuffer, data_type: &DataType) -> Result<()> {
    for value in from.as_chunks::<8>().0 {
        let value = i64::from_ne_bytes(*value);
        let narrow = i32::try_from(value)
            .map_err(|_| Error::over_limit(format!("the value {value} does not fit the 32 bits of {data_type}")))?;
        to.push(narrow);
    }
    Ok(())
}

fn append_checked_128(from: &[u8], to: &mut MutableBuffer, data_type: &DataType) -> Result<()> {
    let shift = 128 - parquet_bits(data_type, 128);
    append_checked(from, to, data_type, i128::from_le_bytes, |value| value << shift >> shift == value)
}

fn append_checked_256<const N: usize>(
    from: &[u8],
    to: &mut MutableBuffer,
    data_type: &DataType,
    convert: impl Fn([u8; N]) -> i256,
) -> Result<()> {
    // below 256: Parquet stores at least one byte
    let shift = u8::try_from(256 - parquet_bits(data_type, 256)).unwrap_or(0);
    append_checked(from, to, data_type, convert, |value| (value << shift) >> shift == value)
}

/// Returns the number of bits that Parquet stores of a decimal: the smallest multiple of 8 that
/// suffices for every number with the digits of the type, but at most `max_bits`.
fn parquet_bits(data_type: &DataType, max_bits: u32) -> u32 {
    let (DataType::Decimal128(digits, _) | DataType::Decimal256(digits, _)) = data_type else { return max_bits };
    // at most 849; no power of ten except 1 is a power of two, so rounding down and adding 1 yields
    // enough bits for the magnitude, and another bit holds the sign
    let bits = (f64::from(*digits) * std::f64::consts::LOG2_10) as u32 + 2;
    bits.next_multiple_of(8).min(max_bits)
}

fn append_checked<const N: usize, T: ArrowNativeType + Display>(
    from: &[u8],
    to: &mut MutableBuffer,
    data_type: &DataType,
    convert: impl Fn([u8; N]) -> T,
    fits: impl Fn(T) -> bool,
) -> Result<()> {
    for bytes in from.as_chunks::<N>().0 {
        let value = convert(*bytes);
        if !fits(value) {
            let message = format!(
                "{value} has too many digits for {data_type}, and Parquet would truncate it; export to an Arrow file, \
                 or skip the column"
            );
            return Err(Error::over_limit(message));
        }
        to.push(value);
    }
    Ok(())
}

fn append_intervals(from: &[u8], to: &mut MutableBuffer, _: &DataType) -> Result<()> {
    for interval in from.as_chunks::<8>().0.as_chunks::<3>().0 {
        let [months, days, nanoseconds] = interval.map(i64::from_ne_bytes);
        let part = |value: i64, unit: &str| {
            let message = || format!("an interval has {value} {unit}, but Arrow has only 32 bits for {unit}");
            i32::try_from(value).map_err(|_| Error::over_limit(message()))
        };
        to.push(IntervalMonthDayNano { months: part(months, "months")?, days: part(days, "days")?, nanoseconds });
    }
    Ok(())
}
