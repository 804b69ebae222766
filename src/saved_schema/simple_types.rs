//! The names of types without children, as Arrow's documentation has them.

use crate::arrow_type::ArrowType;
use arrow_schema::DataType;

/// Types whose name says all.
const NAMES: [(&str, DataType); 18] = [
    ("bool", DataType::Boolean),
    ("int8", DataType::Int8),
    ("int16", DataType::Int16),
    ("int32", DataType::Int32),
    ("int64", DataType::Int64),
    ("uint8", DataType::UInt8),
    ("uint16", DataType::UInt16),
    ("uint32", DataType::UInt32),
    ("uint64", DataType::UInt64),
    ("float16", DataType::Float16),
    ("float32", DataType::Float32),
    ("float64", DataType::Float64),
    ("utf8", DataType::Utf8),
    ("large_utf8", DataType::LargeUtf8),
    ("utf8_view", DataType::Utf8View),
    ("binary", DataType::Binary),
    ("large_binary", DataType::LargeBinary),
    ("binary_view", DataType::BinaryView),
];

/// Returns the name of a type; `None` if it has children, or cannot be stored.
pub(super) fn name(data_type: &DataType) -> Option<String> {
    match NAMES.iter().find(|(_, named)| named == data_type) {
        Some((name, _)) => Some((*name).to_owned()),
        None => ArrowType::from_arrow(data_type).map(|kept| kept.to_string()),
    }
}

/// Returns the type of this name.
pub(super) fn of_name(name: &str) -> Option<DataType> {
    match NAMES.iter().find(|(named, _)| *named == name) {
        Some((_, data_type)) => Some(data_type.clone()),
        None => ArrowType::from_text(name).map(|kept| kept.to_arrow()),
    }
}
