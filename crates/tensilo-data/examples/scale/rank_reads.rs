//! The reads of one rank: the byte ranges that the loader requests from its files.

use crate::dataset_model::{DatasetModel, PAGE_ENTRIES};
use crate::device::Device;
use crate::lru::Lru;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The number of slots of the cache of index pages.
const CACHED_PAGES: u64 = 256;
/// The first read of a chunk whose blocks are read individually.
const FIRST_READ_BYTES: u64 = 1024;
/// A chunk is read whole if more than three quarters of it are requested. Each sample counts for at
/// least this many bytes.
const MIN_SAMPLE_BYTES: u64 = 1024;
/// Stored chunks of fewer bytes have no blocks.
const MIN_BLOCKED_BYTES: u64 = 8 << 10;
/// The maximum size of a coalesced range: this many bytes, or this many gaps, whichever is larger.
const MAX_COALESCED_BYTES: u64 = 256 << 10;
const MAX_COALESCED_GAPS: u64 = 16;

/// How a source is read.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// `Source::gap_bytes`.
    pub gap: u64,
    /// `DatasetOptions::max_open_files`.
    pub open_files: usize,
    /// If set, the source reads small structures in aligned lines of this many bytes, which it
    /// caches while the file is open.
    pub line: Option<u64>,
}

/// The files that a rank has open.
pub struct RankReads<'d> {
    dataset: &'d DatasetModel,
    reading: Reading,
    open: Lru<u64, OpenFile>,
    pub opened: u64,
}

/// The cached data of an open file.
#[derive(Default)]
struct OpenFile {
    pages: HashSet<u64>,
    /// The page in each slot of the cache of pages.
    cached_pages: HashMap<u64, u64>,
    block_indexes: HashSet<u64>,
    lines: HashSet<u64>,
}

impl<'d> RankReads<'d> {
    pub fn new(dataset: &'d DatasetModel, reading: Reading) -> Self {
        Self { dataset, reading, open: Lru::new(reading.open_files), opened: 0 }
    }

    /// Returns the number of reads that open a file.
    pub fn opening_reads(&self) -> u64 {
        self.dataset.opening().count() as u64
    }

    /// Reads the samples of a batch. Returns the number of files that have them.
    pub fn batch(&mut self, samples: &mut [u64], device: &mut Device) -> u64 {
        samples.sort_unstable();
        let mut files = 0;
        let DatasetModel { file_samples, chunk_samples, .. } = *self.dataset;
        for in_file in samples.chunk_by(|a, b| a / file_samples == b / file_samples) {
            let number = in_file[0] / file_samples;
            files += 1;
            let mut file = self.file(number, device);
            let in_file: Vec<u64> = in_file.iter().map(|sample| sample % file_samples).collect();
            let mut ranges = Vec::new();
            for in_chunk in in_file.chunk_by(|a, b| a / chunk_samples == b / chunk_samples) {
                file.chunk(in_chunk, &mut ranges);
            }
            let ranges = coalesced(&ranges, self.reading.gap);
            device.ranges(number, &ranges);
        }
        files
    }

    /// Prefetches the samples of a run.
    pub fn prefetch(&mut self, samples: Range<u64>, device: &mut Device) {
        let DatasetModel { file_samples, chunk_samples, .. } = *self.dataset;
        let max_bytes = max_coalesced_bytes(self.reading.gap);
        let mut start = samples.start;
        while start < samples.end {
            let number = start / file_samples;
            let end = samples.end.min((number + 1) * file_samples);
            let mut file = self.file(number, device);
            let chunks = start % file_samples / chunk_samples..(end - 1) % file_samples / chunk_samples + 1;
            chunks.clone().for_each(|chunk| file.locate(chunk));
            let bytes = file.dataset.chunk(chunks.start).start..file.dataset.chunk(chunks.end - 1).end;
            device.prefetch(number, bytes, max_bytes);
            start = end;
        }
    }

    /// Opens a file, unless it is open.
    fn file<'a>(&'a mut self, number: u64, device: &'a mut Device) -> FileReads<'a> {
        let (open, is_new) = self.open.touch(number);
        let mut file = FileReads { dataset: self.dataset, reading: self.reading, number, open, device };
        if is_new {
            self.opened += 1;
            self.dataset.opening().for_each(|bytes| file.small(bytes));
        }
        file
    }
}

/// The reads of one file.
struct FileReads<'a> {
    dataset: &'a DatasetModel,
    reading: Reading,
    number: u64,
    open: &'a mut OpenFile,
    device: &'a mut Device,
}

impl FileReads<'_> {
    /// Reads a small structure.
    fn small(&mut self, bytes: Range<u64>) {
        let Some(line) = self.reading.line else { return self.device.small(self.number, bytes) };
        let missing: Vec<u64> =
            (bytes.start / line..bytes.end.div_ceil(line)).filter(|&at| self.open.lines.insert(at)).collect();
        if let (Some(first), Some(last)) = (missing.first(), missing.last()) {
            let end = ((last + 1) * line).min(self.dataset.file_bytes());
            self.device.small(self.number, first * line..end);
        }
    }

    /// Finds a chunk with the index.
    fn locate(&mut self, chunk: u64) {
        if self.open.block_indexes.contains(&chunk) {
            return; // a cached block index knows where its chunk is
        }
        let page = chunk / PAGE_ENTRIES;
        let slot = page % CACHED_PAGES;
        if self.open.pages.insert(page) {
            self.open.cached_pages.insert(slot, page);
            self.small(self.dataset.index_page(page));
        } else if self.open.cached_pages.get(&slot) != Some(&page) {
            self.small(self.dataset.index_entry(chunk));
        }
    }

    /// Plans the reads of samples of one chunk. Samples are counted in the file.
    fn chunk(&mut self, samples: &[u64], ranges: &mut Vec<Range<u64>>) {
        let dataset = self.dataset;
        let chunk = samples[0] / dataset.chunk_samples;
        self.locate(chunk);
        let bytes = dataset.chunk(chunk);
        let in_chunk = dataset.samples_of(chunk);
        let requested = samples.len() as u64 * dataset.sample_bytes.max(MIN_SAMPLE_BYTES);
        let is_whole = (in_chunk > 1 || samples.len() > 1) && requested / 3 > in_chunk * dataset.sample_bytes / 4;
        let has_blocks = bytes.end - bytes.start >= MIN_BLOCKED_BYTES.max(2 * self.reading.gap);
        if is_whole || !has_blocks || dataset.block_samples >= dataset.chunk_samples {
            ranges.push(bytes);
            return;
        }
        if self.open.block_indexes.insert(chunk) {
            self.small(bytes.start..bytes.start + FIRST_READ_BYTES);
        }
        ranges.extend(samples.iter().map(|&sample| dataset.block(sample)));
    }
}

/// Coalesces ascending ranges across gaps that are cheaper to read than to skip.
fn coalesced(ranges: &[Range<u64>], gap: u64) -> Vec<Range<u64>> {
    let max_bytes = max_coalesced_bytes(gap);
    let mut out: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.start <= last.end + gap && range.end.max(last.end) - last.start <= max_bytes => {
                last.end = last.end.max(range.end);
            }
            _ => out.push(range.clone()),
        }
    }
    out
}

/// Returns the maximum size of a coalesced range.
fn max_coalesced_bytes(gap: u64) -> u64 {
    MAX_COALESCED_BYTES.max(gap * MAX_COALESCED_GAPS)
}
