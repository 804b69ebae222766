//! A column of a dataset as arithmetic: where its samples, chunks, blocks and index pages are.
//!
//! All files are taken to be equal to the first one, and all chunks of a file to be equally long,
//! except for the last one. So the place of a sample follows from a few divisions.

use crate::dataset::Dataset;
use crate::error::{DataError, Result};
use std::ops::Range;
use tensilo::Reader;

/// The size of the header of a region, and of an entry of the index.
const HEADER_BYTES: u64 = 64;
const ENTRY_BYTES: u64 = 32;
/// The number of entries of an index page, and its size.
pub(super) const PAGE_ENTRIES: u64 = 126;
const PAGE_BYTES: u64 = 4096;

/// A column of a dataset whose files are equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnModel {
    /// The number of files.
    pub file_count: u64,
    /// The number of samples of a file.
    pub file_samples: u64,
    /// The decoded size of a sample in bytes.
    pub sample_bytes: u64,
    /// The offset of the first chunk.
    pub start_bytes: u64,
    /// The number of samples of a chunk.
    pub chunk_samples: u64,
    /// The stored size of a chunk in bytes, with its header.
    pub chunk_bytes: u64,
    /// The distance in bytes from one chunk to the next. It exceeds `chunk_bytes` if chunks of
    /// other columns are between them.
    pub stride: u64,
    /// The number of samples of a block.
    pub block_samples: u64,
    /// The size in bytes of what precedes the first block of a chunk, without the header.
    pub block_index_bytes: u64,
    /// The reads that open a file. If a file has several columns, only one of them has these.
    pub opening: Vec<OpeningRead>,
    /// The size of footer and trailer in bytes, after the index.
    pub end_bytes: u64,
}

/// A read of a file, at an offset from its start or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpeningRead {
    /// The offset, in bytes.
    pub offset: u64,
    /// Whether the offset is counted from the end of the file.
    pub is_from_end: bool,
    /// The length, in bytes.
    pub bytes: u64,
}

impl OpeningRead {
    /// The reads that open a file of one column.
    pub const ALL: [Self; 6] = [
        Self { offset: 0, is_from_end: false, bytes: 64 },
        Self { offset: 64, is_from_end: false, bytes: 25 },
        Self { offset: 64, is_from_end: true, bytes: 64 },
        Self { offset: 64, is_from_end: true, bytes: 64 },
        Self { offset: 320, is_from_end: true, bytes: 64 },
        Self { offset: 256, is_from_end: true, bytes: 145 },
    ];
}

impl ColumnModel {
    /// Returns the models of columns of a dataset, from its manifest and the files of its first
    /// group. Fails if a column does not exist or the dataset is empty.
    pub fn of(dataset: &Dataset, columns: &[String]) -> Result<Vec<Self>> {
        for name in columns {
            if !dataset.schema().columns.iter().any(|column| column.name == *name) {
                return Err(DataError::BadArgument(format!("the dataset has no column {name:?}")));
            }
        }
        let group = dataset.groups().next().transpose()?;
        let group = group.ok_or_else(|| DataError::BadArgument("the dataset has no samples".to_owned()))?;
        let mut models = Vec::new();
        for (number, file) in group.files.iter().enumerate() {
            let selected = file.columns.iter().filter(|(_, column)| {
                let schema = dataset.schema().columns.get(*column);
                schema.is_some_and(|schema| columns.contains(&schema.name))
            });
            let names: Vec<&str> = selected.map(|(name, _)| name.as_str()).collect();
            if names.is_empty() {
                continue;
            }
            let reader = dataset.open_file(&group, number)?;
            let mut opening = OpeningRead::ALL.to_vec();
            for name in names {
                let opening = std::mem::take(&mut opening);
                models.push(Self::of_file(&reader, name, dataset.sample_count(), opening)?);
            }
        }
        Ok(models)
    }

    /// Returns the model of a column of a dataset whose files are equal to this one.
    pub fn of_file(reader: &Reader, name: &str, sample_count: u64, opening: Vec<OpeningRead>) -> Result<Self> {
        let column = reader.column(name)?;
        let (facts, file_samples) = (column.facts(), column.sample_count());
        let no_samples = || DataError::BadArgument(format!("column {name:?} of the first file has no samples"));
        let chunk = |number: u64| column.chunk(number)?.ok_or_else(no_samples);
        let chunks = facts.chunk_count.max(1);
        let first = chunk(0)?;
        let last = chunk(chunks - 1)?;
        // chunks of texts and lists have different numbers of samples
        let chunk_samples =
            if chunks == 1 { file_samples } else { file_samples.div_ceil(chunks).max(first.samples.end) };
        let chunk_samples = chunk_samples.max(1);
        let model_chunks = file_samples.div_ceil(chunk_samples).max(1);
        // of a full chunk: the last one of the file can be shorter
        let stored = u128::from(facts.stored_bytes) * u128::from(chunk_samples) / u128::from(file_samples.max(1));
        let stored = u64::try_from(stored).unwrap_or(u64::MAX >> 1);
        let distance = last.file_range.start.saturating_sub(first.file_range.start);
        let blocks = column.blocks(0)?;
        let block_samples = blocks.as_ref().and_then(|blocks| Some(blocks.blocks.first()?.samples.end));
        let index_bytes = model_chunks.div_ceil(PAGE_ENTRIES) * HEADER_BYTES + model_chunks * ENTRY_BYTES;
        let index_start = last.file_range.end.next_multiple_of(HEADER_BYTES);
        let index_end = index_start.saturating_add(index_bytes).next_multiple_of(HEADER_BYTES);
        let end_bytes = reader.file_bytes().saturating_sub(index_end);
        Ok(Self {
            file_count: sample_count.div_ceil(file_samples.max(1)),
            file_samples,
            sample_bytes: facts.raw_bytes.div_ceil(file_samples.max(1)),
            start_bytes: first.file_range.start.saturating_sub(HEADER_BYTES),
            chunk_samples,
            chunk_bytes: HEADER_BYTES.saturating_add(stored),
            stride: if model_chunks == 1 { HEADER_BYTES + stored } else { distance / (model_chunks - 1) },
            block_samples: block_samples.unwrap_or(chunk_samples).max(1),
            block_index_bytes: blocks.map_or(0, |blocks| length(&blocks.block_index)),
            opening,
            end_bytes,
        })
    }

    /// Returns the number of samples of the dataset.
    pub fn sample_count(&self) -> u64 {
        self.file_count.saturating_mul(self.file_samples)
    }

    /// Returns the stored size of the column in bytes, without index and footer.
    pub fn stored_bytes(&self) -> u64 {
        self.file_count.saturating_mul(self.file_chunks()).saturating_mul(self.chunk_bytes)
    }

    /// Returns the number of chunks of a file.
    pub fn file_chunks(&self) -> u64 {
        self.file_samples.div_ceil(self.chunk_samples.max(1))
    }

    /// Returns the number of index pages of the column in a file.
    pub fn file_index_pages(&self) -> u64 {
        self.file_chunks().div_ceil(PAGE_ENTRIES)
    }

    /// Returns the stored bytes of a number of samples of one chunk, without its header.
    fn stored(&self, samples: u64) -> u64 {
        (self.chunk_bytes - HEADER_BYTES).saturating_mul(samples) / self.chunk_samples
    }

    /// Returns the number of samples of a chunk. The last chunk of a file may have fewer than the
    /// others.
    pub(super) fn samples_of(&self, chunk: u64) -> u64 {
        self.chunk_samples.min(self.file_samples.saturating_sub(chunk.saturating_mul(self.chunk_samples)))
    }

    /// Returns the byte range of a chunk in its file, with its header.
    pub(super) fn chunk(&self, chunk: u64) -> Range<u64> {
        let start = self.chunk_start(chunk);
        start..start.saturating_add(HEADER_BYTES).saturating_add(self.stored(self.samples_of(chunk)))
    }

    /// Returns the byte range of the block that contains a sample of a file.
    pub(super) fn block(&self, sample: u64) -> Range<u64> {
        let (chunk, in_chunk) = (sample / self.chunk_samples, sample % self.chunk_samples);
        let first = in_chunk / self.block_samples * self.block_samples;
        let head = HEADER_BYTES.saturating_add(self.block_index_bytes);
        let start = self.chunk_start(chunk).saturating_add(head);
        let at = |samples: u64| {
            start.saturating_add(self.chunk_bytes.saturating_sub(head).saturating_mul(samples) / self.chunk_samples)
        };
        at(first)..at(first.saturating_add(self.block_samples).min(self.samples_of(chunk)))
    }

    fn chunk_start(&self, chunk: u64) -> u64 {
        self.start_bytes.saturating_add(chunk.saturating_mul(self.stride))
    }

    fn index_start(&self) -> u64 {
        self.chunk(self.file_chunks().saturating_sub(1)).end.next_multiple_of(HEADER_BYTES)
    }

    /// Returns the byte range of an index page.
    pub(super) fn index_page(&self, page: u64) -> Range<u64> {
        let start = self.index_start().saturating_add(page.saturating_mul(PAGE_BYTES));
        let entries = PAGE_ENTRIES.min(self.file_chunks().saturating_sub(page.saturating_mul(PAGE_ENTRIES)));
        start..start.saturating_add(HEADER_BYTES + entries * ENTRY_BYTES)
    }

    /// Returns the byte range of the index entry of a chunk.
    pub(super) fn index_entry(&self, chunk: u64) -> Range<u64> {
        let page = self.index_page(chunk / PAGE_ENTRIES).start;
        let start = page.saturating_add(HEADER_BYTES + chunk % PAGE_ENTRIES * ENTRY_BYTES);
        start..start.saturating_add(ENTRY_BYTES)
    }

    /// Returns the length of a file in bytes.
    pub fn file_bytes(&self) -> u64 {
        let index_bytes = self.file_index_pages() * HEADER_BYTES + self.file_chunks() * ENTRY_BYTES;
        let end = self.index_start().saturating_add(index_bytes);
        end.next_multiple_of(HEADER_BYTES).saturating_add(self.end_bytes)
    }

    /// Returns the byte ranges of the reads that open a file.
    pub(super) fn opening(&self) -> impl Iterator<Item = Range<u64>> {
        let file_bytes = self.file_bytes();
        self.opening.iter().map(move |read| {
            let start = if read.is_from_end { file_bytes.saturating_sub(read.offset) } else { read.offset };
            start..start.saturating_add(read.bytes)
        })
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}
