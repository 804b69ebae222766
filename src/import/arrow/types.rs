//! Arrow's types and the types of elements.

use crate::DType;
use crate::arrow_type::{DTYPE, StoredElement, stored_element};
use arrow_schema::{DataType, Field};

/// In the metadata of a field: its elements are INT96 timestamps, read as 12 bytes each.
pub(in crate::import) const INT96: &str = "PARQUET:int96";
/// In the metadata of a field: its values are encrypted.
pub(in crate::import) const ENCRYPTED: &str = "PARQUET:encrypted";

/// In the metadata of a field: the reason why its values cannot be stored.
pub(in crate::import) const REFUSED: &str = "tensilo.refused";

/// Returns the type that the metadata of a field name, see [`DTYPE`].
pub(in crate::import) fn marked_type(field: &Field) -> Option<DType> {
    field.metadata().get(DTYPE)?.parse().ok()
}

/// Returns the form in which marked elements of a tensor are pushed. A mark that does not fit the
/// type is ignored. Those of complex numbers are pushed as f32.
pub(in crate::import) fn marked_element(data_type: &DataType, marked: Option<DType>) -> Option<StoredElement> {
    match (data_type, marked) {
        (DataType::UInt16, Some(DType::Bf16)) => Some(StoredElement::one(DType::Bf16)),
        (DataType::UInt8, Some(small)) if small.is_small() => Some(StoredElement::one(small)),
        _ => element(data_type),
    }
}

/// Returns the type behind encodings of a whole array.
pub(in crate::import) fn decoded(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => decoded(values),
        DataType::RunEndEncoded(_, values) => decoded(values.data_type()),
        _ => data_type,
    }
}

/// Returns the type whose name goes into the metadata: that of the elements.
pub(in crate::import) fn element_type(data_type: &DataType) -> &DataType {
    match decoded(data_type) {
        DataType::FixedSizeList(item, _)
        | DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => element_type(item.data_type()),
        other => other,
    }
}

/// Returns whether samples of a field may be null. Runs have no nulls of their own.
pub(super) fn is_nullable(field: &Field) -> bool {
    let has_null_runs = |data_type: &DataType| match data_type {
        DataType::RunEndEncoded(_, values) => is_nullable(values),
        _ => false,
    };
    field.is_nullable() || has_null_runs(field.data_type())
}

/// Returns whether all values of an array are null by its type.
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
