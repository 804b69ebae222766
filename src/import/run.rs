//! A conversion: a [first pass](super::scan), and the second, which writes.

use super::assemble::Piece;
use super::column::{convert, locate};
use super::diagnosis::{Diagnosis, Part};
use super::plan::{self, Column, Plan};
use super::problem::Problem;
use super::slices::slices;
use super::source::{Source, check_unchanged, guard, located};
use super::{ConvertOptions, NullElements, Progress, scan};
use crate::error::go_on;
use crate::{ColumnSchema, Error, Result, Schema, Sink, Summary, Writer};
use arrow_array::RecordBatch;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Converts all sources to one file.
pub(super) fn run<K: Sink>(
    sources: &[&dyn Source],
    sink: K,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Summary<K>> {
    let mut plan = plan::of(sources, options)?;
    scan::find(sources, &mut plan, progress).and_then(|()| write(sources, &plan, sink, options, progress)).map_err(
        |error| {
            let parts = sources.iter().zip(&plan.paths);
            let parts = parts.map(|(source, paths)| Part { source: *source, columns: &plan.columns, paths }).collect();
            Diagnosis { parts, first_sample: 0, null_elements: options.null_elements }.complete(error)
        },
    )
}

/// Converts a source that can be read only once: list dimensions vary unless the caller knows better.
pub(super) fn run_once<K: Sink>(source: &dyn Source, sink: K, options: &ConvertOptions) -> Result<Summary<K>> {
    let plan = plan::of(&[source], options)?;
    write(&[source], &plan, sink, options, &mut |_| ControlFlow::Continue(()))
}

pub(super) fn total_rows(sources: &[&dyn Source]) -> Option<u64> {
    sources.iter().try_fold(0_u64, |total, source| total.checked_add(source.row_count()?))
}

/// The fields of the schema that some columns are in, ascending.
pub(super) fn fields<'a>(paths: impl Iterator<Item = &'a plan::FieldPath>) -> Vec<usize> {
    let fields: BTreeSet<usize> = paths.filter_map(|path| path.first().copied()).collect();
    fields.into_iter().collect()
}

pub(super) fn count(batch: &RecordBatch) -> u64 {
    u64::try_from(batch.num_rows()).unwrap_or(u64::MAX) // a usize has at most 64 bits
}

/// Where a slice stands: the number of its first sample, and that of the source it is from.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub slice: u64,
    pub source: u64,
}

/// An error about a row of a slice.
pub(super) fn error(problem: Problem, place: Place, column: &Column) -> Error {
    let sample = problem.row.and_then(|row| place.slice.checked_add(u64::try_from(row).ok()?));
    let mut message = problem.message;
    if let Some(row) = sample.and_then(|sample| sample.checked_sub(place.source)).filter(|_| place.source > 0) {
        message = format!("row {row} of this input: {message}");
    }
    let error = Error::bad_input(message).with_column(&column.name).with_advice(problem.advice);
    match sample {
        Some(sample) => error.with_samples(sample..sample.saturating_add(1)),
        None => error,
    }
}

/// The second pass.
fn write<K: Sink>(
    sources: &[&dyn Source],
    plan: &Plan,
    sink: K,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Summary<K>> {
    let schema = schema(plan);
    let mut writer =
        Writer::new(sink, schema, &options.writer).map_err(|error| match (error.column(), sources.first()) {
            (Some(_), Some(source)) => located(error, *source), // a column that the format does not allow
            _ => error,
        })?;
    let total = total_rows(sources);
    go_on(progress(Progress::Converting(0, total)))?;
    for (source, paths) in sources.iter().zip(&plan.paths) {
        let copy = Copy { paths, columns: &plan.columns, null_elements: options.null_elements };
        copy.all(*source, &mut writer, &mut |samples| progress(Progress::Converting(samples, total)))?;
    }
    check_unchanged(sources)?;
    writer.finish()
}

fn schema(plan: &Plan) -> Schema {
    let column = |column: &Column| ColumnSchema {
        nullable: column.nullable,
        metadata: column.metadata.clone(),
        ..match column.cast {
            Some(target) => ColumnSchema::tensor(&column.name, target, column.shape()).cast_from(column.kind.dtype),
            None => ColumnSchema::tensor(&column.name, column.kind.dtype, column.shape()),
        }
    };
    let mut schema = Schema::new(plan.columns.iter().map(column));
    schema.metadata = plan.metadata.clone();
    schema
}

/// The second pass over one source.
pub(super) struct Copy<'a> {
    /// Where the source has the columns of the file.
    pub paths: &'a [plan::FieldPath],
    pub columns: &'a [Column],
    pub null_elements: NullElements,
}

impl Copy<'_> {
    /// Pushes all rows; `progress` is given the number of samples in the file.
    pub(super) fn all<K: Sink>(
        &self,
        source: &dyn Source,
        writer: &mut Writer<K>,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let (fields, first) = (fields(self.paths.iter()), writer.sample_count());
        let batches = source.batches(&fields).map_err(|error| located(error, source))?;
        for batch in batches {
            let copied = batch.and_then(|batch| self.batch(&batch, &fields, first, writer, progress));
            copied.map_err(|error| located(error, source))?;
        }
        Ok(())
    }

    /// `first` is the sample that the source begins with.
    fn batch<K: Sink>(
        &self,
        batch: &RecordBatch,
        fields: &[usize],
        first: u64,
        writer: &mut Writer<K>,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<()> {
        for slice in slices(batch, &writer.schema().columns) {
            let place = Place { slice: writer.sample_count(), source: first };
            let pieces = self.pieces(&slice, fields, place, writer.schema())?;
            let batches: Vec<_> = pieces.iter().map(Piece::as_batch).collect();
            writer.push_batch(&batches)?;
            go_on(progress(writer.sample_count()))?;
        }
        Ok(())
    }

    fn pieces(&self, batch: &RecordBatch, fields: &[usize], place: Place, schema: &Schema) -> Result<Vec<Piece>> {
        let mut pieces = Vec::with_capacity(self.paths.len());
        for ((column, written), path) in self.columns.iter().zip(&schema.columns).zip(self.paths) {
            let piece = guard(|| {
                locate(batch, fields, path)
                    .and_then(|located| convert(&located, column, &written.shape, self.null_elements))
                    .map_err(|problem| error(problem, place, column))
            });
            pieces.push(piece?);
        }
        Ok(pieces)
    }
}
