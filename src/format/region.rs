//! Chapter 2: regions. Every region of a file begins with a head of 64 bytes that says what it is, whose it
//! is, where it stands and how long its body is, under a checksum of its own.

use crate::checksum::crc;
use crate::le::{array_at, put, u32_at, u64_at};
use crate::{Error, Result, limits};
use std::fmt;

/// Length of every head, and the unit in which regions are placed.
pub(crate) const HEAD_BYTES: usize = 64;
/// [`HEAD_BYTES`] as a file offset.
pub(crate) const HEAD: u64 = HEAD_BYTES as u64;

/// The 16 bytes that every region of a file carries, so that a region of another file is recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileId(pub [u8; 16]);

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::hex(&self.0, f)
    }
}

/// The kinds of regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RegionKind {
    /// The first region: flags, alignment, schema.
    Header,
    /// A run of samples of one column.
    Chunk,
    /// Bytes that chunks of one column refer to.
    Table,
    /// A piece of the index of one column.
    IndexPage,
    /// What a commit says of the whole file so far.
    Footer,
    /// The end of a commit.
    Trailer,
}

impl RegionKind {
    const ALL: [Self; 6] = [Self::Header, Self::Chunk, Self::Table, Self::IndexPage, Self::Footer, Self::Trailer];

    fn magic(self) -> [u8; 4] {
        match self {
            Self::Header => *b"\x89TSL",
            Self::Chunk => *b"TSLC",
            Self::Table => *b"TSLT",
            Self::IndexPage => *b"TSLI",
            Self::Footer => *b"TSLF",
            Self::Trailer => *b"TSLE",
        }
    }

    fn max_body_bytes(self) -> u32 {
        match self {
            Self::Header => limits::SCHEMA_BYTES,
            Self::Chunk => limits::CHUNK_BYTES,
            Self::Table => limits::TABLE_BYTES,
            Self::IndexPage => super::index::PAGE_BODY_BYTES,
            Self::Footer => limits::FOOTER_BYTES,
            Self::Trailer => 0,
        }
    }

    /// The name used in the specification.
    pub fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
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

/// The head of a region. The three slots hold what depends on the kind; each kind's module reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegionHead {
    pub kind: RegionKind,
    pub slot4: [u8; 4],
    pub file_id: FileId,
    pub offset: u64,
    pub slot32: [u8; 12],
    pub body_bytes: u32,
    pub slot48: [u8; 8],
    pub body_crc: u32,
}

impl RegionHead {
    /// A head for `body`, to stand at `offset`. The body is within the limit of the kind.
    pub(crate) fn new(kind: RegionKind, file_id: FileId, offset: u64, body: &[u8]) -> Result<Self> {
        let body_bytes =
            u32::try_from(body.len()).ok().filter(|&bytes| bytes <= kind.max_body_bytes()).ok_or_else(|| {
                let limit = kind.max_body_bytes();
                let message = format!("the {kind} would have {} bytes; the format allows {limit}", body.len());
                Error::over_limit(message)
            })?;
        Ok(Self {
            kind,
            slot4: [0; 4],
            file_id,
            offset,
            slot32: [0; 12],
            body_bytes,
            slot48: [0; 8],
            body_crc: crc(body),
        })
    }

    pub(crate) fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let mut out = [0; HEAD_BYTES];
        put::<0, 4, 64>(&mut out, self.kind.magic());
        put::<4, 4, 64>(&mut out, self.slot4);
        put::<8, 16, 64>(&mut out, self.file_id.0);
        put::<24, 8, 64>(&mut out, self.offset.to_le_bytes());
        put::<32, 12, 64>(&mut out, self.slot32);
        put::<44, 4, 64>(&mut out, self.body_bytes.to_le_bytes());
        put::<48, 8, 64>(&mut out, self.slot48);
        put::<56, 4, 64>(&mut out, self.body_crc.to_le_bytes());
        let head_crc = crc(&out[..60]); // in bounds: the array has 64 bytes
        put::<60, 4, 64>(&mut out, head_crc.to_le_bytes());
        out
    }

    /// Parses the head found at `offset`, R-2.2 (a known kind), R-2.4, R-2.5 (the limit).
    pub(crate) fn parse(bytes: &[u8; HEAD_BYTES], offset: u64) -> Result<Self> {
        Self::parse_unplaced(bytes, offset).map_err(|error| error.with_offset(offset))
    }

    fn parse_unplaced(bytes: &[u8; HEAD_BYTES], offset: u64) -> Result<Self> {
        let (found, computed) = (u32_at::<60, 64>(bytes), crc(&bytes[..60])); // in bounds: 64 bytes
        if found != computed {
            let message =
                format!("the head of a region is damaged: its checksum is {found:08x}, its bytes give {computed:08x}");
            return Err(Error::corrupt("R-2.1", message));
        }
        let magic = array_at::<0, 4, 64>(bytes);
        let kind = RegionKind::ALL.into_iter().find(|kind| kind.magic() == magic);
        let kind = kind.ok_or_else(|| Error::corrupt("R-2.2", format!("unknown kind of region {magic:02x?}")))?;
        let head = Self {
            kind,
            slot4: array_at::<4, 4, 64>(bytes),
            file_id: FileId(array_at::<8, 16, 64>(bytes)),
            offset: u64_at::<24, 64>(bytes),
            slot32: array_at::<32, 12, 64>(bytes),
            body_bytes: u32_at::<44, 64>(bytes),
            slot48: array_at::<48, 8, 64>(bytes),
            body_crc: u32_at::<56, 64>(bytes),
        };
        if head.offset != offset || !offset.is_multiple_of(HEAD) {
            let message = format!("the {kind} at {offset} says it begins at {}, a multiple of 64", head.offset);
            return Err(Error::corrupt("R-2.4", message));
        }
        if head.body_bytes > kind.max_body_bytes() {
            let message = format!(
                "the {kind} says it has {} bytes; the format allows {}",
                head.body_bytes,
                kind.max_body_bytes()
            );
            return Err(Error::corrupt("R-2.5", message));
        }
        Ok(head)
    }

    /// the region is what is expected here, and of this file.
    pub(crate) fn expect(&self, kind: RegionKind, file_id: FileId) -> Result<()> {
        if self.kind != kind {
            let message = format!("found a {} where a {kind} must stand", self.kind);
            return Err(Error::corrupt("R-2.2", message).with_offset(self.offset));
        }
        if self.file_id != file_id {
            let message = format!("the {kind} belongs to another file (id {}, not {file_id})", self.file_id);
            return Err(Error::corrupt("R-2.3", message).with_offset(self.offset));
        }
        Ok(())
    }

    /// the body is as it was written.
    pub(crate) fn check_body(&self, body: &[u8]) -> Result<()> {
        self.check_body_crc(crc(body))
    }

    /// given the checksum of the body.
    pub(crate) fn check_body_crc(&self, computed: u32) -> Result<()> {
        if computed == self.body_crc {
            return Ok(());
        }
        let message = format!(
            "the {} is damaged: its checksum is {:08x}, its {} bytes give {computed:08x}",
            self.kind, self.body_crc, self.body_bytes
        );
        Err(Error::corrupt("R-2.6", message).with_offset(self.offset))
    }

    /// Where the body starts.
    pub(crate) fn body_offset(&self) -> u64 {
        self.offset.saturating_add(HEAD)
    }

    /// Where the body ends.
    pub(crate) fn end(&self) -> u64 {
        self.body_offset().saturating_add(u64::from(self.body_bytes))
    }

    /// head and body lie inside a file of `file_bytes`.
    pub(crate) fn check_inside(&self, file_bytes: u64) -> Result<()> {
        if self.end() <= file_bytes {
            return Ok(());
        }
        let message = format!(
            "the {} ends at {}, after the end of the file at {file_bytes}: the file is truncated",
            self.kind,
            self.end()
        );
        Err(Error::corrupt("R-2.5", message).with_offset(self.offset))
    }
}

/// `align(x, a)` of the specification; `a` is a power of two.
pub(crate) fn align(x: u64, a: u64) -> u64 {
    x.saturating_add(a - 1) & !(a - 1)
}

/// where a region of `kind` stands after one that ends at `end`.
pub(crate) fn place(kind: RegionKind, end: u64, alignment: u64) -> u64 {
    match kind {
        RegionKind::Chunk | RegionKind::Table => align(end.saturating_add(HEAD), alignment) - HEAD,
        _ => align(end, HEAD),
    }
}
