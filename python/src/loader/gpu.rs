//! GPUs that decode batches, and the memory of these batches.
//!
//! The memory comes from a Python allocator: PyTorch's, or [`Gpu::allocate`], whose memory other
//! libraries can access through DLPack. [`Gpu::allocate`] reuses freed buffers. A consumer can free
//! a buffer that its stream still uses, so a returned buffer is reused only after the GPU has been
//! synchronized.
//!
//! Tests use an emulated GPU with host memory, see [`tensilo_cuda::Gpu::open`].

use crate::arguments::Natural;
use crate::array::dlpack::{self, CPU, ExportedTensor};
use crate::array::dtype::DTypeArgument;
use crate::error::exception;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;
use std::error::Error;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tensilo::DType;
use tensilo_cuda::{BatchMemory, DeviceBuffer};
use tensilo_data::DeviceAllocator;

/// The DLPack device type of GPU memory.
const CUDA: i32 = 2;

/// A GPU.
#[pyclass(frozen, module = "tensilo._tensilo")]
pub struct Gpu {
    pub gpu: tensilo_cuda::Gpu,
    number: i32,
    pool: Arc<Pool>,
}

#[pymethods]
impl Gpu {
    #[new]
    fn new(py: Python<'_>, number: Natural<usize>) -> PyResult<Self> {
        let gpu = py.detach(|| tensilo_cuda::Gpu::open(number.0)).map_err(|error| gpu_exception(py, error))?;
        let pool = Arc::new(Pool { gpu: gpu.clone(), buffers: Mutex::default() });
        Ok(Self { gpu, number: i32::try_from(number.0)?, pool })
    }

    /// Whether the GPU is emulated and its memory is host memory.
    #[getter]
    fn is_emulated(&self) -> bool {
        self.gpu.is_emulated()
    }

    /// The handle of the stream that batches are decoded on.
    #[getter]
    fn stream(&self) -> u64 {
        self.gpu.stream()
    }

    /// Returns device memory. The memory is reused once no object shares it.
    ///
    /// Args:
    ///     byte_count (int): the size in bytes.
    fn allocate(&self, py: Python<'_>, byte_count: usize) -> PyResult<DeviceMemory> {
        let buffer = py.detach(|| self.pool.take(byte_count)).map_err(|error| gpu_exception(py, error))?;
        let device = if self.gpu.is_emulated() { CPU } else { (CUDA, self.number) };
        let buffer = Arc::new(PooledBuffer { buffer: Some(buffer), pool: self.pool.clone() });
        Ok(DeviceMemory { buffer, byte_count, device })
    }

    fn __repr__(&self) -> String {
        format!("Gpu({}, {})", self.number, self.gpu.name())
    }
}

/// Converts a GPU error to an exception.
pub fn gpu_exception(py: Python<'_>, error: tensilo_cuda::CudaError) -> PyErr {
    exception(py, &error.into())
}

/// GPU buffers that are reused.
struct Pool {
    gpu: tensilo_cuda::Gpu,
    buffers: Mutex<Buffers>,
}

#[derive(Default)]
struct Buffers {
    free: Vec<DeviceBuffer>,
    /// Freed buffers that other libraries may still be using.
    returned: Vec<DeviceBuffer>,
}

/// The number of returned buffers at which the pool synchronizes the GPU and reuses them.
const MAX_RETURNED: usize = 4;
/// Buffer sizes are rounded up to GPU pages.
const PAGE_BYTES: usize = 2 << 20;

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Buffers> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a buffer of at least `bytes` bytes.
    fn take(&self, bytes: usize) -> tensilo_cuda::Result<DeviceBuffer> {
        let returned = {
            let mut buffers = self.lock();
            if let Some(found) = buffers.take_free(bytes) {
                return Ok(found);
            }
            if buffers.returned.len() < MAX_RETURNED { Vec::new() } else { mem::take(&mut buffers.returned) }
        };
        if !returned.is_empty() {
            // without the lock, so that consumers can return memory in the meantime
            self.gpu.synchronize()?;
            let mut buffers = self.lock();
            let before = mem::replace(&mut buffers.free, returned); // none of these is large enough
            let found = buffers.take_free(bytes);
            drop(buffers);
            drop(before);
            if let Some(found) = found {
                return Ok(found);
            }
        }
        self.gpu.new_buffer(bytes.max(1).checked_next_multiple_of(PAGE_BYTES).unwrap_or(bytes))
    }
}

impl Buffers {
    /// Returns the smallest free buffer that is large enough.
    fn take_free(&mut self, bytes: usize) -> Option<DeviceBuffer> {
        let large_enough = self.free.iter().enumerate().filter(|(_, buffer)| buffer.byte_count() >= bytes);
        let (at, _) = large_enough.min_by_key(|(_, buffer)| buffer.byte_count())?;
        Some(self.free.swap_remove(at))
    }
}

/// A buffer that returns to its pool when it is dropped.
struct PooledBuffer {
    buffer: Option<DeviceBuffer>,
    pool: Arc<Pool>,
}

impl PooledBuffer {
    fn address(&self) -> u64 {
        self.buffer.as_ref().map_or(0, DeviceBuffer::address)
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.pool.lock().returned.extend(self.buffer.take());
    }
}

/// GPU memory of a batch.
#[pyclass(frozen, module = "tensilo._tensilo")]
pub struct DeviceMemory {
    buffer: Arc<PooledBuffer>,
    byte_count: usize,
    device: (i32, i32),
}

#[pymethods]
impl DeviceMemory {
    /// Returns the device address of the first byte.
    fn data_ptr(&self) -> u64 {
        self.buffer.address()
    }

    /// Returns a tensor in this memory.
    ///
    /// Args:
    ///     start (int): the offset of the tensor, in bytes.
    ///     dtype (str or dtype): its dtype.
    ///     shape (sequence of int): its shape.
    fn array(&self, start: usize, dtype: DTypeArgument, shape: Vec<usize>) -> PyResult<DeviceArray> {
        let bytes = shape.iter().try_fold(dtype.0.element_bytes(), |bytes, extent| bytes.checked_mul(*extent));
        let end = bytes.and_then(|bytes| bytes.checked_add(start)).filter(|end| *end <= self.byte_count);
        let outside = || {
            PyValueError::new_err(format!(
                "an array of shape {shape:?} at byte {start} extends beyond the end of the memory, which has {} bytes",
                self.byte_count
            ))
        };
        end.ok_or_else(outside)?;
        Ok(DeviceArray { buffer: self.buffer.clone(), start, dtype: dtype.0, shape, device: self.device })
    }
}

/// A decoded tensor in GPU memory, which other libraries can access through DLPack.
#[pyclass(frozen, module = "tensilo._tensilo")]
pub struct DeviceArray {
    buffer: Arc<PooledBuffer>,
    start: usize,
    dtype: DType,
    shape: Vec<usize>,
    device: (i32, i32),
}

#[pymethods]
impl DeviceArray {
    fn __dlpack_device__(&self) -> (i32, i32) {
        self.device
    }

    /// Exports the tensor through DLPack. Any stream may use it immediately.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = stream; // decoding has finished, so no stream has to wait
        if dl_device.is_some_and(|device| device != self.device) || copy == Some(true) {
            return Err(PyBufferError::new_err(
                "this array can be imported only in place, on its own device: import it, and then copy it",
            ));
        }
        let address = usize::try_from(self.buffer.address())?.saturating_add(self.start);
        let exported = ExportedTensor {
            data: std::ptr::with_exposed_provenance_mut(address),
            dtype: self.dtype,
            shape: &self.shape,
            device: self.device,
            is_copied: false,
            owner: Box::new(self.buffer.clone()),
        };
        dlpack::capsule(py, exported, max_version)
    }

    fn __repr__(&self) -> String {
        format!("DeviceArray({}, {:?})", self.dtype, self.shape)
    }
}

/// A batch allocator implemented in Python.
pub struct PythonAllocator {
    /// A callable that takes a number of bytes and returns memory.
    pub allocate: Py<PyAny>,
    pub stream: u64,
}

/// Memory from a [`PythonAllocator`].
pub struct PythonMemory {
    pub object: Py<PyAny>,
    location: BatchMemory,
}

// SAFETY: the callables in `tensilo/*.py` return PyTorch tensors or `DeviceMemory` on the GPU of
// the loader. The memory lives as long as the object, which no other code can reach before it is
// delivered. Earlier users freed the memory on the same stream.
unsafe impl DeviceAllocator for PythonAllocator {
    type Memory = PythonMemory;

    fn allocate(&mut self, bytes: usize) -> Result<PythonMemory, Box<dyn Error + Send + Sync>> {
        let allocated = Python::try_attach(|py| -> PyResult<PythonMemory> {
            let object = self.allocate.call1(py, (bytes,))?;
            let address = object.call_method0(py, "data_ptr")?.extract(py)?;
            Ok(PythonMemory { object, location: BatchMemory { address, bytes, stream: self.stream } })
        });
        Ok(allocated.ok_or("the Python interpreter is shutting down")??)
    }

    fn location(memory: &PythonMemory) -> BatchMemory {
        memory.location
    }
}
