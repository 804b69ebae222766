//! Cutting a batch into pieces that can be converted in bounded memory.

use crate::ColumnSchema;
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

/// About so many bytes are converted at a time; one row is if it has more.
pub(super) const SLICE_BYTES: usize = 16 << 20;
/// What is kept for each sample of a column while a slice is converted.
const SAMPLE_BYTES: usize = 64;

/// The batch in slices of consecutive rows, as the columns that are made of it (if they are known) need it.
pub(super) fn slices<'a>(
    batch: &'a RecordBatch,
    columns: &[ColumnSchema],
) -> impl Iterator<Item = RecordBatch> + use<'a> {
    let rows = batch.num_rows();
    let step = rows_per_slice(batch, columns).max(1);
    (0..rows).step_by(step).map(move |start| batch.slice(start, step.min(rows - start))) // inside
}

fn rows_per_slice(batch: &RecordBatch, columns: &[ColumnSchema]) -> usize {
    let rows = batch.num_rows().max(1);
    let arrays = batch.columns().iter().map(|array| bytes_of(array).div_ceil(rows).saturating_add(SAMPLE_BYTES));
    // a null takes as much room in a fixed column as any sample
    let fixed = columns.iter().filter_map(inner_bytes);
    let dictionaries = batch.columns().iter().map(largest_text);
    let row_bytes = arrays.chain(fixed).chain(dictionaries).fold(1, usize::saturating_add);
    SLICE_BYTES / row_bytes
}

/// What a sample of a fixed shape takes.
fn inner_bytes(column: &ColumnSchema) -> Option<usize> {
    let elements = usize::try_from(column.shape.inner_elements()?).ok()?;
    elements.checked_mul(column.pushed_dtype().element_bytes())
}

fn bytes_of(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
}

/// What a row of a dictionary of texts can grow to when it is decoded.
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
