//! What a writer remembers of the chunks it has written, until a commit writes it down.

use super::output::Output;
use super::sink::Sink;
use crate::codec::EncodedChunk;
use crate::format::chunk::ChunkEntry;
use crate::format::content_id::ContentHasher;
use crate::format::footer::ColumnFacts;
use crate::format::index::{self, PAGE_ENTRIES, Run};
use crate::format::region::RegionKind;
use crate::{Error, Result};

/// One column's chunks since the last commit, and its facts so far.
pub(super) struct ColumnIndex {
    entries: Vec<ChunkEntry>,
    pub(super) facts: ColumnFacts,
}

impl ColumnIndex {
    /// A column of which these are the facts so far.
    pub(super) fn new(facts: ColumnFacts) -> Self {
        Self { entries: Vec::new(), facts }
    }

    /// Remembers a chunk that has been written.
    pub(super) fn add(&mut self, chunk: &EncodedChunk) -> Result<()> {
        let entry = chunk.head.entry;
        let facts = &mut self.facts;
        let sum = |sum: u64, more: u32| {
            sum.checked_add(more.into()).ok_or_else(|| Error::over_limit("a column of more than 2^64 bytes"))
        };
        facts.raw_bytes = sum(facts.raw_bytes, chunk.head.raw_bytes)?;
        facts.stored_bytes = sum(facts.stored_bytes, entry.stored_bytes)?;
        facts.chunk_count = sum(facts.chunk_count, 1)?;
        for id in chunk.side_encodings.into_iter().flatten() {
            facts.count_encoding(id, 0);
        }
        facts.count_encoding(entry.encoding, 1);
        self.entries.push(entry);
        Ok(())
    }

    /// Writes the index of the chunks since the last commit as a run. Adds its pages to `content`.
    pub(super) fn write<K: Sink>(
        &mut self,
        column: u32,
        output: &mut Output<K>,
        content: &mut ContentHasher,
    ) -> Result<()> {
        let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) else {
            return Ok(());
        };
        let chunk_count = self.entries.len() as u64; // exact: usize has at most 64 bits
        let mut first_chunk = self.facts.chunk_count - chunk_count; // all entries were counted by `add`
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
            output.region(RegionKind::IndexPage, &head, &body)?;
            content.add_page(&body);
            first_chunk += PAGE_ENTRIES;
        }
        self.facts.runs.push(run);
        self.entries.clear();
        Ok(())
    }
}
