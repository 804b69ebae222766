//! The elements of tensors, from arrays to values of this crate.

use super::int96;
use super::types::element;
use crate::DType;
use crate::error::Advice;
use crate::import::batch::{Nulls, SampleValues, SharedBytes};
use crate::import::problem::Problem;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer};
use arrow_schema::DataType;
use std::ops::Range;
use std::result::Result;

/// The elements of all samples of a batch.
pub(super) struct ArrayElements {
    pub values: SampleValues,
    /// The elements of each sample.
    pub ranges: Vec<Range<usize>>,
    pub nulls: Option<Nulls>,
}

impl ArrayElements {
    /// Cuts the array down to what the samples use, and converts it.
    pub(super) fn of(array: &ArrayRef, ranges: Vec<Range<usize>>, dtype: DType) -> Result<Self, Problem> {
        let used = || ranges.iter().filter(|range| !range.is_empty());
        let start = used().map(|range| range.start).min().unwrap_or(0);
        let end = used().map(|range| range.end).max().unwrap_or(0);
        if end > array.len() {
            return Err(outside());
        }
        let array = array.slice(start, end - start); // inside
        let shift = |range: Range<usize>| {
            // `start` is the least
            if range.is_empty() { 0..0 } else { range.start - start..range.end - start }
        };
        let ranges: Vec<Range<usize>> = ranges.into_iter().map(shift).collect();
        let values = values(&array, dtype).map_err(|Refused { element, message }| {
            let row = element.and_then(|element| ranges.iter().position(|range| range.contains(&element)));
            Problem { row, message, advice: vec![Advice::SkipColumns] }
        })?;
        Ok(Self { values, ranges, nulls: shared_nulls(array.nulls()) })
    }
}

/// Returns the nulls of an array, if it has some.
pub(super) fn shared_nulls(nulls: Option<&NullBuffer>) -> Option<Nulls> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0)?;
    Some(Nulls(SharedBytes::new(nulls.inner().sliced())))
}

pub(super) fn outside() -> Problem {
    "the elements of a sample lie outside the array".to_owned().into()
}

/// Why an array cannot be stored, and which of its elements is at fault.
struct Refused {
    element: Option<usize>,
    message: String,
}

/// Returns all elements of an array, as they are pushed.
fn values(array: &ArrayRef, dtype: DType) -> Result<SampleValues, Refused> {
    let data_type = array.data_type();
    let refused = |message: String| Refused { element: None, message };
    let outside = || refused(outside().message);
    let bytes = match (data_type, dtype) {
        (DataType::Int32, DType::I8) => narrowed::<i8>(array, dtype)?,
        (DataType::Int32, DType::I16) => narrowed::<i16>(array, dtype)?,
        (DataType::Int32, DType::U8) => narrowed::<u8>(array, dtype)?,
        (DataType::Int32, DType::U16) => narrowed::<u16>(array, dtype)?,
        (DataType::FixedSizeBinary(_), DType::I64) => return instants(array).map(SampleValues::Instants),
        _ if element(data_type) != Some(dtype) => {
            return Err(refused(format!("a batch has elements of {data_type}, which its schema denies")));
        }
        (DataType::Boolean, _) => {
            let bits = array.as_boolean().values();
            Buffer::from_vec(bits.iter().map(u8::from).collect::<Vec<u8>>())
        }
        (DataType::Date32 | DataType::Time32(_), _) => {
            let narrow = plain_bytes(array, 4).ok_or_else(outside)?;
            let wide = narrow.as_chunks().0.iter().map(|bytes| i64::from(i32::from_ne_bytes(*bytes)));
            Buffer::from_vec(wide.collect::<Vec<i64>>())
        }
        _ => plain_bytes(array, dtype.element_bytes()).ok_or_else(outside)?,
    };
    Ok(SampleValues::Plain(SharedBytes::new(bytes)))
}

/// Converts each valid element with `convert`. Nulls become zero.
fn converted<T: Clone + Default>(
    array: &dyn Array,
    convert: impl Fn(usize) -> Result<T, String>,
) -> Result<Vec<T>, Refused> {
    let one = |i| {
        if array.is_null(i) {
            return Ok(T::default());
        }
        convert(i).map_err(|message| Refused { element: Some(i), message })
    };
    (0..array.len()).map(one).collect()
}

/// Integers that are declared narrower than a Parquet file stores them, which a value may belie.
fn narrowed<T: ArrowNativeType + TryFrom<i32>>(array: &ArrayRef, dtype: DType) -> Result<Buffer, Refused> {
    let values = array.as_primitive::<Int32Type>().values();
    converted(array, |i| {
        let value = values.get(i).copied().unwrap_or(0); // inside the array
        T::try_from(value).map_err(|_| format!("the value {value} in a column that is declared to be {dtype}"))
    })
    .map(Buffer::from_vec)
}

fn instants(array: &ArrayRef) -> Result<Vec<i128>, Refused> {
    let values = array.as_fixed_size_binary();
    converted(array, |i| {
        let value = values.value(i).try_into().map_err(|_| "an INT96 timestamp is not 12 bytes long".to_owned())?;
        Ok(int96::nanoseconds(value))
    })
}

/// Returns the values of an array of fixed-width elements, without copying.
pub(super) fn plain_bytes(array: &ArrayRef, width: usize) -> Option<Buffer> {
    let data = array.to_data();
    let start = data.offset().checked_mul(width)?;
    let length = data.len().checked_mul(width)?;
    let buffer = data.buffers().first()?;
    buffer.get(start..start.checked_add(length)?)?; // inside
    Some(buffer.slice_with_length(start, length))
}
