//! Converts samples to Arrow record batches, and back.

use crate::nested::columns::{Columns, Element, IndexedColumns, Layout};
use anyhow::{Context, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, Float32Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields, Schema};
use std::ops::Range;
use std::sync::Arc;

/// The name of list members.
const ITEM: &str = "item";

pub fn schema(layout: &Layout) -> Schema {
    Schema::new(vec![Field::new(layout.name, list_of(layout, item_type(layout)), false)])
}

fn list_of(layout: &Layout, item: DataType) -> DataType {
    if layout.is_list { DataType::List(Arc::new(Field::new(ITEM, item, false))) } else { item }
}

fn item_type(layout: &Layout) -> DataType {
    if layout.fields.is_empty() { value_type(layout) } else { DataType::Struct(struct_fields(layout)) }
}

fn value_type(layout: &Layout) -> DataType {
    match layout.element {
        Element::Text => DataType::Utf8,
        Element::F32 => DataType::List(Arc::new(Field::new(ITEM, DataType::Float32, false))),
    }
}

fn struct_fields(layout: &Layout) -> Fields {
    layout.fields.iter().map(|field| Field::new(*field, value_type(layout), false)).collect()
}

/// Returns these samples as a batch. `schema` must be the schema of their layout.
pub fn batch(samples: &IndexedColumns, range: Range<usize>, schema: Arc<Schema>) -> Result<RecordBatch> {
    let layout = samples.layout();
    let items = samples.items(&range);
    let values = (0..layout.field_count()).map(|field| values(samples, field, &items)).collect::<Result<Vec<_>>>()?;
    let item = match layout.fields {
        [] => values.into_iter().next().context("no field")?,
        _ => Arc::new(StructArray::try_new(struct_fields(layout), values, None)?),
    };
    let column = if layout.is_list {
        let field = Arc::new(Field::new(ITEM, item_type(layout), false));
        Arc::new(ListArray::try_new(field, offsets(&samples.columns.lists[range]), item, None)?)
    } else {
        item
    };
    Ok(RecordBatch::try_new(schema, vec![column])?)
}

fn values(samples: &IndexedColumns, field: usize, items: &Range<usize>) -> Result<ArrayRef> {
    let column = &samples.columns.fields[field];
    let offsets = offsets(&column.lengths[items.clone()]);
    let bytes = Buffer::from(&column.bytes[samples.bytes(field, items)]);
    Ok(match samples.layout().element {
        Element::Text => Arc::new(StringArray::try_new(offsets, bytes, None)?),
        Element::F32 => {
            let numbers = Float32Array::new(ScalarBuffer::from(bytes), None);
            let field = Arc::new(Field::new(ITEM, DataType::Float32, false));
            Arc::new(ListArray::try_new(field, offsets, Arc::new(numbers), None)?)
        }
    })
}

fn offsets(lengths: &[u32]) -> OffsetBuffer<i32> {
    OffsetBuffer::from_lengths(lengths.iter().map(|&length| length as usize))
}

/// The buffers of a batch.
pub struct Arrays {
    lists: Option<OffsetBuffer<i32>>,
    /// For each field, the offsets of its items in elements, and the elements.
    fields: Vec<(OffsetBuffer<i32>, Buffer)>,
    element: Element,
    rows: usize,
}

impl Arrays {
    pub fn new(layout: &Layout, batch: &RecordBatch) -> Result<Self> {
        let column = batch.columns().first().context("no column")?;
        let (lists, item) = if layout.is_list {
            let list = column.as_list_opt::<i32>().context("the column is not a list")?;
            (Some(list.offsets().clone()), list.values())
        } else {
            (None, column)
        };
        let values = if layout.fields.is_empty() {
            std::slice::from_ref(item)
        } else {
            item.as_struct_opt().context("the items are not structs")?.columns()
        };
        let fields = values.iter().map(|array| buffers(layout.element, array)).collect::<Result<_>>()?;
        Ok(Self { lists, fields, element: layout.element, rows: batch.num_rows() })
    }

    /// Returns whether all elements are in this memory, so that nothing was copied.
    pub fn is_in(&self, memory: &Buffer) -> bool {
        let range = memory.as_slice().as_ptr_range();
        self.fields.iter().all(|(_, elements)| range.contains(&elements.as_ptr()))
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends these rows to `out`.
    #[inline]
    pub fn copy(&self, rows: Range<usize>, out: &mut Columns) {
        let mut items = rows.clone();
        if let Some(lists) = &self.lists {
            let lists = &lists[rows.start..=rows.end];
            out.lists.extend(lengths(lists));
            items = range(lists);
        }
        for ((offsets, elements), out) in self.fields.iter().zip(&mut out.fields) {
            let offsets = &offsets[items.start..=items.end];
            out.lengths.extend(lengths(offsets));
            let Range { start, end } = range(offsets);
            let width = self.element.bytes();
            out.bytes.extend_from_slice(&elements[width * start..width * end]);
        }
    }
}

/// Returns the lengths between ascending offsets.
fn lengths(offsets: &[i32]) -> impl ExactSizeIterator<Item = u32> {
    offsets.windows(2).map(|pair| (pair[1] - pair[0]) as u32)
}

fn range(offsets: &[i32]) -> Range<usize> {
    offsets[0] as usize..offsets[offsets.len() - 1] as usize
}

fn buffers(element: Element, array: &ArrayRef) -> Result<(OffsetBuffer<i32>, Buffer)> {
    if element == Element::Text {
        let texts = array.as_string_opt::<i32>().context("the values are not texts")?;
        return Ok((texts.offsets().clone(), texts.values().clone()));
    }
    let lists = array.as_list_opt::<i32>().context("the values are not lists")?;
    let numbers = lists.values().as_primitive_opt::<Float32Type>().context("the values are not 32-bit floats")?;
    Ok((lists.offsets().clone(), numbers.values().inner().clone()))
}
