//! Rows that are read one by one, as record batches.

use tensilo::Result;
use tensilo::import::arrow::array::RecordBatch;
use tensilo::import::arrow::datatypes::{DataType, Field, Schema};

/// A batch ends with the row that reaches these bytes.
pub(crate) const BATCH_BYTES: usize = 2 << 20;

/// The most values of a batch, nulls too: a row of a few bytes may have none of very many columns.
const BATCH_VALUES: usize = 1 << 22;

/// Returns how many rows a batch has at most, whatever their bytes.
pub(crate) fn most_rows(schema: &Schema) -> usize {
    let values = schema.fields().iter().map(|field| values_per_row(field)).sum::<usize>();
    (BATCH_VALUES / values.max(1)).max(1)
}

/// Returns the minimum number of values of a row. Fields are not nested deeply.
pub(crate) fn values_per_row(field: &Field) -> usize {
    match field.data_type() {
        DataType::Struct(fields) => fields.iter().map(|field| values_per_row(field)).sum::<usize>() + 1,
        _ => 1,
    }
}

/// Returns batches of this schema, of the rows that `next` reads, each with its bytes, until there
/// are none.
pub(crate) fn batches<'a, R: 'a>(
    schema: &Schema,
    mut next: impl FnMut() -> Result<Option<(R, usize)>> + 'a,
    batch_of: impl Fn(&[R]) -> Result<RecordBatch> + 'a,
) -> Box<dyn Iterator<Item = Result<RecordBatch>> + 'a> {
    let most = most_rows(schema);
    let mut some = move || -> Result<Vec<R>> {
        let (mut rows, mut bytes) = (Vec::new(), 0_usize);
        while bytes < BATCH_BYTES && rows.len() < most {
            let Some((row, row_bytes)) = next()? else { break };
            rows.push(row);
            bytes = bytes.saturating_add(row_bytes);
        }
        Ok(rows)
    };
    Box::new(std::iter::from_fn(move || match some() {
        Ok(rows) if rows.is_empty() => None,
        rows => Some(rows.and_then(|rows| batch_of(&rows))),
    }))
}
