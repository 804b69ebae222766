//! Facts of one chunk, for callers.

use crate::Result;
use crate::codec::encoding_name;
use crate::format::region::HEAD;
use crate::le::u64_of;
use crate::read::file::opened_column::OpenedColumn;
use crate::read::locate::chunk_location::ChunkLocation;
use std::ops::Range;

/// Facts of a chunk: its samples, its range in the file and its encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkInfo {
    /// The samples in it.
    pub samples: Range<u64>,
    /// The range of its body in the file: starts at a multiple of the file's alignment.
    pub file_range: Range<u64>,
    /// The encoding of its values.
    pub encoding: String,
    /// Its decoded bytes: values, extents and validity.
    pub raw_bytes: u64,
}

impl OpenedColumn {
    pub(in crate::read) fn chunk_info(&self, location: &ChunkLocation) -> Result<ChunkInfo> {
        let entry = &location.entry;
        let layout = self.layout();
        let raw_bytes = if entry.has_parts() || layout.has_shape() {
            self.chunk_head(entry)?.raw_bytes.into()
        } else {
            // samples, and nothing else
            u64::from(entry.sample_count).saturating_mul(u64_of(layout.inner_bytes))
        };
        let start = entry.offset.saturating_add(HEAD);
        Ok(ChunkInfo {
            samples: entry.samples(),
            file_range: start..start.saturating_add(entry.stored_bytes.into()),
            encoding: encoding_name(entry.encoding),
            raw_bytes,
        })
    }
}
