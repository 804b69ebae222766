//! Values of an array gathered by index or by range, for dictionaries, runs and list views.
//!
//! `arrow_select::take` would do the same. Its crate is compiled without optimisation, because it
//! takes minutes otherwise.

use super::decoded_bytes::{check_bytes, check_rows, one};
use super::fixed_width::plain_bytes;
use crate::import::problem::Problem;
use arrow_array::builder::GenericByteBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::ByteArrayType;
use arrow_array::{Array, ArrayRef, GenericByteArray, NullArray, make_array};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_data::transform::MutableArrayData;
use arrow_schema::{ArrowError, DataType};
use std::ops::Range;
use std::result::Result;
use std::sync::Arc;

/// Returns the values with these indices, null where `nulls` is. `array` is the array that is
/// decoded, for errors.
pub(super) fn by_index(
    array: &ArrayRef,
    values: &ArrayRef,
    indices: &[usize],
    nulls: Option<&NullBuffer>,
) -> Result<ArrayRef, Problem> {
    let gathered = match values.data_type() {
        DataType::Utf8 => texts_by_index(values.as_string::<i32>(), indices, nulls)?,
        DataType::LargeUtf8 => texts_by_index(values.as_string::<i64>(), indices, nulls)?,
        DataType::Binary => texts_by_index(values.as_binary::<i32>(), indices, nulls)?,
        DataType::LargeBinary => texts_by_index(values.as_binary::<i64>(), indices, nulls)?,
        _ => numbers_by_index(values, indices, nulls),
    };
    if let Some(gathered) = gathered {
        return Ok(gathered);
    }
    let is_valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
    by_range(array, values, indices.iter().enumerate().map(|(row, &i)| is_valid(row).then(|| one(i))))
}

/// Returns texts by their indices. Returns `None` if offsets of their type cannot address as many
/// bytes.
fn texts_by_index<T: ByteArrayType>(
    values: &GenericByteArray<T>,
    indices: &[usize],
    nulls: Option<&NullBuffer>,
) -> Result<Option<ArrayRef>, Problem> {
    let is_valid =
        |row: usize, i: usize| nulls.is_none_or(|nulls| nulls.is_valid(row)) && i < values.len() && values.is_valid(i);
    let rows = || indices.iter().enumerate().map(|(row, &i)| is_valid(row, i).then_some(i));
    let lengths = rows().flatten().map(|i| values.value_length(i).as_usize());
    let byte_count = lengths.fold(0, usize::saturating_add);
    check_bytes(byte_count)?;
    if T::Offset::from_usize(byte_count).is_none() {
        return Ok(None);
    }
    let mut gathered = GenericByteBuilder::<T>::with_capacity(indices.len(), byte_count);
    for row in rows() {
        // the offsets do not overflow: they were added above
        gathered.append_option(row.map(|i| values.value(i)));
    }
    Ok(Some(Arc::new(gathered.finish())))
}

/// Returns numbers by their indices, null where `nulls` is. Returns `None` for other values, and if
/// one of them is null.
fn numbers_by_index(values: &ArrayRef, indices: &[usize], nulls: Option<&NullBuffer>) -> Option<ArrayRef> {
    let width = values.data_type().primitive_width().filter(|_| values.null_count() == 0)?;
    let bytes = plain_bytes(values, width)?;
    // the index of a null may lead nowhere
    let buffer = match width {
        1 => Buffer::from_vec(indices.iter().map(|&i| bytes.get(i).copied().unwrap_or(0)).collect::<Vec<_>>()),
        4 => {
            let words = bytes.as_chunks().0;
            let word = |&i: &usize| words.get(i).map_or(0, |word| u32::from_ne_bytes(*word));
            Buffer::from_vec(indices.iter().map(word).collect::<Vec<_>>())
        }
        8 => {
            let words = bytes.as_chunks().0;
            let word = |&i: &usize| words.get(i).map_or(0, |word| u64::from_ne_bytes(*word));
            Buffer::from_vec(indices.iter().map(word).collect::<Vec<_>>())
        }
        _ => return None,
    };
    let data = ArrayData::builder(values.data_type().clone()).len(indices.len()).nulls(nulls.cloned());
    Some(make_array(data.add_buffer(buffer).build().ok()?))
}

/// Returns the values of these ranges, one after the other, with a null for each `None`. Adjacent
/// ranges are copied at once.
pub(super) fn by_range(
    array: &ArrayRef,
    values: &ArrayRef,
    ranges: impl Iterator<Item = Option<Range<usize>>> + Clone,
) -> Result<ArrayRef, Problem> {
    if values.data_type() == &DataType::Null {
        return Ok(Arc::new(NullArray::new(ranges.map(|range| range.map_or(1, |range| range.len())).sum())));
    }
    check_rows(values, ranges.clone().flatten())?;
    copied(&values.to_data(), ranges, array.len()).map_err(|error| failed(array, &error))
}

fn copied(
    values: &ArrayData,
    ranges: impl Iterator<Item = Option<Range<usize>>>,
    capacity: usize,
) -> Result<ArrayRef, ArrowError> {
    let mut out = MutableArrayData::try_new(vec![values], true, capacity)?;
    let mut pending = 0..0;
    for range in ranges {
        match range {
            Some(range) if range.start == pending.end => pending.end = range.end,
            Some(range) => {
                out.try_extend(0, pending.start, pending.end)?;
                pending = range;
            }
            None => {
                out.try_extend(0, pending.start, pending.end)?;
                out.try_extend_nulls(1)?;
                pending = 0..0;
            }
        }
    }
    out.try_extend(0, pending.start, pending.end)?;
    Ok(make_array(out.freeze()))
}

pub(super) fn failed(array: &ArrayRef, error: &ArrowError) -> Problem {
    format!("decoding {}: {error}", array.data_type()).into()
}
