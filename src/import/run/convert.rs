//! Conversions in two passes: the [first pass](super::first_pass) completes the plan, and the
//! second pass writes.
//!
//! The second pass fits each batch to the columns of the plan, in slices of bounded memory, and
//! pushes it to a [`SampleTarget`]: one file, or several.

use super::diagnosis::Diagnosis;
use super::first_pass;
use super::planned::{BatchPosition, PlannedSource, fitted, sample_error};
use super::source_metadata::fit_header;
#[cfg(feature = "arrow")]
use super::source_metadata::preserve_fields;
use super::target::{SampleTarget, ShardWriter, divide};
use crate::bytes::le::u64_of;
use crate::error::check_cancelled;
use crate::format::path;
use crate::import::input::OpenInput;
use crate::import::options::{ConvertOptions, Progress};
use crate::import::options::{ShardFiles, ShardPlan};
use crate::import::plan::{self, Column, Plan};
use crate::import::rows::{Batch, ColumnRows, NullElements, RowError};
use crate::import::source::{PassRows, RowSource, check_unchanged, total_rows, with_source_path};
use crate::write::Sink;
use crate::{ColumnBatch, Error, Result, Schema, Summary, Writer};
use std::collections::HashSet;
use std::ops::{ControlFlow, Range};

/// Converts all sources to one file.
pub(in crate::import) fn run<K: Sink>(
    sources: &[&dyn RowSource],
    sink: K,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Summary<K>> {
    in_two_passes(sources, options, progress, |plan, progress| write(sources, plan, sink, options, progress))
}

/// Converts all sources to several files. Each file has at most `shard_bytes` raw bytes, or only
/// one sample. `check` refuses an output that is an input. `complete` is applied to errors, except
/// errors of `files`.
pub(in crate::import) fn run_shards<F: ShardFiles>(
    sources: &[&dyn RowSource],
    files: &mut F,
    check: &dyn Fn(&F::Sink) -> Result<()>,
    shard_bytes: u64,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    complete: &dyn Fn(Error) -> Error,
) -> std::result::Result<(), F::Error> {
    let mut failed = None;
    let converted = in_two_passes(sources, options, progress, |plan, progress| {
        refuse_rounded(plan)?;
        let plan = &renumbered(plan);
        let mut target = ShardWriter::new(files, check, shard_bytes, schema(plan), options.input.writer.clone());
        let copied = copy(sources, plan, &mut target, options, progress).and_then(|()| target.finish());
        failed = target.failed();
        copied
    });
    converted.map_err(|error| failed.unwrap_or_else(|| complete(error).into()))
}

/// Plans the files of [`run_shards`].
pub(in crate::import) fn plan_shards(
    inputs: &[&OpenInput],
    shard_bytes: u64,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<ShardPlan> {
    let sources: Vec<&dyn RowSource> = inputs.iter().map(|input| input.source()).collect();
    in_two_passes(&sources, options, progress, |plan, progress| {
        refuse_rounded(plan)?;
        let plan = &renumbered(plan);
        divide(inputs, &planned(&sources, plan), (schema(plan), shard_bytes), &options.input.writer, progress)
    })
}

/// Refuses columns that are already rounded, for a conversion to several files.
fn refuse_rounded(plan: &Plan) -> Result<()> {
    let Some(column) = plan.columns.iter().find(|column| column.rounded.is_some()) else { return Ok(()) };
    let message = "the values are already rounded, and their recorded rounding errors cannot be split between \
                   files; convert to one file";
    Err(Error::bad_input(message).with_column(&column.schema().name))
}

/// Returns the plan for several files, in which samples are renumbered.
fn renumbered(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    plan.columns.iter_mut().for_each(Column::renumber);
    plan
}

/// Makes the first pass, and then calls `write`, which makes the second pass.
fn in_two_passes<T>(
    sources: &[&dyn RowSource],
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    write: impl FnOnce(&Plan, &mut dyn FnMut(Progress) -> ControlFlow<()>) -> Result<T>,
) -> Result<T> {
    let mut plan = plan::of(sources, options)?;
    let found = first_pass::complete(sources, &mut plan, options.input.null_elements, progress);
    found.and_then(|()| write(&plan, progress)).map_err(|error| {
        let planned_sources = planned(sources, &plan);
        Diagnosis { planned_sources, first_sample: 0, null_elements: options.input.null_elements }.complete(error)
    })
}

/// Converts a source that can be read only once. Dimensions whose extent the type leaves open vary
/// unless the caller declares them, and each nullable struct gets a column for its nulls.
#[cfg(feature = "arrow")]
pub(in crate::import) fn run_once<K: Sink>(
    source: &dyn RowSource,
    sink: K,
    options: &ConvertOptions,
) -> Result<Summary<K>> {
    let mut plan = plan::of(&[source], options)?;
    plan.write_all_structs()?;
    write(&[source], &plan, sink, options, &mut |_| ControlFlow::Continue(()))
}

/// Makes the second pass.
fn write<K: Sink>(
    sources: &[&dyn RowSource],
    plan: &Plan,
    sink: K,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Summary<K>> {
    let schema = schema(plan);
    let rounded: Vec<_> = plan.columns.iter().map(|column| column.rounded.map(|(_, facts)| facts)).collect();
    let writer = Writer::from_rounded(sink, schema, &options.input.writer, &rounded);
    let mut writer = writer.map_err(|error| match (error.column(), sources.first()) {
        // the error is about a column that the format does not allow
        (Some(_), Some(source)) => with_source_path(error, *source),
        _ => error,
    })?;
    copy(sources, plan, &mut writer, options, progress)?;
    writer.finish()
}

/// Returns the schema of the files.
fn schema(plan: &Plan) -> Schema {
    let mut schema = Schema::new(plan.columns.iter().map(Column::schema));
    schema.metadata = plan.metadata.clone();
    #[cfg(feature = "arrow")]
    preserve_fields(&mut schema);
    fit_header(&mut schema);
    schema
}

/// Copies all rows of all sources.
fn copy(
    sources: &[&dyn RowSource],
    plan: &Plan,
    target: &mut impl SampleTarget,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<()> {
    let total = total_rows(sources);
    check_cancelled(progress(Progress::Converting { done: 0, total }))?;
    for planned in planned(sources, plan) {
        let copy = SecondPass { planned, null_elements: options.input.null_elements };
        copy.all(target, &mut |samples| progress(Progress::Converting { done: samples, total }))?;
    }
    check_unchanged(sources)
}

const NO_COLUMN_FOR_NULLS: &str = "found a null struct, but the file has no column for the nulls of this struct; \
                                   convert this input together with the inputs of the file to a new file";

fn planned<'a>(sources: &[&'a dyn RowSource], plan: &'a Plan) -> Vec<PlannedSource<'a>> {
    let sources = sources.iter().zip(&plan.positions);
    sources.map(|(source, positions)| PlannedSource { source: *source, columns: &plan.columns, positions }).collect()
}

/// The second pass over one source.
pub(super) struct SecondPass<'a> {
    pub planned: PlannedSource<'a>,
    pub null_elements: NullElements,
}

impl SecondPass<'_> {
    /// Pushes all rows. Calls `progress` with the number of samples in the target.
    pub(super) fn all(
        &self,
        target: &mut impl SampleTarget,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<()> {
        self.rows(&(0..u64::MAX), target.sample_count(), target, progress)
    }

    /// Pushes these rows, like [`all`](Self::all). `first` is the index of the source's first
    /// sample. Errors use it to number samples.
    pub(super) fn rows(
        &self,
        rows: &Range<u64>,
        first: u64,
        target: &mut impl SampleTarget,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let source = self.planned.source;
        let (mut row, from) = match rows.start {
            0 => (0, PassRows::All),
            start if source.can_skip_rows() => (start, PassRows::From(start)),
            _ => (0, PassRows::All),
        };
        for batch in source.batches(&self.planned.request(), from).map_err(|error| with_source_path(error, source))? {
            let copied = batch.and_then(|batch| {
                let in_batch = |end: u64| usize::try_from(end.saturating_sub(row)).unwrap_or(usize::MAX);
                let request = in_batch(rows.start)..in_batch(rows.end).min(batch.row_count);
                let position = BatchPosition { batch: first.saturating_add(row), source: first };
                row = row.saturating_add(u64_of(batch.row_count));
                self.batch(batch, &request, position, target, progress)
            });
            copied.map_err(|error| with_source_path(error, source))?;
            if row >= rows.end {
                break;
            }
        }
        Ok(())
    }

    /// Pushes some rows of a batch.
    fn batch<T: SampleTarget>(
        &self,
        mut batch: Batch<ColumnRows>,
        request: &Range<usize>,
        position: BatchPosition,
        target: &mut T,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<()> {
        self.check_structs(&batch, position, target.schema().columns.len())?;
        let columns = self.planned.columns;
        let bytes = if T::NEEDS_ROW_BYTES { batch.row_bytes(&target.schema().columns, columns) } else { Vec::new() };
        for slice in batch.slices(&target.schema().columns) {
            let mut rows = slice.start.max(request.start)..slice.end.min(request.end);
            while !rows.is_empty() {
                let count = target.take(rows.len(), bytes.get(rows.clone()).unwrap_or(&[]))?;
                let end = rows.start.saturating_add(count);
                let columns = self.columns(&mut batch, &(rows.start..end), position, target.schema())?;
                let batches: Vec<ColumnBatch> = columns.iter().map(ColumnRows::as_batch).collect();
                let casts: Vec<_> = columns.iter().map(|column| column.cast).collect();
                target.push_batch(&batches, &casts)?;
                check_cancelled(progress(target.sample_count()))?;
                rows.start = end;
            }
        }
        Ok(())
    }

    /// Refuses null structs if the file has no column for their nulls. In the plan, the columns for
    /// such nulls follow the columns of the file.
    fn check_structs(&self, batch: &Batch<ColumnRows>, position: BatchPosition, column_count: usize) -> Result<()> {
        let columns = self.planned.columns;
        for (column, samples) in columns.iter().zip(&batch.columns).skip(column_count) {
            let error = |problem: &RowError| sample_error(problem, position, column);
            let samples = samples.as_ref().map_err(error)?;
            let outer: HashSet<&str> = column.path().into_iter().flat_map(path::enclosing).collect();
            let is_outer =
                |other: &Column| other.struct_nulls.is_some() && other.path().is_some_and(|path| outer.contains(path));
            let others = columns.iter().zip(&batch.columns).filter(|(other, _)| is_outer(other));
            let enclosing: Vec<&ColumnRows> = others.filter_map(|(_, samples)| samples.as_ref().ok()).collect();
            if let Some(row) = samples.first_null_struct(&enclosing) {
                return Err(error(&RowError::at(row, NO_COLUMN_FOR_NULLS)));
            }
        }
        Ok(())
    }

    /// Returns rows in the form of the file's columns. If the rows are the whole batch, they are
    /// moved out of it.
    fn columns(
        &self,
        batch: &mut Batch<ColumnRows>,
        rows: &Range<usize>,
        position: BatchPosition,
        schema: &Schema,
    ) -> Result<Vec<ColumnRows>> {
        let is_whole = *rows == (0..batch.row_count);
        let columns = self.planned.columns.iter().zip(&schema.columns).zip(&mut batch.columns);
        let fitted = columns.map(|((column, written), samples)| {
            let error = |problem: RowError| sample_error(&problem, position, column);
            match samples {
                Err(problem) => Err(error(problem.clone())),
                Ok(samples) if is_whole => {
                    let taken = std::mem::replace(samples, ColumnRows::structs(0, Vec::new(), None));
                    taken.fit(column, &written.shape, self.null_elements).map_err(error)
                }
                Ok(samples) => fitted(samples, rows, column, &written.shape, self.null_elements).map_err(error),
            }
        });
        fitted.collect()
    }
}
