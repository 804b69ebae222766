//! Lists of a nested column, side by side.

use crate::format::content::{bit, validity_bytes};
use crate::{Result, memory};

/// The lists of one level, side by side in the order of a request.
///
/// Their members are the lists of the next level, or the items.
#[derive(Clone, Debug, Default)]
pub struct ListBuffer {
    offsets: Vec<u64>,
    validity: Vec<u8>,
    null_count: usize,
}

impl ListBuffer {
    /// Returns the number of lists.
    pub fn list_count(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Returns the offset of each list among its members, and then the end of the last list: one
    /// offset more than lists, the first of which is 0. A null list begins where it ends. Offsets
    /// count lists of the next level, or items.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Returns Arrow's validity bitmap of the lists; `None` if none is null.
    pub fn validity(&self) -> Option<&[u8]> {
        (self.null_count > 0).then_some(self.validity.as_slice())
    }

    /// Returns the number of null lists.
    pub fn null_count(&self) -> usize {
        self.null_count
    }

    /// Returns whether list `i` is null.
    pub fn is_null(&self, i: usize) -> bool {
        i < self.list_count() && self.null_count > 0 && !bit(&self.validity, i)
    }

    /// Removes all lists, and keeps the memory.
    pub(crate) fn remove_all(&mut self) {
        self.offsets.truncate(1); // 0
        self.validity.clear();
        self.null_count = 0;
    }

    /// Empties the buffer, for lists that are pushed.
    pub(crate) fn clear(&mut self) -> Result<()> {
        self.remove_all();
        memory::resize(&mut self.offsets, 1, 0)
    }

    /// Returns the bitmap, also if no list is null.
    pub(crate) fn bits(&self) -> &[u8] {
        &self.validity
    }

    /// Adds a list of `length` members, or a null one.
    pub(crate) fn push(&mut self, length: Option<u32>) -> Result<()> {
        let count = self.list_count();
        push_bit(&mut self.validity, count, length.is_some())?;
        self.null_count += usize::from(length.is_none());
        let end = self.offsets.last().copied().unwrap_or(0).saturating_add(u64::from(length.unwrap_or(0)));
        memory::reserve(&mut self.offsets, 1)?;
        self.offsets.push(end);
        Ok(())
    }
}

/// Appends a bit to a bitmap of `count` bits.
pub(crate) fn push_bit(bitmap: &mut Vec<u8>, count: usize, is_present: bool) -> Result<()> {
    if bitmap.len() < validity_bytes(count + 1) {
        memory::reserve(bitmap, 1)?;
        bitmap.push(0);
    }
    if let Some(byte) = bitmap.get_mut(count / 8) {
        *byte |= u8::from(is_present) << (count % 8);
    }
    Ok(())
}
