//! The columns of a schema, as they are stored.

use super::extension;
use super::types::{ENCRYPTED, INT96, REFUSED, decoded, is_nullable, marked_element, marked_type};
use crate::DType;
use crate::arrow_type::{ArrowType, StoredElement};
use crate::import::input_column::{ColumnKind, Level};
use arrow_schema::{DataType, Field, FieldRef};
use std::iter;
use std::result::Result;

/// Returns how a field that is no plain struct is stored, or why it cannot be. It may be a member
/// of lists; `marked` is the type that their field names.
pub(super) fn kind_of(field: &Field, in_list: bool, marked: Option<DType>) -> Result<ColumnKind, String> {
    if let Some(reason) = field.metadata().get(REFUSED) {
        return Err(reason.clone());
    }
    if extension::is_variable_tensor(field) {
        return extension::variable_tensor(field, marked);
    }
    let data_type = decoded(field.data_type());
    if let Some(dtype) = scalar(data_type) {
        check_readable(field)?;
        return Ok(ColumnKind::scalar(dtype));
    }
    let mut levels = Vec::new();
    let leaf = descend(field, in_list, marked, &mut levels)?;
    let items = iter::successors(list_item(field), |item| list_item(item));
    let nullable_members = items.map(|item| is_nullable(item)).collect();
    let kind = ColumnKind { nullable_members, instants: leaf.instants, ..ColumnKind::tensors(leaf.element, levels)? };
    Ok(if leaf.marked == Some(DType::Complex64) { kind.in_pairs() } else { kind })
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

/// The elements in lists.
struct Leaf {
    element: StoredElement,
    /// The type that a field around them names, or their own.
    marked: Option<DType>,
    /// Whether they are INT96 timestamps.
    instants: bool,
}

/// Collects the levels of lists down to the elements. `marked` is the type that a field around them
/// names.
fn descend(field: &Field, in_list: bool, marked: Option<DType>, levels: &mut Vec<Level>) -> Result<Leaf, String> {
    let marked = marked_type(field).or(marked);
    let data_type = decoded(field.data_type());
    match data_type {
        DataType::FixedSizeList(item, length) => {
            levels.push(Level::Fixed(extension::fixed_extents(field, *length)?));
            descend(item, true, marked, levels)
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) | DataType::LargeListView(item) => {
            levels.push(Level::Open);
            descend(item, true, marked, levels)
        }
        _ => {
            check_readable(field)?;
            let element = marked_element(data_type, marked).ok_or_else(|| unsupported(data_type, in_list))?;
            Ok(Leaf { element, marked, instants: field.metadata().contains_key(INT96) })
        }
    }
}

fn unsupported(data_type: &DataType, in_list: bool) -> String {
    let name = name(data_type);
    if in_list { format!("lists of {name}") } else { name }
}

/// Returns the name that Arrow's documentation has for a type that cannot be stored, or not in a
/// list.
fn name(data_type: &DataType) -> String {
    if let Some(known) = ArrowType::from_arrow(data_type) {
        return known.to_string();
    }
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "utf8".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".to_owned(),
        DataType::Struct(fields) if fields.is_empty() => "a struct without fields".to_owned(),
        DataType::Struct(_) => "struct".to_owned(),
        DataType::Map(..) => "map".to_owned(),
        DataType::Union(..) => "union".to_owned(),
        other => other.to_string(),
    }
}

/// Returns the type of columns whose samples are strings, or always null.
fn scalar(data_type: &DataType) -> Option<DType> {
    match data_type {
        DataType::Null => Some(DType::Bool),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(DType::Utf8),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Some(DType::Bytes)
        }
        _ => None,
    }
}
