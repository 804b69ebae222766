//! `Column`: reads one column of a dataset.
//!
//! Samples are read into a new batch, or directly into the caller's memory (`out=`). A sample that
//! is stored raw in a mapped file can also be viewed in place, without a copy. The resulting array
//! keeps the mapping alive.

use crate::array::Array;
use crate::array::dtype::DTypeArgument;
use crate::array::indices;
use crate::array::memory::Memory;
use crate::array::out::{Out, OutAllocator};
use crate::batch::column::BatchColumn;
use crate::dataset::opened::{OpenDataset, Selection, find_column};
use crate::error::OrRaise;
use crate::schema::{ColumnType, check_values, logical_type, shape_tuple};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};
use std::sync::Arc;
use tensilo::{ColumnSchema, DType, Extent};

/// A column of a dataset.
///
/// ``column[17]`` is one sample. ``column[1000:1256]`` and ``column.take(indices)`` return a
/// ``BatchColumn``.
#[pyclass(frozen, module = "tensilo")]
pub struct Column {
    /// The Python `Dataset`, for pickles.
    dataset: Py<PyAny>,
    opened: Arc<OpenDataset>,
    number: usize,
    name: String,
}

impl Column {
    pub fn new(dataset: &Bound<'_, PyAny>, opened: Arc<OpenDataset>, name: &str) -> PyResult<Self> {
        let number = find_column(&opened, name)?;
        Ok(Self { dataset: dataset.clone().unbind(), opened, number, name: name.to_owned() })
    }

    fn schema(&self) -> PyResult<&ColumnSchema> {
        let found = self.opened.dataset.schema().columns.get(self.number);
        found.ok_or_else(|| PyValueError::new_err("the dataset no longer has the column"))
    }

    fn selection(&self, dtype: Option<DTypeArgument>, has_out: bool) -> Selection {
        let casts = dtype.map(|dtype| (self.name.clone(), dtype.0)).into_iter().collect();
        Selection { columns: Some(vec![self.name.clone()]), casts, has_out }
    }

    fn read(&self, py: Python<'_>, samples: &[u64], dtype: Option<DTypeArgument>) -> PyResult<BatchColumn> {
        BatchColumn::of(self.opened.take(py, &self.selection(dtype, false), samples)?)
    }

    /// Reads samples into the caller's memory.
    fn read_slice(&self, py: Python<'_>, samples: &[u64], dtype: Option<DTypeArgument>, out: &Out) -> PyResult<()> {
        let schema = self.schema()?;
        check_values(schema)?;
        let expected = dtype.as_ref().map_or(schema.dtype, |dtype| dtype.0);
        let fixed: Option<Vec<usize>> = schema
            .shape
            .extents()
            .iter()
            .map(|extent| match extent {
                Extent::Fixed(extent) => usize::try_from(*extent).ok(),
                Extent::Varying => None,
            })
            .collect();
        let Some(fixed) = fixed.filter(|_| schema.levels.is_empty()) else {
            let message = "out= needs samples of one shape; omit it and use ragged() or padded()";
            return Err(PyTypeError::new_err(message));
        };
        let mut shape = vec![samples.len()];
        shape.extend(fixed);
        out.check(expected, &shape)?;
        let selection = self.selection(dtype, true);
        let memory = out.memory();
        // SAFETY: the caller lends the memory of `out` to this call, which drops the batch before
        // it returns.
        let prepare = |allocator: &OutAllocator| unsafe { allocator.set(memory) };
        self.opened.take_prepared(py, &selection, samples, prepare).map(drop)
    }
}

#[pymethods]
impl Column {
    /// The name of the column.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The dtype of the elements, such as "bf16".
    #[getter]
    fn dtype(&self) -> PyResult<&'static str> {
        Ok(self.schema()?.dtype.name())
    }

    /// The type that the elements represent, such as "decimal128[22, 2]" or "timestamp[us, UTC]";
    /// None if they are plain numbers, text or bytes.
    #[getter]
    fn logical_type(&self) -> PyResult<Option<String>> {
        Ok(logical_type(self.schema()?))
    }

    /// The shape of a sample, or of an item of its lists; None where an extent varies.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        shape_tuple(py, &self.schema()?.shape)
    }

    /// Whether samples may be null.
    #[getter]
    fn nullable(&self) -> PyResult<bool> {
        Ok(self.schema()?.nullable)
    }

    /// The full type of the column in the schema.
    #[getter]
    fn r#type(&self) -> PyResult<ColumnType> {
        Ok(ColumnType(self.schema()?.clone()))
    }

    /// Reads samples in the order of ``indices``, which may contain duplicates.
    ///
    /// Args:
    ///     indices: the sample indices: a list, a range, an array or a tensor of integers, or a
    ///         boolean mask. Negative indices count from the end.
    ///     dtype (str or dtype, optional): the dtype to convert to. Floats convert to any float
    ///         dtype; if it is narrower, they are rounded to nearest even. Integers convert to
    ///         wider integers. Default: the dtype of the column.
    ///     out (optional): the array to read into and to return. It can be any writable object with
    ///         DLPack or the buffer protocol, and must have the shape ``(len(indices), *shape)``.
    ///         If the call fails, the content of the array is unspecified. Default: a new
    ///         ``BatchColumn``.
    ///
    /// Cost: decodes the samples into one allocation, without the GIL.
    #[pyo3(signature = (indices, *, dtype=None, out=None))]
    fn take<'py>(
        &self,
        py: Python<'py>,
        indices: Bound<'py, PyAny>,
        dtype: Option<DTypeArgument>,
        out: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let samples = indices::from_object(&indices, self.opened.view.sample_count())?;
        match out {
            None => Ok(self.read(py, &samples, dtype)?.into_pyobject(py)?.into_any()),
            Some(object) => {
                self.read_slice(py, &samples, dtype, &Out::from_object(&object)?)?;
                Ok(object)
            }
        }
    }

    /// Returns a read-only view of a sample in the mapped file, without a copy. Only chunks that
    /// are stored raw in a mapped file can be viewed.
    ///
    /// Args:
    ///     index (int): the sample index. Negative indices count from the end.
    ///
    /// Cost: a few cache misses; the first view of a chunk verifies its checksum.
    fn view(&self, py: Python<'_>, index: i64) -> PyResult<Array> {
        check_values(self.schema()?)?;
        let n = self.opened.view.sample_count();
        let no_view = |message: &str| PyValueError::new_err(format!("column {:?}: {message}", self.name));
        let sample = indices::wrapped(index, n)
            .ok_or_else(|| PyIndexError::new_err(format!("sample index {index} is out of range for {n} samples")))?;
        let view = self.opened.view.for_this_process();
        let (_, sample) = view.sample(sample, 0).unwrap_or((0, sample)); // a view in Python has one dataset
        let dataset = view.datasets().first().unwrap_or(&self.opened.dataset);
        let found = py.detach(|| dataset.find(self.number, sample)).or_raise(py)?;
        let Some(column) = found.column else { return Err(no_view("the sample is null")) };
        let column = Arc::new(column);
        let view = py.detach(|| column.view(found.index)).or_raise(py)?.ok_or_else(|| {
            no_view("a view needs a raw chunk in a mapped file: open with io=\"mmap\", or use take()")
        })?;
        if view.is_null() {
            return Err(no_view("the sample is null"));
        }
        let shape = view.extents().iter().map(|extent| usize::try_from(*extent)).collect::<Result<_, _>>()?;
        let dtype = if view.extents().is_empty() || !self.schema()?.dtype.is_string() {
            self.schema()?.dtype
        } else {
            DType::U8
        };
        // SAFETY: the column keeps the mapping of the sample alive, and the file does not change,
        // as the documentation of `open` requires.
        let memory = unsafe { Memory::from_owner(view.bytes(), column.clone()) };
        Array::new(memory, dtype, shape)
    }

    /// Reads all samples, for ``numpy.asarray``.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = copy; // every read returns new memory
        let all = self.__getitem__(py, PySlice::full(py).into_any())?;
        all.call_method1("__array__", (dtype,))
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(self.opened.view.sample_count())?)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let samples = indices::from_object(&index, self.opened.view.sample_count())?;
        let read = self.read(py, &samples, None)?;
        match indices::single(&index)?.is_some() {
            true => read.0.sample(py, 0),
            false => Ok(read.into_pyobject(py)?.into_any()),
        }
    }

    fn __repr__(&self) -> PyResult<String> {
        let schema = self.schema()?;
        let null = if schema.nullable { ", nullable" } else { "" };
        Ok(format!(
            "Column({:?}, {} {}{null}, {} samples)",
            self.name,
            schema.type_name(),
            schema.shape,
            self.opened.view.sample_count()
        ))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = self.dataset.bind(py).get_type().getattr("column")?;
        Ok((make, (self.dataset.clone_ref(py), &self.name).into_pyobject(py)?))
    }
}
