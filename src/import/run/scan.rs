//! The first pass: finds what only the data tells, which lists are tensors, their shapes, units of
//! INT96 timestamps, and whether structs are null.

use super::sample_error::{Origin, sample_error, total_rows};
use crate::Result;
use crate::arrow_type::FOUND_SHAPE;
use crate::error::go_on;
use crate::import::batch::{InputBatch, Samples};
use crate::import::options::{NullElements, Progress};
use crate::import::plan::{Column, Plan, ShapeFinder, UnfoldFinder, UnitFinder};
use crate::import::problem::Problem;
use crate::import::source::{BatchSource, located};
use crate::le::u64_of;
use std::ops::ControlFlow;

/// The unknowns of a column.
struct Finder {
    /// `None` if the type or the caller states it.
    shape: Option<ShapeFinder>,
    /// `None` if all samples are tensors by their type, or have to be.
    unfold: Option<UnfoldFinder>,
    unit: Option<UnitFinder>,
    /// Whether a null struct was found, if the column has the nulls of a struct.
    null_structs: Option<bool>,
}

impl Finder {
    fn new(column: &Column, null_elements: NullElements) -> Self {
        let kind = Some(&column.kind).filter(|_| column.shape.is_none());
        Self {
            shape: kind.filter(|kind| kind.open_count() > 0).map(ShapeFinder::new),
            unfold: kind.and_then(|kind| UnfoldFinder::new(kind, null_elements)),
            unit: UnitFinder::new(column),
            null_structs: column.may_be_written().then_some(false),
        }
    }

    /// Returns whether no sample can change what is known any more. The samples may have nulls
    /// inside, or be null structs, or not.
    fn is_settled(&self, may_have_nulls: bool) -> bool {
        let has_shape = self.shape.as_ref().is_none_or(ShapeFinder::is_settled);
        let has_lists = self.unfold.as_ref().is_none_or(|unfold| unfold.is_settled(may_have_nulls));
        self.unit.is_none() && has_lists && has_shape && (self.null_structs != Some(false) || !may_have_nulls)
    }

    /// Examines samples of a column, which begin with number `first` of all.
    fn observe(&mut self, samples: &Samples, column: &Column, first: u64) {
        if let Some(unfold) = &mut self.unfold {
            unfold.observe(samples);
        }
        if let Some(shape) = &mut self.shape {
            shape.unfold(&column.kind, self.unfold.as_ref().map_or(0, UnfoldFinder::dimensions));
            shape.observe(samples, &column.kind, first);
        }
        if let Some(unit) = &mut self.unit {
            unit.observe(samples, first);
        }
        if let Some(found) = &mut self.null_structs {
            *found |= samples.first_null_struct(&[]).is_some();
        }
    }

    /// Gives the column what was found.
    fn settle(&self, column: &mut Column) -> std::result::Result<(), (u64, Problem)> {
        column.unfold(self.unfold.as_ref().map_or(0, UnfoldFinder::dimensions));
        if let Some(shape) = &self.shape {
            column.set_shape(shape.shape(&column.kind));
        }
        if let Some(shape) = self.shape.as_ref().filter(|_| column.kind.lists.is_empty()) {
            let found = shape.found(&column.kind).map(|found| (FOUND_SHAPE.to_owned(), found.to_string()));
            column.metadata.extend(found);
        }
        if let (Some(found), Some(nulls)) = (self.null_structs, &mut column.struct_nulls) {
            nulls.is_written |= found;
        }
        self.unit.as_ref().map_or(Ok(()), |unit| unit.settle(column))
    }
}

/// Reads the columns about which the type does not tell all, and nothing else, and completes the
/// plan.
pub(super) fn find(
    sources: &[&dyn BatchSource],
    plan: &mut Plan,
    null_elements: NullElements,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<()> {
    let mut finders: Vec<Finder> = plan.columns.iter().map(|column| Finder::new(column, null_elements)).collect();
    let total = total_rows(sources);
    let mut rows = 0;
    let mut starts: Vec<(u64, &dyn BatchSource)> = Vec::new();
    for (source, positions) in sources.iter().zip(&plan.positions) {
        starts.push((rows, *source));
        let wanted = positions.iter().map(|&position| source.may_have_nulls(position)).enumerate();
        let is_wanted =
            |&(i, may_have_nulls): &(usize, bool)| !finders.get(i).is_none_or(|f| f.is_settled(may_have_nulls));
        let wanted: Vec<(usize, bool)> = wanted.filter(is_wanted).collect();
        if wanted.is_empty() {
            rows = rows.saturating_add(source.row_count().unwrap_or(0));
            continue;
        }
        let scan = Scan { source: *source, columns: &plan.columns, positions, wanted: &wanted };
        scan.run(&mut finders, &mut rows, &mut |rows| progress(Progress::Scanning { done: rows, total }))
            .map_err(|error| located(error, *source))?;
    }
    for (column, finder) in plan.columns.iter_mut().zip(&finders) {
        finder.settle(column).map_err(|(sample, problem)| {
            let (source, own) = starts
                .iter()
                .rfind(|(start, _)| *start <= sample)
                .map_or((0, None), |(start, source)| (*start, Some(*source)));
            let problem = Problem { row: Some(0), ..problem };
            let error = sample_error(&problem, Origin { batch: sample, source }, column);
            match own {
                Some(source) => located(error, source),
                None => error,
            }
        })?;
    }
    plan.settle_structs()
}

/// The first pass over one source.
struct Scan<'a> {
    source: &'a dyn BatchSource,
    columns: &'a [Column],
    /// The position of each column in the source.
    positions: &'a [usize],
    /// The numbers of the columns to look at, and whether they may have nulls.
    wanted: &'a [(usize, bool)],
}

impl Scan<'_> {
    fn run(
        &self,
        finders: &mut [Finder],
        rows: &mut u64,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let positions: Vec<usize> = self.wanted.iter().filter_map(|(i, _)| self.positions.get(*i).copied()).collect();
        let source = *rows;
        for batch in self.source.outlines(&positions)? {
            let batch = batch?;
            self.batch(&batch, Origin { batch: *rows, source }, finders)?;
            *rows += u64_of(batch.sample_count);
            go_on(progress(*rows))?;
            let is_settled =
                |&(i, may_have_nulls): &(usize, bool)| finders.get(i).is_none_or(|f| f.is_settled(may_have_nulls));
            if self.wanted.iter().all(is_settled) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn batch(&self, batch: &InputBatch, origin: Origin, finders: &mut [Finder]) -> Result<()> {
        for (&(i, _), samples) in self.wanted.iter().zip(&batch.columns) {
            let (Some(column), Some(finder)) = (self.columns.get(i), finders.get_mut(i)) else { continue };
            let samples = samples.as_ref().map_err(|problem| sample_error(problem, origin, column))?;
            finder.observe(samples, column, origin.batch);
        }
        Ok(())
    }
}
