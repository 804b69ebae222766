//! Samples of several buffers in one: a batch of samples that are in several files.

use super::buffer::ColumnBuffer;
use crate::format::ColumnSchema;
use crate::format::schema::Layout;
use crate::list_buffer::push_bit;
use crate::read::decode::staged::outside;
use crate::{Error, Result, memory};
use std::ops::Range;

impl ColumnBuffer {
    /// Fills the buffer with samples of other buffers, which `column` describes: for each, the
    /// buffer and the number of the sample in it. `None` is a null sample. Samples without values,
    /// as [`visit_blocks`](crate::stages::Decoder::visit_blocks) returns them, add none.
    ///
    /// Fails if a buffer is of another type or shape, or has no such sample; this one is empty
    /// then. Cost: a copy of the samples. Allocates nothing once warmed up.
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
            // bits after the samples are set, as in every buffer
            let used = self.item_count % 8;
            *last |= if used == 0 { 0 } else { u8::MAX << used };
        }
        Ok(())
    }

    fn join_sample(&mut self, layout: &Layout, from: &ColumnBuffer, i: usize) -> Result<()> {
        let is_alike =
            (from.dtype(), from.shape()) == (self.dtype(), self.shape()) && from.levels.len() == self.levels.len();
        if !is_alike || i >= from.sample_count() {
            return Err(Error::bad_argument("the buffers to join are of one column, and have the samples"));
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
            [] => Some(&[][..]), // without elements, or without values
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

    fn push_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let start = self.values.as_slice().len();
        self.values.resize(start.checked_add(bytes.len()).ok_or_else(outside)?)?;
        let to = self.values.as_mut_slice().get_mut(start..).ok_or_else(outside)?;
        to.copy_from_slice(bytes); // equal lengths
        Ok(())
    }
}
