//! Reads samples of any encoding: decodes a chunk, and keeps it for the samples that follow.

use super::column::{Column, in_chunk};
use super::lookup::Located;
use super::sample::{Sample, check_type};
use super::source::{Source, read};
use crate::codec::{ChunkDecoder, codec};
use crate::format::content::Content;
use crate::format::region::{HEAD, HEAD_BYTES};
use crate::pod::{self, Element};
use crate::{Error, Result, le};

/// Reads samples of one column. It owns the memory that decoding needs and the chunk decoded last, so that samples of
/// one chunk read in a row cost one decoding, and nothing is allocated once it has warmed up.
///
/// A cursor belongs to one thread; take one for each from [`Column::cursor`].
pub struct Cursor<'r, S> {
    pub(super) column: Column<'r, S>,
    decoder: ChunkDecoder,
    /// Head and body of the current chunk, where the file is not in memory.
    buffer: Vec<u8>,
    current: Option<Located>,
    /// The current chunk, if it is used where it stands in the file; else the decoder has it.
    pub(super) stored: Option<Content<'r>>,
    pub(super) gather: super::gather::GatherScratch<'r>,
}

impl<'r, S: Source> Cursor<'r, S> {
    pub(super) fn new(column: Column<'r, S>) -> Self {
        Self {
            column,
            decoder: ChunkDecoder::new(),
            buffer: Vec::new(),
            current: None,
            stored: None,
            gather: super::gather::GatherScratch::default(),
        }
    }

    /// The column.
    pub fn column(&self) -> Column<'r, S> {
        self.column
    }

    /// Sample `i`, borrowed from the file where it is stored as it is, else from this cursor's memory.
    ///
    /// Cost: if the sample is in the chunk read last, a bounds check; else to read, check (on first touch) and decode
    /// its chunk.
    pub fn read(&mut self, i: u64) -> Result<Sample<'_>> {
        let in_chunk = self.seek(i).map_err(|error| self.column.place_at(error, i))?;
        let layout = &self.column.index.layout;
        Sample::new(self.column.schema, layout, &self.content(), in_chunk)
            .map_err(|error| self.column.place_at(error, i))
    }

    /// Copies the elements of sample `i` to the start of `out`. Returns their number, or `None` if the sample is null;
    /// `out` then has zeros for a fixed shape and is untouched for a ragged one. Fails if `T` is not the column's type
    /// (bools, bytes and text are `u8`) or `out` is too short.
    ///
    /// Cost: as [`Cursor::read`], and the copy. A sample of an already checked raw chunk of a file that is read by
    /// position is read alone, straight to `out`.
    pub fn read_into<T: Element>(&mut self, i: u64, out: &mut [T]) -> Result<Option<usize>> {
        let result = check_type::<T>(self.column.schema.dtype).and_then(|()| self.try_read_into(i, out));
        result.map_err(|error| self.column.place_at(error, i))
    }

    fn try_read_into<T: Element>(&mut self, i: u64, out: &mut [T]) -> Result<Option<usize>> {
        if !self.holds(i) {
            self.column.check_sample(i)?;
            let located = self.column.locate(i)?;
            if let Some(elements) = self.read_alone(&located, i, out)? {
                return Ok(Some(elements));
            }
            self.load(located)?;
        }
        let in_chunk = self.seek(i)?;
        let content = self.content();
        content.check_extents(&self.column.index.layout, in_chunk)?;
        let bytes = content.values_of(&self.column.index.layout, &(in_chunk..in_chunk + 1))?;
        pod::as_bytes_mut(room(out, bytes.len())?).copy_from_slice(bytes); // equal lengths
        Ok((!content.is_null(in_chunk)).then_some(bytes.len() / size_of::<T>()))
    }

    /// A sample of a plain chunk of a file that is not in memory, if the chunk was checked before.
    fn read_alone<T: Element>(&mut self, located: &Located, i: u64, out: &mut [T]) -> Result<Option<usize>> {
        let (reader, index) = (self.column.reader, self.column.index);
        let entry = &located.entry;
        // the checksum may have been right of a chunk that decoding refused
        let due = u64::from(entry.sample_count).checked_mul(index.layout.inner_bytes as u64); // exact: usize has at most 64 bits
        let whole = !index.layout.is_ragged() && due == Some(entry.stored_bytes.into());
        let plain = whole && !entry.has_parts() && codec(entry.encoding)?.is_identity();
        if reader.source.as_bytes().is_some() || !plain || !reader.is_checked(index, located.chunk) {
            return Ok(None);
        }
        let length = index.layout.inner_bytes;
        let at = in_chunk(located, i).checked_mul(length).and_then(|at| u64::try_from(at).ok());
        let offset = at.and_then(|at| entry.offset.checked_add(HEAD)?.checked_add(at));
        let out = room(out, length)?;
        let count = out.len();
        let bytes = pod::as_bytes_mut(out);
        read(&reader.source, offset.ok_or_else(|| Error::over_limit("the file is too large"))?, bytes)?;
        le::swap_to_native(index.layout.element_bytes, bytes);
        Ok(Some(count))
    }

    /// Whether sample `i` is in the current chunk.
    fn holds(&self, i: u64) -> bool {
        self.current.as_ref().is_some_and(|current| current.entry.samples().contains(&i))
    }

    /// Makes the chunk of sample `i` the current one; the sample's place in it.
    pub(super) fn seek(&mut self, i: u64) -> Result<usize> {
        if !self.holds(i) {
            let located = self.column.locate(i)?;
            self.load(located)?;
        }
        Ok(self.current.as_ref().map_or(0, |current| in_chunk(current, i)))
    }

    /// Makes a chunk the current one, unless it is.
    pub(super) fn load_unless_current(&mut self, located: Located) -> Result<()> {
        match &self.current {
            Some(current) if current.chunk == located.chunk => Ok(()),
            _ => self.load(located),
        }
    }

    /// Makes a chunk the current one: reads, checks and decodes it.
    pub(super) fn load(&mut self, located: Located) -> Result<()> {
        self.current = None; // until the decoder holds it
        let column = self.column;
        let place = |error: Error| error.with_offset(located.entry.offset).with_samples(located.entry.samples());
        self.stored = column.stored(&located).map_err(place)?;
        if self.stored.is_none() {
            let (head, body) = column.reader.load_chunk(column.index, &located, &mut self.buffer)?;
            self.decoder.load(&column.index.layout, &head, body).map_err(place)?;
        }
        self.current = Some(located);
        Ok(())
    }

    /// The parts of the current chunk.
    pub(super) fn content(&self) -> Content<'_> {
        self.stored.unwrap_or_else(|| self.decoder.content(self.body()))
    }

    /// The body of the current chunk.
    fn body(&self) -> &[u8] {
        let Some(current) = &self.current else { return &[] };
        match self.column.reader.source.as_bytes() {
            Some(file) => {
                let length = usize::try_from(current.entry.stored_bytes).unwrap_or(usize::MAX);
                let body = super::source::slice(file, current.entry.offset.saturating_add(HEAD), length);
                body.unwrap_or(&[]) // it was loaded from there
            }
            None => self.buffer.get(HEAD_BYTES..).unwrap_or(&[]),
        }
    }
}

/// The first elements of `out`, as many as `bytes` take.
fn room<T: Element>(out: &mut [T], bytes: usize) -> Result<&mut [T]> {
    let (have, need) = (out.len(), bytes / size_of::<T>());
    let room = out.get_mut(..need);
    room.ok_or_else(|| Error::bad_argument(format!("the sample has {need} elements, there is room for {have}")))
}
