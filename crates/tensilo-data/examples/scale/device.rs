//! The storage of one node: counts its requests, with or without a cache in front of it.

use crate::lru::Lru;
use std::ops::Range;

/// The reads that a device received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Reads of small structures, one after the other.
    pub small: u64,
    pub small_bytes: u64,
    /// Calls that read ranges of one file, and the ranges themselves.
    pub rounds: u64,
    pub ranges: u64,
    pub range_bytes: u64,
    /// Prefetches, for which no reader waits.
    pub prefetched: u64,
    pub prefetched_bytes: u64,
    /// The times that a reader waited for an answer.
    pub waits: u64,
}

impl Traffic {
    pub fn requests(&self) -> u64 {
        self.small + self.ranges + self.prefetched
    }

    pub fn bytes(&self) -> u64 {
        self.small_bytes + self.range_bytes + self.prefetched_bytes
    }
}

/// A cache of a node: the page cache of the system, or the cache of a source.
#[derive(Clone, Copy, Debug)]
pub struct CacheSize {
    pub line: u64,
    pub bytes: u64,
}

/// Cached lines, by file and number.
struct Cache {
    line: u64,
    lines: Lru<(u64, u64), ()>,
}

/// The storage as the ranks of one node see it.
pub struct Device {
    cache: Option<Cache>,
    /// The maximum number of ranges of one call that are read at the same time.
    concurrent_ranges: u64,
    pub traffic: Traffic,
}

impl Device {
    pub fn new(cache: Option<CacheSize>, concurrent_ranges: u64) -> Self {
        let cache = cache.map(|CacheSize { line, bytes }| Cache { line, lines: Lru::new((bytes / line) as usize) });
        Self { cache, concurrent_ranges, traffic: Traffic::default() }
    }

    pub fn small(&mut self, file: u64, bytes: Range<u64>) {
        for missing in self.missing(file, bytes) {
            self.traffic.small += 1;
            self.traffic.small_bytes += missing;
            self.traffic.waits += 1;
        }
    }

    pub fn ranges(&mut self, file: u64, ranges: &[Range<u64>]) {
        let missing: Vec<u64> = ranges.iter().flat_map(|bytes| self.missing(file, bytes.clone())).collect();
        let count = missing.len() as u64;
        self.traffic.rounds += u64::from(count > 0);
        self.traffic.ranges += count;
        self.traffic.range_bytes += missing.iter().sum::<u64>();
        self.traffic.waits += count.div_ceil(self.concurrent_ranges);
    }

    /// Reads bytes into the cache, with requests of at most `max_bytes` bytes.
    pub fn prefetch(&mut self, file: u64, bytes: Range<u64>, max_bytes: u64) {
        for missing in self.missing(file, bytes) {
            self.traffic.prefetched += missing.div_ceil(max_bytes);
            self.traffic.prefetched_bytes += missing;
        }
    }

    /// Returns the lengths of the missing stretches, and adds them to the cache.
    fn missing(&mut self, file: u64, bytes: Range<u64>) -> Vec<u64> {
        let Some(Cache { line, lines }) = &mut self.cache else { return vec![bytes.end - bytes.start] };
        let mut runs = Vec::new();
        let mut is_in_run = false;
        for at in bytes.start / *line..bytes.end.div_ceil(*line) {
            let is_new = lines.touch((file, at)).1;
            match runs.last_mut() {
                Some(run) if is_new && is_in_run => *run += *line,
                _ if is_new => runs.push(*line),
                _ => {}
            }
            is_in_run = is_new;
        }
        runs
    }
}
