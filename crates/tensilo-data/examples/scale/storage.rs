//! Kinds of storage, and the time that reads take on them.

use crate::device::{CacheSize, Device};
use crate::rank_reads::Reading;
use tensilo_data::WindowSizes;

/// Storage, and how the loader reads it.
#[derive(Clone, Copy, Debug)]
pub struct Storage {
    pub name: &'static str,
    /// Seconds from a request to its first byte.
    pub latency: f64,
    /// Bytes per second of one request, and of all requests of a node.
    pub stream: f64,
    pub node: f64,
    /// Requests per second of a node, and of all nodes together.
    pub requests: f64,
    pub shared_requests: f64,
    /// The maximum number of ranges of one call that are read at the same time.
    pub concurrent_ranges: u64,
    /// `LoaderOptions::io_depth` of each rank.
    pub io_depth: u64,
    pub reading: Reading,
    pub cache: Option<CacheSize>,
    /// Whether runs of a windowed order are prefetched into the cache.
    pub prefetches: bool,
    /// The default size of a run.
    pub run_bytes: u64,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Object storage. Amazon S3 documents 85 MB/s for each request, and 5,500 requests per second for
/// each prefix. The rest is assumed: 16 prefixes, nodes with 25 Gbit/s and 10,000 requests per
/// second.
pub const OBJECTS: Storage = Storage {
    name: "objects, each read a request",
    latency: 0.02,
    stream: 85e6,
    node: 3.1e9,
    requests: 10_000.0,
    shared_requests: 16.0 * 5500.0,
    concurrent_ranges: 16,
    io_depth: 32,
    reading: Reading { gap: MIB, open_files: 256, line: None },
    cache: None,
    prefetches: false,
    run_bytes: WindowSizes::OBJECT_RUN_BYTES,
};

/// A source that reads small structures in lines, and keeps more files open.
pub const OBJECTS_IN_LINES: Storage = Storage {
    name: "objects, small reads in lines",
    reading: Reading { gap: MIB, open_files: 4096, line: Some(64 * KIB) },
    ..OBJECTS
};

/// A source that also caches the bytes it has read, and prefetches runs.
pub const OBJECTS_CACHED: Storage = Storage {
    name: "objects, cache of 16 GiB",
    cache: Some(CacheSize { line: 64 * KIB, bytes: 16 * GIB }),
    prefetches: true,
    ..OBJECTS_IN_LINES
};

/// A local disk, read with io_uring through the page cache.
pub const NVME: Storage = Storage {
    name: "NVMe",
    latency: 80e-6,
    stream: 3e9,
    node: 3e9,
    requests: 64.0 / 80e-6, // a depth of 64
    shared_requests: f64::INFINITY,
    concurrent_ranges: 64,
    io_depth: 4,
    reading: Reading { gap: 4 * KIB, open_files: 256, line: None },
    cache: Some(CacheSize { line: 4 * KIB, bytes: 64 * GIB }),
    prefetches: true,
    run_bytes: WindowSizes::FILE_RUN_BYTES,
};

/// A parallel file system, read with `pread`. The requests per second of a client are assumed.
pub const PARALLEL: Storage = Storage {
    name: "parallel file system",
    latency: 1e-3,
    stream: 1e9,
    node: 2e9,
    requests: 50_000.0,
    concurrent_ranges: 1,
    io_depth: 16,
    ..NVME
};

pub const ALL: [Storage; 5] = [OBJECTS, OBJECTS_IN_LINES, OBJECTS_CACHED, NVME, PARALLEL];

impl Storage {
    pub fn device(&self) -> Device {
        Device::new(self.cache, self.concurrent_ranges)
    }

    /// Returns the seconds that one thread needs for reads.
    pub fn seconds(&self, waits: f64, bytes: f64) -> f64 {
        waits * self.latency + bytes / self.stream
    }

    /// Returns the share of a stream's bandwidth that requests of this many bytes reach.
    pub fn share_of_stream(&self, bytes: f64) -> f64 {
        bytes / self.stream / (self.latency + bytes / self.stream)
    }

    /// Returns the number of requests of this many bytes that must be in flight to fill the
    /// bandwidth of a node (Little 1961).
    pub fn requests_to_fill(&self, bytes: f64) -> f64 {
        self.node / bytes * (self.latency + bytes / self.stream)
    }
}
