//! The elements of tensors, from arrays to values of this crate.

use super::fixed_width::{Refused, converted, plain_bytes};
use super::types::element;
use super::{decimals, int96, intervals};
use crate::DType;
use crate::arrow_type::StoredElement;
use crate::error::Advice;
use crate::import::batch::{Nulls, SampleValues, SharedBytes};
use crate::import::input_column::ColumnKind;
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
    /// The values of each sample.
    pub ranges: Vec<Range<usize>>,
    pub nulls: Option<Nulls>,
}

impl ArrayElements {
    /// Cuts the array down to what the samples use, and converts it.
    pub(super) fn of(array: &ArrayRef, mut ranges: Vec<Range<usize>>, kind: &ColumnKind) -> Result<Self, Problem> {
        let array = cut(array, &mut ranges)?;
        let stored = StoredElement { dtype: kind.dtype, extent: kind.element_extent };
        let values = values(&array, stored).map_err(|Refused { element, message }| {
            let row = element.and_then(|element| ranges.iter().position(|range| range.contains(&element)));
            Problem { row, message, advice: vec![Advice::SkipColumns] }
        })?;
        let all = Self { values, ranges, nulls: shared_nulls(array.nulls()) };
        match kind.element_extent {
            None => Ok(all),
            Some(extent) => all.of_several_values(extent, array.nulls()).ok_or_else(outside),
        }
    }

    /// Counts values, of which each element has `extent`, instead of elements.
    fn of_several_values(mut self, extent: u32, nulls: Option<&NullBuffer>) -> Option<Self> {
        let extent = usize::try_from(extent).ok()?;
        for range in &mut self.ranges {
            *range = range.start.checked_mul(extent)?..range.end.checked_mul(extent)?;
        }
        if self.nulls.is_some() {
            let nulls = nulls.map(|nulls| nulls.try_expand(extent)).transpose().ok()?;
            self.nulls = shared_nulls(nulls.as_ref());
        }
        Some(self)
    }
}

/// Cuts an array down to what some ranges use, and makes them ranges of the result.
pub(super) fn cut(array: &ArrayRef, ranges: &mut [Range<usize>]) -> Result<ArrayRef, Problem> {
    let used = || ranges.iter().filter(|range| !range.is_empty());
    let start = used().map(|range| range.start).min().unwrap_or(0);
    let end = used().map(|range| range.end).max().unwrap_or(0);
    let part = part(array, start..end)?;
    let shifted = |range: &Range<usize>| {
        // `start` is the least
        if range.is_empty() { 0..0 } else { range.start - start..range.end - start }
    };
    ranges.iter_mut().for_each(|range| *range = shifted(range));
    Ok(part)
}

/// Returns some rows of an array.
pub(super) fn part(array: &ArrayRef, rows: Range<usize>) -> Result<ArrayRef, Problem> {
    let length = rows.end.checked_sub(rows.start).filter(|_| rows.end <= array.len());
    Ok(array.slice(rows.start, length.ok_or_else(outside)?))
}

/// Returns the nulls of an array, if it has some.
pub(super) fn shared_nulls(nulls: Option<&NullBuffer>) -> Option<Nulls> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0)?;
    Some(Nulls(SharedBytes::new(nulls.inner().sliced())))
}

pub(super) fn outside() -> Problem {
    "the elements of a sample lie outside the array".to_owned().into()
}

/// Returns all elements of an array, as they are pushed.
fn values(array: &ArrayRef, stored: StoredElement) -> Result<SampleValues, Refused> {
    let data_type = array.data_type();
    let dtype = stored.dtype;
    let refused = |message: String| Refused { element: None, message };
    let outside = || refused(outside().message);
    let bytes = match (data_type, dtype) {
        _ if data_type.is_decimal() => Buffer::from_vec(decimals::values(array, stored)?),
        (DataType::Interval(_), _) => intervals::values(array, stored)?,
        (DataType::Null, DType::Bool) => Buffer::from_vec(vec![0_u8; array.len()]),
        (DataType::Int32, DType::I8) => narrowed::<i8>(array, dtype)?,
        (DataType::Int32, DType::I16) => narrowed::<i16>(array, dtype)?,
        (DataType::Int32, DType::U8) => narrowed::<u8>(array, dtype)?,
        (DataType::Int32, small) if small.is_small() => narrowed::<u8>(array, dtype)?,
        (DataType::Int32, DType::U16) => narrowed::<u16>(array, dtype)?,
        (DataType::FixedSizeBinary(_), DType::I64) if stored.extent.is_none() => {
            return instants(array).map(SampleValues::Instants);
        }
        (DataType::FixedSizeBinary(_), DType::I32 | DType::I64) => Buffer::from_vec(intervals::parquet(array, stored)?),
        (DataType::UInt16, DType::Bf16) if stored.extent.is_none() => plain_bytes(array, 2).ok_or_else(outside)?,
        (DataType::UInt8, small) if small.is_small() => plain_bytes(array, 1).ok_or_else(outside)?,
        _ if element(data_type) != Some(stored) => return Err(Refused::denied(array)),
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
