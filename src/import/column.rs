//! One column of a record batch, as it is pushed into the writer.

use super::assemble::{Piece, concatenate, concatenate_fixed, validity};
use super::decode::decode;
use super::elements::{Elements, element_bytes, outside, plain_bytes};
use super::plan::Column;
use super::problem::Problem;
use super::shape::sample_shape;
use super::types::{Level, element};
use super::value_text::StoredValue;
use super::walk::{Samples, UNKNOWN, walk};
use super::{NullElements, int96};
use crate::{Advice, DType, Extent, Shape, arrow_type};
use arrow_array::cast::AsArray;
use arrow_array::types::{ByteArrayType, ByteViewType};
use arrow_array::{Array, ArrayRef, GenericByteArray, GenericByteViewArray, RecordBatch};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer};
use arrow_schema::DataType;
use std::ops::Range;
use std::result::Result;

/// A column's array, and which of its rows are null, be it that a struct around it is.
pub(super) struct Located {
    pub array: ArrayRef,
    pub nulls: Option<NullBuffer>,
}

/// Finds a column in a batch; `fields` are the fields of the schema that the batch has.
pub(super) fn locate(batch: &RecordBatch, fields: &[usize], path: &[usize]) -> Result<Located, Problem> {
    let mismatch = || Problem::from("a batch has other columns than its schema".to_owned());
    let (root, rest) = path.split_first().ok_or_else(mismatch)?;
    let position = fields.binary_search(root).map_err(|_| mismatch())?;
    let mut array = batch.columns().get(position).ok_or_else(mismatch)?.clone();
    let mut nulls: Option<NullBuffer> = None;
    for &child in rest {
        let parent = array.as_struct_opt().ok_or_else(mismatch)?;
        nulls = NullBuffer::union(nulls.as_ref(), parent.nulls());
        let child = parent.columns().get(child).ok_or_else(mismatch)?.clone();
        array = child;
    }
    let array = decode(&array)?;
    let nulls = NullBuffer::union(nulls.as_ref(), array.nulls());
    Ok(Located { array, nulls })
}

/// Converts the samples of a column, whose shape is known by now.
pub(super) fn convert(
    located: &Located,
    column: &Column,
    shape: &Shape,
    null_elements: NullElements,
) -> Result<Piece, Problem> {
    let nulls = located.nulls.as_ref().filter(|nulls| nulls.null_count() > 0);
    if let Some(nulls) = nulls.filter(|_| !column.nullable) {
        let row = (0..nulls.len()).find(|&row| nulls.is_null(row));
        let problem = Problem::at(row.unwrap_or(0), "a null in a column that is declared to have none");
        return Err(problem.advising([Advice::SkipColumns]));
    }
    let (extents, values) = if column.kind.dtype.is_string() {
        strings(&located.array, nulls)?
    } else {
        tensors(&located.array, nulls, column, shape, null_elements)?
    };
    let sample_count = located.array.len();
    Ok(Piece { dtype: column.kind.dtype, sample_count, extents, values, validity: validity(nulls) })
}

/// The values of a column without dimensions, one by one.
pub(super) struct Values {
    dtype: DType,
    arrow_type: Option<String>,
    bytes: Buffer,
    ranges: Vec<Range<usize>>,
    nulls: Option<NullBuffer>,
}

impl Values {
    pub(super) fn of(array: &ArrayRef) -> Result<Self, Problem> {
        let array = decode(array)?;
        let (dtype, bytes, ranges) = match element(array.data_type()) {
            Some(dtype) => {
                let (bytes, width) = (element_bytes(&array, dtype, None)?, dtype.element_bytes());
                let ranges = (0..array.len()).map(|row| row * width..(row + 1) * width); // inside the buffer
                (dtype, bytes, ranges.collect())
            }
            None => {
                let (bytes, ranges) = string_bytes(&array, array.nulls())?;
                (DType::Bytes, bytes, ranges)
            }
        };
        let arrow_type = arrow_type::to_text(array.data_type()).filter(|_| !dtype.is_string());
        Ok(Self { dtype, arrow_type, bytes, ranges, nulls: array.nulls().cloned() })
    }

    /// `None`: a null.
    pub(super) fn get(&self, row: usize) -> Option<StoredValue<'_>> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        let bytes = self.bytes.get(self.ranges.get(row)?.clone())?;
        Some(StoredValue { dtype: self.dtype, arrow_type: self.arrow_type.as_deref(), bytes })
    }
}

/// Lengths, and bytes one after the other.
fn strings(array: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<(Vec<u32>, Buffer), Problem> {
    let (buffer, mut ranges) = string_bytes(array, nulls)?;
    if let Some(nulls) = nulls {
        ranges.iter_mut().enumerate().filter(|(row, _)| nulls.is_null(*row)).for_each(|(_, range)| *range = 0..0);
    }
    let length = |(row, range): (usize, &Range<usize>)| {
        let length = u32::try_from(range.len()).ok().filter(|&length| length <= crate::limits::EXTENT);
        length.ok_or_else(|| Problem::at(row, format!("a string of {} bytes is too long", range.len())))
    };
    let lengths = ranges.iter().enumerate().map(length).collect::<Result<_, _>>()?;
    Ok((lengths, concatenate(&buffer, &ranges).ok_or_else(outside)?))
}

/// The bytes of strings, and where each lies in them.
fn string_bytes(array: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<(Buffer, Vec<Range<usize>>), Problem> {
    Ok(match array.data_type() {
        DataType::Utf8 => string_ranges(array.as_string::<i32>()),
        DataType::LargeUtf8 => string_ranges(array.as_string::<i64>()),
        DataType::Binary => string_ranges(array.as_binary::<i32>()),
        DataType::LargeBinary => string_ranges(array.as_binary::<i64>()),
        DataType::Utf8View => view_ranges(array.as_string_view(), nulls),
        DataType::BinaryView => view_ranges(array.as_binary_view(), nulls),
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

/// The varying extents, and elements one after the other.
fn tensors(
    array: &ArrayRef,
    nulls: Option<&NullBuffer>,
    column: &Column,
    shape: &Shape,
    null_elements: NullElements,
) -> Result<(Vec<u32>, Buffer), Problem> {
    let mut samples = walk(array, nulls, &column.kind)?;
    let is_null = |row: usize| nulls.is_some_and(|nulls| nulls.is_null(row));
    let extents = varying_extents(&samples, column, shape, is_null)?;
    if shape.is_ragged() {
        samples.ranges.iter_mut().enumerate().filter(|(row, _)| is_null(*row)).for_each(|(_, range)| *range = 0..0);
    }
    let elements = Elements::of(samples, column.kind.dtype, int96::unit(column))?;
    let is_scalar = column.kind.levels.is_empty() && !column.kind.variable_tensor;
    let bytes = if is_scalar { elements.bytes.clone() } else { elements.without_nulls(is_null, null_elements)? };
    let ranges = elements.byte_ranges();
    let values = if shape.is_ragged() {
        concatenate(&bytes, &ranges)
    } else {
        let count = shape.inner_elements().and_then(|count| usize::try_from(count).ok());
        let null_bytes = count.and_then(|count| count.checked_mul(elements.width));
        null_bytes.and_then(|null_bytes| concatenate_fixed(&bytes, &ranges, is_null, null_bytes))
    };
    Ok((extents, values.ok_or_else(outside)?))
}

/// The extents that vary; those that the type leaves open and the shape does not are checked.
fn varying_extents(
    samples: &Samples,
    column: &Column,
    shape: &Shape,
    is_null: impl Fn(usize) -> bool,
) -> Result<Vec<u32>, Problem> {
    let open = open_extents(column, shape);
    let mut varying = Vec::new();
    for (row, extents) in samples.open_extents.chunks_exact(open.len().max(1)).enumerate() {
        for (due, &extent) in open.iter().zip(extents) {
            match due {
                Extent::Varying if is_null(row) || extent == UNKNOWN => varying.push(0),
                Extent::Varying => varying.push(extent),
                Extent::Fixed(due) if extent == UNKNOWN || extent == *due => {}
                Extent::Fixed(_) => return Err(another_shape(row, extents, column, shape)),
            }
        }
    }
    Ok(varying)
}

/// A sample with these open extents does not fit the shape.
fn another_shape(row: usize, open: &[u32], column: &Column, shape: &Shape) -> Problem {
    let own = sample_shape(&column.kind, open);
    let both = own.extents().iter().zip(shape.extents());
    let fitting = both.map(|(own, due)| match due {
        Extent::Fixed(extent) if own == due || *own == Extent::Varying => Some(*extent),
        _ => None,
    });
    let advice = [Advice::DeclareShape(fitting.collect()), Advice::SkipColumns];
    Problem::at(row, format!("the sample has the shape {own}, and the column is to have {shape}")).advising(advice)
}

/// What the shape has for the dimensions that the type leaves open.
fn open_extents(column: &Column, shape: &Shape) -> Vec<Extent> {
    let mut dimension = 0;
    let mut open = Vec::new();
    for level in &column.kind.levels {
        match level {
            Level::Open => {
                open.extend(shape.extents().get(dimension));
                dimension += 1;
            }
            Level::Fixed(extents) => dimension += extents.len(),
        }
    }
    open
}
