//! DLPack: exchanges tensors with other libraries without a copy.
//!
//! A Python capsule holds a C structure with a pointer, a shape, and a function that frees it. The
//! structures follow `dlpack.h`, version 1. Older, unversioned capsules are also read and written,
//! because some libraries still request them.
//!
//! An exported tensor owns its memory without a reference to a Python object, so any thread may
//! free it. An imported tensor is moved out of its capsule, which is renamed as DLPack requires;
//! dropping the [`ImportedTensor`] calls its deleter.

use crate::array::dtype::{from_dlpack, to_dlpack};
use crate::array::memory::Memory;
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyMemoryError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::any::Any;
use std::borrow::Cow;
use std::ffi::{CStr, c_void};
use tensilo::DType;

/// The DLPack device of host memory.
pub const CPU: (i32, i32) = (1, 0);

/// Ordinary host memory, and host memory that is pinned by CUDA or ROCm.
const HOST_DEVICE_TYPES: [i32; 3] = [1, 3, 11];

const UNVERSIONED: &CStr = c"dltensor";
const USED_UNVERSIONED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";

/// Flags read-only memory.
const READ_ONLY: u64 = 1;
/// Flags memory that was copied for the consumer.
const IS_COPIED: u64 = 2;

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct DlManagedTensor {
    tensor: DlTensor,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DlManagedTensor)>,
}

#[repr(C)]
struct DlManagedTensorVersioned {
    major: u32,
    minor: u32,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DlManagedTensorVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// The memory and layout that an exported tensor points to. It holds no Python object, so any
/// thread may free it.
struct ManagerContext {
    _owner: Box<dyn Any + Send + Sync>,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// A tensor to export.
pub struct ExportedTensor<'s> {
    pub data: *mut c_void,
    pub dtype: DType,
    pub shape: &'s [usize],
    pub device: (i32, i32),
    /// Whether the memory was copied for the consumer.
    pub is_copied: bool,
    /// Keeps the memory alive.
    pub owner: Box<dyn Any + Send + Sync>,
}

/// Returns a capsule of host memory with a dtype and a shape.
pub fn export<'py>(
    py: Python<'py>,
    memory: &Memory,
    dtype: DType,
    shape: &[usize],
    max_version: Option<(u32, u32)>,
    device: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    if device.is_some_and(|device| device != CPU) {
        return Err(PyBufferError::new_err("the array is in host memory: move it to the device after the import"));
    }
    if !memory.is_writable() && copy != Some(true) {
        // PyTorch ignores the read-only flag of DLPack
        let message = "the memory is read-only: use numpy(), which shares it, or torch() or jax(), which copy it";
        return Err(PyBufferError::new_err(message));
    }
    let memory = if copy == Some(true) { Memory::copied(&memory.to_vec()) } else { memory.clone() };
    let exported = ExportedTensor {
        data: memory.pointer().cast(),
        dtype,
        shape,
        device: CPU,
        is_copied: copy == Some(true),
        owner: Box::new(memory),
    };
    capsule(py, exported, max_version)
}

/// Returns a capsule of a tensor in writable memory.
pub fn capsule<'py>(
    py: Python<'py>,
    exported: ExportedTensor<'_>,
    max_version: Option<(u32, u32)>,
) -> PyResult<Bound<'py, PyAny>> {
    let ExportedTensor { data, dtype, shape, device: (device_type, device_id), is_copied, owner } = exported;
    let is_versioned = max_version.is_some_and(|(major, _)| major >= 1);
    let (code, bits) = to_dlpack(dtype);
    let flags = if is_copied { IS_COPIED } else { 0 };
    let strides = compact(shape);
    let shape: Vec<i64> = shape.iter().map(|extent| i64::try_from(*extent)).collect::<Result<_, _>>()?;
    let ndim = i32::try_from(shape.len())?;
    let manager_ctx = Box::into_raw(Box::new(ManagerContext { _owner: owner, shape, strides }));
    // SAFETY: created above, and not freed before the deleter runs.
    let (shape, strides) = unsafe { ((*manager_ctx).shape.as_mut_ptr(), (*manager_ctx).strides.as_mut_ptr()) };
    let tensor = DlTensor { data, device_type, device_id, ndim, code, bits, lanes: 1, shape, strides, byte_offset: 0 };
    let manager_ctx = manager_ctx.cast();
    let capsule = if is_versioned {
        let deleter = Some(free_versioned as unsafe extern "C" fn(_));
        let tensor = DlManagedTensorVersioned { major: 1, minor: 0, manager_ctx, deleter, flags, tensor };
        let tensor = Box::into_raw(Box::new(tensor));
        // SAFETY: the name is static. The destructor frees the tensor unless a consumer took it; if
        // no capsule was made, this is the only pointer to it.
        unsafe {
            let capsule = ffi::PyCapsule_New(tensor.cast(), VERSIONED.as_ptr(), Some(drop_capsule));
            if capsule.is_null() {
                free_versioned(tensor);
            }
            capsule
        }
    } else {
        let deleter = Some(free_unversioned as unsafe extern "C" fn(_));
        let tensor = Box::into_raw(Box::new(DlManagedTensor { tensor, manager_ctx, deleter }));
        // SAFETY: as above.
        unsafe {
            let capsule = ffi::PyCapsule_New(tensor.cast(), UNVERSIONED.as_ptr(), Some(drop_capsule));
            if capsule.is_null() {
                free_unversioned(tensor);
            }
            capsule
        }
    };
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }
}

/// Frees a tensor that [`capsule`] created. Any thread may call this function.
unsafe extern "C" fn free_unversioned(tensor: *mut DlManagedTensor) {
    if !tensor.is_null() {
        // SAFETY: `capsule` made both boxes, and the consumer frees them once.
        unsafe {
            let tensor = Box::from_raw(tensor);
            drop(Box::from_raw(tensor.manager_ctx.cast::<ManagerContext>()));
        }
    }
}

/// Like [`free_unversioned`], for a versioned tensor.
unsafe extern "C" fn free_versioned(tensor: *mut DlManagedTensorVersioned) {
    if !tensor.is_null() {
        // SAFETY: as in `free_unversioned`.
        unsafe {
            let tensor = Box::from_raw(tensor);
            drop(Box::from_raw(tensor.manager_ctx.cast::<ManagerContext>()));
        }
    }
}

/// Frees the tensor of a capsule, unless a consumer has taken it and renamed the capsule.
unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: the function `capsule` made this object, so its pointer is valid under its name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            free_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, UNVERSIONED.as_ptr()) == 1 {
            free_unversioned(ffi::PyCapsule_GetPointer(capsule, UNVERSIONED.as_ptr()).cast());
        }
    }
}

/// A tensor of another library. Dropping it calls its deleter.
pub struct ImportedTensor {
    tensor: OwnedTensor,
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// The strides, in elements.
    strides: Vec<i64>,
    is_writable: bool,
}

enum OwnedTensor {
    Unversioned(*mut DlManagedTensor),
    Versioned(*mut DlManagedTensorVersioned),
}

impl Drop for OwnedTensor {
    fn drop(&mut self) {
        // SAFETY: the tensor was taken out of its capsule, so this is its only owner.
        unsafe {
            match *self {
                Self::Unversioned(tensor) => (*tensor).deleter.into_iter().for_each(|deleter| deleter(tensor)),
                Self::Versioned(tensor) => (*tensor).deleter.into_iter().for_each(|deleter| deleter(tensor)),
            }
        }
    }
}

impl OwnedTensor {
    fn tensor(&self) -> &DlTensor {
        // SAFETY: alive until the deleter runs.
        unsafe {
            match *self {
                Self::Unversioned(tensor) => &(*tensor).tensor,
                Self::Versioned(tensor) => &(*tensor).tensor,
            }
        }
    }

    fn flags(&self) -> u64 {
        match *self {
            Self::Unversioned(_) => 0,
            // SAFETY: alive until the deleter runs.
            Self::Versioned(tensor) => unsafe { (*tensor).flags },
        }
    }
}

impl ImportedTensor {
    /// Imports the tensor of an object; returns `None` if the object does not support DLPack.
    pub fn from_object(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let export = match object.getattr("__dlpack__") {
            Ok(export) => export,
            Err(error) if error.is_instance_of::<PyAttributeError>(object.py()) => return Ok(None),
            Err(error) => return Err(error),
        };
        let device: (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
        if !HOST_DEVICE_TYPES.contains(&device.0) {
            let message = "the tensor is not in host memory: pass tensor.cpu()";
            return Err(PyBufferError::new_err(message));
        }
        let keywords = PyDict::new(object.py());
        keywords.set_item("max_version", (1_u32, 0_u32))?;
        let capsule = match export.call((), Some(&keywords)) {
            Ok(capsule) => capsule,
            // exporters older than DLPack 1 do not accept the argument
            Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => export.call0()?,
            Err(error) => return Err(error),
        };
        Self::from_capsule(&capsule).map(Some)
    }

    fn from_capsule(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        let pointer = capsule.as_ptr();
        // SAFETY: a capsule of this name points to a tensor of this kind. Renaming the capsule
        // makes the tensor ours.
        let tensor = unsafe {
            if ffi::PyCapsule_IsValid(pointer, VERSIONED.as_ptr()) == 1 {
                let tensor = ffi::PyCapsule_GetPointer(pointer, VERSIONED.as_ptr()).cast::<DlManagedTensorVersioned>();
                if (*tensor).major > 1 {
                    return Err(PyBufferError::new_err(format!(
                        "DLPack {}.{} is too new: this package supports version 1",
                        (*tensor).major,
                        (*tensor).minor
                    )));
                }
                ffi::PyCapsule_SetName(pointer, USED_VERSIONED.as_ptr());
                OwnedTensor::Versioned(tensor)
            } else if ffi::PyCapsule_IsValid(pointer, UNVERSIONED.as_ptr()) == 1 {
                let tensor = ffi::PyCapsule_GetPointer(pointer, UNVERSIONED.as_ptr()).cast::<DlManagedTensor>();
                ffi::PyCapsule_SetName(pointer, USED_UNVERSIONED.as_ptr());
                OwnedTensor::Unversioned(tensor)
            } else {
                return Err(PyBufferError::new_err("__dlpack__ did not return a DLPack capsule"));
            }
        };
        let is_writable = tensor.flags() & READ_ONLY == 0;
        let (dtype, shape, strides) = {
            let found = tensor.tensor();
            if !HOST_DEVICE_TYPES.contains(&found.device_type) {
                return Err(PyBufferError::new_err("the tensor is not in host memory: pass tensor.cpu()"));
            }
            let dtype = from_dlpack(found.code, found.bits).filter(|_| found.lanes == 1).ok_or_else(|| {
                let (code, bits, lanes) = (found.code, found.bits, found.lanes);
                PyTypeError::new_err(format!("unsupported DLPack dtype: code {code}, {bits} bits, {lanes} lanes"))
            })?;
            let ndim = usize::try_from(found.ndim)?;
            if ndim > 64 || (ndim > 0 && found.shape.is_null()) {
                let problem = if ndim > 64 { "the maximum is 64" } else { "its shape is a null pointer" };
                return Err(PyValueError::new_err(format!(
                    "cannot import a DLPack tensor with {ndim} dimensions: {problem}"
                )));
            }
            // SAFETY: DLPack guarantees that `shape` has `ndim` entries, and that `strides` is null
            // or also has `ndim` entries.
            let (shape, strides) = unsafe { (numbers(found.shape, ndim), numbers(found.strides, ndim)) };
            let shape: Vec<usize> = shape.iter().map(|extent| usize::try_from(*extent)).collect::<Result<_, _>>()?;
            let bytes = shape.iter().try_fold(dtype.element_bytes(), |bytes, extent| bytes.checked_mul(*extent));
            let is_null = found.data.is_null() && bytes != Some(0);
            if is_null || bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
                let problem = if is_null { "its data pointer is null" } else { "it exceeds the address space" };
                return Err(PyValueError::new_err(format!(
                    "cannot import a DLPack tensor of shape {shape:?}: {problem}"
                )));
            }
            let strides = if found.strides.is_null() { compact(&shape) } else { strides };
            (dtype, shape, strides)
        };
        Ok(Self { tensor, dtype, shape, strides, is_writable })
    }

    pub fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Returns the address of the first element.
    pub fn pointer(&self) -> *mut u8 {
        let tensor = self.tensor.tensor();
        // DLPack guarantees that the offset is inside the memory
        tensor.data.cast::<u8>().wrapping_add(usize::try_from(tensor.byte_offset).unwrap_or(0))
    }

    pub fn byte_count(&self) -> usize {
        self.shape.iter().fold(self.dtype.element_bytes(), |bytes, extent| bytes.saturating_mul(*extent))
    }

    /// Returns whether the elements are contiguous and row-major.
    pub fn is_compact(&self) -> bool {
        let expected = compact(&self.shape);
        let mut pairs = self.shape.iter().zip(self.strides.iter().zip(expected));
        self.byte_count() == 0 || pairs.all(|(extent, (stride, expected))| *extent == 1 || *stride == expected)
    }

    /// Returns the elements, contiguous and row-major. They are borrowed if they already have this
    /// layout, and otherwise copied.
    pub fn bytes(&self) -> PyResult<Cow<'_, [u8]>> {
        if self.byte_count() == 0 {
            return Ok(Cow::Borrowed(&[]));
        }
        if self.is_compact() {
            // SAFETY: DLPack guarantees that the elements of a compact tensor are at the pointer.
            return Ok(Cow::Borrowed(unsafe { std::slice::from_raw_parts(self.pointer(), self.byte_count()) }));
        }
        let mut bytes = Vec::new();
        let reserved = bytes.try_reserve_exact(self.byte_count());
        reserved.map_err(|_| PyMemoryError::new_err("the tensor does not fit in memory"))?;
        self.copy_from(0, self.pointer(), &mut bytes);
        Ok(Cow::Owned(bytes))
    }

    /// Appends the elements that start at `pointer`, along `dimension` and all dimensions after it.
    fn copy_from(&self, dimension: usize, pointer: *const u8, to: &mut Vec<u8>) {
        let width = self.dtype.element_bytes();
        let (Some(&extent), Some(&stride)) = (self.shape.get(dimension), self.strides.get(dimension)) else {
            // SAFETY: DLPack guarantees that the strides lead to elements of the tensor.
            to.extend_from_slice(unsafe { std::slice::from_raw_parts(pointer, width) });
            return;
        };
        let step = isize::try_from(stride).unwrap_or(0).saturating_mul(isize::try_from(width).unwrap_or(1));
        let mut pointer = pointer;
        for _ in 0..extent {
            self.copy_from(dimension.saturating_add(1), pointer, to);
            pointer = pointer.wrapping_offset(step);
        }
    }
}

/// Returns the strides, in elements, of a contiguous row-major tensor.
fn compact(shape: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    let mut stride = 1_i64;
    for (to, extent) in strides.iter_mut().zip(shape).rev() {
        *to = stride;
        stride = stride.saturating_mul(i64::try_from(*extent).unwrap_or(i64::MAX));
    }
    strides
}

/// Copies `count` numbers; returns an empty vector if the pointer is null.
///
/// # Safety
///
/// The pointer must be null, or point to `count` numbers.
unsafe fn numbers(pointer: *const i64, count: usize) -> Vec<i64> {
    if pointer.is_null() || count == 0 {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(pointer, count) }.to_vec()
}
