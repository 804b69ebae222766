//! Several columns, read for the same samples by one call.

use super::buffer::ColumnBuffer;
use super::cursor::Cursor;
use crate::Result;
use crate::read::batch::gather::{RequestScratch, gather};
use std::ops::Range;

/// Several columns of an open file, read for the same samples by one call. Belongs to one thread.
///
/// One call plans the samples of all columns, and then fetches their bytes as one request.
pub struct Rows {
    cursors: Vec<Cursor>,
    request: RequestScratch,
}

impl Rows {
    pub(in crate::read) fn new(cursors: Vec<Cursor>) -> Self {
        Self { cursors, request: RequestScratch::default() }
    }

    /// Returns the cursors of the columns, in the order of the call that made this.
    pub fn cursors(&mut self) -> &mut [Cursor] {
        &mut self.cursors
    }

    /// Fills one buffer for each column with samples `indices`, see [`Cursor::gather_into`]. `out`
    /// gets as many buffers as there are columns. If that fails, all of them are empty.
    pub fn gather_into(&mut self, indices: &[u64], out: &mut Vec<ColumnBuffer>) -> Result<()> {
        let selected = self.request.tasks.selection.set_samples(indices);
        self.gather(selected, out)
    }

    /// Fills one buffer for each column with the samples of a range, see [`Cursor::range_into`]. If
    /// that fails, all of them are empty.
    pub fn range_into(&mut self, range: Range<u64>, out: &mut Vec<ColumnBuffer>) -> Result<()> {
        let selected = self.request.tasks.selection.set_range(range);
        self.gather(selected, out)
    }

    fn gather(&mut self, selected: Result<()>, out: &mut Vec<ColumnBuffer>) -> Result<()> {
        out.resize_with(self.cursors.len(), ColumnBuffer::new);
        let gathered =
            selected.and_then(|()| gather(self.cursors.as_mut_slice(), &mut self.request, out.as_mut_slice()));
        gathered.map(|_| ()).inspect_err(|_| out.iter_mut().for_each(ColumnBuffer::clear))
    }
}
