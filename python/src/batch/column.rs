//! `BatchColumn`: samples of one column, as Python sees them.
//!
//! A column is one tensor if its samples have a fixed shape, and then any library takes it. If they
//! differ in shape, no tensor holds them, and the caller chooses: values with offsets, a padded
//! tensor, or a list of objects. Errors name the ways that a column has.

use crate::arguments::{Natural, PaddingValue};
use crate::array::Array;
use crate::array::dlpack::CPU;
use crate::array::indices;
use crate::array::memory::Memory;
use crate::array::out::Out;
use crate::batch::arrow;
use crate::batch::buffers::{self, ColumnBuffers, ColumnState};
use crate::batch::samples::{ColumnSamples, shape_of};
use crate::error::OrRaise;
use crate::schema::logical_type;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use tensilo::{DType, Extent};
use tensilo_data::{BatchMemory, Padding};

/// Samples of one column, side by side.
///
/// Samples of a fixed shape are one tensor: ``numpy()``, ``torch()``, ``jax()`` and
/// ``torch.from_dlpack(column)`` share its memory. Samples of different shapes are ``ragged()``
/// values and offsets, or ``padded()``. Text and bytes are ``tolist()``. Arrow's libraries take
/// any: ``pa.array(column)``.
#[pyclass(frozen, module = "tensilo")]
pub struct BatchColumn(pub ColumnSamples);

impl BatchColumn {
    /// Returns the column of a batch that has one.
    pub fn of(batch: tensilo_data::Batch) -> PyResult<Self> {
        let (batch, memories) = Memory::from_batch(batch);
        let samples = memories.into_iter().next().and_then(|memory| ColumnSamples::new(&batch, 0, memory));
        samples.map(Self).ok_or_else(|| PyValueError::new_err("a batch without its column"))
    }

    /// Returns some of the samples, by their places in the batch.
    fn select(&self, py: Python<'_>, indices: &[u64]) -> PyResult<Self> {
        let indices = indices.iter().map(|index| usize::try_from(*index)).collect::<Result<Vec<_>, _>>()?;
        let samples = indices.iter().filter_map(|index| self.0.numbers().get(*index).copied()).collect();
        let buffers = ColumnBuffers::of(&self.0)?.select(&indices)?;
        Self::of(buffers::batch(samples, &[buffers]).or_raise(py)?)
    }

    /// Returns the tensor of samples of a fixed shape, or an error that names the ways to others.
    fn whole(&self) -> PyResult<Array> {
        self.0.check_values()?;
        self.0.tensor()?.ok_or_else(|| {
            let ways = if self.0.is_string() { "tolist()" } else { "ragged(), padded() or tolist()" };
            PyTypeError::new_err(format!(
                "column {:?}: samples of {} {} are no tensor; use {ways}",
                self.0.name(),
                self.0.schema.type_name(),
                self.0.schema.shape
            ))
        })
    }
}

/// Where the bytes of a sample begin, and its shape.
type Slot<'py> = (usize, Bound<'py, PyTuple>);

/// Returns a sample without arrays: as numbers and lists.
fn plain<'py>(sample: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(array) = sample.cast::<Array>() {
        return array.get().to_object(sample.py());
    }
    let Ok(list) = sample.cast::<PyList>() else { return Ok(sample.clone()) };
    let members = list.iter().map(|member| plain(&member));
    Ok(PyList::new(sample.py(), members.collect::<PyResult<Vec<_>>>()?)?.into_any())
}

#[pymethods]
impl BatchColumn {
    /// The name of the column.
    #[getter(name)]
    fn py_name(&self) -> &str {
        self.0.name()
    }

    /// The type of the elements, such as "bf16".
    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.schema.dtype.name()
    }

    /// The type that the elements stand for, such as "decimal128[22, 2]" or "timestamp[us, UTC]";
    /// None if it is their own.
    #[getter]
    fn logical_type(&self) -> Option<String> {
        logical_type(&self.0.schema)
    }

    /// The same samples without their logical type: the stored elements, such as the unscaled
    /// integers of decimals.
    #[getter]
    pub fn stored(&self) -> Self {
        Self(self.0.stored())
    }

    /// The shape: samples first, then that of a sample; None where an extent varies.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let count = u64::try_from(self.0.sample_count())?;
        if let Some(extents) = self.0.column().tensor() {
            return PyTuple::new(py, extents);
        }
        let mut shape = vec![Some(count)];
        shape.extend(self.0.schema.levels.iter().map(|_| None));
        shape.extend(self.0.schema.shape.extents().iter().map(|extent| match extent {
            Extent::Fixed(extent) => Some(u64::from(*extent)),
            Extent::Varying => None,
        }));
        PyTuple::new(py, shape)
    }

    /// Whether samples may be null.
    #[getter]
    fn nullable(&self) -> bool {
        self.0.schema.nullable
    }

    /// Whether the samples are one tensor: of a fixed shape, or padded.
    #[getter]
    fn is_tensor(&self) -> bool {
        self.0.column().tensor().is_some()
    }

    /// The levels of lists around the items, outermost first: for each, whether its members may be
    /// null.
    #[getter(levels)]
    fn level_nulls(&self) -> Vec<bool> {
        self.0.schema.levels.iter().map(|level| level.nullable).collect()
    }

    /// The number of samples that are null.
    #[getter]
    fn null_count(&self) -> usize {
        self.0.column().lists().first().map_or(self.0.column().null_count(), |lists| lists.null_count())
    }

    /// Returns which samples are null: an array of bool, or None if none is.
    ///
    /// A null of a fixed shape has zeros for elements, one of another shape has none.
    fn nulls(&self) -> PyResult<Option<Array>> {
        if self.null_count() == 0 {
            return Ok(None);
        }
        let nulls: Vec<u8> = (0..self.0.sample_count()).map(|i| u8::from(self.0.is_null_sample(i))).collect();
        let count = nulls.len();
        Array::new(Memory::copied(&nulls), DType::Bool, vec![count]).map(Some)
    }

    /// Returns an array of NumPy: of samples of a fixed shape one that shares the memory, of text
    /// and bytes one of objects.
    ///
    /// Args:
    ///     dtype: the type to convert to, such as "float32".
    ///     view: the type to take the same bytes as, such as "uint16" for bf16.
    #[pyo3(signature = (dtype=None, *, view=None))]
    fn numpy<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        view: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let numpy = py.import("tensilo._numpy")?;
        if this.0.is_string() && this.0.schema.levels.is_empty() {
            return numpy.call_method1("of_objects", (slf.call_method0("tolist")?,));
        }
        numpy.call_method1("to_numpy", (this.whole()?, dtype, view))
    }

    /// Returns a tensor of PyTorch: of samples of a fixed shape one that shares the memory, of
    /// samples whose first extent varies a nested tensor of the layout ``torch.jagged``.
    fn torch<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("tensilo._torch_tensors")?.call_method1("of_column", (slf,))
    }

    /// Returns an array of JAX, of samples of a fixed shape.
    fn jax<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("jax.dlpack")?.call_method1("from_dlpack", (self.whole()?,))
    }

    /// Returns the tensor of samples of a fixed shape.
    fn array(&self) -> PyResult<Array> {
        self.whole()
    }

    /// Returns the values of all samples one after the other, and the offsets of each level,
    /// outermost first: ``(values, offsets)`` if samples differ in one extent.
    ///
    /// If only the first extent of samples varies, values have the others as dimensions, and
    /// offsets count rows; otherwise offsets count elements. Sample ``i`` is
    /// ``values[offsets[i]:offsets[i + 1]]``.
    fn ragged<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        if self.0.column().tensor().is_some() {
            let message = format!("column {:?}: samples have a fixed shape; use array()", self.0.name());
            return Err(PyTypeError::new_err(message));
        }
        let mut buffers = vec![self.0.values_array()?];
        buffers.extend(self.0.levels()?);
        PyTuple::new(py, buffers)
    }

    /// Where the values are in the memory of a batch on a GPU, start and end; None if they are in
    /// the memory of the host.
    #[getter]
    fn _device_range(&self) -> Option<(usize, usize)> {
        self.0.column().device_range().map(|range| (range.start, range.end))
    }

    /// The bytes of an element.
    #[getter]
    fn _element_bytes(&self) -> usize {
        self.0.element().element_bytes()
    }

    /// Returns the offsets of samples whose first extent varies, among rows of values.
    fn _row_offsets(&self) -> PyResult<Array> {
        Ok(Array::from_numbers(self.0.item_offsets()?))
    }

    /// Returns where the bytes of each sample begin among the values, and its shape; None for
    /// nulls.
    fn _sample_slots<'py>(&self, py: Python<'py>) -> PyResult<Vec<Option<Slot<'py>>>> {
        let slot = |i: usize| {
            let start = self.0.column().offsets().get(i).copied().unwrap_or(0);
            let start = usize::try_from(start)?.saturating_mul(self.0.element().element_bytes());
            let shape = PyTuple::new(py, self.0.item_shape(i))?;
            Ok((!self.0.is_null_sample(i)).then_some((start, shape)))
        };
        (0..self.0.sample_count()).map(slot).collect()
    }

    /// Returns samples of different shapes as one tensor, as long as the longest of the batch.
    ///
    /// Args:
    ///     value: that of elements which a sample does not have, and of null samples.
    ///     multiple: what lengths are rounded up to, so that fewer shapes occur.
    ///     out: memory for the tensor, of the shape that ``padded_shape`` returns: anything
    ///         writable with DLPack or the buffer protocol. It is returned.
    #[pyo3(signature = (value=PaddingValue(0.0), *, multiple=Natural(1), out=None))]
    fn padded<'py>(
        &self,
        py: Python<'py>,
        value: PaddingValue,
        multiple: Natural<u32>,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.0.check_values()?;
        let padding = Padding::new().value(value.0).multiple(multiple.0);
        // SAFETY: nothing writes to the values while this call copies them, unless another thread
        // of Python does, whose numbers are then any.
        let values = unsafe { std::slice::from_raw_parts(self.0.memory.pointer(), self.0.memory.byte_count()) };
        let Some(object) = out else {
            let (extents, bytes) = py.detach(|| self.0.column().padded(padding, values)).or_raise(py)?;
            let tensor = Array::new(Memory::from_batch_memory(bytes), self.0.element(), shape_of(extents)?)?;
            return Ok(tensor.into_pyobject(py)?.into_any());
        };
        let out = Out::from_object(&object)?;
        let shape = shape_of(self.0.column().padded_extents(padding).or_raise(py)?)?;
        out.check(self.0.element(), &shape)?;
        let mut memory = out.memory();
        if self.0.memory.overlaps(memory.bytes().as_ptr(), memory.bytes().len()) {
            return Err(PyValueError::new_err("out is the memory of the samples: pass other memory"));
        }
        py.detach(|| self.0.column().pad_into(padding, values, memory.bytes_mut())).or_raise(py)?;
        Ok(object)
    }

    /// Returns the shape of the tensor that ``padded`` returns.
    #[pyo3(signature = (*, multiple=Natural(1)), text_signature = "($self, *, multiple=1)")]
    fn padded_shape<'py>(&self, py: Python<'py>, multiple: Natural<u32>) -> PyResult<Bound<'py, PyTuple>> {
        let extents = self.0.column().padded_extents(Padding::new().multiple(multiple.0)).or_raise(py)?;
        PyTuple::new(py, extents)
    }

    /// Returns the samples as objects of Python: numbers, texts, bytes, lists; None for nulls.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let samples = (0..self.0.sample_count()).map(|i| plain(&self.0.sample(py, i)?));
        PyList::new(py, samples.collect::<PyResult<Vec<_>>>()?)
    }

    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = slf.py().import("tensilo._numpy")?;
        if slf.get().0.is_string() {
            return slf.call_method0("numpy");
        }
        numpy.call_method1("to_array", (slf.get().whole()?, dtype, copy))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema; // a wish, and the consumer casts
        arrow::column_capsules(py, &self.0)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        CPU
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = stream;
        self.whole()?.to_dlpack(py, max_version, dl_device, copy)
    }

    fn __len__(&self) -> usize {
        self.0.sample_count()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let count = self.0.sample_count();
        if let Some(index) = indices::single(&index)? {
            let i = indices::wrapped(index, count as u64).and_then(|i| usize::try_from(i).ok());
            return self.0.sample(py, i.ok_or_else(|| PyIndexError::new_err(format!("sample {index} of {count}")))?);
        }
        let indices = indices::from_object(&index, count as u64)?;
        Ok(self.select(py, &indices)?.into_pyobject(py)?.into_any())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.import("tensilo._tensilo")?.getattr("_batch_column")?;
        let column = ColumnBuffers::of(&self.0)?.to_state(py)?;
        Ok((make, (self.0.numbers().to_vec(), column).into_pyobject(py)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shape = self.shape(py)?.repr()?;
        Ok(format!("BatchColumn({:?}, {} {})", self.0.name(), self.0.schema.type_name(), shape.to_str()?))
    }
}

/// Returns the column of a pickle.
#[pyfunction]
pub fn _batch_column(py: Python<'_>, samples: Vec<u64>, column: ColumnState<'_>) -> PyResult<BatchColumn> {
    BatchColumn::of(buffers::batch(samples, &[ColumnBuffers::from_state(column)?]).or_raise(py)?)
}
