//! Samples gathered from a file.

use super::sample::check_type;
use crate::batch::ColumnBatch;
use crate::format::content::{bit, validity_bytes};
use crate::format::{ColumnSchema, DType, Shape};
use crate::le::u64_of;
use crate::list_buffer::ListBuffer;
use crate::pod::{self, AlignedBytes, Element};
use crate::{Error, Result, memory};

/// Samples of one column side by side, in the order of the request. The next call that fills the
/// buffer reuses its memory. A call that fails leaves it empty, whatever was in it before.
///
/// Of a nested column, [`ColumnBuffer::lists`] has the lists. Values, offsets, extents and nulls
/// are those of the items.
#[derive(Clone, Debug)]
pub struct ColumnBuffer {
    dtype: DType,
    shape: Shape,
    /// The lists of each level.
    pub(in crate::read) levels: Vec<ListBuffer>,
    pub(in crate::read) item_count: usize,
    pub(in crate::read) values: AlignedBytes,
    pub(in crate::read) offsets: Vec<u64>,
    pub(in crate::read) extents: Vec<u32>,
    pub(in crate::read) validity: Vec<u8>,
    pub(in crate::read) null_count: usize,
}

impl Default for ColumnBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl ColumnBuffer {
    /// Returns an empty buffer, for any column.
    pub fn new() -> Self {
        Self {
            dtype: DType::U8,
            shape: Shape::scalar(),
            levels: Vec::new(),
            item_count: 0,
            values: AlignedBytes::default(),
            offsets: Vec::new(),
            extents: Vec::new(),
            validity: Vec::new(),
            null_count: 0,
        }
    }

    /// Empties the buffer for `sample_count` samples of a column, all of them present. The lists
    /// and items of a nested column are added later.
    pub(in crate::read) fn begin(&mut self, column: &ColumnSchema, sample_count: usize) -> Result<()> {
        self.begin_lists(column.levels.len())?;
        self.dtype = column.dtype;
        if self.shape != column.shape {
            self.shape.clone_from(&column.shape);
        }
        self.values.clear();
        self.offsets.clear();
        self.extents.clear();
        if column.levels.is_empty() {
            memory::resize(&mut self.validity, validity_bytes(sample_count), 0xFF)?;
            self.item_count = sample_count;
        }
        Ok(())
    }

    /// Removes all samples, and keeps the memory: the state after a call that has failed.
    pub(in crate::read) fn clear(&mut self) {
        self.levels.iter_mut().for_each(ListBuffer::remove_all);
        self.item_count = 0;
        self.values.clear();
        self.offsets.clear();
        self.extents.clear();
        self.validity.clear();
        self.null_count = 0;
    }

    /// Forgets all lists and the nulls of items, for lists of `count` levels.
    pub(in crate::read) fn begin_lists(&mut self, count: usize) -> Result<()> {
        self.item_count = 0;
        self.null_count = 0;
        self.validity.clear();
        let more = count.saturating_sub(self.levels.len());
        memory::reserve(&mut self.levels, more)?;
        self.levels.resize_with(count, ListBuffer::default);
        self.levels.iter_mut().try_for_each(ListBuffer::clear)
    }

    /// Fills the buffer with samples of a column that are all null.
    #[cfg(feature = "arrow")]
    pub(crate) fn fill_with_nulls(&mut self, column: &ColumnSchema, sample_count: usize) -> Result<()> {
        self.begin(column, sample_count)?;
        if let Some(lists) = self.levels.first_mut() {
            (0..sample_count).try_for_each(|_| lists.push(None))?;
        }
        self.validity.fill(0);
        self.null_count = self.item_count;
        if column.shape.is_ragged() {
            memory::resize(&mut self.offsets, self.item_count.saturating_add(1), 0)?;
            return memory::resize(&mut self.extents, self.item_count.saturating_mul(column.shape.varying_count()), 0);
        }
        let elements = column.shape.inner_elements().and_then(|elements| usize::try_from(elements).ok());
        let bytes = elements.and_then(|elements| elements.checked_mul(column.dtype.element_bytes()));
        let bytes = bytes.and_then(|bytes| bytes.checked_mul(self.item_count));
        self.values.resize(bytes.ok_or_else(|| Error::over_limit("null samples do not fit in memory"))?)?;
        self.values.as_mut_slice().fill(0);
        Ok(())
    }

    /// Fills the buffer with samples that are in memory, as a reader fills it with those of a file.
    /// Values have the type of the column, also if it has a cast. It is the inverse of
    /// [`ColumnBuffer::as_batch`].
    ///
    /// Fails if the batch is not of the column.
    pub fn fill(&mut self, column: &ColumnSchema, batch: &ColumnBatch<'_>) -> Result<()> {
        self.try_fill(column, batch).inspect_err(|_| self.clear())
    }

    fn try_fill(&mut self, column: &ColumnSchema, batch: &ColumnBatch<'_>) -> Result<()> {
        batch.check(&ColumnSchema { cast: None, ..column.clone() })?;
        self.begin(column, batch.item_count)?;
        for (level, buffer) in self.levels.iter_mut().enumerate() {
            let Some(lists) = batch.lists(level) else { continue }; // both have all levels
            (0..lists.count()).try_for_each(|i| buffer.push(lists.length(i).filter(|_| !lists.is_null(i))))?;
        }
        self.item_count = batch.item_count;
        memory::resize(&mut self.validity, validity_bytes(self.item_count), 0xFF)?;
        (0..self.item_count).filter(|&i| batch.is_null(i)).for_each(|i| self.set_null(i));
        self.values.resize(batch.values.len())?;
        self.values.as_mut_slice().copy_from_slice(batch.values); // equal lengths
        if !column.shape.is_ragged() {
            return Ok(());
        }
        memory::extend(&mut self.extents, batch.extents)?;
        memory::reserve(&mut self.offsets, self.item_count.saturating_add(1))?;
        self.offsets.push(0);
        let (inner, mut end) = (column.shape.inner_elements().unwrap_or(0), 0_u64);
        for extents in self.extents.chunks_exact(column.shape.varying_count()) {
            let elements = extents.iter().map(|&extent| u64::from(extent)).fold(inner, u64::saturating_mul);
            end = end.saturating_add(elements);
            self.offsets.push(end);
        }
        Ok(())
    }

    pub(in crate::read) fn set_null(&mut self, position: usize) {
        if let Some(byte) = self.validity.get_mut(position / 8) {
            *byte &= !(1 << (position % 8));
            self.null_count += 1;
        }
    }

    /// Returns the number of samples.
    pub fn sample_count(&self) -> usize {
        self.levels.first().map_or(self.item_count, ListBuffer::list_count)
    }

    /// Returns the number of items: samples, or members of the lists of the last level.
    pub fn item_count(&self) -> usize {
        self.item_count
    }

    /// Returns the lists of each level of a nested column, outermost first. Those of the first
    /// level are the samples; the members of the last are the items.
    pub fn lists(&self) -> &[ListBuffer] {
        &self.levels
    }

    /// Returns the type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the shape of one item, as in the schema.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the elements of all items, one after the other, as bytes in memory order.
    pub fn bytes(&self) -> &[u8] {
        self.values.as_slice()
    }

    /// Returns the elements of all items for changes in place, such as a normalization. A text that
    /// is not UTF-8 any more is refused when it is pushed or exported.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.values.as_mut_slice()
    }

    /// Returns the elements of all items, one after the other: for a fixed shape a tensor with the
    /// item as its first dimension. Fails if `T` is not the column's type (bools, bytes and text
    /// are `u8`).
    pub fn values<T: Element>(&self) -> Result<&[T]> {
        check_type::<T>(self.dtype)?;
        pod::as_elements(self.bytes()).ok_or_else(|| Error::bad_argument("the buffer was filled by another column"))
    }

    /// Returns the offset of each item of a ragged column among the values, in elements, and then
    /// the end of the last item: one offset more than items. Empty for a fixed shape.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Returns the varying extents of the first item of a ragged column, outermost first, then
    /// those of the second, and so on. Empty for a fixed shape.
    pub fn extents(&self) -> &[u32] {
        &self.extents
    }

    /// Returns Arrow's validity bitmap: bit `i % 8` (0 the least significant) of byte `i / 8` is 0
    /// if item `i` is null. `None` if no item is. [`ListBuffer::validity`] has the nulls of samples
    /// that are lists.
    pub fn validity(&self) -> Option<&[u8]> {
        (self.null_count > 0).then_some(self.validity.as_slice())
    }

    /// Returns the number of null items. [`ListBuffer::null_count`] has that of samples that are
    /// lists.
    pub fn null_count(&self) -> usize {
        self.null_count
    }

    /// Returns whether item `i` of the buffer is null; `false` if there is no such item. Whether
    /// sample `i` of a nested column is null, [`ListBuffer::is_null`] says of the first of
    /// [`ColumnBuffer::lists`].
    pub fn is_null(&self, i: usize) -> bool {
        i < self.item_count && self.null_count > 0 && !bit(&self.validity, i)
    }

    /// Returns the bytes of item `i` of the buffer of a ragged column; `None` if there is no such
    /// item, or if the shape is fixed.
    pub fn ragged_bytes(&self, i: usize) -> Option<&[u8]> {
        let width = self.dtype.element_bytes();
        let at = |i: usize| usize::try_from(*self.offsets.get(i)?).ok()?.checked_mul(width);
        self.bytes().get(at(i)?..at(i.checked_add(1)?)?)
    }

    /// Returns the byte among the values of all samples at which those of the sample at `position`
    /// begin; for the number of samples, where the last ones end. `None` beyond that.
    pub fn value_start(&self, position: usize) -> Option<usize> {
        let at = |offsets: &[u64], entry: usize| usize::try_from(*offsets.get(entry)?).ok();
        let item = self.levels.iter().try_fold(position, |entry, lists| at(lists.offsets(), entry))?;
        if item > self.item_count {
            return None;
        }
        let elements = match self.shape.is_ragged() {
            true => at(&self.offsets, item)?,
            false => usize::try_from(self.shape.inner_elements()?).ok()?.checked_mul(item)?,
        };
        elements.checked_mul(self.dtype.element_bytes())
    }

    /// Returns the position of the sample that has byte number `byte` of [`ColumnBuffer::bytes`].
    pub(in crate::read) fn position_of_byte(&self, byte: usize) -> usize {
        // the first of these is 0, and empty entries end where they begin
        let entry_with =
            |offsets: &[u64], at: usize| offsets.partition_point(|&offset| offset <= u64_of(at)).saturating_sub(1);
        let item = match self.shape.is_ragged() {
            true => entry_with(&self.offsets, byte / self.dtype.element_bytes().max(1)),
            false => byte / (self.bytes().len() / self.item_count.max(1)).max(1),
        };
        self.levels.iter().rev().fold(item, |entry, lists| entry_with(lists.offsets(), entry))
    }

    /// Returns the same samples, as a batch to be pushed into a writer: with their lists, if the
    /// column is nested. A column with a cast takes values of its source type instead.
    pub fn as_batch(&self) -> ColumnBatch<'_> {
        let batch = ColumnBatch::from_bytes(self.dtype, self.item_count, &self.extents, self.bytes());
        let batch = if self.levels.is_empty() { batch } else { batch.in_buffers(&self.levels) };
        match self.validity() {
            Some(bitmap) => batch.with_validity(bitmap),
            None => batch,
        }
    }
}
