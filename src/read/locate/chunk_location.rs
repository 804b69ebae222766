//! The position of a chunk: in its column, and in the file.

use crate::format::chunk::ChunkEntry;
use crate::format::region::HEAD;

/// A chunk that was looked up in the index.
#[derive(Clone, Copy, Debug)]
pub(in crate::read) struct ChunkLocation {
    pub entry: ChunkEntry,
    /// Its number within the column.
    pub chunk: u64,
}

impl ChunkLocation {
    /// Returns the position of sample `i`, which the chunk holds, within the chunk.
    #[inline]
    pub(in crate::read) fn position_of(&self, i: u64) -> usize {
        usize::try_from(i.saturating_sub(self.entry.first_sample)).unwrap_or(usize::MAX)
    }

    /// Returns the offset of the chunk's body in a file that is in memory.
    #[inline]
    pub(in crate::read) fn body_start(&self) -> usize {
        usize::try_from(self.entry.offset.saturating_add(HEAD)).unwrap_or(usize::MAX)
    }

    /// Returns the offset in the file at which the values end, which are the last of the chunk.
    #[inline]
    pub(in crate::read) fn values_end(&self) -> u64 {
        self.entry.offset.saturating_add(HEAD).saturating_add(self.entry.stored_bytes.into())
    }

    /// Returns the number of samples of the chunk.
    pub(in crate::read) fn sample_count(&self) -> usize {
        usize::try_from(self.entry.sample_count).unwrap_or(0) // at most 2^24
    }
}
