//! `Batch`: samples column by column, as readers and loaders return them.
//!
//! A batch is both a mapping from names to columns and a sequence of samples. Columns and samples
//! share the memory of the batch. In this folder, `samples` has the samples of a column, and
//! `column` the Python class for them. `arrow` exports them as capsules, and `buffers` copies them
//! for selections and pickles.

pub mod arrow;
pub mod buffers;
pub mod column;
pub mod samples;

use crate::array::Array;
use crate::array::indices;
use crate::array::memory::Memory;
use crate::batch::buffers::{ColumnBuffers, ColumnState};
use crate::batch::column::BatchColumn;
use crate::batch::samples::ColumnSamples;
use crate::error::OrRaise;
use pyo3::exceptions::{PyIndexError, PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString, PyTuple};
use std::collections::HashSet;
use std::sync::Arc;

/// Samples of several columns, in the requested order.
///
/// ``batch["mel"]`` is a ``BatchColumn``, ``batch[3]`` a sample as a dict. ``batch[2:4]``,
/// ``batch[[5, 3]]`` and ``batch[mask]`` are copies of the selected samples. A batch is a mapping
/// from names to columns, but ``len(batch)`` is the number of samples. Arrow libraries accept it:
/// ``pa.table(batch)``. Its pickle contains the values.
#[pyclass(frozen, mapping, module = "tensilo")]
pub struct Batch {
    batch: Arc<tensilo_data::Batch>,
    memories: Vec<Memory>,
}

impl Batch {
    pub fn new(batch: tensilo_data::Batch) -> Self {
        let (batch, memories) = Memory::from_batch(batch);
        Self { batch, memories }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.batch.columns().iter().filter_map(|column| Some(column.schema()?.name.as_str()))
    }

    fn sample_count(&self) -> usize {
        self.batch.indices().len()
    }

    /// Returns the column at an index of the batch.
    fn column_at(&self, number: usize) -> Option<ColumnSamples> {
        ColumnSamples::new(&self.batch, number, self.memories.get(number)?.clone())
    }

    fn columns(&self) -> impl Iterator<Item = ColumnSamples> {
        (0..self.memories.len()).filter_map(|number| self.column_at(number))
    }

    /// Returns sample `i` as a dict.
    pub fn row<'py>(&self, py: Python<'py>, i: usize) -> PyResult<Bound<'py, PyDict>> {
        let row = PyDict::new(py);
        for column in self.columns() {
            row.set_item(column.name(), column.sample(py, i)?)?;
        }
        Ok(row)
    }

    /// Returns a copy of the samples at these indices of the batch.
    fn select(&self, py: Python<'_>, indices: &[u64]) -> PyResult<Self> {
        let indices = indices.iter().map(|index| usize::try_from(*index)).collect::<Result<Vec<_>, _>>()?;
        let columns = self.columns().map(|column| ColumnBuffers::of(&column)?.select(&indices));
        let columns = columns.collect::<PyResult<Vec<_>>>()?;
        let samples = indices.iter().filter_map(|index| self.batch.indices().get(*index).copied()).collect();
        let substituted: HashSet<usize> = self.batch.substituted().iter().copied().collect();
        let substituted =
            (0..).zip(&indices).filter(|(_, index)| substituted.contains(index)).map(|(i, _)| i).collect();
        let batch = buffers::batch(samples, &columns).or_raise(py)?;
        Ok(Self::new(batch.at(self.batch.epoch(), self.batch.position(), substituted)))
    }

    fn named(&self, name: &str) -> PyResult<BatchColumn> {
        let number = self.names().position(|found| found == name);
        number.and_then(|number| self.column_at(number)).map(BatchColumn).ok_or_else(|| {
            let all: Vec<&str> = self.names().collect();
            PyKeyError::new_err(format!("no column {name:?} in the batch: its columns are {}", all.join(", ")))
        })
    }
}

#[pymethods]
impl Batch {
    /// The indices of the samples in the dataset: an i64 array.
    #[getter]
    fn indices(&self) -> PyResult<Array> {
        Ok(Array::from_numbers(
            self.batch.indices().iter().map(|sample| i64::try_from(*sample)).collect::<Result<_, _>>()?,
        ))
    }

    /// The epoch in which a loader delivered the batch, counted from 0.
    #[getter]
    fn epoch(&self) -> u64 {
        self.batch.epoch()
    }

    /// The position in the epoch at which the step starts, counted over all ranks.
    #[getter]
    fn position(&self) -> u64 {
        self.batch.position()
    }

    /// The samples that replace damaged samples, as indices in the batch.
    #[getter]
    fn substituted(&self) -> Vec<usize> {
        self.batch.substituted().to_vec()
    }

    /// Returns the names of the columns.
    fn keys(&self) -> Vec<&str> {
        self.names().collect()
    }

    /// Returns the columns.
    fn values(&self) -> Vec<BatchColumn> {
        self.columns().map(BatchColumn).collect()
    }

    /// Returns the names and the columns.
    fn items(&self) -> Vec<(&str, BatchColumn)> {
        self.names().zip(self.values()).collect()
    }

    /// Returns a column, or ``default`` if the batch does not have it.
    #[pyo3(signature = (name, default=None))]
    fn get<'py>(&self, py: Python<'py>, name: &str, default: Option<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        match self.named(name) {
            Ok(column) => Ok(column.into_pyobject(py)?.into_any()),
            Err(_) => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    /// Returns the samples as dicts.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        (0..self.sample_count()).map(|i| self.row(py, i)).collect()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema; // only a hint: the consumer casts
        arrow::batch_capsules(py, self.columns(), self.sample_count())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // only a hint: the consumer casts
        arrow::batch_stream(py, self.columns(), self.sample_count())
    }

    fn __len__(&self) -> usize {
        self.sample_count()
    }

    fn __contains__(&self, name: &str) -> bool {
        self.names().any(|found| found == name)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.keys().into_pyobject(py)?.try_iter()?.into_any())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(name) = key.cast::<PyString>() {
            return Ok(self.named(name.to_str()?)?.into_pyobject(py)?.into_any());
        }
        let count = self.sample_count();
        if let Some(index) = indices::single(&key)? {
            let i = indices::wrapped(index, count as u64).and_then(|i| usize::try_from(i).ok());
            let i = i.ok_or_else(|| {
                PyIndexError::new_err(format!("sample index {index} is out of range for a batch of {count}"))
            })?;
            return Ok(self.row(py, i)?.into_any());
        }
        let samples = indices::from_object(&key, count as u64)?;
        Ok(self.select(py, &samples)?.into_pyobject(py)?.into_any())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.import("tensilo._tensilo")?.getattr("_batch")?;
        let columns =
            self.columns().map(|column| ColumnBuffers::of(&column)?.to_state(py)).collect::<PyResult<Vec<_>>>()?;
        let origin = (self.batch.epoch(), self.batch.position(), self.batch.substituted().to_vec());
        Ok((make, (self.batch.indices().to_vec(), origin, columns).into_pyobject(py)?))
    }

    /// Raises TypeError, so that NumPy and pandas do not mistake the column names for the values.
    #[pyo3(signature = (*_arguments, **_options))]
    fn __array__(&self, _arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a batch has several columns: convert one, as in batch[\"mel\"].numpy(), or all with pandas.DataFrame.from_arrow(batch)",
        ))
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("tensilo._show")?.call_method1("batch_text", (slf,))
    }
}

/// Restores a batch from a pickle.
#[pyfunction]
pub fn _batch(
    py: Python<'_>,
    samples: Vec<u64>,
    origin: (u64, u64, Vec<usize>),
    columns: Vec<ColumnState<'_>>,
) -> PyResult<Batch> {
    let columns = columns.into_iter().map(ColumnBuffers::from_state).collect::<PyResult<Vec<_>>>()?;
    let (epoch, position, substituted) = origin;
    Ok(Batch::new(buffers::batch(samples, &columns).or_raise(py)?.at(epoch, position, substituted)))
}
