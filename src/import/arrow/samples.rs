//! The rows of an array as samples.

use super::decoded_bytes::check_rows;
use super::elements::{ArrayElements, outside, shared_nulls};
use super::fixed_width::plain_bytes;
use super::walk::{NoTensors, Tensors, walk};
use crate::DType;
use crate::import::batch::{Nulls, SampleValues, Samples, SharedBytes};
use crate::import::input_column::ColumnKind;
use crate::import::problem::Problem;
use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{Array, ArrayRef, GenericByteArray, GenericByteViewArray};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer};
use arrow_schema::DataType;
use std::iter;
use std::ops::Range;
use std::result::Result;

/// Returns the samples that are the rows of an array; `nulls` are those of them that are null.
pub(super) fn plain_samples(
    array: &ArrayRef,
    nulls: Option<&NullBuffer>,
    kind: &ColumnKind,
) -> Result<Samples, NoTensors> {
    // an array of type null has no bitmap
    let all_null = (array.data_type() == &DataType::Null).then(|| NullBuffer::new_null(array.len()));
    let nulls = all_null.as_ref().or(nulls);
    let shared = shared_nulls(nulls);
    let dtype = kind.dtype;
    let (values, ranges, open_extents, element_nulls) = if dtype.is_string() {
        let (bytes, ranges) = string_bytes(array, nulls)?;
        (SampleValues::Plain(SharedBytes::new(bytes)), ranges, Vec::new(), None)
    } else if dtype == DType::Complex64 {
        return pairs(plain_samples(array, nulls, &kind.of_halves())?);
    } else {
        let Tensors { ranges, open_extents, elements } = walk(array, nulls, kind)?;
        let ArrayElements { values, ranges, nulls: element_nulls } = ArrayElements::of(&elements, ranges, kind)?;
        // the nulls of scalars are null samples
        let is_scalar = kind.list_levels().is_empty() && !kind.variable_tensor;
        let in_tensors = |element_nulls: &Nulls| has_null_element(element_nulls, &ranges, nulls);
        let element_nulls = element_nulls.filter(|element_nulls| !is_scalar && in_tensors(element_nulls));
        (values, ranges, open_extents, element_nulls)
    };
    let lists = Vec::new();
    Ok(Samples { dtype, values, ranges, open_extents, lists, nulls: shared, element_nulls, no_tensor: None })
}

/// Makes complex numbers of the f32 in samples, which end with a dimension of two.
fn pairs(mut halves: Samples) -> Result<Samples, NoTensors> {
    if halves.element_nulls.is_some() {
        return Err(NoTensors::Refused("a null in a complex number".to_owned().into()));
    }
    halves.dtype = DType::Complex64;
    halves.ranges.iter_mut().for_each(|range| *range = range.start / 2..range.end / 2);
    Ok(halves)
}

/// Returns whether a sample that is not null has a null element.
fn has_null_element(element_nulls: &Nulls, ranges: &[Range<usize>], nulls: Option<&NullBuffer>) -> bool {
    let is_valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
    let mut present = ranges.iter().enumerate().filter(|(row, _)| is_valid(*row));
    present.any(|(_, range)| range.clone().any(|element| element_nulls.is_null(element)))
}

/// Returns samples of the nulls of structs: their own, and those of the structs around them.
pub(super) fn struct_samples(count: usize, around: Option<&NullBuffer>, own: Option<&NullBuffer>) -> Samples {
    let is_around = |i: usize| around.is_none_or(|nulls| nulls.is_valid(i));
    let own = own.filter(|nulls| nulls.null_count() > 0);
    let first_null = own.and_then(|own| (0..count).find(|&i| own.is_null(i) && is_around(i)));
    Samples {
        dtype: DType::Bool,
        values: SampleValues::Structs { first_null },
        ranges: vec![0..0; count],
        open_extents: Vec::new(),
        lists: Vec::new(),
        nulls: shared_nulls(NullBuffer::union(around, own).as_ref()),
        element_nulls: None,
        no_tensor: None,
    }
}

/// Returns the bytes of strings, and the range of each.
fn string_bytes(array: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<(Buffer, Vec<Range<usize>>), Problem> {
    Ok(match array.data_type() {
        DataType::Utf8 => string_ranges(array.as_string::<i32>()),
        DataType::LargeUtf8 => string_ranges(array.as_string::<i64>()),
        DataType::Binary => string_ranges(array.as_binary::<i32>()),
        DataType::LargeBinary => string_ranges(array.as_binary::<i64>()),
        DataType::Utf8View | DataType::BinaryView => {
            check_rows(array, iter::once(0..array.len()))?;
            match array.as_string_view_opt() {
                Some(texts) => view_ranges(texts, nulls),
                None => view_ranges(array.as_binary_view(), nulls),
            }
        }
        DataType::FixedSizeBinary(length) => fixed_binary_ranges(array, *length)?,
        other => return Err(format!("a batch has the type {other}, which its schema denies").into()),
    })
}

fn string_ranges<T: ByteArrayType>(array: &GenericByteArray<T>) -> (Buffer, Vec<Range<usize>>) {
    let offsets = array.value_offsets().iter().map(|offset| offset.as_usize());
    let ranges = offsets.clone().zip(offsets.skip(1)).map(|(start, end)| start..end);
    (array.values().clone(), ranges.collect())
}

fn view_ranges<T: ByteViewType>(
    array: &GenericByteViewArray<T>,
    nulls: Option<&NullBuffer>,
) -> (Buffer, Vec<Range<usize>>) {
    let mut bytes = Vec::new();
    let mut ranges = Vec::with_capacity(array.len());
    for (row, value) in array.bytes_iter().enumerate() {
        let start = bytes.len();
        if !nulls.is_some_and(|nulls| nulls.is_null(row)) {
            bytes.extend_from_slice(value);
        }
        ranges.push(start..bytes.len());
    }
    (Buffer::from_vec(bytes), ranges)
}

fn fixed_binary_ranges(array: &ArrayRef, length: i32) -> Result<(Buffer, Vec<Range<usize>>), Problem> {
    let width = usize::try_from(length).map_err(|_| format!("fixed-size binary of {length} bytes"))?;
    let buffer = plain_bytes(array, width).ok_or_else(outside)?;
    // the buffer is as long as all of them together
    Ok((buffer, (0..array.len()).map(|row| row * width..(row + 1) * width).collect()))
}
