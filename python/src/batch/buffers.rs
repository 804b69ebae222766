//! The buffers of a column, which selections copy and pickles store.
//!
//! A batch holds its samples in memory that its reader filled. Selecting samples or pickling a
//! batch splits each column into lists, extents, values and validity, the form that writers accept.
//! [`batch`] rebuilds a batch from such buffers.

use crate::array::memory::Memory;
use crate::batch::samples::ColumnSamples;
use crate::schema::ColumnType;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::sync::Arc;
use tensilo::nested::ListBatch;
use tensilo::{ColumnBatch, ColumnSchema, Extent, Shape};

/// A level of lists in a pickle: lengths and validity.
type ListState<'py> = (Vec<u32>, Option<Bound<'py, PyBytes>>);

/// A column in a pickle: name, type, lists, number of items, extents, values and validity.
pub type ColumnState<'py> = (
    String,
    Bound<'py, ColumnType>,
    Vec<ListState<'py>>,
    usize,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Option<Bound<'py, PyBytes>>,
);

/// The samples of one column.
#[derive(Clone)]
pub struct ColumnBuffers {
    schema: ColumnSchema,
    lists: Vec<Lists>,
    item_count: usize,
    extents: Vec<u32>,
    values: Memory,
    validity: Option<Vec<u8>>,
}

/// The lists of one level.
#[derive(Clone, Default)]
struct Lists {
    lengths: Vec<u32>,
    validity: Option<Vec<u8>>,
}

/// A validity bitmap under construction.
#[derive(Default)]
struct Bitmap {
    bytes: Vec<u8>,
    count: usize,
    has_nulls: bool,
}

impl Bitmap {
    fn push(&mut self, is_present: bool) {
        if self.count.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let Some(byte) = self.bytes.last_mut() {
            *byte |= u8::from(is_present) << (self.count % 8);
        }
        self.count = self.count.saturating_add(1);
        self.has_nulls |= !is_present;
    }

    fn finish(self) -> Option<Vec<u8>> {
        self.has_nulls.then_some(self.bytes)
    }
}

impl ColumnBuffers {
    /// Splits a column into buffers. A padded column keeps its padded shape.
    pub fn of(column: &ColumnSamples) -> PyResult<Self> {
        let found = column.column();
        let mut schema = ColumnSchema { cast: None, ..ColumnSchema::clone(&column.schema) };
        if let Some((_, extents)) = found.tensor_extents().and_then(<[u64]>::split_first) {
            let extents = extents.iter().map(|extent| u32::try_from(*extent).map(Extent::Fixed));
            let validity = found.lists().first().map_or(found.validity(), |lists| lists.validity());
            if column.item_shapes_vary() {
                (schema.dtype, schema.levels) = (column.element(), Vec::new());
                schema.metadata.clear();
            }
            schema.shape = Shape::new(extents.collect::<Result<Vec<_>, _>>()?);
            return Ok(Self {
                schema,
                lists: Vec::new(),
                item_count: column.sample_count(),
                extents: Vec::new(),
                values: column.memory.clone(),
                validity: validity.map(<[u8]>::to_vec),
            });
        }
        let length = |ends: &[u64]| match ends {
            [start, end] => u32::try_from(end.saturating_sub(*start)),
            _ => Ok(0), // unreachable: windows have two entries
        };
        let lists = found.lists().iter().map(|lists| {
            let lengths = lists.offsets().windows(2).map(length).collect::<Result<_, _>>()?;
            Ok(Lists { lengths, validity: lists.validity().map(<[u8]>::to_vec) })
        });
        Ok(Self {
            schema,
            lists: lists.collect::<PyResult<_>>()?,
            item_count: column.item_count(),
            extents: found.varying_extents().to_vec(),
            values: column.memory.clone(),
            validity: found.validity().map(<[u8]>::to_vec),
        })
    }

    /// Returns the samples at these indices, in this order.
    ///
    /// Cost: a copy of these samples and, for ragged and nested columns, a pass over all lengths.
    pub fn select(&self, samples: &[usize]) -> PyResult<Self> {
        let missing = || PyIndexError::new_err("the sample is not in the batch");
        let mut items = samples.to_vec();
        let mut lists = Vec::new();
        for level in &self.lists {
            let starts = starts(level.lengths.iter().map(|length| *length as usize)); // exact
            let (mut chosen, mut present, mut members) = (Vec::new(), Bitmap::default(), Vec::new());
            for &list in &items {
                let length = *level.lengths.get(list).ok_or_else(missing)?;
                let start = *starts.get(list).ok_or_else(missing)?;
                chosen.push(length);
                present.push(is_present(level.validity.as_deref(), list));
                members.extend(start..start.saturating_add(length as usize)); // exact
            }
            lists.push(Lists { lengths: chosen, validity: present.finish() });
            items = members;
        }
        let varying = self.schema.shape.varying_count();
        let fixed_bytes = self.values.byte_count().checked_div(self.item_count).unwrap_or(0);
        let ragged = (varying > 0).then(|| self.item_ranges(varying));
        let item_range = |item: usize| match &ragged {
            Some(item_ranges) => item_ranges.get(item).copied(),
            None => (item < self.item_count).then(|| (item.saturating_mul(fixed_bytes), fixed_bytes)),
        };
        let (mut extents, mut values, mut present) = (Vec::new(), Vec::new(), Bitmap::default());
        for &item in &items {
            let first = item.saturating_mul(varying);
            extents.extend(self.extents.get(first..first.saturating_add(varying)).ok_or_else(missing)?);
            let (start, count) = item_range(item).ok_or_else(missing)?;
            self.values.slice(start, count).ok_or_else(missing)?.append_to(&mut values);
            present.push(is_present(self.validity.as_deref(), item));
        }
        Ok(Self {
            schema: self.schema.clone(),
            lists,
            item_count: items.len(),
            extents,
            values: Memory::copied(&values),
            validity: present.finish(),
        })
    }

    /// Returns the start and length of each ragged item, in bytes.
    fn item_ranges(&self, varying: usize) -> Vec<(usize, usize)> {
        let inner = self.schema.shape.inner_elements().and_then(|inner| usize::try_from(inner).ok());
        let inner = inner.unwrap_or(0).saturating_mul(self.schema.dtype.element_bytes());
        let of_item =
            |extents: &[u32]| extents.iter().fold(inner, |bytes, extent| bytes.saturating_mul(*extent as usize));
        let bytes: Vec<usize> = self.extents.chunks_exact(varying).map(of_item).collect();
        starts(bytes.iter().copied()).into_iter().zip(bytes).collect()
    }

    /// Returns the buffers for a pickle.
    pub fn to_state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let lists =
            self.lists.iter().map(|lists| (&lists.lengths, lists.validity.as_ref().map(|bits| PyBytes::new(py, bits))));
        let extents: Vec<u8> = self.extents.iter().flat_map(|extent| extent.to_le_bytes()).collect();
        (
            &self.schema.name,
            ColumnType(self.schema.clone()),
            lists.collect::<Vec<_>>(),
            self.item_count,
            PyBytes::new(py, &extents),
            PyBytes::new(py, &self.values.to_vec()),
            self.validity.as_ref().map(|bits| PyBytes::new(py, bits)),
        )
            .into_pyobject(py)
    }

    /// Restores the buffers from a pickle.
    pub fn from_state(state: ColumnState<'_>) -> PyResult<Self> {
        let (name, column, lists, item_count, extents, values, validity) = state;
        let (extents, rest) = extents.as_bytes().as_chunks();
        if !rest.is_empty() {
            return Err(PyValueError::new_err(format!("column {name:?}: the pickle of the batch is damaged")));
        }
        let bits = |bits: Bound<'_, PyBytes>| bits.as_bytes().to_vec();
        let lists = lists.into_iter().map(|(lengths, validity)| Lists { lengths, validity: validity.map(bits) });
        Ok(Self {
            schema: ColumnSchema { name, ..column.get().0.clone() },
            lists: lists.collect(),
            item_count,
            extents: extents.iter().map(|extent| u32::from_le_bytes(*extent)).collect(),
            values: Memory::copied(values.as_bytes()),
            validity: validity.map(bits),
        })
    }
}

/// Returns whether bit `i` is set; without a bitmap, all entries are present.
fn is_present(validity: Option<&[u8]>, i: usize) -> bool {
    validity.is_none_or(|bits| bits.get(i / 8).is_some_and(|byte| byte >> (i % 8) & 1 == 1))
}

/// Returns the start of each entry, given the lengths of consecutive entries.
fn starts(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut end = 0_usize;
    let start = |length: usize| {
        let start = end;
        end = end.saturating_add(length);
        start
    };
    lengths.map(start).collect()
}

/// Creates a batch from the buffers of its columns. `samples` has the index of each sample in the
/// dataset.
pub fn batch(samples: Vec<u64>, columns: &[ColumnBuffers]) -> crate::error::Result<tensilo_data::Batch> {
    let values: Vec<Vec<u8>> = columns.iter().map(|buffers| buffers.values.to_vec()).collect();
    let lists: Vec<Vec<ListBatch<'_>>> = columns
        .iter()
        .map(|buffers| {
            let lists = buffers.lists.iter().map(|lists| match &lists.validity {
                Some(validity) => ListBatch::new(&lists.lengths).with_validity(validity),
                None => ListBatch::new(&lists.lengths),
            });
            lists.collect()
        })
        .collect();
    let batches = columns.iter().zip(&values).zip(&lists).map(|((buffers, values), lists)| {
        let batch = ColumnBatch::from_bytes(buffers.schema.dtype, buffers.item_count, &buffers.extents, values);
        let batch = if lists.is_empty() { batch } else { batch.in_lists(lists) };
        let batch = match &buffers.validity {
            Some(validity) => batch.with_validity(validity),
            None => batch,
        };
        (Arc::new(buffers.schema.clone()), batch)
    });
    tensilo_data::Batch::from_columns(samples, batches)
}
