//! Reads samples of any encoding: decodes a sample alone, or a chunk, which it keeps for the samples that follow.

use super::current::CurrentChunk;
use super::gather::GatherScratch;
use super::opened_column::OpenedColumn;
use super::sample::{Sample, check_type};
use crate::pod::{self, Element};
use crate::{Error, Result};

/// Reads samples of one column. It owns the memory that decoding needs and the chunk decoded last, so that samples of
/// one chunk read in a row cost one decoding, and nothing is allocated once it has warmed up.
///
/// A cursor belongs to one thread; take one for each from [`Column::cursor`].
pub struct Cursor {
    pub(super) chunk: CurrentChunk,
    pub(super) gather: GatherScratch,
}

impl Cursor {
    pub(super) fn new(column: OpenedColumn) -> Self {
        Self { chunk: CurrentChunk::new(column), gather: GatherScratch::default() }
    }

    pub(super) fn opened(&self) -> &OpenedColumn {
        &self.chunk.column
    }

    /// Sample `i`, borrowed from the file where it is stored as it is, else from this cursor's memory.
    ///
    /// Cost: if the sample is in the chunk decoded last, a bounds check; else to read its chunk and check it (on first touch), and to decode the
    /// sample alone where the encoding can do that (constant and both kinds of tiers), else the chunk. The chunk is decoded as well, and kept,
    /// if the sample is more than three quarters of it (but not all), if an eighth of it was decoded sample by sample before, or if the chunk read before ends
    /// where this one begins: reading in order costs hardly more than each chunk once. Of a file that is read by position, a sample of an
    /// already checked raw chunk that is not nullable or ragged is read alone by the same rule.
    pub fn read(&mut self, i: u64) -> Result<Sample<'_>> {
        let chunk = &mut self.chunk;
        match chunk.go_to(i, 1, false).and_then(|in_chunk| chunk.take_unless_decoded(in_chunk)) {
            Ok((in_chunk, taken)) => {
                let chunk = &self.chunk;
                chunk.sample(in_chunk, taken).map_err(|error| chunk.column.at_sample(error, i))
            }
            Err(error) => Err(self.chunk.column.at_sample(error, i)),
        }
    }

    /// Copies the elements of sample `i` to the start of `out`. Returns their number, or `None` if the sample is null;
    /// `out` then has zeros for a fixed shape and is untouched for a ragged one. Fails if `T` is not the column's type
    /// (bools, bytes and text are `u8`) or `out` is too short.
    ///
    /// Cost: as [`Cursor::read`]; a sample that is decoded or read alone goes straight to `out`, any other is copied.
    pub fn read_into<T: Element>(&mut self, i: u64, out: &mut [T]) -> Result<Option<usize>> {
        let result = check_type::<T>(self.opened().schema().dtype)
            .and_then(|()| self.try_read_into(i, pod::as_bytes_mut(out)))
            .map(|bytes| bytes.map(|bytes| bytes / size_of::<T>()));
        result.map_err(|error| self.opened().at_sample(error, i))
    }

    /// Copies the elements of sample `i`, as bytes in memory order, to the start of `out`. Returns
    /// the number of bytes, or `None` if the sample is null.
    ///
    /// It is [`Cursor::read_into`] for a type that is known only at run time.
    pub fn read_bytes_into(&mut self, i: u64, out: &mut [u8]) -> Result<Option<usize>> {
        self.try_read_into(i, out).map_err(|error| self.opened().at_sample(error, i))
    }

    fn try_read_into(&mut self, i: u64, out: &mut [u8]) -> Result<Option<usize>> {
        let chunk = &mut self.chunk;
        let in_chunk = chunk.go_to(i, 1, true)?;
        let content = chunk.content();
        content.check_extents(chunk.column.layout(), in_chunk)?;
        let is_null = content.is_null(in_chunk);
        let bytes = chunk.values_range(&(in_chunk..in_chunk + 1))?; // below the chunk's sample count
        let have = out.len();
        let Some(out) = out.get_mut(..bytes.len()) else {
            return Err(too_short(bytes.len(), have, chunk.column.layout().element_bytes));
        };
        chunk.copy(&bytes, out)?;
        Ok((!is_null).then_some(bytes.len()))
    }
}

#[cold]
fn too_short(need: usize, have: usize, element_bytes: usize) -> Error {
    let (need, have) = (need / element_bytes.max(1), have / element_bytes.max(1));
    Error::bad_argument(format!("the sample has {need} elements, there is room for {have}"))
}
