//! Parses sample indices: integers, slices, lists, arrays and boolean masks.
//!
//! Arrays are read through the buffer protocol or DLPack, without a Python object per index. As in
//! NumPy, negative indices count from the end, and a mask has one bool per sample. Strings and
//! bytes are refused, although Python can iterate over them.

use crate::array::dlpack::ImportedTensor;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyIndexError, PyMemoryError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PySlice, PyString};
use tensilo::DType;

/// Returns the index of a sample among `count`, or `None` if it is out of range. Negative indices
/// count from the end.
pub fn wrapped(index: i64, count: u64) -> Option<u64> {
    let number = match u64::try_from(index) {
        Ok(number) => number,
        Err(_) => count.checked_sub(index.unsigned_abs())?,
    };
    (number < count).then_some(number)
}

/// Returns the sample indices of an integer, a slice, a buffer or tensor of integers, or any
/// iterable of integers. An array or iterable of bools is a mask over all samples, as in NumPy.
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
    let out_of_memory = |_| PyMemoryError::new_err("the sample indices do not fit in memory");
    for (number, index) in (1_u64..).zip(object.try_iter().map_err(|_| invalid_indices(object))?) {
        let index = index?;
        if number.is_multiple_of(1 << 16) {
            object.py().check_signals()?;
        }
        if samples.is_empty()
            && let Ok(is_chosen) = index.extract::<bool>()
        {
            if number > count {
                return Err(PyIndexError::new_err(format!(
                    "the mask has more than {count} bools, but there are {count} samples"
                )));
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

/// Returns the indices of the samples that a mask selects.
fn masked(mask: &[bool], count: u64) -> PyResult<Vec<u64>> {
    let length = mask.len() as u64; // exact
    if length != count {
        return Err(PyIndexError::new_err(format!("the mask has {length} bools, but there are {count} samples")));
    }
    Ok((0..).zip(mask).filter(|(_, is_chosen)| **is_chosen).map(|(sample, _)| sample).collect())
}

/// Returns the value of a Python integer or of a 0-dimensional integer array. Returns `None` for
/// other objects.
pub fn single(object: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if let Ok(number) = object.cast_exact::<PyInt>() {
        return number.extract().map(Some).map_err(|_| no_sample(number));
    }
    if object.is_instance_of::<PyBool>() || !object.hasattr("__index__")? {
        return Ok(None);
    }
    let has_dimensions = || object.getattr("ndim").is_ok_and(|ndim| ndim.extract().is_ok_and(|ndim: usize| ndim > 0));
    if !object.is_instance_of::<PyInt>() && has_dimensions() {
        return Ok(None); // some libraries convert an array with one element to an integer
    }
    match object.call_method0("__index__") {
        Ok(number) => number.extract().map(Some).map_err(|_| no_sample(&number)),
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the sample indices of a slice, which is clipped to `count` as in Python.
pub fn from_slice(slice: &Bound<'_, PySlice>, count: u64) -> PyResult<Vec<u64>> {
    let range = slice.indices(isize::try_from(count)?)?;
    let sample = |i: usize| {
        let i = isize::try_from(i).unwrap_or(isize::MAX); // below the length of the slice
        // `slice.indices` clips the range to `count`
        u64::try_from(range.start.saturating_add(i.saturating_mul(range.step))).unwrap_or(0)
    };
    Ok((0..range.slicelength).map(sample).collect())
}

fn checked(index: i64, count: u64) -> PyResult<u64> {
    let message = || format!("sample index {index} is out of range for {count} samples");
    wrapped(index, count).ok_or_else(|| PyIndexError::new_err(message()))
}

/// The indices or the mask in a buffer or a tensor.
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
        return Some(Err(PyMemoryError::new_err("the sample indices do not fit in memory")));
    }
    let numbers = buffer.to_vec(object.py());
    let whole =
        |numbers: Vec<T>| numbers.into_iter().map(|number| number.try_into().map_err(|_| invalid_indices(object)));
    Some(numbers.and_then(|numbers| whole(numbers).collect()))
}

fn dimensions(found: usize) -> PyErr {
    PyTypeError::new_err(format!("expected one-dimensional sample indices, found {found} dimensions"))
}

#[cold]
fn no_sample(number: &Bound<'_, PyAny>) -> PyErr {
    PyIndexError::new_err(format!("sample index {number} is out of range"))
}

#[cold]
fn invalid_indices(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or("object".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "expected sample indices (an integer, a slice, a list or array of integers, or a boolean mask), not {name}"
    ))
}
