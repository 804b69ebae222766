//! Elements of samples, scattered over a buffer, side by side.

use crate::{ColumnBatch, DType};
use arrow_buffer::{Buffer, NullBuffer};
use std::ops::Range;

/// One column of one batch, ready to be pushed.
#[derive(Debug)]
pub(super) struct Piece {
    pub dtype: DType,
    pub sample_count: usize,
    pub extents: Vec<u32>,
    pub values: Buffer,
    pub validity: Option<Buffer>,
}

impl Piece {
    pub(super) fn as_batch(&self) -> ColumnBatch<'_> {
        let batch = ColumnBatch::from_bytes(self.dtype, self.sample_count, &self.extents, &self.values);
        match &self.validity {
            Some(bitmap) => batch.with_validity(bitmap),
            None => batch,
        }
    }
}

/// The bitmap of nulls, if there are any.
pub(super) fn validity(nulls: Option<&NullBuffer>) -> Option<Buffer> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0)?;
    Some(nulls.inner().sliced())
}

/// The bytes at `ranges` one after the other; the buffer itself where they already are. `None` if a range is not
/// inside it.
pub(super) fn concatenate(buffer: &Buffer, ranges: &[Range<usize>]) -> Option<Buffer> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        match runs.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => runs.push(range.clone()),
        }
    }
    match runs.as_slice() {
        [] => Some(Buffer::default()),
        [run] => {
            let bytes = buffer.get(run.clone())?; // inside
            Some(buffer.slice_with_length(run.start, bytes.len()))
        }
        runs => {
            let mut bytes = Vec::with_capacity(runs.iter().map(ExactSizeIterator::len).sum());
            for run in runs {
                bytes.extend_from_slice(buffer.get(run.clone())?);
            }
            Some(Buffer::from_vec(bytes))
        }
    }
}

/// As [`concatenate`], with `null_bytes` zeros in the place of each null.
pub(super) fn concatenate_fixed(
    buffer: &Buffer,
    ranges: &[Range<usize>],
    is_null: impl Fn(usize) -> bool,
    null_bytes: usize,
) -> Option<Buffer> {
    let replaced = |(i, range): (usize, &Range<usize>)| is_null(i) && range.len() != null_bytes;
    if !ranges.iter().enumerate().any(replaced) {
        return concatenate(buffer, ranges);
    }
    let mut bytes = Vec::new();
    for (i, range) in ranges.iter().enumerate() {
        if is_null(i) {
            bytes.resize(bytes.len().checked_add(null_bytes)?, 0);
        } else {
            bytes.extend_from_slice(buffer.get(range.clone())?);
        }
    }
    Some(Buffer::from_vec(bytes))
}
