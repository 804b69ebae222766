//! Lists of one sort as lists of another.

use super::mismatch::mismatch;
use crate::export::sample_size::NULL_BYTES;
use crate::le::u64_of;
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, GenericListViewArray, MapArray, OffsetSizeTrait, make_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{ArrowError, DataType};
use std::sync::Arc;

/// The lists of an array.
struct ListParts {
    offsets: OffsetBuffer<i32>,
    members: ArrayRef,
    nulls: Option<NullBuffer>,
}

/// Returns lists of a type, whose members `change` changes.
pub(super) fn retyped(
    array: &ArrayRef,
    to: &DataType,
    mut change: impl FnMut(&ArrayRef) -> Result<ArrayRef, ArrowError>,
) -> Result<ArrayRef, ArrowError> {
    if let (DataType::FixedSizeList(field, length), Some(lists)) = (to, array.as_fixed_size_list_opt()) {
        let (members, nulls) = (change(lists.values())?, lists.nulls().cloned());
        let lists = FixedSizeListArray::try_new_with_length(field.clone(), *length, members, nulls, lists.len())?;
        return Ok(Arc::new(lists));
    }
    let ListParts { offsets, members, nulls } = lists(array, to)?;
    let members = match to {
        DataType::FixedSizeList(_, length) => padded(&members, &offsets, nulls.as_ref(), *length)?,
        _ => members,
    };
    let members = change(&members)?;
    Ok(match to {
        DataType::List(field) => Arc::new(GenericListArray::try_new(field.clone(), offsets, members, nulls)?),
        DataType::LargeList(field) => {
            let wide = offsets.iter().map(|&offset| i64::from(offset)).collect();
            let offsets = OffsetBuffer::new(wide); // they ascend as before
            Arc::new(GenericListArray::try_new(field.clone(), offsets, members, nulls)?)
        }
        DataType::ListView(field) => {
            let (starts, sizes) = views::<i32>(&offsets);
            Arc::new(GenericListViewArray::try_new(field.clone(), starts.into(), sizes.into(), members, nulls)?)
        }
        DataType::LargeListView(field) => {
            let (starts, sizes) = views::<i64>(&offsets);
            Arc::new(GenericListViewArray::try_new(field.clone(), starts.into(), sizes.into(), members, nulls)?)
        }
        DataType::FixedSizeList(field, length) => {
            let count = offsets.len().saturating_sub(1);
            Arc::new(FixedSizeListArray::try_new_with_length(field.clone(), *length, members, nulls, count)?)
        }
        DataType::Map(field, sorted) => {
            let entries = members.as_struct_opt().ok_or_else(|| mismatch(array, to))?.clone();
            Arc::new(MapArray::try_new(field.clone(), offsets, entries, nulls, *sorted)?)
        }
        _ => return Err(mismatch(array, to)),
    })
}

fn lists(array: &ArrayRef, to: &DataType) -> Result<ListParts, ArrowError> {
    if let Some(lists) = array.as_list_opt::<i32>() {
        let (offsets, members) = (lists.offsets().clone(), lists.values().clone());
        return Ok(ListParts { offsets, members, nulls: lists.nulls().cloned() });
    }
    let lists = array.as_fixed_size_list_opt().ok_or_else(|| mismatch(array, to))?;
    let offsets = (0..=lists.len()).map(|i| {
        let length = usize::try_from(lists.value_length()).unwrap_or(0); // not negative
        i.checked_mul(length).and_then(|offset| i32::try_from(offset).ok())
    });
    let offsets: Option<Vec<i32>> = offsets.collect();
    let offsets = offsets.ok_or(ArrowError::OffsetOverflowError(lists.values().len()))?;
    // a multiple of one length each
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(ListParts { offsets, members: lists.values().clone(), nulls: lists.nulls().cloned() })
}

/// Returns start and length of each list.
fn views<O: OffsetSizeTrait + From<i32>>(offsets: &[i32]) -> (Vec<O>, Vec<O>) {
    let lengths = offsets.iter().zip(offsets.iter().skip(1));
    lengths.map(|(&start, &end)| (O::from(start), O::from(end.saturating_sub(start)))).unzip()
}

/// Returns the bytes that a null takes in an array of a type, at least 1.
fn null_bytes(data_type: &DataType) -> u64 {
    let bytes = match data_type {
        DataType::FixedSizeBinary(bytes) => u64::try_from(*bytes).unwrap_or(0), // not negative
        DataType::FixedSizeList(item, length) => {
            let length = u64::try_from(*length).unwrap_or(0); // not negative
            length.saturating_mul(null_bytes(item.data_type()))
        }
        DataType::Struct(fields) => {
            fields.iter().fold(0, |sum, field| null_bytes(field.data_type()).saturating_add(sum))
        }
        // others are offsets of 4 bytes
        other => other.primitive_width().map_or(4, u64_of),
    };
    bytes.max(1)
}

/// Returns the members of lists that all have one length, null lists included.
fn padded(
    members: &ArrayRef,
    offsets: &OffsetBuffer<i32>,
    nulls: Option<&NullBuffer>,
    length: i32,
) -> Result<ArrayRef, ArrowError> {
    let data = members.to_data();
    let due = usize::try_from(length).unwrap_or(0); // not negative
    let in_nulls = u64_of(nulls.map_or(0, NullBuffer::null_count)).saturating_mul(u64_of(due));
    let member_bytes = null_bytes(members.data_type());
    let bytes = in_nulls.saturating_mul(member_bytes);
    if bytes > u64_of(data.len()).saturating_mul(member_bytes).saturating_add(NULL_BYTES) {
        let message = format!("null lists of {length} members take {bytes} bytes, which is too much");
        return Err(ArrowError::InvalidArgumentError(message));
    }
    let mut padded = MutableArrayData::new(vec![&data], true, data.len());
    for (i, (start, end)) in offsets.iter().zip(offsets.iter().skip(1)).enumerate() {
        if nulls.is_some_and(|nulls| nulls.is_null(i)) {
            padded.try_extend_nulls(due)?;
            continue;
        }
        if end.checked_sub(*start) != Some(length) {
            let message = format!("a list from {start} to {end} among lists of {length} members");
            return Err(ArrowError::InvalidArgumentError(message));
        }
        // not negative
        let range = usize::try_from(*start).unwrap_or(0)..usize::try_from(*end).unwrap_or(0);
        padded.try_extend(0, range.start, range.end)?;
    }
    Ok(make_array(padded.freeze()))
}
