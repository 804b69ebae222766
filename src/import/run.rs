//! The two passes: finding shapes, then writing.

use super::assemble::Piece;
use super::column::{Located, convert, locate};
use super::plan::{self, Column, Plan};
use super::shape::ShapeFinder;
use super::slices::slices;
use super::source::{Source, check_unchanged, guard, located};
use super::walk::{Problem, walk};
use super::{ConvertOptions, NullElements, Progress};
use crate::error::go_on;
use crate::{ColumnSchema, Error, Result, Schema, Shape, Sink, Summary, Writer};
use arrow::record_batch::RecordBatch;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Converts all sources to one file.
pub(super) fn run<K: Sink>(
    sources: &[&dyn Source],
    sink: K,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Summary<K>> {
    let plan = plan::of(sources, options)?;
    let shapes = find_shapes(sources, &plan, progress)?;
    write(sources, &plan, shapes, sink, options, progress)
}

/// Converts a source that can be read only once: list dimensions vary unless the caller knows better.
pub(super) fn run_once<K: Sink>(source: &dyn Source, sink: K, options: &ConvertOptions) -> Result<Summary<K>> {
    let plan = plan::of(&[source], options)?;
    let shapes = finders(&plan).map(|(column, finder)| known_or(column, &finder)).collect();
    write(&[source], &plan, shapes, sink, options, &mut |_| ControlFlow::Continue(()))
}

fn finders(plan: &Plan) -> impl Iterator<Item = (&Column, ShapeFinder)> {
    plan.columns.iter().map(|column| (column, ShapeFinder::new(&column.kind)))
}

/// The shape the caller gave, or the one found.
fn known_or(column: &Column, finder: &ShapeFinder) -> Shape {
    match &column.shape {
        Some(shape) => shape.clone(),
        None if column.kind.dtype.is_string() => Shape::ragged(),
        None => finder.shape(&column.kind),
    }
}

pub(super) fn total_rows(sources: &[&dyn Source]) -> Option<u64> {
    sources.iter().try_fold(0_u64, |total, source| total.checked_add(source.row_count()?))
}

/// The first pass: reads the columns whose shape the type does not tell, and nothing else.
fn find_shapes(
    sources: &[&dyn Source],
    plan: &Plan,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Vec<Shape>> {
    let mut finders: Vec<(&Column, ShapeFinder)> = finders(plan).collect();
    let total = total_rows(sources);
    let mut rows = 0;
    for (source, paths) in sources.iter().zip(&plan.paths) {
        let open = |(_, (column, finder)): &(usize, &(&Column, ShapeFinder))| {
            column.shape.is_none() && column.kind.open_count() > 0 && !finder.is_settled()
        };
        let wanted: Vec<usize> = finders.iter().enumerate().filter(open).map(|(i, _)| i).collect();
        if wanted.is_empty() {
            break;
        }
        let scan = Scan { source: *source, paths, wanted: &wanted };
        scan.run(&mut finders, &mut rows, &mut |rows| progress(Progress::Scanning(rows, total)))
            .map_err(|error| located(error, *source))?;
    }
    Ok(finders.iter().map(|(column, finder)| known_or(column, finder)).collect())
}

/// The first pass over one source.
struct Scan<'a> {
    source: &'a dyn Source,
    paths: &'a [plan::FieldPath],
    /// Numbers of the columns to look at.
    wanted: &'a [usize],
}

impl Scan<'_> {
    fn run(
        &self,
        finders: &mut [(&Column, ShapeFinder)],
        rows: &mut u64,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let fields = fields(self.wanted.iter().filter_map(|&i| self.paths.get(i)));
        let source = *rows;
        for batch in self.source.batches(&fields)? {
            let batch = batch?;
            for slice in slices(&batch, &[]) {
                for &i in self.wanted {
                    let (Some((column, finder)), Some(path)) = (finders.get_mut(i), self.paths.get(i)) else {
                        continue;
                    };
                    let place = Place { slice: *rows, source };
                    let observed = guard(|| {
                        observe(&slice, &fields, path, column, finder).map_err(|problem| error(problem, place, column))
                    });
                    observed?;
                }
                *rows += count(&slice);
            }
            go_on(progress(*rows))?;
            if self.wanted.iter().all(|&i| finders.get(i).is_none_or(|(_, finder)| finder.is_settled())) {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn observe(
    batch: &RecordBatch,
    fields: &[usize],
    path: &[usize],
    column: &Column,
    finder: &mut ShapeFinder,
) -> std::result::Result<(), Problem> {
    let Located { array, nulls } = locate(batch, fields, path)?;
    finder.observe(&walk(&array, nulls.as_ref(), &column.kind)?);
    Ok(())
}

/// The fields of the schema that some columns are in, ascending.
fn fields<'a>(paths: impl Iterator<Item = &'a plan::FieldPath>) -> Vec<usize> {
    let fields: BTreeSet<usize> = paths.filter_map(|path| path.first().copied()).collect();
    fields.into_iter().collect()
}

fn count(batch: &RecordBatch) -> u64 {
    u64::try_from(batch.num_rows()).unwrap_or(u64::MAX) // a usize has at most 64 bits
}

/// Where a slice stands: the number of its first sample, and that of the source it is from.
#[derive(Clone, Copy)]
struct Place {
    slice: u64,
    source: u64,
}

/// An error about a row of a slice.
fn error(problem: Problem, place: Place, column: &Column) -> Error {
    let sample = problem.row.and_then(|row| place.slice.checked_add(u64::try_from(row).ok()?));
    let mut message = problem.message;
    if let Some(row) = sample.and_then(|sample| sample.checked_sub(place.source)).filter(|_| place.source > 0) {
        message = format!("row {row} of this input: {message}");
    }
    let error = Error::bad_input(message).with_column(&column.name);
    match sample {
        Some(sample) => error.with_samples(sample..sample.saturating_add(1)),
        None => error,
    }
}

/// The second pass.
fn write<K: Sink>(
    sources: &[&dyn Source],
    plan: &Plan,
    shapes: Vec<Shape>,
    sink: K,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Summary<K>> {
    let schema = schema(plan, shapes);
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

fn schema(plan: &Plan, shapes: Vec<Shape>) -> Schema {
    let column = |(column, shape): (&Column, Shape)| ColumnSchema {
        nullable: column.nullable,
        metadata: column.metadata.clone(),
        ..match column.cast {
            Some(target) => ColumnSchema::tensor(&column.name, target, shape).cast_from(column.kind.dtype),
            None => ColumnSchema::tensor(&column.name, column.kind.dtype, shape),
        }
    };
    let mut schema = Schema::new(plan.columns.iter().zip(shapes).map(column));
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
