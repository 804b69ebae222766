//! The elements of tensors as bytes.

use super::NullElements;
use super::types::element;
use super::walk::{Problem, Samples};
use crate::DType;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::DataType;
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
    /// Cuts the array down to what the samples use, and makes bytes of it.
    pub(super) fn of(samples: Samples, dtype: DType) -> Result<Self, Problem> {
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
        let bytes = element_bytes(&array, dtype)?;
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        let ranges = samples.ranges.into_iter().map(shift).collect();
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
        let value = replacement(self.dtype, wanted).map_err(|message| Problem::at(row, message))?;
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
fn replacement(dtype: DType, wanted: NullElements) -> Result<Vec<u8>, String> {
    match (wanted, dtype) {
        (NullElements::Zero, _) => Ok(vec![0; dtype.element_bytes()]),
        (NullElements::Nan, DType::F16) => Ok(f16::NAN.to_ne_bytes().to_vec()),
        (NullElements::Nan, DType::F32) => Ok(f32::NAN.to_ne_bytes().to_vec()),
        (NullElements::Nan, DType::F64) => Ok(f64::NAN.to_ne_bytes().to_vec()),
        (NullElements::Nan, _) => {
            Err(format!("a null element inside a tensor of {dtype}, which has no NaN; store zero instead"))
        }
        (NullElements::Refuse, _) => {
            Err("a null element inside a tensor; ask to store NaN or zero instead, or leave the column out with --skip"
                .to_owned())
        }
    }
}

/// All elements of an array, as they are pushed.
fn element_bytes(array: &ArrayRef, dtype: DType) -> Result<Buffer, Problem> {
    let data_type = array.data_type();
    if element(data_type) != Some(dtype) {
        return Err(format!("a batch has elements of {data_type}, which its schema denies").into());
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

/// The values of an array of fixed-width elements, without copying.
pub(super) fn plain_bytes(array: &ArrayRef, width: usize) -> Option<Buffer> {
    let data = array.to_data();
    let start = data.offset().checked_mul(width)?;
    let length = data.len().checked_mul(width)?;
    let buffer = data.buffers().first()?;
    buffer.get(start..start.checked_add(length)?)?; // inside
    Some(buffer.slice_with_length(start, length))
}
