//! The elements of tensors as bytes.

use super::problem::Problem;
use super::types::element;
use super::walk::Samples;
use super::{NullElements, int96};
use crate::{Advice, DType};
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer};
use arrow_schema::{DataType, TimeUnit};
use half::f16;
use std::ops::Range;
use std::result::Result;

/// The elements of all samples of a batch.
pub(super) struct Elements {
    dtype: DType,
    pub width: usize,
    pub bytes: Buffer,
    nulls: Option<NullBuffer>,
    /// Of elements, sample by sample.
    ranges: Vec<Range<usize>>,
}

impl Elements {
    /// Cuts the array down to what the samples use, and makes bytes of it; INT96 timestamps get
    /// this `unit`.
    pub(super) fn of(samples: Samples, dtype: DType, unit: Option<TimeUnit>) -> Result<Self, Problem> {
        let used = || samples.ranges.iter().filter(|range| !range.is_empty());
        let start = used().map(|range| range.start).min().unwrap_or(0);
        let end = used().map(|range| range.end).max().unwrap_or(0);
        if end > samples.elements.len() {
            return Err(outside());
        }
        let array = samples.elements.slice(start, end - start); // inside
        let shift = |range: Range<usize>| {
            if range.is_empty() { 0..0 } else { range.start - start..range.end - start } // `start` is the least
        };
        let ranges: Vec<Range<usize>> = samples.ranges.into_iter().map(shift).collect();
        let bytes = element_bytes(&array, dtype, unit).map_err(|Refused { element, message }| {
            let row = element.and_then(|element| ranges.iter().position(|range| range.contains(&element)));
            Problem { row, message, advice: vec![Advice::SkipColumns] }
        })?;
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        Ok(Self { dtype, width: dtype.element_bytes(), bytes, nulls, ranges })
    }

    pub(super) fn byte_ranges(&self) -> Vec<Range<usize>> {
        // no overflow: the ranges lie inside an array of that many elements of that width
        self.ranges.iter().map(|range| range.start * self.width..range.end * self.width).collect()
    }

    /// The bytes, in which null elements of samples have become what the caller wants them to be.
    pub(super) fn without_nulls(
        &self,
        is_null: impl Fn(usize) -> bool,
        wanted: NullElements,
    ) -> Result<Buffer, Problem> {
        let Some(nulls) = &self.nulls else { return Ok(self.bytes.clone()) };
        let present = self.ranges.iter().enumerate().filter(|(row, _)| !is_null(*row));
        let mut found =
            present.flat_map(|(row, range)| range.clone().map(move |i| (row, i))).filter(|(_, i)| nulls.is_null(*i));
        let Some((row, first)) = found.next() else { return Ok(self.bytes.clone()) };
        let value = replacement(self.dtype, wanted)
            .map_err(|(message, advice)| Problem::at(row, message).advising([advice, Advice::SkipColumns]))?;
        let mut bytes = self.bytes.to_vec();
        for i in std::iter::once(first).chain(found.map(|(_, i)| i)) {
            let place = bytes.get_mut(i * self.width..(i + 1) * self.width); // inside, as the ranges are
            for (to, from) in place.into_iter().flatten().zip(&value) {
                *to = *from;
            }
        }
        Ok(Buffer::from_vec(bytes))
    }
}

pub(super) fn outside() -> Problem {
    "the elements of a sample lie outside the array".to_owned().into()
}

/// The bytes of one element that stands for a null.
fn replacement(dtype: DType, wanted: NullElements) -> Result<Vec<u8>, (String, Advice)> {
    match (wanted, dtype) {
        (NullElements::Zero, _) => Ok(vec![0; dtype.element_bytes()]),
        (NullElements::Nan, DType::F16) => Ok(f16::NAN.to_ne_bytes().to_vec()),
        (NullElements::Nan, DType::F32) => Ok(f32::NAN.to_ne_bytes().to_vec()),
        (NullElements::Nan, DType::F64) => Ok(f64::NAN.to_ne_bytes().to_vec()),
        (NullElements::Nan, _) => {
            let message = format!("a null element inside a tensor of {dtype}, which has no NaN");
            Err((message, Advice::ReplaceNullsWithZero))
        }
        (NullElements::Refuse, _) => {
            let advice = if dtype.is_float() { Advice::ReplaceNulls } else { Advice::ReplaceNullsWithZero };
            Err(("a null element inside a tensor".to_owned(), advice))
        }
    }
}

/// Why an array cannot be stored, and which of its elements is at fault.
pub(super) struct Refused {
    element: Option<usize>,
    message: String,
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        Self { row: refused.element, ..refused.message.into() }
    }
}

/// All elements of an array, as they are pushed.
pub(super) fn element_bytes(array: &ArrayRef, dtype: DType, unit: Option<TimeUnit>) -> Result<Buffer, Refused> {
    let data_type = array.data_type();
    let refused = |message: String| Refused { element: None, message };
    let outside = || refused(outside().message);
    match (data_type, dtype) {
        (DataType::Int32, DType::I8) => return narrowed::<i8>(array, dtype),
        (DataType::Int32, DType::I16) => return narrowed::<i16>(array, dtype),
        (DataType::Int32, DType::U8) => return narrowed::<u8>(array, dtype),
        (DataType::Int32, DType::U16) => return narrowed::<u16>(array, dtype),
        (DataType::FixedSizeBinary(_), DType::I64) => {
            let unit = unit.ok_or_else(|| refused("INT96 timestamps in a column without a unit".to_owned()))?;
            return instants(array, unit);
        }
        _ => {}
    }
    if element(data_type) != Some(dtype) {
        return Err(refused(format!("a batch has elements of {data_type}, which its schema denies")));
    }
    match data_type {
        DataType::Boolean => {
            let bits = array.as_boolean().values();
            Ok(Buffer::from_vec(bits.iter().map(u8::from).collect::<Vec<u8>>()))
        }
        DataType::Date32 | DataType::Time32(_) => {
            let narrow = plain_bytes(array, 4).ok_or_else(outside)?;
            let wide = narrow.as_chunks().0.iter().map(|bytes| i64::from(i32::from_ne_bytes(*bytes)));
            Ok(Buffer::from_vec(wide.collect::<Vec<i64>>()))
        }
        _ => plain_bytes(array, dtype.element_bytes()).ok_or_else(outside),
    }
}

/// Each valid element as `convert` makes it, zero in the place of nulls.
fn converted<T: ArrowNativeType>(
    array: &dyn Array,
    convert: impl Fn(usize) -> Result<T, String>,
) -> Result<Buffer, Refused> {
    let one = |i| {
        if array.is_null(i) {
            return Ok(T::default());
        }
        convert(i).map_err(|message| Refused { element: Some(i), message })
    };
    Ok(Buffer::from_vec((0..array.len()).map(one).collect::<Result<Vec<T>, Refused>>()?))
}

/// Integers that are declared narrower than a Parquet file stores them, which a value may belie.
fn narrowed<T: ArrowNativeType + TryFrom<i32>>(array: &ArrayRef, dtype: DType) -> Result<Buffer, Refused> {
    let values = array.as_primitive::<Int32Type>().values();
    converted(array, |i| {
        let value = values.get(i).copied().unwrap_or(0); // inside the array
        T::try_from(value).map_err(|_| format!("the value {value} in a column that is declared to be {dtype}"))
    })
}

fn instants(array: &ArrayRef, unit: TimeUnit) -> Result<Buffer, Refused> {
    let values = array.as_fixed_size_binary();
    converted(array, |i| {
        let value = values.value(i).try_into().map_err(|_| "an INT96 timestamp that has not 12 bytes".to_owned())?;
        int96::exact(value, unit)
    })
}

/// The values of an array of fixed-width elements, without copying.
pub(super) fn plain_bytes(array: &ArrayRef, width: usize) -> Option<Buffer> {
    let data = array.to_data();
    let start = data.offset().checked_mul(width)?;
    let length = data.len().checked_mul(width)?;
    let buffer = data.buffers().first()?;
    buffer.get(start..start.checked_add(length)?)?; // inside
    Some(buffer.slice_with_length(start, length))
}
