//! Slices of batches, which can be written in bounded memory.

use crate::import::batch::{InputBatch, InputLists, Samples};
use crate::import::plan::Column;
use crate::{ColumnSchema, DType};
use std::ops::Range;

/// The bytes of samples that are written at a time, about. At least one sample is.
const SLICE_BYTES: usize = 16 << 20;

/// Returns the samples of a batch in ranges, as the columns that are made of it need it: a null of
/// a fixed shape takes as much memory as any item, and several samples can share their bytes.
pub(super) fn slices(batch: &InputBatch, columns: &[ColumnSchema]) -> impl Iterator<Item = Range<usize>> + use<> {
    let count = batch.sample_count;
    let columns =
        || batch.columns.iter().zip(columns).filter_map(|(samples, column)| Some((samples.as_ref().ok()?, column)));
    let all = columns().map(|(samples, column)| all_bytes(samples, column)).fold(0, usize::saturating_add);
    let mut ends = Vec::new();
    if all > SLICE_BYTES {
        let mut bytes = vec![0; count];
        columns().for_each(|(samples, column)| {
            add_bytes(&mut bytes, samples, inner_bytes(column, column.pushed_dtype()), (samples.dtype, 1));
        });
        let mut slice = 0_usize;
        for (row, bytes) in bytes.into_iter().enumerate() {
            if slice > 0 && slice.saturating_add(bytes) > SLICE_BYTES {
                ends.push(row);
                slice = 0;
            }
            slice = slice.saturating_add(bytes);
        }
    }
    ends.extend((count > 0).then_some(count));
    let mut start = 0;
    ends.into_iter().map(move |end| std::mem::replace(&mut start, end)..end)
}

/// Returns the raw bytes of each row of a batch: those of the samples that are made of it, as they
/// are stored.
pub(super) fn row_bytes<'a>(
    batch: &InputBatch,
    columns: &[ColumnSchema],
    planned: impl IntoIterator<Item = &'a Column>,
) -> Vec<usize> {
    let mut bytes = vec![0; batch.sample_count];
    for ((samples, column), planned) in batch.columns.iter().zip(columns).zip(planned) {
        // a column that cannot be read is an error when it is copied
        let Ok(samples) = samples else { continue };
        let extent = planned.value_cast.map_or(1, |cast| cast.extent);
        add_bytes(&mut bytes, samples, inner_bytes(column, column.dtype), (column.dtype, extent));
    }
    bytes
}

/// Returns the raw bytes of each row of a column as it is stored; `None` if they differ.
pub(super) fn fixed_row_bytes(column: &ColumnSchema) -> Option<usize> {
    let is_fixed = column.levels.is_empty() && !column.shape.is_ragged();
    is_fixed.then(|| inner_bytes(column, column.dtype))
}

/// Returns the bytes of an item of a fixed shape; 0 if it varies.
fn inner_bytes(column: &ColumnSchema, dtype: DType) -> usize {
    let elements = column.shape.inner_elements().filter(|_| !column.shape.is_ragged());
    let elements = elements.and_then(|elements| usize::try_from(elements).ok()).unwrap_or(0);
    elements.saturating_mul(dtype.element_bytes())
}

/// Returns the bytes of all samples of a column.
fn all_bytes(samples: &Samples, column: &ColumnSchema) -> usize {
    let elements = samples.ranges.iter().fold(0_usize, |sum, range| sum.saturating_add(range.len()));
    let fixed = samples.ranges.len().saturating_mul(inner_bytes(column, column.pushed_dtype()));
    elements.saturating_mul(samples.dtype.element_bytes()).max(fixed)
}

/// Adds the bytes of a column to those of each row: of its elements as values of `dtype`, each of
/// which is made of `extent` elements, and of an item at least `fixed`.
fn add_bytes(rows: &mut [usize], samples: &Samples, fixed: usize, (dtype, extent): (DType, usize)) {
    let mut items = samples.ranges.iter();
    for (row, count) in rows.iter_mut().zip(items_of_rows(&samples.lists, samples.ranges.len())) {
        for range in items.by_ref().take(count) {
            let stored = (range.len() / extent.max(1)).saturating_mul(dtype.element_bytes());
            *row = row.saturating_add(stored.max(fixed));
        }
    }
}

/// Returns the number of items in each row, of `item_count` in all.
fn items_of_rows(lists: &[InputLists], item_count: usize) -> Vec<usize> {
    lists.iter().rev().fold(vec![1; item_count], |entries, lists| {
        let mut entries = entries.into_iter();
        let members = |&length: &u32| entries.by_ref().take(usize::try_from(length).unwrap_or(usize::MAX)).sum();
        lists.lengths.iter().map(members).collect()
    })
}
