//! Tensors as lists in lists, one level for each dimension.

use crate::{Error, Extent, Result};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field};
use std::sync::Arc;

/// The most lists of a level beyond one for each element. Only lists of empty lists have so many.
const EMPTY_LISTS: usize = 1 << 26;

/// Returns an extent as Arrow's tensors of variable shape have it.
pub(super) fn extent_of(extent: u32) -> Result<i32> {
    i32::try_from(extent).map_err(|_| Error::over_limit(format!("Arrow has no tensors with an extent of {extent}")))
}

/// Returns the type of tensors of a shape.
pub(super) fn data_type(extents: &[Extent], element: &DataType) -> Result<DataType> {
    extents.iter().rev().try_fold(element.clone(), |members, extent| {
        let item = Arc::new(Field::new_list_field(members, false));
        Ok(match extent {
            Extent::Fixed(extent) => DataType::FixedSizeList(item, extent_of(*extent)?),
            Extent::Varying => DataType::List(item),
        })
    })
}

/// A level of lists.
struct NestedLists<'a> {
    data_type: &'a DataType,
    count: usize,
    /// Arrow's offsets, if the extent varies.
    offsets: Option<Vec<i32>>,
}

/// Returns `count` tensors of a type of [`data_type`]. `shapes` are the extents of each.
pub(super) fn nested(
    data_type: &DataType,
    elements: ArrayData,
    shapes: &[i32],
    nulls: Option<NullBuffer>,
    count: usize,
) -> std::result::Result<ArrayData, ArrowError> {
    let rank = shapes.len().checked_div(count).unwrap_or(0);
    let most = elements.len().saturating_add(EMPTY_LISTS);
    let mut lists_of_sample = vec![1_usize; count];
    let mut levels = Vec::new();
    let mut of = data_type;
    while let DataType::List(item) | DataType::FixedSizeList(item, _) = of {
        let extents = shapes.iter().skip(levels.len()).step_by(rank.max(1));
        let varies = matches!(of, DataType::List(_));
        levels.push(level(of, extents, &mut lists_of_sample, varies, most)?);
        of = item.data_type();
    }
    let mut nulls = nulls;
    levels.into_iter().enumerate().rev().try_fold(elements, |members, (depth, level)| {
        let outermost = if depth == 0 { nulls.take() } else { None };
        let lists = ArrayData::builder(level.data_type.clone()).len(level.count).nulls(outermost);
        let lists = match level.offsets {
            Some(offsets) => lists.add_buffer(Buffer::from_vec(offsets)),
            None => lists,
        };
        lists.add_child_data(members).build()
    })
}

/// Returns the level whose lists have these extents, and multiplies the lists of each sample by its
/// own.
fn level<'a>(
    data_type: &'a DataType,
    extents: impl Iterator<Item = &'a i32>,
    lists_of_sample: &mut [usize],
    varies: bool,
    most: usize,
) -> std::result::Result<NestedLists<'a>, ArrowError> {
    let count = lists_of_sample.iter().fold(0_usize, |sum, lists| sum.saturating_add(*lists));
    if count > most {
        return Err(ArrowError::InvalidArgumentError(format!("{count} empty lists are too many")));
    }
    let mut offsets = varies.then(|| Vec::with_capacity(count.saturating_add(1)));
    let mut end = 0_i32;
    offsets.iter_mut().for_each(|offsets| offsets.push(0));
    for (lists, extent) in lists_of_sample.iter_mut().zip(extents) {
        if let Some(offsets) = &mut offsets {
            for _ in 0..*lists {
                end = end.checked_add(*extent).ok_or(ArrowError::OffsetOverflowError(count))?;
                offsets.push(end);
            }
        }
        *lists = lists.saturating_mul(usize::try_from(*extent).unwrap_or(0)); // not negative
    }
    Ok(NestedLists { data_type, count, offsets })
}
