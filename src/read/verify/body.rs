//! Verifies one body on its own: its checksum and the content of its parts. Any thread can do this,
//! in any order.
//!
//! Bytes of the current span are not fetched again. If a body extends beyond the span, the
//! remaining bytes are fetched and appended. If the body is not decoded, they are instead fetched
//! at most 1 MiB at a time, and only added to the checksum. If the checksum of a chunk with blocks
//! is wrong, the check looks for intact blocks, because their samples are not lost.
//!
//! A chunk can need a table that precedes it. The walk finds tables in file order and adds them to
//! a list that all threads share. A chunk sees only the tables with lower offsets, so the result
//! does not depend on the progress of other threads.

use super::walk::SpanBytes;
use crate::bytes::checksum::Crc;
use crate::bytes::le::u64_of;
use crate::bytes::memory;
use crate::codec::{Body, ChunkDecoder, DamagedChunk, SideFacts, StoredChunk, Tables, ZstdDictionary, encoding};
use crate::format::FileId;
use crate::format::chunk::ChunkHeader;
use crate::format::footer::TableHeader;
use crate::format::region::{RegionHeader, RegionKind};
use crate::format::schema::Layout;
use crate::open::source::{Source, check_inside, fetch};
use crate::open::{TableSlot, missing_table};
use crate::read::batch::waves::{FetchScratch, fetch_one};
use crate::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum number of bytes to fetch at once from a body that is not decoded, and the maximum
/// length of a body that is assembled from a span and the bytes after it.
const BLOCK_BYTES: u64 = 1 << 20;

/// The result of verifying a body.
pub(super) enum BodyFinding {
    /// Not read.
    Unread,
    /// Unreadable, or violates.
    Damaged(Error),
    /// Violates, but some of its blocks are intact.
    DamagedBlocks(DamagedChunk),
    /// Not decoded; the checksum is correct.
    Intact,
    /// An index page; the checksum is correct.
    Page(Vec<u8>),
    /// Decoded; the checksum is correct. Contains the facts of the content, or the error from
    /// decoding it.
    Decoded(Result<SideFacts>),
}

/// Verifies bodies, one after another, in reused memory.
pub(super) struct BodyCheck<'a> {
    source: &'a dyn Source,
    /// The layouts of all columns.
    layouts: &'a [Layout],
    decode: bool,
    decoder: ChunkDecoder,
    tables: &'a SeenTables<'a>,
    span: FetchScratch,
    scratch: FetchScratch,
    /// A body that is assembled from the span and the bytes after it.
    whole_body: Vec<u8>,
}

impl<'a> BodyCheck<'a> {
    pub(super) fn new(source: &'a dyn Source, layouts: &'a [Layout], tables: &'a SeenTables<'a>, decode: bool) -> Self {
        let (span, scratch) = (FetchScratch::default(), FetchScratch::default());
        Self { source, layouts, decode, decoder: ChunkDecoder::new(), tables, span, scratch, whole_body: Vec::new() }
    }

    /// Fetches a span of the file and calls `then` with its bytes. If the span cannot be read,
    /// calls `then` without bytes, so that its readable regions are fetched individually.
    pub(super) fn with_bytes(&mut self, range: &Range<u64>, mut then: impl FnMut(&mut Self, SpanBytes<'_>)) {
        let mut scratch = std::mem::take(&mut self.span);
        let source = self.source;
        let fetched = fetch_one(source, range, &mut scratch, |bytes| {
            then(self, SpanBytes { start: range.start, bytes });
            Ok(())
        });
        if fetched.is_err() {
            then(self, SpanBytes { start: range.start, bytes: &[] });
        }
        self.span = scratch;
    }

    /// Verifies the body of a chunk, a table or an index page. Fetches bytes that `span` does not
    /// contain. (There are few other regions, and they can be checked only together with the
    /// regions before them.)
    pub(super) fn check(&mut self, header: &RegionHeader, span: SpanBytes<'_>) -> BodyFinding {
        let body = match self.check_with(header, span) {
            // requests only the body, so that the error does not depend on where the span starts
            BodyFinding::Damaged(error) if error.kind() == ErrorKind::Io => {
                self.check_with(header, SpanBytes::default())
            }
            body => body,
        };
        match body {
            BodyFinding::Damaged(error) if error.kind() == ErrorKind::Corrupt => {
                self.examine(header).map_or(BodyFinding::Damaged(error), BodyFinding::DamagedBlocks)
            }
            body => body,
        }
    }

    /// Looks for intact blocks in a chunk whose body is damaged. Returns `None` if there are none,
    /// or if they cannot be distinguished from damaged ones.
    fn examine(&mut self, header: &RegionHeader) -> Option<DamagedChunk> {
        let (chunk, layout) = self.chunk(header)?;
        encoding(chunk.entry.encoding).ok().filter(|encoding| encoding.is_in_blocks())?;
        let tables = PrecedingTables { seen: self.tables, column: chunk.column, offset: header.offset };
        let (decode, decoder) = (self.decode, &mut self.decoder);
        let range = header.body_offset()..header.end();
        let examined = fetch_one(self.source, &range, &mut self.scratch, |body| {
            let body = Body::whole(body);
            DamagedChunk::examine(&StoredChunk { layout, tables: &tables, header: &chunk, body }, decode, decoder)
        });
        examined.ok()
    }

    /// Returns the header of a chunk, and the layout of its column.
    fn chunk(&self, header: &RegionHeader) -> Option<(ChunkHeader, &'a Layout)> {
        let chunk = ChunkHeader::parse(header, self.layouts.len()).ok().filter(|_| header.kind == RegionKind::Chunk)?;
        let layout = self.layouts.get(usize::try_from(chunk.column).ok()?)?;
        Some((chunk, layout))
    }

    fn check_with(&mut self, header: &RegionHeader, span: SpanBytes<'_>) -> BodyFinding {
        if header.kind == RegionKind::IndexPage {
            return match span.get(header.body_offset(), header.end()) {
                Some(body) => {
                    header.check_body(body).map_or_else(BodyFinding::Damaged, |()| BodyFinding::Page(body.to_vec()))
                }
                None => BodyFinding::Unread,
            };
        }
        if let Some((chunk, layout)) = self.chunk(header).filter(|_| self.decode) {
            let tables = PrecedingTables { seen: self.tables, column: chunk.column, offset: header.offset };
            let decoder = &mut self.decoder;
            let mut decode = |body: &[u8]| {
                header.check_body(body)?;
                let body = Body::whole(body);
                Ok(decoder.check(&StoredChunk { layout, tables: &tables, header: &chunk, body }))
            };
            let range = header.body_offset()..header.end();
            let decoded = match span.get(range.start, range.end) {
                Some(body) => decode(body),
                None if should_fetch_rest(header, span) => {
                    fetch_rest(self.source, header, span, &mut self.scratch, &mut self.whole_body).and_then(decode)
                }
                None => fetch_one(self.source, &range, &mut self.scratch, decode),
            };
            return decoded.map_or_else(BodyFinding::Damaged, BodyFinding::Decoded);
        }
        self.check_checksum(header, span).map_or_else(BodyFinding::Damaged, |()| BodyFinding::Intact)
    }

    /// Checks for a body. Bytes that `span` does not contain are fetched at most 1 MiB at a
    /// time.
    pub(super) fn check_checksum(&mut self, header: &RegionHeader, span: SpanBytes<'_>) -> Result<()> {
        if let Some(body) = span.get(header.body_offset(), header.end()) {
            return header.check_body(body);
        }
        let length = usize::try_from(header.body_bytes).unwrap_or(usize::MAX);
        check_inside(self.source, header.body_offset(), length)?;
        let known = span.from(header.body_offset()); // always shorter than the body
        let mut crc = Crc::new();
        crc.add(known);
        let mut at = header.body_offset().saturating_add(u64_of(known.len()));
        while at < header.end() {
            let end = header.end().min(at.saturating_add(BLOCK_BYTES));
            fetch_one(self.source, &(at..end), &mut self.scratch, |block| {
                crc.add(block);
                Ok(())
            })?;
            at = end;
        }
        header.check_body_crc(crc.finish())
    }
}

/// Returns whether to fetch only the bytes of a body that `span` does not contain. Assembling the
/// body takes more memory and copies all of it. So the body must be short, and `span` must contain
/// at least a quarter of it.
fn should_fetch_rest(header: &RegionHeader, span: SpanBytes<'_>) -> bool {
    let (body, known) = (u64::from(header.body_bytes), u64_of(span.from(header.body_offset()).len()));
    body <= BLOCK_BYTES && known >= body / 4
}

/// Fetches the bytes of a body that `span` does not contain, and appends them to the bytes in
/// `span`.
fn fetch_rest<'b>(
    source: &dyn Source,
    header: &RegionHeader,
    span: SpanBytes<'_>,
    scratch: &mut FetchScratch,
    whole_body: &'b mut Vec<u8>,
) -> Result<&'b [u8]> {
    let known = span.from(header.body_offset());
    let rest = header.body_offset().saturating_add(u64_of(known.len()))..header.end();
    fetch_one(source, &rest, scratch, |rest| {
        whole_body.clear();
        memory::reserve(whole_body, known.len().saturating_add(rest.len()))?;
        whole_body.extend_from_slice(known);
        whole_body.extend_from_slice(rest);
        Ok(())
    })?;
    Ok(whole_body)
}

/// Reads a whole body and checks.
pub(super) fn load_body<'b>(
    source: &'b dyn Source,
    header: &RegionHeader,
    buffer: &'b mut Vec<u8>,
) -> Result<&'b [u8]> {
    let length = usize::try_from(header.body_bytes).unwrap_or(usize::MAX);
    let body = fetch(source, header.body_offset(), length, buffer)?;
    header.check_body(body)?;
    Ok(body)
}

/// The tables found so far, by column and number.
pub(super) struct SeenTables<'a> {
    source: &'a dyn Source,
    file_id: FileId,
    tables: Mutex<BTreeMap<(u32, u32), Arc<TableSlot>>>,
}

impl<'a> SeenTables<'a> {
    pub(super) fn new(source: &'a dyn Source, file_id: FileId) -> Self {
        Self { source, file_id, tables: Mutex::default() }
    }

    /// Adds a region if it is a table with a new number.
    pub(super) fn add_if_table(&self, header: &RegionHeader) {
        if header.kind == RegionKind::Table {
            let table = TableHeader::unchecked(header);
            let slot = || Arc::new(TableSlot::new(table.entry(header)));
            self.lock().entry((table.column, table.table)).or_insert_with(slot);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(u32, u32), Arc<TableSlot>>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tables of a column that precede a chunk.
struct PrecedingTables<'t, 'a> {
    pub seen: &'t SeenTables<'a>,
    pub column: u32,
    /// The offset of the chunk.
    pub offset: u64,
}

impl Tables for PrecedingTables<'_, '_> {
    fn zstd_dictionary(&self, table: u32) -> Result<Arc<ZstdDictionary>> {
        let slot = self.seen.lock().get(&(self.column, table)).cloned();
        let slot = slot.filter(|slot| slot.entry.offset < self.offset).ok_or_else(|| missing_table(table))?;
        slot.zstd_dictionary(self.seen.source, self.seen.file_id)
    }
}
