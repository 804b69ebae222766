//! Columns inside lists: strings, fields of structs, and lists of these.

use super::any_list::AnyList;
use super::decode::decode;
use super::elements::{part, shared_nulls};
use super::gather::by_index;
use super::samples::{plain_samples, struct_samples};
use super::walk::NoTensors;
use crate::import::batch::{InputLists, Nulls, SampleValues, Samples, in_lists};
use crate::import::input_column::ColumnKind;
use crate::import::problem::Problem;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, NullBuffer};

use std::result::Result;

/// The most members of lists in a batch that take no memory.
const MOST_EMPTY_MEMBERS: usize = 1 << 24;

/// A step from an array to one inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) enum Step {
    /// To the members of lists.
    List,
    /// To a field of a struct.
    Field(usize),
}

/// Returns the samples of a column that these steps lead to; `nulls` are its null samples. If it is
/// a struct, only nulls are samples.
///
/// If items are no tensors, their outer dimensions are lists, too.
pub(super) fn samples(
    array: &ArrayRef,
    nulls: Option<&NullBuffer>,
    steps: &[Step],
    is_struct: bool,
    kind: &ColumnKind,
) -> Result<Samples, Problem> {
    let mut kind = kind.clone();
    let entries = (0..array.len()).collect();
    let mut at = Position { array: array.clone(), around: None, nulls: nulls.cloned(), entries };
    let mut lists = Vec::with_capacity(kind.lists.len());
    for step in steps {
        match step {
            Step::List => lists.push(at.enter_lists().map_err(|problem| in_lists(problem, &lists))?),
            Step::Field(child) => at.enter_field(*child)?,
        }
    }
    if is_struct {
        return Ok(at.structs(lists));
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

/// Returns the most members of lists that are looked at. Members of types without content take no
/// memory, so that a small file can have any number of them.
fn most_members(members: &ArrayRef) -> usize {
    members.get_array_memory_size().saturating_mul(8).max(MOST_EMPTY_MEMBERS)
}

/// An array, and what of it belongs to the samples.
struct Position {
    array: ArrayRef,
    /// Nulls of the structs around it.
    around: Option<NullBuffer>,
    /// Nulls of the array, and of the structs around it.
    nulls: Option<NullBuffer>,
    /// Positions in the array. Null lists can hide members, which are left out.
    entries: Vec<usize>,
}

impl Position {
    fn is_null(&self, i: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| i < nulls.len() && nulls.is_null(i))
    }

    /// Returns the nulls of structs in these lists.
    fn structs(&self, lists: Vec<InputLists>) -> Samples {
        let (around, own) = (self.of_entries(self.around.as_ref()), self.nulls_of_entries());
        let mut structs = struct_samples(self.entries.len(), around.as_ref(), own.as_ref());
        if let SampleValues::Structs { first_null } = &mut structs.values {
            *first_null = lists.iter().rev().fold(*first_null, |member, lists| lists.list_of(member?));
        }
        Samples { lists, ..structs }
    }

    fn nulls_of_entries(&self) -> Option<NullBuffer> {
        self.of_entries(self.nulls.as_ref())
    }

    /// Returns those of the nulls of the array that entries have.
    fn of_entries(&self, nulls: Option<&NullBuffer>) -> Option<NullBuffer> {
        let nulls = nulls?;
        let present: BooleanBuffer = self.entries.iter().map(|&i| i >= nulls.len() || nulls.is_valid(i)).collect();
        let nulls = NullBuffer::new(present);
        (nulls.null_count() > 0).then_some(nulls)
    }

    fn enter_lists(&mut self) -> Result<InputLists, Problem> {
        let list = AnyList::of_any(&self.array)?;
        let most = most_members(list.values());
        let mut members = Vec::new();
        let mut lengths = Vec::with_capacity(self.entries.len());
        for (row, &i) in self.entries.iter().enumerate() {
            let range = if self.is_null(i) { 0..0 } else { list.start(i)..list.start(i + 1) };
            let too_long = || Problem::at(row, format!("a list of {} members is too long", range.len()));
            lengths.push(u32::try_from(range.len()).map_err(|_| too_long())?);
            if range.len().saturating_add(members.len()) > most {
                return Err(Problem::at(row, format!("lists of more than {most} members that take no memory")));
            }
            if members.try_reserve(range.len()).is_err() {
                return Err(Problem::at(row, format!("no memory for more than {} members of lists", members.len())));
            }
            members.extend(range);
        }
        let nulls: Option<Nulls> = shared_nulls(self.nulls_of_entries().as_ref());
        // a slice of a batch uses a part of them
        let first = members.first().copied().unwrap_or(0);
        let end = members.last().map_or(first, |last| last.saturating_add(1));
        let array = decode(&part(list.values(), first..end)?)?;
        members.iter_mut().for_each(|member| *member -= first); // they ascend
        *self = Self { around: None, nulls: array.nulls().cloned(), array, entries: members };
        Ok(InputLists { lengths, nulls })
    }

    fn enter_field(&mut self, child: usize) -> Result<(), Problem> {
        let mismatch = || Problem::from("a batch has other columns than its schema".to_owned());
        let parent = self.array.as_struct_opt().ok_or_else(mismatch)?;
        let child = decode(parent.columns().get(child).ok_or_else(mismatch)?)?;
        self.around = self.nulls.take();
        self.nulls = NullBuffer::union(self.around.as_ref(), child.nulls());
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
