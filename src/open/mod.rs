//! Opens a file for reading or appending: its source, header, last valid trailer and footer
//! (chapter 10).

pub(crate) mod coalesce;
mod facts;
mod first_bytes;
mod head_scan;
mod identity;
mod positioned;
pub(crate) mod source;
mod table_slot;
mod window;

pub use coalesce::{CoalesceConfig, RangeError, Requests, range_length};
pub use facts::ColumnFacts;
pub(crate) use first_bytes::FirstBytes;
pub(crate) use head_scan::{BlockSizes, HeadScan};
pub use identity::FileIdentity;
pub(crate) use identity::refuse_same;
#[cfg(feature = "import")]
pub(crate) use positioned::check_regular;
pub use positioned::{PositionedFile, default_open_files, is_on_network};
pub use source::{InMemory, ReadMemory, Source};
pub(crate) use table_slot::{TableSlot, no_table};

use crate::codec::check_supported;
use crate::format::column_record::ColumnRecord;
use crate::format::footer::Footer;
use crate::format::header::Header;
use crate::format::region::{FileId, HEAD, HEAD_BYTES, RegionHead, RegionKind, align};
use crate::format::trailer::Trailer;
use crate::format::{Schema, schema_block};
use crate::{Error, Result, foreign, memory};
use head_scan::Candidate;
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
    /// The `head_crc` of the trailer.
    pub trailer_crc: u32,
    pub footer: Footer,
}

/// Reads the header, chapter 3, R-9.1.
pub(crate) fn open_header(source: &dyn Source) -> Result<OpenedHeader> {
    let first: [u8; HEAD_BYTES] = fetch_array(source, 0)?;
    if !first.starts_with(b"\x89TSL") {
        let is = foreign::kind(&first).map(|what| format!(", and is {what}")).unwrap_or_default();
        let message = format!("this is not a tensilo file: it does not begin with \\x89TSL{is}");
        return Err(Error::corrupt("R-2.2", message).with_offset(0));
    }
    let head = RegionHead::parse(&first, 0)?;
    let header = Header::parse(&head)?;
    let schema_block = body(source, &head)?;
    let schema = schema_block::parse(&schema_block)?;
    header.flags.check_schema(&schema)?;
    Ok(OpenedHeader { head, header, schema, schema_block })
}

/// Reads the body of a region and checks it.
pub(crate) fn body(source: &dyn Source, head: &RegionHead) -> Result<Vec<u8>> {
    head.check_inside(source.byte_count())?;
    let length = usize::try_from(head.body_bytes).unwrap_or(usize::MAX);
    if let Some(file) = source.as_bytes() {
        let found = source::slice(file, head.body_offset(), length)?;
        head.check_body(found)?; // before memory is taken
        return memory::copied(found);
    }
    let mut body = Vec::new();
    fetch(source, head.body_offset(), length, &mut body)?;
    head.check_body(&body)?;
    Ok(body)
}

/// A trailer that is valid by chapter 7.3, and its footer, whose body has not been parsed.
struct FoundTrailer {
    trailer: Trailer,
    head: RegionHead,
    footer_head: RegionHead,
    footer_body: Vec<u8>,
}

/// The search for the last trailer: mostly it is the last 64 bytes.
const TRAILER_BLOCKS: BlockSizes = BlockSizes { first: HEAD, second: 64 << 10, largest: 64 << 10 };

/// Reads the commit of the last valid trailer (chapter 7.3).
pub(crate) fn open_last_commit(source: &dyn Source, opened: &OpenedHeader) -> Result<OpenedCommit> {
    let mut first_error = None;
    let mut scan = HeadScan::new(source, TRAILER_BLOCKS);
    let mut end = source.byte_count() & !(HEAD - 1);
    // footers of a file do not overlap: all together are not longer than it
    let mut left = source.byte_count();
    let offset_of = |found: Candidate<'_>| (found.kind == RegionKind::Trailer).then_some(found.offset);
    while let Some(offset) = scan.last(HEAD, end, offset_of)? {
        end = offset;
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

/// Reads the trailer at `offset`, which must be valid by chapter 7.3.
fn find_trailer(source: &dyn Source, file_id: FileId, offset: u64, left: &mut u64) -> Result<FoundTrailer> {
    let head = expect(source, offset, RegionKind::Trailer, file_id)?;
    let trailer = Trailer::parse(&head)?;
    let footer_head = expect(source, trailer.footer_offset, RegionKind::Footer, file_id)?;
    if align(footer_head.end(), HEAD) != offset {
        let message = "the trailer is not directly after its footer";
        return Err(Error::corrupt("R-7.7", message).with_offset(offset));
    }
    // a footer of another file, or of another state of this one
    head.check_previous(footer_head.head_crc())?;
    *left = left.checked_sub(footer_head.body_bytes.into()).ok_or_else(|| {
        Error::corrupt("R-2.7", "the footers of damaged trailers overlap").with_offset(footer_head.offset)
    })?;
    let footer_body = body(source, &footer_head)?;
    Ok(FoundTrailer { trailer, head, footer_head, footer_body })
}

/// Parses a footer and checks it.
fn open_commit(opened: &OpenedHeader, found: &FoundTrailer) -> Result<OpenedCommit> {
    Footer::flags(&found.footer_head).check()?;
    let footer = Footer::parse(&found.footer_head, &found.footer_body, &opened.schema, &opened.schema_block)?;
    let (trailer_offset, trailer_crc) = (found.head.offset, found.head.head_crc());
    Ok(OpenedCommit { trailer: found.trailer, trailer_offset, trailer_crc, footer })
}

/// Checks that this release and build can decode all encodings of a column.
pub(crate) fn check_encodings(facts: &ColumnRecord) -> Result<()> {
    facts.encodings.iter().try_for_each(|&(id, _)| check_supported(id))
}

impl OpenedCommit {
    /// Checks of all columns, for work that needs every column.
    pub(crate) fn check_encodings(&self, schema: &Schema) -> Result<()> {
        let mut columns = self.footer.columns.iter().zip(&schema.columns);
        columns.try_for_each(|(facts, column)| check_encodings(facts).map_err(|error| error.with_column(&column.name)))
    }
}

/// Reads the head at `offset`, which must be of this kind and file.
fn expect(source: &dyn Source, offset: u64, kind: RegionKind, file_id: FileId) -> Result<RegionHead> {
    let head = RegionHead::parse(&fetch_array(source, offset)?, offset)?;
    head.expect(kind, file_id)?;
    Ok(head)
}
