//! The reads of one rank in the model: the byte ranges that a loader requests for a batch or a run.

use super::cache::{LineCache, Lru};
use super::column::{ColumnModel, PAGE_ENTRIES};
use super::storage::Storage;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// What a machine has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The files that were opened.
    pub opened_files: u64,
    /// Reads of small structures, and their bytes.
    pub small_reads: u64,
    /// The bytes of small reads.
    pub small_bytes: u64,
    /// The calls that read ranges of a file.
    pub calls: u64,
    /// The requests of these calls.
    pub ranges: u64,
    /// The bytes of these requests.
    pub range_bytes: u64,
    /// The requests that prefetch runs, for which no batch waits.
    pub prefetches: u64,
    /// The bytes of prefetched runs.
    pub prefetched_bytes: u64,
    /// How often a batch waited for a response.
    pub waits: u64,
}

impl Traffic {
    /// Returns the number of requests.
    pub fn requests(&self) -> u64 {
        self.small_reads.saturating_add(self.ranges).saturating_add(self.prefetches)
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> u64 {
        self.small_bytes.saturating_add(self.range_bytes).saturating_add(self.prefetched_bytes)
    }

    /// Returns the difference to earlier traffic.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        self.with(earlier, u64::saturating_sub)
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    fn with(&self, other: &Self, combine: fn(u64, u64) -> u64) -> Self {
        let of = |count: fn(&Self) -> u64| combine(count(self), count(other));
        Self {
            opened_files: of(|traffic| traffic.opened_files),
            small_reads: of(|traffic| traffic.small_reads),
            small_bytes: of(|traffic| traffic.small_bytes),
            calls: of(|traffic| traffic.calls),
            ranges: of(|traffic| traffic.ranges),
            range_bytes: of(|traffic| traffic.range_bytes),
            prefetches: of(|traffic| traffic.prefetches),
            prefetched_bytes: of(|traffic| traffic.prefetched_bytes),
            waits: of(|traffic| traffic.waits),
        }
    }
}

/// The storage as the ranks of a machine read it: counts requests that its cache does not answer.
pub(super) struct Device {
    cache: Option<LineCache>,
    file_bytes: u64,
    max_in_flight: u64,
    max_request_bytes: u64,
    pub(super) traffic: Traffic,
}

impl Device {
    /// Returns a storage with files of `file_bytes` bytes.
    pub(super) fn new(storage: &Storage, file_bytes: u64) -> Self {
        Self {
            file_bytes,
            cache: storage.cache.map(|cache| LineCache::new(cache.line_bytes, cache.bytes)),
            max_in_flight: u64::try_from(storage.coalesce.max_in_flight).unwrap_or(u64::MAX).max(1),
            max_request_bytes: storage.coalesce.max_request_bytes.max(1),
            traffic: Traffic::default(),
        }
    }

    fn missing(&mut self, file: u64, bytes: &Range<u64>) -> Vec<u64> {
        match &mut self.cache {
            Some(cache) => cache.add(file, bytes, self.file_bytes),
            None => vec![bytes.end.saturating_sub(bytes.start)],
        }
    }

    fn read_small(&mut self, file: u64, bytes: &Range<u64>) {
        for missing in self.missing(file, bytes) {
            self.traffic.small_reads += 1;
            self.traffic.small_bytes += missing;
            self.traffic.waits += 1;
        }
    }

    fn read_ranges(&mut self, file: u64, ranges: &[Range<u64>]) {
        let missing: Vec<u64> = ranges.iter().flat_map(|bytes| self.missing(file, bytes)).collect();
        let count = u64::try_from(missing.len()).unwrap_or(u64::MAX);
        self.traffic.calls += u64::from(count > 0);
        self.traffic.ranges += count;
        self.traffic.range_bytes += missing.iter().sum::<u64>();
        self.traffic.waits += count.div_ceil(self.max_in_flight);
    }

    /// Reads a run, for which no batch waits.
    fn prefetch(&mut self, file: u64, bytes: &Range<u64>) {
        for missing in self.missing(file, bytes) {
            self.traffic.prefetches += missing.div_ceil(self.max_request_bytes);
            self.traffic.prefetched_bytes += missing;
        }
    }
}

/// The number of slots of the cache of index pages of a file.
const CACHED_PAGES: u64 = 256;
/// The first read of a chunk whose blocks are read individually.
const FIRST_READ_BYTES: u64 = 1024;
/// A chunk is read whole if more than three quarters of it are requested. Each sample counts for at
/// least this many bytes.
const MIN_SAMPLE_BYTES: u64 = 1024;
/// Stored chunks of fewer bytes have no blocks.
const MIN_BLOCKED_BYTES: u64 = 8 << 10;
/// If a batch opens at least this many files, the I/O threads of the rank share them.
const MIN_SHARED_FILES: u64 = 4;
const IO_THREADS: u64 = 16;

/// The files of one column that a rank has open.
pub(super) struct RankReads<'c> {
    column: &'c ColumnModel,
    storage: &'c Storage,
    open: Lru<u64, OpenFile>,
    /// The runs in memory, and those that were in memory before.
    runs: Lru<u64, ()>,
}

/// What is cached while a file is open.
#[derive(Default)]
struct OpenFile {
    pages: HashSet<u64>,
    /// The page in each slot of the cache of pages.
    cached_pages: HashMap<u64, u64>,
    block_indexes: HashSet<u64>,
    lines: HashSet<u64>,
}

impl<'c> RankReads<'c> {
    /// Reads of a rank that has at most `max_runs` runs in memory.
    pub(super) fn new(column: &'c ColumnModel, storage: &'c Storage, max_runs: usize) -> Self {
        Self { column, storage, open: Lru::new(storage.max_open_files), runs: Lru::new(max_runs) }
    }

    /// Prefetches the runs of a batch that are not in memory. No batch waits for them: the loader
    /// has requested them before.
    pub(super) fn prefetch_runs(&mut self, samples: &[u64], run: u64, device: &mut Device) {
        let waits = device.traffic.waits;
        for &sample in samples {
            if self.runs.touch(sample / run).1 {
                let start = sample / run * run;
                self.prefetch(start..start.saturating_add(run).min(self.column.sample_count()), device);
            }
        }
        device.traffic.waits = waits;
    }

    fn prefetch(&mut self, samples: Range<u64>, device: &mut Device) {
        let ColumnModel { file_samples, chunk_samples, .. } = *self.column;
        let mut start = samples.start;
        while start < samples.end {
            let file = start / file_samples;
            let end = samples.end.min((file + 1).saturating_mul(file_samples));
            let mut reads = self.file(file, device);
            let chunks = start % file_samples / chunk_samples..=(end - 1) % file_samples / chunk_samples;
            let (first, last) = (*chunks.start(), *chunks.end());
            chunks.for_each(|chunk| reads.locate(chunk));
            let bytes = reads.column.chunk(first).start..reads.column.chunk(last).end;
            for missing in reads.not_in_memory(&bytes) {
                device.prefetch(file, &missing);
            }
            start = end;
        }
    }

    /// Reads the samples of a batch, which are in ascending order.
    pub(super) fn read_batch(&mut self, samples: &[u64], device: &mut Device) {
        let before = device.traffic;
        let ColumnModel { file_samples, chunk_samples, .. } = *self.column;
        for in_file in samples.chunk_by(|a, b| a / file_samples == b / file_samples) {
            let file = in_file.first().map_or(0, |sample| sample / file_samples);
            let mut reads = self.file(file, device);
            let in_file: Vec<u64> = in_file.iter().map(|sample| sample % file_samples).collect();
            let mut ranges = Vec::new();
            for in_chunk in in_file.chunk_by(|a, b| a / chunk_samples == b / chunk_samples) {
                reads.read_chunk(in_chunk, &mut ranges);
            }
            device.read_ranges(file, &self.coalesced(&ranges));
        }
        let read = device.traffic.since(&before);
        let opening_trips = self.storage.opening_requests.saturating_add(1);
        let waits = if self.storage.reads_files_together {
            // open the files; read their index pages; read the block indexes; read the ranges
            u64::from(read.opened_files > 0) * opening_trips
                + u64::from(read.small_reads > (1 + opening_trips) * read.opened_files)
                + u64::from(read.ranges > 0)
        } else if read.opened_files >= MIN_SHARED_FILES {
            // all batches that the rank fetches at the same time share the threads
            read.waits.saturating_mul(self.storage.io_depth.into()).div_ceil(IO_THREADS)
        } else {
            read.waits
        };
        device.traffic.waits = before.waits + waits;
    }

    /// Opens a file, unless it is open.
    fn file<'a>(&'a mut self, file: u64, device: &'a mut Device) -> FileReads<'a> {
        let (open, is_new) = self.open.touch(file);
        let mut reads = FileReads { column: self.column, storage: self.storage, file, open, device };
        if is_new {
            reads.device.traffic.opened_files += 1;
            reads.device.traffic.small_reads += self.storage.opening_requests;
            reads.device.traffic.waits += self.storage.opening_requests;
            reads.column.opening().for_each(|bytes| reads.read_small(&bytes));
        }
        reads
    }

    /// Coalesces ascending ranges across gaps that are cheaper to read than to skip.
    fn coalesced(&self, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let (gap, max_bytes) = (self.storage.coalesce.gap_bytes, self.storage.coalesce.max_request_bytes);
        let mut requests: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match requests.last_mut() {
                Some(last)
                    if range.start <= last.end.saturating_add(gap)
                        && range.end.max(last.end).saturating_sub(last.start) <= max_bytes =>
                {
                    last.end = last.end.max(range.end);
                }
                _ => requests.push(range.clone()),
            }
        }
        requests
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// The reads of one file.
struct FileReads<'a> {
    column: &'a ColumnModel,
    storage: &'a Storage,
    file: u64,
    open: &'a mut OpenFile,
    device: &'a mut Device,
}

impl FileReads<'_> {
    /// Reads a small structure.
    fn read_small(&mut self, bytes: &Range<u64>) {
        let Some(line) = self.storage.small_read_bytes else { return self.device.read_small(self.file, bytes) };
        let lines = bytes.start / line..bytes.end.div_ceil(line);
        let missing: Vec<u64> = lines.filter(|&line| self.open.lines.insert(line)).collect();
        if let (Some(first), Some(last)) = (missing.first(), missing.last()) {
            let end = (last + 1).saturating_mul(line).min(self.column.file_bytes());
            self.device.read_small(self.file, &(first * line..end));
        }
    }

    /// Returns the parts of a range that are not in lines that were read before.
    fn not_in_memory(&self, bytes: &Range<u64>) -> Vec<Range<u64>> {
        let Some(line) = self.storage.small_read_bytes else { return vec![bytes.clone()] };
        let mut parts: Vec<Range<u64>> = Vec::new();
        let lines = bytes.start / line..bytes.end.div_ceil(line);
        for number in lines.filter(|number| !self.open.lines.contains(number)) {
            let (start, end) = ((number * line).max(bytes.start), (number + 1).saturating_mul(line).min(bytes.end));
            match parts.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => parts.push(start..end),
            }
        }
        parts
    }

    /// Finds a chunk in the index.
    fn locate(&mut self, chunk: u64) {
        if self.open.block_indexes.contains(&chunk) {
            return; // a cached block index states where its chunk is
        }
        let page = chunk / PAGE_ENTRIES;
        let slot = page % CACHED_PAGES;
        if self.open.pages.insert(page) {
            self.open.cached_pages.insert(slot, page);
            self.read_small(&self.column.index_page(page));
        } else if self.open.cached_pages.get(&slot) != Some(&page) {
            self.read_small(&self.column.index_entry(chunk));
        }
    }

    /// Adds the ranges of samples of one chunk. Samples are counted in the file.
    fn read_chunk(&mut self, samples: &[u64], ranges: &mut Vec<Range<u64>>) {
        let column = self.column;
        let chunk = samples.first().map_or(0, |sample| sample / column.chunk_samples);
        self.locate(chunk);
        let bytes = column.chunk(chunk);
        let in_chunk = column.samples_of(chunk);
        let requested = count(samples.len()).saturating_mul(column.sample_bytes.max(MIN_SAMPLE_BYTES));
        let is_whole =
            (in_chunk > 1 || samples.len() > 1) && requested / 3 > in_chunk.saturating_mul(column.sample_bytes) / 4;
        let min_blocked = MIN_BLOCKED_BYTES.max(self.storage.coalesce.gap_bytes.saturating_mul(2));
        let has_blocks = bytes.end.saturating_sub(bytes.start) >= min_blocked;
        if is_whole || !has_blocks || column.block_samples >= column.chunk_samples {
            ranges.push(bytes);
            return;
        }
        if self.open.block_indexes.insert(chunk) {
            self.read_small(&(bytes.start..bytes.start.saturating_add(FIRST_READ_BYTES)));
        }
        ranges.extend(samples.iter().map(|&sample| column.block(sample)));
    }
}
