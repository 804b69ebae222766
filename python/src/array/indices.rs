//! Sample numbers, as callers have them: integers, slices, lists, arrays and masks.
//!
//! Arrays are read through the buffer protocol or DLPack, without an object of Python for each
//! number. Negative numbers count from the end, and a mask of bools has one for each sample, as in
//! NumPy. Texts and bytes are refused, although Python can iterate over them.

use crate::array::dlpack::ImportedTensor;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PySlice, PyString};
use tensilo::DType;

/// Returns the number of a sample of `count`; a negative one counts from the end.
pub fn wrapped(index: i64, count: u64) -> Option<u64> {
    let number = match u64::try_from(index) {
        Ok(number) => number,
        Err(_) => count.checked_sub(index.unsigned_abs())?,
    };
    (number < count).then_some(number)
}

/// Returns the sample numbers of an integer, a slice, a buffer or tensor of integers, or anything
/// that has integers one after the other. Bools are a mask of all samples, as in NumPy.
pub fn from_object(object: &Bound<'_, PyAny>, count: u64) -> PyResult<Vec<u64>> {
    if let Ok(slice) = object.cast::<PySlice>() {
        return from_slice(slice, count);
    }
    if let Some(index) = single(object)? {
        return Ok(vec![checked(index, count)?]);
    }
    if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
        return Err(invalid_indices(object));
    }
    match buffered(object)? {
        Some(IndexBuffer::Numbers(numbers)) => return numbers.into_iter().map(|index| checked(index, count)).collect(),
        Some(IndexBuffer::Mask(mask)) => return masked(&mask, count),
        None => {}
    }
    let (mut samples, mut mask) = (Vec::new(), Vec::new());
    let out_of_memory = |_| PyMemoryError::new_err("the sample numbers do not fit in memory");
    for (number, index) in (1_u64..).zip(object.try_iter().map_err(|_| invalid_indices(object))?) {
        let index = index?;
        if number.is_multiple_of(1 << 16) {
            object.py().check_signals()?;
        }
        if samples.is_empty()
            && let Ok(is_chosen) = index.extract::<bool>()
        {
            if number > count {
                return Err(PyIndexError::new_err(format!("a mask of more than {count} bools for {count} samples")));
            }
            mask.try_reserve(1).map_err(out_of_memory)?;
            mask.push(is_chosen);
            continue;
        }
        if !mask.is_empty() {
            return Err(invalid_indices(object));
        }
        let index = single(&index)?.ok_or_else(|| invalid_indices(object))?;
        samples.try_reserve(1).map_err(out_of_memory)?;
        samples.push(checked(index, count)?);
    }
    if mask.is_empty() { Ok(samples) } else { masked(&mask, count) }
}

/// Returns the samples that a mask chooses.
fn masked(mask: &[bool], count: u64) -> PyResult<Vec<u64>> {
    let length = mask.len() as u64; // exact
    if length != count {
        return Err(PyIndexError::new_err(format!("a mask of {length} bools for {count} samples")));
    }
    Ok((0..).zip(mask).filter(|(_, is_chosen)| **is_chosen).map(|(sample, _)| sample).collect())
}

/// Returns the integer that an object is: of Python, or without dimensions of a library. `None` if
/// it is none.
pub fn single(object: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if let Ok(number) = object.cast_exact::<PyInt>() {
        return number.extract().map(Some).map_err(|_| no_sample(number));
    }
    if object.is_instance_of::<PyBool>() || !object.hasattr("__index__")? {
        return Ok(None);
    }
    let has_dimensions = || object.getattr("ndim").is_ok_and(|ndim| ndim.extract().is_ok_and(|ndim: usize| ndim > 0));
    if !object.is_instance_of::<PyInt>() && has_dimensions() {
        return Ok(None); // an array, of which some libraries make a number if it has one element
    }
    match object.call_method0("__index__") {
        Ok(number) => number.extract().map(Some).map_err(|_| no_sample(&number)),
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the samples of a slice, which is cut off at the ends.
pub fn from_slice(slice: &Bound<'_, PySlice>, count: u64) -> PyResult<Vec<u64>> {
    let range = slice.indices(isize::try_from(count)?)?;
    let sample = |i: usize| {
        let i = isize::try_from(i).unwrap_or(isize::MAX); // below the length of the slice
        // inside of `count`
        u64::try_from(range.start.saturating_add(i.saturating_mul(range.step))).unwrap_or(0)
    };
    Ok((0..range.slicelength).map(sample).collect())
}

fn checked(index: i64, count: u64) -> PyResult<u64> {
    let message = || format!("sample {index} of {count} samples, counted from 0");
    wrapped(index, count).ok_or_else(|| PyIndexError::new_err(message()))
}

/// The elements of a buffer or a tensor.
enum IndexBuffer {
    Numbers(Vec<i64>),
    Mask(Vec<bool>),
}

/// Returns the integers or bools of a buffer or a tensor; `None` if the object is neither.
fn buffered(object: &Bound<'_, PyAny>) -> PyResult<Option<IndexBuffer>> {
    let found = of_type::<i64>(object)
        .or_else(|| of_type::<i32>(object))
        .or_else(|| of_type::<u32>(object))
        .or_else(|| of_type::<u64>(object))
        .or_else(|| of_type::<u8>(object))
        .or_else(|| of_type::<i16>(object))
        .or_else(|| of_type::<u16>(object))
        .or_else(|| of_type::<i8>(object));
    if let Some(numbers) = found {
        return numbers.map(|numbers| Some(IndexBuffer::Numbers(numbers)));
    }
    let Some(tensor) = ImportedTensor::from_object(object)? else { return Ok(None) };
    if tensor.shape.len() > 1 {
        return Err(dimensions(tensor.shape.len()));
    }
    let bytes = tensor.bytes()?;
    if tensor.dtype == DType::Bool {
        return Ok(Some(IndexBuffer::Mask(bytes.iter().map(|byte| *byte != 0).collect())));
    }
    let numbers: Option<Vec<i64>> = match tensor.dtype {
        DType::I64 => Some(bytes.as_chunks().0.iter().map(|bytes| i64::from_ne_bytes(*bytes)).collect()),
        DType::I32 => Some(bytes.as_chunks().0.iter().map(|bytes| i32::from_ne_bytes(*bytes).into()).collect()),
        DType::I16 => Some(bytes.as_chunks().0.iter().map(|bytes| i16::from_ne_bytes(*bytes).into()).collect()),
        DType::U8 => Some(bytes.iter().map(|byte| i64::from(*byte)).collect()),
        DType::I8 => Some(bytes.iter().map(|byte| i64::from(byte.cast_signed())).collect()),
        DType::U16 => Some(bytes.as_chunks().0.iter().map(|bytes| u16::from_ne_bytes(*bytes).into()).collect()),
        DType::U32 => Some(bytes.as_chunks().0.iter().map(|bytes| u32::from_ne_bytes(*bytes).into()).collect()),
        DType::U64 => bytes.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes).try_into().ok()).collect(),
        _ => None,
    };
    numbers.map(|numbers| Some(IndexBuffer::Numbers(numbers))).ok_or_else(|| invalid_indices(object))
}

fn of_type<T: Element + TryInto<i64>>(object: &Bound<'_, PyAny>) -> Option<PyResult<Vec<i64>>> {
    let buffer = PyBuffer::<T>::get(object).ok()?;
    if buffer.dimensions() > 1 {
        return Some(Err(dimensions(buffer.dimensions())));
    }
    if Vec::<T>::new().try_reserve_exact(buffer.item_count()).is_err() {
        return Some(Err(PyMemoryError::new_err("the sample numbers do not fit in memory")));
    }
    let numbers = buffer.to_vec(object.py());
    let whole =
        |numbers: Vec<T>| numbers.into_iter().map(|number| number.try_into().map_err(|_| invalid_indices(object)));
    Some(numbers.and_then(|numbers| whole(numbers).collect()))
}

fn dimensions(found: usize) -> PyErr {
    PyTypeError::new_err(format!("sample numbers in {found} dimensions; pass one"))
}

#[cold]
fn no_sample(number: &Bound<'_, PyAny>) -> PyErr {
    PyIndexError::new_err(format!("there is no sample {number}"))
}

#[cold]
fn invalid_indices(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or("object".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "sample numbers are integers, a slice, a list or array of integers, or a mask of bools, not {name}"
    ))
}
