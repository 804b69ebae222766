//! The chunk that a decoder holds: how far it has been read and decoded.

use super::chunk_bytes::is_in_blocks;
use super::chunk_location::ChunkLocation;
use super::kept_fronts::ChunkFront;
use super::opened_column::OpenedColumn;
use super::stored_parts::{StoredParts, body_in};
use crate::codec::{Body, ChunkDecoder, StoredChunk};
use crate::format::chunk::ChunkHead;
use crate::format::content::Content;
use crate::format::region::HEAD_BYTES;
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// A chunk is decoded whole if more than this many quarters of it were taken or are wanted.
const WHOLE_FROM_QUARTERS: usize = 3;
/// A chunk is decoded whole once one in this many of its bytes was taken sample by sample, and one
/// more sample is wanted. Reading all of its samples by one call each then costs little more than
/// one decoding.
const WHOLE_AFTER_ONE_IN: usize = 8;
/// The least number of bytes that a sample taken alone counts for: finding it costs about as much
/// as decoding that many.
const LEAST_SAMPLE_BYTES: usize = 1024;

/// The state of a chunk.
pub(super) enum ChunkState {
    /// No chunk is held.
    Closed,
    /// Nothing of the chunk has been read but its head: its samples are read alone.
    InFile { location: ChunkLocation, value_bytes: usize, taken: usize },
    /// The front is in memory: validity and shape are decoded, and the blocks are read alone.
    InBlocks { location: ChunkLocation, taken: usize },
    /// The body is in memory, and its parts are used as they are stored.
    Fetched { location: ChunkLocation, parts: StoredParts },
    /// Validity and shape are decoded; the values are not. `taken` bytes of them were decoded
    /// alone.
    Opened { location: ChunkLocation, taken: usize },
    /// All parts are decoded.
    Decoded { location: ChunkLocation },
}

/// A chunk, and the memory to decode it. It holds no stored bytes: calls get the body.
pub(super) struct HeldChunk {
    state: ChunkState,
    decoder: ChunkDecoder,
}

impl HeldChunk {
    pub(super) fn new() -> Self {
        Self { state: ChunkState::Closed, decoder: ChunkDecoder::new() }
    }

    #[inline]
    pub(super) fn location(&self) -> Option<&ChunkLocation> {
        match &self.state {
            ChunkState::Closed => None,
            ChunkState::InFile { location, .. }
            | ChunkState::InBlocks { location, .. }
            | ChunkState::Fetched { location, .. }
            | ChunkState::Opened { location, .. }
            | ChunkState::Decoded { location } => Some(location),
        }
    }

    #[inline]
    pub(super) fn holds(&self, location: &ChunkLocation) -> bool {
        self.location().is_some_and(|held| held.chunk == location.chunk)
    }

    /// Returns whether the body was read, so that no more of the chunk need be fetched.
    pub(super) fn has_body(&self) -> bool {
        !matches!(self.state, ChunkState::Closed | ChunkState::InFile { .. } | ChunkState::InBlocks { .. })
    }

    /// Returns whether the parts are used as they are stored.
    #[inline]
    pub(super) fn is_stored(&self) -> bool {
        matches!(self.state, ChunkState::Fetched { .. })
    }

    /// Returns whether the samples of the chunk are read alone.
    #[inline]
    pub(super) fn is_in_file(&self) -> bool {
        matches!(self.state, ChunkState::InFile { .. })
    }

    /// Returns the number of bytes that were taken sample by sample.
    pub(super) fn taken(&self) -> usize {
        match self.state {
            ChunkState::InFile { taken, .. }
            | ChunkState::InBlocks { taken, .. }
            | ChunkState::Opened { taken, .. } => taken,
            _ => 0,
        }
    }

    /// Returns whether the blocks of the chunk are read alone.
    #[inline]
    pub(super) fn is_in_blocks(&self) -> bool {
        matches!(self.state, ChunkState::InBlocks { .. })
    }

    pub(super) fn close(&mut self) {
        self.state = ChunkState::Closed;
    }

    /// Holds a chunk whose samples are read alone.
    pub(super) fn leave_in_file(&mut self, location: ChunkLocation, value_bytes: usize, taken: usize) {
        self.state = ChunkState::InFile { location, value_bytes, taken };
    }

    /// Holds a chunk whose parts are used as they are stored.
    #[inline]
    pub(super) fn hold_stored(&mut self, location: &ChunkLocation, parts: StoredParts) {
        self.state = ChunkState::Fetched { location: *location, parts };
    }

    /// Opens a chunk of a file that is in memory, checked as the reader's policy asks.
    pub(super) fn open_in_memory(
        &mut self,
        column: &OpenedColumn,
        location: &ChunkLocation,
        file: &[u8],
    ) -> Result<()> {
        self.close();
        if let Some(parts) = column.stored_parts(file, location).map_err(|error| in_chunk(error, location))? {
            self.hold_stored(location, parts);
            return Ok(());
        }
        let checked = column.chunk_in_memory(location, file);
        let (head, body) = checked.map_err(|error| in_chunk(error, location))?;
        self.open(column, location, &head, Body::whole(body))
    }

    /// Holds a chunk whose blocks are read alone, of which `taken` bytes were.
    pub(super) fn open_front(&mut self, column: &OpenedColumn, front: &ChunkFront, taken: usize) -> Result<()> {
        self.close();
        let (location, body) = (front.location, Body::whole(front.body()));
        let chunk = StoredChunk { layout: column.layout(), tables: column, head: &front.head, body };
        self.decoder.open(&chunk).map_err(|error| in_chunk(error, &location))?;
        self.state = ChunkState::InBlocks { location, taken };
        Ok(())
    }

    /// Returns the range in the body of the blocks that bytes of the values need; `None` if the
    /// values are not in blocks. `body` has the front.
    pub(super) fn blocks_of(&self, body: Body<'_>, bytes: &Range<usize>) -> Result<Option<Range<usize>>> {
        let part = self.decoder.blocks(body)?.filter(|_| !bytes.is_empty());
        part.map(|part| part.stored_range(bytes)).transpose()
    }

    /// Checks the blocks that bytes of the values need, as the reader's policy asks: of a chunk
    /// that is not in blocks, all was checked before.
    #[inline]
    fn check(&self, column: &OpenedColumn, body: Body<'_>, bytes: &Range<usize>) -> Result<()> {
        match self.location() {
            Some(location) if !column.is_checked(location.chunk) => {
                self.check_blocks(column, location, body, bytes).map_err(|error| in_chunk(error, location))
            }
            _ => Ok(()),
        }
    }

    fn check_blocks(
        &self,
        column: &OpenedColumn,
        location: &ChunkLocation,
        body: Body<'_>,
        bytes: &Range<usize>,
    ) -> Result<()> {
        let part = match &self.state {
            ChunkState::Fetched { parts, .. } => column.stored_blocks(location, parts, body)?,
            _ => self.decoder.blocks(body)?,
        };
        part.map_or(Ok(()), |part| column.check_blocks(location, &part, &self.content(body), bytes))
    }

    /// Decodes all but the values of a chunk that was checked.
    pub(super) fn open(
        &mut self,
        column: &OpenedColumn,
        location: &ChunkLocation,
        head: &ChunkHead,
        body: Body<'_>,
    ) -> Result<()> {
        self.close();
        let chunk = StoredChunk { layout: column.layout(), tables: column, head, body };
        self.decoder.open(&chunk).map_err(|error| in_chunk(error, location))?;
        self.state = match self.decoder.encoded_bytes() {
            Some(_) => ChunkState::Opened { location: *location, taken: 0 },
            None => ChunkState::Decoded { location: *location },
        };
        Ok(())
    }

    /// Returns the length of the values, if they are neither decoded nor used as they are stored.
    #[inline]
    pub(super) fn encoded_bytes(&self) -> Option<usize> {
        match &self.state {
            ChunkState::InFile { value_bytes, .. } => Some(*value_bytes),
            ChunkState::Opened { .. } | ChunkState::InBlocks { .. } => self.decoder.encoded_bytes(),
            _ => None,
        }
    }

    /// Counts `count` more samples as taken. Returns whether the chunk is to be decoded whole.
    #[inline]
    pub(super) fn count_taken(&mut self, count: usize) -> bool {
        let Some(bytes) = self.encoded_bytes() else { return false };
        match &mut self.state {
            ChunkState::InFile { location, taken, .. }
            | ChunkState::InBlocks { location, taken }
            | ChunkState::Opened { location, taken } => {
                let (after, whole) = whole_chunk_pays(location, bytes, *taken, count);
                *taken = after;
                whole
            }
            _ => false,
        }
    }

    /// Decodes the values, unless that was done before. If the values are in blocks and one of them
    /// is damaged, they are left: samples of the others can be decoded alone.
    pub(super) fn decode(&mut self, column: &OpenedColumn, body: Body<'_>) -> Result<()> {
        let ChunkState::Opened { location, .. } = &self.state else { return Ok(()) };
        let all = 0..self.decoder.encoded_bytes().unwrap_or(0);
        let decoded = self
            .check(column, body, &all)
            .and_then(|()| self.decoder.decode_values(body).map_err(|error| in_chunk(error, location)));
        match decoded {
            Ok(()) => self.state = ChunkState::Decoded { location: *location },
            Err(error) if !is_in_blocks(&location.entry)? => return Err(error),
            Err(_) => {}
        }
        Ok(())
    }

    /// Returns the parts of the chunk; without the values, if they are not decoded.
    #[inline]
    pub(super) fn content<'a>(&'a self, body: Body<'a>) -> Content<'a> {
        match &self.state {
            ChunkState::Fetched { parts, .. } => parts.content(body.start()),
            ChunkState::Opened { .. } | ChunkState::InBlocks { .. } | ChunkState::Decoded { .. } => {
                self.decoder.content(body)
            }
            ChunkState::InFile { location, .. } => {
                Content { sample_count: location.sample_count(), validity: None, shape: &[], values: &[] }
            }
            ChunkState::Closed => Content { sample_count: 0, validity: None, shape: &[], values: &[] },
        }
    }

    /// Returns the range of some samples among the values. If their bytes are at hand, their blocks
    /// are then checked as the reader's policy asks.
    #[inline]
    pub(super) fn values_range(
        &self,
        column: &OpenedColumn,
        body: Body<'_>,
        samples: &Range<usize>,
    ) -> Result<Range<usize>> {
        let content = self.content(body);
        let bytes = self.encoded_bytes().unwrap_or(content.values.len());
        let range = content.range_within(column.layout(), samples, bytes)?;
        if self.has_body() {
            self.check(column, body, &range)?;
        }
        Ok(range)
    }

    /// Returns the range in the file of bytes of the values, if these are used as they are stored.
    #[inline]
    pub(super) fn range_in_memory(&self, values: &Range<usize>) -> Option<Range<usize>> {
        let ChunkState::Fetched { location, parts } = &self.state else { return None };
        let start = location.body_start().saturating_add(parts.values_start());
        Some(start.saturating_add(values.start)..start.saturating_add(values.end))
    }

    /// Decodes bytes of the values, which are some samples, to `out`, which is as long. `false`:
    /// the encoding decodes all values or none; then all are decoded now.
    pub(super) fn decode_range(
        &mut self,
        column: &OpenedColumn,
        body: Body<'_>,
        bytes: &Range<usize>,
        out: &mut [u8],
    ) -> Result<bool> {
        let (ChunkState::Opened { location, .. } | ChunkState::InBlocks { location, .. }) = &self.state else {
            return Ok(false);
        };
        if self.is_in_blocks() {
            self.check(column, body, bytes)?;
        }
        if self.decoder.decode_range(body, bytes, out).map_err(|error| in_chunk(error, location))? {
            return Ok(true);
        }
        self.decode(column, body).map(|()| false)
    }

    /// Copies or decodes bytes of the values, which are some samples, to `out`, which is as long.
    #[inline]
    pub(super) fn copy(
        &mut self,
        column: &OpenedColumn,
        body: Body<'_>,
        bytes: &Range<usize>,
        out: &mut [u8],
    ) -> Result<()> {
        if self.decode_range(column, body, bytes, out)? {
            return Ok(());
        }
        let values = self.content(body).values.get(bytes.clone()).filter(|values| values.len() == out.len());
        let values = values.ok_or_else(|| Error::internal("a destination has another length than its samples"))?;
        out.copy_from_slice(values); // equal lengths
        Ok(())
    }
}

/// Returns whether to decode a whole chunk if `count` more of its samples are wanted, and the bytes
/// that are then taken. Its values have `bytes`, of which `taken` were decoded sample by sample.
pub(super) fn whole_chunk_pays(location: &ChunkLocation, bytes: usize, taken: usize, count: usize) -> (usize, bool) {
    let samples = location.sample_count().max(1);
    let after = taken.saturating_add(count.saturating_mul(LEAST_SAMPLE_BYTES.max(bytes / samples)));
    // a chunk of one sample is decoded to its destination, unless there are several
    let at_once = (samples > 1 || count > 1) && after / WHOLE_FROM_QUARTERS > bytes / 4;
    (after, taken.saturating_mul(WHOLE_AFTER_ONE_IN) > bytes || at_once)
}

/// Returns the body of a chunk: in the file if that is in memory, else in `kept`, after the head.
#[inline]
pub(super) fn body_of<'a>(column: &'a OpenedColumn, location: &ChunkLocation, kept: &'a Kept) -> Body<'a> {
    match column.file.bytes().memory() {
        Some(file) => Body::mapped(body_in(file, location).unwrap_or(&[])), // it was opened there
        None => kept.body(),
    }
}

/// The bytes that were read of the chunk that is held, if the file is not in memory.
#[derive(Default)]
pub(super) struct Kept {
    /// Head and body; of a chunk whose blocks are read alone, some of these.
    pub bytes: Vec<u8>,
    /// Of such a chunk: its front, and where in the body the blocks in `bytes` are.
    pub front: Option<Arc<ChunkFront>>,
    pub blocks: Range<usize>,
}

impl Kept {
    #[inline]
    pub(super) fn body(&self) -> Body<'_> {
        match &self.front {
            Some(front) => {
                let blocks = self.bytes.get(..self.blocks.len()).unwrap_or(&[]);
                Body::pieces(front.body(), self.blocks.start, blocks)
            }
            None => Body::whole(self.bytes.get(HEAD_BYTES..).unwrap_or(&[])),
        }
    }

    /// Prepares for a chunk that is read whole.
    pub(super) fn begin_whole(&mut self) -> &mut Vec<u8> {
        self.front = None;
        self.blocks = 0..0;
        &mut self.bytes
    }
}

/// Adds the chunk to an error.
pub(super) fn in_chunk(error: Error, location: &ChunkLocation) -> Error {
    error.with_offset(location.entry.offset).with_samples(location.entry.samples())
}
