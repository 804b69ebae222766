//! The Arrow type that a column came from, kept in the column's metadata where the tensilo type does not imply it.
//!
//! The grammar is that of Arrow's documentation: `date32`, `date64`, `time32[s]`, `time64[us]`, `duration[ms]`,
//! `timestamp[ns]`, `timestamp[us, Europe/Zurich]`, `fixed_size_binary[16]`.

use arrow_schema::{DataType, TimeUnit};

/// The metadata key.
pub(crate) const KEY: &str = "arrow.type";

/// The text for a type, if it is one of those that need it.
pub(crate) fn to_text(data_type: &DataType) -> Option<String> {
    Some(match data_type {
        DataType::Date32 => "date32".to_owned(),
        DataType::Date64 => "date64".to_owned(),
        DataType::Time32(unit) => format!("time32[{}]", unit_name(unit)),
        DataType::Time64(unit) => format!("time64[{}]", unit_name(unit)),
        DataType::Duration(unit) => format!("duration[{}]", unit_name(unit)),
        DataType::Timestamp(unit, None) => format!("timestamp[{}]", unit_name(unit)),
        DataType::Timestamp(unit, Some(zone)) => format!("timestamp[{}, {zone}]", unit_name(unit)),
        DataType::FixedSizeBinary(bytes) => format!("fixed_size_binary[{bytes}]"),
        _ => return None,
    })
}

/// The type for a text that [`to_text`] made.
pub(crate) fn from_text(text: &str) -> Option<DataType> {
    match text {
        "date32" => return Some(DataType::Date32),
        "date64" => return Some(DataType::Date64),
        _ => {}
    }
    let (name, argument) = text.strip_suffix(']')?.split_once('[')?;
    match name {
        "time32" => Some(DataType::Time32(unit(argument)?)),
        "time64" => Some(DataType::Time64(unit(argument)?)),
        "duration" => Some(DataType::Duration(unit(argument)?)),
        "timestamp" => Some(match argument.split_once(", ") {
            Some((argument, zone)) => DataType::Timestamp(unit(argument)?, Some(zone.into())),
            None => DataType::Timestamp(unit(argument)?, None),
        }),
        "fixed_size_binary" => argument.parse().ok().map(DataType::FixedSizeBinary),
        _ => None,
    }
}

fn unit_name(unit: &TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
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
