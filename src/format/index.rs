//! Chapter 6: the index.

use super::chunk::ChunkEntry;
use super::region::{FileId, HEAD_BYTES, RegionHead, RegionKind};
use crate::le::{put, u16_at, u32_at, u64_at};
use crate::{Error, Result};

/// Entries of a full page.
pub(crate) const PAGE_ENTRIES: u64 = 126;
/// Distance between the pages of a run.
pub(crate) const PAGE_BYTES: u64 = 4096;
/// Body of a full page.
pub(crate) const PAGE_BODY_BYTES: u32 = 126 * 32;
pub(crate) const ENTRY_BYTES: usize = 32;

/// What a page's head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageHead {
    pub column: u32,
    pub first_sample: u64,
    pub entry_count: u32,
    pub first_chunk: u64,
}

impl PageHead {
    /// but for the first entry, of a region that is known to be a page.
    pub(crate) fn parse(head: &RegionHead, column_count: usize) -> Result<Self> {
        let page = Self {
            column: u32::from_le_bytes(head.slot4),
            first_sample: u64_at::<0, 12>(&head.slot32),
            entry_count: u32_at::<8, 12>(&head.slot32),
            first_chunk: u64::from_le_bytes(head.slot48),
        };
        let known_column = usize::try_from(page.column).is_ok_and(|column| column < column_count);
        let full_length = u64::from(page.entry_count) * 32; // fits: 2^32 x 32
        if !known_column
            || page.entry_count == 0
            || u64::from(page.entry_count) > PAGE_ENTRIES
            || u64::from(head.body_bytes) != full_length
        {
            let message = format!(
                "an index page of column number {} with {} entries in {} bytes cannot be",
                page.column, page.entry_count, head.body_bytes
            );
            return Err(Error::corrupt("R-6.1", message).with_offset(head.offset));
        }
        Ok(page)
    }
}

/// One page of `entries`, as it stands at `offset`. There are 1 to 126 entries.
pub(crate) fn page(
    file_id: FileId,
    offset: u64,
    column: u32,
    first_chunk: u64,
    entries: &[ChunkEntry],
) -> Result<([u8; HEAD_BYTES], Vec<u8>)> {
    let mut body = Vec::with_capacity(entries.len() * ENTRY_BYTES);
    for entry in entries {
        body.extend(entry_to_bytes(entry));
    }
    let first_sample = entries.first().map_or(0, |entry| entry.first_sample);
    let entry_count = u32::try_from(entries.len()).unwrap_or(u32::MAX); // a page has at most 126
    let mut head = RegionHead::new(RegionKind::IndexPage, file_id, offset, &body)?;
    head.slot4 = column.to_le_bytes();
    put::<0, 8, 12>(&mut head.slot32, first_sample.to_le_bytes());
    put::<8, 4, 12>(&mut head.slot32, entry_count.to_le_bytes());
    head.slot48 = first_chunk.to_le_bytes();
    Ok((head.to_bytes(), body))
}

fn entry_to_bytes(entry: &ChunkEntry) -> [u8; ENTRY_BYTES] {
    let mut out = [0; ENTRY_BYTES];
    put::<0, 8, 32>(&mut out, entry.offset.to_le_bytes());
    put::<8, 8, 32>(&mut out, entry.first_sample.to_le_bytes());
    put::<16, 4, 32>(&mut out, entry.stored_bytes.to_le_bytes());
    put::<20, 4, 32>(&mut out, entry.sample_count.to_le_bytes());
    put::<24, 4, 32>(&mut out, entry.body_crc.to_le_bytes());
    put::<28, 2, 32>(&mut out, entry.encoding.to_le_bytes());
    put::<30, 2, 32>(&mut out, entry.flags.to_le_bytes());
    out
}

/// One entry of a page.
#[inline]
pub(crate) fn parse_entry(bytes: &[u8; ENTRY_BYTES]) -> ChunkEntry {
    ChunkEntry {
        offset: u64_at::<0, 32>(bytes),
        first_sample: u64_at::<8, 32>(bytes),
        stored_bytes: u32_at::<16, 32>(bytes),
        sample_count: u32_at::<20, 32>(bytes),
        body_crc: u32_at::<24, 32>(bytes),
        encoding: u16_at::<28, 32>(bytes),
        flags: u16_at::<30, 32>(bytes),
    }
}

/// A run: where the index of a column's chunks of one commit is, and what they cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Of the first page.
    pub offset: u64,
    pub first_sample: u64,
    pub sample_count: u64,
    pub chunk_count: u64,
    /// 0: chunks differ.
    pub samples_per_chunk: u32,
}

impl Run {
    pub(crate) fn end_sample(&self) -> u64 {
        self.first_sample.saturating_add(self.sample_count)
    }

    pub(crate) fn page_count(&self) -> u64 {
        self.chunk_count.div_ceil(PAGE_ENTRIES)
    }

    /// Entries of page `page` of the run.
    pub(crate) fn page_entries(&self, page: u64) -> u64 {
        let before = page.saturating_mul(PAGE_ENTRIES);
        self.chunk_count.saturating_sub(before).min(PAGE_ENTRIES)
    }

    /// Where page `page` of the run stands.
    pub(crate) fn page_offset(&self, page: u64) -> u64 {
        self.offset.saturating_add(page.saturating_mul(PAGE_BYTES))
    }

    /// Where the last page's body ends.
    pub(crate) fn end(&self) -> u64 {
        let last = self.page_count().saturating_sub(1);
        let entries = self.page_entries(last).saturating_mul(32);
        self.page_offset(last).saturating_add(64).saturating_add(entries)
    }
}

/// The chunk size that a run states (chapter 7.1), from the sample counts of its chunks.
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
