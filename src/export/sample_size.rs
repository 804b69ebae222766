//! The bytes that a sample takes in a batch.

use super::elements::{exported_bytes, source_bytes};
use super::field::{Form, Target};
use crate::le::u64_of;
use crate::read::List;
use crate::{ColumnSchema, Cursor, Error, Extent, Result, Sample, Shape};

/// The most bytes that nulls of one width take beyond those of as many other values. A file has
/// them for a bit each.
pub(super) const NULL_BYTES: u64 = 64 << 20;

/// The bytes of an offset or of an extent.
const OFFSET_BYTES: u64 = 4;

/// Measures the samples of a column, which differ in size.
pub(super) struct SampleSize {
    element_bytes: u64,
    exported_bytes: u64,
    /// The bytes of the offset and of the shape of an item.
    item_bytes: u64,
    /// The bytes of an item, also of a null one, if all have the same.
    string_bytes: Option<u64>,
    /// Whether each dimension becomes a level of lists.
    is_lists: bool,
    /// The bytes of a sample that is null.
    null_bytes: u64,
}

impl SampleSize {
    /// Returns the measure of a column, or `None` if all its samples have one size.
    pub(super) fn new(column: &ColumnSchema, target: &Target) -> Option<Self> {
        if !column.shape.is_ragged() && column.levels.is_empty() {
            return None;
        }
        let rank = u64_of(target.shape.rank());
        let parts = match target.form {
            Form::Scalar | Form::Null | Form::FixedString(_) | Form::FixedTensor(_) => 0,
            Form::String | Form::List | Form::Tensor { .. } => 1 + rank,
            Form::Lists => rank,
        };
        let string_bytes = match target.form {
            Form::FixedString(bytes) => u64::try_from(bytes).ok(), // not negative
            _ => None,
        };
        let mut this = Self {
            element_bytes: u64_of(source_bytes(column.dtype, &target.element)),
            exported_bytes: exported_bytes(target.dtype, &target.element),
            item_bytes: parts * OFFSET_BYTES, // at most 17 of them
            string_bytes,
            is_lists: target.form == Form::Lists,
            null_bytes: OFFSET_BYTES,
        };
        if column.levels.is_empty() {
            let lists = this.tensor_lists(&null_extents(&target.shape));
            this.null_bytes = this.elements(0, 1).saturating_add(this.item_bytes).saturating_add(lists);
        }
        Some(this)
    }

    /// Returns the bytes of a sample that is null.
    pub(super) fn of_null(&self) -> u64 {
        self.null_bytes
    }

    /// Returns the bytes of sample `i`.
    pub(super) fn of(&self, cursor: &mut Cursor, i: u64) -> Result<u64> {
        if cursor.column().schema().levels.is_empty() {
            let sample = cursor.read(i)?;
            let elements = self.elements(u64_of(sample.bytes().len()), 1);
            return Ok(elements.saturating_add(self.item_bytes).saturating_add(self.tensor_lists(sample.shape())));
        }
        let list = cursor.read_list(i)?;
        let (lists, items) = list.entry_counts()?;
        let stored = u64_of(list.sample_bytes().len());
        let elements = self.elements(stored, items);
        let mut tensor_lists = 0_u64;
        if self.is_lists {
            each_item(&list, &mut |item| tensor_lists = tensor_lists.saturating_add(self.tensor_lists(item.shape())))?;
        }
        if self.string_bytes.is_some() && elements > stored.saturating_mul(2).saturating_add(NULL_BYTES) {
            return Err(too_many_nulls(cursor, i, elements - stored));
        }
        let parts = [
            elements,
            lists.saturating_mul(OFFSET_BYTES),
            items.saturating_mul(self.item_bytes),
            items.div_ceil(8), // whether they are null
            tensor_lists,
        ];
        Ok(parts.into_iter().fold(0, u64::saturating_add))
    }

    /// Returns the bytes of the elements of this number of items.
    fn elements(&self, stored: u64, items: u64) -> u64 {
        match self.string_bytes {
            Some(bytes) => items.saturating_mul(bytes).max(stored),
            None => (stored / self.element_bytes).saturating_mul(self.exported_bytes), // not 0
        }
    }

    /// Returns the bytes of the offsets of a tensor's lists.
    fn tensor_lists(&self, shape: &[u32]) -> u64 {
        if !self.is_lists {
            return 0;
        }
        let mut lists = 1_u64;
        let levels = shape.iter().map(|extent| {
            let own = lists;
            lists = lists.saturating_mul(u64::from(*extent));
            own
        });
        levels.fold(0_u64, u64::saturating_add).saturating_mul(OFFSET_BYTES)
    }
}

/// Returns the extents of a null tensor.
fn null_extents(shape: &Shape) -> Vec<u32> {
    let extent = |extent: &Extent| match extent {
        Extent::Fixed(extent) => *extent,
        Extent::Varying => 0,
    };
    shape.extents().iter().map(extent).collect()
}

/// Calls a function with the items of a list, also of those inside it.
fn each_item(list: &List<'_>, action: &mut dyn FnMut(&Sample<'_>)) -> Result<()> {
    if list.has_lists() {
        return (0..list.len()).try_for_each(|k| each_item(&list.list(k)?, action));
    }
    list.items().try_for_each(|item| item.map(|item| action(&item)))
}

#[cold]
fn too_many_nulls(cursor: &Cursor, i: u64, bytes: u64) -> Error {
    let column = cursor.column();
    let column = column.schema();
    let data_type = column.metadata.get(crate::arrow_type::KEY).map_or("", String::as_str);
    let message = format!(
        "the null items of a list take {bytes} bytes as {data_type}; at most {NULL_BYTES} more than its other items are \
         supported; leave the column out"
    );
    Error::over_limit(message).with_column(&column.name).with_samples(i..i.saturating_add(1))
}
