//! Arrays of lists of any sort, as one.

use crate::format::item_shapes::product_of_extents;
use crate::import::input_column::Level;
use crate::import::problem::Problem;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, LargeListArray, ListArray, MapArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use std::result::Result;
use std::sync::Arc;

/// An array of lists of any sort.
pub(super) enum AnyList<'a> {
    Small(&'a ListArray),
    Large(&'a LargeListArray),
    Fixed(&'a FixedSizeListArray, usize),
    Map(&'a MapArray, ArrayRef),
}

impl<'a> AnyList<'a> {
    /// Returns the array as lists.
    pub(super) fn of_any(array: &'a ArrayRef) -> Result<Self, Problem> {
        match array.data_type() {
            DataType::FixedSizeList(_, length) => {
                Self::of(array, &Level::Fixed(u32::try_from(*length).into_iter().collect()))
            }
            _ => Self::of(array, &Level::Open),
        }
    }

    /// Returns the array as lists of the level that the schema states.
    pub(super) fn of(array: &'a ArrayRef, level: &Level) -> Result<Self, Problem> {
        let mismatch = || Problem::from(format!("a batch has the type {}, which its schema denies", array.data_type()));
        match level {
            Level::Open => match array.data_type() {
                DataType::List(_) => array.as_list_opt().map(Self::Small).ok_or_else(mismatch),
                DataType::LargeList(_) => array.as_list_opt().map(Self::Large).ok_or_else(mismatch),
                DataType::Map(..) => {
                    let map = array.as_map_opt().ok_or_else(mismatch)?;
                    Ok(Self::Map(map, Arc::new(map.entries().clone())))
                }
                _ => Err(mismatch()),
            },
            Level::Fixed(extents) => {
                let list = array.as_fixed_size_list_opt().ok_or_else(mismatch)?;
                let length = usize::try_from(list.value_length()).map_err(|_| mismatch())?;
                let due = product_of_extents(extents);
                if due == Some(length) { Ok(Self::Fixed(list, length)) } else { Err(mismatch()) }
            }
        }
    }

    pub(super) fn values(&self) -> &ArrayRef {
        match self {
            Self::Small(list) => list.values(),
            Self::Large(list) => list.values(),
            Self::Fixed(list, _) => list.values(),
            Self::Map(_, entries) => entries,
        }
    }

    pub(super) fn nulls(&self) -> Option<&NullBuffer> {
        let nulls = match self {
            Self::Small(list) => list.nulls(),
            Self::Large(list) => list.nulls(),
            Self::Fixed(list, _) => list.nulls(),
            Self::Map(map, _) => map.nulls(),
        };
        nulls.filter(|nulls| nulls.null_count() > 0)
    }

    /// Returns the number of elements in each list of a fixed-size array.
    pub(super) fn fixed_length(&self) -> usize {
        if let Self::Fixed(_, length) = self { *length } else { 0 }
    }

    /// Returns the position at which list `i` begins and the one before it ends.
    pub(super) fn start(&self, i: usize) -> usize {
        let start = match self {
            Self::Small(list) => list.value_offsets().get(i).and_then(|&offset| usize::try_from(offset).ok()),
            Self::Large(list) => list.value_offsets().get(i).and_then(|&offset| usize::try_from(offset).ok()),
            Self::Fixed(_, length) => i.checked_mul(*length),
            Self::Map(map, _) => map.value_offsets().get(i).and_then(|&offset| usize::try_from(offset).ok()),
        };
        start.unwrap_or(0) // offsets are not negative, and there is one more than lists
    }
}
