//! Chapter 4: chunk heads and the table of parts.

use super::region::{FileId, HEAD_BYTES, RegionHead, RegionKind, align};
use crate::le::{array_at, put, u16_at, u32_at, u64_at};
use crate::{Error, Result, limits};
use std::ops::Range;

/// The body begins with a [`PartTable`].
pub(crate) const PARTS: u16 = 1;

/// What a chunk's head and its index entry both say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkEntry {
    /// Of the head.
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
    /// The head of a chunk with this body, for a place in a file. `self.entry`'s offset, stored bytes and
    /// checksum are taken from the arguments.
    pub(crate) fn seal(&mut self, file_id: FileId, offset: u64, body: &[u8]) -> Result<[u8; HEAD_BYTES]> {
        let mut head = RegionHead::new(RegionKind::Chunk, file_id, offset, body)?;
        self.entry.offset = offset;
        self.entry.stored_bytes = head.body_bytes;
        self.entry.body_crc = head.body_crc;
        head.slot4 = self.column.to_le_bytes();
        put::<0, 8, 12>(&mut head.slot32, self.entry.first_sample.to_le_bytes());
        put::<8, 4, 12>(&mut head.slot32, self.entry.sample_count.to_le_bytes());
        put::<0, 4, 8>(&mut head.slot48, self.raw_bytes.to_le_bytes());
        put::<4, 2, 8>(&mut head.slot48, self.entry.encoding.to_le_bytes());
        put::<6, 2, 8>(&mut head.slot48, self.entry.flags.to_le_bytes());
        Ok(head.to_bytes())
    }

    /// of a region that is known to be a chunk.
    pub(crate) fn parse(head: &RegionHead, column_count: usize) -> Result<Self> {
        let chunk = Self {
            column: u32::from_le_bytes(head.slot4),
            raw_bytes: u32_at::<0, 8>(&head.slot48),
            entry: ChunkEntry {
                offset: head.offset,
                first_sample: u64_at::<0, 12>(&head.slot32),
                stored_bytes: head.body_bytes,
                sample_count: u32_at::<8, 12>(&head.slot32),
                body_crc: head.body_crc,
                encoding: u16_at::<4, 8>(&head.slot48),
                flags: u16_at::<6, 8>(&head.slot48),
            },
        };
        chunk.check(column_count).map_err(|error| error.with_offset(head.offset))?;
        Ok(chunk)
    }

    /// The head of a chunk that has been checked, made anew from its index entry and the raw lengths in its table of
    /// parts, which add up to the head's.
    pub(crate) fn from_entry(column: u32, entry: ChunkEntry, body: &[u8]) -> Self {
        let raw_bytes = body.first_chunk::<PART_TABLE_BYTES>().map_or(0, |table| {
            let lengths = [u32_at::<4, 64>(table), u32_at::<20, 64>(table), u32_at::<36, 64>(table)];
            lengths.iter().fold(0, |sum: u32, &length| sum.saturating_add(length))
        });
        Self { column, raw_bytes, entry }
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
                "a chunk of column number {}, {} samples, {} decoded bytes, flags {:#x} cannot be",
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

/// One entry of the table of parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub stored_bytes: u32,
    pub raw_bytes: u32,
    pub encoding: u16,
}

/// Where the parts of a chunk are in its body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartTable {
    pub validity: Part,
    pub shape: Part,
    pub values: Part,
}

pub(crate) const PART_TABLE_BYTES: usize = 64;

impl PartTable {
    /// The parts of a body without a table: only values.
    pub(crate) fn values_only(entry: &ChunkEntry, raw_bytes: u32) -> Self {
        let values = Part { stored_bytes: entry.stored_bytes, raw_bytes, encoding: entry.encoding };
        Self { values, ..Self::default() }
    }

    pub(crate) fn to_bytes(self) -> [u8; PART_TABLE_BYTES] {
        let mut out = [0; PART_TABLE_BYTES];
        put::<0, 16, 64>(&mut out, self.validity.to_bytes());
        put::<16, 16, 64>(&mut out, self.shape.to_bytes());
        put::<32, 16, 64>(&mut out, self.values.to_bytes());
        out
    }

    /// Parses the table at the start of `body`, but for the padding.
    pub(crate) fn parse(body: &[u8], head: &ChunkHead) -> Result<Self> {
        let table: &[u8; PART_TABLE_BYTES] = body
            .first_chunk()
            .ok_or_else(|| Error::corrupt("R-4.4", "the chunk is too short for its table of parts"))?;
        let parts = Self {
            validity: Part::parse(&array_at::<0, 16, 64>(table))?,
            shape: Part::parse(&array_at::<16, 16, 64>(table))?,
            values: Part::parse(&array_at::<32, 16, 64>(table))?,
        };
        let raw_bytes: u64 =
            [parts.validity, parts.shape, parts.values].iter().map(|part| u64::from(part.raw_bytes)).sum();
        let side = [parts.validity, parts.shape];
        if array_at::<48, 16, 64>(table) != [0; 16]
            || side.iter().any(|part| part.is_absent() && *part != Part::default())
            || parts.values.encoding != head.entry.encoding
            || raw_bytes != u64::from(head.raw_bytes)
            || parts.values_at() + u64::from(parts.values.stored_bytes) != body_length(body)
        {
            let message = format!("the chunk's table of parts does not fit the chunk: {parts:?}");
            return Err(Error::corrupt("R-4.4", message));
        }
        Ok(parts)
    }

    /// Where in the body the shape part starts.
    pub(crate) fn shape_at(&self) -> u64 {
        align(64 + u64::from(self.validity.stored_bytes), 64)
    }

    /// Where in the body the values start.
    pub(crate) fn values_at(&self) -> u64 {
        align(self.shape_at() + u64::from(self.shape.stored_bytes), 64)
    }

    /// Whether the bytes between the parts of `body` are zero.
    pub(crate) fn padding_is_zero(&self, body: &[u8]) -> bool {
        let gaps = [
            (64 + u64::from(self.validity.stored_bytes), self.shape_at()),
            (self.shape_at() + u64::from(self.shape.stored_bytes), self.values_at()),
        ];
        gaps.iter().all(|&(from, to)| {
            let gap = range(from, to - from).and_then(|range| body.get(range));
            gap.is_some_and(|gap| gap.iter().all(|&byte| byte == 0))
        })
    }

    /// Where in the body validity, shape and values are stored. `None` never happens after [`PartTable::parse`].
    pub(crate) fn ranges(&self) -> Option<[Range<usize>; 3]> {
        Some([
            range(64, self.validity.stored_bytes.into())?,
            range(self.shape_at(), self.shape.stored_bytes.into())?,
            range(self.values_at(), self.values.stored_bytes.into())?,
        ])
    }
}

fn body_length(body: &[u8]) -> u64 {
    body.len() as u64 // exact: usize has at most 64 bits
}

fn range(at: u64, length: u64) -> Option<Range<usize>> {
    let at = usize::try_from(at).ok()?;
    Some(at..at.checked_add(usize::try_from(length).ok()?)?)
}

impl Part {
    /// Whether validity or shape is not there.
    pub(crate) fn is_absent(&self) -> bool {
        self.raw_bytes == 0
    }

    fn to_bytes(self) -> [u8; 16] {
        let mut out = [0; 16];
        put::<0, 4, 16>(&mut out, self.stored_bytes.to_le_bytes());
        put::<4, 4, 16>(&mut out, self.raw_bytes.to_le_bytes());
        put::<8, 2, 16>(&mut out, self.encoding.to_le_bytes());
        out
    }

    fn parse(bytes: &[u8; 16]) -> Result<Self> {
        if array_at::<10, 6, 16>(bytes) != [0; 6] {
            return Err(Error::corrupt("R-4.4", "reserved bytes of a part are set"));
        }
        Ok(Self {
            stored_bytes: u32_at::<0, 16>(bytes),
            raw_bytes: u32_at::<4, 16>(bytes),
            encoding: u16_at::<8, 16>(bytes),
        })
    }
}
