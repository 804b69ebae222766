//! Decimals and intervals, from the values that are stored to elements of Arrow.

use super::field::Parts;
use crate::{DType, Error, Result};
use arrow_buffer::{ArrowNativeType, IntervalMonthDayNano, MutableBuffer, i256};
use arrow_data::decimal::{validate_decimal_precision, validate_decimal256_precision};
use arrow_schema::{ArrowError, DataType, IntervalUnit};

/// Appends elements of a type, given as the bytes of their values in memory order.
pub(super) type Append = fn(&[u8], &mut MutableBuffer, &DataType) -> Result<()>;

/// Returns the function for elements that are stored as values of type `source`. Returns `None` if
/// the bytes of both are the same.
///
/// A decimal of 16 or 32 bytes may have more digits than its type states. Arrow keeps all its
/// bytes, Parquet only as many as the digits of the type need.
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
    append_checked(from, to, i128::from_le_bytes, |value| match data_type {
        DataType::Decimal128(precision, scale) => validate_decimal_precision(value, *precision, *scale),
        _ => Ok(()),
    })
}

fn append_checked_256<const N: usize>(
    from: &[u8],
    to: &mut MutableBuffer,
    data_type: &DataType,
    convert: impl Fn([u8; N]) -> i256,
) -> Result<()> {
    append_checked(from, to, convert, |value| match data_type {
        DataType::Decimal256(precision, scale) => validate_decimal256_precision(value, *precision, *scale),
        _ => Ok(()),
    })
}

fn append_checked<const N: usize, T: ArrowNativeType>(
    from: &[u8],
    to: &mut MutableBuffer,
    convert: impl Fn([u8; N]) -> T,
    check: impl Fn(T) -> std::result::Result<(), ArrowError>,
) -> Result<()> {
    for bytes in from.as_chunks::<N>().0 {
        let value = convert(*bytes);
        check(value).map_err(|error| {
            let text = error.to_string();
            let text = text.strip_prefix("Invalid argument error: ").unwrap_or(&text);
            let message =
                format!("{text}; Parquet has no such value: export to an Arrow file, or leave the column out");
            Error::over_limit(message)
        })?;
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
