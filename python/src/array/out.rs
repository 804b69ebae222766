//! `out=`: reads samples directly into the caller's array.
//!
//! `out` can be a writable array of any library. Its dtype and shape are checked before anything is
//! read. Readers write to memory that an allocator returns, so [`OutAllocator`] returns the
//! caller's memory, and only once. A buffer view or a DLPack capsule keeps the object alive until
//! the call returns.

use crate::array::Array;
use crate::array::dlpack::ImportedTensor;
use crate::array::dtype::from_buffer_format;
use crate::array::elements::bits_of_numpy;
use crate::error::Result;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};
use tensilo::DType;
use tensilo_data::{BatchAllocator, BatchMemory, DataError};

/// An allocator that returns the caller's memory.
#[derive(Default)]
pub struct OutAllocator(Mutex<Option<OutMemory>>);

/// The caller's memory, which is valid until the call returns.
#[derive(Clone, Copy)]
pub struct OutMemory {
    pointer: *mut u8,
    byte_count: usize,
}

// SAFETY: only the call that received the memory writes to it, from any thread.
unsafe impl Send for OutMemory {}
// SAFETY: see `Send`.
unsafe impl Sync for OutMemory {}

impl OutAllocator {
    /// Sets the memory for the next batch.
    ///
    /// # Safety
    ///
    /// Nothing else may access the memory until [`OutAllocator::clear`] is called and the batch is
    /// dropped.
    pub unsafe fn set(&self, memory: OutMemory) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(memory);
    }

    pub fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl BatchAllocator for OutAllocator {
    fn allocate(&self, byte_count: usize) -> Result<Box<dyn BatchMemory>> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(memory) if memory.byte_count == byte_count => Ok(Box::new(memory)),
            Some(memory) => {
                let message = format!("out has {} bytes, but the samples have {byte_count}", memory.byte_count);
                Err(DataError::BadArgument(message))
            }
            None => Err(DataError::Internal("a read into out allocated more than once".to_owned())),
        }
    }
}

impl BatchMemory for OutMemory {
    fn bytes(&self) -> &[u8] {
        if self.byte_count == 0 {
            return &[];
        }
        // SAFETY: the memory belongs to the caller, see `OutAllocator::set`.
        unsafe { std::slice::from_raw_parts(self.pointer, self.byte_count) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        if self.byte_count == 0 {
            return &mut [];
        }
        // SAFETY: as in `bytes`.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.byte_count) }
    }
}

/// A Python object with writable memory.
pub enum Out {
    Array(Array),
    Tensor(ImportedTensor),
    Buffer(WritableBuffer),
}

impl Out {
    /// Returns the writable memory of an `Array` or of any object that supports DLPack or the
    /// buffer protocol.
    pub fn from_object(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(array) = object.cast::<Array>() {
            return if array.get().memory.is_writable() {
                Ok(Self::Array(array.get().clone()))
            } else {
                Err(read_only())
            };
        }
        if let Some(buffer) = WritableBuffer::of(object) {
            return Ok(Self::Buffer(buffer));
        }
        if let Some((dtype, bits)) = bits_of_numpy(object)?
            && let Some(mut buffer) = WritableBuffer::of(&bits)
        {
            buffer.dtype = Some(dtype);
            return Ok(Self::Buffer(buffer));
        }
        match ImportedTensor::from_object(object)? {
            Some(tensor) if !tensor.is_writable() => Err(read_only()),
            Some(tensor) if tensor.is_compact() => Ok(Self::Tensor(tensor)),
            Some(_) => Err(PyValueError::new_err("out is not contiguous: pass a contiguous array")),
            None => {
                let name = object.get_type().name()?;
                Err(PyTypeError::new_err(format!(
                    "out must be a writable array with DLPack or the buffer protocol, not {name}"
                )))
            }
        }
    }

    pub fn memory(&self) -> OutMemory {
        match self {
            Self::Array(array) => OutMemory { pointer: array.memory.pointer(), byte_count: array.memory.byte_count() },
            Self::Tensor(tensor) => OutMemory { pointer: tensor.pointer(), byte_count: tensor.byte_count() },
            Self::Buffer(buffer) => buffer.memory(),
        }
    }

    /// Fails unless the memory has this dtype and shape. A buffer of bytes is accepted for any
    /// dtype, and a buffer of `u16` for bf16, if its size matches.
    pub fn check(&self, dtype: DType, shape: &[usize]) -> PyResult<()> {
        let (found, extents) = match self {
            Self::Array(array) => (Some(array.dtype), &array.shape),
            Self::Tensor(tensor) => (Some(tensor.dtype), &tensor.shape),
            Self::Buffer(buffer) => (buffer.dtype, &buffer.shape),
        };
        let is_bits = found == Some(DType::U8) || (dtype == DType::Bf16 && found == Some(DType::U16));
        if found != Some(dtype) && !is_bits {
            let found = found.map_or("(unknown)", DType::name);
            return Err(PyTypeError::new_err(format!("out has dtype {found}, but the samples have {dtype}")));
        }
        let expected = shape.iter().fold(dtype.element_bytes(), |bytes, extent| bytes.saturating_mul(*extent));
        let is_right = if found == Some(dtype) { extents == shape } else { self.memory().byte_count == expected };
        if is_right {
            return Ok(());
        }
        Err(PyValueError::new_err(format!("out has shape {extents:?}, but the samples have {shape:?}")))
    }
}

#[cold]
fn read_only() -> PyErr {
    PyValueError::new_err("out is read-only: pass a writable array")
}

/// A contiguous, writable buffer view, which is released on drop.
pub struct WritableBuffer {
    view: Box<ffi::Py_buffer>,
    pub dtype: Option<DType>,
    pub shape: Vec<usize>,
}

impl WritableBuffer {
    /// Returns the writable, contiguous buffer of an object; `None` if it does not have one.
    fn of(object: &Bound<'_, PyAny>) -> Option<Self> {
        let mut view = Box::new(ffi::Py_buffer::new());
        let flags = ffi::PyBUF_C_CONTIGUOUS | ffi::PyBUF_WRITABLE | ffi::PyBUF_FORMAT;
        // SAFETY: the view is owned by this function, and released when the result is dropped.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &mut *view, flags) } != 0 {
            drop(PyErr::take(object.py()));
            return None;
        }
        let item_bytes = usize::try_from(view.itemsize).unwrap_or(0);
        let mut this = Self { view, dtype: None, shape: Vec::new() };
        // SAFETY: the view was filled with these flags: `format` is a C string, or null for bytes,
        // and `shape` has `ndim` extents.
        unsafe {
            let format = if this.view.format.is_null() { c"B" } else { CStr::from_ptr(this.view.format) };
            this.dtype = from_buffer_format(format.to_bytes(), item_bytes);
            let ndim = usize::try_from(this.view.ndim).unwrap_or(0);
            if ndim > 0 && !this.view.shape.is_null() {
                let extents = std::slice::from_raw_parts(this.view.shape, ndim);
                this.shape = extents.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).collect();
            }
        }
        Some(this)
    }

    fn memory(&self) -> OutMemory {
        OutMemory { pointer: self.view.buf.cast(), byte_count: usize::try_from(self.view.len).unwrap_or(0) }
    }
}

impl Drop for WritableBuffer {
    fn drop(&mut self) {
        Python::attach(|_| {
            // SAFETY: the view was filled once, and is released once.
            unsafe { ffi::PyBuffer_Release(&mut *self.view) }
        });
    }
}
