//! The columns of a schema, as they are stored.

use super::extension;
use super::types::{ENCRYPTED, INT96, decoded, element};
use crate::import::input_column::{ColumnKind, Level};
use crate::{DType, limits};
use arrow_schema::{DataType, Field, FieldRef};
use std::result::Result;

/// Returns how a field that is no plain struct is stored, or why it cannot be.
pub(super) fn kind_of(field: &Field) -> Result<ColumnKind, String> {
    if extension::is_variable_tensor(field) {
        return extension::variable_tensor(field);
    }
    let data_type = decoded(field.data_type());
    if let Some(dtype) = string(data_type) {
        check_readable(field)?;
        return Ok(ColumnKind::scalar(dtype));
    }
    let mut levels = Vec::new();
    let (dtype, instants) = descend(field, &mut levels)?;
    let kind = ColumnKind { levels, inner_nulls: has_nulls_inside(field), instants, ..ColumnKind::scalar(dtype) };
    if kind.rank() > limits::RANK {
        return Err(format!("{} dimensions, of which the format allows {}", kind.rank(), limits::RANK));
    }
    Ok(kind)
}

/// Returns whether a member of a list, at any depth, may be null.
fn has_nulls_inside(field: &Field) -> bool {
    list_item(field).is_some_and(|item| item.is_nullable() || has_nulls_inside(item))
}

/// Returns the members of lists, of a field that has such.
fn list_item(field: &Field) -> Option<&FieldRef> {
    match decoded(field.data_type()) {
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) => Some(item),
        DataType::LargeListView(item) | DataType::FixedSizeList(item, _) => Some(item),
        _ => None,
    }
}

fn check_readable(leaf: &Field) -> Result<(), String> {
    if leaf.metadata().contains_key(ENCRYPTED) { Err("encrypted".to_owned()) } else { Ok(()) }
}

/// Collects the levels of lists down to the elements; their type, and whether they are INT96
/// timestamps.
fn descend(field: &Field, levels: &mut Vec<Level>) -> Result<(DType, bool), String> {
    let data_type = decoded(field.data_type());
    match data_type {
        DataType::FixedSizeList(item, length) => {
            levels.push(Level::Fixed(extension::fixed_extents(field, *length)?));
            descend(item, levels)
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) | DataType::LargeListView(item) => {
            levels.push(Level::Open);
            descend(item, levels)
        }
        _ => {
            check_readable(field)?;
            let dtype = element(data_type).ok_or_else(|| unsupported(data_type, levels.is_empty()))?;
            Ok((dtype, field.metadata().contains_key(INT96)))
        }
    }
}

fn unsupported(data_type: &DataType, outermost: bool) -> String {
    let name = name(data_type);
    if outermost { name } else { format!("lists of {name}") }
}

/// Returns the name that Arrow's documentation has for a type that cannot be stored, or not in a
/// list.
fn name(data_type: &DataType) -> String {
    match data_type {
        DataType::Decimal32(precision, scale) => format!("decimal32({precision}, {scale})"),
        DataType::Decimal64(precision, scale) => format!("decimal64({precision}, {scale})"),
        DataType::Decimal128(precision, scale) => format!("decimal128({precision}, {scale})"),
        DataType::Decimal256(precision, scale) => format!("decimal256({precision}, {scale})"),
        DataType::FixedSizeBinary(bytes) => format!("fixed_size_binary[{bytes}]"),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "utf8".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".to_owned(),
        DataType::Struct(fields) if fields.is_empty() => "a struct without fields".to_owned(),
        DataType::Struct(_) => "struct".to_owned(),
        DataType::Map(..) => "map".to_owned(),
        DataType::Union(..) => "union".to_owned(),
        DataType::Interval(_) => "interval".to_owned(),
        DataType::Null => "null".to_owned(),
        other => other.to_string(),
    }
}

fn string(data_type: &DataType) -> Option<DType> {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(DType::Utf8),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Some(DType::Bytes)
        }
        _ => None,
    }
}
