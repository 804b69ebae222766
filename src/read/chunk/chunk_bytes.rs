//! The stored bytes of a chunk: its head, checked against the index, and its body, checked as the
//! reader's policy asks.

use super::checked_blocks::CheckedUnits;
use crate::codec::{Body, StoredPart, check_front, encoding, front_bytes, parts, values_in_blocks};
use crate::format::chunk::{ChunkEntry, ChunkHead};
use crate::format::content::Content;
use crate::format::region::{HEAD_BYTES, RegionHead, RegionKind};
use crate::le::u64_of;
use crate::open::source::slice;
use crate::read::file::opened_column::OpenedColumn;
use crate::read::file::options::Verification;
use crate::read::locate::chunk_location::ChunkLocation;
use crate::read::locate::lookup::disagree;
use crate::{Error, Result};
use std::ops::Range;

impl OpenedColumn {
    /// Reads a chunk and checks it as the reader's policy asks. `buffer` is for the bytes of a file
    /// that is not in memory.
    pub(in crate::read) fn load_chunk<'a>(
        &'a self,
        location: &ChunkLocation,
        buffer: &'a mut Vec<u8>,
    ) -> Result<(ChunkHead, &'a [u8])> {
        let bytes = self.fetch_bytes(&location.entry, buffer)?;
        self.check_chunk_bytes(location, bytes)
    }

    /// Checks a chunk of a file that is in memory as the reader's policy asks. A head that was
    /// checked before is not checked again: the bytes are the same.
    pub(in crate::read) fn chunk_in_memory<'a>(
        &self,
        location: &ChunkLocation,
        file: &'a [u8],
    ) -> Result<(ChunkHead, &'a [u8])> {
        let bytes = slice(file, location.entry.offset, chunk_bytes(&location.entry)?)?;
        if !self.is_open(location.chunk) {
            return self.check_chunk_bytes(location, bytes);
        }
        let (head, body) = split_head(bytes)?;
        let chunk = ChunkHead::of_checked(self.index().number, location.entry, head);
        self.file.check_decoded_bytes(chunk.raw_bytes.into())?;
        Ok((chunk, body))
    }

    /// Checks head and body of a chunk as the reader's policy asks. Notes that they were checked.
    /// Of a chunk in blocks, checks the front; [`OpenedColumn::check_blocks`] checks its blocks
    /// when they are used, so that damage of one costs no sample of another.
    pub(in crate::read) fn check_chunk_bytes<'a>(
        &self,
        location: &ChunkLocation,
        bytes: &'a [u8],
    ) -> Result<(ChunkHead, &'a [u8])> {
        let (head, chunk, body) = self.split_chunk(&location.entry, bytes)?;
        if self.is_checked(location.chunk) {
            return Ok((chunk, body));
        }
        let is_never = self.file.verification == Verification::Never;
        if !is_never && is_in_blocks(&location.entry)? {
            if !self.checked(location.chunk).has_front() {
                let before = self.bytes_before_values(&chunk, bytes)?;
                check_front(front_in(bytes, before)?)?;
                self.check_stored_blocks(&chunk, body)?;
                self.check_raw_bytes(&chunk, body)?;
                self.index().checked_blocks.set_front(location.chunk);
            }
            return Ok((chunk, body));
        }
        match is_never {
            true => self.check_stored_blocks(&chunk, body)?,
            false => head.check_body(body)?,
        }
        self.check_raw_bytes(&chunk, body)?;
        self.index().checked_chunks.set(location.chunk);
        Ok((chunk, body))
    }

    /// Checks the decoded length that the head of a chunk states: it is that of the part table
    /// or that of the samples. Decoding compares it again, but values that are
    /// used as they are stored are not decoded. `body` has the part table.
    pub(in crate::read) fn check_raw_bytes(&self, head: &ChunkHead, body: &[u8]) -> Result<()> {
        let values = parts(self.layout(), head, body)?.values;
        let expected = u64::from(head.entry.sample_count).checked_mul(u64_of(self.layout().inner_bytes));
        if head.entry.has_parts() || expected == Some(values.raw_bytes.into()) {
            return Ok(());
        }
        let message =
            format!("the head of the chunk states {} decoded bytes, not those of its samples", head.raw_bytes);
        Err(Error::corrupt("R-4.5", message))
    }

    /// Checks the front of values in blocks that are used as they are stored: nothing decodes them.
    fn check_stored_blocks(&self, head: &ChunkHead, body: &[u8]) -> Result<()> {
        let encoding = encoding(head.entry.encoding)?;
        let is_stored = encoding.is_in_blocks() && encoding.is_identity();
        if !is_stored || parts(self.layout(), head, body)?.values.raw_bytes == 0 {
            return Ok(());
        }
        values_in_blocks(self.layout(), head, Body::whole(body))?.check_raw()
    }

    /// Checks the blocks that bytes of the values need, as the reader's policy asks. Notes that
    /// they were checked. The error of a damaged block has the samples that are lost with it, which
    /// `content` tells.
    pub(in crate::read) fn check_blocks(
        &self,
        location: &ChunkLocation,
        part: &StoredPart<'_>,
        content: &Content<'_>,
        bytes: &Range<usize>,
    ) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let (blocks, count) = (part.blocks_at(bytes), part.front.block_count());
        let missing = self.checked(location.chunk).missing(&blocks, count);
        if missing.is_empty() {
            return Ok(());
        }
        // a block that was not read cannot be checked: units are not completed then
        let due = if part.has_blocks(&missing)? { missing } else { blocks.clone() };
        if part.check_crcs_of(&due).is_err() {
            // damage of another block of a unit costs these bytes nothing
            return blocks.into_iter().try_for_each(|block| {
                // below the block count
                part.check_crcs_of(&(block..block + 1))
                    .map_err(|error| self.with_lost_samples(error, location, part, content, block))
            });
        }
        if self.index().checked_blocks.set_blocks(location.chunk, &due, count) {
            self.index().checked_chunks.set(location.chunk);
        }
        Ok(())
    }

    /// Adds the samples with a byte in a damaged block to its error, whatever was asked for.
    #[cold]
    fn with_lost_samples(
        &self,
        error: Error,
        location: &ChunkLocation,
        part: &StoredPart<'_>,
        content: &Content<'_>,
        block: usize,
    ) -> Error {
        let bytes = part.decoded_range(block);
        let lost = bytes.and_then(|bytes| content.samples_with(self.layout(), &bytes, part.raw_bytes()));
        let Ok(lost) = lost else { return error }; // the chunk is named then
        let sample = |at: usize| location.entry.first_sample.saturating_add(u64_of(at));
        error.with_samples(sample(lost.start)..sample(lost.end))
    }

    /// Returns whether head and front of a chunk of a file that is in memory were checked before as
    /// the reader's policy asks, or all of a chunk that is not in blocks.
    #[inline]
    pub(in crate::read) fn is_open(&self, chunk: u64) -> bool {
        self.is_checked(chunk) || self.checked(chunk).has_front()
    }

    /// Returns what was checked of a chunk in blocks, as the reader's policy counts it. (With
    /// [`Verification::Never`], the chunk counts as checked once its head is.)
    fn checked(&self, chunk: u64) -> CheckedUnits {
        match self.file.verification {
            Verification::FirstTouch => self.index().checked_blocks.get(chunk),
            _ => CheckedUnits::NOTHING,
        }
    }

    /// Reads a chunk and checks its head, but not its body.
    pub(in crate::read) fn fetch_chunk<'a>(
        &'a self,
        entry: &ChunkEntry,
        buffer: &'a mut Vec<u8>,
    ) -> Result<(RegionHead, ChunkHead, &'a [u8])> {
        let bytes = self.fetch_bytes(entry, buffer)?;
        self.split_chunk(entry, bytes)
    }

    /// Reads head and body of a chunk, and checks neither.
    pub(in crate::read) fn fetch_bytes<'a>(&'a self, entry: &ChunkEntry, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        self.file.bytes().get(entry.offset, chunk_bytes(entry)?, buffer)
    }

    /// Checks the head of a chunk, but not its body.
    fn split_chunk<'a>(&self, entry: &ChunkEntry, bytes: &'a [u8]) -> Result<(RegionHead, ChunkHead, &'a [u8])> {
        let (head, body) = split_head(bytes)?;
        let (head, chunk) = self.parse_chunk_head(entry, head)?;
        self.file.check_decoded_bytes(chunk.raw_bytes.into())?;
        Ok((head, chunk, body))
    }

    /// Reads and checks the head of a chunk; its body is not touched.
    pub(in crate::read) fn chunk_head(&self, entry: &ChunkEntry) -> Result<ChunkHead> {
        let head = self.file.bytes().array(entry.offset)?;
        self.parse_chunk_head(entry, &head).map(|(_, chunk)| chunk)
    }

    /// Checks the head of a chunk, and that the chunk may be decoded.
    pub(in crate::read) fn checked_head(&self, entry: &ChunkEntry, bytes: &[u8; HEAD_BYTES]) -> Result<ChunkHead> {
        let (_, chunk) = self.parse_chunk_head(entry, bytes)?;
        self.file.check_decoded_bytes(chunk.raw_bytes.into()).map(|()| chunk)
    }

    fn parse_chunk_head(&self, entry: &ChunkEntry, bytes: &[u8; HEAD_BYTES]) -> Result<(RegionHead, ChunkHead)> {
        let head = RegionHead::parse(bytes, entry.offset)?;
        head.expect(RegionKind::Chunk, self.file.file_id)?;
        let chunk = ChunkHead::parse(&head, self.file.columns.len())?;
        if chunk.column != self.index().number || chunk.entry != *entry {
            return Err(disagree("the chunk's head"));
        }
        Ok((head, chunk))
    }

    /// Returns whether a chunk was checked before as the reader's policy asks, so that ranges of it
    /// can be read alone.
    #[inline]
    pub(in crate::read) fn is_checked(&self, chunk: u64) -> bool {
        self.file.verification != Verification::Always && self.index().checked_chunks.get(chunk)
    }

    /// Returns the length of the values of a chunk whose samples can be read alone: the file is not
    /// in memory, the chunk consists of samples as they are, and it was checked before, or the
    /// reader's policy asks for no more than its head.
    pub(in crate::read) fn readable_alone(&self, location: &ChunkLocation) -> Result<Option<usize>> {
        let entry = &location.entry;
        let layout = self.layout();
        // the checksum may have been right of a chunk that decoding refused
        let due = u64::from(entry.sample_count).checked_mul(u64_of(layout.inner_bytes));
        let encoding = encoding(entry.encoding)?;
        let whole = match encoding.is_in_blocks() {
            true => due.is_some_and(|due| due < entry.stored_bytes.into()),
            false => due == Some(entry.stored_bytes.into()),
        };
        let plain = encoding.is_identity() && whole && !layout.has_shape() && !entry.has_parts();
        if !plain || self.file.bytes().memory().is_some() {
            return Ok(None);
        }
        let checked = self.is_checked(location.chunk) || self.check_head_alone(location)?;
        Ok(due.and_then(|due| usize::try_from(due).ok()).filter(|_| checked))
    }

    /// Checks the head of a chunk, if the reader's policy asks for no more: `true` if it is right.
    fn check_head_alone(&self, location: &ChunkLocation) -> Result<bool> {
        if self.file.verification != Verification::Never {
            return Ok(false);
        }
        let head = self.chunk_head(&location.entry)?;
        // else, which loading names
        let due = u64::from(location.entry.sample_count).saturating_mul(u64_of(self.layout().inner_bytes));
        let right = u64::from(head.raw_bytes) == due;
        if right {
            self.index().checked_chunks.set(location.chunk);
        }
        Ok(right)
    }
}

/// Returns whether the values of a chunk are in blocks.
#[inline]
pub(in crate::read) fn is_in_blocks(entry: &ChunkEntry) -> Result<bool> {
    Ok(encoding(entry.encoding)?.is_in_blocks())
}

/// Returns the body of a chunk up to its first block. `bytes` are those of the chunk, of which
/// `before` precede the values.
fn front_in(bytes: &[u8], before: usize) -> Result<&[u8]> {
    let end = bytes.get(before..).and_then(front_bytes).and_then(|front| before.checked_add(front));
    end.and_then(|end| bytes.get(HEAD_BYTES..end)).ok_or_else(cut_off)
}

pub(in crate::read) fn split_head(bytes: &[u8]) -> Result<(&[u8; HEAD_BYTES], &[u8])> {
    bytes.split_first_chunk().ok_or_else(|| Error::internal("the bytes of a chunk are shorter than its head"))
}

/// Returns the length of head and body.
pub(in crate::read) fn chunk_bytes(entry: &ChunkEntry) -> Result<usize> {
    let length = usize::try_from(entry.stored_bytes).ok().and_then(|bytes| bytes.checked_add(HEAD_BYTES));
    length.ok_or_else(|| Error::over_limit("the chunk is too large for this machine"))
}

#[cold]
pub(in crate::read) fn cut_off() -> Error {
    Error::corrupt("R-5.14", "the front of a chunk in blocks reaches beyond the chunk")
}
