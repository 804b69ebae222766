//! Slices of batches, which can be written in bounded memory.

use crate::ColumnSchema;
use crate::import::batch::{InputBatch, Samples};
use std::ops::Range;

/// The bytes of samples that are written at a time, about. At least one sample is.
const SLICE_BYTES: usize = 16 << 20;

/// Returns the samples of a batch in ranges, as the columns that are made of it need it: a null of
/// a fixed shape takes as much memory as any sample, and several samples can share their bytes.
pub(super) fn slices(batch: &InputBatch, columns: &[ColumnSchema]) -> impl Iterator<Item = Range<usize>> + use<> {
    let count = batch.sample_count;
    let stored = batch.columns.iter().flatten().map(|samples| element_bytes(samples).div_ceil(count.max(1)));
    let sample_bytes = stored.chain(columns.iter().filter_map(inner_bytes)).fold(1, usize::saturating_add);
    let step = (2 * SLICE_BYTES / sample_bytes).max(1);
    (0..count).step_by(step).map(move |start| start..count.min(start.saturating_add(step)))
}

fn element_bytes(samples: &Samples) -> usize {
    let count = samples.ranges.iter().fold(0_usize, |sum, range| sum.saturating_add(range.len()));
    count.saturating_mul(samples.dtype.element_bytes())
}

/// Returns the bytes of a sample of a fixed shape.
fn inner_bytes(column: &ColumnSchema) -> Option<usize> {
    let elements = usize::try_from(column.shape.inner_elements()?).ok()?;
    elements.checked_mul(column.pushed_dtype().element_bytes())
}
