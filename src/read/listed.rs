//! The chunks of a column of a salvaged file: a list in memory instead of pages in the file.

use super::chunk_location::ChunkLocation;
use crate::format::chunk::ChunkEntry;
use crate::le::u64_of;
use crate::{Error, Result};
use std::ops::Range;

/// Chunks in ascending order of samples, between which some are lost.
pub(super) struct Listed {
    entries: Vec<ChunkEntry>,
    sample_count: u64,
}

impl Listed {
    pub(super) fn new(entries: Vec<ChunkEntry>, sample_count: u64) -> Self {
        Self { entries, sample_count }
    }

    /// Returns the chunk that holds a sample, unless it is lost.
    pub(super) fn locate(&self, sample: u64) -> Result<ChunkLocation> {
        let after = self.entries.partition_point(|entry| entry.first_sample <= sample);
        let last = after.checked_sub(1).and_then(|last| self.chunk(u64_of(last)));
        last.filter(|located| located.entry.samples().contains(&sample)).ok_or_else(|| self.lost(after))
    }

    /// Chunk number `chunk` of those that are left.
    pub(super) fn chunk(&self, chunk: u64) -> Option<ChunkLocation> {
        let entry = *self.entries.get(usize::try_from(chunk).ok()?)?;
        Some(ChunkLocation { entry, chunk })
    }

    /// Returns the ranges of samples that no chunk contains.
    pub(super) fn gaps(&self) -> impl Iterator<Item = Range<u64>> {
        (0..=self.entries.len()).map(|after| self.gap(after)).filter(|gap| !gap.is_empty())
    }

    /// Returns the lost samples before chunk `after`, or before the end.
    fn gap(&self, after: usize) -> Range<u64> {
        let before = after.checked_sub(1).and_then(|last| self.entries.get(last));
        let start = before.map_or(0, |entry| entry.samples().end);
        start..self.entries.get(after).map_or(self.sample_count, |entry| entry.first_sample)
    }

    #[cold]
    fn lost(&self, after: usize) -> Error {
        let message = "these samples are lost: their chunks are damaged";
        Error::corrupt("R-4.2", message).with_samples(self.gap(after))
    }
}
