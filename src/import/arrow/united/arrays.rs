//! Arrays of the types that inputs have together.

use crate::import::arrow::decode::by_index;
use crate::import::rows::Problem;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, GenericListArray, OffsetSizeTrait, PrimitiveArray, StructArray, new_null_array,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use std::sync::Arc;

/// Returns an array of a field whose type is `from` as one of the type `to`, which
/// [`aligned`](super::aligned) gave. The row of a problem is an entry of the array.
pub(in crate::import::arrow) fn adapted(array: &ArrayRef, from: &DataType, to: &DataType) -> Result<ArrayRef, Problem> {
    if from == to {
        return Ok(Arc::clone(array)); // some are read raw, and have another type than their field
    }
    match (from, to) {
        (DataType::Null, _) => Ok(new_null_array(to, array.len())),
        (DataType::Struct(own), DataType::Struct(targets)) => {
            let parent = array.as_struct_opt().ok_or_else(mismatch)?;
            let known = parent.columns().iter().zip(own).zip(targets);
            let known = known.map(|((array, own), target)| adapted(array, own.data_type(), target.data_type()));
            let added = targets.iter().skip(own.len());
            let added = added.map(|field| Ok(new_null_array(field.data_type(), array.len())));
            let arrays = known.chain(added).collect::<Result<Vec<_>, _>>()?;
            let fields = arrays.iter().zip(targets).map(|(array, target)| field_of(target.name(), array));
            let nulls = parent.nulls().cloned();
            let structs = StructArray::try_new_with_length(fields.collect(), arrays, nulls, array.len());
            Ok(Arc::new(structs.map_err(failed)?))
        }
        (DataType::List(own), DataType::List(target)) => lists::<i32>(array, own.data_type(), target.data_type()),
        (DataType::LargeList(own), DataType::LargeList(target)) => {
            lists::<i64>(array, own.data_type(), target.data_type())
        }
        (_, DataType::List(item)) => lists_of_one(array, from, item.data_type()),
        (DataType::Int64, DataType::Float64) => numbers::<Int64Type, Float64Type>(array, |value| {
            let float = value as f64;
            (float as i128 == i128::from(value)).then_some(float).ok_or_else(|| no_float(value.into()))
        }),
        (DataType::UInt64, DataType::Float64) => numbers::<UInt64Type, Float64Type>(array, |value| {
            let float = value as f64;
            (float as i128 == i128::from(value)).then_some(float).ok_or_else(|| no_float(value.into()))
        }),
        (DataType::Int64, DataType::UInt64) => numbers::<Int64Type, UInt64Type>(array, |value| {
            u64::try_from(value).map_err(|_| format!("{value} is negative, and other inputs have integers beyond i64"))
        }),
        _ => Err(mismatch()),
    }
}

fn no_float(integer: i128) -> String {
    format!("no f64 equals the integer {integer}, and other inputs have floats in this column")
}

fn mismatch() -> Problem {
    Problem::from("a batch has other columns than its schema".to_owned())
}

fn failed(error: ArrowError) -> Problem {
    Problem::from(error.to_string())
}

fn field_of(name: &str, array: &ArrayRef) -> FieldRef {
    Arc::new(Field::new(name, array.data_type().clone(), true))
}

fn lists<O: OffsetSizeTrait>(array: &ArrayRef, from: &DataType, to: &DataType) -> Result<ArrayRef, Problem> {
    let lists = array.as_list_opt::<O>().ok_or_else(mismatch)?;
    let offsets = lists.offsets();
    let (start, end) = (offsets.first(), offsets.last());
    let (first, end) = (start.as_usize(), end.as_usize());
    // a slice of a batch has a part of the members
    let own = lists.values().slice(first, end.saturating_sub(first));
    let members = adapted(&own, from, to).map_err(|problem| {
        let list_of = |entry: usize| offsets.partition_point(|o| o.as_usize() <= entry.saturating_add(first));
        Problem { row: problem.row.map(|entry| list_of(entry).saturating_sub(1)), ..problem }
    })?;
    let offsets = OffsetBuffer::new(ScalarBuffer::from_iter(offsets.iter().map(|&offset| offset - start)));
    let lists = GenericListArray::<O>::try_new(field_of("item", &members), offsets, members, lists.nulls().cloned());
    Ok(Arc::new(lists.map_err(failed)?))
}

/// Makes a list of each value; null values are null lists.
fn lists_of_one(array: &ArrayRef, from: &DataType, to: &DataType) -> Result<ArrayRef, Problem> {
    let values = adapted(array, from, to)?;
    let valid: Vec<usize> = (0..array.len()).filter(|&i| array.is_valid(i)).collect();
    let members = if array.null_count() == 0 { values } else { by_index(&values, &values, &valid, None)? };
    let offsets = OffsetBuffer::from_lengths((0..array.len()).map(|i| usize::from(array.is_valid(i))));
    let lists = GenericListArray::<i32>::try_new(field_of("item", &members), offsets, members, array.nulls().cloned());
    Ok(Arc::new(lists.map_err(failed)?))
}

fn numbers<A: ArrowPrimitiveType, B: ArrowPrimitiveType>(
    array: &ArrayRef,
    number: impl Fn(A::Native) -> Result<B::Native, String>,
) -> Result<ArrayRef, Problem> {
    let values = array.as_primitive_opt::<A>().ok_or_else(mismatch)?;
    let numbers = values
        .iter()
        .enumerate()
        .map(|(i, value)| value.map(&number).transpose().map_err(|message| Problem::at(i, message)));
    Ok(Arc::new(numbers.collect::<Result<PrimitiveArray<B>, Problem>>()?))
}

/// Returns about the bytes of a null of a type.
pub(in crate::import::arrow) fn null_bytes(data_type: &DataType) -> usize {
    /// Of offsets and bitmaps.
    const OTHER_BYTES: usize = 16;
    match data_type {
        DataType::Struct(fields) => {
            fields.iter().fold(OTHER_BYTES, |bytes, field| bytes.saturating_add(null_bytes(field.data_type())))
        }
        DataType::FixedSizeList(item, length) => {
            usize::try_from(*length).unwrap_or(0).saturating_mul(null_bytes(item.data_type()))
        }
        DataType::FixedSizeBinary(bytes) => usize::try_from(*bytes).unwrap_or(0),
        other => other.primitive_width().unwrap_or(OTHER_BYTES),
    }
}
