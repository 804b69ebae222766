//! Chapters 4.1 and 4.2: the header of a chunk, and its part table.
//!
//! A chunk has up to three parts: validity, shape and values. If a chunk has only values, they are
//! its body. Otherwise, the body starts with a part table, which states the lengths and the
//! encoding of each part.
//!
//! The header and the index entry of a chunk state the same facts ([`ChunkEntry`]). Therefore, a
//! reader that has the index can read the body without the header, and if the index is lost,
//! salvage can find chunks by their headers.

use super::region::{FileId, HEADER_BYTES, RegionHeader, RegionKind, align, region_header};
use crate::bytes::le::{structure, u64_of};
use crate::{Error, Result, limits};
use std::ops::Range;

structure! {
    /// Chapter 4.1: the fields that only the header of a chunk has.
    mod chunk_header: 64 bytes with region_header {
        4 => COLUMN: u32,
        32 => FIRST_SAMPLE: u64,
        40 => SAMPLE_COUNT: u32,
        48 => RAW_BYTES: u32,
        52 => ENCODING: u16,
        54 => CHUNK_FLAGS: u16,
    }
}

/// The bit of `chunk_flags` that is set if the body begins with a [`PartTable`].
pub(crate) const PARTS: u16 = 1;

/// The facts that are stated both in the header of a chunk and in its index entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkEntry {
    /// The offset of the chunk's header.
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

/// The header of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHeader {
    pub column: u32,
    pub raw_bytes: u32,
    pub entry: ChunkEntry,
}

impl ChunkHeader {
    /// Returns the region header of a chunk that begins at `offset` and has this body. Also sets
    /// the offset, the stored size and the checksum in `self.entry`.
    pub(crate) fn seal(&mut self, file_id: FileId, offset: u64, body: &[u8]) -> Result<RegionHeader> {
        let header = RegionHeader::new(RegionKind::Chunk, file_id, offset, body)?
            .with(chunk_header::COLUMN, self.column)
            .with(chunk_header::FIRST_SAMPLE, self.entry.first_sample)
            .with(chunk_header::SAMPLE_COUNT, self.entry.sample_count)
            .with(chunk_header::RAW_BYTES, self.raw_bytes)
            .with(chunk_header::ENCODING, self.entry.encoding)
            .with(chunk_header::CHUNK_FLAGS, self.entry.flags);
        self.entry.offset = offset;
        self.entry.stored_bytes = header.body_bytes;
        self.entry.body_crc = header.body_crc;
        Ok(header)
    }

    /// Reads the fields of a chunk's region header without checking them.
    pub(crate) fn unchecked(header: &RegionHeader) -> Self {
        Self {
            column: header.get(chunk_header::COLUMN),
            raw_bytes: header.get(chunk_header::RAW_BYTES),
            entry: ChunkEntry {
                offset: header.offset,
                first_sample: header.get(chunk_header::FIRST_SAMPLE),
                stored_bytes: header.body_bytes,
                sample_count: header.get(chunk_header::SAMPLE_COUNT),
                body_crc: header.body_crc,
                encoding: header.get(chunk_header::ENCODING),
                flags: header.get(chunk_header::CHUNK_FLAGS),
            },
        }
    }

    /// Parses the region header of a chunk.
    pub(crate) fn parse(header: &RegionHeader, column_count: usize) -> Result<Self> {
        let chunk = Self::unchecked(header);
        chunk.check(column_count).map_err(|error| error.with_offset(header.offset))?;
        Ok(chunk)
    }

    /// Creates the header of a checked chunk from its index entry and its part table. The raw
    /// lengths in the part table add up to the raw length in the header.
    pub(crate) fn from_entry(column: u32, entry: ChunkEntry, body: &[u8]) -> Self {
        Self { column, raw_bytes: PartTable::sum_of_raw_bytes(body), entry }
    }

    /// Creates the header of a checked chunk from its index entry and the bytes of its header,
    /// which contain the only field that the entry lacks.
    pub(crate) fn of_checked(column: u32, entry: ChunkEntry, bytes: &[u8; HEADER_BYTES]) -> Self {
        Self { column, raw_bytes: chunk_header::RAW_BYTES.get(bytes), entry }
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
                "the header of a chunk is invalid: column number {}, {} samples, {} decoded bytes, flags {:#x}",
                self.column, entry.sample_count, self.raw_bytes, entry.flags
            );
            return Err(Error::corrupt("R-4.1", message));
        }
        if entry.sample_count > 1 && self.raw_bytes > limits::SHARED_CHUNK_BYTES {
            let message = format!(
                "a chunk of {} samples has {} decoded bytes; only a chunk of one sample may be that large",
                entry.sample_count, self.raw_bytes
            );
            return Err(Error::corrupt("R-4.10", message));
        }
        Ok(())
    }
}

structure! {
    /// Chapter 4.2: the part table.
    mod part_table: 64 bytes {
        0 => VALIDITY: [u8; 16],
        16 => SHAPE: [u8; 16],
        32 => VALUES: [u8; 16],
        48 => RESERVED: [u8; 16],
    }
}

structure! {
    /// Chapter 4.2: an entry of the part table.
    mod part_entry: 16 bytes {
        0 => STORED_BYTES: u32,
        4 => RAW_BYTES: u32,
        8 => ENCODING: u16,
        10 => RESERVED: [u8; 6],
    }
}

/// The size of the part table in bytes.
pub(crate) const PART_TABLE_BYTES: usize = part_table::SIZE;

/// An entry of the part table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub stored_bytes: u32,
    pub raw_bytes: u32,
    pub encoding: u16,
}

/// The lengths and encodings of the parts of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartTable {
    pub validity: Part,
    pub shape: Part,
    pub values: Part,
}

impl PartTable {
    /// Returns the part table of a chunk that has only values. The file does not contain this
    /// table.
    pub(crate) fn values_only(values: Part) -> Self {
        Self { values, ..Self::default() }
    }

    pub(crate) fn to_bytes(self) -> [u8; PART_TABLE_BYTES] {
        let mut bytes = [0; PART_TABLE_BYTES];
        part_table::VALIDITY.put(&mut bytes, self.validity.to_bytes());
        part_table::SHAPE.put(&mut bytes, self.shape.to_bytes());
        part_table::VALUES.put(&mut bytes, self.values.to_bytes());
        bytes
    }

    /// Parses the table at the start of a body that has `body_bytes` bytes. `body` may be only a
    /// prefix of it. `encoding` and `raw_bytes` are from the chunk's header. Checks, except
    /// for the padding.
    pub(crate) fn parse(body: &[u8], body_bytes: u32, encoding: u16, raw_bytes: u32) -> Result<Self> {
        let table: &[u8; PART_TABLE_BYTES] =
            body.first_chunk().ok_or_else(|| Error::corrupt("R-4.4", "the chunk is too short for its part table"))?;
        let parts = Self {
            validity: Part::parse(&part_table::VALIDITY.get(table))?,
            shape: Part::parse(&part_table::SHAPE.get(table))?,
            values: Part::parse(&part_table::VALUES.get(table))?,
        };
        let all = [parts.validity, parts.shape, parts.values];
        let sum: u64 = all.iter().map(|part| u64::from(part.raw_bytes)).sum();
        let side = [parts.validity, parts.shape];
        if part_table::RESERVED.get(table) != [0; 16]
            || side.iter().any(|part| part.is_absent() && *part != Part::default())
            || parts.values.encoding != encoding
            || sum != u64::from(raw_bytes)
            || parts.values_at() + u64::from(parts.values.stored_bytes) != u64::from(body_bytes)
        {
            let stored = parts.values_at() + u64::from(parts.values.stored_bytes);
            let message = format!(
                "the part table does not match the chunk: its parts have {sum} raw bytes and {stored} stored bytes, \
                 and encoding {}; the chunk has {raw_bytes}, {body_bytes} and {encoding}",
                parts.values.encoding,
            );
            return Err(Error::corrupt("R-4.4", message));
        }
        Ok(parts)
    }

    /// Returns the sum of the three raw lengths in the table at the start of `body`. Returns 0 if
    /// `body` is too short for a table.
    pub(super) fn sum_of_raw_bytes(body: &[u8]) -> u32 {
        let Some(table) = body.first_chunk::<PART_TABLE_BYTES>() else { return 0 };
        let entries = [part_table::VALIDITY.get(table), part_table::SHAPE.get(table), part_table::VALUES.get(table)];
        entries.iter().fold(0, |sum: u32, entry| sum.saturating_add(part_entry::RAW_BYTES.get(entry)))
    }

    /// Returns the offset of the shape part in the body.
    pub(crate) fn shape_at(&self) -> u64 {
        align(TABLE_END + u64::from(self.validity.stored_bytes), 64)
    }

    /// Returns the offset of the values in the body.
    pub(crate) fn values_at(&self) -> u64 {
        align(self.shape_at() + u64::from(self.shape.stored_bytes), 64)
    }

    /// Returns whether the padding between the parts in `body` is zero.
    pub(crate) fn padding_is_zero(&self, body: &[u8]) -> bool {
        let gaps = [
            (TABLE_END + u64::from(self.validity.stored_bytes), self.shape_at()),
            (self.shape_at() + u64::from(self.shape.stored_bytes), self.values_at()),
        ];
        gaps.iter().all(|&(from, to)| {
            let gap = range(from, to - from).and_then(|range| body.get(range));
            gap.is_some_and(|gap| gap.iter().all(|&byte| byte == 0))
        })
    }

    /// Returns the ranges of validity, shape and values in the body. They are inside the body if
    /// [`PartTable::parse`] accepted it.
    pub(crate) fn ranges(&self) -> Option<[Range<usize>; 3]> {
        Some([
            range(TABLE_END, self.validity.stored_bytes.into())?,
            range(self.shape_at(), self.shape.stored_bytes.into())?,
            range(self.values_at(), self.values.stored_bytes.into())?,
        ])
    }
}

/// The offset in the body at which the part table ends and the first part begins.
const TABLE_END: u64 = u64_of(PART_TABLE_BYTES);

fn range(at: u64, length: u64) -> Option<Range<usize>> {
    let at = usize::try_from(at).ok()?;
    Some(at..at.checked_add(usize::try_from(length).ok()?)?)
}

impl Part {
    /// Returns whether this validity or shape part is absent.
    pub(crate) fn is_absent(&self) -> bool {
        self.raw_bytes == 0
    }

    fn to_bytes(self) -> [u8; part_entry::SIZE] {
        let mut bytes = [0; part_entry::SIZE];
        part_entry::STORED_BYTES.put(&mut bytes, self.stored_bytes);
        part_entry::RAW_BYTES.put(&mut bytes, self.raw_bytes);
        part_entry::ENCODING.put(&mut bytes, self.encoding);
        bytes
    }

    fn parse(bytes: &[u8; part_entry::SIZE]) -> Result<Self> {
        if part_entry::RESERVED.get(bytes) != [0; 6] {
            return Err(Error::corrupt("R-4.4", "reserved bytes of the part table are not zero"));
        }
        Ok(Self {
            stored_bytes: part_entry::STORED_BYTES.get(bytes),
            raw_bytes: part_entry::RAW_BYTES.get(bytes),
            encoding: part_entry::ENCODING.get(bytes),
        })
    }
}
