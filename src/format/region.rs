//! Chapter 2: regions.
//!
//! A file is a sequence of regions, each with a header of 64 bytes and a body. The header states
//! the kind of the region, the file to which it belongs, its own offset, and the length and
//! checksum of its body. The header also has a checksum of its own bytes. So a header can be
//! trusted before its body is read, wherever a salvage scan or the search for the last trailer
//! finds it.
//!
//! Each header also repeats the checksum of the previous header. This chain distinguishes the
//! regions of this file from regions of another file with the same schema, which can have the same
//! file id.
//!
//! This module has the fields that all headers share. The module of each region kind declares the
//! other fields, and the compiler checks that both together cover each byte exactly once.

use crate::bytes::checksum::crc;
use crate::bytes::le::{Field, FieldValue, structure, u64_of};
use crate::{Error, Result, limits};
use std::fmt;

structure! {
    /// Chapter 2.2: the fields of every region header.
    pub(super) mod region_header: 64 bytes with kind_specific {
        0 => MAGIC: [u8; 4],
        8 => FILE_ID: [u8; 12],
        20 => PREVIOUS: u32,
        24 => OFFSET: u64,
        44 => BODY_BYTES: u32,
        56 => BODY_CRC: u32,
        60 => HEADER_CRC: u32,
    }
}

/// The bytes of a header that depend on the kind of the region.
mod kind_specific {
    pub(super) const FIELD_MASK: u64 = crate::bytes::le::field_mask(&[(4, 4), (32, 12), (48, 8)]);
}

/// The size of a header in bytes. Regions begin at multiples of it.
pub(crate) const HEADER_BYTES: usize = region_header::SIZE;
/// [`HEADER_BYTES`] as a file offset.
pub(crate) const HEADER_LEN: u64 = u64_of(HEADER_BYTES);

/// The 12 bytes that every region header of a file repeats. They distinguish the regions of this
/// file from regions of files with other schemas. Files with the same schema can have the same id.
/// The checksum of the previous header distinguishes their regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileId(pub [u8; 12]);

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

/// The kind of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RegionKind {
    /// The first region, the file header: flags, alignment, schema.
    FileHeader,
    /// Consecutive samples of one column.
    Chunk,
    /// Bytes that chunks of one column refer to.
    Table,
    /// Up to 126 entries of the index, for chunks of one column.
    IndexPage,
    /// A description of the whole file up to a commit.
    Footer,
    /// The end of a commit.
    Trailer,
}

impl RegionKind {
    pub(crate) const ALL: [Self; 6] =
        [Self::FileHeader, Self::Chunk, Self::Table, Self::IndexPage, Self::Footer, Self::Trailer];

    /// Returns the kind that the magic of a header states; `None` if the magic is unknown.
    #[inline]
    pub(crate) fn of(header: &[u8; HEADER_BYTES]) -> Option<Self> {
        let magic = region_header::MAGIC.get(header);
        Self::ALL.into_iter().find(|kind| kind.magic() == magic)
    }

    fn magic(self) -> [u8; 4] {
        match self {
            Self::FileHeader => *b"\x89TSL",
            Self::Chunk => *b"TSLC",
            Self::Table => *b"TSLT",
            Self::IndexPage => *b"TSLI",
            Self::Footer => *b"TSLF",
            Self::Trailer => *b"TSLE",
        }
    }

    fn max_body_bytes(self) -> u32 {
        match self {
            Self::FileHeader => limits::SCHEMA_BYTES,
            Self::Chunk => limits::CHUNK_BYTES,
            Self::Table => limits::TABLE_BYTES,
            Self::IndexPage => limits::INDEX_PAGE_BYTES,
            Self::Footer => limits::FOOTER_BYTES,
            Self::Trailer => 0,
        }
    }

    /// Returns the name that the specification uses, such as `"index page"`.
    pub fn name(self) -> &'static str {
        match self {
            Self::FileHeader => "file header",
            Self::Chunk => "chunk",
            Self::Table => "table",
            Self::IndexPage => "index page",
            Self::Footer => "footer",
            Self::Trailer => "trailer",
        }
    }
}

impl fmt::Display for RegionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The header of a region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegionHeader {
    pub kind: RegionKind,
    pub file_id: FileId,
    /// The `header_crc` of the previous region; 0 in the file header.
    pub previous: u32,
    pub offset: u64,
    pub body_bytes: u32,
    pub body_crc: u32,
    /// The bytes of the header, from which the fields that depend on the kind are read.
    pub(super) bytes: [u8; 64],
}

impl RegionHeader {
    /// Creates the header of a region that begins at `offset` and has this body. `previous` and the
    /// fields that depend on the kind are 0. Fails if the body exceeds the limit for the kind.
    pub(crate) fn new(kind: RegionKind, file_id: FileId, offset: u64, body: &[u8]) -> Result<Self> {
        let limit = kind.max_body_bytes();
        let body_bytes = u32::try_from(body.len()).ok().filter(|&bytes| bytes <= limit).ok_or_else(|| {
            let message = format!("the {kind} would have {} bytes, but the format allows {limit}", body.len());
            Error::over_limit(message)
        })?;
        Ok(Self { kind, file_id, previous: 0, offset, body_bytes, body_crc: crc(body), bytes: [0; HEADER_BYTES] })
    }

    /// Returns a field that depends on the kind.
    pub(super) fn get<T: FieldValue, const AT: usize>(&self, field: Field<T, AT, HEADER_BYTES>) -> T {
        field.get(&self.bytes)
    }

    /// Sets a field that depends on the kind.
    pub(super) fn with<T: FieldValue, const AT: usize>(mut self, field: Field<T, AT, HEADER_BYTES>, value: T) -> Self {
        field.put(&mut self.bytes, value);
        self
    }

    /// Returns the header with `previous` set to the `header_crc` of the previous region.
    pub(crate) fn after(self, previous: u32) -> Self {
        Self { previous, ..self }
    }

    /// Returns the checksum of the header, which the next region repeats.
    pub(crate) fn header_crc(&self) -> u32 {
        region_header::HEADER_CRC.get(&self.to_bytes())
    }

    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = self.bytes;
        region_header::MAGIC.put(&mut bytes, self.kind.magic());
        region_header::FILE_ID.put(&mut bytes, self.file_id.0);
        region_header::PREVIOUS.put(&mut bytes, self.previous);
        region_header::OFFSET.put(&mut bytes, self.offset);
        region_header::BODY_BYTES.put(&mut bytes, self.body_bytes);
        region_header::BODY_CRC.put(&mut bytes, self.body_crc);
        let header_crc = header_crc(&bytes);
        region_header::HEADER_CRC.put(&mut bytes, header_crc);
        bytes
    }

    /// Parses the header at `offset`. Checks, R-2.2 (the kind is known), R-2.4, and
    /// (the limit of the body).
    pub(crate) fn parse(bytes: &[u8; HEADER_BYTES], offset: u64) -> Result<Self> {
        Self::parse_at(bytes, offset).map_err(|error| error.with_offset(offset))
    }

    fn parse_at(bytes: &[u8; HEADER_BYTES], offset: u64) -> Result<Self> {
        let (found, computed) = (region_header::HEADER_CRC.get(bytes), header_crc(bytes));
        if found != computed {
            let message = format!(
                "a region header is damaged: it states the checksum {found:08x}, but the checksum of its bytes is \
                 {computed:08x}"
            );
            return Err(Error::corrupt("R-2.1", message));
        }
        let kind = RegionKind::of(bytes).ok_or_else(|| {
            let magic = region_header::MAGIC.get(bytes);
            Error::corrupt("R-2.2", format!("unknown region kind {magic:02x?}"))
        })?;
        let header = Self {
            kind,
            file_id: FileId(region_header::FILE_ID.get(bytes)),
            previous: region_header::PREVIOUS.get(bytes),
            offset: region_header::OFFSET.get(bytes),
            body_bytes: region_header::BODY_BYTES.get(bytes),
            body_crc: region_header::BODY_CRC.get(bytes),
            bytes: *bytes,
        };
        if header.offset != offset || !offset.is_multiple_of(HEADER_LEN) {
            let message =
                format!("the {kind} at {offset} states offset {}; both must be the same multiple of 64", header.offset);
            return Err(Error::corrupt("R-2.4", message));
        }
        let limit = kind.max_body_bytes();
        if header.body_bytes > limit {
            let message = format!("the {kind} states {} bytes, but the format allows {limit}", header.body_bytes);
            return Err(Error::corrupt("R-2.5", message));
        }
        Ok(header)
    }

    /// Returns whether `bytes` can be the header of a region of this kind that follows a region
    /// with the checksum `previous`. `bytes` may be truncated by the end of the file. Compares
    /// magic, file id, `previous` and offset, as far as `bytes` contains them.
    pub(crate) fn can_begin(kind: RegionKind, file_id: FileId, previous: u32, offset: u64, bytes: &[u8]) -> bool {
        let mut expected = [0; HEADER_BYTES];
        region_header::PREVIOUS.put(&mut expected, previous);
        region_header::MAGIC.put(&mut expected, kind.magic());
        region_header::FILE_ID.put(&mut expected, file_id.0);
        region_header::OFFSET.put(&mut expected, offset);
        let (magic_end, id, offset_end) = (4, region_header::FILE_ID.offset(), region_header::OFFSET.offset() + 8);
        let is_known = |at: usize| at < magic_end || (id..offset_end).contains(&at);
        (0..).zip(bytes.iter().zip(&expected)).all(|(at, (found, expected))| found == expected || !is_known(at))
    }

    /// Checks that the region has this kind and belongs to this file.
    pub(crate) fn expect(&self, kind: RegionKind, file_id: FileId) -> Result<()> {
        if self.kind != kind {
            let message = format!("expected the region kind {kind}, found {}", self.kind);
            return Err(Error::corrupt("R-2.2", message).with_offset(self.offset));
        }
        if self.file_id != file_id {
            let message = format!("the {kind} belongs to another file (id {}, not {file_id})", self.file_id);
            return Err(Error::corrupt("R-2.3", message).with_offset(self.offset));
        }
        Ok(())
    }

    /// Checks that the previous region has the checksum `previous`.
    pub(crate) fn check_previous(&self, previous: u32) -> Result<()> {
        if self.previous == previous {
            return Ok(());
        }
        let message = format!(
            "the {} does not belong after the previous region: it states the checksum {:08x} for that region, \
             whose checksum is {previous:08x}; one of the two regions belongs to another file with the same schema, \
             or to another version of this file",
            self.kind, self.previous
        );
        Err(Error::corrupt("R-2.10", message).with_offset(self.offset))
    }

    /// Checks the checksum of the body.
    pub(crate) fn check_body(&self, body: &[u8]) -> Result<()> {
        self.check_body_crc(crc(body))
    }

    /// Compares a computed checksum of the body with the checksum in the header.
    pub(crate) fn check_body_crc(&self, computed: u32) -> Result<()> {
        if computed == self.body_crc {
            return Ok(());
        }
        let message = format!(
            "the {} is damaged: its header states the checksum {:08x}, but the checksum of its {} bytes is \
             {computed:08x}",
            self.kind, self.body_crc, self.body_bytes
        );
        Err(Error::corrupt("R-2.6", message).with_offset(self.offset))
    }

    /// Returns the offset at which the body begins.
    pub(crate) fn body_offset(&self) -> u64 {
        self.offset.saturating_add(HEADER_LEN)
    }

    /// Returns the offset at which the body ends.
    pub(crate) fn end(&self) -> u64 {
        self.body_offset().saturating_add(u64::from(self.body_bytes))
    }

    /// Checks that the header and the body are inside a file of `file_bytes` bytes.
    pub(crate) fn check_inside(&self, file_bytes: u64) -> Result<()> {
        if self.end() <= file_bytes {
            return Ok(());
        }
        let message = format!(
            "the {} ends at {}, beyond the end of the file at {file_bytes}: the file is truncated",
            self.kind,
            self.end()
        );
        Err(Error::corrupt("R-2.5", message).with_offset(self.offset))
    }
}

/// Computes the checksum of a header over all bytes before the field `header_crc`.
fn header_crc(bytes: &[u8; HEADER_BYTES]) -> u32 {
    crc(&bytes[..region_header::HEADER_CRC.offset()]) // in bounds: an offset in the header
}

/// Returns `align(x, a)` as the specification defines it. `a` must be a power of two.
pub(crate) fn align(x: u64, a: u64) -> u64 {
    x.saturating_add(a - 1) & !(a - 1)
}

/// Returns the offset of a region of this kind after a region that ends at `end`.
pub(crate) fn next_offset(kind: RegionKind, end: u64, alignment: u64) -> u64 {
    match kind {
        RegionKind::Chunk | RegionKind::Table => align(end.saturating_add(HEADER_LEN), alignment) - HEADER_LEN,
        _ => align(end, HEADER_LEN),
    }
}

/// Writes the bytes of an id as hexadecimal digits.
pub(super) fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}
