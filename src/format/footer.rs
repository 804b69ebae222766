//! Chapters 4.5 and 7: the end of a commit, the tables that footers list, and the content id.
//!
//! A commit ends with a footer and a trailer. The footer describes the whole file up to this
//! commit: a copy of the schema, the tables, and the facts about all columns (`column_record.rs`).
//! A reader therefore requires only one footer, not a chain of footers.
//!
//! The trailer is a region of 64 bytes without a body. It states the offset of the footer. It is
//! written last, after all bytes before it are durable, and it makes the commit valid. A crash can
//! leave an incomplete footer, because footers can have any size. A trailer, however, is either
//! complete or absent. See `write/writer.rs`.
//!
//! The content id (chapter 7.5) is the first 16 bytes of a SHA-256 (FIPS 180-4) over the schema and
//! the index pages and footers of all commits. The pages repeat the CRC-32 of every chunk, so the
//! id covers all values, although only 32 bytes are hashed for each chunk.

use super::column_record::{ColumnRecord, malformed, short};
use super::file_header::Flags;
use super::region::{FileId, HEADER_LEN, RegionHeader, RegionKind, hex, region_header};
use super::schema_block::Schema;
use crate::bytes::le::{Fields, structure};
use crate::bytes::memory;
use crate::{Error, Result, limits};
use sha2::{Digest, Sha256};
use std::fmt;

structure! {
    /// Chapter 7.1: the fields that only the header of a footer has.
    mod footer_header: 64 bytes with region_header {
        4 => COMMIT: u32,
        32 => INCOMPAT_FLAGS: u32,
        36 => RO_COMPAT_FLAGS: u32,
        40 => COMPAT_FLAGS: u32,
        48 => SAMPLE_COUNT: u64,
    }
}

structure! {
    /// Chapter 7.1: the entry of a table.
    mod table_entry: 24 bytes {
        0 => COLUMN: u32,
        4 => TABLE: u32,
        8 => OFFSET: u64,
        16 => BODY_BYTES: u32,
        20 => BODY_CRC: u32,
    }
}

/// The size, in bytes, of the content id, which is the first field in the body of a footer.
const CONTENT_ID_BYTES: usize = 16;

/// The facts that a footer states about a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableEntry {
    pub column: u32,
    pub table: u32,
    pub offset: u64,
    pub body_bytes: u32,
    pub body_crc: u32,
}

/// The description of a file up to a commit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Footer {
    pub content_id: ContentId,
    pub commit: u32,
    pub flags: Flags,
    pub sample_count: u64,
    pub tables: Vec<TableEntry>,
    pub columns: Vec<ColumnRecord>,
}

impl Footer {
    /// Sets the content id, and returns the header and the body of a footer at `offset`. `content`
    /// must have hashed the index pages of the commit.
    pub(crate) fn seal(
        &mut self,
        file_id: FileId,
        offset: u64,
        schema_block: &[u8],
        content: ContentHasher,
    ) -> Result<(RegionHeader, Vec<u8>)> {
        let mut body = vec![0; CONTENT_ID_BYTES];
        put_count(&mut body, schema_block.len());
        body.extend(schema_block);
        put_count(&mut body, self.tables.len());
        body.extend(self.tables.iter().flat_map(|table| table.to_bytes()));
        self.columns.iter().for_each(|column| column.write(&mut body));
        if let Some((id, rest)) = body.split_first_chunk_mut::<CONTENT_ID_BYTES>() {
            self.content_id = content.finish(rest);
            *id = self.content_id.0;
        }
        let header = RegionHeader::new(RegionKind::Footer, file_id, offset, &body)?
            .with(footer_header::COMMIT, self.commit)
            .with(footer_header::INCOMPAT_FLAGS, self.flags.incompat)
            .with(footer_header::RO_COMPAT_FLAGS, self.flags.ro_compat)
            .with(footer_header::COMPAT_FLAGS, self.flags.compat)
            .with(footer_header::SAMPLE_COUNT, self.sample_count);
        Ok((header, body))
    }

    /// Parses the footer of a file that has this schema. Checks, and the
    /// requirements of that concern only the footer. The header and the checksum
    /// must already have been checked.
    pub(crate) fn parse(header: &RegionHeader, body: &[u8], schema: &Schema, schema_block: &[u8]) -> Result<Self> {
        Self::parse_body(header, body, schema, schema_block).map_err(|error| error.with_offset(header.offset))
    }

    /// Returns the flags in the header of a footer.
    pub(crate) fn flags(header: &RegionHeader) -> Flags {
        Flags {
            incompat: header.get(footer_header::INCOMPAT_FLAGS),
            ro_compat: header.get(footer_header::RO_COMPAT_FLAGS),
            compat: header.get(footer_header::COMPAT_FLAGS),
        }
    }

    /// Returns the schema block in the body of a footer.
    pub(crate) fn schema_block(body: &[u8]) -> Result<&[u8]> {
        let (_, rest) = Self::split_content_id(body)?;
        schema_block(&mut Fields::new(rest))
    }

    /// Splits the body of a footer into the content id and the bytes after it. Only a verifier can
    /// check the id.
    pub(crate) fn split_content_id(body: &[u8]) -> Result<(ContentId, &[u8])> {
        let (id, rest) = body.split_first_chunk().ok_or_else(short)?;
        Ok((ContentId(*id), rest))
    }

    fn parse_body(header: &RegionHeader, body: &[u8], schema: &Schema, expected_schema_block: &[u8]) -> Result<Self> {
        let (content_id, rest) = Self::split_content_id(body)?;
        let fields = &mut Fields::new(rest);
        if schema_block(fields)? != expected_schema_block {
            return Err(Error::corrupt("R-7.1", "the footer and the file header have different schemas"));
        }
        let tables = tables(fields)?;
        let sample_count = header.get(footer_header::SAMPLE_COUNT);
        if sample_count > limits::SAMPLES {
            return Err(Error::corrupt(
                "R-7.5",
                format!("the footer states {sample_count} samples, which is over the limit"),
            ));
        }
        let commit = header.get(footer_header::COMMIT);
        if usize::try_from(commit).map_or(true, |commit| commit >= limits::CHUNK_RUNS) {
            return Err(Error::corrupt(
                "R-7.5",
                format!("the footer states commit number {commit}, which is over the limit"),
            ));
        }
        let mut columns = memory::with_capacity(schema.columns.len())?;
        for column in &schema.columns {
            let facts = ColumnRecord::parse(fields, column.cast.is_some())
                .and_then(|facts| facts.check(sample_count, header.offset).map(|()| facts))
                .map_err(|error| error.with_column(&column.name))?;
            columns.push(facts);
        }
        check_pages(&columns)?;
        if fields.remaining() != 0 {
            let message = format!("the footer has {} bytes after its last field", fields.remaining());
            return Err(Error::corrupt("R-7.2", message));
        }
        Ok(Self { content_id, commit, flags: Self::flags(header), sample_count, tables, columns })
    }
}

fn put_count(body: &mut Vec<u8>, count: usize) {
    // counts are far below 2^32, because a footer with so large a count would exceed its size limit
    body.extend(u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

fn count(fields: &mut Fields) -> Result<usize> {
    fields.u32().and_then(|count| usize::try_from(count).ok()).ok_or_else(short)
}

fn schema_block<'a>(fields: &mut Fields<'a>) -> Result<&'a [u8]> {
    let length = count(fields)?;
    fields.bytes(length).ok_or_else(short)
}

fn tables(fields: &mut Fields) -> Result<Vec<TableEntry>> {
    let count = count(fields)?;
    if count > limits::TABLES {
        return Err(malformed("too many tables"));
    }
    let mut tables = memory::with_capacity(count.min(fields.remaining() / table_entry::SIZE))?;
    for _ in 0..count {
        tables.push(TableEntry::parse(&fields.array().ok_or_else(short)?));
    }
    if !tables.is_sorted_by(|a, b| (a.column, a.table) < (b.column, b.table)) {
        return Err(Error::corrupt("R-7.4", "the tables in the footer are not in ascending order"));
    }
    let mut ranges: Vec<(u64, u64)> = memory::with_capacity(tables.len())?;
    ranges.extend(
        tables
            .iter()
            .map(|table| (table.offset, table.offset.saturating_add(HEADER_LEN + u64::from(table.body_bytes)))),
    );
    ranges.sort_unstable();
    if !ranges.is_sorted_by(|(_, end), (start, _)| end <= start) {
        return Err(Error::corrupt("R-7.4", "the tables in the footer overlap"));
    }
    Ok(tables)
}

impl TableEntry {
    fn to_bytes(self) -> [u8; table_entry::SIZE] {
        let mut bytes = [0; table_entry::SIZE];
        table_entry::COLUMN.put(&mut bytes, self.column);
        table_entry::TABLE.put(&mut bytes, self.table);
        table_entry::OFFSET.put(&mut bytes, self.offset);
        table_entry::BODY_BYTES.put(&mut bytes, self.body_bytes);
        table_entry::BODY_CRC.put(&mut bytes, self.body_crc);
        bytes
    }

    fn parse(bytes: &[u8; table_entry::SIZE]) -> Self {
        Self {
            column: table_entry::COLUMN.get(bytes),
            table: table_entry::TABLE.get(bytes),
            offset: table_entry::OFFSET.get(bytes),
            body_bytes: table_entry::BODY_BYTES.get(bytes),
            body_crc: table_entry::BODY_CRC.get(bytes),
        }
    }
}

/// Checks across columns: the pages of different runs do not overlap. Allocates 16 bytes for
/// each run. A run takes 40 bytes in the footer, so the size of the footer bounds the memory.
fn check_pages(columns: &[ColumnRecord]) -> Result<()> {
    let runs = || columns.iter().flat_map(|facts| &facts.runs);
    let mut pages = memory::with_capacity(runs().count())?;
    pages.extend(runs().map(|run| (run.offset, run.end())));
    pages.sort_unstable();
    let overlap = pages.iter().zip(pages.iter().skip(1)).find(|((_, end), (next, _))| end > next);
    let Some(((one, _), (other, _))) = overlap else { return Ok(()) };
    Err(Error::corrupt("R-7.3", format!("the index pages of two runs, at offsets {one} and {other}, overlap")))
}

structure! {
    /// Chapter 7.2: the fields that only the header of a trailer has.
    mod trailer_header: 64 bytes with region_header {
        4 => TRAILER_FLAGS: u32,
        32 => FOOTER_OFFSET: u64,
        40 => RESERVED: u32,
        48 => PREVIOUS_TRAILER: u64,
    }
}

/// The bit of `trailer_flags` that a writer sets in its last commit.
const FINISHED: u32 = 1;

/// The facts that a trailer states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub finished: bool,
    pub footer_offset: u64,
    pub previous_trailer: u64,
}

impl Trailer {
    /// Returns the header of the trailer at `offset`.
    pub(crate) fn header(self, file_id: FileId, offset: u64) -> Result<RegionHeader> {
        Ok(RegionHeader::new(RegionKind::Trailer, file_id, offset, &[])?
            .with(trailer_header::TRAILER_FLAGS, if self.finished { FINISHED } else { 0 })
            .with(trailer_header::FOOTER_OFFSET, self.footer_offset)
            .with(trailer_header::PREVIOUS_TRAILER, self.previous_trailer))
    }

    /// Parses the header of a trailer, and checks except for the offsets.
    pub(crate) fn parse(header: &RegionHeader) -> Result<Self> {
        let flags = header.get(trailer_header::TRAILER_FLAGS);
        if flags & !FINISHED != 0 || header.get(trailer_header::RESERVED) != 0 || header.body_crc != 0 {
            return Err(Error::corrupt("R-7.7", "reserved bits of the trailer are not zero").with_offset(header.offset));
        }
        Ok(Self {
            finished: flags & FINISHED != 0,
            footer_offset: header.get(trailer_header::FOOTER_OFFSET),
            previous_trailer: header.get(trailer_header::PREVIOUS_TRAILER),
        })
    }
}

structure! {
    /// Chapter 4.5: the fields that only the header of a table has.
    mod table_header: 64 bytes with region_header {
        4 => COLUMN: u32,
        32 => TABLE: u32,
        36 => RESERVED: u64,
        48 => ALSO_RESERVED: u64,
    }
}

/// The header of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableHeader {
    pub column: u32,
    pub table: u32,
}

impl TableHeader {
    /// Returns the header of a table at `offset` with this body, and its entry in the footer.
    pub(crate) fn seal(self, file_id: FileId, offset: u64, body: &[u8]) -> Result<(RegionHeader, TableEntry)> {
        let header = RegionHeader::new(RegionKind::Table, file_id, offset, body)?
            .with(table_header::COLUMN, self.column)
            .with(table_header::TABLE, self.table);
        let entry = self.entry(&header);
        Ok((header, entry))
    }

    /// Returns the entry in the footer for the table with this header.
    pub(crate) fn entry(self, header: &RegionHeader) -> TableEntry {
        TableEntry {
            column: self.column,
            table: self.table,
            offset: header.offset,
            body_bytes: header.body_bytes,
            body_crc: header.body_crc,
        }
    }

    /// Reads the fields of a table's region header without checking them.
    pub(crate) fn unchecked(header: &RegionHeader) -> Self {
        Self { column: header.get(table_header::COLUMN), table: header.get(table_header::TABLE) }
    }

    /// Parses the region header of a table, and checks for its reserved fields.
    pub(crate) fn parse(header: &RegionHeader) -> Result<Self> {
        if header.get(table_header::RESERVED) | header.get(table_header::ALSO_RESERVED) != 0 {
            let message = "reserved bytes in the header of a table are not zero";
            return Err(Error::corrupt("R-4.11", message).with_offset(header.offset));
        }
        Ok(Self::unchecked(header))
    }
}

/// The 16 bytes that identify the content of a file up to a commit.
///
/// They are a hash of the schema, and of the index and the footer of every commit so far. The index
/// has the CRC-32 of each chunk, so the hash covers all values. Files with the same id have the
/// same values in the same chunks, as far as a CRC-32 can tell, but their [`FileId`]s can differ.
/// Equal values that were encoded or committed differently have different ids. The id is not a
/// signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ContentId(pub [u8; 16]);

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

/// Computes the content id of a commit from its index pages and its footer, in file order.
pub(crate) struct ContentHasher(Sha256);

impl ContentHasher {
    /// Starts the id of the commit after a commit with the id `previous`. For the first commit,
    /// `previous` is [`ContentId::default`].
    pub(crate) fn after(previous: ContentId) -> Self {
        Self(Sha256::new_with_prefix(previous.0))
    }

    /// Adds the body of the next index page.
    pub(crate) fn add_page(&mut self, body: &[u8]) {
        self.0.update(body);
    }

    /// Returns the id. `footer` is the body of the footer without the content id at its start.
    pub(crate) fn finish(mut self, footer: &[u8]) -> ContentId {
        self.0.update(footer);
        let digest: [u8; 32] = self.0.finalize().into();
        let mut id = ContentId::default();
        id.0.copy_from_slice(&digest[..16]); // in bounds, and of equal length
        id
    }
}
