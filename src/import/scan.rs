//! The first pass: finds what only the data tells, shapes of lists and units of INT96 timestamps.

use super::Progress;
use super::column::{Located, locate};
use super::found;
use super::int96::UnitFinder;
use super::plan::{Column, FieldPath, Plan};
use super::problem::Problem;
use super::run::{Place, count, error, fields, total_rows};
use super::shape::ShapeFinder;
use super::slices::slices;
use super::source::{Source, guard, located};
use super::walk::walk;
use crate::Result;
use crate::error::go_on;
use arrow_array::RecordBatch;
use std::ops::ControlFlow;

/// What is looked for in a column.
struct Finder {
    /// Unless the type or the caller tells.
    shape: Option<ShapeFinder>,
    unit: Option<UnitFinder>,
}

impl Finder {
    fn new(column: &Column) -> Self {
        let is_open = column.shape.is_none() && column.kind.open_count() > 0;
        Self { shape: is_open.then(|| ShapeFinder::new(&column.kind)), unit: UnitFinder::new(column) }
    }

    /// Whether no sample can change what is known any more.
    fn is_settled(&self) -> bool {
        self.unit.is_none() && self.shape.as_ref().is_none_or(ShapeFinder::is_settled)
    }

    /// Tells the column what was found.
    fn settle(&self, column: &mut Column) -> std::result::Result<(), (u64, Problem)> {
        if let Some(shape) = &self.shape {
            column.shape = Some(shape.shape(&column.kind));
            let found = shape.found(&column.kind).map(|found| (found::KEY.to_owned(), found.to_string()));
            column.metadata.extend(found);
        }
        self.unit.as_ref().map_or(Ok(()), |unit| unit.settle(column))
    }
}

/// Reads the columns about which the type does not tell all, and nothing else, and completes the
/// plan.
pub(super) fn find(
    sources: &[&dyn Source],
    plan: &mut Plan,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<()> {
    let mut finders: Vec<Finder> = plan.columns.iter().map(Finder::new).collect();
    let total = total_rows(sources);
    let mut rows = 0;
    let mut starts: Vec<(u64, &dyn Source)> = Vec::new();
    for (source, paths) in sources.iter().zip(&plan.paths) {
        starts.push((rows, *source));
        let wanted = |(_, finder): &(usize, &Finder)| !finder.is_settled();
        let wanted: Vec<usize> = finders.iter().enumerate().filter(wanted).map(|(i, _)| i).collect();
        if wanted.is_empty() {
            break;
        }
        let scan = Scan { source: *source, columns: &plan.columns, paths, wanted: &wanted };
        scan.run(&mut finders, &mut rows, &mut |rows| progress(Progress::Scanning(rows, total)))
            .map_err(|error| located(error, *source))?;
    }
    for (column, finder) in plan.columns.iter_mut().zip(&finders) {
        finder.settle(column).map_err(|(sample, problem)| {
            let (source, own) = starts
                .iter()
                .rfind(|(start, _)| *start <= sample)
                .map_or((0, None), |(start, source)| (*start, Some(*source)));
            let error = error(Problem { row: Some(0), ..problem }, Place { slice: sample, source }, column);
            match own {
                Some(source) => located(error, source),
                None => error,
            }
        })?;
    }
    Ok(())
}

/// The first pass over one source.
struct Scan<'a> {
    source: &'a dyn Source,
    columns: &'a [Column],
    paths: &'a [FieldPath],
    /// Numbers of the columns to look at.
    wanted: &'a [usize],
}

impl Scan<'_> {
    fn run(
        &self,
        finders: &mut [Finder],
        rows: &mut u64,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let fields = fields(self.wanted.iter().filter_map(|&i| self.paths.get(i)));
        let source = *rows;
        for batch in self.source.batches(&fields)? {
            let batch = batch?;
            for slice in slices(&batch, &[]) {
                let place = Place { slice: *rows, source };
                self.slice(&slice, &fields, place, finders)?;
                *rows += count(&slice);
            }
            go_on(progress(*rows))?;
            if self.wanted.iter().all(|&i| finders.get(i).is_none_or(Finder::is_settled)) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn slice(&self, slice: &RecordBatch, fields: &[usize], place: Place, finders: &mut [Finder]) -> Result<()> {
        for &i in self.wanted {
            let (Some(column), Some(finder), Some(path)) = (self.columns.get(i), finders.get_mut(i), self.paths.get(i))
            else {
                continue;
            };
            guard(|| {
                observe(slice, fields, path, column, finder, place.slice)
                    .map_err(|problem| error(problem, place, column))
            })?;
        }
        Ok(())
    }
}

/// Looks at a column of a batch whose first sample is the `first` of all.
fn observe(
    batch: &RecordBatch,
    fields: &[usize],
    path: &[usize],
    column: &Column,
    finder: &mut Finder,
    first: u64,
) -> std::result::Result<(), Problem> {
    let Located { array, nulls } = locate(batch, fields, path)?;
    let samples = walk(&array, nulls.as_ref(), &column.kind)?;
    if let Some(shape) = &mut finder.shape {
        shape.observe(&samples, first);
    }
    if let Some(unit) = &mut finder.unit {
        unit.observe(&samples, first);
    }
    Ok(())
}
