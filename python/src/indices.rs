//! Sample numbers, as callers have them.

use crate::dlpack::Imported;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PySlice};
use tensilo::DType;

/// Returns the number of a sample of `count`; a negative one counts from the end.
pub fn wrapped(asked: i64, count: u64) -> Option<u64> {
    let number = match u64::try_from(asked) {
        Ok(number) => number,
        Err(_) => count.checked_sub(asked.unsigned_abs())?,
    };
    (number < count).then_some(number)
}

/// Returns the sample numbers of an integer, a slice, a buffer or tensor of integers, or anything
/// that has integers one after the other.
pub fn from_object(object: &Bound<'_, PyAny>, count: u64) -> PyResult<Vec<u64>> {
    if let Ok(slice) = object.cast::<PySlice>() {
        return of_slice(slice, count);
    }
    if object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>() {
        return Ok(vec![checked(object.extract()?, count)?]);
    }
    if let Some(numbers) = buffered(object)? {
        return numbers.into_iter().map(|asked| checked(asked, count)).collect();
    }
    let iterator = object.try_iter().map_err(|_| no_indices(object))?;
    iterator
        .map(|asked| {
            let asked = asked?;
            let is_bool = asked.is_instance_of::<PyBool>();
            let number =
                if is_bool { Err(no_indices(object)) } else { asked.extract().map_err(|_| no_indices(object)) };
            checked(number?, count)
        })
        .collect()
}

/// Returns the samples of a slice, which is cut off at the ends.
pub fn of_slice(slice: &Bound<'_, PySlice>, count: u64) -> PyResult<Vec<u64>> {
    let range = slice.indices(isize::try_from(count)?)?;
    let sample = |i: usize| {
        let i = isize::try_from(i).unwrap_or(isize::MAX); // below the length of the slice
        // inside of `count`
        u64::try_from(range.start.saturating_add(i.saturating_mul(range.step))).unwrap_or(0)
    };
    Ok((0..range.slicelength).map(sample).collect())
}

fn checked(asked: i64, count: u64) -> PyResult<u64> {
    let message = || format!("sample {asked} of {count} samples, counted from 0");
    wrapped(asked, count).ok_or_else(|| PyIndexError::new_err(message()))
}

/// Returns the integers of a buffer or a tensor; `None` if the object is neither.
fn buffered(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<i64>>> {
    let found = of_type::<i64>(object)
        .or_else(|| of_type::<i32>(object))
        .or_else(|| of_type::<u32>(object))
        .or_else(|| of_type::<u64>(object))
        .or_else(|| of_type::<u8>(object))
        .or_else(|| of_type::<i16>(object))
        .or_else(|| of_type::<u16>(object))
        .or_else(|| of_type::<i8>(object));
    if let Some(numbers) = found {
        return numbers.map(Some);
    }
    let Some(tensor) = Imported::from_object(object)? else { return Ok(None) };
    if tensor.shape.len() > 1 {
        return Err(dimensions(tensor.shape.len()));
    }
    let bytes = tensor.bytes();
    let numbers: Option<Vec<i64>> = match tensor.dtype {
        DType::I64 => Some(bytes.as_chunks().0.iter().map(|bytes| i64::from_ne_bytes(*bytes)).collect()),
        DType::I32 => Some(bytes.as_chunks().0.iter().map(|bytes| i32::from_ne_bytes(*bytes).into()).collect()),
        DType::I16 => Some(bytes.as_chunks().0.iter().map(|bytes| i16::from_ne_bytes(*bytes).into()).collect()),
        DType::U8 => Some(bytes.iter().map(|byte| i64::from(*byte)).collect()),
        DType::U32 => Some(bytes.as_chunks().0.iter().map(|bytes| u32::from_ne_bytes(*bytes).into()).collect()),
        DType::U64 => bytes.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes).try_into().ok()).collect(),
        _ => None,
    };
    numbers.map(Some).ok_or_else(|| no_indices(object))
}

fn of_type<T: Element + TryInto<i64>>(object: &Bound<'_, PyAny>) -> Option<PyResult<Vec<i64>>> {
    let buffer = PyBuffer::<T>::get(object).ok()?;
    if buffer.dimensions() > 1 {
        return Some(Err(dimensions(buffer.dimensions())));
    }
    let numbers = buffer.to_vec(object.py());
    let whole = |numbers: Vec<T>| numbers.into_iter().map(|number| number.try_into().map_err(|_| no_indices(object)));
    Some(numbers.and_then(|numbers| whole(numbers).collect()))
}

fn dimensions(found: usize) -> PyErr {
    PyTypeError::new_err(format!("sample numbers in {found} dimensions; pass one"))
}

#[cold]
fn no_indices(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or("object".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "sample numbers are integers, a slice, or a list or array of integers, not {name}; of a mask pass its \
         np.flatnonzero"
    ))
}
