//! A dataset of equal files, as arithmetic: where its samples, chunks and index are.

use crate::storage::Storage;
use std::ops::Range;
use tensilo_data::WindowSizes;

/// The bytes of the header of a region, and of an entry of the index.
pub const HEADER_BYTES: u64 = 64;
pub const ENTRY_BYTES: u64 = 32;
/// The entries of a page of the index, and its bytes.
pub const PAGE_ENTRIES: u64 = 126;
pub const PAGE_BYTES: u64 = 4096;

/// A dataset of one column of a fixed shape. All files are equal.
#[derive(Clone, Debug)]
pub struct DatasetModel {
    pub files: u64,
    pub file_samples: u64,
    /// The bytes of the values of a sample.
    pub sample_bytes: u64,
    /// The bytes before the first chunk.
    pub start_bytes: u64,
    pub chunk_samples: u64,
    /// The stored bytes of a full chunk, with its header.
    pub chunk_bytes: u64,
    pub block_samples: u64,
    /// The bytes of a chunk between its header and its first block.
    pub block_index_bytes: u64,
    /// The reads that open a file.
    pub opening: Vec<OpeningRead>,
    /// The bytes of footer and trailer, after the index.
    pub end_bytes: u64,
}

/// A read of a file, at an offset from its start or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpeningRead {
    pub offset: u64,
    pub is_from_end: bool,
    pub bytes: u64,
}

impl DatasetModel {
    pub fn samples(&self) -> u64 {
        self.files * self.file_samples
    }

    /// Returns the sizes that a new dataset in this storage records.
    pub fn window_sizes(&self, storage: &Storage) -> WindowSizes {
        let stored_bytes = self.files * self.file_chunks() * self.chunk_bytes;
        WindowSizes::for_dataset(self.samples(), stored_bytes, storage.run_bytes)
    }

    pub fn file_chunks(&self) -> u64 {
        self.file_samples.div_ceil(self.chunk_samples)
    }

    pub fn file_index_pages(&self) -> u64 {
        self.file_chunks().div_ceil(PAGE_ENTRIES)
    }

    /// Returns the stored bytes of a number of samples of one chunk, without its header.
    pub fn stored(&self, samples: u64) -> u64 {
        (self.chunk_bytes - HEADER_BYTES) * samples / self.chunk_samples
    }

    /// Returns the number of samples of a chunk. The last chunk may have fewer than the others.
    pub fn samples_of(&self, chunk: u64) -> u64 {
        self.chunk_samples.min(self.file_samples - chunk * self.chunk_samples)
    }

    /// Returns the byte range of a chunk, with its header.
    pub fn chunk(&self, chunk: u64) -> Range<u64> {
        let start = self.chunk_start(chunk);
        start..start + HEADER_BYTES + self.stored(self.samples_of(chunk))
    }

    /// Returns the byte range of the block that contains a sample of a file.
    pub fn block(&self, sample: u64) -> Range<u64> {
        let (chunk, in_chunk) = (sample / self.chunk_samples, sample % self.chunk_samples);
        let first = in_chunk / self.block_samples * self.block_samples;
        let start = self.chunk_start(chunk) + HEADER_BYTES + self.block_index_bytes;
        let at = |samples: u64| {
            start + (self.chunk_bytes - HEADER_BYTES - self.block_index_bytes) * samples / self.chunk_samples
        };
        at(first)..at((first + self.block_samples).min(self.samples_of(chunk)))
    }

    fn chunk_start(&self, chunk: u64) -> u64 {
        self.start_bytes + chunk * self.chunk_bytes
    }

    fn index_start(&self) -> u64 {
        self.chunk(self.file_chunks() - 1).end.next_multiple_of(HEADER_BYTES)
    }

    /// Returns the byte range of an index page.
    pub fn index_page(&self, page: u64) -> Range<u64> {
        let start = self.index_start() + page * PAGE_BYTES;
        let entries = PAGE_ENTRIES.min(self.file_chunks() - page * PAGE_ENTRIES);
        start..start + HEADER_BYTES + entries * ENTRY_BYTES
    }

    /// Returns the byte range of the index entry of a chunk.
    pub fn index_entry(&self, chunk: u64) -> Range<u64> {
        let start =
            self.index_start() + chunk / PAGE_ENTRIES * PAGE_BYTES + HEADER_BYTES + chunk % PAGE_ENTRIES * ENTRY_BYTES;
        start..start + ENTRY_BYTES
    }

    /// Returns the length of a file.
    pub fn file_bytes(&self) -> u64 {
        let index_bytes = self.file_index_pages() * HEADER_BYTES + self.file_chunks() * ENTRY_BYTES;
        (self.index_start() + index_bytes).next_multiple_of(HEADER_BYTES) + self.end_bytes
    }

    /// Returns the byte ranges of the reads that open a file.
    pub fn opening(&self) -> impl Iterator<Item = Range<u64>> {
        self.opening.iter().map(|read| {
            let start = if read.is_from_end { self.file_bytes() - read.offset } else { read.offset };
            start..start + read.bytes
        })
    }
}
