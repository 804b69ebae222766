//! Turns a single sample into a batch, for [`Writer::push`](crate::Writer::push).
//!
//! Everything is written in batches, so single samples lead to the same bytes and the same errors
//! as batches. A sample of a column without lists becomes a batch that borrows its bytes. The lists
//! and items of a nested sample are first copied into a [`NestedSample`]. If at most one extent
//! varies, a value need not state its extents, because they follow from its length.

use crate::batch::{ColumnBatch, ListBuffer, check_type, push_bit, pushed_inner_bytes};
use crate::bytes::memory;
use crate::format::content::product_of_extents;
use crate::format::{ColumnSchema, DType, Extent};
use crate::value::{OneSample, Value, ValueContent};
use crate::{Error, Result, limits};

/// Returns a batch of one sample. If the value does not state its extents, they are stored in
/// `extents`. `zeros` must have enough zeros for a null.
pub(super) fn single_sample<'a>(
    column: &ColumnSchema,
    value: &'a Value<'a>,
    extents: &'a mut [u32; limits::DIMENSIONS],
    zeros: &'a [u8],
) -> Result<ColumnBatch<'a>> {
    const NULL: &[u8] = &[0];
    let sample = match &value.0 {
        ValueContent::One(sample) => sample,
        ValueContent::List(_) => return Err(Error::bad_argument("the value is a list, but the column is not nested")),
        ValueContent::Null => {
            let varying = column.shape.varying_count();
            let extents = extents.get(..varying).unwrap_or(&[]); // all of them are 0
            let bytes = if varying == 0 { pushed_inner_bytes(column)? } else { 0 };
            let zeros = zeros.get(..bytes).unwrap_or(&[]);
            return Ok(ColumnBatch::from_bytes(column.pushed_dtype(), 1, extents, zeros).with_validity(NULL));
        }
    };
    let extents = match sample.extents {
        Some(extents) => extents,
        None => infer_extents(column, sample.bytes.len(), extents)?,
    };
    Ok(ColumnBatch::from_bytes(sample.dtype, 1, extents, &sample.bytes))
}

/// Returns the varying extents of a sample with this many bytes, and stores them in `out`. Fails if
/// more than one extent varies.
pub(super) fn infer_extents<'a>(
    column: &ColumnSchema,
    bytes: usize,
    out: &'a mut [u32; limits::DIMENSIONS],
) -> Result<&'a [u32]> {
    match column.shape.varying_count() {
        0 => Ok(&[]),
        1 => {
            let inner = pushed_inner_bytes(column)?;
            let extent = bytes.checked_div(inner).unwrap_or(0);
            let [first, ..] = out;
            *first = u32::try_from(extent).map_err(|_| Error::over_limit("an extent is larger than 4294967295"))?;
            Ok(std::slice::from_ref(first))
        }
        varying => {
            let fixed = column.shape.extents().iter().filter(|extent| matches!(extent, Extent::Fixed(_)));
            let message = format!(
                "the sample has {varying} varying extents (and {} fixed), which cannot be inferred from its length; \
                 push the sample with its extents",
                fixed.count()
            );
            Err(Error::bad_argument(message))
        }
    }
}

/// The lists and items of one sample.
pub(super) struct NestedSample {
    /// The type of the items; `None` if all are null.
    dtype: Option<DType>,
    levels: Vec<ListBuffer>,
    extents: Vec<u32>,
    values: Vec<u8>,
    validity: Vec<u8>,
    item_count: usize,
}

impl NestedSample {
    pub(super) fn new(column: &ColumnSchema, value: &Value) -> Result<Self> {
        let mut levels = vec![ListBuffer::default(); column.levels.len()];
        levels.iter_mut().try_for_each(ListBuffer::clear)?;
        let mut sample =
            Self { dtype: None, levels, extents: Vec::new(), values: Vec::new(), validity: Vec::new(), item_count: 0 };
        sample.add(column, value, 0)?;
        Ok(sample)
    }

    pub(super) fn as_batch(&self, column: &ColumnSchema) -> ColumnBatch<'_> {
        let dtype = self.dtype.unwrap_or(column.pushed_dtype());
        let batch = ColumnBatch::from_bytes(dtype, self.item_count, &self.extents, &self.values);
        batch.with_validity(&self.validity).in_buffers(&self.levels)
    }

    /// Adds a list of a level, or an item below the last level.
    fn add(&mut self, column: &ColumnSchema, value: &Value, level: usize) -> Result<()> {
        let Some(lists) = self.levels.get_mut(level) else { return self.add_item(column, value) };
        match &value.0 {
            ValueContent::Null => lists.push(None),
            ValueContent::List(entries) => {
                let count = u32::try_from(entries.len())
                    .map_err(|_| Error::over_limit("a list has more than 4294967295 members"))?;
                lists.push(Some(count))?;
                // at most 16 levels
                entries.iter().try_for_each(|entry| self.add(column, entry, level + 1))
            }
            ValueContent::One(_) => Err(wrong_depth(column)),
        }
    }

    fn add_item(&mut self, column: &ColumnSchema, value: &Value) -> Result<()> {
        push_bit(&mut self.validity, self.item_count, !matches!(value.0, ValueContent::Null))?;
        match &value.0 {
            ValueContent::One(item) => self.add_values(column, item)?,
            ValueContent::List(_) => return Err(wrong_depth(column)),
            ValueContent::Null => {
                let varying = column.shape.varying_count();
                self.extents.resize(self.extents.len() + varying, 0); // at most 16 more
                let bytes = if varying == 0 { pushed_inner_bytes(column)? } else { 0 };
                let length = self.values.len().saturating_add(bytes);
                memory::resize(&mut self.values, length, 0)?;
            }
        }
        self.item_count += 1; // at most the entries in memory
        Ok(())
    }

    fn add_values(&mut self, column: &ColumnSchema, item: &OneSample) -> Result<()> {
        let dtype = *self.dtype.get_or_insert(item.dtype);
        if dtype != item.dtype {
            return Err(Error::wrong_type(format!("the sample mixes items of types {dtype} and {}", item.dtype)));
        }
        check_type(column, dtype)?;
        let mut inferred = [0; limits::DIMENSIONS];
        let extents = match item.extents {
            Some(extents) => extents,
            None => infer_extents(column, item.bytes.len(), &mut inferred)?,
        };
        self.check_length(column, extents, item.bytes.len())?;
        self.extents.extend_from_slice(extents);
        self.values.extend_from_slice(&item.bytes);
        Ok(())
    }

    /// Fails if an item has too few or too many varying extents, or if its number of bytes does not
    /// match its extents. The later check of the sums over all items cannot detect this.
    fn check_length(&self, column: &ColumnSchema, extents: &[u32], bytes: usize) -> Result<()> {
        let (item, shape) = (self.item_count, &column.shape);
        let varying = shape.varying_count();
        if extents.len() != varying {
            let message =
                format!("item {item} of the sample has {} varying extents; shape {shape} has {varying}", extents.len());
            return Err(Error::bad_argument(message));
        }
        let expected =
            product_of_extents(extents).and_then(|count| count.checked_mul(pushed_inner_bytes(column).ok()?));
        if expected == Some(bytes) {
            return Ok(());
        }
        let expected = expected.map_or("more than fits in memory".to_owned(), |expected| expected.to_string());
        let given = if varying == 0 { String::new() } else { format!(" with the varying extents {extents:?}") };
        let message = format!("item {item} of the sample has {bytes} bytes; shape {shape}{given} takes {expected}");
        Err(Error::bad_argument(message))
    }
}

fn wrong_depth(column: &ColumnSchema) -> Error {
    let message = format!("the column needs lists of depth {}, but the value has another depth", column.levels.len());
    Error::bad_argument(message)
}
