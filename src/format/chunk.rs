//! Chapter 4.1: the head of a chunk.

use super::part_table::PartTable;
use super::region::{FileId, HEAD_BYTES, RegionHead, RegionKind, region_head};
use crate::le::structure;
use crate::{Error, Result, limits};
use std::ops::Range;

structure! {
    /// Chapter 4.1: the fields that only the head of a chunk has.
    mod chunk_head: 64 bytes with region_head {
        4 => COLUMN: u32,
        32 => FIRST_SAMPLE: u64,
        40 => SAMPLE_COUNT: u32,
        48 => RAW_BYTES: u32,
        52 => ENCODING: u16,
        54 => CHUNK_FLAGS: u16,
    }
}

/// The bit of `chunk_flags` of a chunk whose body begins with a [`PartTable`].
pub(crate) const PARTS: u16 = 1;

/// The facts that a chunk's head and its entry in the index both state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkEntry {
    /// The offset of the chunk's head.
    pub offset: u64,
    pub first_sample: u64,
    pub stored_bytes: u32,
    pub sample_count: u32,
    pub body_crc: u32,
    pub encoding: u16,
    pub flags: u16,
}

impl ChunkEntry {
    pub(crate) fn samples(&self) -> Range<u64> {
        self.first_sample..self.first_sample.saturating_add(u64::from(self.sample_count))
    }

    pub(crate) fn has_parts(&self) -> bool {
        self.flags & PARTS != 0
    }
}

/// A chunk's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHead {
    pub column: u32,
    pub raw_bytes: u32,
    pub entry: ChunkEntry,
}

impl ChunkHead {
    /// Returns the head of a chunk that begins at `offset` and has this body. Sets the offset, the
    /// stored bytes and the checksum of `self.entry`.
    pub(crate) fn seal(&mut self, file_id: FileId, offset: u64, body: &[u8]) -> Result<RegionHead> {
        let head = RegionHead::new(RegionKind::Chunk, file_id, offset, body)?
            .with(chunk_head::COLUMN, self.column)
            .with(chunk_head::FIRST_SAMPLE, self.entry.first_sample)
            .with(chunk_head::SAMPLE_COUNT, self.entry.sample_count)
            .with(chunk_head::RAW_BYTES, self.raw_bytes)
            .with(chunk_head::ENCODING, self.entry.encoding)
            .with(chunk_head::CHUNK_FLAGS, self.entry.flags);
        self.entry.offset = offset;
        self.entry.stored_bytes = head.body_bytes;
        self.entry.body_crc = head.body_crc;
        Ok(head)
    }

    /// Reads the fields of a region that is a chunk, unchecked.
    pub(crate) fn unchecked(head: &RegionHead) -> Self {
        Self {
            column: head.get(chunk_head::COLUMN),
            raw_bytes: head.get(chunk_head::RAW_BYTES),
            entry: ChunkEntry {
                offset: head.offset,
                first_sample: head.get(chunk_head::FIRST_SAMPLE),
                stored_bytes: head.body_bytes,
                sample_count: head.get(chunk_head::SAMPLE_COUNT),
                body_crc: head.body_crc,
                encoding: head.get(chunk_head::ENCODING),
                flags: head.get(chunk_head::CHUNK_FLAGS),
            },
        }
    }

    /// Parses the head of a region that is a chunk.
    pub(crate) fn parse(head: &RegionHead, column_count: usize) -> Result<Self> {
        let chunk = Self::unchecked(head);
        chunk.check(column_count).map_err(|error| error.with_offset(head.offset))?;
        Ok(chunk)
    }

    /// Makes the head of a chunk that has been checked from its entry in the index and its part
    /// table, whose raw lengths add up to the head's.
    pub(crate) fn from_entry(column: u32, entry: ChunkEntry, body: &[u8]) -> Self {
        Self { column, raw_bytes: PartTable::sum_of_raw_bytes(body), entry }
    }

    /// Makes the head of a chunk that has been checked from its entry in the index and its bytes,
    /// for the one field that the entry does not have.
    pub(crate) fn of_checked(column: u32, entry: ChunkEntry, bytes: &[u8; HEAD_BYTES]) -> Self {
        Self { column, raw_bytes: chunk_head::RAW_BYTES.get(bytes), entry }
    }

    fn check(&self, column_count: usize) -> Result<()> {
        let entry = &self.entry;
        let known_column = usize::try_from(self.column).is_ok_and(|column| column < column_count);
        let samples = 1..=limits::CHUNK_SAMPLES;
        if !known_column
            || !samples.contains(&entry.sample_count)
            || self.raw_bytes > limits::CHUNK_BYTES
            || entry.flags & !PARTS != 0
        {
            let message = format!(
                "a chunk is out of bounds: column number {}, {} samples, {} decoded bytes, flags {:#x}",
                self.column, entry.sample_count, self.raw_bytes, entry.flags
            );
            return Err(Error::corrupt("R-4.1", message));
        }
        if entry.sample_count > 1 && self.raw_bytes > limits::SHARED_CHUNK_BYTES {
            let message = format!("a chunk of {} samples has {} bytes", entry.sample_count, self.raw_bytes);
            return Err(Error::corrupt("R-4.10", message));
        }
        Ok(())
    }
}
