//! A conversion: a [first pass](super::scan), and the second, which writes.

use super::assemble::PushableColumn;
use super::diagnosis::{DiagnosedSource, Diagnosis};
use super::fill::fill;
use super::kept_schema::keep_needed;
use super::sample_error::{Origin, sample_error, total_rows};
use super::scan;
use super::slices::slices;
use crate::error::go_on;
use crate::format::path;
use crate::import::batch::{InputBatch, Samples};
use crate::import::options::{ConvertOptions, NullElements, Progress};
use crate::import::plan::{self, Column, Plan};
use crate::import::problem::Problem;
use crate::import::source::{BatchSource, check_unchanged, located};
use crate::import::unfold::unfold;
use crate::write::Sink;
use crate::{ColumnBatch, Result, Schema, Summary, Writer};
use std::collections::HashSet;
use std::ops::{ControlFlow, Range};

/// Converts all sources to one file.
pub(in crate::import) fn run<K: Sink>(
    sources: &[&dyn BatchSource],
    sink: K,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Summary<K>> {
    let mut plan = plan::of(sources, options)?;
    scan::find(sources, &mut plan, options.null_elements, progress)
        .and_then(|()| write(sources, &plan, sink, options, progress))
        .map_err(|error| {
            let parts = sources.iter().zip(&plan.positions);
            let parts = parts
                .map(|(source, positions)| DiagnosedSource { source: *source, columns: &plan.columns, positions })
                .collect();
            Diagnosis { parts, first_sample: 0, null_elements: options.null_elements }.complete(error)
        })
}

/// Converts a source that can be read only once: open dimensions vary unless the caller knows
/// better, and structs that may be null have a column for nulls.
#[cfg(feature = "arrow")]
pub(in crate::import) fn run_once<K: Sink>(
    source: &dyn BatchSource,
    sink: K,
    options: &ConvertOptions,
) -> Result<Summary<K>> {
    let mut plan = plan::of(&[source], options)?;
    plan.write_all_structs()?;
    write(&[source], &plan, sink, options, &mut |_| ControlFlow::Continue(()))
}

/// Makes the second pass.
fn write<K: Sink>(
    sources: &[&dyn BatchSource],
    plan: &Plan,
    sink: K,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Summary<K>> {
    let mut schema = Schema::new(plan.columns.iter().map(Column::schema));
    schema.metadata = plan.metadata.clone();
    keep_needed(&mut schema, sources.iter().any(|source| source.is_native()));
    let rounded: Vec<_> = plan.columns.iter().map(|column| column.rounded.map(|(_, facts)| facts)).collect();
    let writer = Writer::of_rounded(sink, schema, &options.writer, &rounded);
    let mut writer = writer.map_err(|error| match (error.column(), sources.first()) {
        // a column that the format does not allow
        (Some(_), Some(source)) => located(error, *source),
        _ => error,
    })?;
    let total = total_rows(sources);
    go_on(progress(Progress::Converting { done: 0, total }))?;
    for (source, positions) in sources.iter().zip(&plan.positions) {
        let copy = Copy { positions, columns: &plan.columns, null_elements: options.null_elements };
        copy.all(*source, &mut writer, &mut |samples| progress(Progress::Converting { done: samples, total }))?;
    }
    check_unchanged(sources)?;
    writer.finish()
}

const NO_COLUMN_FOR_NULLS: &str = "a null struct, and the file has no column for the nulls of this struct; convert \
                                   the inputs of the file and this one to a new file";

/// The second pass over one source.
pub(super) struct Copy<'a> {
    /// The position of each column in the source.
    pub positions: &'a [usize],
    /// The columns of the file, and then the nulls of structs that it has no column for.
    pub columns: &'a [Column],
    pub null_elements: NullElements,
}

impl Copy<'_> {
    /// Pushes all rows. Calls `progress` with the number of samples in the file.
    pub(super) fn all<K: Sink>(
        &self,
        source: &dyn BatchSource,
        writer: &mut Writer<K>,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let first = writer.sample_count();
        let batches = source.batches(self.positions).map_err(|error| located(error, source))?;
        for batch in batches {
            let copied = batch.and_then(|batch| {
                self.batch(unfold(batch, self.columns.iter().map(Column::form)), first, writer, progress)
            });
            copied.map_err(|error| located(error, source))?;
        }
        Ok(())
    }

    /// Pushes a batch of a source that begins with sample `first`.
    fn batch<K: Sink>(
        &self,
        batch: InputBatch,
        first: u64,
        writer: &mut Writer<K>,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let origin = Origin { batch: writer.sample_count(), source: first };
        self.check_structs(&batch, origin, writer.schema().columns.len())?;
        for rows in slices(&batch, &writer.schema().columns) {
            let columns = self.columns(&batch, &rows, origin, writer.schema())?;
            let batches: Vec<ColumnBatch> = columns.iter().map(PushableColumn::as_batch).collect();
            writer.push_batch(&batches)?;
            go_on(progress(writer.sample_count()))?;
        }
        Ok(())
    }

    /// Refuses null structs that the file has no column for: those behind its columns.
    fn check_structs(&self, batch: &InputBatch, origin: Origin, column_count: usize) -> Result<()> {
        for (column, samples) in self.columns.iter().zip(&batch.columns).skip(column_count) {
            let error = |problem: &Problem| sample_error(problem, origin, column);
            let samples = samples.as_ref().map_err(error)?;
            let outer: HashSet<&str> = column.path().into_iter().flat_map(path::around).collect();
            let is_outer =
                |other: &Column| other.struct_nulls.is_some() && other.path().is_some_and(|path| outer.contains(path));
            let others = self.columns.iter().zip(&batch.columns).filter(|(other, _)| is_outer(other));
            let around: Vec<&Samples> = others.filter_map(|(_, samples)| samples.as_ref().ok()).collect();
            if let Some(row) = samples.first_null_struct(&around) {
                return Err(error(&Problem::at(row, NO_COLUMN_FOR_NULLS)));
            }
        }
        Ok(())
    }

    fn columns(
        &self,
        batch: &InputBatch,
        rows: &Range<usize>,
        origin: Origin,
        schema: &Schema,
    ) -> Result<Vec<PushableColumn>> {
        let columns = self.columns.iter().zip(&schema.columns).zip(&batch.columns);
        let filled = columns.map(|((column, written), samples)| {
            let error = |problem: &Problem| sample_error(problem, origin, column);
            let samples = samples.as_ref().map_err(error)?;
            fill(samples, rows.clone(), column, &written.shape, self.null_elements).map_err(|problem| error(&problem))
        });
        filled.collect()
    }
}
