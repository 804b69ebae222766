//! DLPack: arrays of other libraries in and out, without copies.
//!
//! A capsule of Python holds a C structure with a pointer, a shape and a function that frees it.
//! The structures are those of `dlpack.h`, version 1; capsules without a version are older, and
//! are read and written, too, because libraries still ask for them.
//!
//! What is exported owns its memory without an object of Python, so that any thread may free it.
//! What is imported is taken out of its capsule, which is renamed as DLPack asks for, and given
//! back when [`ImportedTensor`] is dropped.

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

/// The device of memory of the processor.
pub const CPU: (i32, i32) = (1, 0);

/// Its own, and what CUDA and ROCm have pinned for it.
const HOST_DEVICE_TYPES: [i32; 3] = [1, 3, 11];

const UNVERSIONED: &CStr = c"dltensor";
const USED_UNVERSIONED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";

/// The flag of memory that can only be read.
const READ_ONLY: u64 = 1;
/// The flag of memory that was copied for the consumer.
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

/// What an exported tensor points to. Has no reference to an object of Python, so that any thread
/// may free it.
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
    /// Keeps the memory where it is.
    pub owner: Box<dyn Any + Send + Sync>,
}

/// Returns a capsule of an array: its memory, the type of its elements, and its shape.
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
        return Err(PyBufferError::new_err("the array is in memory of the processor; move it after the import"));
    }
    if !memory.is_writable() && copy != Some(true) {
        // PyTorch writes to memory of which DLPack says that it can only be read
        let message = "the memory can only be read: numpy() shares it, and torch() and jax() copy it";
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

/// Returns a capsule of a tensor, whose memory can be written to.
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
    // SAFETY: just made, and not freed before the deleter runs.
    let (shape, strides) = unsafe { ((*manager_ctx).shape.as_mut_ptr(), (*manager_ctx).strides.as_mut_ptr()) };
    let tensor = DlTensor { data, device_type, device_id, ndim, code, bits, lanes: 1, shape, strides, byte_offset: 0 };
    let manager_ctx = manager_ctx.cast();
    let capsule = if is_versioned {
        let deleter = Some(free_versioned as unsafe extern "C" fn(_));
        let tensor = DlManagedTensorVersioned { major: 1, minor: 0, manager_ctx, deleter, flags, tensor };
        let tensor = Box::into_raw(Box::new(tensor));
        // SAFETY: the name is static; the destructor frees the tensor unless it was taken, and
        // where no capsule was made, nobody else has it.
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

/// Frees a tensor of [`export`]. Any thread may call it.
unsafe extern "C" fn free_unversioned(tensor: *mut DlManagedTensor) {
    if !tensor.is_null() {
        // SAFETY: both boxes are those of `export`, which the consumer frees once.
        unsafe {
            let tensor = Box::from_raw(tensor);
            drop(Box::from_raw(tensor.manager_ctx.cast::<ManagerContext>()));
        }
    }
}

/// As [`free_unversioned`].
unsafe extern "C" fn free_versioned(tensor: *mut DlManagedTensorVersioned) {
    if !tensor.is_null() {
        // SAFETY: as in `free_unversioned`.
        unsafe {
            let tensor = Box::from_raw(tensor);
            drop(Box::from_raw(tensor.manager_ctx.cast::<ManagerContext>()));
        }
    }
}

/// Frees the tensor of a capsule that nobody has taken: its name is still the first one.
unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with a capsule of `export`, whose pointer is valid under its name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            free_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, UNVERSIONED.as_ptr()) == 1 {
            free_unversioned(ffi::PyCapsule_GetPointer(capsule, UNVERSIONED.as_ptr()).cast());
        }
    }
}

/// A tensor of another library. It is given back when this is dropped.
pub struct ImportedTensor {
    tensor: OwnedTensor,
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// In elements.
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
    /// Takes the tensor that an object exports; `None` if it exports none.
    pub fn from_object(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let export = match object.getattr("__dlpack__") {
            Ok(export) => export,
            Err(error) if error.is_instance_of::<PyAttributeError>(object.py()) => return Ok(None),
            Err(error) => return Err(error),
        };
        let device: (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
        if !HOST_DEVICE_TYPES.contains(&device.0) {
            let message = "the tensor is not in memory of the processor: pass tensor.cpu()";
            return Err(PyBufferError::new_err(message));
        }
        let keywords = PyDict::new(object.py());
        keywords.set_item("max_version", (1_u32, 0_u32))?;
        let capsule = match export.call((), Some(&keywords)) {
            Ok(capsule) => capsule,
            // an exporter older than versions does not know the argument
            Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => export.call0()?,
            Err(error) => return Err(error),
        };
        Self::from_capsule(&capsule).map(Some)
    }

    fn from_capsule(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        let pointer = capsule.as_ptr();
        // SAFETY: the pointer of a capsule of this name is a tensor of this kind. After the capsule
        // is renamed, the tensor is ours.
        let tensor = unsafe {
            if ffi::PyCapsule_IsValid(pointer, VERSIONED.as_ptr()) == 1 {
                let tensor = ffi::PyCapsule_GetPointer(pointer, VERSIONED.as_ptr()).cast::<DlManagedTensorVersioned>();
                if (*tensor).major > 1 {
                    return Err(PyBufferError::new_err(format!(
                        "DLPack {}.{}, and 1 is known",
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
                return Err(PyBufferError::new_err("__dlpack__ returned no capsule of a tensor"));
            }
        };
        let is_writable = tensor.flags() & READ_ONLY == 0;
        let (dtype, shape, strides) = {
            let found = tensor.tensor();
            if !HOST_DEVICE_TYPES.contains(&found.device_type) {
                return Err(PyBufferError::new_err("the tensor is not in memory of the processor: pass tensor.cpu()"));
            }
            let dtype = from_dlpack(found.code, found.bits).filter(|_| found.lanes == 1).ok_or_else(|| {
                let (code, bits, lanes) = (found.code, found.bits, found.lanes);
                PyTypeError::new_err(format!(
                    "tensilo has no elements of DLPack's type {code}, {bits} bits, {lanes} lanes"
                ))
            })?;
            let rank = usize::try_from(found.ndim)?;
            if rank > 64 || (rank > 0 && found.shape.is_null()) {
                return Err(PyValueError::new_err(format!("a tensor of {rank} dimensions without a shape")));
            }
            // SAFETY: DLPack: `shape` has `ndim` numbers, and `strides` too unless it is null.
            let (shape, strides) = unsafe { (numbers(found.shape, rank), numbers(found.strides, rank)) };
            let shape: Vec<usize> = shape.iter().map(|extent| usize::try_from(*extent)).collect::<Result<_, _>>()?;
            let bytes = shape.iter().try_fold(dtype.element_bytes(), |bytes, extent| bytes.checked_mul(*extent));
            let is_null = found.data.is_null() && bytes != Some(0);
            if is_null || bytes.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
                return Err(PyValueError::new_err(format!("a tensor of shape {shape:?} does not fit in memory")));
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
        // the offset is inside the memory
        tensor.data.cast::<u8>().wrapping_add(usize::try_from(tensor.byte_offset).unwrap_or(0))
    }

    pub fn byte_count(&self) -> usize {
        self.shape.iter().fold(self.dtype.element_bytes(), |bytes, extent| bytes.saturating_mul(*extent))
    }

    /// Returns whether the elements lie side by side, row-major.
    pub fn is_compact(&self) -> bool {
        let expected = compact(&self.shape);
        let mut pairs = self.shape.iter().zip(self.strides.iter().zip(expected));
        self.byte_count() == 0 || pairs.all(|(extent, (stride, expected))| *extent == 1 || *stride == expected)
    }

    /// Returns the elements side by side, row-major: borrowed if they are, and copied otherwise.
    pub fn bytes(&self) -> PyResult<Cow<'_, [u8]>> {
        if self.byte_count() == 0 {
            return Ok(Cow::Borrowed(&[]));
        }
        if self.is_compact() {
            // SAFETY: DLPack: the elements of a compact tensor are at the pointer.
            return Ok(Cow::Borrowed(unsafe { std::slice::from_raw_parts(self.pointer(), self.byte_count()) }));
        }
        let mut bytes = Vec::new();
        let reserved = bytes.try_reserve_exact(self.byte_count());
        reserved.map_err(|_| PyMemoryError::new_err("a tensor does not fit in memory"))?;
        self.copy_from(0, self.pointer(), &mut bytes);
        Ok(Cow::Owned(bytes))
    }

    /// Appends the elements from a dimension on.
    fn copy_from(&self, dimension: usize, pointer: *const u8, to: &mut Vec<u8>) {
        let width = self.dtype.element_bytes();
        let (Some(&extent), Some(&stride)) = (self.shape.get(dimension), self.strides.get(dimension)) else {
            // SAFETY: the strides of DLPack lead to elements of the tensor.
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

/// Returns the strides, in elements, of a tensor whose elements lie side by side.
fn compact(shape: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    let mut stride = 1_i64;
    for (to, extent) in strides.iter_mut().zip(shape).rev() {
        *to = stride;
        stride = stride.saturating_mul(i64::try_from(*extent).unwrap_or(i64::MAX));
    }
    strides
}

/// Returns a copy of numbers; none if the pointer is null.
///
/// # Safety
///
/// Unless it is null, `count` numbers are at the pointer.
unsafe fn numbers(pointer: *const i64, count: usize) -> Vec<i64> {
    if pointer.is_null() || count == 0 {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(pointer, count) }.to_vec()
}
