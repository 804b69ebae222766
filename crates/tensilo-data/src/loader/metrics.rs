//! What a loader has done, and where its time went.
//!
//! Threads add to relaxed atomic counters, so counting takes no lock. [`LoaderMetrics`] is a
//! snapshot of the counters. Its verdict compares the time that the consumer waited with the time
//! that each stage took, and says in one sentence what to change.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What an iterator of batches has done so far, and where its time went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoaderMetrics {
    /// The number of batches that the consumer has taken.
    pub batches: u64,
    /// The number of samples in these batches.
    pub samples: u64,
    /// The size of the values in these batches, in bytes.
    pub value_bytes: u64,
    /// The number of bytes read from files; 0 if the files are mapped.
    pub read_bytes: u64,
    /// The number of damaged samples that were replaced by others.
    pub substitutes: u64,
    /// The time since the iterator was created.
    pub elapsed: Duration,
    /// The time that the consumer waited for batches other than the first.
    pub waited: Duration,
    /// The time from the consumer's first request to its first batch.
    pub first_batch: Duration,
    /// The time spent planning, summed over all threads.
    pub planning: Duration,
    /// The time spent fetching, summed over all threads.
    pub fetching: Duration,
    /// The time spent decoding, summed over all threads.
    pub decoding: Duration,
    /// The number of bytes copied to a GPU.
    pub copied_bytes: u64,
    /// The time that the GPU spent copying.
    pub copying: Duration,
    /// The time that the GPU spent decoding.
    pub device_decoding: Duration,
    /// The time that the consumer waited for the GPU, including the wait for the first batch.
    pub device_waited: Duration,
    /// The number of further batches that were ready each time the consumer took a batch, summed
    /// over all batches taken.
    pub ready: u64,
    /// The maximum number of threads that decode concurrently
    /// ([`LoaderOptions::decode_threads`](crate::LoaderOptions::decode_threads)).
    pub decode_threads: u64,
    /// The maximum number of batches that are read concurrently
    /// ([`LoaderOptions::io_depth`](crate::LoaderOptions::io_depth)).
    pub io_depth: u64,
}

impl LoaderMetrics {
    /// Returns the share of the time, from 0 to 1, that the consumer spent waiting for batches and
    /// for the GPU.
    pub fn waiting_share(&self) -> f64 {
        let elapsed = self.elapsed.saturating_sub(self.first_batch).as_secs_f64();
        let waited = self.waited.saturating_add(self.device_waited).as_secs_f64();
        if elapsed > 0.0 { (waited / elapsed).min(1.0) } else { 0.0 }
    }

    /// Returns advice in one sentence. Note that a loop that only takes batches always waits for
    /// them.
    pub fn verdict(&self) -> String {
        let share = self.waiting_share() * 100.0;
        if share < 5.0 {
            return format!("the consumer waited {share:.0} % of the time: the data is not the bottleneck");
        }
        let (fetching, decoding) = (self.fetching.as_secs_f64(), self.decoding.as_secs_f64());
        let advice = match fetching > decoding {
            _ if self.device_waited > self.waited => match self.copying > self.device_decoding {
                true => "mostly for copies to the GPU: use fewer columns, or keep them on the GPU",
                false => "mostly for the GPU to decode: use a faster profile, or fewer columns",
            },
            true => "and fetching takes longer than decoding: use a higher I/O depth, or faster storage",
            false if self.decode_threads >= cpu_count() => {
                "and decoding on all CPUs takes longer than fetching: use a faster profile, or fewer columns"
            }
            false => "and decoding takes longer than fetching: use more decode threads, or a faster profile",
        };
        format!("the consumer waited {share:.0} % of the time, {advice}")
    }
}

fn cpu_count() -> u64 {
    thread::available_parallelism().map_or(1, |count| count.get() as u64) // exact
}

impl fmt::Display for LoaderMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        let rate = if seconds > 0.0 { self.samples as f64 / seconds } else { 0.0 };
        write!(f, "{} batches, {rate:.0} samples/s; {}", self.batches, self.verdict())
    }
}

/// The counters behind the metrics.
#[derive(Debug)]
pub(crate) struct Counters {
    begun: Instant,
    counts: [AtomicU64; COUNTS],
}

const COUNTS: usize = 15;

/// A counter. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Count {
    Batches,
    Samples,
    ValueBytes,
    ReadBytes,
    Substitutes,
    Waited,
    FirstBatch,
    Planning,
    Fetching,
    Decoding,
    CopiedBytes,
    Copying,
    DeviceDecoding,
    DeviceWaited,
    Ready,
}

impl Counters {
    pub(super) fn new() -> Self {
        Self { begun: Instant::now(), counts: Default::default() }
    }

    pub(super) fn add(&self, count: Count, number: u64) {
        if let Some(counter) = self.counts.get(count as usize) {
            counter.fetch_add(number, Ordering::Relaxed);
        }
    }

    /// Runs `work`, and adds its duration to a counter.
    pub(super) fn time<R>(&self, count: Count, work: impl FnOnce() -> R) -> R {
        let begun = Instant::now();
        let result = work();
        self.add_time(count, begun.elapsed());
        result
    }

    pub(super) fn add_time(&self, count: Count, time: Duration) {
        self.add(count, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(super) fn metrics(&self, decode_threads: usize, io_depth: usize) -> LoaderMetrics {
        let of = |count: Count| self.counts.get(count as usize).map_or(0, |count| count.load(Ordering::Relaxed));
        let time = |count: Count| Duration::from_nanos(of(count));
        LoaderMetrics {
            batches: of(Count::Batches),
            samples: of(Count::Samples),
            value_bytes: of(Count::ValueBytes),
            read_bytes: of(Count::ReadBytes),
            substitutes: of(Count::Substitutes),
            elapsed: self.begun.elapsed(),
            waited: time(Count::Waited),
            first_batch: time(Count::FirstBatch),
            planning: time(Count::Planning),
            fetching: time(Count::Fetching),
            decoding: time(Count::Decoding),
            copied_bytes: of(Count::CopiedBytes),
            copying: time(Count::Copying),
            device_decoding: time(Count::DeviceDecoding),
            device_waited: time(Count::DeviceWaited),
            ready: of(Count::Ready),
            decode_threads: decode_threads as u64, // exact
            io_depth: io_depth as u64,             // exact
        }
    }
}
