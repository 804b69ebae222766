//! The buffer protocol.

use crate::array::Array;
use crate::dtype::buffer_format;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_int;

/// What a view points to besides the elements.
struct ViewParts {
    shape: Vec<isize>,
    strides: Vec<isize>,
}

/// Fills a view of the memory of an array.
///
/// # Safety
///
/// `view` is a view that Python asks to fill, and that it gives to [`release`] once.
pub unsafe fn fill(array: &Bound<'_, Array>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("no view to fill"));
    }
    // SAFETY: Python's view, see above. A view without an object is one that was not filled.
    unsafe { (*view).obj = std::ptr::null_mut() };
    let Array { memory, dtype, shape } = array.get();
    let Some(format) = buffer_format(*dtype) else {
        return Err(PyBufferError::new_err(
            "the buffer protocol has no bf16: numpy() and torch() take it, and view(\"u16\") has its bits",
        ));
    };
    if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE && !memory.is_writable() {
        return Err(PyBufferError::new_err("the memory can only be read"));
    }
    if flags & ffi::PyBUF_F_CONTIGUOUS == ffi::PyBUF_F_CONTIGUOUS && shape.len() > 1 {
        return Err(PyBufferError::new_err("the memory is row-major, and not column-major"));
    }
    let extent = |extent: &usize| isize::try_from(*extent);
    let shape: Vec<isize> = shape.iter().map(extent).collect::<Result<_, _>>()?;
    let width = dtype.element_bytes();
    let mut stride = isize::try_from(width)?;
    let mut strides = vec![0; shape.len()];
    for (to, extent) in strides.iter_mut().zip(&shape).rev() {
        *to = stride;
        stride = stride.saturating_mul(*extent);
    }
    let parts = Box::new(ViewParts { shape, strides });
    let dimensions = c_int::try_from(parts.shape.len())?;
    let has = |flag: c_int| flags & flag == flag;
    // without dimensions there are no extents and strides
    let has_extents = dimensions > 0 && has(ffi::PyBUF_ND);
    let parts = Box::into_raw(parts);
    // SAFETY: `view` is Python's, `parts` was made above and lives until `release`. The array lives
    // as long as the view, which has a reference to it.
    unsafe {
        (*view).buf = memory.pointer().cast();
        // memory is smaller
        (*view).len = isize::try_from(memory.byte_count()).unwrap_or(isize::MAX);
        (*view).itemsize = isize::try_from(width).unwrap_or(1); // at most 8
        (*view).readonly = c_int::from(!memory.is_writable());
        (*view).format = if has(ffi::PyBUF_FORMAT) { format.as_ptr().cast_mut() } else { std::ptr::null_mut() };
        (*view).ndim = if has(ffi::PyBUF_ND) { dimensions } else { 1 };
        (*view).shape = if has_extents { (*parts).shape.as_mut_ptr() } else { std::ptr::null_mut() };
        (*view).strides =
            if has_extents && has(ffi::PyBUF_STRIDES) { (*parts).strides.as_mut_ptr() } else { std::ptr::null_mut() };
        (*view).suboffsets = std::ptr::null_mut();
        (*view).internal = parts.cast();
        (*view).obj = array.clone().into_ptr();
    }
    Ok(())
}

/// Frees what [`fill`] has made.
///
/// # Safety
///
/// `view` was filled by [`fill`], and is released once.
pub unsafe fn release(view: *mut ffi::Py_buffer) {
    // SAFETY: `internal` is the box that `fill` has made.
    unsafe {
        let parts = (*view).internal.cast::<ViewParts>();
        if !parts.is_null() {
            drop(Box::from_raw(parts));
            (*view).internal = std::ptr::null_mut();
        }
    }
}
