//! Record batches in slices that can be converted in bounded memory.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

/// The bytes of rows that are converted at a time, about; at least one row is. The buffers of a
/// decoder then stay in the processor's cache, and are not fetched from the system each time.
pub(in crate::import) const SLICE_BYTES: usize = 2 << 20;
/// The bytes kept for each sample of a column while a slice is converted.
const SAMPLE_BYTES: usize = 64;

/// A record batch in slices of consecutive rows.
pub(super) struct Slices {
    batch: RecordBatch,
    next: usize,
    step: usize,
}

impl Slices {
    pub(super) fn of(batch: RecordBatch) -> Self {
        let step = rows_per_slice(&batch).max(1);
        Self { batch, next: 0, step }
    }
}

impl Iterator for Slices {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        let left = self.batch.num_rows().checked_sub(self.next).filter(|&left| left > 0)?;
        let slice = self.batch.slice(self.next, self.step.min(left));
        self.next = self.next.saturating_add(slice.num_rows());
        Some(slice)
    }
}

fn rows_per_slice(batch: &RecordBatch) -> usize {
    let rows = batch.num_rows().max(1);
    let arrays = batch.columns().iter().map(|array| bytes_of(array).div_ceil(rows).saturating_add(SAMPLE_BYTES));
    let dictionaries = batch.columns().iter().map(largest_text);
    let row_bytes = arrays.chain(dictionaries).fold(1, usize::saturating_add);
    SLICE_BYTES / row_bytes
}

fn bytes_of(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
}

/// Returns the bytes that a row of a dictionary of texts has at most when it is decoded.
fn largest_text(array: &ArrayRef) -> usize {
    let Some(dictionary) = array.as_any_dictionary_opt() else { return 0 };
    let values = dictionary.values();
    let largest = match values.data_type() {
        DataType::Utf8 => largest(values.as_string::<i32>().value_offsets().iter().map(|&offset| i64::from(offset))),
        DataType::LargeUtf8 => largest(values.as_string::<i64>().value_offsets().iter().copied()),
        DataType::Binary => largest(values.as_binary::<i32>().value_offsets().iter().map(|&offset| i64::from(offset))),
        DataType::LargeBinary => largest(values.as_binary::<i64>().value_offsets().iter().copied()),
        _ => 0,
    };
    usize::try_from(largest).unwrap_or(0)
}

fn largest(offsets: impl Iterator<Item = i64> + Clone) -> i64 {
    let lengths = offsets.clone().skip(1).zip(offsets).map(|(end, start)| end.saturating_sub(start));
    lengths.max().unwrap_or(0)
}
