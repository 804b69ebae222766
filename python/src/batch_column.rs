//! `BatchColumn`: samples of one column, side by side.

use crate::array::Array;
use crate::batch_parts::{self, Parts};
use crate::error::OrRaise;
use crate::indices;
use crate::loader_options::PaddingValue;
use crate::memory::Memory;
use crate::options::Natural;
use crate::out::Out;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::sync::{Arc, OnceLock};
use tensilo::{ColumnSchema, DType, Extent};
use tensilo_data::{Batch, BatchMemory, Padding};

/// Samples of one column, side by side.
///
/// Samples of a fixed shape are one tensor: ``numpy()``, ``torch()``, ``jax()`` and
/// ``torch.from_dlpack(column)`` share its memory. Samples of different shapes are ``ragged()``
/// values and offsets, or ``padded()``. Text and bytes are ``tolist()``. Arrow's libraries take
/// any: ``pa.array(column)``.
#[pyclass(frozen, module = "tensilo")]
pub struct BatchColumn {
    pub batch: Arc<Batch>,
    number: usize,
    pub schema: Arc<ColumnSchema>,
    pub memory: Memory,
}

impl BatchColumn {
    pub fn new(batch: &Arc<Batch>, number: usize, memory: Memory) -> Option<Self> {
        let schema = batch.columns().get(number)?.shared_schema()?.clone();
        Some(Self { batch: batch.clone(), number, schema, memory })
    }

    /// Returns the column of the batch. Its values are in the memory, and only there.
    pub fn column(&self) -> &tensilo_data::BatchColumn {
        static NONE: OnceLock<tensilo_data::BatchColumn> = OnceLock::new();
        // the number is that of a column, see `new`
        self.batch.columns().get(self.number).unwrap_or_else(|| NONE.get_or_init(Default::default))
    }

    pub fn name(&self) -> &str {
        &self.schema.name
    }

    pub fn sample_count(&self) -> usize {
        self.column().sample_count()
    }

    /// Returns some of the samples, by their places in the batch.
    fn select(&self, py: Python<'_>, places: &[u64]) -> PyResult<Self> {
        let places = places.iter().map(|place| usize::try_from(*place)).collect::<Result<Vec<_>, _>>()?;
        let samples = places.iter().filter_map(|place| self.batch.samples().get(*place).copied()).collect();
        let parts = Parts::of(self)?.select(&places)?;
        let batch = crate::batch::Batch::new(batch_parts::batch(samples, &[parts]).or_raise(py)?);
        batch.column_at(0).ok_or_else(|| PyValueError::new_err("a batch without its column"))
    }

    fn is_string(&self) -> bool {
        self.schema.dtype.is_string()
    }

    /// Returns the type of the elements of an array: bytes and text are `u8`.
    pub fn element(&self) -> DType {
        if self.is_string() { DType::U8 } else { self.schema.dtype }
    }

    /// Returns the tensor of samples of a fixed shape; `None` for others.
    pub fn tensor(&self) -> PyResult<Option<Array>> {
        let Some(extents) = self.column().tensor() else { return Ok(None) };
        Array::new(self.memory.clone(), self.element(), shape_of(extents.to_vec())?).map(Some)
    }

    /// Fails if the elements are not the values of the column, such as the integers of decimals.
    pub fn check_values(&self) -> PyResult<()> {
        crate::schema::check_values(&self.schema)
    }

    /// Returns the tensor of samples of a fixed shape, or an error that names the ways to others.
    fn whole(&self) -> PyResult<Array> {
        self.check_values()?;
        self.tensor()?.ok_or_else(|| {
            let ways = if self.is_string() { "tolist()" } else { "ragged(), padded() or tolist()" };
            PyTypeError::new_err(format!(
                "column {:?}: samples of {} {} are no tensor; use {ways}",
                self.name(),
                self.schema.type_name(),
                self.schema.shape
            ))
        })
    }

    /// Returns the extents that follow the first, if that alone varies.
    fn inner_extents(&self) -> Option<Vec<usize>> {
        let (first, rest) = self.schema.shape.extents().split_first()?;
        let fixed = rest.iter().map(|extent| match extent {
            Extent::Fixed(extent) => usize::try_from(*extent).ok(),
            Extent::Varying => None,
        });
        if *first == Extent::Varying { fixed.collect() } else { None }
    }

    /// Returns the elements of all samples one after the other.
    fn values_array(&self) -> PyResult<Array> {
        self.check_values()?;
        let width = self.element().element_bytes();
        let inner = self.inner_extents().unwrap_or_default();
        let rows = match self.inner_extents() {
            Some(_) => self.column().extents().iter().map(|extent| u64::from(*extent)).sum(),
            None => (self.memory.byte_count() / width) as u64, // exact
        };
        let mut shape = vec![usize::try_from(rows)?];
        if self.schema.shape.is_ragged() {
            shape.extend(inner);
            return Array::new(self.memory.clone(), self.element(), shape);
        }
        // items of a fixed shape, in lists
        let fixed: Vec<usize> = self
            .schema
            .shape
            .extents()
            .iter()
            .map(|extent| match extent {
                Extent::Fixed(extent) => usize::try_from(*extent).unwrap_or(usize::MAX),
                Extent::Varying => 0,
            })
            .collect();
        let mut shape = vec![self.item_count()];
        shape.extend(fixed);
        Array::new(self.memory.clone(), self.element(), shape)
    }

    /// Returns the number of items: samples, or the members of the innermost lists.
    pub fn item_count(&self) -> usize {
        let ends = self.column().lists().last().and_then(|lists| lists.offsets().last());
        ends.map_or(self.sample_count(), |end| usize::try_from(*end).unwrap_or(usize::MAX))
    }

    /// Returns whether samples may have different shapes, or be lists.
    pub fn item_shapes_vary(&self) -> bool {
        !self.schema.levels.is_empty() || self.schema.shape.is_ragged()
    }

    /// Returns the offsets of items among rows of values, or among elements if not only the first
    /// extent varies.
    fn item_offsets(&self) -> PyResult<Vec<i64>> {
        let column = self.column();
        if self.inner_extents().is_none() {
            return Ok(column.offsets().iter().map(|offset| i64::try_from(*offset)).collect::<Result<_, _>>()?);
        }
        let mut end = 0_i64;
        let ends = column.extents().iter().map(|extent| {
            end = end.saturating_add(i64::from(*extent));
            end
        });
        Ok(std::iter::once(0).chain(ends).collect())
    }

    /// Returns the offsets of each level, outermost first: of lists, and of ragged items.
    fn levels(&self) -> PyResult<Vec<Array>> {
        let mut levels = Vec::new();
        for lists in self.column().lists() {
            let offsets = lists.offsets().iter().map(|offset| i64::try_from(*offset));
            levels.push(Array::of_numbers(offsets.collect::<Result<_, _>>()?));
        }
        if self.schema.shape.is_ragged() {
            levels.push(Array::of_numbers(self.item_offsets()?));
        }
        Ok(levels)
    }
}

/// Where the bytes of a sample begin, and its shape.
type Place<'py> = (usize, Bound<'py, PyTuple>);

fn shape_of(extents: Vec<u64>) -> PyResult<Vec<usize>> {
    Ok(extents.into_iter().map(usize::try_from).collect::<Result<_, _>>()?)
}

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
        self.name()
    }

    /// The type of the elements, such as "bf16".
    #[getter]
    fn dtype(&self) -> &'static str {
        self.schema.dtype.name()
    }

    /// The type that the elements stand for, such as "decimal128[22, 2]" or "timestamp[us, UTC]";
    /// None if it is their own.
    #[getter]
    fn logical_type(&self) -> Option<String> {
        crate::schema::logical_type(&self.schema)
    }

    /// The same samples without their logical type: the stored elements, such as the unscaled
    /// integers of decimals.
    #[getter]
    pub fn stored(&self) -> Self {
        let mut schema = ColumnSchema::clone(&self.schema);
        schema.metadata.remove("arrow.type");
        Self { batch: self.batch.clone(), number: self.number, schema: Arc::new(schema), memory: self.memory.clone() }
    }

    /// The shape: samples first, then that of a sample; None where an extent varies.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let count = u64::try_from(self.sample_count())?;
        if let Some(extents) = self.column().tensor() {
            return PyTuple::new(py, extents);
        }
        let mut shape = vec![Some(count)];
        shape.extend(self.schema.levels.iter().map(|_| None));
        shape.extend(self.schema.shape.extents().iter().map(|extent| match extent {
            Extent::Fixed(extent) => Some(u64::from(*extent)),
            Extent::Varying => None,
        }));
        PyTuple::new(py, shape)
    }

    /// Whether samples may be null.
    #[getter]
    fn nullable(&self) -> bool {
        self.schema.nullable
    }

    /// Whether the samples are one tensor: of a fixed shape, or padded.
    #[getter]
    fn is_tensor(&self) -> bool {
        self.column().tensor().is_some()
    }

    /// The levels of lists around the items, outermost first: for each, whether its members may be
    /// null.
    #[getter(levels)]
    fn level_nulls(&self) -> Vec<bool> {
        self.schema.levels.iter().map(|level| level.nullable).collect()
    }

    /// The number of samples that are null.
    #[getter]
    fn null_count(&self) -> usize {
        self.column().lists().first().map_or(self.column().null_count(), |lists| lists.null_count())
    }

    /// Returns which samples are null: an array of bool, or None if none is.
    ///
    /// A null of a fixed shape has zeros for elements, one of another shape has none.
    fn nulls(&self) -> PyResult<Option<Array>> {
        if self.null_count() == 0 {
            return Ok(None);
        }
        let nulls: Vec<u8> = (0..self.sample_count()).map(|i| u8::from(self.is_null_sample(i))).collect();
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
        if this.is_string() && this.schema.levels.is_empty() {
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
        if self.column().tensor().is_some() {
            let message = format!("column {:?}: samples have a fixed shape; use array()", self.name());
            return Err(PyTypeError::new_err(message));
        }
        let mut parts = vec![self.values_array()?];
        parts.extend(self.levels()?);
        PyTuple::new(py, parts)
    }

    /// Where the values are in the memory of a batch on a GPU, start and end; None if they are in
    /// the memory of the host.
    #[getter]
    fn _device_range(&self) -> Option<(usize, usize)> {
        self.column().device_range().map(|range| (range.start, range.end))
    }

    /// The bytes of an element.
    #[getter]
    fn _element_bytes(&self) -> usize {
        self.element().element_bytes()
    }

    /// Returns the offsets of samples whose first extent varies, among rows of values.
    fn _row_offsets(&self) -> PyResult<Array> {
        Ok(Array::of_numbers(self.item_offsets()?))
    }

    /// Returns where the bytes of each sample begin among the values, and its shape; None for
    /// nulls.
    fn _places<'py>(&self, py: Python<'py>) -> PyResult<Vec<Option<Place<'py>>>> {
        let place = |i: usize| {
            let start = self.column().offsets().get(i).copied().unwrap_or(0);
            let start = usize::try_from(start)?.saturating_mul(self.element().element_bytes());
            let shape = PyTuple::new(py, self.item_shape(i))?;
            Ok((!self.is_null_sample(i)).then_some((start, shape)))
        };
        (0..self.sample_count()).map(place).collect()
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
        self.check_values()?;
        let padding = Padding::new().value(value.0).multiple(multiple.0);
        // SAFETY: nothing writes to the values while this call copies them, unless another thread
        // of Python does, whose numbers are then any.
        let values = unsafe { std::slice::from_raw_parts(self.memory.pointer(), self.memory.byte_count()) };
        let Some(object) = out else {
            let (extents, bytes) = py.detach(|| self.column().padded(padding, values)).or_raise(py)?;
            let tensor = Array::new(Memory::of_batch_memory(bytes), self.element(), shape_of(extents)?)?;
            return Ok(tensor.into_pyobject(py)?.into_any());
        };
        let out = Out::from_object(&object)?;
        let shape = shape_of(self.column().padded_extents(padding).or_raise(py)?)?;
        out.check(self.element(), &shape)?;
        let mut room = out.room();
        if self.memory.overlaps(room.bytes().as_ptr(), room.bytes().len()) {
            return Err(PyValueError::new_err("out is the memory of the samples: pass other memory"));
        }
        py.detach(|| self.column().pad_into(padding, values, room.bytes_mut())).or_raise(py)?;
        Ok(object)
    }

    /// Returns the shape of the tensor that ``padded`` returns.
    #[pyo3(signature = (*, multiple=Natural(1)), text_signature = "($self, *, multiple=1)")]
    fn padded_shape<'py>(&self, py: Python<'py>, multiple: Natural<u32>) -> PyResult<Bound<'py, PyTuple>> {
        let extents = self.column().padded_extents(Padding::new().multiple(multiple.0)).or_raise(py)?;
        PyTuple::new(py, extents)
    }

    /// Returns the samples as objects of Python: numbers, texts, bytes, lists; None for nulls.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let samples = (0..self.sample_count()).map(|i| plain(&self.sample(py, i)?));
        PyList::new(py, samples.collect::<PyResult<Vec<_>>>()?)
    }

    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = slf.py().import("tensilo._numpy")?;
        if slf.get().is_string() {
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
        crate::arrow::column_capsules(py, self)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        crate::dlpack::CPU
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
        crate::dlpack::export(py, &self.whole()?, max_version, dl_device, copy)
    }

    fn __len__(&self) -> usize {
        self.sample_count()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let count = self.sample_count();
        if let Some(index) = indices::single(&index)? {
            let i = indices::wrapped(index, count as u64).and_then(|i| usize::try_from(i).ok());
            return self.sample(py, i.ok_or_else(|| PyIndexError::new_err(format!("sample {index} of {count}")))?);
        }
        let places = indices::from_object(&index, count as u64)?;
        Ok(self.select(py, &places)?.into_pyobject(py)?.into_any())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, this) = (slf.py(), slf.get());
        let all: Vec<u64> = (0..this.sample_count() as u64).collect(); // exact
        let column = this.select(py, &all)?;
        let batch = crate::batch::Batch::of_shared(&column.batch, vec![column.memory.clone()]);
        let getitem = py.import("operator")?.getattr("getitem")?;
        Ok((getitem, (batch, this.name()).into_pyobject(py)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shape = self.shape(py)?.repr()?;
        Ok(format!("BatchColumn({:?}, {} {})", self.name(), self.schema.type_name(), shape.to_str()?))
    }
}
