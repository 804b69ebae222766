//! Collects all columns that cannot be stored into one error.
//!
//! A conversion ends at the first sample that cannot be stored. Its error names only one column,
//! and the next attempt could fail at another column. So a third pass examines the samples around
//! the first error, and adds errors about other columns.

use super::planned::{BatchPosition, PlannedSource, fitted, sample_error};
use crate::bytes::le::u64_of;
use crate::error::display_path;
use crate::import::plan::Column;
use crate::import::rows::{Batch, ColumnRows, NullElements};
use crate::import::source::PassRows;
use crate::{ColumnSchema, Error, ErrorKind, Result};
use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};

/// The minimum number of samples to examine after the first error. If more samples than this
/// precede the error, as many samples are examined after it as precede it.
const MIN_SAMPLES: u64 = 65_536;

/// A failed conversion.
pub(super) struct Diagnosis<'a> {
    pub planned_sources: Vec<PlannedSource<'a>>,
    /// The index, in the output, of the first converted sample.
    pub first_sample: u64,
    pub null_elements: NullElements,
}

impl Diagnosis<'_> {
    /// Adds errors about other columns to an error about a sample of one column.
    pub(super) fn complete(&self, first: Error) -> Error {
        let (Some(column), Some(samples), ErrorKind::BadInput) = (first.column(), first.samples(), first.kind()) else {
            return first;
        };
        let before = samples.start.saturating_sub(self.first_sample);
        let mut state = DiagnosisState {
            last_sample: samples.start.saturating_add(before.max(MIN_SAMPLES)),
            sample: self.first_sample,
            seen: BTreeSet::from([column.to_owned()]),
            found: Vec::new(),
        };
        for planned in &self.planned_sources {
            // a source that cannot be read yields no further errors
            if !matches!(self.examine(planned, &mut state), Ok(ControlFlow::Continue(()))) {
                break;
            }
        }
        if state.found.is_empty() { first } else { combine(first, state.found) }
    }

    fn examine(&self, planned: &PlannedSource, state: &mut DiagnosisState) -> Result<ControlFlow<()>> {
        let source = state.sample;
        let schemas: Vec<ColumnSchema> = planned.columns.iter().map(Column::schema).collect();
        for batch in planned.source.batches(&planned.request(), PassRows::All)? {
            let batch = batch?;
            for rows in batch.slices(&schemas) {
                self.examine_rows(
                    &batch,
                    &rows,
                    (planned, &schemas),
                    BatchPosition { batch: state.sample, source },
                    state,
                );
            }
            state.sample = state.sample.saturating_add(u64_of(batch.row_count));
            if state.sample > state.last_sample {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn examine_rows(
        &self,
        batch: &Batch<ColumnRows>,
        rows: &Range<usize>,
        (planned, schemas): (&PlannedSource, &[ColumnSchema]),
        position: BatchPosition,
        state: &mut DiagnosisState,
    ) {
        for ((column, schema), samples) in planned.columns.iter().zip(schemas).zip(&batch.columns) {
            if state.seen.contains(&column.name) {
                continue;
            }
            let fitted = match samples {
                Ok(samples) => fitted(samples, rows, column, &schema.shape, self.null_elements),
                Err(problem) => Err(problem.clone()),
            };
            if let Err(problem) = fitted {
                let error = sample_error(&problem, position, column);
                state.seen.insert(column.name.clone());
                state.found.push(match planned.source.path() {
                    Some(path) => error.with_path(path),
                    None => error,
                });
            }
        }
    }
}

/// The progress of the examination, and the errors that were found.
struct DiagnosisState {
    sample: u64,
    last_sample: u64,
    /// The columns for which an error was found.
    seen: BTreeSet<String>,
    found: Vec<Error>,
}

/// Combines errors about different columns into one.
fn combine(first: Error, others: Vec<Error>) -> Error {
    const MAX_LISTED: usize = 50;
    let count = others.len() + 1;
    let path = first.path().map(ToOwned::to_owned);
    let errors: Vec<Error> = std::iter::once(first).chain(others).collect();
    let text = |error: &Error| {
        let path_prefix = match (error.path(), &path) {
            (Some(own), Some(path)) if own != path => format!("{}: ", display_path(own)),
            _ => String::new(),
        };
        let sample = error.samples().map_or(String::new(), |samples| format!("sample {}: ", samples.start));
        format!("{path_prefix}column {:?}: {sample}{}", error.column().unwrap_or(""), error.message())
    };
    let mut list: Vec<String> = errors.iter().take(MAX_LISTED).map(text).collect();
    if count > MAX_LISTED {
        list.push("...".to_owned());
    }
    let advice: Vec<_> = errors.iter().flat_map(|error| error.advice().to_vec()).collect();
    let error = Error::bad_input(format!("{count} columns cannot be stored: {}", list.join("; ")));
    let error = error.with_advice(advice);
    match &path {
        Some(path) => error.with_path(path),
        None => error,
    }
}
