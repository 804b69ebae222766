//! From a row of a nested list to the range of elements that is its tensor, and the extents of that
//! tensor.

use super::any_list::AnyList;
use super::decode::decode;
use super::elements::{cut, part};
use crate::error::Advice;
use crate::format::item_shapes::product_of_extents;
use crate::import::batch::UNKNOWN;
use crate::import::input_column::{ColumnKind, Level};
use crate::import::problem::Problem;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_buffer::NullBuffer;
use std::ops::Range;
use std::result::Result;

/// The tensors of one column in one batch.
pub(super) struct Tensors {
    /// The range of each sample in `elements`; any range for a null.
    pub ranges: Vec<Range<usize>>,
    /// The extents that the type does not tell, sample by sample.
    pub open_extents: Vec<u32>,
    pub elements: ArrayRef,
}

/// The reason why the rows of an array are no tensors.
pub(super) enum NoTensors {
    /// One of them cannot be stored.
    Refused(Problem),
    /// One of them is no tensor, unless so many of the outer dimensions are lists.
    Nested { dimensions: usize, problem: Problem },
}

impl From<Problem> for NoTensors {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

/// Finds the tensors of a column; `nulls` are its null samples.
pub(super) fn walk(array: &ArrayRef, nulls: Option<&NullBuffer>, kind: &ColumnKind) -> Result<Tensors, NoTensors> {
    if kind.variable_tensor {
        return Ok(variable_tensors(array, nulls, kind)?);
    }
    let mut steps = Steps { ranges: (0..array.len()).map(|i| i..i + 1).collect(), nulls, kind };
    let mut array = array.clone();
    let mut open = Vec::with_capacity(kind.open_count());
    for (dimension, level) in kind.list_levels().iter().enumerate() {
        let list = AnyList::of(&array, level)?;
        match level {
            Level::Fixed(_) => steps.enter_fixed(&list, dimension)?,
            Level::Open => open.push(steps.enter_lists(&list, dimension)?),
        }
        // a slice of a batch uses a part of them
        array = decode(&cut(list.values(), &mut steps.ranges)?)?;
    }
    let rows = steps.ranges.len();
    let open_extents = (0..rows).flat_map(|row| open.iter().filter_map(move |extents| extents.get(row).copied()));
    Ok(Tensors { open_extents: open_extents.collect(), ranges: steps.ranges, elements: array })
}

/// The ranges of all samples, on their way from level to level.
struct Steps<'a> {
    ranges: Vec<Range<usize>>,
    nulls: Option<&'a NullBuffer>,
    kind: &'a ColumnKind,
}

impl Steps<'_> {
    fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    fn enter_fixed(&mut self, list: &AnyList, dimension: usize) -> Result<(), NoTensors> {
        let mut ranges = std::mem::take(&mut self.ranges);
        for (row, range) in ranges.iter_mut().enumerate() {
            if !self.is_null(row) {
                self.check_no_null_list(list, dimension, row, range)?;
            }
            let bounds = |i: usize| i.checked_mul(list.fixed_length());
            let (Some(start), Some(end)) = (bounds(range.start), bounds(range.end)) else {
                return Err(Problem::at(row, "a tensor is too large").into());
            };
            *range = start..end;
        }
        self.ranges = ranges;
        Ok(())
    }

    /// Enters the lists of each sample, and returns its extent in this dimension.
    fn enter_lists(&mut self, list: &AnyList, dimension: usize) -> Result<Vec<u32>, NoTensors> {
        let mut ranges = std::mem::take(&mut self.ranges);
        let mut extents = Vec::with_capacity(ranges.len());
        for (row, range) in ranges.iter_mut().enumerate() {
            if self.is_null(row) || range.start == range.end {
                extents.push(UNKNOWN);
                *range = 0..0;
                continue;
            }
            self.check_no_null_list(list, dimension, row, range)?;
            extents.push(self.common_length(list, dimension, row, range)?);
            *range = list.start(range.start)..list.start(range.end);
        }
        self.ranges = ranges;
        Ok(extents)
    }

    fn check_no_null_list(
        &self,
        list: &AnyList,
        dimension: usize,
        row: usize,
        range: &Range<usize>,
    ) -> Result<(), NoTensors> {
        // null lists of the outermost dimension are null samples
        let Some(nulls) = list.nulls().filter(|_| dimension > 0) else { return Ok(()) };
        if range.clone().any(|i| nulls.is_null(i)) {
            return Err(self.nested(dimension, row, "a null list inside a tensor, which has no length".to_owned()));
        }
        Ok(())
    }

    /// Returns the length of all lists of a range that is not empty.
    fn common_length(
        &self,
        list: &AnyList,
        dimension: usize,
        row: usize,
        range: &Range<usize>,
    ) -> Result<u32, NoTensors> {
        let length = |i: usize| list.start(i + 1).saturating_sub(list.start(i));
        let first = length(range.start);
        if let Some(other) = range.clone().map(length).find(|&other| other != first) {
            let message = format!("lists of {first} and {other} elements side by side are no tensor");
            return Err(self.nested(dimension, row, message));
        }
        let fits = u32::try_from(first).ok().filter(|&length| length <= crate::limits::EXTENT);
        fits.ok_or_else(|| Problem::at(row, format!("a list of {first} elements is too long")).into())
    }

    /// Returns the error of a row that is a tensor only from this dimension on.
    fn nested(&self, dimension: usize, row: usize, message: String) -> NoTensors {
        let problem = Problem::at(row, message).advising([Advice::SkipColumns]);
        match self.kind.can_unfold(dimension) {
            true => NoTensors::Nested { dimensions: dimension, problem },
            false => problem.into(),
        }
    }
}

/// Returns the samples of an `arrow.variable_shape_tensor`: a struct of a list `data` and a
/// fixed-size list `shape`.
fn variable_tensors(array: &ArrayRef, nulls: Option<&NullBuffer>, kind: &ColumnKind) -> Result<Tensors, Problem> {
    let mismatch = || Problem::from(format!("a batch has the type {}, which its schema denies", array.data_type()));
    let tensors: &StructArray = array.as_struct_opt().ok_or_else(mismatch)?;
    let (Some(data), Some(shapes)) = (tensors.column_by_name("data"), tensors.column_by_name("shape")) else {
        return Err(mismatch());
    };
    let data = AnyList::of(data, &Level::Open)?;
    let shapes = shapes.as_fixed_size_list_opt().ok_or_else(mismatch)?;
    let extents = shapes.values().as_primitive_opt::<Int32Type>().ok_or_else(mismatch)?;
    let rank = kind.list_levels().len();
    if usize::try_from(shapes.value_length()).ok() != Some(rank) {
        return Err(mismatch());
    }
    let (first, end) = (data.start(0), data.start(tensors.len()));
    let elements = decode(&part(data.values(), first..end)?)?;
    let mut samples = Tensors { ranges: Vec::new(), open_extents: Vec::new(), elements };
    for row in 0..tensors.len() {
        if nulls.is_some_and(|nulls| nulls.is_null(row)) {
            samples.ranges.push(0..0);
            samples.open_extents.extend(vec![UNKNOWN; kind.open_count()]);
            continue;
        }
        if data.nulls().is_some_and(|nulls| nulls.is_null(row)) || shapes.is_null(row) {
            return Err(Problem::at(row, "a tensor whose data or shape is null"));
        }
        let stored = extents.slice(row * rank, rank); // within: there are `rank` for each row
        let extents: Option<Vec<u32>> = stored.iter().map(|extent| u32::try_from(extent?).ok()).collect();
        let extents = extents.ok_or_else(|| Problem::at(row, "a tensor with a null or negative extent"))?;
        let range = data.start(row)..data.start(row + 1);
        if product_of_extents(&extents) != Some(range.len()) {
            return Err(Problem::at(row, format!("a tensor of shape {extents:?} with {} elements", range.len())));
        }
        samples.open_extents.extend(open_extents(row, kind, &extents)?);
        samples.ranges.push(range.start - first..range.end - first); // offsets do not descend
    }
    Ok(samples)
}

/// Returns the extents that the type does not state. Checks that the others are as it states.
fn open_extents(row: usize, kind: &ColumnKind, extents: &[u32]) -> Result<Vec<u32>, Problem> {
    let mut open = Vec::new();
    for (level, &extent) in kind.levels.iter().zip(extents) {
        match level {
            Level::Open => open.push(extent),
            Level::Fixed(due) if due.first() == Some(&extent) => {}
            Level::Fixed(due) => {
                let message = format!("a tensor of shape {extents:?}, where its type says {due:?} for an extent");
                return Err(Problem::at(row, message));
            }
        }
    }
    Ok(open)
}
