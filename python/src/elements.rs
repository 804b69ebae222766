//! Arrays of any library, as a writer takes them.

use crate::array::Array;
use crate::batch_column::BatchColumn;
use crate::dlpack::Imported;
use crate::dtype::{named, of_buffer_format};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use tensilo::DType;

/// An array of another library, or of this one, as bytes.
pub struct Elements {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

/// Returns the elements of an array, side by side; `None` if the object is none.
pub fn elements(object: &Bound<'_, PyAny>) -> PyResult<Option<Elements>> {
    if let Ok(array) = object.cast::<Array>() {
        let Array { memory, dtype, shape } = array.get();
        return Ok(Some(Elements { dtype: *dtype, shape: shape.clone(), bytes: memory.to_vec() }));
    }
    if object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>()
        || object.is_instance_of::<PyString>()
        || object.is_instance_of::<BatchColumn>()
    {
        return Ok(None);
    }
    if object.hasattr("mask")? && object.hasattr("filled")? {
        return Err(PyTypeError::new_err("a masked array has nulls inside: pass a list of samples, None for nulls"));
    }
    if let Some(elements) = buffered(object)? {
        return Ok(Some(elements));
    }
    if let Some((dtype, bits)) = bits_of_numpy(object)? {
        return Ok(buffered(&bits)?.map(|elements| Elements { dtype, ..elements }));
    }
    let Some(tensor) = Imported::from_object(object)? else { return Ok(None) };
    let bytes = tensor.bytes()?.into_owned();
    Ok(Some(Elements { dtype: tensor.dtype, shape: tensor.shape.clone(), bytes }))
}

/// Returns the bits of an array of NumPy whose type is one of ml_dtypes, and the type: NumPy
/// exports no buffer of a type that is not its own.
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
    let Some(dtype) = of_buffer_format(buffer.format().to_bytes(), buffer.item_size()) else { return Ok(None) };
    let shape = buffer.shape().to_vec();
    let bytes = if buffer.is_c_contiguous() {
        // SAFETY: a contiguous buffer has `len_bytes` bytes at its pointer, and is held meanwhile.
        unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes()) }.to_vec()
    } else {
        let contiguous =
            object.py().import("builtins")?.getattr("memoryview")?.call1((object,))?.call_method0("tobytes")?;
        contiguous.cast::<PyBytes>()?.as_bytes().to_vec()
    };
    Ok(Some(Elements { dtype, shape, bytes }))
}
