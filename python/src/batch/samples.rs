//! `ColumnSamples`: the samples of one column of a batch, and their conversion to Python objects.
//!
//! In Rust, a batch holds values, offsets, extents, lists and validity for each column.
//! Python can write to the values at any time, so no Rust reference to them may exist:
//! [`Memory::from_batch`] separates them from the batch, and [`ColumnSamples`] pairs a column with
//! the memory of its values.
//!
//! Batches, `BatchColumn`, Arrow arrays and pickles are all built on this type, which depends on
//! none of them.

use crate::array::Array;
use crate::array::memory::Memory;
use crate::schema::check_values;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use std::sync::{Arc, OnceLock};
use tensilo::{ColumnSchema, DType, Extent};
use tensilo_data::Batch;

/// The samples of one column of a batch, with the memory of their values.
#[derive(Clone)]
pub struct ColumnSamples {
    batch: Arc<Batch>,
    number: usize,
    pub schema: Arc<ColumnSchema>,
    pub memory: Memory,
}

impl ColumnSamples {
    pub fn new(batch: &Arc<Batch>, number: usize, memory: Memory) -> Option<Self> {
        let schema = batch.columns().get(number)?.shared_schema()?.clone();
        Some(Self { batch: batch.clone(), number, schema, memory })
    }

    /// Returns the column of the batch. Its values are only in `memory`, so the caller must not use
    /// the values of this column.
    pub fn column(&self) -> &tensilo_data::BatchColumn {
        static NONE: OnceLock<tensilo_data::BatchColumn> = OnceLock::new();
        // the column exists, see `new`
        self.batch.columns().get(self.number).unwrap_or_else(|| NONE.get_or_init(Default::default))
    }

    pub fn name(&self) -> &str {
        &self.schema.name
    }

    pub fn sample_count(&self) -> usize {
        self.column().sample_count()
    }

    pub fn is_string(&self) -> bool {
        self.schema.dtype.is_string()
    }

    /// Returns the dtype of the elements of an array: `u8` for text and bytes.
    pub fn element(&self) -> DType {
        if self.is_string() { DType::U8 } else { self.schema.dtype }
    }

    /// Returns samples of a fixed shape as one tensor; `None` for other samples.
    pub fn tensor(&self) -> PyResult<Option<Array>> {
        let Some(extents) = self.column().tensor_extents() else { return Ok(None) };
        Array::new(self.memory.clone(), self.element(), shape_of(extents.to_vec())?).map(Some)
    }

    /// Fails if the elements are only an encoding of the values, such as the integers of decimals.
    pub fn check_values(&self) -> PyResult<()> {
        check_values(&self.schema)
    }

    /// Returns the extents after the first one if only the first one varies.
    fn inner_extents(&self) -> Option<Vec<usize>> {
        let (first, rest) = self.schema.shape.extents().split_first()?;
        let fixed = rest.iter().map(|extent| match extent {
            Extent::Fixed(extent) => usize::try_from(*extent).ok(),
            Extent::Varying => None,
        });
        if *first == Extent::Varying { fixed.collect() } else { None }
    }

    /// Returns the concatenated elements of all samples.
    pub fn values_array(&self) -> PyResult<Array> {
        self.check_values()?;
        let width = self.element().element_bytes();
        let inner = self.inner_extents().unwrap_or_default();
        let rows = match self.inner_extents() {
            Some(_) => self.column().varying_extents().iter().map(|extent| u64::from(*extent)).sum(),
            None => (self.memory.byte_count() / width) as u64, // exact
        };
        let mut shape = vec![usize::try_from(rows)?];
        if self.schema.shape.is_ragged() {
            shape.extend(inner);
            return Array::new(self.memory.clone(), self.element(), shape);
        }
        // lists whose items have a fixed shape
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

    /// Returns whether samples are lists or can have different shapes.
    pub fn item_shapes_vary(&self) -> bool {
        !self.schema.levels.is_empty() || self.schema.shape.is_ragged()
    }

    /// Returns the offsets of items in the values. If only the first extent varies, an offset is a
    /// number of rows (indices of the first axis); otherwise, it is a number of elements.
    pub fn item_offsets(&self) -> PyResult<Vec<i64>> {
        let column = self.column();
        if self.inner_extents().is_none() {
            return Ok(column.offsets().iter().map(|offset| i64::try_from(*offset)).collect::<Result<_, _>>()?);
        }
        let mut end = 0_i64;
        let ends = column.varying_extents().iter().map(|extent| {
            end = end.saturating_add(i64::from(*extent));
            end
        });
        Ok(std::iter::once(0).chain(ends).collect())
    }

    /// Returns the offsets of each level of lists, outermost first, then of ragged items.
    pub fn levels(&self) -> PyResult<Vec<Array>> {
        let mut levels = Vec::new();
        for lists in self.column().lists() {
            let offsets = lists.offsets().iter().map(|offset| i64::try_from(*offset));
            levels.push(Array::from_numbers(offsets.collect::<Result<_, _>>()?));
        }
        if self.schema.shape.is_ragged() {
            levels.push(Array::from_numbers(self.item_offsets()?));
        }
        Ok(levels)
    }

    /// Returns the same samples without their logical type.
    pub fn stored(&self) -> Self {
        let mut schema = ColumnSchema::clone(&self.schema);
        schema.metadata.remove("arrow.type");
        Self { schema: Arc::new(schema), ..self.clone() }
    }

    /// Returns the indices of the samples in the dataset.
    pub fn numbers(&self) -> &[u64] {
        self.batch.indices()
    }

    /// Returns whether sample `i` is null.
    pub fn is_null_sample(&self, i: usize) -> bool {
        match self.column().lists().first() {
            Some(lists) => lists.is_null(i),
            None => self.column().is_null(i),
        }
    }

    /// Returns sample `i` as a Python object: None, a number, a string, bytes, an array or a list.
    pub fn sample<'py>(&self, py: Python<'py>, i: usize) -> PyResult<Bound<'py, PyAny>> {
        if i >= self.sample_count() {
            return Err(PyIndexError::new_err(format!(
                "sample index {i} is out of range for {} samples",
                self.sample_count()
            )));
        }
        if !self.is_null_sample(i) {
            self.check_values()?;
        }
        match self.column().lists().is_empty() || self.column().tensor_extents().is_some() {
            true => self.item(py, i),
            false => self.member(py, 0, i),
        }
    }

    /// Returns list `i` of a level, or item `i` if the level is below the innermost lists.
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
        // the items of a padded tensor are the samples, not the members of lists
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

    /// Returns the memory of item `i` of a column that is not one tensor.
    fn item_memory(&self, i: usize) -> Option<Memory> {
        let width = self.element().element_bytes();
        if !self.schema.shape.is_ragged() {
            let bytes = self.memory.byte_count().checked_div(self.item_count())?;
            return self.memory.slice(i.checked_mul(bytes)?, bytes);
        }
        let at = |i: usize| usize::try_from(*self.column().offsets().get(i)?).ok()?.checked_mul(width);
        let start = at(i)?;
        self.memory.slice(start, at(i.checked_add(1)?)?.checked_sub(start)?)
    }

    pub fn item_shape(&self, i: usize) -> Vec<usize> {
        let varying = self.schema.shape.varying_count();
        let mut own = self.column().varying_extents().iter().skip(i.saturating_mul(varying));
        let extents = self.schema.shape.extents().iter().map(|extent| match extent {
            Extent::Fixed(extent) => *extent,
            Extent::Varying => own.next().copied().unwrap_or(0),
        });
        extents.map(|extent| usize::try_from(extent).unwrap_or(usize::MAX)).collect()
    }
}

/// Converts extents to the shape of an array.
pub fn shape_of(extents: Vec<u64>) -> PyResult<Vec<usize>> {
    Ok(extents.into_iter().map(usize::try_from).collect::<Result<_, _>>()?)
}

/// Converts a 0-dimensional array to a number, and returns other arrays unchanged.
fn scalar_or_array<'py>(py: Python<'py>, array: Array) -> PyResult<Bound<'py, PyAny>> {
    if array.shape.is_empty() { array.to_object(py) } else { Ok(array.into_pyobject(py)?.into_any()) }
}
