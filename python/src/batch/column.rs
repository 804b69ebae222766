//! `BatchColumn`: the samples of one column of a batch, as Python sees them.
//!
//! Samples of a fixed shape are one tensor, which any library accepts. Samples of different shapes
//! are not one tensor, so the caller chooses between values with offsets, a padded tensor, and a
//! list of objects. Error messages name the methods that work.

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

/// The samples of one column of a batch.
///
/// Samples of a fixed shape are one tensor: ``numpy()``, ``torch()``, ``jax()`` and
/// ``torch.from_dlpack(column)`` share its memory. For samples of different shapes, ``ragged()``
/// returns values and offsets, and ``padded()`` a padded tensor. ``tolist()`` returns text and
/// bytes. Arrow libraries accept any column: ``pa.array(column)``.
#[pyclass(frozen, module = "tensilo")]
pub struct BatchColumn(pub ColumnSamples);

impl BatchColumn {
    /// Returns the only column of a batch.
    pub fn of(batch: tensilo_data::Batch) -> PyResult<Self> {
        let (batch, memories) = Memory::from_batch(batch);
        let samples = memories.into_iter().next().and_then(|memory| ColumnSamples::new(&batch, 0, memory));
        samples.map(Self).ok_or_else(|| PyValueError::new_err("internal error: the batch has no column"))
    }

    /// Returns a copy of the samples at these indices of the batch.
    fn select(&self, py: Python<'_>, indices: &[u64]) -> PyResult<Self> {
        let indices = indices.iter().map(|index| usize::try_from(*index)).collect::<Result<Vec<_>, _>>()?;
        let samples = indices.iter().filter_map(|index| self.0.numbers().get(*index).copied()).collect();
        let buffers = ColumnBuffers::of(&self.0)?.select(&indices)?;
        Self::of(buffers::batch(samples, &[buffers]).or_raise(py)?)
    }

    /// Returns the tensor of samples of a fixed shape, or an error that names the methods to use.
    fn whole(&self) -> PyResult<Array> {
        self.0.check_values()?;
        self.0.tensor()?.ok_or_else(|| {
            let ways = if self.0.is_string() { "tolist()" } else { "ragged(), padded() or tolist()" };
            PyTypeError::new_err(format!(
                "column {:?}: samples of type {} {} are not one tensor: use {ways}",
                self.0.name(),
                self.0.schema.type_name(),
                self.0.schema.shape
            ))
        })
    }
}

/// The byte offset of a sample in the values, and its shape.
type Slot<'py> = (usize, Bound<'py, PyTuple>);

/// Converts the arrays of a sample to numbers and lists.
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

    /// The dtype of the elements, such as "bf16".
    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.schema.dtype.name()
    }

    /// The type that the elements represent, such as "decimal128[22, 2]" or "timestamp[us, UTC]";
    /// None if they are plain numbers, text or bytes.
    #[getter]
    fn logical_type(&self) -> Option<String> {
        logical_type(&self.0.schema)
    }

    /// The same samples as stored elements, without their logical type: decimals, for example, as
    /// unscaled integers.
    #[getter]
    pub fn stored(&self) -> Self {
        Self(self.0.stored())
    }

    /// The number of samples followed by the shape of a sample; None where an extent varies.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let count = u64::try_from(self.0.sample_count())?;
        if let Some(extents) = self.0.column().tensor_extents() {
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

    /// Whether the samples are one tensor because they have a fixed shape or were padded.
    #[getter]
    fn is_tensor(&self) -> bool {
        self.0.column().tensor_extents().is_some()
    }

    /// For each level of lists around the items, outermost first, whether its members may be null.
    #[getter(levels)]
    fn level_nulls(&self) -> Vec<bool> {
        self.0.schema.levels.iter().map(|level| level.nullable).collect()
    }

    /// The number of null samples.
    #[getter]
    fn null_count(&self) -> usize {
        self.0.column().lists().first().map_or(self.0.column().null_count(), |lists| lists.null_count())
    }

    /// Returns a bool array that is true for null samples, or None if there are no nulls.
    ///
    /// If the shape is fixed, the elements of a null sample are zeros; otherwise, a null sample has
    /// no elements.
    fn nulls(&self) -> PyResult<Option<Array>> {
        if self.null_count() == 0 {
            return Ok(None);
        }
        let nulls: Vec<u8> = (0..self.0.sample_count()).map(|i| u8::from(self.0.is_null_sample(i))).collect();
        let count = nulls.len();
        Array::new(Memory::copied(&nulls), DType::Bool, vec![count]).map(Some)
    }

    /// Returns a NumPy array. For samples of a fixed shape, it shares the memory; for text and
    /// bytes, it is an object array.
    ///
    /// Args:
    ///     dtype (dtype or str, optional): the NumPy dtype to convert to, such as "float32".
    ///         Default: no conversion.
    ///     view (dtype or str, optional): the NumPy dtype to reinterpret the bytes as, such as
    ///         "uint16" for bf16. Default: no reinterpretation.
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

    /// Returns a PyTorch tensor. For samples of a fixed shape, it shares the memory; for samples
    /// whose first extent varies, it is a nested tensor of layout ``torch.jagged``.
    fn torch<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("tensilo._torch_tensors")?.call_method1("of_column", (slf,))
    }

    /// Returns a JAX array of samples of a fixed shape.
    fn jax<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("jax.dlpack")?.call_method1("from_dlpack", (self.whole()?,))
    }

    /// Returns samples of a fixed shape as one ``Array``.
    fn array(&self) -> PyResult<Array> {
        self.whole()
    }

    /// Returns the concatenated values of all samples and the offsets of each level, outermost
    /// first. For samples that are not lists, the result is ``(values, offsets)``.
    ///
    /// If only the first extent varies, the other extents are dimensions of ``values``, and offsets
    /// are numbers of rows; otherwise, offsets are numbers of elements. Sample ``i`` is
    /// ``values[offsets[i]:offsets[i + 1]]``.
    fn ragged<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        if self.0.column().tensor_extents().is_some() {
            let message = format!("column {:?}: samples have a fixed shape: use array()", self.0.name());
            return Err(PyTypeError::new_err(message));
        }
        let mut buffers = vec![self.0.values_array()?];
        buffers.extend(self.0.levels()?);
        PyTuple::new(py, buffers)
    }

    /// The start and end of the values in the device memory of the batch; None if they are in host
    /// memory.
    #[getter]
    fn _device_range(&self) -> Option<(usize, usize)> {
        self.0.column().device_range().map(|range| (range.start, range.end))
    }

    /// The size of an element, in bytes.
    #[getter]
    fn _element_bytes(&self) -> usize {
        self.0.element().element_bytes()
    }

    /// Returns the offsets of samples whose first extent varies, in rows of values.
    fn _row_offsets(&self) -> PyResult<Array> {
        Ok(Array::from_numbers(self.0.item_offsets()?))
    }

    /// Returns, for each sample, its byte offset in the values and its shape; None for nulls.
    fn _sample_slots<'py>(&self, py: Python<'py>) -> PyResult<Vec<Option<Slot<'py>>>> {
        let slot = |i: usize| {
            let start = self.0.column().offsets().get(i).copied().unwrap_or(0);
            let start = usize::try_from(start)?.saturating_mul(self.0.element().element_bytes());
            let shape = PyTuple::new(py, self.0.item_shape(i))?;
            Ok((!self.0.is_null_sample(i)).then_some((start, shape)))
        };
        (0..self.0.sample_count()).map(slot).collect()
    }

    /// Returns samples of different shapes as one tensor, padded to the longest sample of the
    /// batch.
    ///
    /// Args:
    ///     value (float, optional): the padding value, which also fills null samples. Default: 0.
    ///     multiple (int, optional): rounds the padded length up to a multiple of this number, so
    ///         fewer different shapes occur. Default: 1.
    ///     out (optional): the array to write to and to return. It can be any writable object with
    ///         DLPack or the buffer protocol, and must have the shape that ``padded_shape``
    ///         returns. Default: a new ``Array``.
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
        // SAFETY: only another Python thread could write to the values during this copy. That would
        // corrupt the numbers, as with any array that is written and read at the same time.
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
            return Err(PyValueError::new_err("out overlaps the samples: pass other memory"));
        }
        py.detach(|| self.0.column().pad_into(padding, values, memory.bytes_mut())).or_raise(py)?;
        Ok(object)
    }

    /// Returns the shape of the tensor that ``padded`` returns.
    ///
    /// Args:
    ///     multiple (int, optional): rounds the padded length up, as in ``padded``. Default: 1.
    #[pyo3(signature = (*, multiple=Natural(1)), text_signature = "($self, *, multiple=1)")]
    fn padded_shape<'py>(&self, py: Python<'py>, multiple: Natural<u32>) -> PyResult<Bound<'py, PyTuple>> {
        let extents = self.0.column().padded_extents(Padding::new().multiple(multiple.0)).or_raise(py)?;
        PyTuple::new(py, extents)
    }

    /// Returns the samples as Python numbers, strings, bytes and lists; None for nulls.
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
        let _ = requested_schema; // only a hint: the consumer casts
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
            return self.0.sample(
                py,
                i.ok_or_else(|| {
                    PyIndexError::new_err(format!("sample index {index} is out of range for {count} samples"))
                })?,
            );
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

/// Restores a column from a pickle.
#[pyfunction]
pub fn _batch_column(py: Python<'_>, samples: Vec<u64>, column: ColumnState<'_>) -> PyResult<BatchColumn> {
    BatchColumn::of(buffers::batch(samples, &[ColumnBuffers::from_state(column)?]).or_raise(py)?)
}
