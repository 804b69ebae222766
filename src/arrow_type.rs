//! The Arrow type that a column came from, kept in the column's metadata where the tensilo type
//! does not imply it.
//!
//! The grammar is that of Arrow's documentation: `date32`, `date64`, `time32[s]`, `time64[us]`,
//! `duration[ms]`, `timestamp[ns]`, `timestamp[us, Europe/Zurich]`, `fixed_size_binary[16]`.

use crate::Metadata;
use std::fmt;

/// The metadata key.
pub(crate) const KEY: &str = "arrow.type";

/// A type that needs to be kept. Its `Display` is the text of the metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArrowType {
    Date32,
    Date64,
    Time32(TimeUnit),
    Time64(TimeUnit),
    Duration(TimeUnit),
    Timestamp(TimeUnit, Option<String>),
    FixedSizeBinary(i32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

impl ArrowType {
    /// Returns the type that metadata have.
    pub(crate) fn of(metadata: &Metadata) -> Option<Self> {
        Self::from_text(metadata.get(KEY)?)
    }

    /// Returns the type with this `Display`.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        match text {
            "date32" => return Some(Self::Date32),
            "date64" => return Some(Self::Date64),
            _ => {}
        }
        let (name, argument) = text.strip_suffix(']')?.split_once('[')?;
        match name {
            "time32" => Some(Self::Time32(unit(argument)?)),
            "time64" => Some(Self::Time64(unit(argument)?)),
            "duration" => Some(Self::Duration(unit(argument)?)),
            "timestamp" => Some(match argument.split_once(", ") {
                Some((argument, zone)) => Self::Timestamp(unit(argument)?, Some(zone.to_owned())),
                None => Self::Timestamp(unit(argument)?, None),
            }),
            "fixed_size_binary" => argument.parse().ok().map(Self::FixedSizeBinary),
            _ => None,
        }
    }
}

impl fmt::Display for ArrowType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Date32 => f.write_str("date32"),
            Self::Date64 => f.write_str("date64"),
            Self::Time32(unit) => write!(f, "time32[{unit}]"),
            Self::Time64(unit) => write!(f, "time64[{unit}]"),
            Self::Duration(unit) => write!(f, "duration[{unit}]"),
            Self::Timestamp(unit, None) => write!(f, "timestamp[{unit}]"),
            Self::Timestamp(unit, Some(zone)) => write!(f, "timestamp[{unit}, {zone}]"),
            Self::FixedSizeBinary(bytes) => write!(f, "fixed_size_binary[{bytes}]"),
        }
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Second => "s",
            Self::Millisecond => "ms",
            Self::Microsecond => "us",
            Self::Nanosecond => "ns",
        })
    }
}

fn unit(name: &str) -> Option<TimeUnit> {
    Some(match name {
        "s" => TimeUnit::Second,
        "ms" => TimeUnit::Millisecond,
        "us" => TimeUnit::Microsecond,
        "ns" => TimeUnit::Nanosecond,
        _ => return None,
    })
}

#[cfg(feature = "arrow")]
mod arrow {
    //! From and to the types of Arrow's library.

    use super::{ArrowType, TimeUnit};
    use arrow_schema::DataType;

    impl ArrowType {
        /// Returns the type to keep for an Arrow type, if it is one of those.
        pub(crate) fn from_arrow(data_type: &DataType) -> Option<Self> {
            Some(match data_type {
                DataType::Date32 => Self::Date32,
                DataType::Date64 => Self::Date64,
                DataType::Time32(unit) => Self::Time32((*unit).into()),
                DataType::Time64(unit) => Self::Time64((*unit).into()),
                DataType::Duration(unit) => Self::Duration((*unit).into()),
                DataType::Timestamp(unit, zone) => {
                    Self::Timestamp((*unit).into(), zone.as_ref().map(|zone| zone.to_string()))
                }
                DataType::FixedSizeBinary(bytes) => Self::FixedSizeBinary(*bytes),
                _ => return None,
            })
        }

        /// Returns the Arrow type.
        pub(crate) fn to_arrow(&self) -> DataType {
            match self {
                Self::Date32 => DataType::Date32,
                Self::Date64 => DataType::Date64,
                Self::Time32(unit) => DataType::Time32((*unit).into()),
                Self::Time64(unit) => DataType::Time64((*unit).into()),
                Self::Duration(unit) => DataType::Duration((*unit).into()),
                Self::Timestamp(unit, zone) => {
                    DataType::Timestamp((*unit).into(), zone.as_ref().map(|zone| zone.as_str().into()))
                }
                Self::FixedSizeBinary(bytes) => DataType::FixedSizeBinary(*bytes),
            }
        }
    }

    impl From<arrow_schema::TimeUnit> for TimeUnit {
        fn from(unit: arrow_schema::TimeUnit) -> Self {
            match unit {
                arrow_schema::TimeUnit::Second => Self::Second,
                arrow_schema::TimeUnit::Millisecond => Self::Millisecond,
                arrow_schema::TimeUnit::Microsecond => Self::Microsecond,
                arrow_schema::TimeUnit::Nanosecond => Self::Nanosecond,
            }
        }
    }

    impl From<TimeUnit> for arrow_schema::TimeUnit {
        fn from(unit: TimeUnit) -> Self {
            match unit {
                TimeUnit::Second => Self::Second,
                TimeUnit::Millisecond => Self::Millisecond,
                TimeUnit::Microsecond => Self::Microsecond,
                TimeUnit::Nanosecond => Self::Nanosecond,
            }
        }
    }
}
