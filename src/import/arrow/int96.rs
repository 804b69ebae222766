//! INT96 timestamps of Parquet: 8 bytes of nanoseconds within a day, and 4 bytes of the Julian day.
//!
//! Spark counts microseconds from Julian day 0 in 64 bits before it splits them into days and
//! nanoseconds, and after the year 287,564 that number wraps: day and nanoseconds are negative
//! then. As microseconds since 1970 no such day fits 64 bits, so that what was meant can be told
//! (`int96_from_spark.parquet` of Apache's parquet-testing has one).

/// Bytes of a timestamp.
pub(in crate::import) const BYTES: usize = 12;

/// Returns the nanoseconds since 1970.
pub(super) fn nanoseconds(value: [u8; BYTES]) -> i128 {
    const JULIAN_DAY_OF_1970: i128 = 2_440_588;
    const DAY: i128 = 86_400_000_000_000;
    const SPARK_WRAPS_AT: i128 = 1_000 << 64;
    let [a, b, c, d, e, f, g, h, day @ ..] = value;
    let (day, in_day) = (i32::from_le_bytes(day), i64::from_le_bytes([a, b, c, d, e, f, g, h]));
    // no overflow: about 2^31 * 2^47
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
            let mut bytes = [0; BYTES];
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
