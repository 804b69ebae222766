//! Decimals and intervals, from the values that are stored to elements of Arrow.

use super::field::Parts;
use crate::{DType, Error, Result};
use arrow_buffer::{ArrowNativeType, IntervalMonthDayNano, MutableBuffer, i256};
use arrow_schema::{DataType, IntervalUnit};
use std::fmt::Display;

/// Appends elements of a type, given as the bytes of their values in memory order.
pub(super) type Append = fn(&[u8], &mut MutableBuffer, &DataType) -> Result<()>;

/// Returns the function for elements that are stored as values of type `source`. Returns `None` if
/// the bytes of both are the same.
///
/// A decimal of 16 or 32 bytes may have more digits than its type states. Arrow keeps all its
/// bytes, Parquet only as many as the digits of the type need: a value that has more is refused.
pub(super) fn appender(source: DType, data_type: &DataType, parts: Parts) -> Option<Append> {
    let is_parquet = parts == Parts::Optional;
    Some(match (data_type, source) {
        (DataType::Interval(IntervalUnit::MonthDayNano), _) => append_intervals,
        (DataType::Decimal64(..), DType::I32) => |from, to, _| append(from, to, |x| i64::from(i32::from_ne_bytes(x))),
        (DataType::Decimal128(..), DType::I32) => |from, to, _| append(from, to, |x| i128::from(i32::from_ne_bytes(x))),
        (DataType::Decimal128(..), DType::I64) => |from, to, _| append(from, to, |x| i128::from(i64::from_ne_bytes(x))),
        (DataType::Decimal128(..), _) if is_parquet => append_checked_128,
        (DataType::Decimal128(..), _) => |from, to, _| append(from, to, i128::from_le_bytes),
        (DataType::Decimal256(..), DType::I32) => |from, to, _| append(from, to, |x| i256::from(i32::from_ne_bytes(x))),
        (DataType::Decimal256(..), DType::I64) => |from, to, _| append(from, to, |x| i256::from(i64::from_ne_bytes(x))),
        (DataType::Decimal256(precision, _), _) if *precision <= 38 && is_parquet => {
            |from, to, data_type| append_checked_256(from, to, data_type, |x| i256::from(i128::from_le_bytes(x)))
        }
        (DataType::Decimal256(precision, _), _) if *precision <= 38 => {
            |from, to, _| append(from, to, |x| i256::from(i128::from_le_bytes(x)))
        }
        (DataType::Decimal256(..), _) if is_parquet => {
            |from, to, data_type| append_checked_256(from, to, data_type, i256::from_le_bytes)
        }
        (DataType::Decimal256(..), _) => |from, to, _| append(from, to, i256::from_le_bytes),
        _ => return None,
    })
}

fn append_checked_128(from: &[u8], to: &mut MutableBuffer, data_type: &DataType) -> Result<()> {
    let cut = 128 - parquet_bits(data_type, 128);
    append_checked(from, to, data_type, i128::from_le_bytes, |value| value << cut >> cut == value)
}

fn append_checked_256<const N: usize>(
    from: &[u8],
    to: &mut MutableBuffer,
    data_type: &DataType,
    convert: impl Fn([u8; N]) -> i256,
) -> Result<()> {
    // below 256: at least a byte is kept
    let cut = u8::try_from(256 - parquet_bits(data_type, 256)).unwrap_or(0);
    append_checked(from, to, data_type, convert, |value| (value << cut) >> cut == value)
}

/// Returns the bits that Parquet keeps of a decimal, at most `most`: the fewest bytes that hold all
/// numbers of its digits.
fn parquet_bits(data_type: &DataType, most: u32) -> u32 {
    let (DataType::Decimal128(digits, _) | DataType::Decimal256(digits, _)) = data_type else { return most };
    // at most 848; no power of ten but 1 is one of two, so one bit more holds it, and one the sign
    let bits = (f64::from(*digits) * std::f64::consts::LOG2_10) as u32 + 2;
    bits.next_multiple_of(8).min(most)
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
                "the digits {value} are too many for {data_type}, and Parquet would cut them: export to an Arrow file, \
                 or leave the column out"
            );
            return Err(Error::over_limit(message));
        }
        to.push(value);
    }
    Ok(())
}

fn append<const N: usize, T: ArrowNativeType>(
    from: &[u8],
    to: &mut MutableBuffer,
    convert: impl Fn([u8; N]) -> T,
) -> Result<()> {
    from.as_chunks::<N>().0.iter().for_each(|bytes| to.push(convert(*bytes)));
    Ok(())
}

fn append_intervals(from: &[u8], to: &mut MutableBuffer, _: &DataType) -> Result<()> {
    for interval in from.as_chunks::<8>().0.as_chunks::<3>().0 {
        let [months, days, nanoseconds] = interval.map(i64::from_ne_bytes);
        let part = |value: i64| {
            let message = || format!("an interval of {value} months or days, of which Arrow's have 32 bits");
            i32::try_from(value).map_err(|_| Error::over_limit(message()))
        };
        to.push(IntervalMonthDayNano { months: part(months)?, days: part(days)?, nanoseconds });
    }
    Ok(())
}
