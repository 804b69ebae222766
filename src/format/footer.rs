//! Chapter 7.1: the footer.

use super::column_record::{ColumnRecord, malformed, short};
use super::content_id::{ContentHasher, ContentId};
use super::flags::Flags;
use super::region::{FileId, HEAD, RegionHead, RegionKind, region_head};
use super::schema::Schema;
use crate::le::{Fields, structure};
use crate::{Error, Result, limits, memory};

structure! {
    /// Chapter 7.1: the fields that only the head of a footer has.
    mod footer_head: 64 bytes with region_head {
        4 => COMMIT: u32,
        32 => INCOMPAT_FLAGS: u32,
        36 => RO_COMPAT_FLAGS: u32,
        40 => COMPAT_FLAGS: u32,
        48 => SAMPLE_COUNT: u64,
    }
}

structure! {
    /// Chapter 7.1: a table.
    mod table_entry: 24 bytes {
        0 => COLUMN: u32,
        4 => TABLE: u32,
        8 => OFFSET: u64,
        16 => BODY_BYTES: u32,
        20 => BODY_CRC: u32,
    }
}

/// The length of the content id, with which the body of a footer begins.
const CONTENT_ID_BYTES: usize = 16;

/// The facts that a footer states of a table.
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
    /// Sets the content id and returns head and body of a footer at `offset`. `content` has hashed
    /// the index pages of the commit.
    pub(crate) fn seal(
        &mut self,
        file_id: FileId,
        offset: u64,
        schema_block: &[u8],
        content: ContentHasher,
    ) -> Result<(RegionHead, Vec<u8>)> {
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
        let head = RegionHead::new(RegionKind::Footer, file_id, offset, &body)?
            .with(footer_head::COMMIT, self.commit)
            .with(footer_head::INCOMPAT_FLAGS, self.flags.incompat)
            .with(footer_head::RO_COMPAT_FLAGS, self.flags.ro_compat)
            .with(footer_head::COMPAT_FLAGS, self.flags.compat)
            .with(footer_head::SAMPLE_COUNT, self.sample_count);
        Ok((head, body))
    }

    /// Parses the footer of a file with this schema: of all that ascends.
    /// Head and checksum have been checked.
    pub(crate) fn parse(head: &RegionHead, body: &[u8], schema: &Schema, schema_block: &[u8]) -> Result<Self> {
        Self::parse_body(head, body, schema, schema_block).map_err(|error| error.with_offset(head.offset))
    }

    /// Returns the flags in the head of a footer.
    pub(crate) fn flags(head: &RegionHead) -> Flags {
        Flags {
            incompat: head.get(footer_head::INCOMPAT_FLAGS),
            ro_compat: head.get(footer_head::RO_COMPAT_FLAGS),
            compat: head.get(footer_head::COMPAT_FLAGS),
        }
    }

    /// Returns the schema block in the body of a footer.
    pub(crate) fn schema_block(body: &[u8]) -> Result<&[u8]> {
        let (_, rest) = Self::split_content_id(body)?;
        schema_block(&mut Fields::new(rest))
    }

    /// Splits the body of a footer into the content id and the bytes after it. Only a verifier can
    /// tell whether the id is right.
    pub(crate) fn split_content_id(body: &[u8]) -> Result<(ContentId, &[u8])> {
        let (id, rest) = body.split_first_chunk().ok_or_else(short)?;
        Ok((ContentId(*id), rest))
    }

    fn parse_body(head: &RegionHead, body: &[u8], schema: &Schema, due_schema_block: &[u8]) -> Result<Self> {
        let (content_id, rest) = Self::split_content_id(body)?;
        let fields = &mut Fields::new(rest);
        if schema_block(fields)? != due_schema_block {
            return Err(Error::corrupt("R-7.1", "the schema in the footer is not that of the header"));
        }
        let tables = tables(fields)?;
        let sample_count = head.get(footer_head::SAMPLE_COUNT);
        if sample_count > limits::SAMPLES {
            return Err(Error::corrupt("R-7.5", format!("{sample_count} samples")));
        }
        let commit = head.get(footer_head::COMMIT);
        if usize::try_from(commit).map_or(true, |commit| commit >= limits::RUNS) {
            return Err(Error::corrupt("R-7.5", format!("commit number {commit}")));
        }
        let mut columns = memory::with_capacity(schema.columns.len())?;
        for column in &schema.columns {
            let facts = ColumnRecord::parse(fields, column.cast.is_some())
                .and_then(|facts| facts.check(sample_count, head.offset).map(|()| facts))
                .map_err(|error| error.with_column(&column.name))?;
            columns.push(facts);
        }
        check_pages(&columns)?;
        if fields.remaining() != 0 {
            let message = format!("{} bytes after the end of the footer", fields.remaining());
            return Err(Error::corrupt("R-7.2", message));
        }
        Ok(Self { content_id, commit, flags: Self::flags(head), sample_count, tables, columns })
    }
}

fn put_count(body: &mut Vec<u8>, count: usize) {
    // counts of valid files are far below 2^32; a body that is too long is refused by its limit
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
        return Err(Error::corrupt("R-7.4", "the footer's tables do not ascend"));
    }
    let mut ranges: Vec<(u64, u64)> = memory::with_capacity(tables.len())?;
    ranges.extend(
        tables.iter().map(|table| (table.offset, table.offset.saturating_add(HEAD + u64::from(table.body_bytes)))),
    );
    ranges.sort_unstable();
    if !ranges.is_sorted_by(|(_, end), (start, _)| end <= start) {
        return Err(Error::corrupt("R-7.4", "the footer's tables overlap"));
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

/// Checks of all columns: the pages of any two runs do not overlap. Takes 16 bytes for each
/// run, which has 40 in the footer.
fn check_pages(columns: &[ColumnRecord]) -> Result<()> {
    let runs = || columns.iter().flat_map(|facts| &facts.runs);
    let mut pages = memory::with_capacity(runs().count())?;
    pages.extend(runs().map(|run| (run.offset, run.end())));
    pages.sort_unstable();
    let overlap = pages.iter().zip(pages.iter().skip(1)).find(|((_, end), (next, _))| end > next);
    let Some(((one, _), (other, _))) = overlap else { return Ok(()) };
    Err(Error::corrupt("R-7.3", format!("the index pages of two runs, at {one} and at {other}, overlap")))
}
