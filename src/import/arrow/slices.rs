//! Record batches in slices that can be converted in bounded memory.

use super::decoded_bytes::{decoded_bytes, is_encoded};
use arrow_array::{Array, ArrayRef, RecordBatch};

/// The bytes of rows that are converted at a time, about; at least one row is. The buffers of a
/// decoder then stay in the processor's cache, and are not fetched from the system each time.
pub(in crate::import) const SLICE_BYTES: usize = 2 << 20;
/// The bytes kept for each sample of a column while a slice is converted.
const SAMPLE_BYTES: usize = 64;

/// A record batch in slices of consecutive rows.
pub(super) struct Slices {
    batch: RecordBatch,
    /// The columns that may take more memory when they are decoded.
    encoded: Vec<ArrayRef>,
    next: usize,
    /// The rows of the next slice, unless it would be too large.
    step: usize,
    most_rows: usize,
}

impl Slices {
    /// Begins with the first row of a batch. `added_bytes` are those that each row takes beyond its
    /// own.
    pub(super) fn of(batch: RecordBatch, added_bytes: usize) -> Self {
        let most_rows = rows_per_slice(&batch, added_bytes).max(1);
        let encoded = batch.columns().iter().filter(|array| is_encoded(array.data_type())).cloned().collect();
        Self { batch, encoded, next: 0, step: most_rows, most_rows }
    }

    /// Returns whether the columns have too many bytes in the next rows.
    fn is_too_large(&self, rows: usize) -> bool {
        let range = self.next..self.next.saturating_add(rows);
        let bytes = self.encoded.iter().map(|array| decoded_bytes(array, range.clone(), SLICE_BYTES));
        bytes.fold(0, usize::saturating_add) > SLICE_BYTES
    }
}

impl Iterator for Slices {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        let left = self.batch.num_rows().checked_sub(self.next).filter(|&left| left > 0)?;
        let mut rows = self.step.min(left);
        while rows > 1 && self.is_too_large(rows) {
            rows /= 2;
        }
        // the rows behind are probably as large
        self.step = rows.saturating_mul(2).min(self.most_rows);
        let slice = self.batch.slice(self.next, rows);
        self.next = self.next.saturating_add(rows);
        Some(slice)
    }
}

fn rows_per_slice(batch: &RecordBatch, added_bytes: usize) -> usize {
    let rows = batch.num_rows().max(1);
    let arrays = batch.columns().iter().map(|array| bytes_of(array).div_ceil(rows).saturating_add(SAMPLE_BYTES));
    SLICE_BYTES / arrays.fold(added_bytes.max(1), usize::saturating_add)
}

fn bytes_of(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
}
