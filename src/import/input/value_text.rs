//! Values as text, as names of folders have them.

use crate::DType;
use crate::arrow_type::{ArrowType, TimeUnit};
use half::{bf16, f16};
use std::borrow::Cow;

/// One element, or the bytes of a string.
pub(super) struct ElementText<'a> {
    pub dtype: DType,
    /// The Arrow type of its column, as in the column's metadata.
    pub arrow_type: Option<&'a str>,
    pub bytes: &'a [u8],
}

impl<'a> ElementText<'a> {
    /// Returns whether this is the value that the name of a folder has: the same number, or the same
    /// text.
    pub(super) fn is(&self, name: &str) -> bool {
        match (self.float(), self.integer(), self.arrow_type) {
            (Some(float), ..) => match self.dtype {
                DType::F32 => name.parse().is_ok_and(|due: f32| f64::from(due).total_cmp(&float).is_eq()),
                _ => name.parse().is_ok_and(|due: f64| due.total_cmp(&float).is_eq()),
            },
            (None, Some(integer), None) => name.parse() == Ok(integer),
            _ => self.text().is_some_and(|text| text == name),
        }
    }

    /// Returns the value as text; `None` if its type has no text, or the string is not UTF-8.
    pub(super) fn text(&self) -> Option<Cow<'a, str>> {
        if self.dtype.is_string() {
            return std::str::from_utf8(self.bytes).ok().map(Cow::Borrowed);
        }
        if self.dtype == DType::Bool {
            return Some(Cow::Borrowed(if self.bytes == [0] { "false" } else { "true" }));
        }
        if let Some(float) = self.float() {
            return Some(Cow::Owned(float.to_string()));
        }
        let integer = self.integer()?;
        match self.arrow_type {
            None => Some(Cow::Owned(integer.to_string())),
            Some(text) => instant(integer, &ArrowType::from_text(text)?).map(Cow::Owned),
        }
    }

    fn float(&self) -> Option<f64> {
        Some(match (self.dtype, self.bytes) {
            (DType::F64, bytes) => f64::from_ne_bytes(bytes.try_into().ok()?),
            (DType::F32, bytes) => f32::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::F16, bytes) => f16::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::Bf16, bytes) => bf16::from_ne_bytes(bytes.try_into().ok()?).into(),
            _ => return None,
        })
    }

    fn integer(&self) -> Option<i128> {
        Some(match (self.dtype, self.bytes) {
            (DType::I8, bytes) => i8::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::I16, bytes) => i16::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::I32, bytes) => i32::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::I64, bytes) => i64::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::U8, bytes) => u8::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::U16, bytes) => u16::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::U32, bytes) => u32::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::U64, bytes) => u64::from_ne_bytes(bytes.try_into().ok()?).into(),
            _ => return None,
        })
    }
}

const DAY_NS: i128 = 86_400_000_000_000;

/// Returns a date, a time or both in the notation of ISO 8601, or `None` for other types.
fn instant(value: i128, data_type: &ArrowType) -> Option<String> {
    match data_type {
        ArrowType::Date32 => Some(date(value)),
        ArrowType::Date64 => Some(date_time(value, TimeUnit::Millisecond)),
        ArrowType::Time32(unit) | ArrowType::Time64(unit) => Some(time(value * nanoseconds_in(*unit))),
        ArrowType::Timestamp(unit, None) => Some(date_time(value, *unit)),
        ArrowType::Timestamp(unit, Some(zone)) if matches!(zone.as_str(), "UTC" | "Z" | "+00:00") => {
            Some(format!("{}Z", date_time(value, *unit)))
        }
        _ => None,
    }
}

/// Returns the number of nanoseconds in a unit. Values have at most 64 bits, so their products fit
/// into 128.
fn nanoseconds_in(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

fn date_time(value: i128, unit: TimeUnit) -> String {
    let nanoseconds = value * nanoseconds_in(unit);
    format!("{}T{}", date(nanoseconds.div_euclid(DAY_NS)), time(nanoseconds.rem_euclid(DAY_NS)))
}

/// Returns the date of a day since 1970, by the algorithm `civil_from_days` of Howard Hinnant.
fn date(day: i128) -> String {
    let day = day + 719_468; // since 1 March of year 0
    let (era, day_of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Returns a time of day, with as many digits of its second as it needs: 0, 3, 6 or 9.
fn time(nanoseconds: i128) -> String {
    let (seconds, fraction) = (nanoseconds.div_euclid(1_000_000_000), nanoseconds.rem_euclid(1_000_000_000));
    let whole = format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match fraction {
        0 => whole,
        _ if fraction % 1_000_000 == 0 => format!("{whole}.{:03}", fraction / 1_000_000),
        _ if fraction % 1_000 == 0 => format!("{whole}.{:06}", fraction / 1_000),
        _ => format!("{whole}.{fraction:09}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(dtype: DType, arrow_type: Option<&str>, bytes: &[u8]) -> Option<String> {
        ElementText { dtype, arrow_type, bytes }.text().map(Cow::into_owned)
    }

    #[test]
    fn dates_and_times_are_written_as_in_iso_8601() {
        let cases = [
            (19_782, "date32", "2024-02-29"),
            (-1, "date32", "1969-12-31"),
            (1_709_164_800_000, "date64", "2024-02-29T00:00:00"),
            (-1, "timestamp[ms]", "1969-12-31T23:59:59.999"),
            (1, "timestamp[us, UTC]", "1970-01-01T00:00:00.000001Z"),
            (951_782_400, "timestamp[s]", "2000-02-29T00:00:00"),
            (3_661, "time32[s]", "01:01:01"),
            (1, "time64[ns]", "00:00:00.000000001"),
        ];
        for (value, data_type, due) in cases {
            let found = text(DType::I64, Some(data_type), &i64::to_ne_bytes(value));
            assert_eq!(found.as_deref(), Some(due), "{value} {data_type}");
        }
        for (value, data_type) in [(i64::MIN, "timestamp[s]"), (i64::MAX, "date32"), (i64::MIN, "time32[s]")] {
            // and no overflow
            assert!(text(DType::I64, Some(data_type), &value.to_ne_bytes()).is_some());
        }
        assert_eq!(text(DType::I64, Some("duration[s]"), &[0; 8]), None);
        assert_eq!(text(DType::Bytes, None, &[0xFF]), None);
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        let is = |dtype, bytes: &[u8], name| ElementText { dtype, arrow_type: None, bytes }.is(name);
        assert!(is(DType::I32, &7_i32.to_ne_bytes(), "07") && !is(DType::I32, &7_i32.to_ne_bytes(), "8"));
        assert!(is(DType::F32, &0.1_f32.to_ne_bytes(), "0.1") && is(DType::F64, &1_f64.to_ne_bytes(), "1"));
        assert!(!is(DType::F64, &1_f64.to_ne_bytes(), "x"));
        assert!(is(DType::Bool, &[1], "true") && is(DType::U64, &u64::MAX.to_ne_bytes(), "18446744073709551615"));
        assert!(is(DType::Utf8, b"07", "07") && !is(DType::Utf8, b"07", "7"));
    }
}
