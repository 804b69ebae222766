//! Lists of strings, of any depth.

use super::decode::decode;
use super::elements::shared_nulls;
use super::samples::string_bytes;
use super::types::decoded;
use super::walk::AnyList;
use crate::format::ListLevel;
use crate::import::batch::{SampleValues, Samples, SharedBytes};
use crate::import::input_column::{ColumnKind, Level};
use crate::import::lists::InputLists;
use crate::import::problem::Problem;
use crate::limits;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field};
use std::result::Result;

/// Returns the levels of lists around strings; `None` if a field is no list, or not of strings.
pub(super) fn levels(field: &Field, is_string: impl Fn(&DataType) -> bool) -> Option<(Vec<ListLevel>, &Field)> {
    let mut levels = Vec::new();
    let mut field = field;
    loop {
        match decoded(field.data_type()) {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item) => {
                levels.push(ListLevel { nullable: item.is_nullable() });
                field = item;
            }
            leaf => {
                let fits = !levels.is_empty() && levels.len() <= limits::LEVELS && is_string(leaf);
                return fits.then_some((levels, field));
            }
        }
    }
}

/// Returns the samples of a column of lists of strings; `nulls` are its null samples.
pub(super) fn samples(array: &ArrayRef, nulls: Option<&NullBuffer>, kind: &ColumnKind) -> Result<Samples, Problem> {
    let mut array = array.clone();
    let mut nulls = nulls.cloned();
    // positions in the array: null lists can hide members, which are left out
    let mut entries: Vec<usize> = (0..array.len()).collect();
    let mut levels = Vec::with_capacity(kind.lists.len());
    for _ in &kind.lists {
        let list = AnyList::of(&array, &Level::Open)?;
        let is_null = |i: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(i));
        let mut members = Vec::new();
        let mut lengths = Vec::with_capacity(entries.len());
        for (row, &i) in entries.iter().enumerate() {
            let range = if is_null(i) { 0..0 } else { list.start(i)..list.start(i + 1) };
            let length = u32::try_from(range.len());
            lengths.push(length.map_err(|_| Problem::at(row, format!("a list of {} members is too long", range.len())))?);
            members.extend(range);
        }
        levels.push(InputLists { lengths, nulls: selected(nulls.as_ref(), &entries) });
        entries = members;
        array = decode(list.values())?;
        nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
    }
    let (bytes, all) = string_bytes(&array, nulls.as_ref())?;
    let outside = || Problem::from("a string lies outside its array".to_owned());
    let ranges = entries.iter().map(|&i| all.get(i).cloned().ok_or_else(outside)).collect::<Result<_, _>>()?;
    Ok(Samples {
        dtype: kind.dtype,
        values: SampleValues::Plain(SharedBytes::new(bytes)),
        ranges,
        open_extents: Vec::new(),
        lists: levels,
        nulls: selected(nulls.as_ref(), &entries),
        element_nulls: None,
    })
}

/// Returns the nulls of some entries, if any of them is null.
fn selected(nulls: Option<&NullBuffer>, entries: &[usize]) -> Option<crate::import::batch::Nulls> {
    let nulls = nulls?;
    let present: BooleanBuffer = entries.iter().map(|&i| nulls.is_valid(i)).collect();
    shared_nulls(Some(&NullBuffer::new(present)))
}
