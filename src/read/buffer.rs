//! Column buffers: contiguous samples of one column, in memory that is reused.
//!
//! A buffer has the layout of Arrow: the values and a validity bitmap; for a ragged column also
//! offsets and extents; for a nested column also the lists of each level. Readers fill it from a
//! file, and [`ColumnBuffer::fill`] fills it from memory. [`ColumnBuffer::join`] fills it from
//! other buffers, for a batch whose samples come from several files. A call that fails leaves the
//! buffer empty, so stale samples cannot be mistaken for new ones.

use super::sample::check_type;
use crate::batch::{ColumnBatch, ListBuffer, push_bit};
use crate::bytes::le::u64_of;
use crate::bytes::memory;
use crate::bytes::pod::{self, AlignedBytes, Element};
use crate::format::content::{bit, validity_bytes};
use crate::format::schema::Layout;
use crate::format::{ColumnSchema, DType, Shape};
use crate::{Error, Result};
use std::ops::Range;

/// Contiguous samples of one column, in the order of the request. The next call that fills the
/// buffer reuses its memory. A call that fails leaves it empty.
///
/// For a nested column, [`ColumnBuffer::lists`] returns the lists; values, offsets, extents and
/// nulls describe the items.
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

    /// Prepares the buffer for `sample_count` samples of a column, none of them null. The lists and
    /// items of a nested column are added later.
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

    /// Removes all samples and keeps the memory. A failed call leaves the buffer in this state.
    pub(in crate::read) fn clear(&mut self) {
        self.levels.iter_mut().for_each(ListBuffer::remove_all);
        self.item_count = 0;
        self.values.clear();
        self.offsets.clear();
        self.extents.clear();
        self.validity.clear();
        self.null_count = 0;
    }

    /// Removes all lists and the nulls of items, and prepares for lists of `count` levels.
    pub(in crate::read) fn begin_lists(&mut self, count: usize) -> Result<()> {
        self.item_count = 0;
        self.null_count = 0;
        self.validity.clear();
        let more = count.saturating_sub(self.levels.len());
        memory::reserve(&mut self.levels, more)?;
        self.levels.resize_with(count, ListBuffer::default);
        self.levels.iter_mut().try_for_each(ListBuffer::clear)
    }

    /// Fills the buffer with null samples of a column.
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

    /// Fills the buffer with samples in memory, as a reader fills it from a file. The values have
    /// the type of the column, even if the column has a cast. This is the inverse of
    /// [`ColumnBuffer::as_batch`].
    ///
    /// Fails if the batch does not fit the column.
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

    /// Returns the lists of each level of a nested column, outermost first. The lists of the first
    /// level are the samples; the members of the last level are the items.
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

    /// Returns the elements of all items, one after another, as bytes in memory order.
    pub fn bytes(&self) -> &[u8] {
        self.values.as_slice()
    }

    /// Returns the elements of all items mutably, for changes in place such as a normalization.
    /// Text that is no longer UTF-8 is refused when it is pushed or exported.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.values.as_mut_slice()
    }

    /// Returns the elements of all items, one after another. For a fixed shape, they form a tensor
    /// whose first dimension is the item. Fails if `T` is not the column's type (bools, bytes and
    /// text are `u8`).
    pub fn values<T: Element>(&self) -> Result<&[T]> {
        check_type::<T>(self.dtype)?;
        pod::as_elements(self.bytes()).ok_or_else(|| Error::bad_argument("the buffer was filled from another column"))
    }

    /// Returns the offset of each item of a ragged column in the values, in elements, followed by
    /// the end of the last item. Empty for a fixed shape.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Returns the varying extents of the items of a ragged column: all extents of the first item,
    /// outermost first, then all extents of the second, and so on. Empty for a fixed shape.
    pub fn varying_extents(&self) -> &[u32] {
        &self.extents
    }

    /// Returns Arrow's validity bitmap: bit `i % 8` (0 is the least significant) of byte `i / 8` is
    /// 0 if item `i` is null. `None` if no item is null. For nulls among samples that are lists,
    /// see [`ListBuffer::validity`].
    pub fn validity(&self) -> Option<&[u8]> {
        (self.null_count > 0).then_some(self.validity.as_slice())
    }

    /// Returns the number of null items. For nulls among samples that are lists, see
    /// [`ListBuffer::null_count`].
    pub fn null_count(&self) -> usize {
        self.null_count
    }

    /// Returns whether item `i` of the buffer is null; `false` if there is no such item. For sample
    /// `i` of a nested column, call [`ListBuffer::is_null`] on the first entry of
    /// [`ColumnBuffer::lists`].
    pub fn is_null(&self, i: usize) -> bool {
        i < self.item_count && self.null_count > 0 && !bit(&self.validity, i)
    }

    /// Returns the bytes of item `i` of a ragged column; `None` if there is no such item, or if the
    /// shape is fixed.
    pub fn ragged_bytes(&self, i: usize) -> Option<&[u8]> {
        let width = self.dtype.element_bytes();
        let at = |i: usize| usize::try_from(*self.offsets.get(i)?).ok()?.checked_mul(width);
        self.bytes().get(at(i)?..at(i.checked_add(1)?)?)
    }

    /// Returns the byte offset in [`ColumnBuffer::bytes`] at which the values of the sample at
    /// `position` start. If `position` is the number of samples, returns the end of the last
    /// sample; beyond that, `None`.
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

    /// Returns the position of the sample that contains byte number `byte` of
    /// [`ColumnBuffer::bytes`].
    pub(in crate::read) fn position_of_byte(&self, byte: usize) -> usize {
        // the first offset is 0, and empty entries end where they start
        let entry_with =
            |offsets: &[u64], at: usize| offsets.partition_point(|&offset| offset <= u64_of(at)).saturating_sub(1);
        let item = match self.shape.is_ragged() {
            true => entry_with(&self.offsets, byte / self.dtype.element_bytes().max(1)),
            false => byte / (self.bytes().len() / self.item_count.max(1)).max(1),
        };
        self.levels.iter().rev().fold(item, |entry, lists| entry_with(lists.offsets(), entry))
    }

    /// Returns the samples as a batch for a writer, with their lists if the column is nested. A
    /// column with a cast does not accept the batch, because its writer expects values of the
    /// source type.
    pub fn as_batch(&self) -> ColumnBatch<'_> {
        let batch = ColumnBatch::from_bytes(self.dtype, self.item_count, &self.extents, self.bytes());
        let batch = if self.levels.is_empty() { batch } else { batch.in_buffers(&self.levels) };
        match self.validity() {
            Some(bitmap) => batch.with_validity(bitmap),
            None => batch,
        }
    }

    /// Fills the buffer with samples of other buffers of the same column, each given as a buffer
    /// and an index in it. `None` is a null sample. Samples without values, which
    /// [`visit_blocks`](crate::stages::Decoder::visit_blocks) returns, add no values.
    ///
    /// Fails if a buffer has a different type or shape, or does not contain the sample. On failure,
    /// the buffer to fill is empty. Cost: a copy of the samples. Allocates nothing once warmed up.
    pub fn join<'b>(
        &mut self,
        column: &ColumnSchema,
        samples: impl IntoIterator<Item = Option<(&'b ColumnBuffer, usize)>>,
    ) -> Result<()> {
        self.try_join(column, samples).inspect_err(|_| self.clear())
    }

    fn try_join<'b>(
        &mut self,
        column: &ColumnSchema,
        samples: impl IntoIterator<Item = Option<(&'b ColumnBuffer, usize)>>,
    ) -> Result<()> {
        let layout = column.layout()?;
        self.begin(column, 0)?;
        if layout.is_ragged() {
            memory::reserve(&mut self.offsets, 1)?;
            self.offsets.push(0);
        }
        for sample in samples {
            match sample {
                Some((buffer, i)) => self.join_sample(&layout, buffer, i)?,
                None => self.join_null(&layout)?,
            }
        }
        if let Some(last) = self.validity.last_mut().filter(|_| !layout.is_nested()) {
            // the bits after the last item are set, as in every buffer
            let used = self.item_count % 8;
            *last |= if used == 0 { 0 } else { u8::MAX << used };
        }
        Ok(())
    }

    fn join_sample(&mut self, layout: &Layout, from: &ColumnBuffer, i: usize) -> Result<()> {
        let is_alike =
            (from.dtype(), from.shape()) == (self.dtype(), self.shape()) && from.levels.len() == self.levels.len();
        if !is_alike || i >= from.sample_count() {
            return Err(Error::bad_argument("each joined buffer must match the column and contain the sample"));
        }
        let mut entries = i..i.saturating_add(1);
        for (to, lists) in self.levels.iter_mut().zip(&from.levels) {
            let end_of = |list: usize| lists.offsets().get(list).and_then(|&end| usize::try_from(end).ok());
            for list in entries.clone() {
                let (start, end) = (end_of(list), end_of(list.saturating_add(1)));
                let length = start.zip(end).and_then(|(start, end)| u32::try_from(end.checked_sub(start)?).ok());
                let length = length.ok_or_else(outside)?;
                to.push((!lists.is_null(list)).then_some(length))?;
            }
            entries = end_of(entries.start).ok_or_else(outside)?..end_of(entries.end).ok_or_else(outside)?;
        }
        self.join_items(layout, from, entries)
    }

    fn join_items(&mut self, layout: &Layout, from: &ColumnBuffer, items: Range<usize>) -> Result<()> {
        for item in items.clone() {
            let is_null = from.is_null(item);
            push_bit(&mut self.validity, self.item_count, !is_null)?;
            self.null_count += usize::from(is_null);
            self.item_count = self.item_count.saturating_add(1);
        }
        let at = |item: usize| match layout.is_ragged() {
            true => usize::try_from(*from.offsets.get(item)?).ok()?.checked_mul(layout.dtype.element_bytes()),
            false => item.checked_mul(layout.inner_bytes),
        };
        let bytes = match from.bytes() {
            [] => Some(&[][..]), // no elements, or no values
            all => at(items.start).zip(at(items.end)).and_then(|(start, end)| all.get(start..end)),
        };
        let bytes = bytes.ok_or_else(outside)?;
        if layout.is_ragged() {
            self.join_extents(layout, from, &items)?;
        }
        self.push_bytes(bytes)
    }

    fn join_extents(&mut self, layout: &Layout, from: &ColumnBuffer, items: &Range<usize>) -> Result<()> {
        let range = items.start.saturating_mul(layout.varying)..items.end.saturating_mul(layout.varying);
        let extents = from.extents.get(range).ok_or_else(outside)?;
        memory::extend(&mut self.extents, extents)?;
        let first = from.offsets.get(items.start).copied().ok_or_else(outside)?;
        let ends = from.offsets.get(items.start..items.end.saturating_add(1)).and_then(|offsets| offsets.get(1..));
        let ends = ends.ok_or_else(outside)?;
        let start = self.offsets.last().copied().unwrap_or(0);
        memory::reserve(&mut self.offsets, ends.len())?;
        self.offsets.extend(ends.iter().map(|end| start.saturating_add(end.saturating_sub(first))));
        Ok(())
    }

    fn join_null(&mut self, layout: &Layout) -> Result<()> {
        if let Some(outermost) = self.levels.first_mut() {
            return outermost.push(None);
        }
        push_bit(&mut self.validity, self.item_count, false)?;
        self.null_count += 1;
        self.item_count = self.item_count.saturating_add(1);
        if !layout.is_ragged() {
            let start = self.values.as_slice().len();
            self.values.resize(start.checked_add(layout.inner_bytes).ok_or_else(outside)?)?;
            self.values.as_mut_slice().get_mut(start..).unwrap_or(&mut []).fill(0);
            return Ok(());
        }
        let extents = self.extents.len().saturating_add(layout.varying);
        memory::resize(&mut self.extents, extents, 0)?;
        memory::reserve(&mut self.offsets, 1)?;
        self.offsets.push(self.offsets.last().copied().unwrap_or(0));
        Ok(())
    }

    /// Appends the values of items.
    pub(in crate::read) fn push_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let start = self.values.as_slice().len();
        self.values.resize(start.checked_add(bytes.len()).ok_or_else(outside)?)?;
        let to = self.values.as_mut_slice().get_mut(start..).ok_or_else(outside)?;
        to.copy_from_slice(bytes); // equal lengths
        Ok(())
    }
}

#[cold]
pub(in crate::read) fn outside() -> Error {
    Error::internal("a sample is outside its destination, or outside the decoded values")
}
