//! Decimals and intervals, from the values that are stored to elements of Arrow.

use crate::{DType, Error, Result};
use arrow_buffer::{ArrowNativeType, IntervalMonthDayNano, MutableBuffer, i256};
use arrow_schema::{DataType, IntervalUnit};

/// Appends elements, given as the bytes of their values in memory order.
pub(super) type Append = fn(&[u8], &mut MutableBuffer) -> Result<()>;

/// Returns the function for elements that are stored as values of type `source`. Returns `None` if
/// the bytes of both are the same.
pub(super) fn appender(source: DType, data_type: &DataType) -> Option<Append> {
    Some(match (data_type, source) {
        (DataType::Interval(IntervalUnit::MonthDayNano), _) => append_intervals,
        (DataType::Decimal64(..), DType::I32) => |from, to| append(from, to, |x| i64::from(i32::from_ne_bytes(x))),
        (DataType::Decimal128(..), DType::I32) => |from, to| append(from, to, |x| i128::from(i32::from_ne_bytes(x))),
        (DataType::Decimal128(..), DType::I64) => |from, to| append(from, to, |x| i128::from(i64::from_ne_bytes(x))),
        (DataType::Decimal128(..), _) => |from, to| append(from, to, i128::from_le_bytes),
        (DataType::Decimal256(..), DType::I32) => |from, to| append(from, to, |x| i256::from(i32::from_ne_bytes(x))),
        (DataType::Decimal256(..), DType::I64) => |from, to| append(from, to, |x| i256::from(i64::from_ne_bytes(x))),
        (DataType::Decimal256(precision, _), _) if *precision <= 38 => {
            |from, to| append(from, to, |x| i256::from(i128::from_le_bytes(x)))
        }
        (DataType::Decimal256(..), _) => |from, to| append(from, to, i256::from_le_bytes),
        _ => return None,
    })
}

fn append<const N: usize, T: ArrowNativeType>(
    from: &[u8],
    to: &mut MutableBuffer,
    convert: impl Fn([u8; N]) -> T,
) -> Result<()> {
    from.as_chunks::<N>().0.iter().for_each(|bytes| to.push(convert(*bytes)));
    Ok(())
}

fn append_intervals(from: &[u8], to: &mut MutableBuffer) -> Result<()> {
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
