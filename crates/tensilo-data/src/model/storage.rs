//! Kinds of storage in the model, and the time that reads take on them.

use crate::order::WindowSizes;
use tensilo::source::CoalesceConfig;

/// Storage, and how a loader reads it.
///
/// The constants have the numbers of common storage. Change them to yours:
///
/// ```
/// use tensilo_data::model::{Latency, Storage};
///
/// let latency = Latency { median_seconds: 0.1, p99_seconds: 0.3 };
/// let storage = Storage { latency, ..Storage::OBJECTS };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Storage {
    /// The name.
    pub name: &'static str,
    /// The time from a request to its first byte.
    pub latency: Latency,
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
    /// The number of requests without bytes that open a file, such as a request for the version of
    /// an object whose bytes may be cached.
    pub opening_requests: u64,
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

/// The time from a request to its first byte, as a log-normal distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// Half of all requests take at most this time.
    pub median_seconds: f64,
    /// 99 of 100 requests take at most this time. If it is not longer than the median, all requests
    /// take the same time.
    pub p99_seconds: f64,
}

/// The 99th percentile of the normal distribution.
const NORMAL_P99: f64 = 2.326;

impl Latency {
    /// The latency if all requests take the same time.
    pub const fn constant(seconds: f64) -> Self {
        Self { median_seconds: seconds, p99_seconds: seconds }
    }

    pub(super) fn is_constant(&self) -> bool {
        self.p99_seconds <= self.median_seconds
    }

    /// Returns a quantile of the longest latency of a number of requests, in seconds. `share` is
    /// above 0 and below 1.
    pub(super) fn longest(&self, requests: f64, share: f64) -> f64 {
        if self.is_constant() {
            return self.median_seconds;
        }
        // the longest is at most x with the probability that all of them are
        let above = -(share.ln() / requests).exp_m1();
        let sigma = (self.p99_seconds / self.median_seconds).ln() / NORMAL_P99;
        self.median_seconds * (sigma * normal_quantile_above(above)).exp()
    }
}

/// Returns the number that a normally distributed one exceeds with probability `p`. The error is
/// below 5e-4 (Abramowitz and Stegun 1964, 26.2.23).
fn normal_quantile_above(p: f64) -> f64 {
    let t = (-2.0 * p.min(1.0 - p).max(f64::MIN_POSITIVE).ln()).sqrt();
    let numerator = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let denominator = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    let quantile = t - numerator / denominator;
    if p > 0.5 { -quantile } else { quantile }
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
        latency: Latency::constant(0.02),
        request_bandwidth: 85e6,
        node_bandwidth: 3.1e9,
        node_requests: 10_000.0,
        total_requests: 16.0 * 5500.0,
        io_depth: 4,
        coalesce: CoalesceConfig::OBJECT_STORE,
        max_open_files: 4096,
        opening_requests: 0,
        small_read_bytes: Some(64 << 10),
        reads_files_together: true,
        prefetches_runs: true,
        cache: None,
        run_bytes: WindowSizes::OBJECT_RUN_BYTES,
    };

    /// The same, with the disk cache of its default size.
    pub const CACHED_OBJECTS: Self = Self {
        name: "object store, cache of 16 GiB",
        cache: Some(CacheSize { line_bytes: 256 << 10, bytes: 16 << 30 }),
        opening_requests: 1,
        ..Self::OBJECTS
    };

    /// A local NVMe disk, read with io_uring through the page cache.
    pub const NVME: Self = Self {
        name: "NVMe",
        latency: Latency::constant(80e-6),
        request_bandwidth: 3e9,
        node_bandwidth: 3e9,
        node_requests: 800_000.0, // 64 at a time
        total_requests: f64::INFINITY,
        io_depth: 4,
        coalesce: IO_URING,
        max_open_files: 256,
        opening_requests: 0,
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
        latency: Latency::constant(1e-3),
        request_bandwidth: 1e9,
        node_bandwidth: 2e9,
        node_requests: 50_000.0,
        io_depth: 16,
        coalesce: CoalesceConfig::NETWORK_FILE,
        ..Self::NVME
    };

    /// All of them.
    pub const ALL: [Self; 4] = [Self::OBJECTS, Self::CACHED_OBJECTS, Self::NVME, Self::PARALLEL];

    /// Returns how many batches a rank requests before it takes them (`LoaderOptions::prefetch`).
    pub(super) fn prefetch(&self) -> u32 {
        self.io_depth.saturating_mul(2)
    }

    /// Returns the time of a request for this many bytes, in seconds.
    fn request_seconds(&self, bytes: f64) -> f64 {
        self.latency.median_seconds + bytes / self.request_bandwidth
    }

    /// Returns the share of the bandwidth of one request that requests of this many bytes reach.
    pub fn share_of_bandwidth(&self, bytes: f64) -> f64 {
        bytes / self.request_bandwidth / self.request_seconds(bytes)
    }

    /// Returns the number of requests of this many bytes that must be in flight to use the
    /// bandwidth of a machine (Little 1961).
    pub fn requests_to_fill(&self, bytes: f64) -> f64 {
        self.node_bandwidth / bytes * self.request_seconds(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_have_the_given_percentiles() {
        let latency = Latency { median_seconds: 0.02, p99_seconds: 0.4 };
        for (requests, share, expected) in [(1.0, 0.5, 0.02), (1.0, 0.99, 0.4), (1.0, 0.01, 0.001), (100.0, 0.366, 0.4)]
        {
            let found = latency.longest(requests, share);
            assert!((found / expected - 1.0).abs() < 0.01, "{requests}, {share}: {found} instead of {expected}");
        }
        assert_eq!(Latency::constant(0.02).longest(1e6, 0.999), 0.02);
    }
}
