//! Maps Arrow types to columns: elements, tensors in levels of lists, and the canonical tensor
//! extension types.
//!
//! [`kind_of`] descends from a field through its lists to the elements. Each list is a dimension of
//! a tensor. The type of a fixed-size list fixes the extent; for any other list, the extent depends
//! on the samples. A field can be [marked](marked_type) with an element type that Arrow does not
//! have.

use crate::import::plan::input_column::{ColumnKind, Level};
use crate::logical::arrow_type::{
    ArrowType, DTYPE, FIXED_SHAPE_TENSOR as FIXED, StoredElement, VARIABLE_SHAPE_TENSOR as VARIABLE, is_tensor,
    stored_element,
};
use crate::logical::saved_schema::NAME;
use crate::{DType, limits};
use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field, FieldRef};
use serde_json::Value;
use std::iter;
use std::result::Result;

/// Metadata key of a field whose elements are INT96 timestamps. Each is read as 12 bytes.
pub(in crate::import) const INT96: &str = "PARQUET:int96";
/// Metadata key of a field whose values are encrypted.
pub(in crate::import) const ENCRYPTED: &str = "PARQUET:encrypted";

/// Metadata key of a field whose values cannot be stored. The value is the reason.
pub(in crate::import) const REFUSED: &str = "tensilo.refused";
/// The marks that importers set on fields. They are ignored in the schema of an input.
pub(super) const MARKS: [&str; 4] = [INT96, ENCRYPTED, REFUSED, NAME];

/// Returns the type that the metadata of a field names; see [`DTYPE`].
pub(in crate::import) fn marked_type(field: &Field) -> Option<DType> {
    field.metadata().get(DTYPE)?.parse().ok()
}

/// Returns the form in which marked elements of a tensor are pushed. A complex number is pushed as
/// two f32. A mark that does not fit the type is ignored.
fn marked_element(data_type: &DataType, marked: Option<DType>) -> Option<StoredElement> {
    match (data_type, marked) {
        (DataType::UInt16, Some(DType::Bf16)) => Some(StoredElement::one(DType::Bf16)),
        (DataType::UInt8, Some(small)) if small.is_small() => Some(StoredElement::one(small)),
        _ => element(data_type),
    }
}

/// Returns the value type of a dictionary- or run-end-encoded type.
pub(in crate::import) fn decoded(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => decoded(values),
        DataType::RunEndEncoded(_, values) => decoded(values.data_type()),
        _ => data_type,
    }
}

/// Returns the type of the elements inside lists. Its name is recorded in the metadata.
pub(in crate::import) fn element_type(data_type: &DataType) -> &DataType {
    list_item(data_type).map_or(decoded(data_type), |item| element_type(item.data_type()))
}

/// Returns whether samples of a field may be null. In a run-end encoded array, the values have the
/// nulls.
pub(super) fn is_nullable(field: &Field) -> bool {
    let has_null_runs = |data_type: &DataType| match data_type {
        DataType::RunEndEncoded(_, values) => is_nullable(values),
        _ => false,
    };
    field.is_nullable() || has_null_runs(field.data_type())
}

/// Returns whether all values of a type are null.
pub(in crate::import) fn is_null(data_type: &DataType) -> bool {
    decoded(data_type) == &DataType::Null
}

/// Returns the form in which elements of a tensor are pushed.
pub(in crate::import) fn element(data_type: &DataType) -> Option<StoredElement> {
    let dtype = match data_type {
        DataType::Boolean => DType::Bool,
        DataType::Int8 => DType::I8,
        DataType::Int16 => DType::I16,
        DataType::Int32 => DType::I32,
        DataType::Int64 => DType::I64,
        DataType::UInt8 => DType::U8,
        DataType::UInt16 => DType::U16,
        DataType::UInt32 => DType::U32,
        DataType::UInt64 => DType::U64,
        DataType::Float16 => DType::F16,
        DataType::Float32 => DType::F32,
        DataType::Float64 => DType::F64,
        DataType::Date32
        | DataType::Date64
        | DataType::Time32(_)
        | DataType::Time64(_)
        | DataType::Timestamp(_, _)
        | DataType::Duration(_) => DType::I64,
        _ => return stored_element(data_type),
    };
    Some(StoredElement::one(dtype))
}

/// Returns how a field that is not a plain struct is stored, or the reason why it cannot be stored.
/// If the field holds the members of lists, `marked` is the type that the field of the lists names.
pub(super) fn kind_of(field: &Field, in_list: bool, marked: Option<DType>) -> Result<ColumnKind, String> {
    if let Some(reason) = field.metadata().get(REFUSED) {
        return Err(reason.clone());
    }
    if is_variable_tensor(field) {
        return variable_tensor(field, marked);
    }
    let data_type = decoded(field.data_type());
    if let Some(dtype) = scalar(data_type) {
        check_readable(field)?;
        return Ok(ColumnKind::scalar(dtype));
    }
    let mut levels = Vec::new();
    let leaf = descend(field, in_list, marked, &mut levels)?;
    let items = iter::successors(list_item(field.data_type()), |item| list_item(item.data_type()));
    let nullable_members = items.map(|item| is_nullable(item)).collect();
    let kind = ColumnKind { nullable_members, instants: leaf.instants, ..ColumnKind::tensors(leaf.element, levels)? };
    Ok(if leaf.marked == Some(DType::Complex64) { kind.into_complex() } else { kind })
}

/// Returns the field of the list members, if the type is a list that can form a dimension.
fn list_item(data_type: &DataType) -> Option<&FieldRef> {
    match decoded(data_type) {
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) => Some(item),
        DataType::LargeListView(item) | DataType::FixedSizeList(item, _) => Some(item),
        _ => None,
    }
}

fn check_readable(leaf: &Field) -> Result<(), String> {
    if leaf.metadata().contains_key(ENCRYPTED) { Err("encrypted".to_owned()) } else { Ok(()) }
}

/// The elements inside lists.
struct Leaf {
    element: StoredElement,
    /// The type named by the field of the elements or by an enclosing field.
    marked: Option<DType>,
    /// Whether the elements are INT96 timestamps.
    instants: bool,
}

/// Collects the levels of lists down to the elements. `marked` is the type that an enclosing field
/// names.
fn descend(field: &Field, in_list: bool, marked: Option<DType>, levels: &mut Vec<Level>) -> Result<Leaf, String> {
    let marked = marked_type(field).or(marked);
    let data_type = decoded(field.data_type());
    match data_type {
        DataType::FixedSizeList(item, length) => {
            levels.push(Level::Fixed(fixed_extents(field, *length)?));
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

/// Returns the name of a type that cannot be stored, or that cannot be stored in lists. The name is
/// the one that Arrow's documentation uses.
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

/// Returns the type of a column whose samples are strings, or are all null. Returns `None` for any
/// other column.
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

pub(super) fn is_variable_tensor(field: &Field) -> bool {
    field.extension_type_name() == Some(VARIABLE)
}

/// Returns whether the column's shape expresses what the field's metadata states under this key.
pub(super) fn expressed_by_shape(field: &Field, key: &str) -> bool {
    is_tensor(field) && matches!(key, EXTENSION_TYPE_NAME_KEY | EXTENSION_TYPE_METADATA_KEY)
}

/// Returns the names of the dimensions as a JSON array, if the field has any.
pub(super) fn dim_names(field: &Field) -> Option<String> {
    if !is_tensor(field) {
        return None;
    }
    let parameters = parameters(field).ok()?;
    let names = parameters.get("dim_names")?.as_array()?;
    (!names.is_empty()).then(|| Value::Array(names.clone()).to_string())
}

/// Returns the extents of a fixed-size list: the shape if the list is a fixed-shape tensor,
/// otherwise the length.
pub(super) fn fixed_extents(field: &Field, length: i32) -> Result<Vec<u32>, String> {
    let length = u32::try_from(length).map_err(|_| format!("a fixed-size list of the negative length {length}"))?;
    if field.extension_type_name() != Some(FIXED) {
        return Ok(vec![length]);
    }
    let parameters = parameters(field)?;
    let shape = parameters.get("shape").and_then(Value::as_array);
    let shape = shape.ok_or_else(|| format!("{FIXED} without a shape"))?;
    let extents: Option<Vec<u32>> = shape.iter().map(extent).collect();
    let extents = extents.ok_or_else(|| format!("{FIXED} with invalid extents in its shape"))?;
    let elements = extents.iter().try_fold(1_u32, |product, &extent| product.checked_mul(extent));
    if elements != Some(length) {
        return Err(format!("{FIXED} of shape {extents:?}, but with lists of {length} elements"));
    }
    check_permutation(&parameters, FIXED)?;
    Ok(extents)
}

/// Returns the kind of a variable-shape tensor: a struct with the fields `data` (a list of
/// elements) and `shape` (a fixed-size list of i32). `marked` is the type that an enclosing field
/// names.
pub(super) fn variable_tensor(field: &Field, marked: Option<DType>) -> Result<ColumnKind, String> {
    let malformed = || format!("{VARIABLE} that is not stored as a struct of data (list) and shape (i32 list)");
    let DataType::Struct(fields) = field.data_type() else { return Err(malformed()) };
    let child = |name| fields.iter().find(|field| field.name() == name).map(|field| field.data_type());
    let (Some(DataType::List(data) | DataType::LargeList(data)), Some(DataType::FixedSizeList(shape, ndim))) =
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
    let ndim = usize::try_from(*ndim).map_err(|_| malformed())?;
    if ndim > limits::DIMENSIONS {
        return Err(format!("{ndim} dimensions, but the format allows {}", limits::DIMENSIONS));
    }
    let parameters = parameters(field)?;
    check_permutation(&parameters, VARIABLE)?;
    let levels = match parameters.get("uniform_shape").and_then(Value::as_array) {
        None => vec![Level::Open; ndim],
        Some(uniform) if uniform.len() == ndim => {
            uniform.iter().map(uniform_level).collect::<Option<_>>().ok_or_else(malformed)?
        }
        Some(_) => return Err(format!("{VARIABLE} whose uniform_shape does not have {ndim} extents")),
    };
    let kind = ColumnKind { variable_tensor: true, ..ColumnKind::tensors(element, levels)? };
    Ok(if marked == Some(DType::Complex64) { kind.into_complex() } else { kind })
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

/// Returns the parameters of the extension type: a JSON object, or null if there are none.
fn parameters(field: &Field) -> Result<Value, String> {
    match field.extension_type_metadata() {
        None | Some("") => Ok(Value::Null),
        Some(text) => {
            serde_json::from_str(text).map_err(|error| format!("tensor parameters are not valid JSON ({error})"))
        }
    }
}

/// Refuses a permutation: the logical order of dimensions must be the order in memory.
fn check_permutation(parameters: &Value, name: &str) -> Result<(), String> {
    let Some(permutation) = parameters.get("permutation").and_then(Value::as_array) else { return Ok(()) };
    let identity = (0_u64..).zip(permutation).all(|(i, value)| value.as_u64() == Some(i));
    if identity {
        return Ok(());
    }
    Err(format!("{name} whose dimensions are permuted (store it row-major)"))
}
