//! One column of an open file.

use super::cursor::Cursor;
use super::lookup::{ColumnIndex, Located};
use super::sample::Sample;
use super::source::{Source, slice};
use super::{Reader, Verification};
use crate::codec::{codec, encoding_name, parts};
use crate::format::ColumnSchema;
use crate::format::chunk::{ChunkHead, Part};
use crate::format::content::Content;
use crate::format::region::HEAD;
use crate::open::ColumnFacts;
use crate::{Error, Result, le};
use std::ops::Range;

/// A column of an open file: a handle, cheap to copy.
pub struct Column<'r, S> {
    pub(super) reader: &'r Reader<S>,
    pub(super) schema: &'r ColumnSchema,
    pub(super) index: &'r ColumnIndex,
}

impl<S> Clone for Column<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Column<'_, S> {}

/// Where a chunk is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkInfo {
    /// The samples in it.
    pub samples: Range<u64>,
    /// Where its body is in the file: starts at a multiple of the file's alignment.
    pub file_range: Range<u64>,
    /// The encoding of its values.
    pub encoding: String,
    /// Its decoded bytes: values, extents and validity.
    pub raw_bytes: u64,
}

impl<'r, S: Source> Column<'r, S> {
    pub(super) fn new(reader: &'r Reader<S>, schema: &'r ColumnSchema, index: &'r ColumnIndex) -> Self {
        Self { reader, schema, index }
    }

    /// The number of the column, counted from 0.
    pub(crate) fn number(&self) -> usize {
        usize::try_from(self.index.number).unwrap_or(usize::MAX) // below 65,536
    }

    /// Name, type, shape, metadata.
    pub fn schema(&self) -> &'r ColumnSchema {
        self.schema
    }

    /// Samples in the column, which are as many as in the file.
    pub fn sample_count(&self) -> u64 {
        self.reader.sample_count
    }

    /// What the file says of the column. Cost: a few allocations; no I/O.
    pub fn facts(&self) -> ColumnFacts {
        ColumnFacts::from(&self.index.facts)
    }

    /// Chunk number `chunk`, counted from 0; `None` after the last. Together with [`ChunkInfo::file_range`] this is what
    /// a loader needs to read chunks itself, straight to where it wants them.
    ///
    /// Cost: an entry of the index; of a nullable or ragged chunk also its head, for [`ChunkInfo::raw_bytes`].
    pub fn chunk(&self, chunk: u64) -> Result<Option<ChunkInfo>> {
        let located = self.reader.locate_chunk(self.index, chunk);
        let info = located.and_then(|located| located.map(|located| self.chunk_info(&located)).transpose());
        info.map_err(|error| self.place(error))
    }

    /// The chunk that holds sample `i`. Cost: as [`Column::chunk`].
    pub fn chunk_of(&self, i: u64) -> Result<ChunkInfo> {
        self.locate(i).and_then(|located| self.chunk_info(&located)).map_err(|error| self.place_at(error, i))
    }

    pub(super) fn chunk_info(&self, located: &Located) -> Result<ChunkInfo> {
        let entry = &located.entry;
        let layout = &self.index.layout;
        let raw_bytes = if entry.has_parts() || layout.is_ragged() {
            self.reader.chunk_head(self.index, entry)?.raw_bytes.into()
        } else {
            // samples, and nothing else
            u64::from(entry.sample_count).saturating_mul(layout.inner_bytes as u64) // exact: usize has at most 64 bits
        };
        let start = entry.offset.saturating_add(HEAD);
        Ok(ChunkInfo {
            samples: entry.samples(),
            file_range: start..start.saturating_add(entry.stored_bytes.into()),
            encoding: encoding_name(entry.encoding),
            raw_bytes,
        })
    }

    /// Sample `i` as a view of the file, without copying: `None` if its chunk is encoded, if the file is not in memory,
    /// or if this machine is not little-endian.
    ///
    /// Cost: a few cache misses, independent of the size of the file; on first touch the checksum of the chunk.
    /// Allocates nothing.
    pub fn view(&self, i: u64) -> Result<Option<Sample<'r>>> {
        self.try_view(i).map_err(|error| self.place_at(error, i))
    }

    fn try_view(&self, i: u64) -> Result<Option<Sample<'r>>> {
        if self.reader.source.as_bytes().is_none() {
            return Ok(None);
        }
        let located = self.locate(i)?;
        let Some(content) = self.stored(&located)? else { return Ok(None) };
        let (layout, in_chunk) = (&self.index.layout, in_chunk(&located, i));
        let values = content.values_of(layout, &(in_chunk..in_chunk + 1))?; // below the chunk's sample count
        Sample::new(self.schema, layout, &content, in_chunk, values).map(Some)
    }

    /// A chunk as it stands in the file, checked, if it can be used there: the file is in memory, nothing is encoded, and
    /// this machine's byte order is the file's.
    pub(super) fn stored(&self, located: &Located) -> Result<Option<Content<'r>>> {
        let Some(file) = self.reader.source.as_bytes() else { return Ok(None) };
        let in_order = le::FILE_ORDER_IS_NATIVE || self.index.layout.element_bytes == 1;
        if !in_order || !codec(located.entry.encoding)?.is_identity() {
            return Ok(None);
        }
        let body = self.checked_body(file, located)?;
        self.stored_content(located, body)
    }

    /// The body of a chunk of a file in memory, checked as the reader's policy asks.
    fn checked_body(&self, file: &'r [u8], located: &Located) -> Result<&'r [u8]> {
        if !self.reader.is_checked(self.index, located.chunk) {
            self.check_chunk(located)?;
        }
        let entry = &located.entry;
        let length = usize::try_from(entry.stored_bytes).unwrap_or(usize::MAX);
        slice(file, entry.offset.saturating_add(HEAD), length)
    }

    #[cold]
    fn check_chunk(&self, located: &Located) -> Result<()> {
        let mut unused = Vec::new();
        self.reader.load_chunk(self.index, located, &mut unused).map(|_| ())
    }

    /// Bytes of the values of a chunk whose samples can be read alone: the file is not in memory, the chunk is nothing but samples as they
    /// are, and it was checked before, or the reader's policy asks for no more than its head.
    pub(super) fn readable_alone(&self, located: &Located) -> Result<Option<usize>> {
        let (reader, entry) = (self.reader, &located.entry);
        // the checksum may have been right of a chunk that decoding refused
        let due = u64::from(entry.sample_count).checked_mul(self.index.layout.inner_bytes as u64); // exact: usize has at most 64 bits
        let whole = !self.index.layout.is_ragged() && due == Some(entry.stored_bytes.into());
        let plain = whole && !entry.has_parts() && codec(entry.encoding)?.is_identity();
        if !plain || reader.source.as_bytes().is_some() {
            return Ok(None);
        }
        let checked = reader.is_checked(self.index, located.chunk) || self.check_head_alone(located)?;
        Ok(usize::try_from(entry.stored_bytes).ok().filter(|_| checked))
    }

    /// Checks the head of a chunk, if the reader's policy asks for no more: `true` if it is right.
    fn check_head_alone(&self, located: &Located) -> Result<bool> {
        if self.reader.verification != Verification::Never {
            return Ok(false);
        }
        let head = self.reader.chunk_head(self.index, &located.entry)?;
        let right = head.raw_bytes == located.entry.stored_bytes; // else, which loading names
        if right {
            self.index.checked_chunks.set(located.chunk);
        }
        Ok(right)
    }

    /// The parts of a chunk whose values are stored as they are, if all its parts are.
    fn stored_content(&self, located: &Located, body: &'r [u8]) -> Result<Option<Content<'r>>> {
        let entry = &located.entry;
        let is_stored = |part: &Part| Ok::<bool, Error>(part.is_absent() || codec(part.encoding)?.is_identity());
        let sample_count = usize::try_from(entry.sample_count).unwrap_or(0); // at most 2^24
        if !entry.has_parts() && !self.index.layout.is_ragged() {
            let content = Content { sample_count, validity: None, shape: &[], values: body };
            return content.check_lengths(&self.index.layout).map(|()| Some(content));
        }
        let head = ChunkHead::from_entry(self.index.number, *entry, body);
        let parts = parts(&self.index.layout, &head, body)?;
        if !is_stored(&parts.validity)? || !is_stored(&parts.shape)? {
            return Ok(None);
        }
        let Some([validity, shape, values]) = parts.ranges() else { return Ok(None) };
        let part = |range: Range<usize>| body.get(range).unwrap_or(&[]); // inside: `parts` has checked
        let content = Content {
            sample_count,
            validity: (!parts.validity.is_absent()).then(|| part(validity)),
            shape: part(shape),
            values: part(values),
        };
        if [parts.validity, parts.shape, parts.values].iter().any(|part| part.stored_bytes != part.raw_bytes) {
            return Err(Error::corrupt("R-5.3", "a raw part is not as long as its decoded bytes"));
        }
        content.check_lengths(&self.index.layout).map(|()| Some(content))
    }

    /// A cursor, which can read samples of any encoding. Each thread takes its own.
    pub fn cursor(&self) -> Cursor<'r, S> {
        Cursor::new(*self)
    }

    pub(super) fn locate(&self, i: u64) -> Result<Located> {
        self.check_sample(i)?;
        self.reader.locate(self.index, i)
    }

    pub(super) fn check_sample(&self, i: u64) -> Result<()> {
        let count = self.reader.sample_count;
        if i < count {
            return Ok(());
        }
        Err(Error::bad_argument(format!("the file has {count} samples, numbered from 0")))
    }

    /// Adds to an error where it happened.
    pub(super) fn place(&self, error: Error) -> Error {
        self.reader.place(error.with_column(&self.schema.name))
    }

    pub(super) fn place_at(&self, error: Error, i: u64) -> Error {
        self.place(error.with_samples(i..i.saturating_add(1)))
    }
}

/// The place of sample `i` within the chunk that was located for it.
pub(super) fn in_chunk(located: &Located, i: u64) -> usize {
    usize::try_from(i.saturating_sub(located.entry.first_sample)).unwrap_or(usize::MAX)
}
