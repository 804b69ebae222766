//! Elements of samples, from ranges of a buffer to one run of bytes.

use crate::format::CastFacts;
use crate::import::batch::SharedBytes;
use crate::list_buffer::ListBuffer;
use crate::{ColumnBatch, DType};
use std::ops::Range;

/// The samples of one column, ready to be pushed.
#[derive(Debug)]
pub(super) struct PushableColumn {
    pub dtype: DType,
    pub item_count: usize,
    /// The lists of each level of a nested column.
    pub lists: Vec<ListBuffer>,
    pub extents: Vec<u32>,
    pub values: SharedBytes,
    pub validity: Option<SharedBytes>,
    /// The errors of a cast of the values.
    pub cast: Option<CastFacts>,
}

impl PushableColumn {
    pub(super) fn as_batch(&self) -> ColumnBatch<'_> {
        let batch = ColumnBatch::from_bytes(self.dtype, self.item_count, &self.extents, &self.values);
        let batch = match &self.validity {
            Some(bitmap) => batch.with_validity(bitmap),
            None => batch,
        };
        if self.lists.is_empty() { batch } else { batch.in_buffers(&self.lists) }
    }
}

/// Returns the bytes of `ranges` one after the other: a slice of the buffer if they already are.
/// `None` if a range is not inside.
pub(super) fn concatenate(buffer: &SharedBytes, ranges: &[Range<usize>]) -> Option<SharedBytes> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        match runs.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => runs.push(range.clone()),
        }
    }
    match runs.as_slice() {
        [] => buffer.slice(0..0),
        [run] => buffer.slice(run.clone()),
        runs => {
            let mut bytes = Vec::with_capacity(runs.iter().map(ExactSizeIterator::len).sum());
            for run in runs {
                bytes.extend_from_slice(buffer.get(run.clone())?);
            }
            Some(SharedBytes::new(bytes))
        }
    }
}

/// Concatenates as [`concatenate`] does, with `null_bytes` zeros for each null.
pub(super) fn concatenate_fixed(
    buffer: &SharedBytes,
    ranges: &[Range<usize>],
    is_null: impl Fn(usize) -> bool,
    null_bytes: usize,
) -> Option<SharedBytes> {
    let replaced = |(i, range): (usize, &Range<usize>)| is_null(i) && range.len() != null_bytes;
    if !ranges.iter().enumerate().any(replaced) {
        return concatenate(buffer, ranges);
    }
    let length = |(i, range): (usize, &Range<usize>)| if is_null(i) { null_bytes } else { range.len() };
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(ranges.iter().enumerate().map(length).fold(0, usize::saturating_add)).ok()?;
    for (i, range) in ranges.iter().enumerate() {
        if is_null(i) {
            bytes.resize(bytes.len().checked_add(null_bytes)?, 0);
        } else {
            bytes.extend_from_slice(buffer.get(range.clone())?);
        }
    }
    Some(SharedBytes::new(bytes))
}
