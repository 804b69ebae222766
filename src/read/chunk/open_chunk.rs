//! The open chunk of a decoder, and how much of it is in memory.
//!
//! A chunk is in one of three states. *Unread*: individual samples are read from the file, which is
//! possible for raw chunks with a fixed shape. *Indexed*: the block index is in memory, and blocks
//! are read as samples need them. *Loaded*: the body is in memory, and its values are used in
//! place, decoded sample by sample, or decoded completely.
//!
//! [`should_decode_whole`] decides when to decode the whole chunk: at once if most of it is
//! requested, or after an eighth of it was decoded sample by sample. So reading all samples one by
//! one costs little more than decoding the chunk once, and reading a few samples does not decode
//! all of it.
//!
//! Blocks are verified when their bytes are first used: by [`OpenChunk::values_range`] if the
//! values are used in place, otherwise by [`OpenChunk::decode_range`], which parses the block index
//! only once to verify and decode them.

use super::chunk_bytes::{check_blocks, chunk_in_memory, is_in_blocks};
use super::part_ranges::{PartRanges, body_in, part_ranges, stored_blocks};
use crate::codec::{Body, ChunkDecoder, StoredBlock, StoredChunk, StoredPart};
use crate::format::chunk::ChunkHeader;
use crate::format::content::Content;
use crate::format::region::HEADER_BYTES;
use crate::read::file::column_inner::ColumnInner;
use crate::read::file::state::{ChunkBlockIndex, ChunkLocation, in_chunk};
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// A chunk is decoded whole if more than this many quarters of its bytes are requested or were
/// decoded sample by sample.
const DECODE_WHOLE_QUARTERS: usize = 3;
/// A chunk is decoded whole if more than 1/N of its bytes were decoded sample by sample, where N is
/// this constant, and another sample is requested. Reading all samples with one call each then
/// costs little more than decoding the chunk once.
const DECODE_WHOLE_AFTER: usize = 8;
/// Each individually decoded sample counts as at least this many bytes, because finding a sample
/// costs about as much as decoding that many.
const MIN_SAMPLE_BYTES: usize = 1024;

/// How much of a chunk is in memory.
enum ChunkState {
    /// Only its header. Samples are read individually; their total length is `value_bytes`.
    Unread { value_bytes: usize },
    /// The block index; the validity and the shape are decoded. Blocks are read individually.
    Indexed,
    /// The whole body. If `mapped` is set, the file is in memory and the parts are used in place.
    /// Otherwise the decoder has the validity and the shape, and also the values once they are
    /// decoded.
    Loaded { mapped: Option<PartRanges> },
}

/// An open chunk.
struct CurrentChunk {
    location: ChunkLocation,
    state: ChunkState,
    /// How many bytes of the values were read or decoded sample by sample.
    touched_bytes: usize,
}

/// The open chunk, if there is one, and the memory to decode it. The stored bytes are not included;
/// callers pass the body to the methods.
pub(in crate::read) struct OpenChunk {
    current: Option<CurrentChunk>,
    decoder: ChunkDecoder,
}

impl OpenChunk {
    pub(in crate::read) fn new() -> Self {
        Self { current: None, decoder: ChunkDecoder::new() }
    }

    #[inline]
    pub(in crate::read) fn location(&self) -> Option<&ChunkLocation> {
        self.current.as_ref().map(|current| &current.location)
    }

    #[inline]
    fn state(&self) -> Option<&ChunkState> {
        self.current.as_ref().map(|current| &current.state)
    }

    #[inline]
    pub(in crate::read) fn is_at(&self, location: &ChunkLocation) -> bool {
        self.location().is_some_and(|current| current.chunk == location.chunk)
    }

    /// Returns whether the whole body was read, so that nothing else needs to be fetched.
    #[inline]
    pub(in crate::read) fn has_body(&self) -> bool {
        matches!(self.state(), Some(ChunkState::Loaded { .. }))
    }

    /// Returns whether the parts are used in place.
    #[inline]
    pub(in crate::read) fn is_mapped(&self) -> bool {
        self.mapped().is_some()
    }

    #[inline]
    fn mapped(&self) -> Option<&PartRanges> {
        match self.state() {
            Some(ChunkState::Loaded { mapped }) => mapped.as_ref(),
            _ => None,
        }
    }

    /// Returns whether the samples of the chunk are read individually.
    #[inline]
    pub(in crate::read) fn is_unread(&self) -> bool {
        matches!(self.state(), Some(ChunkState::Unread { .. }))
    }

    /// Returns whether the blocks of the chunk are read individually.
    #[inline]
    pub(in crate::read) fn is_indexed(&self) -> bool {
        matches!(self.state(), Some(ChunkState::Indexed))
    }

    /// Returns how many bytes of the values were read or decoded sample by sample.
    pub(in crate::read) fn touched_bytes(&self) -> usize {
        self.current.as_ref().map_or(0, |current| current.touched_bytes)
    }

    #[inline]
    pub(in crate::read) fn close(&mut self) {
        self.current = None;
    }

    #[inline]
    fn set_current(&mut self, location: &ChunkLocation, state: ChunkState, touched_bytes: usize) {
        self.current = Some(CurrentChunk { location: *location, state, touched_bytes });
    }

    /// Opens a chunk whose samples are read individually. `touched_bytes` bytes of its values were
    /// read before.
    pub(in crate::read) fn open_unread(&mut self, location: &ChunkLocation, value_bytes: usize, touched_bytes: usize) {
        self.set_current(location, ChunkState::Unread { value_bytes }, touched_bytes);
    }

    /// Opens a chunk whose parts are used in place.
    #[inline]
    pub(in crate::read) fn open_mapped(&mut self, location: &ChunkLocation, parts: PartRanges) {
        self.set_current(location, ChunkState::Loaded { mapped: Some(parts) }, 0);
    }

    /// Opens a chunk of a file in memory, verified according to the reader's policy.
    pub(in crate::read) fn open_in_memory(
        &mut self,
        column: &ColumnInner,
        location: &ChunkLocation,
        file: &[u8],
    ) -> Result<()> {
        self.close();
        if let Some(parts) = part_ranges(column, file, location).map_err(|error| in_chunk(error, location))? {
            self.open_mapped(location, parts);
            return Ok(());
        }
        let checked = chunk_in_memory(column, location, file);
        let (header, body) = checked.map_err(|error| in_chunk(error, location))?;
        self.open(column, location, &header, Body::whole(body))
    }

    /// Opens a chunk whose blocks are read individually. `touched_bytes` bytes of its values were
    /// decoded before.
    pub(in crate::read) fn open_indexed(
        &mut self,
        column: &ColumnInner,
        block_index: &ChunkBlockIndex,
        touched_bytes: usize,
    ) -> Result<()> {
        self.decode_validity_and_shape(
            column,
            &block_index.location,
            &block_index.header,
            Body::whole(block_index.body()),
        )?;
        self.set_current(&block_index.location, ChunkState::Indexed, touched_bytes);
        Ok(())
    }

    /// Opens a verified chunk, and decodes all of it except the values.
    pub(in crate::read) fn open(
        &mut self,
        column: &ColumnInner,
        location: &ChunkLocation,
        header: &ChunkHeader,
        body: Body<'_>,
    ) -> Result<()> {
        self.decode_validity_and_shape(column, location, header, body)?;
        self.set_current(location, ChunkState::Loaded { mapped: None }, 0);
        Ok(())
    }

    /// Closes the open chunk, and decodes the validity and the shape of the next one.
    fn decode_validity_and_shape(
        &mut self,
        column: &ColumnInner,
        location: &ChunkLocation,
        header: &ChunkHeader,
        body: Body<'_>,
    ) -> Result<()> {
        self.close();
        let chunk = StoredChunk { layout: column.layout(), tables: column, header, body };
        self.decoder.open(&chunk).map_err(|error| in_chunk(error, location))
    }

    /// Finds the blocks that contain these bytes of the values. Returns the range of the body that
    /// these blocks occupy, or `None` if `bytes` is empty or the values are not divided into
    /// blocks. `body` contains the block index.
    pub(in crate::read) fn blocks_of(&self, body: Body<'_>, bytes: &Range<usize>) -> Result<Option<Range<usize>>> {
        let part = self.decoder.blocks(body)?.filter(|_| !bytes.is_empty());
        part.map(|part| part.stored_range(bytes)).transpose()
    }

    /// Verifies, according to the reader's policy, the blocks that contain these bytes of the
    /// values. A chunk without blocks was verified completely when it was opened.
    #[inline]
    fn check(&self, column: &ColumnInner, body: Body<'_>, bytes: &Range<usize>) -> Result<()> {
        match self.location() {
            Some(location) if !column.is_checked(location.chunk) => {
                self.check_blocks(column, location, body, bytes).map_err(|error| in_chunk(error, location))
            }
            _ => Ok(()),
        }
    }

    fn check_blocks(
        &self,
        column: &ColumnInner,
        location: &ChunkLocation,
        body: Body<'_>,
        bytes: &Range<usize>,
    ) -> Result<()> {
        let part = match self.mapped() {
            Some(parts) => stored_blocks(column, location, parts, body)?,
            None => self.decoder.blocks(body)?,
        };
        part.map_or(Ok(()), |part| check_blocks(column, location, &part, &self.content(body), bytes))
    }

    /// Returns the decoded length of the values if they are not decoded yet; `None` if they are
    /// decoded or used in place.
    #[inline]
    pub(in crate::read) fn encoded_bytes(&self) -> Option<usize> {
        match self.state()? {
            ChunkState::Unread { value_bytes } => Some(*value_bytes),
            ChunkState::Loaded { mapped: Some(_) } => None,
            ChunkState::Indexed | ChunkState::Loaded { mapped: None } => self.decoder.encoded_bytes(),
        }
    }

    /// Counts `count` more samples as decoded individually. Returns whether to decode the whole
    /// chunk instead.
    #[inline]
    pub(in crate::read) fn count_touched(&mut self, count: usize) -> bool {
        let (Some(bytes), Some(current)) = (self.encoded_bytes(), &mut self.current) else { return false };
        let (after, whole) = should_decode_whole(&current.location, bytes, current.touched_bytes, count);
        current.touched_bytes = after;
        whole
    }

    /// Decodes all values, unless they are already decoded. If a block is damaged, leaves them
    /// encoded, because samples in other blocks can still be decoded individually.
    pub(in crate::read) fn decode(&mut self, column: &ColumnInner, body: Body<'_>) -> Result<()> {
        let (Some(CurrentChunk { location, state: ChunkState::Loaded { mapped: None }, .. }), Some(bytes)) =
            (&self.current, self.decoder.encoded_bytes())
        else {
            return Ok(());
        };
        let decoded = self
            .check(column, body, &(0..bytes))
            .and_then(|()| self.decoder.decode_values(body).map_err(|error| in_chunk(error, location)));
        match decoded {
            Err(error) if !is_in_blocks(&location.entry)? => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the parts of the chunk, without the values if they are not decoded.
    #[inline]
    pub(in crate::read) fn content<'a>(&'a self, body: Body<'a>) -> Content<'a> {
        let nothing = Content { sample_count: 0, validity: None, shape: &[], values: &[] };
        let Some(current) = &self.current else { return nothing };
        match &current.state {
            ChunkState::Loaded { mapped: Some(parts) } => parts.content(body.start()),
            ChunkState::Loaded { mapped: None } | ChunkState::Indexed => self.decoder.content(body),
            ChunkState::Unread { .. } => Content { sample_count: current.location.sample_count(), ..nothing },
        }
    }

    /// Returns the range that these samples occupy in the values. If the values are used in place,
    /// verifies their blocks according to the reader's policy.
    #[inline]
    pub(in crate::read) fn values_range(
        &self,
        column: &ColumnInner,
        body: Body<'_>,
        samples: &Range<usize>,
    ) -> Result<Range<usize>> {
        let content = self.content(body);
        let encoded = self.encoded_bytes();
        let range = content.range_within(column.layout(), samples, encoded.unwrap_or(content.values.len()))?;
        if encoded.is_none() {
            self.check(column, body, &range)?;
        }
        Ok(range)
    }

    /// Returns the range in the file of these bytes of the values, if they are used in place.
    #[inline]
    pub(in crate::read) fn range_in_memory(&self, values: &Range<usize>) -> Option<Range<usize>> {
        let start = self.location()?.body_start().saturating_add(self.mapped()?.values_start());
        Some(start.saturating_add(values.start)..start.saturating_add(values.end))
    }

    /// Runs the checks that bound the length of the values. Called before memory is allocated for
    /// `bytes`, a range of the values.
    pub(in crate::read) fn check_length(&self, body: Body<'_>, bytes: &Range<usize>) -> Result<()> {
        match &self.current {
            Some(CurrentChunk {
                location, state: ChunkState::Indexed | ChunkState::Loaded { mapped: None }, ..
            }) => self.decoder.check_length(body, bytes).map_err(|error| in_chunk(error, location)),
            _ => Ok(()),
        }
    }

    /// Decodes a range of the values to `out`, which has the same length, and verifies it according
    /// to the reader's policy. Returns `false` if all values are available instead: they were
    /// decoded before, are used in place, or are decoded now because the encoding cannot decode a
    /// range.
    pub(in crate::read) fn decode_range(
        &mut self,
        column: &ColumnInner,
        body: Body<'_>,
        bytes: &Range<usize>,
        out: &mut [u8],
    ) -> Result<bool> {
        let Some(CurrentChunk { location, state: ChunkState::Indexed | ChunkState::Loaded { mapped: None }, .. }) =
            &self.current
        else {
            return Ok(false);
        };
        let check = check_by_policy(column, location, bytes);
        let decoded = self.decoder.decode_range(body, bytes, out, check);
        if decoded.map_err(|error| in_chunk(error, location))? {
            return Ok(true);
        }
        self.decode(column, body).map(|()| false)
    }

    /// Verifies, according to the reader's policy, the blocks that contain a range of the values,
    /// and calls `visit` with each block and the range of its requested elements. Returns `false`
    /// if devices do not decode the encoding, or if the values are already decoded.
    pub(in crate::read) fn visit_blocks(
        &self,
        column: &ColumnInner,
        body: Body<'_>,
        bytes: &Range<usize>,
        visit: &mut dyn FnMut(StoredBlock<'_>, Range<usize>) -> Result<()>,
    ) -> Result<bool> {
        let Some(CurrentChunk { location, state: ChunkState::Indexed | ChunkState::Loaded { mapped: None }, .. }) =
            &self.current
        else {
            return Ok(false);
        };
        let check = check_by_policy(column, location, bytes);
        self.decoder.visit_blocks(body, bytes, check, visit).map_err(|error| in_chunk(error, location))
    }

    /// Copies or decodes a range of the values to `out`, which has the same length.
    #[inline]
    pub(in crate::read) fn copy(
        &mut self,
        column: &ColumnInner,
        body: Body<'_>,
        bytes: &Range<usize>,
        out: &mut [u8],
    ) -> Result<()> {
        if self.decode_range(column, body, bytes, out)? {
            return Ok(());
        }
        let values = self.content(body).values.get(bytes.clone()).filter(|values| values.len() == out.len());
        let values = values.ok_or_else(|| Error::internal("a destination and its samples have different lengths"))?;
        out.copy_from_slice(values); // equal lengths
        Ok(())
    }
}

/// Returns a function that verifies the blocks that contain a range of the values, according to the
/// reader's policy.
fn check_by_policy(
    column: &ColumnInner,
    location: &ChunkLocation,
    bytes: &Range<usize>,
) -> impl FnOnce(&StoredPart<'_>, &Content<'_>) -> Result<()> {
    move |part, content| match column.is_checked(location.chunk) {
        true => Ok(()),
        false => check_blocks(column, location, part, content, bytes),
    }
}

/// Decides whether to decode a whole chunk if `count` more of its samples are requested. `bytes` is
/// the length of its values; `touched_bytes` bytes of them were decoded sample by sample. Also
/// returns the new value of `touched_bytes`.
pub(in crate::read) fn should_decode_whole(
    location: &ChunkLocation,
    bytes: usize,
    touched_bytes: usize,
    count: usize,
) -> (usize, bool) {
    let samples = location.sample_count().max(1);
    let after = touched_bytes.saturating_add(count.saturating_mul(MIN_SAMPLE_BYTES.max(bytes / samples)));
    // a chunk of one sample is decoded straight to its destination, unless it is requested several
    // times
    let at_once = (samples > 1 || count > 1) && after / DECODE_WHOLE_QUARTERS > bytes / 4;
    (after, touched_bytes.saturating_mul(DECODE_WHOLE_AFTER) > bytes || at_once)
}

/// Returns the body of a chunk, from the file if it is in memory, otherwise from `cached`.
#[inline]
pub(in crate::read) fn body_of<'a>(
    column: &'a ColumnInner,
    location: &ChunkLocation,
    cached: &'a CachedBytes,
) -> Body<'a> {
    match column.file.bytes().memory() {
        Some(file) => Body::mapped(body_in(file, location).unwrap_or(&[])), // never empty: the chunk was opened there
        None => cached.body(),
    }
}

/// The bytes of the open chunk that were read, if the file is not in memory.
#[derive(Default)]
pub(in crate::read) struct CachedBytes {
    /// The header and the body, or some blocks if the blocks of the chunk are read individually.
    pub bytes: Vec<u8>,
    /// The block index, if the blocks of the chunk are read individually.
    pub block_index: Option<Arc<ChunkBlockIndex>>,
    /// The range of the body that the blocks in `bytes` occupy, if blocks are read individually.
    pub blocks: Range<usize>,
}

impl CachedBytes {
    #[inline]
    pub(in crate::read) fn body(&self) -> Body<'_> {
        match &self.block_index {
            Some(block_index) => {
                let blocks = self.bytes.get(..self.blocks.len()).unwrap_or(&[]);
                Body::partial(block_index.body(), self.blocks.start, blocks)
            }
            None => Body::whole(self.bytes.get(HEADER_BYTES..).unwrap_or(&[])),
        }
    }

    /// Prepares for a chunk that is read whole.
    pub(in crate::read) fn begin_whole(&mut self) -> &mut Vec<u8> {
        self.block_index = None;
        self.blocks = 0..0;
        &mut self.bytes
    }
}
