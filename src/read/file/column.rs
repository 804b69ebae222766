//! One column of an open file: the handle that callers keep.
//!
//! If samples need no decoding, a column returns them borrowed from the file. It also returns facts
//! about chunks, and creates cursors, which read all other samples. When a new file is assembled
//! from chunks of this one, the column reads whole chunks. Every error that leaves this module
//! names the path of the file, the column and the affected samples.

use super::column_inner::ColumnInner;
use super::state::{ChunkLocation, in_chunk};
use crate::codec::{EncodedChunk, RawChunk};
use crate::format::ColumnSchema;
use crate::format::content::Content;
use crate::open::ColumnFacts;
use crate::read::chunk::copied_chunk::{ChunkScratch, select_from_chunk, stored_chunk};
use crate::read::chunk::facts::{
    ChunkBlocks, ChunkInfo, ColdRead, Explanation, chunk_blocks, chunk_info, cold_read, explain, regret,
};
use crate::read::chunk::part_ranges::{body_in, check_raw_values, part_ranges};
use crate::read::cursor::Cursor;
use crate::read::sample::{List, Sample, nested_error, not_nested_error};
use crate::{Profile, Result};
use std::ops::Range;

/// A column of an open file.
///
/// Keeps the file open. Cloning only increments a reference count, and any thread can use the
/// clone.
#[derive(Clone)]
pub struct Column(ColumnInner);

impl Column {
    pub(in crate::read) fn new(column: ColumnInner) -> Self {
        Self(column)
    }

    /// Returns the number of the column, counted from 0.
    pub(crate) fn number(&self) -> usize {
        self.0.number()
    }

    pub(in crate::read) fn inner(&self) -> &ColumnInner {
        &self.0
    }

    /// Returns the name, type, shape and metadata.
    pub fn schema(&self) -> &ColumnSchema {
        self.0.schema()
    }

    /// Returns the number of samples, which is the same for all columns of the file.
    pub fn sample_count(&self) -> u64 {
        self.0.file.sample_count
    }

    /// Returns the facts that the file records about the column. Cost: a few allocations; no I/O.
    pub fn facts(&self) -> ColumnFacts {
        ColumnFacts::from(&self.0.index().facts)
    }

    /// Returns the facts of chunk number `chunk`, counted from 0; `None` after the last chunk.
    ///
    /// With [`ChunkInfo::file_range`], a loader can read chunks itself, straight to their
    /// destination.
    ///
    /// Cost: reads an entry of the index. For a nullable or ragged chunk, also reads its header,
    /// which contains [`ChunkInfo::raw_bytes`].
    pub fn chunk(&self, chunk: u64) -> Result<Option<ChunkInfo>> {
        self.with_chunk(chunk, |location| chunk_info(&self.0, location))
    }

    /// Returns the facts of the chunk that contains sample `i`. Cost: same as [`Column::chunk`].
    pub fn chunk_of(&self, i: u64) -> Result<ChunkInfo> {
        self.with_chunk_of(i, |location| chunk_info(&self.0, location))
    }

    /// Returns the blocks of chunk number `chunk`, counted from 0; `None` after the last chunk, or
    /// if the chunk is not divided into blocks.
    ///
    /// Cost: reads and decodes the chunk's header, nulls, extents and block index. Allocates at
    /// most four times their length.
    pub fn blocks(&self, chunk: u64) -> Result<Option<ChunkBlocks>> {
        self.with_chunk(chunk, |location| chunk_blocks(&self.0, location)).map(Option::flatten)
    }

    /// Returns the cost of reading a random sample of chunk number `chunk`, counted from 0, with
    /// positional reads (`pread`); `None` after the last chunk. Cost: same as [`Column::blocks`].
    pub fn cold_read(&self, chunk: u64) -> Result<Option<ColdRead>> {
        self.with_chunk(chunk, |location| {
            let blocks = chunk_blocks(&self.0, location)?;
            cold_read(&self.0, location, blocks.as_ref())
        })
    }

    /// Borrows sample `i` from the file, without copying. Returns `None` if its chunk is encoded,
    /// if the file is not in memory, or if this machine is not little-endian. Fails if the column
    /// is nested; use [`Column::view_list`] instead.
    ///
    /// Cost: a few cache misses, independent of the size of the file; for bools, a check of each
    /// byte of the sample; on first touch, the checksum of the chunk. Allocates nothing.
    pub fn view(&self, i: u64) -> Result<Option<Sample<'_>>> {
        self.try_view(i).map_err(|error| self.0.at_sample(error, i))
    }

    /// Borrows sample `i` of a nested column from the file, as a list. Returns `None` if
    /// [`Column::view`] would, or if any part of the chunk is encoded. Fails if the column is not
    /// nested.
    ///
    /// Cost: same as [`Column::view`], plus a few steps for each level of lists.
    pub fn view_list(&self, i: u64) -> Result<Option<List<'_>>> {
        self.try_view_list(i).map_err(|error| self.0.at_sample(error, i))
    }

    fn try_view_list(&self, i: u64) -> Result<Option<List<'_>>> {
        self.schema().check_known()?;
        if !self.0.layout().is_nested() {
            return Err(not_nested_error());
        }
        let Some((content, in_chunk, values)) = self.find_in_memory(i)? else { return Ok(None) };
        List::of_sample(&self.0, content, in_chunk, values, None).map(Some)
    }

    fn try_view(&self, i: u64) -> Result<Option<Sample<'_>>> {
        self.schema().check_known()?;
        if self.0.layout().is_nested() {
            return Err(nested_error());
        }
        let Some((content, in_chunk, values)) = self.find_in_memory(i)? else { return Ok(None) };
        let values = content.values.get(values).unwrap_or(&[]); // in bounds: checked with the range
        Sample::new(self.0.schema(), self.0.layout(), &content, in_chunk, values).map(Some)
    }

    /// Finds sample `i` in a file in memory, if all parts of its chunk are raw. Returns the content
    /// of the chunk, the position of the sample in it, and the verified range of its values.
    #[inline]
    fn find_in_memory(&self, i: u64) -> Result<Option<(Content<'_>, usize, Range<usize>)>> {
        let bytes = self.0.file.bytes();
        let Some(file) = bytes.memory() else { return Ok(None) };
        let location = self.0.locate(bytes, i)?;
        let parts = part_ranges(&self.0, file, &location).map_err(|error| in_chunk(error, &location))?;
        let Some(parts) = parts else { return Ok(None) };
        let body = body_in(file, &location)?;
        let (content, position) = (parts.content(body), location.position_of(i));
        // `position` is below the chunk's sample count
        let values = content.values_range(self.0.layout(), &(position..position + 1))?;
        check_raw_values(&self.0, &location, &parts, body, &values)?;
        Ok(Some((content, position, values)))
    }

    /// Returns a cursor, which reads samples of any encoding. Each thread needs its own cursor.
    pub fn cursor(&self) -> Cursor {
        Cursor::new(self.0.clone())
    }

    /// Explains the composition and the size of chunk number `chunk`, counted from 0; `None` after
    /// the last chunk.
    ///
    /// Cost: reads and decodes the chunk, and encodes it with every encoding. A chunk of 64 KiB
    /// takes milliseconds and several times its size in memory.
    pub fn explain(&self, chunk: u64) -> Result<Option<Explanation>> {
        self.with_chunk(chunk, |location| explain(&self.0, location))
    }

    /// Explains the composition and the size of the chunk that contains sample `i`. Cost: same as
    /// [`Column::explain`].
    pub fn explain_chunk_of(&self, i: u64) -> Result<Explanation> {
        self.with_chunk_of(i, |location| explain(&self.0, location))
    }

    /// Returns how much more the encoding that `profile` chooses for chunk number `chunk` costs
    /// than the cheapest combination of encoding, transform, mapping and options that the profile
    /// allows. The result is a fraction: 0.01 means that it costs one percent more. `None` after
    /// the last chunk.
    ///
    /// The cost is the stored size times a weight. Encodings that decode slowly have higher
    /// weights.
    ///
    /// Fails if this build cannot write the profile, or if the chunk is damaged.
    ///
    /// Cost: reads and decodes the chunk, and encodes it several hundred times. A chunk of 64 KiB
    /// takes about 0.1 s, and one of 512 KiB about a second.
    pub fn regret(&self, chunk: u64, profile: Profile) -> Result<Option<f64>> {
        self.with_chunk(chunk, |location| regret(&self.0, location, profile))
    }

    /// Adds the path of the file to an error.
    #[cfg(feature = "arrow")]
    pub(crate) fn in_file(&self, error: crate::Error) -> crate::Error {
        self.0.file.in_file(error)
    }

    /// Returns the bodies of the tables 0, 1, 2, ... of the column, or `None` if one of them is
    /// lost or damaged.
    pub(crate) fn table_bodies(&self) -> Result<Option<Vec<Vec<u8>>>> {
        self.0.table_bodies()
    }

    /// Reads and verifies chunk number `chunk` in its stored form, and counts its null samples.
    pub(crate) fn stored_chunk(&self, chunk: u64, scratch: &mut ChunkScratch) -> Result<(EncodedChunk, u64)> {
        stored_chunk(&self.0, chunk, scratch)
    }

    /// Reads samples of chunk number `chunk`, by their positions in it, into a new chunk that
    /// starts at `first_sample`. `None` becomes a null. The samples must not be lost.
    pub(crate) fn select_from_chunk(
        &self,
        chunk: u64,
        samples: &[Option<usize>],
        first_sample: u64,
        scratch: &mut ChunkScratch,
    ) -> Result<RawChunk> {
        select_from_chunk(&self.0, chunk, samples, first_sample, scratch)
    }

    fn with_chunk<T>(&self, chunk: u64, then: impl FnOnce(&ChunkLocation) -> Result<T>) -> Result<Option<T>> {
        let location = self.0.locate_chunk(chunk);
        let result = location.and_then(|location| location.map(|location| then(&location)).transpose());
        result.map_err(|error| self.0.in_column(error))
    }

    fn with_chunk_of<T>(&self, i: u64, then: impl FnOnce(&ChunkLocation) -> Result<T>) -> Result<T> {
        let location = self.0.locate(self.0.file.bytes(), i);
        location.and_then(|location| then(&location)).map_err(|error| self.0.at_sample(error, i))
    }
}

// here rather than next to `Cursor`, to avoid a dependency cycle between modules
impl Cursor {
    /// Returns the column.
    pub fn column(&self) -> Column {
        Column(self.inner().clone())
    }
}
