//! Arrays of values of one type.

use super::value::Json;
use crate::rows::values_per_row;
use std::sync::Arc;
use tensilo::import::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, NullArray, StringArray, StructArray, UInt64Array,
};
use tensilo::import::arrow::buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use tensilo::import::arrow::datatypes::DataType;
use tensilo::import::arrow::error::ArrowError;
use tensilo::{Error, Result};

/// The maximum number of members of all objects in a batch. Arrays are dense: `{}` in a list has a
/// null for each member that another object there has.
pub(super) const BATCH_MEMBERS: usize = 1 << 28;

/// Returns values as an array of their type; `None` stands for a null. `left` is how many members
/// of objects the batch may still have.
pub(super) fn array(data_type: &DataType, values: &[Option<&Json>], left: &mut usize) -> Result<ArrayRef> {
    let values: Vec<Option<&Json>> =
        values.iter().map(|value| value.filter(|value| !matches!(value, Json::Null))).collect();
    let values = values.as_slice();
    Ok(match data_type {
        DataType::Null => Arc::new(NullArray::new(values.len())),
        DataType::Boolean => {
            Arc::new(values.iter().map(|value| value.and_then(Json::as_bool)).collect::<BooleanArray>())
        }
        DataType::Int64 => {
            Arc::new(values.iter().map(|value| value.and_then(Json::as_integer::<i64>)).collect::<Int64Array>())
        }
        DataType::UInt64 => {
            Arc::new(values.iter().map(|value| value.and_then(Json::as_integer::<u64>)).collect::<UInt64Array>())
        }
        DataType::Float64 => {
            Arc::new(values.iter().map(|value| value.and_then(Json::as_float)).collect::<Float64Array>())
        }
        DataType::List(item) => {
            let (mut members, mut ends, mut end) = (Vec::new(), vec![0], 0_i32);
            for value in values {
                let list = value.and_then(Json::as_array).unwrap_or_default();
                members.extend(list.iter().map(Some));
                let count = i32::try_from(list.len()).ok().and_then(|count| end.checked_add(count));
                end = count.ok_or_else(|| Error::bad_input("the arrays of a batch have more than 2^31 - 1 members"))?;
                ends.push(end);
            }
            let members = array(item.data_type(), &members, left)?;
            let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
            let lists = ListArray::try_new(Arc::clone(item), offsets, members, nulls(values));
            Arc::new(lists.map_err(failed)?)
        }
        DataType::Struct(fields) => {
            let member = |name: &str| {
                values.iter().map(|value| value.and_then(|value| value.as_object()?.get(name))).collect::<Vec<_>>()
            };
            let member_count = fields.iter().map(|field| values_per_row(field)).sum::<usize>();
            let fits = values.len().checked_mul(member_count).and_then(|count| left.checked_sub(count));
            *left = fits.ok_or_else(|| {
                let count = values.len();
                Error::bad_input(format!(
                    "{count} objects in lists with {member_count} members each need too much memory"
                ))
            })?;
            let arrays = fields.iter().map(|field| array(field.data_type(), &member(field.name()), left));
            let arrays = arrays.collect::<Result<Vec<_>>>()?;
            let structs = StructArray::try_new_with_length(fields.clone(), arrays, nulls(values), values.len());
            Arc::new(structs.map_err(failed)?)
        }
        _ => Arc::new(values.iter().map(|value| value.and_then(Json::as_text)).collect::<StringArray>()),
    })
}

fn failed(error: ArrowError) -> Error {
    Error::bad_input(error.to_string())
}

fn nulls(values: &[Option<&Json>]) -> Option<NullBuffer> {
    let is_valid: BooleanBuffer = values.iter().map(Option::is_some).collect();
    Some(NullBuffer::new(is_valid)).filter(|nulls| nulls.null_count() > 0)
}
