//! Intervals, from arrays to the values that are stored.

use super::fixed_width::{Refused, converted, plain_bytes};
use crate::DType;
use crate::arrow_type::{StoredElement, stored_element};
use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::IntervalMonthDayNanoType;
use arrow_buffer::Buffer;
use arrow_schema::{DataType, IntervalUnit};
use std::result::Result;

/// Bytes of an interval of Parquet.
pub(in crate::import) const BYTES: usize = 12;

/// Returns the bytes of all values.
pub(super) fn values(array: &ArrayRef, stored: StoredElement) -> Result<Buffer, Refused> {
    if stored_element(array.data_type()) != Some(stored) {
        return Err(Refused::denied(array));
    }
    let plain = |width| plain_bytes(array, width).ok_or_else(|| Refused::denied(array));
    match array.data_type() {
        DataType::Interval(IntervalUnit::YearMonth) => plain(4),
        DataType::Interval(IntervalUnit::DayTime) => plain(8), // days, then milliseconds
        _ => {
            let intervals = array.as_primitive_opt::<IntervalMonthDayNanoType>();
            let intervals = intervals.ok_or_else(|| Refused::denied(array))?.values().iter();
            let parts = intervals.flat_map(|x| [i64::from(x.months), i64::from(x.days), x.nanoseconds]);
            Ok(Buffer::from_vec(parts.collect::<Vec<i64>>()))
        }
    }
}

/// Returns the bytes of all values of an array of Parquet's intervals: months, days and
/// milliseconds, of which each is a little-endian number of 32 bits.
///
/// Arrow's library writes numbers with a sign, and states in a schema which of them it left out.
/// Intervals without an Arrow schema are stored as months, days and nanoseconds. They have no sign.
pub(super) fn parquet(array: &ArrayRef, stored: StoredElement) -> Result<Vec<u8>, Refused> {
    let intervals = array.as_fixed_size_binary_opt().ok_or_else(|| Refused::denied(array))?;
    let numbers = |i| numbers(intervals.value(i));
    Ok(match (stored.dtype, stored.extent) {
        (DType::I32, None) => converted(array, |i| only_months(numbers(i)?))?.into_flattened(),
        (DType::I32, Some(2)) => converted(array, |i| without_months(numbers(i)?))?.into_flattened().into_flattened(),
        (DType::I64, Some(3)) => converted(array, |i| all_parts(numbers(i)?))?.into_flattened().into_flattened(),
        _ => return Err(Refused::denied(array)),
    })
}

fn numbers(bytes: &[u8]) -> Result<[u32; 3], String> {
    match bytes.as_chunks::<4>() {
        ([months, days, milliseconds], []) => Ok([*months, *days, *milliseconds].map(u32::from_le_bytes)),
        _ => Err(format!("an interval of {} bytes, which has {BYTES}", bytes.len())),
    }
}

fn only_months([months, days, milliseconds]: [u32; 3]) -> Result<[u8; 4], String> {
    if (days, milliseconds) != (0, 0) {
        return Err(format!("an interval with {days} days and {milliseconds} ms, where the Arrow schema says months"));
    }
    Ok(months.to_ne_bytes())
}

fn without_months([months, days, milliseconds]: [u32; 3]) -> Result<[[u8; 4]; 2], String> {
    if months != 0 {
        return Err(format!("an interval with {months} months, where the Arrow schema says days and milliseconds"));
    }
    Ok([days, milliseconds].map(u32::to_ne_bytes))
}

fn all_parts([months, days, milliseconds]: [u32; 3]) -> Result<[[u8; 8]; 3], String> {
    if let Some(number) = [months, days].into_iter().find(|&number| i32::try_from(number).is_err()) {
        return Err(format!("an interval of {number} months or days, of which Arrow's have at most {}", i32::MAX));
    }
    // no overflow: less than 2^52
    let parts = [months.into(), days.into(), i64::from(milliseconds) * 1_000_000];
    Ok(parts.map(i64::to_ne_bytes))
}
