//! A model of training at scale: what a job reads, waits for and keeps in memory.
//!
//! Whether a job on 64 machines will wait for its data is known only when it runs, and then it is
//! expensive. But nearly everything that decides it is arithmetic: the order and the division among
//! ranks are computed, files are described by a few numbers, and storage by its latency and
//! bandwidth. So [`predict`] runs the loader's decisions without any data:
//!
//! * **Which samples a rank takes** in a step comes from [`EpochOrder`] and [`Division`], as in a
//!   job.
//! * **Where a sample is** is division: all files are taken to be equal, and so are the chunks of a
//!   file ([`ColumnModel`]).
//! * **What a rank reads** follows the rules of the loader. A file that is not open takes the reads
//!   that opening takes. A chunk takes its index page, or its entry if the page was read before. A
//!   chunk is read whole if more than three quarters of it are requested, and otherwise block by
//!   block, after its block index. Ranges are coalesced across gaps. The least recently used file
//!   is closed. In windowed order, whole runs are prefetched instead.
//! * **What a machine reads** are the reads of its ranks that its cache does not answer.
//! * **The time of a step** is the longest of four: the wait for the slowest rank, which is
//!   simulated step by step (`waits.rs`); the bytes of a machine over its bandwidth; its requests
//!   over its limit; and the requests of all machines over theirs.
//!
//! One machine is simulated, in a sample of the steps of the first epoch. Not modelled are
//! decoding, retries, other jobs, and the read-ahead of the operating system.
//!
//! `examples/scale` compares the model with real datasets, whose reads it counts.
//! `tensilo plan` prints it for a dataset.

mod cache;
mod column;
mod reads;
mod storage;
mod waits;

pub use column::{ColumnModel, OpeningRead};
pub use reads::Traffic;
pub use storage::{CacheSize, Latency, Storage};

use crate::error::{DataError, Result};
use crate::order::{Division, EpochOrder, LastBatch, Order, Runs, WindowSizes};
use reads::{Device, RankReads};
use std::ops::Range;
use std::time::Duration;
use waits::{BatchRequests, JobRequests, WindowRequests};

/// A training job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    /// The number of samples in a batch of one rank.
    pub batch_size: u32,
    /// The number of machines.
    pub nodes: u32,
    /// The number of ranks on each machine.
    pub node_ranks: u32,
    /// The duration of a step if its data is in memory.
    pub step: Duration,
}

impl Job {
    /// Returns how a step is divided among the ranks. Fails if a step has no samples, or more than
    /// 2^32.
    pub fn division(&self) -> Result<Division> {
        let world_size = self.nodes.saturating_mul(self.node_ranks);
        Division::new(self.batch_size, world_size, LastBatch::Drop)
    }
}

/// What a job reads, waits for and keeps in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prediction {
    /// The number of steps of an epoch.
    pub steps: u64,
    /// The requests of a machine in an epoch.
    pub node_requests: f64,
    /// The bytes that a machine reads in an epoch.
    pub node_bytes: f64,
    /// The bytes that all machines read in an epoch, as a multiple of the stored bytes of the
    /// samples that they take.
    pub amplification: f64,
    /// The files that a rank opens in a step.
    pub opened_files: f64,
    /// The responses for which a batch waits, one after the other.
    pub waits: f64,
    /// The memory or cache of a machine for prefetched runs, in bytes: two or more windows of each
    /// stream from which its ranks take samples.
    pub window_bytes: f64,
    /// The time in which the storage delivers a step, in seconds, if the step itself takes no time.
    pub step_seconds: f64,
    /// The share of the time for which GPUs wait for data, from 0 to 1.
    pub waiting_share: f64,
}

/// The minimum number of counted steps, if an epoch has as many.
const MIN_STEPS: u64 = 64;
/// The maximum number of samples of a machine in the counted steps, except that a whole window is
/// counted.
const MAX_SAMPLES: u64 = 1 << 19;

/// Returns the steps that are counted; the steps before them fill the caches. In windowed order,
/// most runs are read when a window starts. So whole windows are counted, from the middle of one to
/// the middle of another.
fn sampled_steps(order: Order, division: Division, node_ranks: u32, n: u64) -> Range<u64> {
    let steps = division.steps(n, 0);
    let node_samples = u64::from(division.batch_size()).saturating_mul(node_ranks.into()).max(1);
    let window = match order {
        Order::Windowed(sizes) => {
            let samples = u64::from(sizes.run_samples()).saturating_mul(sizes.window_runs().into());
            samples.saturating_mul(sizes.streams().into()).div_ceil(division.step_samples()).max(1)
        }
        _ => 1,
    };
    let windows = (MAX_SAMPLES / node_samples).max(MIN_STEPS).div_ceil(window);
    let counted = window.saturating_mul(windows);
    let warm_up = counted.saturating_add(window / 2);
    match warm_up.checked_add(counted) {
        Some(end) if end <= steps => warm_up..end,
        _ => 0..steps, // few enough to count all of them
    }
}

/// Predicts the first epoch of a job that reads these columns in an order from a storage.
///
/// Fails if a step has no samples, or if there are fewer samples than a step takes. Cost: simulates
/// some ten million samples at most, in a few seconds.
pub fn predict(columns: &[ColumnModel], order: Order, job: &Job, storage: &Storage) -> Result<Prediction> {
    let division = job.division()?;
    let n = columns.first().map_or(0, ColumnModel::sample_count);
    if n < division.step_samples() {
        let (samples, ranks) = (division.step_samples(), division.world_size());
        return Err(DataError::BadArgument(format!(
            "a step of {ranks} ranks takes {samples} samples, but the dataset has only {n}; choose smaller batches or \
             fewer ranks"
        )));
    }
    let sampled = sampled_steps(order, division, job.node_ranks, n);
    let mut total = Traffic::default();
    let mut waits = 0_u64;
    let mut stored = 0.0;
    for column in columns {
        let traffic = simulate(column, order, job, storage, sampled.clone())?;
        waits = waits.max(traffic.waits); // columns are read together
        total = total.plus(&traffic);
        stored += column.stored_bytes() as f64;
    }
    let steps = division.steps(n, 0);
    let sample_bytes = stored / n.max(1) as f64;
    let ranks = f64::from(job.node_ranks);
    let per_step = |number: u64| number as f64 / (sampled.end - sampled.start) as f64;
    let per_batch = |number: u64| per_step(number) / ranks;
    let (requests, bytes) = (per_step(total.requests()), per_step(total.bytes()));
    let windows = RankWindows::of(order, division, storage, n);
    let waits = per_batch(waits);
    let job_requests = JobRequests {
        ranks: division.world_size(),
        batch: BatchRequests {
            trips: waits,
            trip_requests: per_batch(total.requests() - total.prefetches) / waits.max(1.0),
            bytes: per_batch(total.small_bytes + total.range_bytes),
        },
        window: windows.map(|windows| windows.requests(&total, |number| per_step(number) * f64::from(job.nodes))),
    };
    let min_seconds = (bytes / storage.node_bandwidth)
        .max(requests / storage.node_requests)
        .max(requests * f64::from(job.nodes) / storage.total_requests);
    let seconds = |step: f64| waits::step_seconds(&job_requests, storage, step).max(min_seconds);
    let step = job.step.as_secs_f64();
    Ok(Prediction {
        steps,
        node_requests: requests * steps as f64,
        node_bytes: bytes * steps as f64,
        amplification: bytes / ranks / f64::from(job.batch_size) / sample_bytes,
        opened_files: per_batch(total.opened_files),
        waits,
        window_bytes: windows.map_or(0.0, |windows| windows.node_samples(job)) * sample_bytes,
        step_seconds: seconds(0.0),
        waiting_share: (1.0 - step / seconds(step)).max(0.0),
    })
}

/// The windows that a rank prefetches.
#[derive(Clone, Copy)]
struct RankWindows {
    sizes: WindowSizes,
    division: Division,
    /// The number of windows of each stream, including the current one.
    windows: u64,
    opening_requests: u64,
}

impl RankWindows {
    /// Returns `None` if the runs of this order are not prefetched.
    fn of(order: Order, division: Division, storage: &Storage, n: u64) -> Option<Self> {
        let Order::Windowed(sizes) = order else { return None };
        let is_prefetched = storage.prefetches_runs && order.reads_whole_runs(division.world_size());
        let windows = Runs::of(&EpochOrder::new(order, n, 0, 0), division, 0)?.prefetched_windows();
        let opening_requests = storage.opening_requests;
        is_prefetched.then_some(Self { sizes, division, windows, opening_requests })
    }

    fn window_samples(&self) -> u64 {
        u64::from(self.sizes.window_runs()).saturating_mul(self.sizes.run_samples().into())
    }

    /// Returns the number of runs that a rank has in memory, at most.
    fn run_count(&self) -> u64 {
        let streams = self.sizes.streams().div_ceil(self.division.world_size()).saturating_add(2);
        self.windows.saturating_mul(streams.into()).saturating_mul(self.sizes.window_runs().into())
    }

    /// Returns the number of samples of the runs that the ranks of a machine have in memory. Ranks
    /// that share a stream each have its runs.
    fn node_samples(&self, job: &Job) -> f64 {
        let rank_streams = self.sizes.streams().div_ceil(self.division.world_size());
        self.windows as f64 * f64::from(rank_streams) * f64::from(job.node_ranks) * self.window_samples() as f64
    }

    /// Returns what the job requests for a window of each stream.
    fn requests(&self, node: &Traffic, job_per_step: impl Fn(u64) -> f64) -> WindowRequests {
        let samples = self.window_samples().saturating_mul(self.sizes.streams().into());
        let window_steps = samples as f64 / self.division.step_samples() as f64;
        let steps = window_steps.max(1.0);
        let of_a_run = |number: u64| number as f64 / node.prefetches.max(1) as f64;
        WindowRequests {
            steps,
            run_steps: window_steps / f64::from(self.sizes.window_runs()),
            window_runs: self.sizes.window_runs(),
            more_steps: self.windows.saturating_sub(2) as f64 * window_steps,
            requests: job_per_step(node.prefetches) * steps,
            request_bytes: of_a_run(node.prefetched_bytes),
            // opens the file, and reads its index
            trips: 1.0 + of_a_run(node.small_reads).min(2.0 + self.opening_requests as f64),
        }
    }
}

/// Returns what one machine reads of a column in these steps of an epoch. Earlier steps are also
/// simulated, to fill its caches.
///
/// Fails if a step has no samples. Cost: 0.1 to 1 us for each sample.
pub fn simulate(
    column: &ColumnModel,
    order: Order,
    job: &Job,
    storage: &Storage,
    steps: Range<u64>,
) -> Result<Traffic> {
    let n = column.sample_count();
    let division = job.division()?;
    let epoch = EpochOrder::new(order, n, 1, 0);
    let windows = RankWindows::of(order, division, storage, n);
    let max_runs = usize::try_from(windows.map_or(1, |windows| windows.run_count())).unwrap_or(usize::MAX);
    let mut ranks: Vec<RankReads<'_>> =
        (0..job.node_ranks).map(|_| RankReads::new(column, storage, max_runs)).collect();
    let mut device = Device::new(storage, column.file_bytes());
    let (mut samples, mut before) = (Vec::new(), Traffic::default());
    for step in 0..steps.end {
        if step == steps.start {
            before = device.traffic;
        }
        let start = step.saturating_mul(division.step_samples());
        for (rank, reads) in (0..).zip(&mut ranks) {
            division.positions(&epoch, start, rank, &mut samples)?;
            epoch.replace_with_samples(&mut samples)?;
            samples.sort_unstable();
            match windows {
                Some(windows) => reads.prefetch_runs(&samples, windows.sizes.run_samples().into(), &mut device),
                None => reads.read_batch(&samples, &mut device),
            }
        }
    }
    Ok(device.traffic.since(&before))
}
