//! A source with its planned columns, and errors about its samples.

use crate::Error;
use crate::Shape;
use crate::import::plan::Column;
use crate::import::plan::input_column::ColumnRequest;
use crate::import::rows::{ColumnRows, NullElements, RowError};
use crate::import::source::RowSource;
use std::ops::Range;

/// A source, and the columns that are made from it.
#[derive(Clone, Copy)]
pub(super) struct PlannedSource<'a> {
    pub source: &'a dyn RowSource,
    /// The columns of the file, followed by the nulls of structs that the file does not store.
    pub columns: &'a [Column],
    /// The position of each column in the source.
    pub positions: &'a [usize],
}

impl PlannedSource<'_> {
    /// Returns the requests of a pass over these columns.
    pub(super) fn request(&self) -> Vec<ColumnRequest> {
        self.columns.iter().zip(self.positions).map(|(column, &position)| column.request(position)).collect()
    }
}

/// Converts a range of rows to the type and shape of a column of the file.
pub(super) fn fitted(
    samples: &ColumnRows,
    rows: &Range<usize>,
    column: &Column,
    shape: &Shape,
    null_elements: NullElements,
) -> std::result::Result<ColumnRows, RowError> {
    let fitted = samples.rows(rows)?.fit(column, shape, null_elements);
    // the error counts rows from the start of the range, but callers count from the start of the
    // batch
    fitted.map_err(|problem| RowError { row: problem.row.map(|row| row.saturating_add(rows.start)), ..problem })
}

/// The position of a batch.
#[derive(Clone, Copy)]
pub(super) struct BatchPosition {
    /// The index, in the output, of the first sample of the batch.
    pub batch: u64,
    /// The index, in the output, of the first sample of the source.
    pub source: u64,
}

/// Turns a problem with a row of a batch into an error that has the index of the sample.
pub(super) fn sample_error(problem: &RowError, position: BatchPosition, column: &Column) -> Error {
    let sample = problem.row.and_then(|row| position.batch.checked_add(u64::try_from(row).ok()?));
    let mut message = problem.message.clone();
    if let Some(row) = sample.and_then(|sample| sample.checked_sub(position.source)).filter(|_| position.source > 0) {
        message = format!("row {row} of this input: {message}");
    }
    let error = Error::new(problem.kind, message).with_column(&column.name).with_advice(problem.advice.iter().cloned());
    match sample {
        Some(sample) => error.with_samples(sample..sample.saturating_add(1)),
        None => error,
    }
}
