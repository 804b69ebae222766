//! Kinds of storage in the model, and the time that reads take on them.

use crate::order::WindowSizes;
use tensilo::source::CoalesceConfig;

/// Storage, and how a loader reads it.
///
/// The constants have the numbers of common storage. Change them to yours:
///
/// ```
/// use tensilo_data::model::Storage;
///
/// let storage = Storage { latency_seconds: 0.1, ..Storage::OBJECTS };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Storage {
    /// The name.
    pub name: &'static str,
    /// The time from a request to its first byte.
    pub latency_seconds: f64,
    /// The bandwidth of one request, in bytes per second.
    pub request_bandwidth: f64,
    /// The bandwidth of a machine, in bytes per second.
    pub node_bandwidth: f64,
    /// The requests that a machine can send in a second.
    pub node_requests: f64,
    /// The requests that the storage answers in a second, from all machines together.
    pub total_requests: f64,
    /// The number of batches that a rank fetches at the same time (`LoaderOptions::io_depth`).
    pub io_depth: u32,
    /// How ranges become requests.
    pub coalesce: CoalesceConfig,
    /// The maximum number of open files of a rank (`DatasetOptions::max_open_files`).
    pub max_open_files: usize,
    /// If set, small structures are read in aligned lines of this many bytes, which are cached
    /// while the file is open.
    pub small_read_bytes: Option<u64>,
    /// Whether all files of a batch are read together, with one wait for each kind of structure.
    /// Otherwise, up to 16 threads of a rank each read one file after the other.
    pub reads_files_together: bool,
    /// Whether the runs of a windowed order are prefetched (`LoaderOptions::read_ahead`).
    pub prefetches_runs: bool,
    /// The cache that the ranks of a machine share: the page cache, or the disk cache of an object
    /// store.
    pub cache: Option<CacheSize>,
    /// The default size of a run in stored bytes.
    pub run_bytes: u64,
}

/// The size of a cache in bytes, and of its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSize {
    /// The size of a line: a page, or an entry of the disk cache.
    pub line_bytes: u64,
    /// The size of all lines together.
    pub bytes: u64,
}

/// How an io_uring coalesces ranges.
const IO_URING: CoalesceConfig = {
    let mut config = CoalesceConfig::LOCAL_FILE;
    config.max_in_flight = 64;
    config
};

impl Storage {
    /// Object storage. Amazon S3 documents 85 MB/s for each request, and 5,500 requests per second
    /// for each prefix. The rest is assumed: a latency of 20 ms, 16 prefixes, machines with 25
    /// Gbit/s and 10,000 requests per second.
    pub const OBJECTS: Self = Self {
        name: "object store",
        latency_seconds: 0.02,
        request_bandwidth: 85e6,
        node_bandwidth: 3.1e9,
        node_requests: 10_000.0,
        total_requests: 16.0 * 5500.0,
        io_depth: 4,
        coalesce: CoalesceConfig::OBJECT_STORE,
        max_open_files: 4096,
        small_read_bytes: Some(64 << 10),
        reads_files_together: true,
        prefetches_runs: true,
        cache: None,
        run_bytes: WindowSizes::OBJECT_RUN_BYTES,
    };

    /// The same, with the disk cache of its default size.
    pub const CACHED_OBJECTS: Self = Self {
        name: "object store, cache of 16 GiB",
        cache: Some(CacheSize { line_bytes: 1 << 20, bytes: 16 << 30 }),
        ..Self::OBJECTS
    };

    /// A local NVMe disk, read with io_uring through the page cache.
    pub const NVME: Self = Self {
        name: "NVMe",
        latency_seconds: 80e-6,
        request_bandwidth: 3e9,
        node_bandwidth: 3e9,
        node_requests: 800_000.0, // 64 at a time
        total_requests: f64::INFINITY,
        io_depth: 4,
        coalesce: IO_URING,
        max_open_files: 256,
        small_read_bytes: None,
        reads_files_together: false,
        prefetches_runs: true,
        cache: Some(CacheSize { line_bytes: 4 << 10, bytes: 64 << 30 }),
        run_bytes: WindowSizes::FILE_RUN_BYTES,
    };

    /// A parallel file system, read with `pread`. Its latency, bandwidth and requests per second
    /// are assumed.
    pub const PARALLEL: Self = Self {
        name: "parallel file system",
        latency_seconds: 1e-3,
        request_bandwidth: 1e9,
        node_bandwidth: 2e9,
        node_requests: 50_000.0,
        io_depth: 16,
        coalesce: CoalesceConfig::NETWORK_FILE,
        ..Self::NVME
    };

    /// All of them.
    pub const ALL: [Self; 4] = [Self::OBJECTS, Self::CACHED_OBJECTS, Self::NVME, Self::PARALLEL];

    /// Returns the time that one thread needs for waits and bytes, in seconds.
    pub(super) fn seconds(&self, waits: f64, bytes: f64) -> f64 {
        waits * self.latency_seconds + bytes / self.request_bandwidth
    }

    /// Returns the share of the bandwidth of one request that requests of this many bytes reach.
    pub fn share_of_bandwidth(&self, bytes: f64) -> f64 {
        bytes / self.request_bandwidth / self.seconds(1.0, bytes)
    }

    /// Returns the number of requests of this many bytes that must be in flight to use the
    /// bandwidth of a machine (Little 1961).
    pub fn requests_to_fill(&self, bytes: f64) -> f64 {
        self.node_bandwidth / bytes * self.seconds(1.0, bytes)
    }
}
