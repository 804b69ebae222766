//! Chapter 6: the index, which states where the chunks are.
//!
//! The index entries for the chunks that one commit added to one column form a [`ChunkRun`]:
//! consecutive pages of up to 126 entries. A full page has exactly 4,096 bytes, so a division finds
//! the page of a chunk. The header of a page states its column, first sample and first chunk, so
//! each page can be read and checked independently.
//!
//! In most runs, all chunks except the last have the same number of samples. The footer states this
//! number ([`samples_per_chunk`]), so another division finds the chunk of a sample, and a lookup
//! reads one page. Only the other runs require a search.

use super::chunk::ChunkEntry;
use super::region::{FileId, HEADER_LEN, RegionHeader, RegionKind, region_header};
use crate::bytes::le::{structure, u64_of};
use crate::{Error, Result};
use std::ops::Range;

structure! {
    /// Chapter 6: the fields that only the header of an index page has.
    mod page_header: 64 bytes with region_header {
        4 => COLUMN: u32,
        32 => FIRST_SAMPLE: u64,
        40 => ENTRY_COUNT: u32,
        48 => FIRST_CHUNK: u64,
    }
}

structure! {
    /// Chapter 6: an entry of an index page.
    mod index_entry: 32 bytes {
        0 => OFFSET: u64,
        8 => FIRST_SAMPLE: u64,
        16 => STORED_BYTES: u32,
        20 => SAMPLE_COUNT: u32,
        24 => BODY_CRC: u32,
        28 => ENCODING: u16,
        30 => CHUNK_FLAGS: u16,
    }
}

/// The bit of an encoding that is set if the part has several blocks.
pub(crate) const BLOCKS: u16 = 1 << 8;

/// The size of an entry in bytes.
pub(crate) const ENTRY_BYTES: usize = index_entry::SIZE;
/// The number of entries of a full page.
pub(crate) const PAGE_ENTRIES: u64 = 126;
/// The distance between the pages of a run, which is the size of a full page with its header.
pub(crate) const PAGE_BYTES: u64 = HEADER_LEN + PAGE_ENTRIES * ENTRY;

const ENTRY: u64 = u64_of(ENTRY_BYTES);
const _: () = assert!(PAGE_BYTES == 4096 && PAGE_BYTES == HEADER_LEN + crate::limits::INDEX_PAGE_BYTES as u64);

/// The fields of an index page's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageHeader {
    pub column: u32,
    pub first_sample: u64,
    pub entry_count: u32,
    pub first_chunk: u64,
}

impl PageHeader {
    /// Reads the fields of an index page's region header without checking them.
    pub(crate) fn unchecked(header: &RegionHeader) -> Self {
        Self {
            column: header.get(page_header::COLUMN),
            first_sample: header.get(page_header::FIRST_SAMPLE),
            entry_count: header.get(page_header::ENTRY_COUNT),
            first_chunk: header.get(page_header::FIRST_CHUNK),
        }
    }

    /// Parses the region header of an index page, and checks except for the first entry.
    pub(crate) fn parse(header: &RegionHeader, column_count: usize) -> Result<Self> {
        let page = Self::unchecked(header);
        let known_column = usize::try_from(page.column).is_ok_and(|column| column < column_count);
        let entry_count = u64::from(page.entry_count);
        if !known_column
            || !(1..=PAGE_ENTRIES).contains(&entry_count)
            || u64::from(header.body_bytes) != entry_count * ENTRY
        {
            let message = format!(
                "the header of an index page is invalid: column number {}, {} entries, {} bytes",
                page.column, page.entry_count, header.body_bytes
            );
            return Err(Error::corrupt("R-6.1", message).with_offset(header.offset));
        }
        Ok(page)
    }
}

/// Returns the header and the body of the page at `offset` with these 1 to 126 entries.
pub(crate) fn page(
    file_id: FileId,
    offset: u64,
    column: u32,
    first_chunk: u64,
    entries: &[ChunkEntry],
) -> Result<(RegionHeader, Vec<u8>)> {
    let mut body = Vec::with_capacity(entries.len() * ENTRY_BYTES);
    for entry in entries {
        body.extend(entry_to_bytes(entry));
    }
    let first_sample = entries.first().map_or(0, |entry| entry.first_sample);
    // `RegionHeader::new` fails for more than 126 entries
    let entry_count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
    let header = RegionHeader::new(RegionKind::IndexPage, file_id, offset, &body)?
        .with(page_header::COLUMN, column)
        .with(page_header::FIRST_SAMPLE, first_sample)
        .with(page_header::ENTRY_COUNT, entry_count)
        .with(page_header::FIRST_CHUNK, first_chunk);
    Ok((header, body))
}

/// Returns the bytes of an entry.
pub(crate) fn entry_to_bytes(entry: &ChunkEntry) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    index_entry::OFFSET.put(&mut bytes, entry.offset);
    index_entry::FIRST_SAMPLE.put(&mut bytes, entry.first_sample);
    index_entry::STORED_BYTES.put(&mut bytes, entry.stored_bytes);
    index_entry::SAMPLE_COUNT.put(&mut bytes, entry.sample_count);
    index_entry::BODY_CRC.put(&mut bytes, entry.body_crc);
    index_entry::ENCODING.put(&mut bytes, entry.encoding);
    index_entry::CHUNK_FLAGS.put(&mut bytes, entry.flags);
    bytes
}

/// Parses an entry of a page.
#[inline]
pub(crate) fn parse_entry(bytes: &[u8; ENTRY_BYTES]) -> ChunkEntry {
    ChunkEntry {
        offset: index_entry::OFFSET.get(bytes),
        first_sample: index_entry::FIRST_SAMPLE.get(bytes),
        stored_bytes: index_entry::STORED_BYTES.get(bytes),
        sample_count: index_entry::SAMPLE_COUNT.get(bytes),
        body_crc: index_entry::BODY_CRC.get(bytes),
        encoding: index_entry::ENCODING.get(bytes),
        flags: index_entry::CHUNK_FLAGS.get(bytes),
    }
}

/// The index pages for the chunks that one commit added to one column, and the samples that they
/// cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkRun {
    /// The offset of the first page.
    pub offset: u64,
    pub first_sample: u64,
    pub sample_count: u64,
    pub chunk_count: u64,
    /// The number of samples in each chunk except the last, which can have fewer; 0 if the chunks
    /// before the last differ, or the last has more.
    pub samples_per_chunk: u32,
}

impl ChunkRun {
    pub(crate) fn end_sample(&self) -> u64 {
        self.first_sample.saturating_add(self.sample_count)
    }

    pub(crate) fn page_count(&self) -> u64 {
        self.chunk_count.div_ceil(PAGE_ENTRIES)
    }

    /// Returns the number of entries of page `page` of the run.
    pub(crate) fn page_entries(&self, page: u64) -> u64 {
        let before = page.saturating_mul(PAGE_ENTRIES);
        self.chunk_count.saturating_sub(before).min(PAGE_ENTRIES)
    }

    /// Returns the offset of page `page` of the run.
    pub(crate) fn page_offset(&self, page: u64) -> u64 {
        self.offset.saturating_add(page.saturating_mul(PAGE_BYTES))
    }

    /// Returns the file range of page `page` of the run, including its header.
    pub(crate) fn page_range(&self, page: u64) -> Range<u64> {
        let (start, entries) = (self.page_offset(page), self.page_entries(page).saturating_mul(ENTRY));
        start..start.saturating_add(HEADER_LEN).saturating_add(entries)
    }

    /// Returns the offset at which the last page ends.
    pub(crate) fn end(&self) -> u64 {
        self.page_range(self.page_count().saturating_sub(1)).end
    }
}

/// Returns the `samples_per_chunk` (chapter 7.1) of a run whose chunks have these numbers of
/// samples.
pub(crate) fn samples_per_chunk(counts: impl Iterator<Item = u32> + Clone) -> u32 {
    let Some(first) = counts.clone().next() else { return 0 };
    let mut all = counts.peekable();
    while let Some(count) = all.next() {
        let is_last = all.peek().is_none();
        if count > first || (count < first && !is_last) {
            return 0;
        }
    }
    first
}
