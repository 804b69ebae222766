//! Columns inside lists: strings, fields of structs, and lists of these.

use super::decode::decode;
use super::elements::shared_nulls;
use super::gather::by_index;
use super::kinds::kind_of;
use super::samples::plain_samples;
use super::types::{decoded, is_null};
use super::walk::{AnyList, NoTensors};
use super::{extension, metadata};
use crate::format::{ListLevel, path};
use crate::import::batch::{InputLists, Nulls, Samples, in_lists};
use crate::import::input_column::{ColumnKind, InputColumn};
use crate::import::problem::Problem;
use crate::limits;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field};
use std::result::Result;

/// A step from an array to one inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// To the members of lists.
    List,
    /// To a field of a struct.
    Field(usize),
}

/// Returns the columns that a field of lists becomes, with the steps to each; none if its samples
/// are tensors.
pub(super) fn columns(field: &Field, name: &str, nullable: bool) -> Vec<(InputColumn, Vec<Step>)> {
    let mut found = Vec::new();
    if is_nested(field) {
        let path = path::escaped(name);
        let walk = ListWalk { name: name.to_owned(), path, steps: Vec::new(), levels: Vec::new(), nullable };
        walk.enter(field, &mut found);
    }
    found
}

/// Returns whether lists have members that are no elements of a tensor.
fn is_nested(field: &Field) -> bool {
    match decoded(field.data_type()) {
        DataType::Map(..) => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) | DataType::LargeListView(item) => {
            match decoded(item.data_type()) {
                DataType::Struct(fields) => !fields.is_empty(),
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Binary => true,
                DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) | DataType::Null => true,
                _ => is_nested(item),
            }
        }
        _ => false,
    }
}

/// The way from a field to the columns inside it.
#[derive(Clone)]
struct ListWalk {
    name: String,
    path: String,
    steps: Vec<Step>,
    levels: Vec<ListLevel>,
    nullable: bool,
}

impl ListWalk {
    fn enter(self, field: &Field, found: &mut Vec<(InputColumn, Vec<Step>)>) {
        match decoded(field.data_type()) {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::Map(item, _) => self.enter_lists(item, found),
            DataType::Struct(fields) if !fields.is_empty() && !extension::is_variable_tensor(field) => {
                for (i, child) in fields.iter().enumerate() {
                    let mut to_child = self.clone();
                    to_child.name = format!("{}.{}", self.name, child.name());
                    to_child.path = format!("{}.{}", self.path, path::escaped(child.name()));
                    to_child.steps.push(Step::Field(i));
                    if let Some(level) = to_child.levels.last_mut() {
                        level.nullable |= child.is_nullable();
                    }
                    to_child.enter(child, found);
                }
            }
            _ => found.push(self.column(field)),
        }
    }

    fn enter_lists(mut self, item: &Field, found: &mut Vec<(InputColumn, Vec<Step>)>) {
        self.path.push_str("[]");
        self.steps.push(Step::List);
        self.levels.push(ListLevel { nullable: item.is_nullable() });
        self.enter(item, found);
    }

    fn column(mut self, field: &Field) -> (InputColumn, Vec<Step>) {
        if let Some(level) = self.levels.last_mut() {
            level.nullable |= is_null(field.data_type());
        }
        let kind = match kind_of(field) {
            Ok(_) if self.levels.len() > limits::LEVELS => {
                Err(format!("{} levels of lists, of which the format allows {}", self.levels.len(), limits::LEVELS))
            }
            Ok(kind) => Ok(ColumnKind { lists: self.levels, ..kind }),
            Err(reason) => Err(format!("lists of {reason}")),
        };
        let mut metadata = metadata::of_column(field);
        if self.steps.iter().any(|step| matches!(step, Step::Field(_))) {
            metadata.insert(path::KEY.to_owned(), self.path);
        }
        let column = InputColumn { name: self.name, kind, nullable: self.nullable, metadata, stored: None };
        (column, self.steps)
    }
}

/// Returns the samples of a column that these steps lead to; `nulls` are its null samples.
///
/// If items are no tensors, their outer dimensions are lists, too.
pub(super) fn samples(
    array: &ArrayRef,
    nulls: Option<&NullBuffer>,
    steps: &[Step],
    kind: &ColumnKind,
) -> Result<Samples, Problem> {
    let mut kind = kind.clone();
    let mut at = Position { array: array.clone(), nulls: nulls.cloned(), entries: (0..array.len()).collect() };
    let mut lists = Vec::with_capacity(kind.lists.len());
    for step in steps {
        match step {
            Step::List => lists.push(at.enter_lists().map_err(|problem| in_lists(problem, &lists))?),
            Step::Field(child) => at.enter_field(*child)?,
        }
    }
    let mut no_tensor = None;
    loop {
        let nulls = at.nulls_of_entries();
        let items = at.items()?;
        let nulls = NullBuffer::union(nulls.as_ref(), items.nulls());
        match plain_samples(&items, nulls.as_ref(), &kind) {
            Ok(samples) => return Ok(Samples { lists, no_tensor, ..samples }),
            Err(NoTensors::Refused(problem)) => return Err(in_lists(problem, &lists)),
            Err(NoTensors::Nested { dimensions, problem }) => {
                no_tensor.get_or_insert(in_lists(problem, &lists));
                for _ in kind.unfold(dimensions) {
                    lists.push(at.enter_lists().map_err(|problem| in_lists(problem, &lists))?);
                }
            }
        }
    }
}

/// An array, and what of it belongs to the samples.
struct Position {
    array: ArrayRef,
    /// Nulls of the array, and of the structs around it.
    nulls: Option<NullBuffer>,
    /// Positions in the array. Null lists can hide members, which are left out.
    entries: Vec<usize>,
}

impl Position {
    fn is_null(&self, i: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| i < nulls.len() && nulls.is_null(i))
    }

    fn nulls_of_entries(&self) -> Option<NullBuffer> {
        let present: BooleanBuffer = self.entries.iter().map(|&i| !self.is_null(i)).collect();
        let nulls = NullBuffer::new(present);
        (nulls.null_count() > 0).then_some(nulls)
    }

    fn enter_lists(&mut self) -> Result<InputLists, Problem> {
        let list = AnyList::of_any(&self.array)?;
        let mut members = Vec::new();
        let mut lengths = Vec::with_capacity(self.entries.len());
        for (row, &i) in self.entries.iter().enumerate() {
            let range = if self.is_null(i) { 0..0 } else { list.start(i)..list.start(i + 1) };
            let too_long = || Problem::at(row, format!("a list of {} members is too long", range.len()));
            lengths.push(u32::try_from(range.len()).map_err(|_| too_long())?);
            members.extend(range);
        }
        let nulls: Option<Nulls> = shared_nulls(self.nulls_of_entries().as_ref());
        let array = decode(list.values())?;
        *self = Self { nulls: array.nulls().cloned(), array, entries: members };
        Ok(InputLists { lengths, nulls })
    }

    fn enter_field(&mut self, child: usize) -> Result<(), Problem> {
        let mismatch = || Problem::from("a batch has other columns than its schema".to_owned());
        let parent = self.array.as_struct_opt().ok_or_else(mismatch)?;
        let child = decode(parent.columns().get(child).ok_or_else(mismatch)?)?;
        self.nulls = NullBuffer::union(self.nulls.as_ref(), child.nulls());
        self.array = child;
        Ok(())
    }

    /// Returns the entries alone.
    fn items(&self) -> Result<ArrayRef, Problem> {
        let first = self.entries.first().copied().unwrap_or(0);
        let last = self.entries.last().map_or(first, |&last| last.saturating_add(1));
        if last.saturating_sub(first) == self.entries.len() && last <= self.array.len() {
            return Ok(self.array.slice(first, self.entries.len())); // without gaps: they ascend
        }
        by_index(&self.array, &self.array, &self.entries, None)
    }
}
