//! Units of timestamps that come in nanoseconds of any range.
//!
//! INT96 timestamps of Parquet are an example. Arrow reads them as nanoseconds of 64 bits, which
//! most fit. If one does not, the column is stored in microseconds, provided that every value is a
//! whole number of them and fits.

use super::column::Column;
use crate::arrow_type;
use crate::arrow_type::{ArrowType, TimeUnit};
use crate::error::Advice;
use crate::import::batch::{SampleValues, Samples, row_of};
use crate::import::problem::Problem;
use crate::le::u64_of;
use std::ops::Range;
use std::result::Result;

/// Returns the value in a unit, or `None` if that is not exact.
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

/// Returns the value in a unit, or why there is none.
pub(in crate::import) fn exact(nanoseconds: i128, unit: TimeUnit) -> Result<i64, String> {
    in_unit(nanoseconds, unit)
        .ok_or_else(|| format!("the INT96 timestamp of {nanoseconds} ns since 1970 is none of {}", text_of(unit)))
}

fn text_of(unit: TimeUnit) -> String {
    ArrowType::Timestamp(unit, None).to_string()
}

/// Returns the unit and the time zone that the metadata of a column state.
fn timestamp(column: &Column) -> Option<(TimeUnit, Option<String>)> {
    match ArrowType::of(&column.metadata)? {
        ArrowType::Timestamp(unit, zone) => Some((unit, zone)),
        _ => None,
    }
}

/// Returns the unit in which the timestamps of a column are stored, or `None` if its type states
/// it.
pub(in crate::import) fn unit(column: &Column) -> Option<TimeUnit> {
    timestamp(column).map(|(unit, _)| unit).filter(|_| column.kind.instants)
}

/// Finds a unit in which every timestamp of a column is exact.
pub(in crate::import) struct UnitFinder {
    /// In order of preference, with the first sample that is not exact.
    candidates: Vec<(TimeUnit, Option<u64>)>,
}

impl UnitFinder {
    /// Makes the finder of a column, or `None` if there is nothing to find.
    pub(in crate::import) fn new(column: &Column) -> Option<Self> {
        let declared = unit(column)?;
        let mut units = vec![declared];
        if !column.unit_is_given {
            let others = [TimeUnit::Nanosecond, TimeUnit::Microsecond];
            units.extend(others.into_iter().filter(|unit| *unit != declared));
        }
        Some(Self { candidates: units.into_iter().map(|unit| (unit, None)).collect() })
    }

    /// Examines samples, which begin with number `first` of all. Null elements are 0, which fits
    /// every unit.
    pub(in crate::import) fn observe(&mut self, samples: &Samples, first: u64) {
        let SampleValues::Instants(values) = &samples.values else { return };
        for (unit, refusing) in self.candidates.iter_mut().filter(|(_, refusing)| refusing.is_none()) {
            let is_refused = |range: &Range<usize>| {
                let mut values = values.get(range.clone()).into_iter().flatten();
                values.any(|&value| in_unit(value, *unit).is_none())
            };
            if let Some(item) = samples.ranges.iter().position(is_refused) {
                let row = row_of(item, &samples.lists).unwrap_or(0); // an item is in a list
                *refusing = Some(first.saturating_add(u64_of(row)));
            }
        }
    }

    /// Gives the column the first unit that fits all samples. `Err`: none does.
    pub(in crate::import) fn settle(&self, column: &mut Column) -> Result<(), (u64, Problem)> {
        match self.candidates.iter().find(|(_, refusing)| refusing.is_none()) {
            Some((unit, _)) => {
                let zone = timestamp(column).and_then(|(_, zone)| zone);
                let text = ArrowType::Timestamp(*unit, zone).to_string();
                column.metadata.insert(arrow_type::KEY.to_owned(), text);
                Ok(())
            }
            None => Err(self.refusal()),
        }
    }

    fn refusal(&self) -> (u64, Problem) {
        let refusing = |(unit, sample): &(TimeUnit, Option<u64>)| {
            // there is one for each
            format!("{} not that of sample {}", text_of(*unit), sample.unwrap_or(0))
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

    #[test]
    fn a_value_is_exact_or_none() {
        assert_eq!(exact(1, TimeUnit::Nanosecond), Ok(1));
        assert_eq!(exact(-86_400_000_000_000, TimeUnit::Second), Ok(-86_400));
        assert!(exact(1, TimeUnit::Microsecond).is_err());
        assert_eq!(exact(-1_000, TimeUnit::Microsecond), Ok(-1));
        assert_eq!(exact(i64::MAX.into(), TimeUnit::Nanosecond), Ok(i64::MAX));
        assert!(exact(i128::from(i64::MAX) + 1, TimeUnit::Nanosecond).is_err());
        assert!(exact(i128::MIN / 2, TimeUnit::Nanosecond).is_err());
    }
}
