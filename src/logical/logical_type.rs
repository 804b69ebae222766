//! What the elements of a column stand for, if their own type does not say so.
//!
//! An import from Arrow or Parquet stores a decimal as its unscaled integer, a timestamp as a count
//! of its unit, and an interval as its components. The metadata of the column names the Arrow type,
//! so an export can restore it.
//!
//! Loaders, and exports to array files, deliver plain numbers without that type. Without a check,
//! 1.50 would silently arrive as 150, or as 16 bytes. Both therefore call
//! [`LogicalType::check_values`] first, or, if they cannot convey the unit of a count either,
//! [`LogicalType::check_numbers`]. [`Cursor`](crate::Cursor) and [`Writer`](crate::Writer) always
//! work with the stored elements.

use crate::error::Advice;
use crate::logical::arrow_type::ArrowType;
use crate::{ColumnSchema, DType, Error, Result};
use std::fmt;

/// The type that the elements of a column stand for: one of Arrow's decimals, dates, times,
/// timestamps, durations, intervals or fixed-size binaries, or null.
///
/// Its `Display` is the text in the metadata, such as `decimal128[22, 2]` or `timestamp[us,
/// Europe/Zurich]`.
///
/// ```
/// use tensilo::{ColumnSchema, DType, LogicalType, Shape};
///
/// let mut price = ColumnSchema::tensor("price", DType::I64, Shape::scalar());
/// assert_eq!(LogicalType::of(&price), None);
/// price.metadata.insert("arrow.type".to_owned(), "decimal64[12, 2]".to_owned());
/// let logical = LogicalType::of(&price).unwrap();
/// assert_eq!(logical.to_string(), "decimal64[12, 2]");
/// assert!(!logical.is_stored_value()); // 150 is stored for 1.50
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogicalType(ArrowType);

impl LogicalType {
    /// Returns the type that the metadata of a column names, if the elements of the column can have
    /// it.
    pub fn of(column: &ColumnSchema) -> Option<Self> {
        ArrowType::of(&column.metadata).filter(|logical| logical.fits(column)).map(Self)
    }

    /// Returns whether each stored element is a value of the type: a decimal of scale 0 in an
    /// integer, a count of the unit that the type names, or bytes. Otherwise, a stored element is
    /// an unscaled integer, a byte of an integer, or a component of an interval.
    pub fn is_stored_value(&self) -> bool {
        match &self.0 {
            ArrowType::Decimal(_, _, scale) => {
                *scale == 0 && self.0.stored_element().is_some_and(|e| e.extent.is_none())
            }
            ArrowType::DayTimeInterval | ArrowType::MonthDayNanoInterval => false,
            _ => true,
        }
    }

    /// Returns whether elements are counts of a unit: days, months or fractions of a second.
    pub fn is_count(&self) -> bool {
        matches!(
            &self.0,
            ArrowType::Date32
                | ArrowType::Date64
                | ArrowType::Time32(_)
                | ArrowType::Time64(_)
                | ArrowType::Duration(_)
                | ArrowType::Timestamp(..)
                | ArrowType::MonthInterval
        )
    }

    /// Returns the type to suggest for a cast: `f64` for decimals with a fraction, otherwise `i64`.
    fn cast_target(&self) -> DType {
        match &self.0 {
            ArrowType::Decimal(_, _, scale) if *scale > 0 => DType::F64,
            _ => DType::I64,
        }
    }

    /// Fails if the stored elements of a column are not its values. The error names the type, and
    /// suggests a cast: a conversion with this cast stores the values.
    pub fn check_values(column: &ColumnSchema) -> Result<()> {
        match Self::of(column) {
            Some(logical) if !logical.is_stored_value() => Err(logical.refusal(column)),
            _ => Ok(()),
        }
    }

    /// Like [`check_values`](Self::check_values), but also fails if the elements are counts of a
    /// unit that only the metadata names.
    pub fn check_numbers(column: &ColumnSchema) -> Result<()> {
        match Self::of(column) {
            Some(logical) if !logical.is_stored_value() || logical.is_count() => Err(logical.refusal(column)),
            _ => Ok(()),
        }
    }

    fn refusal(&self, column: &ColumnSchema) -> Error {
        let message = match &self.0 {
            ArrowType::Decimal(..) if column.dtype == DType::U8 => {
                format!("the stored elements are the bytes of {self}, not its values")
            }
            ArrowType::Decimal(..) => {
                format!("the stored elements are the unscaled integers of {self}, not its values")
            }
            ArrowType::DayTimeInterval | ArrowType::MonthDayNanoInterval => {
                format!("the stored elements are the components of {self}, not its values")
            }
            _ => format!("the stored elements are counts in the unit of {self}, and the unit would be lost"),
        };
        Error::bad_argument(message).with_column(&column.name).with_advice([Advice::Cast(self.cast_target())])
    }
}

impl fmt::Display for LogicalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape;
    use crate::logical::arrow_type;

    fn column(dtype: DType, extents: &[u32], text: &str) -> ColumnSchema {
        let mut column = ColumnSchema::tensor("x", dtype, Shape::fixed(extents));
        column.metadata.insert(arrow_type::KEY.to_owned(), text.to_owned());
        column
    }

    #[test]
    fn only_whole_decimals_in_integers_are_their_values() {
        for (dtype, extents, text, is_value) in [
            (DType::I32, &[][..], "decimal128[9, 0]", true),
            (DType::I64, &[3], "decimal64[18, 0]", true),
            (DType::I32, &[], "decimal32[9, 2]", false),
            (DType::I32, &[], "decimal128[9, -2]", false),
            (DType::U8, &[16], "decimal128[38, 0]", false),
            (DType::U8, &[3, 32], "decimal256[39, 4]", false),
            (DType::I32, &[2], "day_time_interval", false),
            (DType::I64, &[3], "month_day_nano_interval", false),
            (DType::I32, &[], "month_interval", true),
            (DType::I64, &[], "timestamp[us, UTC]", true),
            (DType::I64, &[], "date32", true),
        ] {
            let column = column(dtype, extents, text);
            let logical = LogicalType::of(&column).unwrap();
            assert_eq!((logical.is_stored_value(), logical.to_string().as_str()), (is_value, text));
            assert_eq!(LogicalType::check_values(&column).is_ok(), is_value, "{text}");
            let is_number = is_value && text.starts_with("decimal");
            assert_eq!(LogicalType::check_numbers(&column).is_ok(), is_number, "{text}");
        }
    }

    #[test]
    fn a_type_that_the_elements_cannot_have_is_not_theirs() {
        for (dtype, extents, text) in [
            (DType::I64, &[][..], "decimal128[9, 2]"),
            (DType::U8, &[15], "decimal128[38, 2]"),
            (DType::I32, &[], "decimal32[10, 2]"),
            (DType::F64, &[], "timestamp[us]"),
            (DType::I64, &[], "time32[ns]"),
            (DType::I64, &[], "time64[s]"),
            (DType::I32, &[], "no type"),
        ] {
            assert_eq!(LogicalType::of(&column(dtype, extents, text)), None, "{text}");
        }
    }

    #[test]
    fn a_refusal_names_column_type_and_cast() {
        let error = LogicalType::check_values(&column(DType::U8, &[16], "decimal128[22, 2]")).unwrap_err();
        assert_eq!(error.column(), Some("x"));
        assert!(error.message().contains("the bytes of decimal128[22, 2]"), "{error}");
        assert_eq!(error.advice(), [Advice::Cast(DType::F64)]);
        let error = LogicalType::check_values(&column(DType::U8, &[16], "decimal128[38, 0]")).unwrap_err();
        assert_eq!(error.advice(), [Advice::Cast(DType::I64)]);
    }
}
