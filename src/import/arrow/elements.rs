//! Converts the elements of arrays to the values that a file stores.
//!
//! Most Arrow buffers already hold these values, and are shared. Some types are converted: bools,
//! 32-bit dates, decimals (unscaled integers whose width depends only on the precision), intervals,
//! and integers whose declared type is narrower than their Parquet type. A value that cannot be
//! converted exactly is refused.
//!
//! An INT96 timestamp of Parquet has 8 bytes for the nanoseconds within a day, followed by 4 bytes
//! for the Julian day. Spark computes the microseconds since Julian day 0 in 64 bits, and then
//! splits them into a day and nanoseconds. After the year 287,564 the microseconds overflow and
//! wrap, so both day and nanoseconds are negative. Without wrapping, such an early day cannot
//! occur, because its microseconds since 1970 would not fit in 64 bits. So a wrapped value is
//! recognized, and the original value is recovered. The file `int96_from_spark.parquet` of Apache's
//! parquet-testing has an example.
//!
//! An interval of Parquet consists of months, days and milliseconds: three little-endian numbers of
//! 32 bits. Arrow's library writes signed numbers, and the embedded Arrow schema says which of the
//! three numbers are not used. If a file has no Arrow schema, the numbers are unsigned, and the
//! interval is stored as months, days and nanoseconds.

use super::types::element;
use crate::DType;
use crate::logical::arrow_type::{StoredElement, stored_element};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Int32Type, IntervalMonthDayNanoType,
};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{ArrowNativeType, Buffer, i256};
use arrow_schema::{DataType, IntervalUnit};
use std::result::Result;

/// The size in bytes of a Parquet INT96 timestamp, and of a Parquet interval.
pub(in crate::import) const INT96_BYTES: usize = 12;

/// The reason why an array cannot be stored, and the element at fault.
pub(super) struct Refusal {
    pub element: Option<usize>,
    pub message: String,
}

impl Refusal {
    /// Refuses an array whose type differs from the type of its field.
    pub(super) fn wrong_type(array: &ArrayRef) -> Self {
        let message = format!("a batch has elements of type {}, which contradicts its schema", array.data_type());
        Self { element: None, message }
    }
}

/// The elements of an array.
pub(super) enum Values {
    /// The elements in the form in which a file stores them.
    Plain(Buffer),
    /// Timestamps in nanoseconds since 1970. The unit in which they are stored depends on all
    /// timestamps of the column.
    Instants(Vec<i128>),
}

/// Returns all elements of an array in the form in which they are pushed.
pub(super) fn values(array: &ArrayRef, stored: StoredElement) -> Result<Values, Refusal> {
    let data_type = array.data_type();
    let dtype = stored.dtype;
    let plain = |width| plain_bytes(array, width).ok_or_else(|| Refusal::wrong_type(array));
    let bytes = match (data_type, dtype) {
        _ if data_type.is_decimal() => Buffer::from_vec(decimals(array, stored)?),
        (DataType::Interval(_), _) => intervals(array, stored)?,
        (DataType::Null, DType::Bool) => Buffer::from_vec(vec![0_u8; array.len()]),
        (DataType::Int32, DType::I8) => narrowed::<i8>(array, dtype)?,
        (DataType::Int32, DType::I16) => narrowed::<i16>(array, dtype)?,
        (DataType::Int32, DType::U8) => narrowed::<u8>(array, dtype)?,
        (DataType::Int32, small) if small.is_small() => narrowed::<u8>(array, dtype)?,
        (DataType::Int32, DType::U16) => narrowed::<u16>(array, dtype)?,
        (DataType::FixedSizeBinary(_), DType::I64) if stored.extent.is_none() => {
            return instants(array).map(Values::Instants);
        }
        (DataType::FixedSizeBinary(_), DType::I32 | DType::I64) => Buffer::from_vec(parquet_intervals(array, stored)?),
        (DataType::UInt16, DType::Bf16) if stored.extent.is_none() => plain(2)?,
        (DataType::UInt8, small) if small.is_small() => plain(1)?,
        _ if element(data_type) != Some(stored) => return Err(Refusal::wrong_type(array)),
        (DataType::Boolean, _) => {
            let bits = array.as_boolean().values();
            Buffer::from_vec(bits.iter().map(u8::from).collect::<Vec<u8>>())
        }
        (DataType::Date32 | DataType::Time32(_), _) => {
            let narrow = plain(4)?;
            let wide = narrow.as_chunks().0.iter().map(|bytes| i64::from(i32::from_ne_bytes(*bytes)));
            Buffer::from_vec(wide.collect::<Vec<i64>>())
        }
        _ => plain(dtype.element_bytes())?,
    };
    Ok(Values::Plain(bytes))
}

/// Returns the values of an array of fixed-width elements, without copying.
pub(super) fn plain_bytes(array: &ArrayRef, width: usize) -> Option<Buffer> {
    let data = array.to_data();
    let start = data.offset().checked_mul(width)?;
    let length = data.len().checked_mul(width)?;
    let buffer = data.buffers().first()?;
    buffer.get(start..start.checked_add(length)?)?; // fails if out of bounds
    Some(buffer.slice_with_length(start, length))
}

/// Converts each valid element with `convert`. Nulls become zero.
pub(super) fn converted<T: Clone + Default>(
    array: &dyn Array,
    convert: impl Fn(usize) -> Result<T, String>,
) -> Result<Vec<T>, Refusal> {
    let one = |i| {
        if array.is_null(i) {
            return Ok(T::default());
        }
        convert(i).map_err(|message| Refusal { element: Some(i), message })
    };
    (0..array.len()).map(one).collect()
}

/// Converts integers whose declared type is narrower than their Parquet type. Refuses a value that
/// does not fit the declared type.
fn narrowed<T: ArrowNativeType + TryFrom<i32>>(array: &ArrayRef, dtype: DType) -> Result<Buffer, Refusal> {
    let values = array.as_primitive::<Int32Type>().values();
    converted(array, |i| {
        let value = values.get(i).copied().unwrap_or(0); // `i` is inside the array
        T::try_from(value).map_err(|_| format!("value {value} does not fit the declared type {dtype}"))
    })
    .map(Buffer::from_vec)
}

pub(super) fn instants(array: &ArrayRef) -> Result<Vec<i128>, Refusal> {
    let values = array.as_fixed_size_binary_opt().ok_or_else(|| Refusal::wrong_type(array))?;
    converted(array, |i| {
        let value = values.value(i).try_into().map_err(|_| "an INT96 timestamp is not 12 bytes long".to_owned())?;
        Ok(nanoseconds(value))
    })
}

/// Returns all decimals in the form in which they are stored. Nulls become zero.
fn decimals(array: &ArrayRef, stored: StoredElement) -> Result<Vec<u8>, Refusal> {
    match array.data_type() {
        DataType::Decimal32(..) => decimals_of::<Decimal32Type>(array, stored),
        DataType::Decimal64(..) => decimals_of::<Decimal64Type>(array, stored),
        DataType::Decimal128(..) => decimals_of::<Decimal128Type>(array, stored),
        _ => decimals_of::<Decimal256Type>(array, stored),
    }
}

fn decimals_of<T: DecimalType>(array: &ArrayRef, stored: StoredElement) -> Result<Vec<u8>, Refusal>
where
    i256: From<T::Native>,
{
    let decimals = array.as_primitive_opt::<T>().ok_or_else(|| Refusal::wrong_type(array))?;
    let push = match (stored.dtype, stored.extent) {
        (DType::I32, None) => push_i32,
        (DType::I64, None) => push_i64,
        (DType::U8, Some(16)) => push_16_bytes,
        (DType::U8, Some(32)) => push_32_bytes,
        _ => return Err(Refusal::wrong_type(array)),
    };
    let mut bytes = Vec::new();
    for (i, value) in decimals.iter().enumerate() {
        let value = value.map_or(i256::ZERO, i256::from);
        push(value, &mut bytes).ok_or_else(|| Refusal { element: Some(i), message: too_large(array, value) })?;
    }
    Ok(bytes)
}

fn push_i32(value: i256, bytes: &mut Vec<u8>) -> Option<()> {
    bytes.extend_from_slice(&i32::try_from(value.to_i128()?).ok()?.to_ne_bytes());
    Some(())
}

fn push_i64(value: i256, bytes: &mut Vec<u8>) -> Option<()> {
    bytes.extend_from_slice(&i64::try_from(value.to_i128()?).ok()?.to_ne_bytes());
    Some(())
}

fn push_16_bytes(value: i256, bytes: &mut Vec<u8>) -> Option<()> {
    bytes.extend_from_slice(&value.to_i128()?.to_le_bytes());
    Some(())
}

fn push_32_bytes(value: i256, bytes: &mut Vec<u8>) -> Option<()> {
    bytes.extend_from_slice(&value.to_le_bytes());
    Some(())
}

#[cold]
fn too_large(array: &ArrayRef, value: i256) -> String {
    format!("unscaled value {value} does not fit the declared type {}", array.data_type())
}

/// Returns all intervals in the form in which they are stored.
fn intervals(array: &ArrayRef, stored: StoredElement) -> Result<Buffer, Refusal> {
    if stored_element(array.data_type()) != Some(stored) {
        return Err(Refusal::wrong_type(array));
    }
    let plain = |width| plain_bytes(array, width).ok_or_else(|| Refusal::wrong_type(array));
    match array.data_type() {
        DataType::Interval(IntervalUnit::YearMonth) => plain(4),
        DataType::Interval(IntervalUnit::DayTime) => plain(8), // days, then milliseconds
        _ => {
            let intervals = array.as_primitive_opt::<IntervalMonthDayNanoType>();
            let intervals = intervals.ok_or_else(|| Refusal::wrong_type(array))?.values().iter();
            let parts = intervals.flat_map(|x| [i64::from(x.months), i64::from(x.days), x.nanoseconds]);
            Ok(Buffer::from_vec(parts.collect::<Vec<i64>>()))
        }
    }
}

/// Returns all intervals of a Parquet array in the form in which they are stored.
fn parquet_intervals(array: &ArrayRef, stored: StoredElement) -> Result<Vec<u8>, Refusal> {
    let intervals = array.as_fixed_size_binary_opt().ok_or_else(|| Refusal::wrong_type(array))?;
    let numbers = |i| numbers(intervals.value(i));
    Ok(match (stored.dtype, stored.extent) {
        (DType::I32, None) => converted(array, |i| only_months(numbers(i)?))?.into_flattened(),
        (DType::I32, Some(2)) => converted(array, |i| without_months(numbers(i)?))?.into_flattened().into_flattened(),
        (DType::I64, Some(3)) => converted(array, |i| all_parts(numbers(i)?))?.into_flattened().into_flattened(),
        _ => return Err(Refusal::wrong_type(array)),
    })
}

fn numbers(bytes: &[u8]) -> Result<[u32; 3], String> {
    match bytes.as_chunks::<4>() {
        ([months, days, milliseconds], []) => Ok([*months, *days, *milliseconds].map(u32::from_le_bytes)),
        _ => Err(format!("an interval has {} bytes, expected {INT96_BYTES}", bytes.len())),
    }
}

fn only_months([months, days, milliseconds]: [u32; 3]) -> Result<[u8; 4], String> {
    if (days, milliseconds) != (0, 0) {
        return Err(format!(
            "an interval has {days} days and {milliseconds} ms, but the Arrow schema allows only months"
        ));
    }
    Ok(months.to_ne_bytes())
}

fn without_months([months, days, milliseconds]: [u32; 3]) -> Result<[[u8; 4]; 2], String> {
    if months != 0 {
        return Err(format!("an interval has {months} months, but the Arrow schema allows only days and milliseconds"));
    }
    Ok([days, milliseconds].map(u32::to_ne_bytes))
}

fn all_parts([months, days, milliseconds]: [u32; 3]) -> Result<[[u8; 8]; 3], String> {
    for (number, unit) in [(months, "months"), (days, "days")] {
        if i32::try_from(number).is_err() {
            return Err(format!("an interval has {number} {unit}, but Arrow's maximum is {}", i32::MAX));
        }
    }
    // no overflow: the product is below 2^52
    let parts = [months.into(), days.into(), i64::from(milliseconds) * 1_000_000];
    Ok(parts.map(i64::to_ne_bytes))
}

/// Converts an INT96 timestamp to nanoseconds since 1970.
fn nanoseconds(value: [u8; INT96_BYTES]) -> i128 {
    const JULIAN_DAY_OF_1970: i128 = 2_440_588;
    const DAY: i128 = 86_400_000_000_000;
    const SPARK_WRAPS_AT: i128 = 1_000 << 64;
    let [a, b, c, d, e, f, g, h, day @ ..] = value;
    let (day, in_day) = (i32::from_le_bytes(day), i64::from_le_bytes([a, b, c, d, e, f, g, h]));
    // no overflow: the magnitude is at most about 2^31 * 2^47
    let nanoseconds = (i128::from(day) - JULIAN_DAY_OF_1970) * DAY + i128::from(in_day);
    let has_wrapped = day < 0 && in_day <= 0 && nanoseconds < i128::from(i64::MIN) * 1_000;
    if has_wrapped { nanoseconds + SPARK_WRAPS_AT } else { nanoseconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_that_wrapped_are_unwrapped() {
        let value = |day: i32, in_day: i64| {
            let mut bytes = [0; INT96_BYTES];
            bytes[..8].copy_from_slice(&in_day.to_le_bytes());
            bytes[8..].copy_from_slice(&day.to_le_bytes());
            nanoseconds(bytes)
        };
        assert_eq!(value(2_440_588, 1), 1);
        assert_eq!(value(2_440_587, 0), -86_400_000_000_000);
        assert_eq!(value(2_440_588, -1_000), -1_000);
        assert_eq!(value(-105_862_232, -32_509_551_616_000), 9_089_380_393_200_000_000_000);
    }
}
