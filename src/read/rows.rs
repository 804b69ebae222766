//! Several columns, read for the same samples by one call.

use super::buffer::ColumnBuffer;
use super::cursor::Cursor;
use crate::Result;
use std::ops::Range;

/// Several columns of an open file, read for the same samples by one call. Belongs to one thread.
pub struct Rows {
    cursors: Vec<Cursor>,
}

impl Rows {
    pub(super) fn new(cursors: Vec<Cursor>) -> Self {
        Self { cursors }
    }

    /// The cursors of the columns, in the order they were asked for.
    pub fn cursors(&mut self) -> &mut [Cursor] {
        &mut self.cursors
    }

    /// Fills one buffer for each column with samples `indices`, see [`Cursor::gather_into`]. `out` gets as many buffers as
    /// there are columns.
    pub fn gather_into(&mut self, indices: &[u64], out: &mut Vec<ColumnBuffer>) -> Result<()> {
        out.resize_with(self.cursors.len(), ColumnBuffer::new);
        let mut pairs = self.cursors.iter_mut().zip(out);
        pairs.try_for_each(|(cursor, buffer)| cursor.gather_into(indices, buffer))
    }

    /// Fills one buffer for each column with the samples of a range, see [`Cursor::range_into`].
    pub fn range_into(&mut self, range: Range<u64>, out: &mut Vec<ColumnBuffer>) -> Result<()> {
        out.resize_with(self.cursors.len(), ColumnBuffer::new);
        let mut pairs = self.cursors.iter_mut().zip(out);
        pairs.try_for_each(|(cursor, buffer)| cursor.range_into(range.clone(), buffer))
    }
}
