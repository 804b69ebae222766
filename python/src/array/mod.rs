//! `Array`: a tensor whose memory other libraries share.
//!
//! A sample, or a column of a batch, is memory with a dtype and a shape. Other libraries can access
//! it without a copy in three ways: DLPack (PyTorch, JAX, NumPy), the buffer protocol
//! (`memoryview`), and `__array__` (NumPy with the dtypes of ml_dtypes). Reading a file requires
//! none of these libraries, so the package has its own array type. It gives access to the elements,
//! and has no arithmetic.
//!
//! In this folder, `memory` and `dtype` are the components of an array. `dlpack`, `elements` and
//! `out` move data in and out, and `indices` parses sample indices. Only `elements` and `out`
//! depend on `Array` itself.

pub mod dlpack;
pub mod dtype;
pub mod elements;
pub mod indices;
pub mod memory;
pub mod out;

use crate::array::dtype::{DTypeArgument, buffer_format};
use crate::array::memory::Memory;
use half::{bf16, f16};
use pyo3::exceptions::{PyBufferError, PyIndexError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyComplex, PyList, PySlice, PyTuple};
use std::ffi::c_int;
use tensilo::DType;

/// A row-major tensor whose memory NumPy, PyTorch and JAX share without a copy.
///
/// ``numpy()``, ``torch()`` and ``jax()`` return arrays of these libraries.
/// ``torch.from_dlpack(array)``, ``np.asarray(array)`` and ``memoryview(array)`` also work. The
/// memory is writable and belongs to the array, unless ``readonly`` is true. ``len(array)`` is the
/// first extent. An integer index or a slice returns a view along the first dimension.
#[pyclass(frozen, module = "tensilo")]
#[derive(Clone)]
pub struct Array {
    pub memory: Memory,
    pub dtype: DType,
    pub shape: Vec<usize>,
}

/// The maximum number of dimensions, as in NumPy.
const MAX_RANK: usize = 64;

impl Array {
    /// Returns the array, or a copy if its memory is read-only.
    fn writable(&self) -> Self {
        if self.memory.is_writable() {
            return self.clone();
        }
        Self { memory: Memory::copied(&self.memory.to_vec()), ..self.clone() }
    }

    /// Returns the only element.
    fn only<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.memory.byte_count() != self.dtype.element_bytes() {
            let message = format!("expected an array with exactly one element, found shape {:?}", self.shape);
            return Err(PyValueError::new_err(message));
        }
        self.element(py)
    }

    /// Creates an array. Fails if the size of the memory does not match the shape.
    pub fn new(memory: Memory, dtype: DType, shape: Vec<usize>) -> PyResult<Self> {
        if shape.len() > MAX_RANK {
            let message = format!("{} dimensions exceed the maximum of {MAX_RANK}", shape.len());
            return Err(PyValueError::new_err(message));
        }
        let expected = shape.iter().try_fold(dtype.element_bytes(), |bytes, extent| bytes.checked_mul(*extent));
        if expected != Some(memory.byte_count()) {
            let found = memory.byte_count();
            return Err(PyValueError::new_err(format!(
                "{found} bytes do not match a {dtype} array of shape {shape:?}"
            )));
        }
        Ok(Self { memory, dtype, shape })
    }

    /// Returns a one-dimensional i64 array.
    pub fn from_numbers(numbers: Vec<i64>) -> Self {
        let shape = vec![numbers.len()];
        Self { memory: Memory::from_numbers(numbers), dtype: DType::I64, shape }
    }

    /// Returns the stride of the first dimension, in bytes.
    fn stride(&self) -> usize {
        self.shape.iter().skip(1).fold(self.dtype.element_bytes(), |bytes, extent| bytes.saturating_mul(*extent))
    }

    /// Returns a view of indices `start..end` of the first dimension.
    fn range(&self, start: usize, end: usize) -> Option<Self> {
        let stride = self.stride();
        let count = end.checked_sub(start)?;
        let memory = self.memory.slice(start.checked_mul(stride)?, count.checked_mul(stride)?)?;
        let mut shape = self.shape.clone();
        *shape.first_mut()? = count;
        Some(Self { memory, dtype: self.dtype, shape })
    }

    /// Returns a view of index `i` of the first dimension. The view has one dimension fewer.
    pub fn member(&self, i: usize) -> Option<Self> {
        let mut member = self.range(i, i.checked_add(1)?)?;
        member.shape.remove(0);
        Some(member)
    }

    /// Returns the elements as nested lists, or the only element of a 0-dimensional array.
    pub fn to_object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Some(&count) = self.shape.first() else { return self.element(py) };
        let members = (0..count).map(|i| {
            let member = self
                .member(i)
                .ok_or_else(|| PyIndexError::new_err("internal error: an array extends beyond its buffer"))?;
            member.to_object(py)
        });
        Ok(PyList::new(py, members.collect::<PyResult<Vec<_>>>()?)?.into_any())
    }

    /// Returns a DLPack capsule.
    pub fn to_dlpack<'py>(
        &self,
        py: Python<'py>,
        max_version: Option<(u32, u32)>,
        device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        dlpack::export(py, &self.memory, self.dtype, &self.shape, max_version, device, copy)
    }

    fn element<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = self.memory.element(0, self.dtype).unwrap_or_default();
        let [a, b, c, d, ..] = bytes;
        Ok(match self.dtype {
            DType::Bf16 => bf16::from_ne_bytes([a, b]).to_f64().into_pyobject(py)?.into_any(),
            DType::F16 => f16::from_ne_bytes([a, b]).to_f64().into_pyobject(py)?.into_any(),
            DType::F32 => f64::from(f32::from_ne_bytes([a, b, c, d])).into_pyobject(py)?.into_any(),
            DType::F64 => f64::from_ne_bytes(bytes).into_pyobject(py)?.into_any(),
            DType::I8 => i8::from_ne_bytes([a]).into_pyobject(py)?.into_any(),
            DType::I16 => i16::from_ne_bytes([a, b]).into_pyobject(py)?.into_any(),
            DType::I32 => i32::from_ne_bytes([a, b, c, d]).into_pyobject(py)?.into_any(),
            DType::I64 => i64::from_ne_bytes(bytes).into_pyobject(py)?.into_any(),
            DType::U16 => u16::from_ne_bytes([a, b]).into_pyobject(py)?.into_any(),
            DType::U32 => u32::from_ne_bytes([a, b, c, d]).into_pyobject(py)?.into_any(),
            DType::U64 => u64::from_ne_bytes(bytes).into_pyobject(py)?.into_any(),
            DType::Bool => (a != 0).into_pyobject(py)?.to_owned().into_any(),
            DType::Complex64 => {
                let float = |bytes| f32::from_ne_bytes(bytes).into();
                let [_, _, _, _, e, f, g, h] = bytes;
                PyComplex::from_doubles(py, float([a, b, c, d]), float([e, f, g, h])).into_any()
            }
            // exact: the value is a 4-bit integer
            DType::I4 => (self.dtype.small_value(a).unwrap_or(0.0) as i8).into_pyobject(py)?.into_any(),
            DType::U4 => a.into_pyobject(py)?.into_any(),
            dtype => match dtype.small_value(a) {
                Some(value) => f64::from(value).into_pyobject(py)?.into_any(),
                None => a.into_pyobject(py)?.into_any(),
            },
        })
    }
}

/// Returns whether a dtype is an integer type, whose elements can be indices.
fn is_integer(dtype: DType) -> bool {
    dtype.is_number() && !dtype.is_float() || matches!(dtype, DType::I4 | DType::U4)
}

#[pymethods]
impl Array {
    /// The dtype: "bf16", "f16", "f32", "f64", "i8" to "i64", "u8" to "u64", "bool", "complex64", a
    /// float of 4 to 8 bits, such as "f8_e4m3fn" or "f4_e2m1", or an integer of 4 bits, such as
    /// "i4".
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// The extents, outermost first.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The size of all elements, in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.memory.byte_count()
    }

    /// Whether the memory is read-only.
    #[getter]
    fn readonly(&self) -> bool {
        !self.memory.is_writable()
    }

    /// Returns a NumPy array that shares the memory.
    ///
    /// bf16 becomes ``ml_dtypes.bfloat16`` if that package is installed. Without it,
    /// ``dtype="float32"`` converts exactly, and ``view="uint16"`` returns the bits. Floats of 4 to
    /// 8 bits and integers of 4 bits also get dtypes of ``ml_dtypes``; without it, ``view="uint8"``
    /// returns the bits.
    ///
    /// Args:
    ///     dtype (dtype or str, optional): the NumPy dtype to convert to. The result is a copy,
    ///         unless the dtype stays the same. Default: no conversion.
    ///     view (dtype or str, optional): the NumPy dtype to reinterpret the bytes as, of the same
    ///         width. Default: no reinterpretation.
    #[pyo3(signature = (dtype=None, *, view=None))]
    fn numpy<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        view: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("tensilo._numpy")?.call_method1("to_numpy", (slf, dtype, view))
    }

    /// Returns a PyTorch tensor that shares the memory, or a copy of read-only memory.
    fn torch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("torch")?.call_method1("from_dlpack", (self.writable(),))
    }

    /// Returns a JAX array on the CPU. It shares the memory if the memory is aligned to 64 bytes.
    fn jax<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("jax.dlpack")?.call_method1("from_dlpack", (self.writable(),))
    }

    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("tensilo._numpy")?.call_method1("to_array", (slf, dtype, copy))
    }

    /// Returns an array that shares the memory, but reinterprets its bytes as another dtype of the
    /// same width.
    ///
    /// Args:
    ///     dtype (str or dtype): the dtype of the result.
    fn view(&self, dtype: DTypeArgument) -> PyResult<Self> {
        if dtype.0.element_bytes() != self.dtype.element_bytes() || dtype.0.is_string() {
            let (from, to) = (self.dtype, dtype.0);
            return Err(PyValueError::new_err(format!("view needs a dtype as wide as {from}, not {to}")));
        }
        Self::new(self.memory.clone(), dtype.0, self.shape.clone())
    }

    /// Returns the elements as nested lists, or the only element of a 0-dimensional array.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_object(py)
    }

    /// Returns the only element as a Python number.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.only(py)
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("builtins")?.getattr("int")?.call1((self.only(py)?,))
    }

    fn __float__(&self, py: Python<'_>) -> PyResult<f64> {
        self.only(py)?.extract()
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        self.only(py)?.is_truthy()
    }

    fn __index__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if !is_integer(self.dtype) || !self.shape.is_empty() {
            return Err(PyTypeError::new_err("only a 0-dimensional integer array can be an index"));
        }
        self.only(py)
    }

    /// Returns a copy of the bytes.
    fn tobytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.memory.to_vec())
    }

    fn __len__(&self) -> PyResult<usize> {
        self.shape.first().copied().ok_or_else(|| PyTypeError::new_err("a 0-dimensional array has no length"))
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: Bound<'py, PyAny>) -> PyResult<Self> {
        let this = slf.get();
        let count = this.__len__()?;
        if let Ok(slice) = index.cast::<PySlice>() {
            let range = slice.indices(isize::try_from(count)?)?;
            if range.step != 1 {
                return Err(PyValueError::new_err(
                    "an Array can be sliced only with step 1: use numpy() for other steps",
                ));
            }
            let (start, length) = (usize::try_from(range.start)?, range.slicelength);
            let slice = this.range(start, start.saturating_add(length));
            return slice.ok_or_else(|| PyIndexError::new_err("the slice is outside the array"));
        }
        let index = indices::single(&index)?.ok_or_else(|| {
            PyTypeError::new_err("an Array can be indexed only by an integer or a slice: use numpy() for other indices")
        })?;
        let member = indices::wrapped(index, count as u64).and_then(|i| this.member(usize::try_from(i).ok()?));
        member.ok_or_else(|| PyIndexError::new_err(format!("index {index} is out of range for an extent of {count}")))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shape = PyTuple::new(py, &self.shape)?.repr()?;
        Ok(format!("Array({}, {}, {} bytes)", self.dtype, shape.to_str()?, self.memory.byte_count()))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.import("tensilo._tensilo")?.getattr("_array_of_bytes")?;
        let shape = PyTuple::new(py, &self.shape)?;
        Ok((make, (self.tobytes(py), self.dtype.name(), shape).into_pyobject(py)?))
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        dlpack::CPU
    }

    /// Exports the array through DLPack. The capsule is versioned if ``max_version`` allows it, as
    /// in NumPy 2 and PyTorch 2.9, and unversioned otherwise.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = stream; // host memory has no stream to wait for
        self.to_dlpack(py, max_version, dl_device, copy)
    }

    // SAFETY: Python passes a view to fill, and calls `__releasebuffer__` once for it.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: i32) -> PyResult<()> {
        // SAFETY: as above.
        unsafe { fill(&slf, view, flags) }
    }

    // SAFETY: see `__getbuffer__`.
    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: as above.
        unsafe { release(view) }
    }
}

/// Restores an array from a pickle.
#[pyfunction]
pub fn _array_of_bytes(bytes: &[u8], dtype: DTypeArgument, shape: Vec<usize>) -> PyResult<Array> {
    Array::new(Memory::copied(bytes), dtype.0, shape)
}

/// The extents and strides that a buffer view points to.
struct ShapeAndStrides {
    shape: Vec<isize>,
    strides: Vec<isize>,
}

/// Fills a buffer view with the memory of an array.
///
/// # Safety
///
/// Python must have requested `view`, and must pass it to [`release`] exactly once.
pub unsafe fn fill(array: &Bound<'_, Array>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("the buffer view is null"));
    }
    // SAFETY: Python requested the view, see above. A null object marks a view that was not filled.
    unsafe { (*view).obj = std::ptr::null_mut() };
    let Array { memory, dtype, shape } = array.get();
    let Some(format) = buffer_format(*dtype) else {
        return Err(PyBufferError::new_err(
            "the buffer protocol has no format for bf16, f8 and smaller dtypes: use numpy() or torch(), or view() for the bits",
        ));
    };
    if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE && !memory.is_writable() {
        return Err(PyBufferError::new_err("the memory is read-only"));
    }
    if flags & ffi::PyBUF_F_CONTIGUOUS == ffi::PyBUF_F_CONTIGUOUS && shape.len() > 1 {
        return Err(PyBufferError::new_err("the memory is row-major, but the consumer requests column-major memory"));
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
    let layout = Box::new(ShapeAndStrides { shape, strides });
    let dimensions = c_int::try_from(layout.shape.len())?;
    let has = |flag: c_int| flags & flag == flag;
    // the protocol requires null pointers for the extents and strides of a 0-dimensional array
    let has_extents = dimensions > 0 && has(ffi::PyBUF_ND);
    let layout = Box::into_raw(layout);
    // SAFETY: Python requested `view`. `layout` was created above and lives until `release`. The
    // array lives as long as the view, which has a reference to it.
    unsafe {
        (*view).buf = memory.pointer().cast();
        // no allocation exceeds `isize::MAX` bytes
        (*view).len = isize::try_from(memory.byte_count()).unwrap_or(isize::MAX);
        (*view).itemsize = isize::try_from(width).unwrap_or(1); // at most 8
        (*view).readonly = c_int::from(!memory.is_writable());
        (*view).format = if has(ffi::PyBUF_FORMAT) { format.as_ptr().cast_mut() } else { std::ptr::null_mut() };
        (*view).ndim = if has(ffi::PyBUF_ND) { dimensions } else { 1 };
        (*view).shape = if has_extents { (*layout).shape.as_mut_ptr() } else { std::ptr::null_mut() };
        (*view).strides =
            if has_extents && has(ffi::PyBUF_STRIDES) { (*layout).strides.as_mut_ptr() } else { std::ptr::null_mut() };
        (*view).suboffsets = std::ptr::null_mut();
        (*view).internal = layout.cast();
        (*view).obj = array.clone().into_ptr();
    }
    Ok(())
}

/// Frees the extents and strides that [`fill`] allocated.
///
/// # Safety
///
/// `view` must have been filled by [`fill`], and must be released only once.
pub unsafe fn release(view: *mut ffi::Py_buffer) {
    // SAFETY: `internal` is the box that `fill` made.
    unsafe {
        let layout = (*view).internal.cast::<ShapeAndStrides>();
        if !layout.is_null() {
            drop(Box::from_raw(layout));
            (*view).internal = std::ptr::null_mut();
        }
    }
}
