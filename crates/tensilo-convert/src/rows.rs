//! The number of rows in a batch.

use tensilo::import::arrow::datatypes::{DataType, Field, Schema};

/// The most values of a batch, nulls too: a row of a few bytes may have none of very many columns.
const BATCH_VALUES: usize = 1 << 22;

/// Returns how many rows a batch has at most, whatever their bytes.
pub(crate) fn most_rows(schema: &Schema) -> usize {
    let values = schema.fields().iter().map(|field| values_per_row(field)).sum::<usize>();
    (BATCH_VALUES / values.max(1)).max(1)
}

/// Returns the number of values that a row has at least. Fields are not nested deeply.
fn values_per_row(field: &Field) -> usize {
    match field.data_type() {
        DataType::Struct(fields) => fields.iter().map(|field| values_per_row(field)).sum::<usize>() + 1,
        _ => 1,
    }
}
