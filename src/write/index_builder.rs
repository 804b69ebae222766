//! The index of the chunks since the last commit, which the next commit writes.

use super::region_writer::RegionWriter;
use super::sink::Sink;
use crate::codec::EncodedChunk;
use crate::format::chunk::ChunkEntry;
use crate::format::column_record::ColumnRecord;
use crate::format::content_id::ContentHasher;
use crate::format::index::{self, PAGE_ENTRIES, Run};
use crate::format::region::RegionKind;
use crate::le::u64_of;
use crate::{Error, Result};

/// The chunks of one column since the last commit, and the column's facts so far.
pub(super) struct IndexBuilder {
    entries: Vec<ChunkEntry>,
    pub(super) record: ColumnRecord,
}

impl IndexBuilder {
    /// Begins the index of a column of which these are the facts so far.
    pub(super) fn new(record: ColumnRecord) -> Self {
        Self { entries: Vec::new(), record }
    }

    /// Adds a chunk that has been written.
    pub(super) fn add(&mut self, chunk: &EncodedChunk) -> Result<()> {
        let entry = chunk.head.entry;
        let record = &mut self.record;
        let sum = |sum: u64, more: u32| {
            sum.checked_add(more.into()).ok_or_else(|| Error::over_limit("a column of more than 2^64 bytes"))
        };
        record.raw_bytes = sum(record.raw_bytes, chunk.head.raw_bytes)?;
        record.stored_bytes = sum(record.stored_bytes, entry.stored_bytes)?;
        record.chunk_count = sum(record.chunk_count, 1)?;
        for id in chunk.side_encodings.into_iter().flatten() {
            record.count_encoding(id, 0);
        }
        record.count_encoding(entry.encoding, 1);
        self.entries.push(entry);
        Ok(())
    }

    /// Writes the chunks since the last commit as a run, and adds its pages to `content`.
    pub(super) fn write<K: Sink>(
        &mut self,
        column: u32,
        output: &mut RegionWriter<K>,
        content: &mut ContentHasher,
    ) -> Result<()> {
        let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) else {
            return Ok(());
        };
        let chunk_count = u64_of(self.entries.len());
        // all entries were counted by `add`
        let mut first_chunk = self.record.chunk_count - chunk_count;
        let run = Run {
            offset: output.next(RegionKind::IndexPage),
            first_sample: first.first_sample,
            sample_count: last.samples().end - first.first_sample, // chunks are added in order
            chunk_count,
            samples_per_chunk: index::samples_per_chunk(self.entries.iter().map(|entry| entry.sample_count)),
        };
        for entries in self.entries.chunks(PAGE_ENTRIES as usize) {
            let offset = output.next(RegionKind::IndexPage);
            let (head, body) = index::page(output.file_id, offset, column, first_chunk, entries)?;
            output.region(head, &body)?;
            content.add_page(&body);
            first_chunk += PAGE_ENTRIES;
        }
        self.record.runs.push(run);
        self.entries.clear();
        Ok(())
    }
}
