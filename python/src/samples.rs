//! Samples of a batch as objects of Python, one by one.

use crate::array::Array;
use crate::batch_column::BatchColumn;
use crate::memory::Memory;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use tensilo::{DType, Extent};

impl BatchColumn {
    /// Returns whether sample `i` is null.
    pub fn is_null_sample(&self, i: usize) -> bool {
        match self.column().lists().first() {
            Some(lists) => lists.is_null(i),
            None => self.column().is_null(i),
        }
    }

    /// Returns sample `i` as an object: None, a number, a text, bytes, an array or a list.
    pub fn sample<'py>(&self, py: Python<'py>, i: usize) -> PyResult<Bound<'py, PyAny>> {
        if i >= self.sample_count() {
            return Err(PyIndexError::new_err(format!("sample {i} of {}", self.sample_count())));
        }
        if !self.is_null_sample(i) {
            self.check_values()?;
        }
        match self.column().lists().is_empty() || self.column().tensor().is_some() {
            true => self.item(py, i),
            false => self.member(py, 0, i),
        }
    }

    /// Returns list `i` of a level.
    fn member<'py>(&self, py: Python<'py>, level: usize, i: usize) -> PyResult<Bound<'py, PyAny>> {
        let Some(lists) = self.column().lists().get(level) else { return self.item(py, i) };
        if lists.is_null(i) {
            return Ok(py.None().into_bound(py));
        }
        let at = |i: usize| lists.offsets().get(i).and_then(|offset| usize::try_from(*offset).ok()).unwrap_or(0);
        let members = (at(i)..at(i.saturating_add(1))).map(|member| self.member(py, level.saturating_add(1), member));
        Ok(PyList::new(py, members.collect::<PyResult<Vec<_>>>()?)?.into_any())
    }

    fn item<'py>(&self, py: Python<'py>, i: usize) -> PyResult<Bound<'py, PyAny>> {
        let tensor = self.tensor()?;
        // the items of a tensor are the samples, also if it was padded
        let is_null = if tensor.is_some() { self.is_null_sample(i) } else { self.column().is_null(i) };
        if is_null {
            return Ok(py.None().into_bound(py));
        }
        if let Some(tensor) = tensor {
            let sample = tensor.member(i).ok_or_else(|| PyIndexError::new_err("the sample is not in the batch"))?;
            return scalar_or_array(py, sample);
        }
        let memory = self.item_memory(i).ok_or_else(|| PyIndexError::new_err("the sample is not in the batch"))?;
        match self.schema.dtype {
            DType::Utf8 => Ok(PyString::new(py, &String::from_utf8(memory.to_vec())?).into_any()),
            DType::Bytes => Ok(PyBytes::new(py, &memory.to_vec()).into_any()),
            dtype => scalar_or_array(py, Array::new(memory, dtype, self.item_shape(i))?),
        }
    }

    /// Returns the memory of item `i` of a column that is no tensor.
    fn item_memory(&self, i: usize) -> Option<Memory> {
        let width = self.element().element_bytes();
        if !self.schema.shape.is_ragged() {
            let bytes = self.memory.byte_count().checked_div(self.item_count())?;
            return self.memory.part(i.checked_mul(bytes)?, bytes);
        }
        let at = |i: usize| usize::try_from(*self.column().offsets().get(i)?).ok()?.checked_mul(width);
        let start = at(i)?;
        self.memory.part(start, at(i.checked_add(1)?)?.checked_sub(start)?)
    }

    pub fn item_shape(&self, i: usize) -> Vec<usize> {
        let varying = self.schema.shape.varying_count();
        let mut own = self.column().extents().iter().skip(i.saturating_mul(varying));
        let extents = self.schema.shape.extents().iter().map(|extent| match extent {
            Extent::Fixed(extent) => *extent,
            Extent::Varying => own.next().copied().unwrap_or(0),
        });
        extents.map(|extent| usize::try_from(extent).unwrap_or(usize::MAX)).collect()
    }
}

/// Returns the number of an array without dimensions, and others as they are.
fn scalar_or_array<'py>(py: Python<'py>, array: Array) -> PyResult<Bound<'py, PyAny>> {
    if array.shape.is_empty() { array.to_object(py) } else { Ok(array.into_pyobject(py)?.into_any()) }
}
