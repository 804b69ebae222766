//! Converts samples in memory to Arrow arrays, without copying their values if the types allow it.
//!
//! This is for samples that have already been read, such as the batches of a loader. The values,
//! validity and lists are in the caller's buffers. (An export instead reads chunks and fills its
//! own arrays; see `column.rs`.) Each dimension becomes a level of lists. These lists have a fixed
//! size, or offsets that are computed from the extents of all items. The size of the values does
//! not bound the number of lists, because empty lists contain no values. So a separate limit,
//! [`MAX_EMPTY_LISTS`], bounds it.

use super::elements::ElementsBuilder;
use super::field::{Repetition, imported_type, plain_type};
use crate::batch::ListBuffer;
use crate::format::content::validity_bytes;
use crate::logical::arrow_type::{self, in_arrow, members, stored_element};
use crate::{ColumnSchema, DType, Extent};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use std::collections::HashMap;
use std::sync::Arc;

/// The samples of one column, as buffers that become an Arrow array.
///
/// If the column is not nested, the items are the samples.
#[derive(Clone, Debug)]
pub struct ArrowSamples<'a> {
    /// The column.
    pub schema: &'a ColumnSchema,
    /// The number of samples.
    pub sample_count: usize,
    /// The number of items.
    pub item_count: usize,
    /// The elements of all items, one after another, in the byte order of the machine.
    pub values: Buffer,
    /// The extents of the dense tensor that the values form, beginning with the number of samples;
    /// `None` if the values do not form a dense tensor.
    pub tensor: Option<&'a [u64]>,
    /// For a ragged column, the offset of each item in elements, followed by the end of the last
    /// item.
    pub offsets: &'a [u64],
    /// For a ragged column, the varying extents of each item, outermost first.
    pub varying_extents: &'a [u32],
    /// The validity bitmap of the items; `None` if no item is null.
    pub validity: Option<&'a [u8]>,
    /// The lists of each level.
    pub lists: &'a [ListBuffer],
}

impl ArrowSamples<'_> {
    /// Returns the field and the array. Scalars become primitives. Tensors become nested lists,
    /// which have a fixed size where the extent is fixed. bf16 becomes f32, because Arrow has no
    /// bf16. [Small](DType::is_small) numbers (of 4 to 8 bits) become `UInt8`, and complex numbers
    /// become pairs of `Float32`. In both cases, `tensilo.dtype` in the metadata of the field names
    /// the original type. Decimals, times and intervals get the type that their metadata names.
    ///
    /// Fails if Arrow cannot hold the samples, for example because an extent is larger than
    /// 2^31 - 1.
    ///
    /// Cost: values of bf16, bool, decimals, intervals and 4-byte dates are copied. All other
    /// values are shared.
    pub fn to_arrow(&self) -> Result<(FieldRef, ArrayData), ArrowError> {
        let schema = in_arrow(self.schema).map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
        let pairs = self.tensor.filter(|_| self.schema.dtype == DType::Complex64);
        let pairs = pairs.map(|extents| [extents, &[2]].concat());
        build(&ArrowSamples { schema: &schema, tensor: pairs.as_deref().or(self.tensor), ..self.clone() })
    }

    /// Returns whether samples of different shapes were padded to one tensor.
    fn is_padded(&self) -> bool {
        self.tensor.is_some() && (self.schema.shape.is_ragged() || !self.schema.levels.is_empty())
    }
}

type ArrowResult<T> = Result<T, ArrowError>;

fn build(column: &ArrowSamples<'_>) -> ArrowResult<(FieldRef, ArrayData)> {
    let mut data = items(column)?;
    if column.tensor.is_none() {
        for (level, lists) in column.schema.levels.iter().zip(column.lists).rev() {
            let member = Arc::new(Field::new("item", data.data_type().clone(), level.nullable));
            data = ArrayData::builder(DataType::LargeList(member))
                .len(lists.list_count())
                .nulls(nulls(lists.validity(), lists.list_count())?)
                .add_buffer(Buffer::from_vec(offsets_of(lists.offsets())?))
                .add_child_data(data)
                .build()?;
        }
    }
    let mut metadata: HashMap<String, String> = column.schema.metadata.clone().into_iter().collect();
    let mut element = data.data_type();
    while let Some(member) = members(element) {
        element = member.data_type();
    }
    if imported_type(column.schema).as_ref() == Some(element) {
        metadata.remove(arrow_type::KEY); // the type implies it
    }
    // no nulls are left after padding
    let nullable = column.schema.nullable && !column.is_padded();
    let field = Field::new(column.schema.name.as_str(), data.data_type().clone(), nullable).with_metadata(metadata);
    Ok((Arc::new(field), data))
}

/// Returns the items of a column: its samples, or the members of its innermost lists.
fn items(column: &ArrowSamples<'_>) -> ArrowResult<ArrayData> {
    let schema = column.schema;
    if let Some(extents) = column.tensor {
        let count = column.sample_count;
        let validity = if column.is_padded() { None } else { column.validity };
        let inner: Vec<Dimension> = extents.iter().skip(1).map(|extent| Dimension::Fixed(*extent)).collect();
        return with_nulls(nested(column, inner, count)?, nulls(validity, count)?);
    }
    let count = column.item_count;
    let nulls = nulls(column.validity, count)?;
    if schema.dtype.is_string() {
        let data_type = if schema.dtype == DType::Utf8 { DataType::LargeUtf8 } else { DataType::LargeBinary };
        let strings = ArrayData::builder(data_type).len(count).nulls(nulls);
        let offsets = Buffer::from_vec(offsets_of(column.offsets)?);
        return strings.add_buffer(offsets).add_buffer(column.values.clone()).build();
    }
    with_nulls(nested(column, dimensions(column, count)?, count)?, nulls)
}

/// A dimension of items.
enum Dimension {
    /// The same extent in all items.
    Fixed(u64),
    /// The offsets of all lists of this dimension.
    Varying(Vec<i64>),
}

/// The maximum number of lists in a level is this constant plus the size of the values in bytes.
/// Only lists of empty lists can exceed it.
const MAX_EMPTY_LISTS: u64 = 1 << 24;

/// Returns the dimensions of the items of a column. Extents can vary from item to item.
fn dimensions(column: &ArrowSamples<'_>, count: usize) -> ArrowResult<Vec<Dimension>> {
    let max_lists = MAX_EMPTY_LISTS.saturating_add(column.values.len() as u64); // exact: a `usize` has at most 64 bits
    let varying = column.schema.shape.varying_count();
    // for each item, the number of lists in the current dimension
    let mut lists = vec![1_u64; count];
    let (mut all, mut number) = (Vec::new(), 0);
    for extent in column.schema.shape.extents() {
        let own: Vec<u64> = match extent {
            Extent::Fixed(extent) => vec![u64::from(*extent); count],
            Extent::Varying => {
                let own = column.varying_extents.iter().skip(number).step_by(varying.max(1));
                number += 1;
                own.map(|extent| u64::from(*extent)).collect()
            }
        };
        if lists.iter().fold(0_u64, |sum, lists| sum.saturating_add(*lists)) > max_lists {
            return Err(ArrowError::InvalidArgumentError("the samples would become too many empty lists".to_owned()));
        }
        all.push(match extent {
            Extent::Fixed(extent) => Dimension::Fixed(u64::from(*extent)),
            Extent::Varying => {
                let lengths = lists.iter().zip(&own).flat_map(|(lists, length)| (0..*lists).map(move |_| *length));
                let ends = lengths.scan(0_u64, |end, length| {
                    *end = end.saturating_add(length);
                    Some(*end)
                });
                Dimension::Varying(offsets_of(&std::iter::once(0).chain(ends).collect::<Vec<_>>())?)
            }
        });
        lists.iter_mut().zip(&own).for_each(|(lists, extent)| *lists = lists.saturating_mul(*extent));
    }
    Ok(all)
}

fn with_nulls(data: ArrayData, nulls: Option<NullBuffer>) -> ArrowResult<ArrayData> {
    if nulls.is_some() { data.into_builder().nulls(nulls).build() } else { Ok(data) }
}

/// Returns the elements of `count` items as nested lists, with one level for each dimension.
fn nested(column: &ArrowSamples<'_>, mut dimensions: Vec<Dimension>, count: usize) -> ArrowResult<ArrayData> {
    if packed_type(column).and_then(|of| stored_element(&of)?.extent).is_some() {
        dimensions.pop(); // the innermost dimension has the stored values of one element
    }
    let mut counts = vec![count];
    for dimension in &dimensions {
        let before = counts.last().copied().unwrap_or(0);
        counts.push(match dimension {
            Dimension::Fixed(extent) => before.saturating_mul(usize::try_from(*extent).unwrap_or(usize::MAX)),
            Dimension::Varying(offsets) => offsets.last().and_then(|end| usize::try_from(*end).ok()).unwrap_or(0),
        });
    }
    let mut data = elements(column)?;
    for (dimension, count) in dimensions.iter().zip(&counts).rev() {
        let member = Arc::new(Field::new("item", data.data_type().clone(), false));
        let lists = match dimension {
            Dimension::Fixed(extent) => {
                let width = i32::try_from(*extent);
                let width = width.map_err(|_| {
                    ArrowError::InvalidArgumentError(format!("an extent of {extent} is too large for Arrow"))
                })?;
                ArrayData::builder(DataType::FixedSizeList(member, width))
            }
            Dimension::Varying(offsets) => {
                ArrayData::builder(DataType::LargeList(member)).add_buffer(Buffer::from_vec(offsets.clone()))
            }
        };
        data = lists.len(*count).add_child_data(data).build()?;
    }
    Ok(data)
}

/// Returns the type of decimals or intervals, whose elements are stored in another form; `None` for
/// other types.
fn packed_type(column: &ArrowSamples<'_>) -> Option<DataType> {
    imported_type(column.schema).filter(|data_type| stored_element(data_type).is_some())
}

/// Returns all elements of a column.
fn elements(column: &ArrowSamples<'_>) -> ArrowResult<ArrayData> {
    let (values, dtype) = (&column.values, column.schema.dtype);
    let converted = if dtype == DType::Bf16 { Some(DataType::Float32) } else { packed_type(column) };
    if let Some(data_type) = converted {
        let mut elements = ElementsBuilder::new(dtype, data_type, Repetition::Required);
        elements.append(values).map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
        return elements.take_array();
    }
    let count = values.len() / dtype.element_bytes();
    let primitive = |data_type: DataType, buffer: Buffer| -> ArrowResult<ArrayData> {
        ArrayDataBuilder::new(data_type).len(count).add_buffer(buffer).align_buffers(true).build()
    };
    match dtype {
        DType::Bool => {
            let bools: BooleanBuffer = values.iter().map(|byte| *byte != 0).collect();
            primitive(DataType::Boolean, bools.into_inner())
        }
        dtype => match narrow_times(column) {
            Some((data_type, narrow)) if dtype == DType::I64 => primitive(data_type, Buffer::from_vec(narrow)),
            _ => primitive(data_type(column, dtype), column.values.clone()),
        },
    }
}

/// Returns dates and times that are stored in 8 bytes but take 4 bytes in Arrow. Returns `None` for
/// other types, or if a value does not fit into 4 bytes.
fn narrow_times(column: &ArrowSamples<'_>) -> Option<(DataType, Vec<i32>)> {
    let is_narrow = |source: &DataType| matches!(source, DataType::Date32 | DataType::Time32(_));
    let data_type = imported_type(column.schema).filter(is_narrow)?;
    let narrow = column.values.as_chunks().0.iter().map(|bytes| i32::try_from(i64::from_ne_bytes(*bytes)).ok());
    Some((data_type, narrow.collect::<Option<_>>()?))
}

/// Returns the type of elements. This is the source's type if it is as wide as the stored type.
fn data_type(column: &ArrowSamples<'_>, dtype: DType) -> DataType {
    let is_time = |source: &DataType| match source {
        DataType::Timestamp(..) | DataType::Duration(_) | DataType::Time64(_) | DataType::Date64 => dtype == DType::I64,
        DataType::Date32 | DataType::Time32(_) => dtype == DType::I32,
        _ => false,
    };
    imported_type(column.schema).filter(is_time).unwrap_or_else(|| plain_type(dtype))
}

fn offsets_of(offsets: &[u64]) -> ArrowResult<Vec<i64>> {
    let offset = |offset: &u64| i64::try_from(*offset).map_err(|_| ArrowError::OffsetOverflowError(0));
    if offsets.is_empty() { Ok(vec![0]) } else { offsets.iter().map(offset).collect() }
}

fn nulls(validity: Option<&[u8]>, count: usize) -> ArrowResult<Option<NullBuffer>> {
    let Some(bytes) = validity else { return Ok(None) };
    if bytes.len() < validity_bytes(count) {
        let message = format!("the validity bitmap has {} bytes, which are too few for {count} items", bytes.len());
        return Err(ArrowError::InvalidArgumentError(message));
    }
    Ok(Some(NullBuffer::new(BooleanBuffer::new(Buffer::from(bytes.to_vec()), 0, count))))
}
