//! Builds the array of one column of a batch.
//!
//! Samples are appended in ranges, each from one or several chunks. Their offsets, elements and
//! bitmaps are appended to buffers, which become an array when the batch is full. The lists of a
//! nested column become levels of lists around the items.
//!
//! Tensors can also become nested lists, with one level for each dimension. These lists are built
//! from the shapes when the batch is full. The number of elements does not bound the number of
//! lists, because empty lists contain no elements. So a separate limit, [`MAX_EMPTY_LISTS`],
//! bounds it.

use super::elements::{ElementsBuilder, values_per_element};
use super::field::{Form, Target, extent_of};
use crate::{ColumnBuffer, ColumnSchema, Error, Extent, Result};
use arrow_array::{ArrayRef, make_array};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer};
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::{ArrowError, DataType};
use std::num::NonZeroU64;

type ArrowResult<T> = std::result::Result<T, ArrowError>;

/// A growing array.
pub(super) struct ColumnBuilder {
    target: Target,
    /// The lists around the items, outermost first.
    lists: Vec<EntriesBuilder>,
    extents: Vec<Extent>,
    /// The number of stored values that form one element of the Arrow array, such as the 16 bytes
    /// of a decimal; otherwise 1.
    values_per_element: NonZeroU64,
    /// The number of elements of the Arrow array that one stored element becomes: 2 for a complex
    /// number, otherwise 1.
    elements_per_element: u64,
    elements: ElementsBuilder,
    items: EntriesBuilder,
    /// The shapes of tensors whose shape varies.
    shapes: Vec<i32>,
}

impl ColumnBuilder {
    /// Creates the builder of a column. If `is_pairs`, each stored element, a complex number,
    /// becomes two elements of the Arrow array.
    pub(super) fn new(column: &ColumnSchema, target: Target, is_pairs: bool) -> Self {
        Self {
            extents: target.shape.extents().to_vec(),
            values_per_element: values_per_element(&target.element),
            elements_per_element: if is_pairs { 2 } else { 1 },
            elements: ElementsBuilder::new(column.dtype, target.element.clone(), target.repetition),
            target,
            lists: column.levels.iter().map(|_| EntriesBuilder::new()).collect(),
            items: EntriesBuilder::new(),
            shapes: Vec::new(),
        }
    }

    /// Returns the name of the column.
    pub(super) fn name(&self) -> &str {
        self.target.field.name()
    }

    /// Appends samples.
    pub(super) fn append(&mut self, samples: &ColumnBuffer) -> Result<()> {
        for (entries, lists) in self.lists.iter_mut().zip(samples.lists()) {
            entries.append_ends(lists.offsets().iter().skip(1).copied())?;
            entries.append_nulls(lists.validity(), lists.list_count(), lists.null_count());
        }
        match self.target.form {
            Form::Scalar | Form::FixedTensor(_) => self.elements.append(samples.bytes())?,
            Form::Null => check_all_null(samples)?,
            Form::FixedString(bytes) => self.append_fixed_strings(bytes, samples)?,
            Form::String | Form::List => self.append_lists(samples)?,
            Form::Tensor { .. } => {
                self.append_lists(samples)?;
                self.append_shapes(samples)?;
            }
            Form::Lists => {
                self.elements.append(samples.bytes())?;
                self.append_shapes(samples)?;
            }
        }
        self.items.append_nulls(samples.validity(), samples.item_count(), samples.null_count());
        Ok(())
    }

    /// Appends byte strings of a fixed width. Here, unlike in a tensilo file, a null has the full
    /// width.
    fn append_fixed_strings(&mut self, bytes: i32, samples: &ColumnBuffer) -> Result<()> {
        let width = usize::try_from(bytes).unwrap_or(0); // not negative
        for i in 0..samples.item_count() {
            let string = samples.ragged_bytes(i).unwrap_or(&[]);
            if samples.is_null(i) {
                self.elements.append(&vec![0; width])?;
            } else if string.len() == width {
                self.elements.append(string)?;
            } else {
                let message = format!(
                    "a sample has {} bytes, but the type in the metadata of the column is {}",
                    string.len(),
                    self.target.element
                );
                return Err(Error::bad_argument(message));
            }
        }
        Ok(())
    }

    fn append_lists(&mut self, samples: &ColumnBuffer) -> Result<()> {
        // the division is exact: the innermost extent is the number of values per element
        let offsets = samples.offsets().iter().skip(1);
        let offsets = offsets.map(|offset| offset.saturating_mul(self.elements_per_element) / self.values_per_element);
        self.items.append_ends(offsets)?;
        self.elements.append(samples.bytes())
    }

    fn append_shapes(&mut self, samples: &ColumnBuffer) -> Result<()> {
        let mut varying = samples.varying_extents().iter();
        for _ in 0..samples.item_count() {
            for extent in &self.extents {
                self.shapes.push(match extent {
                    Extent::Fixed(extent) => extent_of(*extent)?,
                    // `varying` has an extent for each varying dimension
                    Extent::Varying => extent_of(varying.next().copied().unwrap_or(0))?,
                });
            }
        }
        Ok(())
    }

    /// Takes all samples as an array.
    pub(super) fn take(&mut self) -> Result<ArrayRef> {
        let is_text = self.target.element == DataType::Utf8;
        let array = self.take_data().map_err(|error| match error {
            ArrowError::InvalidArgumentError(_) if is_text => Error::corrupt("R-4.9", "a sample is not valid UTF-8"),
            error => Error::bad_argument(format!("Arrow cannot hold the samples: {error}")),
        })?;
        Ok(make_array(array))
    }

    fn take_data(&mut self) -> ArrowResult<ArrayData> {
        let count = self.items.validity.len();
        // an array of type null has no bitmap
        let nulls = self.items.take_nulls().filter(|_| self.target.form != Form::Null);
        let items = if self.target.form == Form::Lists {
            let (elements, shapes) = (self.elements.take_array()?, std::mem::take(&mut self.shapes));
            tensor_lists(&self.target.items, elements, &shapes, nulls, count)?
        } else {
            let array = ArrayData::builder(self.target.items.clone()).len(count).nulls(nulls);
            self.add_content(array, count)?.build()?
        };
        let mut types = vec![self.target.field.data_type()];
        while let (true, Some(DataType::List(members))) = (types.len() < self.lists.len(), types.last()) {
            types.push(members.data_type());
        }
        let levels = self.lists.iter_mut().zip(types).rev();
        levels.into_iter().try_fold(items, |members, (lists, data_type)| {
            let nulls = lists.take_nulls();
            lists.take_lists(data_type.clone(), members).nulls(nulls).build()
        })
    }

    fn add_content(&mut self, array: ArrayDataBuilder, count: usize) -> ArrowResult<ArrayDataBuilder> {
        Ok(match self.target.form.clone() {
            Form::Null => array,
            Form::Scalar | Form::FixedString(_) | Form::Lists => array.add_buffer(self.elements.take().0),
            Form::String => array.add_buffer(self.items.take_offsets()).add_buffer(self.elements.take().0),
            Form::FixedTensor(_) => array.add_child_data(self.elements.take_array()?),
            Form::List => array.add_buffer(self.items.take_offsets()).add_child_data(self.elements.take_array()?),
            Form::Tensor { data, shape } => {
                let data = self.items.take_lists(data, self.elements.take_array()?).build()?;
                array.add_child_data(data).add_child_data(self.take_shapes(shape, count)?)
            }
        })
    }

    fn take_shapes(&mut self, data_type: DataType, count: usize) -> ArrowResult<ArrayData> {
        let shapes = std::mem::take(&mut self.shapes);
        let extents = ArrayData::builder(DataType::Int32).len(shapes.len()).add_buffer(Buffer::from_vec(shapes));
        ArrayData::builder(data_type).len(count).add_child_data(extents.build()?).build()
    }
}

fn check_all_null(samples: &ColumnBuffer) -> Result<()> {
    if samples.null_count() == samples.item_count() {
        return Ok(());
    }
    Err(Error::bad_argument("the metadata of the column states the type \"null\", but a sample has a value"))
}

/// The growing ends and nulls of entries. Entries are the items, or the lists of one level.
struct EntriesBuilder {
    /// Arrow's offsets without the first, which is 0.
    ends: Vec<i32>,
    validity: BooleanBufferBuilder,
    null_count: usize,
}

impl EntriesBuilder {
    fn new() -> Self {
        Self { ends: Vec::new(), validity: BooleanBufferBuilder::new(0), null_count: 0 }
    }

    /// Appends the ends of entries. `offsets` has these ends relative to the end of the entries
    /// that were appended before.
    fn append_ends(&mut self, offsets: impl Iterator<Item = u64>) -> Result<()> {
        let base = self.ends.last().copied().unwrap_or(0);
        for offset in offsets {
            let end = i32::try_from(offset).ok().and_then(|offset| base.checked_add(offset));
            self.ends.push(end.ok_or_else(too_long)?);
        }
        Ok(())
    }

    fn append_nulls(&mut self, validity: Option<&[u8]>, count: usize, null_count: usize) {
        match validity {
            Some(bitmap) => self.validity.append_packed_range(0..count, bitmap),
            None => self.validity.append_n(count, true),
        }
        self.null_count += null_count;
    }

    fn take_offsets(&mut self) -> Buffer {
        let mut offsets = Vec::with_capacity(self.ends.len().saturating_add(1));
        offsets.push(0);
        offsets.append(&mut self.ends);
        Buffer::from_vec(offsets)
    }

    /// Takes the validity bitmap; `None` if no entry is null.
    fn take_nulls(&mut self) -> Option<NullBuffer> {
        let validity = NullBuffer::new(self.validity.finish());
        (std::mem::take(&mut self.null_count) > 0).then_some(validity)
    }

    /// Takes the entries as lists with these members.
    fn take_lists(&mut self, data_type: DataType, members: ArrayData) -> ArrayDataBuilder {
        let lists = ArrayData::builder(data_type).len(self.ends.len());
        lists.add_buffer(self.take_offsets()).add_child_data(members)
    }
}

#[cold]
fn too_long() -> Error {
    Error::over_limit("a list has more than 2,147,483,647 elements, which Arrow's lists cannot hold")
}

/// A level can have at most this number of lists plus the number of elements. Only lists of empty
/// lists can outnumber the elements.
const MAX_EMPTY_LISTS: usize = 1 << 26;

/// A level of lists.
struct NestedLists<'a> {
    data_type: &'a DataType,
    count: usize,
    /// Arrow's offsets, if the extent varies.
    offsets: Option<Vec<i32>>,
}

/// Returns `count` tensors as nested lists of a type. `shapes` has the extents of each tensor, one
/// tensor after another.
fn tensor_lists(
    data_type: &DataType,
    elements: ArrayData,
    shapes: &[i32],
    nulls: Option<NullBuffer>,
    count: usize,
) -> ArrowResult<ArrayData> {
    let ndim = shapes.len().checked_div(count).unwrap_or(0);
    let max_lists = elements.len().saturating_add(MAX_EMPTY_LISTS);
    let mut lists_per_sample = vec![1_usize; count];
    let mut levels = Vec::new();
    let mut current = data_type;
    while let DataType::List(item) | DataType::FixedSizeList(item, _) = current {
        let extents = shapes.iter().skip(levels.len()).step_by(ndim.max(1));
        let varies = matches!(current, DataType::List(_));
        levels.push(level(current, extents, &mut lists_per_sample, varies, max_lists)?);
        current = item.data_type();
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

/// Returns the level whose lists have these extents, and multiplies the number of lists of each
/// sample by its extent.
fn level<'a>(
    data_type: &'a DataType,
    extents: impl Iterator<Item = &'a i32>,
    lists_per_sample: &mut [usize],
    varies: bool,
    max_lists: usize,
) -> ArrowResult<NestedLists<'a>> {
    let count = lists_per_sample.iter().fold(0_usize, |sum, lists| sum.saturating_add(*lists));
    if count > max_lists {
        return Err(ArrowError::InvalidArgumentError(format!(
            "the samples would become {count} lists, most of them empty, but at most {max_lists} are supported"
        )));
    }
    let mut offsets = varies.then(|| Vec::with_capacity(count.saturating_add(1)));
    let mut end = 0_i32;
    offsets.iter_mut().for_each(|offsets| offsets.push(0));
    for (lists, extent) in lists_per_sample.iter_mut().zip(extents) {
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
