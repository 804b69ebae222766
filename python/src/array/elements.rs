//! Copies arrays of any library into contiguous bytes of one dtype, for the writer.
//!
//! An array can support the buffer protocol or DLPack. It can also be a NumPy array with a dtype of
//! ml_dtypes, for which NumPy exports no buffer. The elements are copied because the writer encodes
//! without the GIL, and the caller can change the array in the meantime. Numbers of a narrower
//! dtype are widened if that is exact. Nothing is rounded here.

use crate::array::Array;
use crate::array::dlpack::ImportedTensor;
use crate::array::dtype::{from_buffer_format, named};
use half::{bf16, f16};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use tensilo::DType;

/// The copied elements of an array, contiguous and row-major.
pub struct Elements {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

/// Returns the elements of an array, or `None` if the object is not an array.
pub fn elements(object: &Bound<'_, PyAny>) -> PyResult<Option<Elements>> {
    if let Ok(array) = object.cast::<Array>() {
        let Array { memory, dtype, shape } = array.get();
        return Ok(Some(Elements { dtype: *dtype, shape: shape.clone(), bytes: memory.to_vec() }));
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyString>() {
        return Ok(None);
    }
    if object.hasattr("mask")? && object.hasattr("filled")? {
        return Err(PyTypeError::new_err(
            "masked arrays are not supported: pass a list of samples, with None for nulls",
        ));
    }
    if let Some(elements) = buffered(object)? {
        return Ok(Some(elements));
    }
    if let Some((dtype, bits)) = bits_of_numpy(object)? {
        return Ok(buffered(&bits)?.map(|elements| Elements { dtype, ..elements }));
    }
    let Some(tensor) = ImportedTensor::from_object(object)? else { return Ok(None) };
    let bytes = tensor.bytes()?.into_owned();
    Ok(Some(Elements { dtype: tensor.dtype, shape: tensor.shape.clone(), bytes }))
}

/// Returns the dtype and the bits of a NumPy array with a dtype of ml_dtypes. NumPy exports buffers
/// only for its own dtypes.
pub fn bits_of_numpy<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<(DType, Bound<'py, PyAny>)>> {
    let name = object.getattr("dtype").and_then(|dtype| dtype.str()).map(|name| name.to_string());
    let Some(dtype) = name.ok().and_then(|name| named(&name)) else { return Ok(None) };
    if !(dtype == DType::Bf16 || dtype.is_small()) || !object.hasattr("view").unwrap_or(false) {
        return Ok(None);
    }
    let bits = if dtype == DType::Bf16 { "uint16" } else { "uint8" };
    Ok(Some((dtype, object.call_method1("view", (bits,))?)))
}

fn buffered(object: &Bound<'_, PyAny>) -> PyResult<Option<Elements>> {
    let Ok(buffer) = PyUntypedBuffer::get(object) else { return Ok(None) };
    let Some(dtype) = from_buffer_format(buffer.format().to_bytes(), buffer.item_size()) else { return Ok(None) };
    let shape = buffer.shape().to_vec();
    let bytes = if buffer.is_c_contiguous() {
        // SAFETY: a contiguous buffer has `len_bytes` bytes at its pointer, and `buffer` holds it.
        unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes()) }.to_vec()
    } else {
        let contiguous =
            object.py().import("builtins")?.getattr("memoryview")?.call1((object,))?.call_method0("tobytes")?;
        contiguous.cast::<PyBytes>()?.as_bytes().to_vec()
    };
    Ok(Some(Elements { dtype, shape, bytes }))
}

/// Widens integers. Returns `None` if `to` cannot represent all values of their type.
pub fn widened(elements: &Elements, to: DType) -> Option<Vec<u8>> {
    let (from_signed, to_signed) = (is_signed(elements.dtype)?, is_signed(to)?);
    let width = elements.dtype.element_bytes();
    if to.element_bytes() <= width || (from_signed && !to_signed) {
        return None;
    }
    let numbers = elements.bytes.chunks_exact(width).map(|bytes| number(bytes, from_signed));
    Some(match to.element_bytes() {
        // exact: the wider type can represent the number
        2 => numbers.flat_map(|number| (number as i16).to_ne_bytes()).collect(),
        4 => numbers.flat_map(|number| (number as i32).to_ne_bytes()).collect(),
        _ => numbers.flat_map(i64::to_ne_bytes).collect(),
    })
}

/// Widens floats. Returns `None` if `to` cannot represent all values of their type.
pub fn widened_floats(elements: &Elements, to: DType) -> Option<Vec<u8>> {
    let bytes = &elements.bytes;
    let wide: Box<dyn Iterator<Item = f32>> = match elements.dtype {
        DType::Bf16 => Box::new(bytes.as_chunks().0.iter().map(|bytes| bf16::from_ne_bytes(*bytes).to_f32())),
        DType::F16 => Box::new(bytes.as_chunks().0.iter().map(|bytes| f16::from_ne_bytes(*bytes).to_f32())),
        DType::F32 => Box::new(bytes.as_chunks().0.iter().map(|bytes| f32::from_ne_bytes(*bytes))),
        _ => return None,
    };
    match to {
        DType::F32 => Some(wide.flat_map(f32::to_ne_bytes).collect()),
        DType::F64 => Some(wide.flat_map(|number| f64::from(number).to_ne_bytes()).collect()),
        _ => None,
    }
}

/// Returns whether an integer type is signed; `None` for other types.
fn is_signed(dtype: DType) -> Option<bool> {
    match dtype {
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => Some(true),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => Some(false),
        _ => None,
    }
}

/// Reads an integer of at most 4 bytes.
fn number(bytes: &[u8], is_signed: bool) -> i64 {
    match (bytes, is_signed) {
        (&[a], false) => a.into(),
        (&[a], true) => a.cast_signed().into(),
        (&[a, b], false) => u16::from_ne_bytes([a, b]).into(),
        (&[a, b], true) => i16::from_ne_bytes([a, b]).into(),
        (&[a, b, c, d], false) => u32::from_ne_bytes([a, b, c, d]).into(),
        (&[a, b, c, d], true) => i32::from_ne_bytes([a, b, c, d]).into(),
        _ => 0, // unreachable: 8-byte integers are never widened
    }
}
