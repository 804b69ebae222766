//! An epoch of a job, extrapolated from some of its steps.

use crate::dataset_model::DatasetModel;
use crate::device::{Device, Traffic};
use crate::lru::Lru;
use crate::rank_reads::RankReads;
use crate::storage::Storage;
use std::collections::BTreeSet;
use std::ops::Range;
use tensilo_data::{DataError, Division, EpochOrder, LastBatch, Order};

/// A training job. One node is modelled: ranks `0..node_ranks`.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub batch: u32,
    pub world_size: u32,
    pub node_ranks: u32,
    /// The seconds that a step takes if its data is in memory.
    pub step_seconds: f64,
}

/// The maximum number of ranks of a stream whose runs are prefetched (`ReadAhead::Auto`).
const MAX_STREAM_RANKS: u32 = 8;

/// The number of files that one thread opens for a batch before others help.
const MAX_SERIAL_FILES: u64 = 4;
/// The number of threads that open files then.
const THREADS: u64 = 16;

/// Returns the waits of a batch if threads share all but the first `serial_waits`. The shared ones
/// belong to `files` files, and one thread opens each.
fn on_threads(waits: u64, serial_waits: u64, files: u64) -> u64 {
    let serial_waits = serial_waits.min(waits);
    serial_waits + (waits - serial_waits).div_ceil(THREADS.min(files).max(1))
}

/// Returns how many threads open files, if a batch opens `opened` of them.
pub fn opening_threads(opened: f64) -> f64 {
    if opened >= MAX_SERIAL_FILES as f64 { THREADS as f64 } else { 1.0 }
}

/// Returns how often a batch waits for pages of the manifest.
pub fn page_waits(pages: u64) -> u64 {
    on_threads(pages, MAX_SERIAL_FILES, pages)
}

/// The reads of a node in some steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Steps {
    pub steps: u64,
    pub traffic: Traffic,
    pub opened: u64,
}

/// A rank, with its reads and prefetched runs.
struct Rank<'d> {
    reads: RankReads<'d>,
    prefetched: Lru<u64, ()>,
}

/// The steps of one node.
pub struct Node<'d> {
    order: EpochOrder,
    run: Option<u64>,
    division: Division,
    samples: u64,
    ranks: Vec<Rank<'d>>,
    device: Device,
}

impl<'d> Node<'d> {
    /// Starts an epoch.
    pub fn new(dataset: &'d DatasetModel, job: &Job, mode: Order, storage: &Storage) -> Result<Self, DataError> {
        let (run, window_runs) = match mode {
            Order::Windowed(sizes) => {
                let prefetches = storage.prefetches && job.world_size <= MAX_STREAM_RANKS * sizes.streams();
                // the windows of the streams of a rank, which may share two of them with its neighbors
                let streams = sizes.streams().div_ceil(job.world_size) + 2;
                (Some(u64::from(sizes.run())).filter(|_| prefetches), streams * sizes.window())
            }
            _ => (None, 1),
        };
        let rank = || Rank {
            reads: RankReads::new(dataset, storage.reading),
            prefetched: Lru::new(2 * window_runs as usize), // runs of these windows and of the previous ones
        };
        Ok(Self {
            order: EpochOrder::new(mode, dataset.samples(), 1, 0),
            run,
            division: Division::new(job.batch, job.world_size, LastBatch::Drop)?,
            samples: dataset.samples(),
            ranks: (0..job.node_ranks).map(|_| rank()).collect(),
            device: storage.device(),
        })
    }

    /// Reads the batches of some steps.
    pub fn steps(&mut self, steps: Range<u64>) -> Steps {
        let opened = |ranks: &[Rank<'_>]| ranks.iter().map(|rank| rank.reads.opened).sum::<u64>();
        let opened_before = opened(&self.ranks);
        self.device.traffic = Traffic::default();
        for step in steps.clone() {
            self.step(step);
        }
        let (traffic, opened) = (self.device.traffic, opened(&self.ranks) - opened_before);
        Steps { steps: steps.end - steps.start, traffic, opened }
    }

    fn step(&mut self, step: u64) {
        let Self { order, run, division, samples: n, ranks, device } = self;
        for (number, rank) in (0..).zip(ranks) {
            let mut samples = Vec::new();
            division.positions(order, step * division.step_samples(), number, &mut samples).expect("a batch in memory");
            order.replace_with_samples(&mut samples).expect("positions of the epoch");
            if let Some(run) = *run {
                let runs = samples.iter().map(|sample| sample / run);
                let new: BTreeSet<u64> = runs.filter(|&at| rank.prefetched.touch(at).1).collect();
                for at in new {
                    rank.reads.prefetch(at * run..((at + 1) * run).min(*n), device);
                }
            }
            let (opened, waits) = (rank.reads.opened, device.traffic.waits);
            let files = rank.reads.batch(&mut samples, device);
            if rank.reads.opened - opened >= MAX_SERIAL_FILES {
                let serial_waits = MAX_SERIAL_FILES * rank.reads.opening_reads();
                device.traffic.waits =
                    waits + on_threads(device.traffic.waits - waits, serial_waits, files - MAX_SERIAL_FILES);
            }
        }
    }
}

/// An epoch of a job.
pub struct Epoch {
    /// The requests of each rank.
    pub requests: f64,
    pub bytes: f64,
    /// The files that each rank opens in a step.
    pub opened: f64,
    /// The bytes that all nodes read, as a multiple of the stored bytes of the samples.
    pub amplification: f64,
    /// The serial waits of a batch.
    pub waits: f64,
    /// The seconds that the storage needs for a step.
    pub step_seconds: f64,
}

impl Epoch {
    /// Derives an epoch from some of its steps.
    pub fn of(steps: &Steps, dataset: &DatasetModel, job: &Job, storage: &Storage) -> Self {
        let step_samples = u64::from(job.batch) * u64::from(job.world_size);
        let epoch_steps = dataset.samples() / step_samples;
        let ranks = f64::from(job.node_ranks);
        let of_batch = |count: u64| count as f64 / steps.steps as f64 / ranks;
        let (requests, bytes) = (of_batch(steps.traffic.requests()), of_batch(steps.traffic.bytes()));
        let waits = of_batch(steps.traffic.waits);
        let waited_bytes = of_batch(steps.traffic.small_bytes + steps.traffic.range_bytes);
        let thread_seconds = storage.seconds(waits, waited_bytes) / storage.io_depth as f64;
        let stored = dataset.stored(dataset.chunk_samples) as f64 / dataset.chunk_samples as f64;
        Self {
            requests: requests * epoch_steps as f64,
            bytes: bytes * epoch_steps as f64,
            opened: of_batch(steps.opened),
            amplification: bytes / f64::from(job.batch) / stored,
            waits,
            step_seconds: thread_seconds
                .max(bytes * ranks / storage.node)
                .max(requests * ranks / storage.requests)
                .max(requests * f64::from(job.world_size) / storage.shared_requests),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank_reads::Reading;
    use crate::scenario;
    use crate::storage::{ALL, NVME, OBJECTS};
    use tensilo_data::WindowSizes;

    const ONE_RANK: Job = Job { batch: 256, world_size: 1, node_ranks: 1, step_seconds: 0.2 };

    fn modes(dataset: &DatasetModel) -> [Order; 3] {
        let sizes = dataset.window_sizes(&NVME);
        [Order::Sequential, Order::Windowed(sizes), Order::Shuffled]
    }

    #[test]
    fn sequential_reading_requests_each_byte_once() {
        let dataset = scenario::dataset();
        let mut node = Node::new(&dataset, &ONE_RANK, Order::Sequential, &OBJECTS).unwrap();
        let batches = 1000;
        let steps = node.steps(0..batches);
        let chunks = (batches * 256).div_ceil(dataset.chunk_samples);
        let stored = dataset.chunk(chunks - 1).end;
        assert_eq!(steps.opened, 1);
        // a batch is a whole number of chunks, which are adjacent except for alignment
        assert_eq!(256 % dataset.chunk_samples, 0);
        assert!(steps.traffic.range_bytes.abs_diff(stored) < stored / 1000, "{steps:?}");
        assert!(steps.traffic.ranges >= batches && steps.traffic.ranges <= chunks, "{steps:?}");
    }

    /// Returns the reads of some steps in each mode.
    fn traffic(dataset: &DatasetModel, storage: &Storage) -> [Traffic; 3] {
        modes(dataset).map(|mode| {
            let mut node = Node::new(dataset, &ONE_RANK, mode, storage).unwrap();
            node.steps(0..20);
            node.steps(20..60).traffic
        })
    }

    #[test]
    fn the_better_the_shuffle_the_more_is_read() {
        let dataset = scenario::dataset();
        for storage in ALL {
            let of_modes = traffic(&dataset, &Storage { cache: None, prefetches: false, ..storage });
            assert!(of_modes.is_sorted_by_key(|traffic| traffic.requests()), "{}: {of_modes:?}", storage.name);
        }
        // with gaps, ranges of a run are coalesced: fewer requests for more bytes
        let without_gaps = Storage { reading: Reading { gap: 0, ..OBJECTS.reading }, ..OBJECTS };
        let of_modes = traffic(&dataset, &without_gaps);
        assert!(of_modes.is_sorted_by_key(|traffic| traffic.bytes()), "{of_modes:?}");
    }

    #[test]
    fn a_cache_reads_each_run_once() {
        let dataset = scenario::dataset();
        let sizes = WindowSizes::new(1024, 256).unwrap();
        let mut node = Node::new(&dataset, &ONE_RANK, Order::Windowed(sizes), &NVME).unwrap();
        let window = u64::from(sizes.run()) * u64::from(sizes.window());
        let steps = node.steps(0..window / 256);
        let stored = dataset.stored(dataset.chunk_samples) * window / dataset.chunk_samples;
        let share = steps.traffic.prefetched_bytes as f64 / stored as f64;
        assert!((1.0..1.1).contains(&share), "{share}: {steps:?}");
        assert_eq!(steps.traffic.range_bytes, 0);
    }

    #[test]
    fn threads_share_the_waits_of_a_batch_in_many_files() {
        let dataset = scenario::dataset();
        let waits = |mode: Order| {
            let mut node = Node::new(&dataset, &ONE_RANK, mode, &OBJECTS).unwrap();
            node.steps(0..1);
            let Steps { traffic, opened, .. } = node.steps(1..2);
            (opened, traffic.small + traffic.rounds, traffic.waits)
        };
        let [sequential, _, shuffled] = modes(&dataset).map(waits);
        assert_eq!(sequential.1, sequential.2);
        // four files of six reads each, and then 16 files at a time
        let serial_waits = 4 * 6;
        assert!(
            shuffled.0 > 200 && shuffled.2 == serial_waits + (shuffled.1 - serial_waits).div_ceil(16),
            "{shuffled:?}"
        );
    }

    #[test]
    fn steps_take_as_long_as_their_scarcest_resource() {
        let dataset = scenario::dataset();
        let traffic = Traffic { ranges: 100, range_bytes: 100_000_000, waits: 100, ..Traffic::default() };
        let steps = Steps { steps: 1, traffic, opened: 0 };
        let seconds = |storage: &Storage| Epoch::of(&steps, &dataset, &ONE_RANK, storage).step_seconds;
        let threads = (100.0 * 0.02 + 1e8 / 85e6) / 32.0;
        assert!((seconds(&OBJECTS) - threads).abs() < 1e-9);
        assert!((seconds(&Storage { node: 1e6, ..OBJECTS }) - 100.0).abs() < 1e-9);
        assert!((seconds(&Storage { requests: 1.0, ..OBJECTS }) - 100.0).abs() < 1e-9);
        assert!((seconds(&Storage { shared_requests: 2.0, ..OBJECTS }) - 50.0).abs() < 1e-9);
    }
}
