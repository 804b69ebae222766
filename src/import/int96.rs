//! INT96 timestamps of Parquet: 8 bytes of nanoseconds within a day, and 4 bytes of the Julian day.
//!
//! Most fit 64 bits of nanoseconds, which is what Arrow reads them as. If one does not,
//! microseconds are taken, if every value of the column is a whole number of them that fits.
//!
//! Spark counts microseconds from Julian day 0 in 64 bits before it splits them into days and
//! nanoseconds, and after the year 287,564 that number wraps: day and nanoseconds are negative
//! then. As microseconds since 1970 no such day fits 64 bits, so that what was meant can be told
//! (`int96_from_spark.parquet` of Apache's parquet-testing has one).

use super::plan::Column;
use super::problem::Problem;
use super::walk::Samples;
use crate::{Advice, arrow_type};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_schema::{DataType, TimeUnit};
use std::result::Result;

/// Bytes of a timestamp.
pub(super) const BYTES: usize = 12;

/// The nanoseconds since 1970.
fn nanoseconds(value: [u8; BYTES]) -> i128 {
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

/// The value in a unit; `None` if it is not exact there.
fn in_unit(nanoseconds: i128, unit: TimeUnit) -> Option<i64> {
    let each = match unit {
        TimeUnit::Nanosecond => 1,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Second => 1_000_000_000,
    };
    let is_whole = nanoseconds % each == 0;
    i64::try_from(nanoseconds / each).ok().filter(|_| is_whole)
}

/// The value in a unit, or why it is none.
pub(super) fn exact(value: [u8; BYTES], unit: TimeUnit) -> Result<i64, String> {
    let nanoseconds = nanoseconds(value);
    in_unit(nanoseconds, unit)
        .ok_or_else(|| format!("the INT96 timestamp of {nanoseconds} ns since 1970 is none of {}", text_of(unit)))
}

fn text_of(unit: TimeUnit) -> String {
    arrow_type::to_text(&DataType::Timestamp(unit, None)).unwrap_or_default() // never empty
}

/// The unit that the metadata of a column says, and its time zone.
fn timestamp(column: &Column) -> Option<(TimeUnit, Option<std::sync::Arc<str>>)> {
    match arrow_type::from_text(column.metadata.get(arrow_type::KEY)?)? {
        DataType::Timestamp(unit, zone) => Some((unit, zone)),
        _ => None,
    }
}

/// The unit in which INT96 timestamps of a column are stored; `None` if it has none.
pub(super) fn unit(column: &Column) -> Option<TimeUnit> {
    timestamp(column).map(|(unit, _)| unit).filter(|_| column.kind.int96)
}

/// Finds a unit in which every timestamp of a column is exact.
pub(super) struct UnitFinder {
    /// In order of preference, with the first sample that is not exact.
    candidates: Vec<(TimeUnit, Option<u64>)>,
}

impl UnitFinder {
    /// `None` if there is nothing to find.
    pub(super) fn new(column: &Column) -> Option<Self> {
        let declared = unit(column)?;
        let mut units = vec![declared];
        if !column.unit_is_given {
            let others = [TimeUnit::Nanosecond, TimeUnit::Microsecond];
            units.extend(others.into_iter().filter(|unit| *unit != declared));
        }
        Some(Self { candidates: units.into_iter().map(|unit| (unit, None)).collect() })
    }

    /// Looks at samples of which the first is the `first` of all.
    pub(super) fn observe(&mut self, samples: &Samples, first: u64) {
        let Some(array) = samples.elements.as_fixed_size_binary_opt() else { return };
        for (sample, range) in (first..).zip(&samples.ranges) {
            for i in range.clone().filter(|&i| i < array.len() && array.is_valid(i)) {
                let Ok(value) = array.value(i).try_into() else { continue };
                self.observe_one(nanoseconds(value), sample);
            }
        }
    }

    fn observe_one(&mut self, nanoseconds: i128, sample: u64) {
        for (unit, refusing) in &mut self.candidates {
            if refusing.is_none() && in_unit(nanoseconds, *unit).is_none() {
                *refusing = Some(sample);
            }
        }
    }

    /// Gives the column the first unit that fits all samples. `Err`: none does.
    pub(super) fn settle(&self, column: &mut Column) -> Result<(), (u64, Problem)> {
        match self.candidates.iter().find(|(_, refusing)| refusing.is_none()) {
            Some((unit, _)) => {
                let zone = timestamp(column).and_then(|(_, zone)| zone);
                let text = arrow_type::to_text(&DataType::Timestamp(*unit, zone));
                column.metadata.extend(text.map(|text| (arrow_type::KEY.to_owned(), text)));
                Ok(())
            }
            None => Err(self.refusal()),
        }
    }

    fn refusal(&self) -> (u64, Problem) {
        let refusing = |(unit, sample): &(TimeUnit, Option<u64>)| {
            format!("{} not that of sample {}", text_of(*unit), sample.unwrap_or(0)) // there is one for each
        };
        let all: Vec<String> = self.candidates.iter().map(refusing).collect();
        let last = self.candidates.iter().filter_map(|(_, sample)| *sample).max();
        let message = format!("no type holds all INT96 timestamps of the column exactly: {}", all.join(", "));
        (last.unwrap_or(0), Problem::from(message).advising([Advice::SkipColumns]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(day: i32, in_day: i64) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&in_day.to_le_bytes());
        bytes[8..].copy_from_slice(&day.to_le_bytes());
        bytes
    }

    #[test]
    fn a_value_is_exact_or_none() {
        assert_eq!(exact(value(2_440_588, 1), TimeUnit::Nanosecond), Ok(1));
        assert_eq!(exact(value(2_440_587, 0), TimeUnit::Second), Ok(-86_400));
        assert!(exact(value(2_440_588, 1), TimeUnit::Microsecond).is_err());
        assert!(exact(value(i32::MAX, 0), TimeUnit::Nanosecond).is_err());
        assert_eq!(exact(value(2_440_588, -1_000), TimeUnit::Microsecond), Ok(-1));
        // of Spark: microseconds from Julian day 0 that have wrapped, and some that have not
        assert_eq!(
            exact(value(-105_862_232, -32_509_551_616_000), TimeUnit::Microsecond),
            Ok(9_089_380_393_200_000_000)
        );
        assert!(exact(value(-105_862_232, 1), TimeUnit::Microsecond).is_err());
        assert!(exact(value(i32::MIN, 0), TimeUnit::Microsecond).is_err());
        let last = i64::MAX; // nanoseconds: in April 2262
        let (day, in_day) = (last / 86_400_000_000_000, last % 86_400_000_000_000);
        let day = 2_440_588 + i32::try_from(day).unwrap();
        assert_eq!(exact(value(day, in_day), TimeUnit::Nanosecond), Ok(i64::MAX));
        assert!(exact(value(day, in_day + 1), TimeUnit::Nanosecond).is_err());
    }
}
