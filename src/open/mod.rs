//! Opens a file for reading or appending: defines the sources of bytes, and reads the header, the
//! last valid trailer and the footer of a file (chapter 10).
//!
//! A file is opened from both ends. The header, at the start, contains the file id and the schema.
//! The commit to read is the last commit whose trailer and footer are both valid. The search for
//! its trailer runs backwards from the end, for two reasons: a killed writer leaves bytes after its
//! last commit, and damage to one commit must not hide the commits before it.
//!
//! The search is bounded even for hostile files. The footers of a file do not overlap, so the total
//! length of all footers that the search reads must not exceed the length of the file. Nothing in a
//! body is used before its checksum is verified.
//!
//! This module also defines types for two kinds of footer entries: the facts about a column, for
//! callers, and the tables of a file (chapter 4.5). A table is read when a chunk first needs it.

pub(crate) mod coalesce;
pub(crate) mod foreign;
mod header_scan;
mod identity;
#[cfg(feature = "glob")]
pub(crate) mod pattern;
mod positioned;
pub(crate) mod source;

pub use coalesce::{CoalesceConfig, RangeError, Requests, range_length};
pub(crate) use header_scan::{HeaderScan, ReadSizes};
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

/// The verified file header.
pub(crate) struct FileHeader {
    pub header: RegionHeader,
    pub fields: Header,
    pub schema: Schema,
    pub schema_block: Vec<u8>,
}

/// A verified commit: its trailer and its footer.
pub(crate) struct Commit {
    pub trailer: Trailer,
    pub trailer_offset: u64,
    /// The `header_crc` of the trailer.
    pub trailer_crc: u32,
    pub footer: Footer,
}

/// Reads the file header and checks, chapter 3 and.
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

/// Reads and verifies the body of a region.
pub(crate) fn body(source: &dyn Source, header: &RegionHeader) -> Result<Vec<u8>> {
    header.check_inside(source.byte_count())?;
    let length = usize::try_from(header.body_bytes).unwrap_or(usize::MAX);
    if let Some(file) = source.as_bytes() {
        let found = source::slice(file, header.body_offset(), length)?;
        header.check_body(found)?; // checked before memory is allocated for a copy
        return memory::copied(found);
    }
    let mut body = Vec::new();
    fetch(source, header.body_offset(), length, &mut body)?;
    header.check_body(&body)?;
    Ok(body)
}

/// A trailer that is valid according to chapter 7.3, and its footer. The body of the footer is not
/// yet parsed.
struct ValidTrailer {
    trailer: Trailer,
    header: RegionHeader,
    footer_header: RegionHeader,
    footer_body: Vec<u8>,
}

/// The sizes of the reads that search for the last trailer, which is usually in the last 64 bytes.
const TRAILER_READS: ReadSizes = ReadSizes { first: HEADER_LEN, second: 64 << 10, max: 64 << 10 };

/// Reads the commit that ends with the last valid trailer (chapter 7.3).
pub(crate) fn open_last_commit(source: &dyn Source, opened: &FileHeader) -> Result<Commit> {
    let mut first_error = None;
    let mut scan = HeaderScan::new(source, TRAILER_READS);
    let mut end = source.byte_count() & !(HEADER_LEN - 1);
    // footers do not overlap, so their total length is at most the length of the file
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
        let message =
            "the file has no valid trailer: it is truncated, its end is damaged, or its writer has not committed yet";
        Error::corrupt("R-2.9", message).with_offset(source.byte_count())
    }))
}

/// Reads the trailer at `offset`, and checks that it is valid according to chapter 7.3. Subtracts
/// the length of the footer from `left`.
fn find_trailer(source: &dyn Source, file_id: FileId, offset: u64, left: &mut u64) -> Result<ValidTrailer> {
    let header = expect(source, offset, RegionKind::Trailer, file_id)?;
    let trailer = Trailer::parse(&header)?;
    let footer_header = expect(source, trailer.footer_offset, RegionKind::Footer, file_id)?;
    if align(footer_header.end(), HEADER_LEN) != offset {
        let message = "the trailer does not directly follow its footer";
        return Err(Error::corrupt("R-7.7", message).with_offset(offset));
    }
    // refuses a footer of a different file, or of another version of this file
    header.check_previous(footer_header.header_crc())?;
    *left = left.checked_sub(footer_header.body_bytes.into()).ok_or_else(|| {
        Error::corrupt("R-2.7", "the footers of damaged trailers overlap").with_offset(footer_header.offset)
    })?;
    let footer_body = body(source, &footer_header)?;
    Ok(ValidTrailer { trailer, header, footer_header, footer_body })
}

/// Parses a footer and checks.
fn open_commit(opened: &FileHeader, found: &ValidTrailer) -> Result<Commit> {
    Footer::flags(&found.footer_header).check()?;
    let footer = Footer::parse(&found.footer_header, &found.footer_body, &opened.schema, &opened.schema_block)?;
    let (trailer_offset, trailer_crc) = (found.header.offset, found.header.header_crc());
    Ok(Commit { trailer: found.trailer, trailer_offset, trailer_crc, footer })
}

/// Checks that this build can decode all encodings of a column.
pub(crate) fn check_encodings(facts: &ColumnRecord) -> Result<()> {
    facts.encodings.iter().try_for_each(|&(id, _)| check_supported(id))
}

impl Commit {
    /// Checks for all columns. Operations that need every column call this.
    pub(crate) fn check_encodings(&self, schema: &Schema) -> Result<()> {
        let mut columns = self.footer.columns.iter().zip(&schema.columns);
        columns.try_for_each(|(facts, column)| check_encodings(facts).map_err(|error| error.with_column(&column.name)))
    }
}

/// Reads the header at `offset`, and checks that it has this kind and file id.
fn expect(source: &dyn Source, offset: u64, kind: RegionKind, file_id: FileId) -> Result<RegionHeader> {
    let header = RegionHeader::parse(&fetch_array(source, offset)?, offset)?;
    header.expect(kind, file_id)?;
    Ok(header)
}

/// The facts about a column that the footer records.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ColumnFacts {
    /// The decoded size of all chunks in bytes.
    pub raw_bytes: u64,
    /// The stored size of all chunks in bytes, without the headers of the chunks.
    pub stored_bytes: u64,
    /// The number of null samples.
    pub null_count: u64,
    /// The number of chunks.
    pub chunk_count: u64,
    /// The names of the encodings in use, each with the number of chunks whose values it encodes.
    /// The number is 0 for an encoding that encodes only validity or shape.
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

/// A table that the footer lists, or that a walk over the regions of the file has found.
pub(crate) struct TableSlot {
    pub(crate) entry: TableEntry,
    /// The table, once it has been read and verified.
    loaded: OnceLock<Arc<ZstdDictionary>>,
}

impl TableSlot {
    pub(crate) fn new(entry: TableEntry) -> Self {
        Self { entry, loaded: OnceLock::new() }
    }

    /// Shares the table that another slot has loaded for the same entry.
    pub(crate) fn share_from(&self, earlier: &Self) {
        if let Some(zstd_dictionary) = earlier.loaded.get().filter(|_| earlier.entry == self.entry) {
            let _ = self.loaded.set(zstd_dictionary.clone()); // an error means that it is already loaded
        }
    }

    /// Returns the table. Reads and verifies it on the first call.
    pub(crate) fn zstd_dictionary(&self, source: &dyn Source, file_id: FileId) -> Result<Arc<ZstdDictionary>> {
        if let Some(zstd_dictionary) = self.loaded.get() {
            return Ok(zstd_dictionary.clone());
        }
        if self.entry.body_bytes > limits::ZSTD_DICTIONARY_BYTES {
            let message = format!(
                "the table has {} bytes, but a Zstandard dictionary can have at most {}",
                self.entry.body_bytes,
                limits::ZSTD_DICTIONARY_BYTES
            );
            return Err(Error::corrupt("R-5.13", message).with_offset(self.entry.offset));
        }
        let loaded = self.body(source, file_id).and_then(ZstdDictionary::new);
        let zstd_dictionary = Arc::new(loaded.map_err(|error| error.with_offset(self.entry.offset))?);
        Ok(self.loaded.get_or_init(|| zstd_dictionary).clone())
    }

    /// Reads the body. Checks, and that the header agrees with the footer
    ///
    pub(crate) fn body(&self, source: &dyn Source, file_id: FileId) -> Result<Vec<u8>> {
        let header = RegionHeader::parse(&fetch_array(source, self.entry.offset)?, self.entry.offset)?;
        header.expect(RegionKind::Table, file_id)?;
        if TableHeader::parse(&header)?.entry(&header) != self.entry {
            return Err(Error::corrupt("R-7.4", "the footer does not agree with the header of the table"));
        }
        body(source, &header)
    }
}

/// Returns the error for a chunk whose table does not exist.
pub(crate) fn missing_table(table: u32) -> Error {
    let message = format!("the chunk needs table {table}, but no such table precedes the chunk in its column");
    Error::corrupt("R-5.13", message)
}
