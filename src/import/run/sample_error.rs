//! Errors about one sample.

use crate::Error;
use crate::import::plan::Column;
use crate::import::rows::Problem;

/// The position of a batch.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    /// The number of its first sample in the file that is made.
    pub batch: u64,
    /// The number of the first sample of its source.
    pub source: u64,
}

/// Returns an error about a row of a batch.
pub(super) fn sample_error(problem: &Problem, origin: Origin, column: &Column) -> Error {
    let sample = problem.row.and_then(|row| origin.batch.checked_add(u64::try_from(row).ok()?));
    let mut message = problem.message.clone();
    if let Some(row) = sample.and_then(|sample| sample.checked_sub(origin.source)).filter(|_| origin.source > 0) {
        message = format!("row {row} of this input: {message}");
    }
    let error = Error::bad_input(message).with_column(&column.name).with_advice(problem.advice.iter().cloned());
    match sample {
        Some(sample) => error.with_samples(sample..sample.saturating_add(1)),
        None => error,
    }
}
