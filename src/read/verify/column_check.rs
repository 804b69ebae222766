//! Checks the chunks of one column against its index and its facts (chapters 6 and 7).

use crate::format::chunk::ChunkEntry;
use crate::format::column_record::ColumnRecord;
use crate::format::index::{ENTRY_BYTES, PageHead, Run, samples_per_chunk};
use crate::le::u64_of;
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// The state of the check of one column.
pub(super) struct ColumnCheck {
    pub name: Arc<str>,
    pub next_sample: u64,
    pub facts: ColumnRecord,
    pub table_count: u32,
    /// Chunks of this commit.
    pub chunks: Vec<ChunkEntry>,
    /// The number of them that the index has listed.
    pub listed: usize,
    /// Chunks that the index has listed and that the walk has not met.
    pub missing: Vec<ChunkEntry>,
}

impl ColumnCheck {
    /// Returns the samples of the chunks that a page of the index lists from sample `first` on, if
    /// all of these chunks were met.
    pub(super) fn listed_from(&self, first: u64, body_bytes: u32) -> Option<Range<u64>> {
        let count = usize::try_from(body_bytes).ok()? / ENTRY_BYTES;
        let at = self.chunks.partition_point(|chunk| chunk.first_sample < first);
        let chunks = self.chunks.get(at..)?.get(..count)?;
        let follow = chunks.is_sorted_by(|a, b| a.samples().end == b.first_sample);
        let (from, to) = (chunks.first()?.first_sample, chunks.last()?.samples().end);
        (follow && from == first).then_some(from..to)
    }

    /// Begins or continues the run of this commit: for `first_chunk`.
    pub(super) fn start_page(&mut self, page: &PageHead, offset: u64) -> Result<()> {
        let before = self.facts.chunk_count.saturating_sub(u64_of(self.chunks.len()));
        if page.first_chunk != before.saturating_add(u64_of(self.listed)) {
            let message = format!("the page begins at chunk {}, which is not the next", page.first_chunk);
            return Err(Error::corrupt("R-6.2", message).with_offset(offset));
        }
        if self.listed == 0
            && let (Some(first), Some(last)) = (self.chunks.first(), self.chunks.last())
        {
            self.facts.runs.push(Run {
                offset,
                first_sample: first.first_sample,
                sample_count: last.samples().end.saturating_sub(first.first_sample),
                chunk_count: u64_of(self.chunks.len()),
                samples_per_chunk: samples_per_chunk(self.chunks.iter().map(|entry| entry.sample_count)),
            });
        }
        Ok(())
    }

    /// Checks that every chunk is listed and that the facts are true.
    pub(super) fn compare(&self, found: &ColumnRecord, decoded: bool) -> Result<()> {
        if self.listed != self.chunks.len() {
            let message =
                format!("{} of {} chunks are not in the index", self.chunks.len() - self.listed, self.chunks.len());
            return Err(Error::corrupt("R-6.2", message));
        }
        let mut due = self.facts.clone();
        due.cast = found.cast;
        if !decoded {
            due.null_count = found.null_count;
            let found_only = found.encodings.iter().filter(|&&(id, chunks)| chunks == 0 && due.encoding(id).is_none());
            // seen only in the parts that were not decoded
            let side: Vec<u16> = found_only.map(|&(id, _)| id).collect();
            side.into_iter().for_each(|id| due.count_encoding(id, 0));
        }
        if *found == due {
            return Ok(());
        }
        let message = format!("the footer's facts are not those of the file: {found:?}, not {due:?}");
        Err(Error::corrupt("R-7.4", message))
    }
}
