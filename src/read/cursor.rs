//! Reads samples of any encoding: decodes a sample alone, or a chunk, which it keeps for the samples that follow.

use super::column::Column;
use super::current::CurrentChunk;
use super::gather::GatherScratch;
use super::sample::{Sample, check_type};
use super::source::Source;
use crate::pod::{self, Element};
use crate::{Error, Result};

/// Reads samples of one column. It owns the memory that decoding needs and the chunk decoded last, so that samples of
/// one chunk read in a row cost one decoding, and nothing is allocated once it has warmed up.
///
/// A cursor belongs to one thread; take one for each from [`Column::cursor`].
pub struct Cursor<'r, S> {
    pub(super) chunk: CurrentChunk<'r, S>,
    pub(super) gather: GatherScratch<'r>,
}

impl<'r, S: Source> Cursor<'r, S> {
    pub(super) fn new(column: Column<'r, S>) -> Self {
        Self { chunk: CurrentChunk::new(column), gather: GatherScratch::default() }
    }

    /// The column.
    pub fn column(&self) -> Column<'r, S> {
        self.chunk.column
    }

    /// Sample `i`, borrowed from the file where it is stored as it is, else from this cursor's memory.
    ///
    /// Cost: if the sample is in the chunk decoded last, a bounds check; else to read its chunk and check it (on first touch), and to decode the
    /// sample alone where the encoding can do that (constant and both kinds of tiers), else the chunk. The chunk is decoded as well, and kept,
    /// if the sample is more than three quarters of it (but not all), if an eighth of it was decoded sample by sample before, or if the chunk read before ends
    /// where this one begins: reading in order costs hardly more than each chunk once. Of a file that is read by position, a sample of an
    /// already checked raw chunk that is not nullable or ragged is read alone by the same rule.
    pub fn read(&mut self, i: u64) -> Result<Sample<'_>> {
        let column = self.chunk.column;
        let result = self.chunk.go_to(i, 1, false).and_then(|in_chunk| self.chunk.sample(in_chunk));
        result.map_err(|error| column.place_at(error, i))
    }

    /// Copies the elements of sample `i` to the start of `out`. Returns their number, or `None` if the sample is null;
    /// `out` then has zeros for a fixed shape and is untouched for a ragged one. Fails if `T` is not the column's type
    /// (bools, bytes and text are `u8`) or `out` is too short.
    ///
    /// Cost: as [`Cursor::read`]; a sample that is decoded or read alone goes straight to `out`, any other is copied.
    pub fn read_into<T: Element>(&mut self, i: u64, out: &mut [T]) -> Result<Option<usize>> {
        let column = self.chunk.column;
        let result = check_type::<T>(column.schema.dtype).and_then(|()| self.try_read_into(i, out));
        result.map_err(|error| column.place_at(error, i))
    }

    fn try_read_into<T: Element>(&mut self, i: u64, out: &mut [T]) -> Result<Option<usize>> {
        let chunk = &mut self.chunk;
        let in_chunk = chunk.go_to(i, 1, true)?;
        let content = chunk.content();
        content.check_extents(&chunk.column.index.layout, in_chunk)?;
        let is_null = content.is_null(in_chunk);
        let bytes = chunk.values_range(&(in_chunk..in_chunk + 1))?; // below the chunk's sample count
        let out = room(out, bytes.len())?;
        let count = out.len();
        chunk.copy(&bytes, pod::as_bytes_mut(out))?;
        Ok((!is_null).then_some(count))
    }
}

/// The first elements of `out`, as many as `bytes` take.
fn room<T: Element>(out: &mut [T], bytes: usize) -> Result<&mut [T]> {
    let (have, need) = (out.len(), bytes / size_of::<T>());
    let room = out.get_mut(..need);
    room.ok_or_else(|| Error::bad_argument(format!("the sample has {need} elements, there is room for {have}")))
}
