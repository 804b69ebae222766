//! Opens a file for reading or appending: its source, header, last valid trailer and footer
//! (chapter 10).
//!
//! A file is opened from its two ends. The header tells id and schema. The commit to read is that
//! of the last trailer that is valid with its footer: trailers are searched backwards, because a
//! writer that was killed leaves bytes after its last commit, and because damage of one commit must
//! not hide those before it. The search is bounded: footers of one file do not overlap, so all
//! together are not longer than it. Bodies are checked before anything in them is believed.
//!
//! What a footer states is read here, too: facts of columns for callers, and the tables of a file
//! (chapter 4.5), which are read when a chunk first needs them.

pub(crate) mod coalesce;
pub(crate) mod foreign;
mod header_scan;
mod identity;
#[cfg(feature = "glob")]
pub(crate) mod pattern;
mod positioned;
pub(crate) mod source;

pub use coalesce::{CoalesceConfig, RangeError, Requests, range_length};
pub(crate) use header_scan::{BlockSizes, HeaderScan};
pub use identity::FileIdentity;
pub(crate) use identity::refuse_same;
#[cfg(feature = "import")]
pub(crate) use positioned::check_regular;
pub use positioned::{PositionedFile, default_open_files, is_on_network};
pub(crate) use source::FirstBytes;
pub use source::{InMemory, ReadMemory, Source};

use crate::bytes::memory;
use crate::codec::{ZstdDictionary, check_supported, encoding_name};
use crate::format::column_record::ColumnRecord;
use crate::format::file_header::Header;
use crate::format::footer::TableHeader;
use crate::format::footer::Trailer;
use crate::format::footer::{Footer, TableEntry};
use crate::format::region::{FileId, HEADER_BYTES, HEADER_LEN, RegionHeader, RegionKind, align};
use crate::format::{CastFacts, Schema, schema_block};
use crate::{Error, Result, limits};
use header_scan::Candidate;
use source::{fetch, fetch_array};
use std::sync::{Arc, OnceLock};

/// The header, checked.
pub(crate) struct FileHeader {
    pub header: RegionHeader,
    pub fields: Header,
    pub schema: Schema,
    pub schema_block: Vec<u8>,
}

/// A commit, checked: its trailer and its footer.
pub(crate) struct Commit {
    pub trailer: Trailer,
    pub trailer_offset: u64,
    /// The `header_crc` of the trailer.
    pub trailer_crc: u32,
    pub footer: Footer,
}

/// Reads the header, chapter 3, R-9.1.
pub(crate) fn open_header(source: &dyn Source) -> Result<FileHeader> {
    let first: [u8; HEADER_BYTES] = fetch_array(source, 0)?;
    if !first.starts_with(b"\x89TSL") {
        let is = foreign::kind(&first).map(|what| format!(", and is {what}")).unwrap_or_default();
        let message = format!("this is not a tensilo file: it does not begin with \\x89TSL{is}");
        return Err(Error::corrupt("R-2.2", message).with_offset(0));
    }
    let header = RegionHeader::parse(&first, 0)?;
    let file_header = Header::parse(&header)?;
    let schema_block = body(source, &header)?;
    let schema = schema_block::parse(&schema_block)?;
    file_header.flags.check_schema(&schema)?;
    Ok(FileHeader { header, fields: file_header, schema, schema_block })
}

/// Reads the body of a region and checks it.
pub(crate) fn body(source: &dyn Source, header: &RegionHeader) -> Result<Vec<u8>> {
    header.check_inside(source.byte_count())?;
    let length = usize::try_from(header.body_bytes).unwrap_or(usize::MAX);
    if let Some(file) = source.as_bytes() {
        let found = source::slice(file, header.body_offset(), length)?;
        header.check_body(found)?; // before memory is taken
        return memory::copied(found);
    }
    let mut body = Vec::new();
    fetch(source, header.body_offset(), length, &mut body)?;
    header.check_body(&body)?;
    Ok(body)
}

/// A trailer that is valid by chapter 7.3, and its footer, whose body has not been parsed.
struct ValidTrailer {
    trailer: Trailer,
    header: RegionHeader,
    footer_header: RegionHeader,
    footer_body: Vec<u8>,
}

/// The search for the last trailer: mostly it is the last 64 bytes.
const TRAILER_BLOCKS: BlockSizes = BlockSizes { first: HEADER_LEN, second: 64 << 10, largest: 64 << 10 };

/// Reads the commit of the last valid trailer (chapter 7.3).
pub(crate) fn open_last_commit(source: &dyn Source, opened: &FileHeader) -> Result<Commit> {
    let mut first_error = None;
    let mut scan = HeaderScan::new(source, TRAILER_BLOCKS);
    let mut end = source.byte_count() & !(HEADER_LEN - 1);
    // footers of a file do not overlap: all together are not longer than it
    let mut left = source.byte_count();
    let offset_of = |found: Candidate<'_>| (found.kind == RegionKind::Trailer).then_some(found.offset);
    while let Some(offset) = scan.last(HEADER_LEN, end, offset_of)? {
        end = offset;
        match find_trailer(source, opened.fields.file_id, offset, &mut left) {
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
fn find_trailer(source: &dyn Source, file_id: FileId, offset: u64, left: &mut u64) -> Result<ValidTrailer> {
    let header = expect(source, offset, RegionKind::Trailer, file_id)?;
    let trailer = Trailer::parse(&header)?;
    let footer_header = expect(source, trailer.footer_offset, RegionKind::Footer, file_id)?;
    if align(footer_header.end(), HEADER_LEN) != offset {
        let message = "the trailer is not directly after its footer";
        return Err(Error::corrupt("R-7.7", message).with_offset(offset));
    }
    // a footer of another file, or of another state of this one
    header.check_previous(footer_header.header_crc())?;
    *left = left.checked_sub(footer_header.body_bytes.into()).ok_or_else(|| {
        Error::corrupt("R-2.7", "the footers of damaged trailers overlap").with_offset(footer_header.offset)
    })?;
    let footer_body = body(source, &footer_header)?;
    Ok(ValidTrailer { trailer, header, footer_header, footer_body })
}

/// Parses a footer and checks it.
fn open_commit(opened: &FileHeader, found: &ValidTrailer) -> Result<Commit> {
    Footer::flags(&found.footer_header).check()?;
    let footer = Footer::parse(&found.footer_header, &found.footer_body, &opened.schema, &opened.schema_block)?;
    let (trailer_offset, trailer_crc) = (found.header.offset, found.header.header_crc());
    Ok(Commit { trailer: found.trailer, trailer_offset, trailer_crc, footer })
}

/// Checks that this release and build can decode all encodings of a column.
pub(crate) fn check_encodings(facts: &ColumnRecord) -> Result<()> {
    facts.encodings.iter().try_for_each(|&(id, _)| check_supported(id))
}

impl Commit {
    /// Checks of all columns, for work that needs every column.
    pub(crate) fn check_encodings(&self, schema: &Schema) -> Result<()> {
        let mut columns = self.footer.columns.iter().zip(&schema.columns);
        columns.try_for_each(|(facts, column)| check_encodings(facts).map_err(|error| error.with_column(&column.name)))
    }
}

/// Reads the head at `offset`, which must be of this kind and file.
fn expect(source: &dyn Source, offset: u64, kind: RegionKind, file_id: FileId) -> Result<RegionHeader> {
    let header = RegionHeader::parse(&fetch_array(source, offset)?, offset)?;
    header.expect(kind, file_id)?;
    Ok(header)
}

/// The facts of a column, as the file states them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ColumnFacts {
    /// Decoded bytes of all chunks.
    pub raw_bytes: u64,
    /// Stored bytes of all chunks, without their heads.
    pub stored_bytes: u64,
    /// Null samples.
    pub null_count: u64,
    /// Chunks.
    pub chunk_count: u64,
    /// Names of encodings, and of how many chunks they encode the values. 0: they encode only
    /// validity or shape.
    pub encodings: Vec<(String, u64)>,
    /// The effect of the cast, if the column has one.
    pub cast: Option<CastFacts>,
}

impl From<&ColumnRecord> for ColumnFacts {
    fn from(facts: &ColumnRecord) -> Self {
        Self {
            raw_bytes: facts.raw_bytes,
            stored_bytes: facts.stored_bytes,
            null_count: facts.null_count,
            chunk_count: facts.chunk_count,
            encodings: facts.encodings.iter().map(|&(id, chunks)| (encoding_name(id), chunks)).collect(),
            cast: facts.cast,
        }
    }
}

/// A table, as the footer or a walk over the file states it.
pub(crate) struct TableSlot {
    pub(crate) entry: TableEntry,
    /// The table, once it has been read and checked.
    loaded: OnceLock<Arc<ZstdDictionary>>,
}

impl TableSlot {
    pub(crate) fn new(entry: TableEntry) -> Self {
        Self { entry, loaded: OnceLock::new() }
    }

    /// Takes over the table that another slot of the same entry has read.
    pub(crate) fn share_from(&self, earlier: &Self) {
        if let Some(zstd_dictionary) = earlier.loaded.get().filter(|_| earlier.entry == self.entry) {
            let _ = self.loaded.set(zstd_dictionary.clone()); // or it was loaded before
        }
    }

    /// Returns the table. Reads and checks it, unless that was done before.
    pub(crate) fn zstd_dictionary(&self, source: &dyn Source, file_id: FileId) -> Result<Arc<ZstdDictionary>> {
        if let Some(zstd_dictionary) = self.loaded.get() {
            return Ok(zstd_dictionary.clone());
        }
        if self.entry.body_bytes > limits::ZSTD_DICTIONARY_BYTES {
            let message = format!(
                "a table of {} bytes is no dictionary: {} are allowed",
                self.entry.body_bytes,
                limits::ZSTD_DICTIONARY_BYTES
            );
            return Err(Error::corrupt("R-5.13", message).with_offset(self.entry.offset));
        }
        let loaded = self.body(source, file_id).and_then(ZstdDictionary::new);
        let zstd_dictionary = Arc::new(loaded.map_err(|error| error.with_offset(self.entry.offset))?);
        Ok(self.loaded.get_or_init(|| zstd_dictionary).clone())
    }

    /// Reads the body, and checks and that the head agrees with the footer
    ///
    pub(crate) fn body(&self, source: &dyn Source, file_id: FileId) -> Result<Vec<u8>> {
        let header = RegionHeader::parse(&fetch_array(source, self.entry.offset)?, self.entry.offset)?;
        header.expect(RegionKind::Table, file_id)?;
        if TableHeader::parse(&header)?.entry(&header) != self.entry {
            return Err(Error::corrupt("R-7.4", "the footer does not agree with the head of the table"));
        }
        body(source, &header)
    }
}

/// The error of a chunk that needs a table that its column does not have.
pub(crate) fn missing_table(table: u32) -> Error {
    let message = format!("the chunk needs table {table}, which its column does not have before it");
    Error::corrupt("R-5.13", message)
}
