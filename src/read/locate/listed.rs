//! The chunks of a column of a salvaged file: a list in memory instead of pages in the file.

use super::chunk_location::ChunkLocation;
use super::losses::{LostSamples, lost_error};
use crate::format::chunk::ChunkEntry;
use crate::le::u64_of;
use crate::{Error, Result};
use std::ops::Range;

/// Chunks in ascending order of samples, between which some are lost, and in which some may be.
pub(in crate::read) struct Listed {
    entries: Vec<ChunkEntry>,
    lost: LostSamples,
}

impl Listed {
    /// `lost` are the lost samples of the chunks in `entries`.
    pub(in crate::read) fn new(entries: Vec<ChunkEntry>, mut lost: Vec<Range<u64>>, sample_count: u64) -> Self {
        let starts = std::iter::once(0).chain(entries.iter().map(|entry| entry.samples().end));
        let ends = entries.iter().map(|entry| entry.first_sample).chain(std::iter::once(sample_count));
        lost.extend(starts.zip(ends).map(|(start, end)| start..end).filter(|gap| !gap.is_empty()));
        let lost = LostSamples::of_ranges(sample_count, lost);
        Self { entries, lost }
    }

    /// Returns the lost samples.
    pub(in crate::read) fn lost(&self) -> &LostSamples {
        &self.lost
    }

    /// Returns the chunk that holds a sample, unless the sample is lost.
    pub(in crate::read) fn locate(&self, sample: u64) -> Result<ChunkLocation> {
        self.check(&(sample..sample.saturating_add(1)))?;
        let after = self.entries.partition_point(|entry| entry.first_sample <= sample);
        let last = after.checked_sub(1).and_then(|last| self.chunk(u64_of(last)));
        last.ok_or_else(|| Error::internal("a sample is neither in a chunk nor lost"))
    }

    /// Chunk number `chunk` of those that are left.
    pub(in crate::read) fn chunk(&self, chunk: u64) -> Option<ChunkLocation> {
        let entry = *self.entries.get(usize::try_from(chunk).ok()?)?;
        Some(ChunkLocation { entry, chunk })
    }

    /// Refuses samples of which one is lost. The error names the range of lost samples.
    pub(in crate::read) fn check(&self, samples: &Range<u64>) -> Result<()> {
        self.lost.first_in(samples).map_or(Ok(()), |lost| Err(lost_error(lost)))
    }
}
