//! Opens a file for reading or appending: its source, header, last valid trailer and footer
//! (chapter 10).

mod facts;
mod identity;
mod positioned;
mod ranges;
pub(crate) mod source;

pub use facts::ColumnFacts;
pub use identity::FileIdentity;
pub(crate) use identity::refuse_same;
pub use positioned::PositionedFile;
pub use ranges::{Fragment, RangeError};
pub use source::{InMemory, Source};

use crate::codec::check_supported;
use crate::format::footer::Footer;
use crate::format::header::Header;
use crate::format::region::{FileId, HEAD, HEAD_BYTES, RegionHead, RegionKind, align};
use crate::format::trailer::Trailer;
use crate::format::{Schema, schema_block};
use crate::{Error, Result, memory};
use source::{fetch, fetch_array};

/// The header, checked.
pub(crate) struct OpenedHeader {
    pub head: RegionHead,
    pub header: Header,
    pub schema: Schema,
    pub schema_block: Vec<u8>,
}

/// A commit, checked: its trailer and its footer.
pub(crate) struct OpenedCommit {
    pub trailer: Trailer,
    pub trailer_offset: u64,
    pub footer: Footer,
}

/// Reads the header, chapter 3, R-9.1.
pub(crate) fn open_header(source: &dyn Source) -> Result<OpenedHeader> {
    let first: [u8; HEAD_BYTES] = fetch_array(source, 0)?;
    if !first.starts_with(b"\x89TSL") {
        let message = "this is not a tensilo file: it does not begin with \\x89TSL";
        return Err(Error::corrupt("R-2.2", message).with_offset(0));
    }
    let head = RegionHead::parse(&first, 0)?;
    let header = Header::parse(&head)?;
    let schema_block = body(source, &head)?;
    let schema = schema_block::parse(&schema_block)?;
    Ok(OpenedHeader { head, header, schema, schema_block })
}

/// Returns the body of a region, checked.
pub(crate) fn body(source: &dyn Source, head: &RegionHead) -> Result<Vec<u8>> {
    head.check_inside(source.byte_count())?;
    let length = usize::try_from(head.body_bytes).unwrap_or(usize::MAX);
    let mut body = Vec::new();
    if let Some(file) = source.as_bytes() {
        let found = source::slice(file, head.body_offset(), length)?;
        head.check_body(found)?; // before memory is taken
        body = memory::with_capacity(length)?;
        body.extend_from_slice(found);
    } else {
        fetch(source, head.body_offset(), length, &mut body)?;
        head.check_body(&body)?;
    }
    Ok(body)
}

/// A trailer that is valid by chapter 7.3, and its footer, whose body has not been parsed.
struct FoundTrailer {
    trailer: Trailer,
    offset: u64,
    footer_head: RegionHead,
    footer_body: Vec<u8>,
}

/// Returns the commit of the last valid trailer (chapter 7.3).
pub(crate) fn open_last_commit(source: &dyn Source, opened: &OpenedHeader) -> Result<OpenedCommit> {
    let mut first_error = None;
    let mut candidates = TrailerScan::new(source);
    // footers of a file do not overlap: together they have at most its length
    let mut left = source.byte_count();
    while let Some(offset) = candidates.next()? {
        match find_trailer(source, opened.header.file_id, offset, &mut left) {
            Ok(found) => return open_commit(opened, &found),
            Err(error) if error.kind() == crate::ErrorKind::Corrupt => first_error = first_error.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    Err(first_error.unwrap_or_else(|| {
        let message = "the file has no valid trailer: it is truncated, or its end is damaged, or its writer has not committed yet";
        Error::corrupt("R-2.9", message).with_offset(source.byte_count())
    }))
}

/// Returns the trailer at `offset`, if it is valid by chapter 7.3.
fn find_trailer(source: &dyn Source, file_id: FileId, offset: u64, left: &mut u64) -> Result<FoundTrailer> {
    let trailer = Trailer::parse(&expect(source, offset, RegionKind::Trailer, file_id)?)?;
    let footer_head = expect(source, trailer.footer_offset, RegionKind::Footer, file_id)?;
    if align(footer_head.end(), HEAD) != offset {
        let message = "the trailer does not follow its footer directly";
        return Err(Error::corrupt("R-7.7", message).with_offset(offset));
    }
    *left = left.checked_sub(footer_head.body_bytes.into()).ok_or_else(|| {
        Error::corrupt("R-2.7", "the footers of damaged trailers overlap").with_offset(footer_head.offset)
    })?;
    let footer_body = body(source, &footer_head)?;
    Ok(FoundTrailer { trailer, offset, footer_head, footer_body })
}

/// Parses the footer, and checks.
fn open_commit(opened: &OpenedHeader, found: &FoundTrailer) -> Result<OpenedCommit> {
    Footer::flags(&found.footer_head).check()?;
    let footer = Footer::parse(&found.footer_head, &found.footer_body, &opened.schema, &opened.schema_block)?;
    for (facts, column) in footer.columns.iter().zip(&opened.schema.columns) {
        for &(id, _) in &facts.encodings {
            check_supported(id).map_err(|error| error.with_column(&column.name))?;
        }
    }
    Ok(OpenedCommit { trailer: found.trailer, trailer_offset: found.offset, footer })
}

fn expect(source: &dyn Source, offset: u64, kind: RegionKind, file_id: FileId) -> Result<RegionHead> {
    let head = RegionHead::parse(&fetch_array(source, offset)?, offset)?;
    head.expect(kind, file_id)?;
    Ok(head)
}

/// Finds offsets that seem to hold a trailer, from the end of the file to its start.
struct TrailerScan<'a> {
    source: &'a dyn Source,
    /// Offsets from this one on have been scanned.
    end: u64,
    block_start: u64,
    block: Vec<u8>,
}

/// The length of the blocks that are scanned if the last 64 bytes are not a trailer.
const SCAN_BYTES: u64 = 64 << 10;

impl<'a> TrailerScan<'a> {
    fn new(source: &'a dyn Source) -> Self {
        let end = source.byte_count() & !(HEAD - 1);
        Self { source, end, block_start: end, block: Vec::new() }
    }

    /// Returns the next offset, in descending order.
    fn next(&mut self) -> Result<Option<u64>> {
        while self.end >= 2 * HEAD {
            if self.end <= self.block_start {
                self.load_block()?;
            }
            self.end -= HEAD;
            let at = usize::try_from(self.end - self.block_start).unwrap_or(usize::MAX);
            if self.block.get(at..).is_some_and(|bytes| bytes.starts_with(b"TSLE")) {
                return Ok(Some(self.end));
            }
        }
        Ok(None)
    }

    fn load_block(&mut self) -> Result<()> {
        let length = if self.block.is_empty() { HEAD } else { SCAN_BYTES.min(self.block_start) };
        self.block_start -= length;
        self.block.resize(usize::try_from(length).unwrap_or(0), 0); // at most SCAN_BYTES
        source::read(self.source, self.block_start, &mut self.block)
    }
}
