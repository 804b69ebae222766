//! One column of a batch: collects samples, and makes an array of them.

use super::elements::{ElementsBuilder, values_per_element};
use super::field::{Form, Target};
use super::tensor_lists::{self, extent_of};
use crate::list_buffer::ListBuffer;
use crate::{ColumnBuffer, ColumnSchema, Error, Extent, Result};
use arrow_array::{ArrayRef, make_array};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer};
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::{ArrowError, DataType};
use std::num::NonZeroU64;

type ArrowResult<T> = std::result::Result<T, ArrowError>;

/// An array that grows.
pub(super) struct ColumnBuilder {
    target: Target,
    /// The lists around the items, outermost first.
    lists: Vec<ListsBuilder>,
    extents: Vec<Extent>,
    /// The number of stored values that an element is made of.
    values_per_element: NonZeroU64,
    /// The number of elements for each element of the table.
    elements_per_element: u64,
    elements: ElementsBuilder,
    /// Arrow's offsets, without the first, which is 0.
    ends: Vec<i32>,
    /// Shapes of tensors of variable shape.
    shapes: Vec<i32>,
    validity: BooleanBufferBuilder,
    null_count: usize,
}

impl ColumnBuilder {
    /// Makes the array of a column. `is_pairs` tells that two of its elements are one in the table.
    pub(super) fn new(column: &ColumnSchema, target: Target, is_pairs: bool) -> Self {
        Self {
            extents: target.shape.extents().to_vec(),
            values_per_element: values_per_element(&target.element),
            elements_per_element: if is_pairs { 2 } else { 1 },
            elements: ElementsBuilder::new(column.dtype, target.element.clone(), target.parts),
            target,
            lists: column.levels.iter().map(|_| ListsBuilder::new()).collect(),
            ends: Vec::new(),
            shapes: Vec::new(),
            validity: BooleanBufferBuilder::new(0),
            null_count: 0,
        }
    }

    /// Returns the name of the column.
    pub(super) fn name(&self) -> &str {
        self.target.field.name()
    }

    /// Appends samples.
    pub(super) fn append(&mut self, samples: &ColumnBuffer) -> Result<()> {
        for (builder, lists) in self.lists.iter_mut().zip(samples.lists()) {
            builder.append(lists)?;
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
        match samples.validity() {
            Some(bitmap) => self.validity.append_packed_range(0..samples.item_count(), bitmap),
            None => self.validity.append_n(samples.item_count(), true),
        }
        self.null_count += samples.null_count();
        Ok(())
    }

    /// A null takes elements here, unlike in a file.
    fn append_fixed_strings(&mut self, bytes: i32, samples: &ColumnBuffer) -> Result<()> {
        let due = usize::try_from(bytes).unwrap_or(0); // not negative
        for i in 0..samples.item_count() {
            let string = samples.ragged_bytes(i).unwrap_or(&[]);
            if samples.is_null(i) {
                self.elements.append(&vec![0; due])?;
            } else if string.len() == due {
                self.elements.append(string)?;
            } else {
                let message = format!(
                    "a sample of {} bytes in a column that its metadata call {}",
                    string.len(),
                    self.target.element
                );
                return Err(Error::bad_argument(message));
            }
        }
        Ok(())
    }

    fn append_lists(&mut self, samples: &ColumnBuffer) -> Result<()> {
        let base = self.ends.last().copied().unwrap_or(0);
        let end = |offset: u64| i32::try_from(offset).ok().and_then(|offset| base.checked_add(offset));
        // exact: the innermost extent is this number
        let offsets = samples.offsets().iter().skip(1);
        let offsets = offsets.map(|offset| offset.saturating_mul(self.elements_per_element) / self.values_per_element);
        for offset in offsets {
            self.ends.push(end(offset).ok_or_else(too_long)?);
        }
        self.elements.append(samples.bytes())
    }

    fn append_shapes(&mut self, samples: &ColumnBuffer) -> Result<()> {
        let mut varying = samples.extents().iter();
        for _ in 0..samples.item_count() {
            for extent in &self.extents {
                self.shapes.push(match extent {
                    Extent::Fixed(extent) => extent_of(*extent)?,
                    // as many as vary
                    Extent::Varying => extent_of(varying.next().copied().unwrap_or(0))?,
                });
            }
        }
        Ok(())
    }

    /// Returns all samples as an array, and empties the builder.
    pub(super) fn take(&mut self) -> Result<ArrayRef> {
        let is_text = self.target.element == DataType::Utf8;
        let array = self.take_data().map_err(|error| match error {
            ArrowError::InvalidArgumentError(_) if is_text => Error::corrupt("R-4.9", "a text is not UTF-8"),
            error => Error::bad_argument(format!("Arrow cannot hold the samples: {error}")),
        })?;
        Ok(make_array(array))
    }

    fn take_data(&mut self) -> ArrowResult<ArrayData> {
        let count = self.validity.len();
        let validity = NullBuffer::new(self.validity.finish());
        // an array of type null has no bitmap
        let has_nulls = std::mem::take(&mut self.null_count) > 0 && self.target.form != Form::Null;
        let nulls = has_nulls.then_some(validity);
        let items = if self.target.form == Form::Lists {
            let (elements, shapes) = (self.elements.take_array()?, std::mem::take(&mut self.shapes));
            tensor_lists::nested(&self.target.items, elements, &shapes, nulls, count)?
        } else {
            let array = ArrayData::builder(self.target.items.clone()).len(count).nulls(nulls);
            self.add_content(array, count)?.build()?
        };
        let mut types = vec![self.target.field.data_type()];
        while let (true, Some(DataType::List(members))) = (types.len() < self.lists.len(), types.last()) {
            types.push(members.data_type());
        }
        let levels = self.lists.iter_mut().zip(types).rev();
        levels.into_iter().try_fold(items, |members, (lists, data_type)| lists.take(data_type.clone(), members))
    }

    fn add_content(&mut self, array: ArrayDataBuilder, count: usize) -> ArrowResult<ArrayDataBuilder> {
        Ok(match self.target.form.clone() {
            Form::Null => array,
            Form::Scalar | Form::FixedString(_) | Form::Lists => array.add_buffer(self.elements.take().0),
            Form::String => array.add_buffer(self.take_offsets()).add_buffer(self.elements.take().0),
            Form::FixedTensor(_) => array.add_child_data(self.elements.take_array()?),
            Form::List => array.add_buffer(self.take_offsets()).add_child_data(self.elements.take_array()?),
            Form::Tensor { data, shape } => {
                array.add_child_data(self.take_lists(data, count)?).add_child_data(self.take_shapes(shape, count)?)
            }
        })
    }

    fn take_offsets(&mut self) -> Buffer {
        let mut offsets = Vec::with_capacity(self.ends.len().saturating_add(1));
        offsets.push(0);
        offsets.append(&mut self.ends);
        Buffer::from_vec(offsets)
    }

    fn take_lists(&mut self, data_type: DataType, count: usize) -> ArrowResult<ArrayData> {
        ArrayData::builder(data_type)
            .len(count)
            .add_buffer(self.take_offsets())
            .add_child_data(self.elements.take_array()?)
            .build()
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
    Err(Error::bad_argument("a sample that is not null, in a column that its metadata call null"))
}

/// The lists of one level of a nested column.
struct ListsBuilder {
    /// Arrow's offsets, without the first, which is 0.
    ends: Vec<i32>,
    validity: BooleanBufferBuilder,
    null_count: usize,
}

impl ListsBuilder {
    fn new() -> Self {
        Self { ends: Vec::new(), validity: BooleanBufferBuilder::new(0), null_count: 0 }
    }

    fn append(&mut self, lists: &ListBuffer) -> Result<()> {
        let base = self.ends.last().copied().unwrap_or(0);
        for &offset in lists.offsets().iter().skip(1) {
            let end = i32::try_from(offset).ok().and_then(|offset| base.checked_add(offset));
            self.ends.push(end.ok_or_else(too_long)?);
        }
        match lists.validity() {
            Some(bitmap) => self.validity.append_packed_range(0..lists.list_count(), bitmap),
            None => self.validity.append_n(lists.list_count(), true),
        }
        self.null_count += lists.null_count();
        Ok(())
    }

    /// Returns the lists with these members, and empties the builder.
    fn take(&mut self, data_type: DataType, members: ArrayData) -> ArrowResult<ArrayData> {
        let count = self.ends.len();
        let validity = NullBuffer::new(self.validity.finish());
        let has_nulls = std::mem::take(&mut self.null_count) > 0;
        let mut offsets = Vec::with_capacity(count.saturating_add(1));
        offsets.push(0);
        offsets.append(&mut self.ends);
        let lists = ArrayData::builder(data_type).len(count).nulls(has_nulls.then_some(validity));
        lists.add_buffer(Buffer::from_vec(offsets)).add_child_data(members).build()
    }
}

#[cold]
fn too_long() -> Error {
    Error::over_limit("a list has more than 2,147,483,647 elements, which Arrow's lists cannot hold")
}
