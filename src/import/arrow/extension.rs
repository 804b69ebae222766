//! The canonical tensor extension types of Arrow.

use super::types::{decoded, marked_element, marked_type};
use crate::arrow_type::{FIXED_SHAPE_TENSOR as FIXED, VARIABLE_SHAPE_TENSOR as VARIABLE, is_tensor};
use crate::import::input_column::{ColumnKind, Level};
use crate::{DType, limits};
use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field};
use serde_json::Value;
use std::result::Result;

pub(super) fn is_variable_tensor(field: &Field) -> bool {
    field.extension_type_name() == Some(VARIABLE)
}

/// Returns whether a metadata key of the field is expressed by the column's shape.
pub(super) fn expressed_by_shape(field: &Field, key: &str) -> bool {
    is_tensor(field) && matches!(key, EXTENSION_TYPE_NAME_KEY | EXTENSION_TYPE_METADATA_KEY)
}

/// Returns the names of the dimensions, as a JSON array, if the field has some.
pub(super) fn dim_names(field: &Field) -> Option<String> {
    if !is_tensor(field) {
        return None;
    }
    let parameters = parameters(field).ok()?;
    let names = parameters.get("dim_names")?.as_array()?;
    (!names.is_empty()).then(|| Value::Array(names.clone()).to_string())
}

/// Returns the extents of a fixed-size list: its length, or the shape of a tensor that has this
/// number of elements.
pub(super) fn fixed_extents(field: &Field, length: i32) -> Result<Vec<u32>, String> {
    let length = u32::try_from(length).map_err(|_| format!("a fixed-size list of length {length}"))?;
    if field.extension_type_name() != Some(FIXED) {
        return Ok(vec![length]);
    }
    let parameters = parameters(field)?;
    let shape = parameters.get("shape").and_then(Value::as_array);
    let shape = shape.ok_or_else(|| format!("{FIXED} without a shape"))?;
    let extents: Option<Vec<u32>> = shape.iter().map(extent).collect();
    let extents = extents.ok_or_else(|| format!("{FIXED} with a shape that is not made of lengths"))?;
    let elements = extents.iter().try_fold(1_u32, |product, &extent| product.checked_mul(extent));
    if elements != Some(length) {
        return Err(format!("{FIXED} of shape {extents:?}, stored as lists of {length}"));
    }
    check_permutation(&parameters, FIXED)?;
    Ok(extents)
}

/// Returns the kind of a variable-shape tensor: a struct of `data`, a list of elements, and
/// `shape`, a fixed-size list of i32. `marked` is the type that a field around it names.
pub(super) fn variable_tensor(field: &Field, marked: Option<DType>) -> Result<ColumnKind, String> {
    let malformed = || format!("{VARIABLE} that is not stored as a struct of data (list) and shape (i32 list)");
    let DataType::Struct(fields) = field.data_type() else { return Err(malformed()) };
    let child = |name| fields.iter().find(|field| field.name() == name).map(|field| field.data_type());
    let (Some(DataType::List(data) | DataType::LargeList(data)), Some(DataType::FixedSizeList(shape, rank))) =
        (child("data"), child("shape"))
    else {
        return Err(malformed());
    };
    if *shape.data_type() != DataType::Int32 {
        return Err(malformed());
    }
    let marked = marked_type(data).or_else(|| marked_type(field)).or(marked);
    let element = marked_element(decoded(data.data_type()), marked);
    let element = element.ok_or_else(|| format!("tensors of {}", data.data_type()))?;
    let rank = usize::try_from(*rank).map_err(|_| malformed())?;
    if rank > limits::RANK {
        return Err(format!("{rank} dimensions, of which the format allows {}", limits::RANK));
    }
    let parameters = parameters(field)?;
    check_permutation(&parameters, VARIABLE)?;
    let levels = match parameters.get("uniform_shape").and_then(Value::as_array) {
        None => vec![Level::Open; rank],
        Some(uniform) if uniform.len() == rank => {
            uniform.iter().map(uniform_level).collect::<Option<_>>().ok_or_else(malformed)?
        }
        Some(_) => return Err(format!("{VARIABLE} whose uniform_shape does not have {rank} extents")),
    };
    let kind = ColumnKind { variable_tensor: true, ..ColumnKind::tensors(element, levels)? };
    Ok(if marked == Some(DType::Complex64) { kind.in_pairs() } else { kind })
}

fn uniform_level(value: &Value) -> Option<Level> {
    match value {
        Value::Null => Some(Level::Open),
        value => extent(value).map(|extent| Level::Fixed(vec![extent])),
    }
}

fn extent(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|extent| u32::try_from(extent).ok())
}

/// Returns the extension's parameters: a JSON object, or nothing.
fn parameters(field: &Field) -> Result<Value, String> {
    match field.extension_type_metadata() {
        None | Some("") => Ok(Value::Null),
        Some(text) => {
            serde_json::from_str(text).map_err(|error| format!("tensor parameters that are no JSON ({error})"))
        }
    }
}

/// Refuses a logical order of the dimensions that is not that of the elements.
fn check_permutation(parameters: &Value, name: &str) -> Result<(), String> {
    let Some(permutation) = parameters.get("permutation").and_then(Value::as_array) else { return Ok(()) };
    let identity = (0_u64..).zip(permutation).all(|(i, value)| value.as_u64() == Some(i));
    if identity {
        return Ok(());
    }
    Err(format!("{name} whose dimensions are permuted (store it row-major)"))
}
