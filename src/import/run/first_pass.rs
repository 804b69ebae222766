//! The first pass over the inputs finds the facts that the types do not state.
//!
//! Types do not state which lists are tensors, which dimensions have the same extent in every
//! sample, which unit fits INT96 timestamps, and whether a struct is ever null. The pass reads only
//! columns for which one of these facts is unknown, and mostly just their offsets and validity. It
//! ends as soon as no further sample can change the result. The result completes the [`Plan`].
//!
//! INT96 timestamps of Parquet are nanoseconds whose range exceeds 64 bits. Arrow reads them as
//! 64-bit nanoseconds, which fit most values. If a value does not fit, the column is stored in
//! microseconds, provided that every value is a whole number of microseconds and fits.

use super::planned::{BatchPosition, sample_error};
use crate::Result;
use crate::bytes::le::u64_of;
use crate::error::{Advice, check_cancelled};
use crate::import::options::Progress;
use crate::import::plan::input_column::{ColumnKind, Level, UNKNOWN, open_count};
use crate::import::plan::{Column, Plan, in_unit};
use crate::import::rows::{Batch, NullElements, Outline, RowError};
use crate::import::run::found::InferredShape;
use crate::import::source::{PassRows, RowSource, total_rows, with_source_path};
use crate::logical::arrow_type::{self, ArrowType, INFERRED_SHAPE, TimeUnit};
use crate::{Extent, Shape};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Finds the facts about a column that its type does not state.
struct Finder {
    /// `None` if the type or the caller states the shape.
    shape: Option<ShapeFinder>,
    /// `None` if the type guarantees that all samples are tensors, or if they must be tensors.
    unfold: Option<UnfoldFinder>,
    unit: Option<UnitFinder>,
    /// Whether a null struct was found, if the column holds the nulls of a struct.
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

    /// Returns whether no further sample can change the result. `may_have_nulls` says whether
    /// samples can have nulls inside or be null structs.
    fn is_settled(&self, may_have_nulls: bool) -> bool {
        let has_shape = self.shape.as_ref().is_none_or(ShapeFinder::is_settled);
        let has_lists = self.unfold.as_ref().is_none_or(|unfold| unfold.is_settled(may_have_nulls));
        self.unit.is_none() && has_lists && has_shape && (self.null_structs != Some(false) || !may_have_nulls)
    }

    /// Examines samples of a column. `first` is the index of the first sample, counted across all
    /// inputs.
    fn observe(&mut self, outline: &Outline, column: &Column, first: u64) {
        if let Some(unfold) = &mut self.unfold {
            unfold.observe(outline);
        }
        if let Some(shape) = &mut self.shape {
            shape.unfold(&column.kind, self.unfold.as_ref().map_or(0, |unfold| unfold.dimensions));
            shape.observe(outline, &column.kind, first);
        }
        if let Some(unit) = &mut self.unit {
            unit.observe(outline, first);
        }
        if let Some(found) = &mut self.null_structs {
            *found |= outline.has_null_struct;
        }
    }

    /// Stores the findings in the column.
    fn settle(&self, column: &mut Column) -> std::result::Result<(), (u64, RowError)> {
        column.unfold(self.unfold.as_ref().map_or(0, |unfold| unfold.dimensions));
        if let Some(shape) = &self.shape {
            column.set_shape(shape.shape(&column.kind));
        }
        if let Some(shape) = self.shape.as_ref().filter(|_| column.kind.lists.is_empty()) {
            let found = shape.found(&column.kind).map(|found| (INFERRED_SHAPE.to_owned(), found.to_string()));
            column.metadata.extend(found);
        }
        if let (Some(found), Some(nulls)) = (self.null_structs, &mut column.struct_nulls) {
            nulls.is_written |= found;
        }
        self.unit.as_ref().map_or(Ok(()), |unit| unit.settle(column))
    }
}

/// Reads only the columns whose types do not describe them completely, and completes the plan.
pub(super) fn complete(
    sources: &[&dyn RowSource],
    plan: &mut Plan,
    null_elements: NullElements,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<()> {
    let mut finders: Vec<Finder> = plan.columns.iter().map(|column| Finder::new(column, null_elements)).collect();
    let total = total_rows(sources);
    let mut rows = 0;
    let mut starts: Vec<(u64, &dyn RowSource)> = Vec::new();
    for (source, positions) in sources.iter().zip(&plan.positions) {
        starts.push((rows, *source));
        let unsettled = positions.iter().map(|&position| source.may_have_nulls(position)).enumerate();
        let is_unsettled =
            |&(i, may_have_nulls): &(usize, bool)| !finders.get(i).is_none_or(|f| f.is_settled(may_have_nulls));
        let unsettled: Vec<(usize, bool)> = unsettled.filter(is_unsettled).collect();
        let start = rows;
        if !unsettled.is_empty() {
            let scan = Scan { source: *source, columns: &plan.columns, positions, unsettled: &unsettled };
            scan.run(&mut finders, &mut rows, &mut |rows| progress(Progress::Scanning { done: rows, total }))
                .map_err(|error| with_source_path(error, *source))?;
        }
        // the scan may have ended before the last row
        rows = source.row_count().map_or(rows, |count| start.saturating_add(count));
    }
    for (column, finder) in plan.columns.iter_mut().zip(&finders) {
        finder.settle(column).map_err(|(sample, problem)| {
            let (source, own) = starts
                .iter()
                .rfind(|(start, _)| *start <= sample)
                .map_or((0, None), |(start, source)| (*start, Some(*source)));
            let problem = RowError { row: Some(0), ..problem };
            let error = sample_error(&problem, BatchPosition { batch: sample, source }, column);
            match own {
                Some(source) => with_source_path(error, source),
                None => error,
            }
        })?;
    }
    plan.settle_structs()
}

/// The first pass over one source.
struct Scan<'a> {
    source: &'a dyn RowSource,
    columns: &'a [Column],
    /// The position of each column in the source.
    positions: &'a [usize],
    /// The index of each column to examine, and whether it can have nulls.
    unsettled: &'a [(usize, bool)],
}

impl Scan<'_> {
    fn run(
        &self,
        finders: &mut [Finder],
        rows: &mut u64,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let positions: Vec<usize> =
            self.unsettled.iter().filter_map(|(i, _)| self.positions.get(*i).copied()).collect();
        let source = *rows;
        for batch in self.source.outlines(&positions, PassRows::All)? {
            let batch = batch?;
            self.batch(&batch, BatchPosition { batch: *rows, source }, finders)?;
            *rows += u64_of(batch.row_count);
            check_cancelled(progress(*rows))?;
            let is_settled =
                |&(i, may_have_nulls): &(usize, bool)| finders.get(i).is_none_or(|f| f.is_settled(may_have_nulls));
            if self.unsettled.iter().all(is_settled) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn batch(&self, batch: &Batch<Outline>, position: BatchPosition, finders: &mut [Finder]) -> Result<()> {
        for (&(i, _), outline) in self.unsettled.iter().zip(&batch.columns) {
            let (Some(column), Some(finder)) = (self.columns.get(i), finders.get_mut(i)) else { continue };
            let outline = outline.as_ref().map_err(|problem| sample_error(problem, position, column))?;
            finder.observe(outline, column, position.batch);
        }
        Ok(())
    }
}

/// The maximum number of samples that may differ in a nearly fixed dimension.
const MAX_ODD_SAMPLES: usize = 16;
/// In a nearly fixed dimension, at most one in this many samples differs.
const ONE_IN: u64 = 100;

/// The extents that have been found so far in one dimension.
enum ExtentCounts {
    /// The extents that occur. All samples except a few have the same extent.
    Few(Vec<Occurrence>),
    /// Too many samples differ.
    Varies,
}

/// An extent, and the samples that have it.
struct Occurrence {
    extent: u32,
    sample_count: u64,
    /// The first few of these samples, with the extents of all open dimensions.
    first: Vec<(u64, Vec<u32>)>,
}

/// Finds the shape of one column.
struct ShapeFinder {
    found: Vec<ExtentCounts>,
}

impl ShapeFinder {
    fn new(kind: &ColumnKind) -> Self {
        Self { found: (0..kind.open_count()).map(|_| ExtentCounts::Few(Vec::new())).collect() }
    }

    /// Drops the outer dimensions of a column of this kind, which have become lists.
    fn unfold(&mut self, kind: &ColumnKind, dimensions: usize) {
        let inner = kind.levels.get(dimensions..).map_or(0, open_count);
        self.found.drain(..self.found.len().saturating_sub(inner));
    }

    /// Examines samples of a column of this kind. `first` is the index of the first sample, counted
    /// across all inputs.
    fn observe(&mut self, outline: &Outline, kind: &ColumnKind, first: u64) {
        let stated = kind.levels.get(outline.unfolded..).map_or(0, open_count);
        let outer = stated.saturating_sub(self.found.len());
        for (sample, extents) in (first..).zip(outline.extents.chunks_exact(stated.max(1))) {
            for (found, &extent) in self.found.iter_mut().zip(extents.iter().skip(outer)) {
                found.observe(extent, sample, extents);
            }
        }
    }

    /// Returns whether no further sample can change the result.
    fn is_settled(&self) -> bool {
        self.found.iter().all(|found| matches!(found, ExtentCounts::Varies))
    }

    /// Returns the common shape of all samples that have been examined.
    fn shape(&self, kind: &ColumnKind) -> Shape {
        let extents = self.found.iter().map(|found| match found.common() {
            Some((extent, [])) => Extent::Fixed(extent),
            _ => Extent::Varying,
        });
        kind.shape_with(extents)
    }

    /// Returns the shape to report, if a dimension has the same extent in all or nearly all
    /// samples.
    fn found(&self, kind: &ColumnKind) -> Option<InferredShape> {
        let common: Vec<Option<(u32, &[Occurrence])>> = self.found.iter().map(ExtentCounts::common).collect();
        let counts = self.found.iter().zip(&common).filter(|(_, common)| common.is_some());
        let sample_count = counts.map(|(found, _)| found.sample_count()).min()?;
        let shape =
            |common: &Option<(u32, &[Occurrence])>| common.map_or(Extent::Varying, |(extent, _)| Extent::Fixed(extent));
        let odd: BTreeMap<u64, &Vec<u32>> = common
            .iter()
            .flatten()
            .flat_map(|(_, others)| others.iter().flat_map(|other| &other.first))
            .map(|(sample, extents)| (*sample, extents))
            .collect();
        let odd = odd.into_iter().map(|(sample, extents)| (sample, kind.item_shape(extents)));
        Some(InferredShape::new(kind.shape_with(common.iter().map(shape)), sample_count, odd))
    }
}

impl ExtentCounts {
    fn observe(&mut self, extent: u32, sample: u64, extents: &[u32]) {
        let Self::Few(occurrences) = self else { return };
        if extent == UNKNOWN {
            return;
        }
        let known = occurrences.iter_mut().find(|occurrence| occurrence.extent == extent);
        if let Some(Occurrence { sample_count, first, .. }) = known {
            *sample_count += 1; // no overflow: it counts samples
            if first.len() < MAX_ODD_SAMPLES {
                first.push((sample, extents.to_vec()));
            }
        } else {
            occurrences.push(Occurrence { extent, sample_count: 1, first: vec![(sample, extents.to_vec())] });
        }
        if occurrences.len() == 1 {
            return;
        }
        // the list is short: it has at most a few other extents
        occurrences.sort_by_key(|occurrence| std::cmp::Reverse(occurrence.sample_count));
        let others: u64 = occurrences.iter().skip(1).map(|occurrence| occurrence.sample_count).sum();
        if others > u64_of(MAX_ODD_SAMPLES) {
            *self = Self::Varies;
        }
    }

    /// Returns the extent of all or nearly all samples, and the other extents.
    fn common(&self) -> Option<(u32, &[Occurrence])> {
        let Self::Few(occurrences) = self else { return None };
        let (most_common, others) = occurrences.split_first()?;
        let odd = self.sample_count() - most_common.sample_count;
        (odd.saturating_mul(ONE_IN) <= self.sample_count()).then_some((most_common.extent, others))
    }

    /// Returns the number of samples whose extent in this dimension is known, or 0 if too many
    /// samples differ.
    fn sample_count(&self) -> u64 {
        match self {
            Self::Few(occurrences) => occurrences.iter().map(|occurrence| occurrence.sample_count).sum(),
            Self::Varies => 0,
        }
    }
}

/// Finds the outer dimensions that must become lists, because a sample is not a tensor.
struct UnfoldFinder {
    kind: ColumnKind,
    keeps_nulls: bool,
    may_be_ragged: bool,
    dimensions: usize,
}

impl UnfoldFinder {
    /// Returns a finder for a column of this kind, or `None` if the type guarantees that all
    /// samples are tensors.
    fn new(kind: &ColumnKind, null_elements: NullElements) -> Option<Self> {
        let keeps_nulls = null_elements == NullElements::Keep;
        let may_be_ragged = kind.levels.iter().skip(1).any(|level| *level == Level::Open);
        let may_have_nulls = kind.may_have_nulls_inside() && (keeps_nulls || kind.list_levels().len() > 1);
        let is_open = may_be_ragged || may_have_nulls;
        (is_open && !kind.variable_tensor).then(|| Self {
            kind: kind.clone(),
            keeps_nulls,
            may_be_ragged,
            dimensions: 0,
        })
    }

    /// Examines samples. Null elements can be stored only as items of lists.
    fn observe(&mut self, outline: &Outline) {
        self.dimensions = self.dimensions.max(outline.unfolded);
        let all = self.kind.list_levels().len();
        if self.keeps_nulls && outline.has_null_elements && self.kind.can_unfold(all) {
            self.dimensions = all;
        }
    }

    /// Returns whether no further sample can change the result. `may_have_nulls` says whether
    /// samples can have nulls inside.
    fn is_settled(&self, may_have_nulls: bool) -> bool {
        self.dimensions == self.kind.list_levels().len() || !(self.may_be_ragged || may_have_nulls)
    }
}

/// Finds a unit in which every timestamp of a column is exact.
struct UnitFinder {
    /// The units, in order of preference, each with the first sample that it does not represent
    /// exactly.
    candidates: Vec<(TimeUnit, Option<u64>)>,
}

impl UnitFinder {
    /// Returns a finder for a column, or `None` if its unit is known.
    fn new(column: &Column) -> Option<Self> {
        let declared = column.unit()?;
        let mut units = vec![declared];
        if !column.has_explicit_unit {
            let others = [TimeUnit::Nanosecond, TimeUnit::Microsecond];
            units.extend(others.into_iter().filter(|unit| *unit != declared));
        }
        Some(Self { candidates: units.into_iter().map(|unit| (unit, None)).collect() })
    }

    /// Examines samples. `first` is the index of the first sample, counted across all inputs. Null
    /// elements are 0, which fits every unit.
    fn observe(&mut self, outline: &Outline, first: u64) {
        for (unit, first_inexact) in self.candidates.iter_mut().filter(|(_, first_inexact)| first_inexact.is_none()) {
            let refused = outline.instants.iter().find(|(value, _)| in_unit(*value, *unit).is_none());
            *first_inexact = refused.map(|(_, row)| first.saturating_add(u64_of(*row)));
        }
    }

    /// Gives the column the first unit that fits all samples. Fails if no unit fits.
    fn settle(&self, column: &mut Column) -> std::result::Result<(), (u64, RowError)> {
        match self.candidates.iter().find(|(_, first_inexact)| first_inexact.is_none()) {
            Some((unit, _)) => {
                let zone = column.timestamp().and_then(|(_, zone)| zone);
                let text = ArrowType::Timestamp(*unit, zone).to_string();
                column.metadata.insert(arrow_type::KEY.to_owned(), text);
                Ok(())
            }
            None => Err(self.refusal()),
        }
    }

    fn refusal(&self) -> (u64, RowError) {
        let first_inexact = |(unit, sample): &(TimeUnit, Option<u64>)| {
            // every candidate has such a sample
            format!("{} fails at sample {}", ArrowType::Timestamp(*unit, None), sample.unwrap_or(0))
        };
        let all: Vec<String> = self.candidates.iter().map(first_inexact).collect();
        let last = self.candidates.iter().filter_map(|(_, sample)| *sample).max();
        let message = format!("no type represents all INT96 timestamps of the column exactly: {}", all.join(", "));
        (last.unwrap_or(0), RowError::from(message).with_advice([Advice::SkipColumns]))
    }
}
