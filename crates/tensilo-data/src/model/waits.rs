//! How long a job waits for its data, step by step, if some responses take longer than others.
//!
//! The ranks of a job take each step together, so a step starts when the slowest rank has its
//! batch. One response in a thousand may be slow: with 512 ranks, one rank waits for it in every
//! second step. Whether the job waits too depends on how early the bytes were requested. So the
//! time of a step cannot be computed from mean values, and is simulated instead:
//!
//! * A batch is requested when the consumer has taken the batch `prefetch` steps before it, and one
//!   of the `io_depth` threads of its rank is free. It takes the latency of each round trip, which
//!   is the longest of all requests of the round trip, and the time of its bytes.
//! * A run of a windowed order is requested as early as the loader does it. It takes the latency of
//!   the requests that open its file, read its index and read its bytes, and delays the step in
//!   which its window starts.
//! * A step starts when all batches and all runs have arrived and the step before it has ended.

use super::storage::Storage;
use crate::order::absorb;

/// What a rank requests for a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchRequests {
    /// The average number of round trips, one after the other.
    pub trips: f64,
    /// The average number of requests of a round trip.
    pub trip_requests: f64,
    /// The bytes, without prefetched runs.
    pub bytes: f64,
}

/// What all ranks together request for a window of each stream, or for all windows of a step if
/// they are shorter.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowRequests {
    /// The number of steps that take the samples of these windows, at least 1.
    pub steps: f64,
    /// The number of steps that take the samples of one run of each stream.
    pub run_steps: f64,
    /// The number of runs of a window of a stream.
    pub window_runs: u32,
    /// The number of steps of the windows that are prefetched besides the current one and the next
    /// one.
    pub more_steps: f64,
    /// The number of requests for runs.
    pub requests: f64,
    /// The bytes of such a request.
    pub request_bytes: f64,
    /// The average number of round trips of a run, one after the other.
    pub trips: f64,
}

/// The requests of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobRequests {
    pub ranks: u32,
    pub batch: BatchRequests,
    pub window: Option<WindowRequests>,
}

/// The maximum number of ranks, and of requests for runs of a window, that are simulated. If there
/// are more, each of them stands for several.
const MAX_RANKS: u32 = 1 << 14;
const MAX_WINDOW_REQUESTS: f64 = 65_536.0;
/// The minimum and maximum number of steps that are counted.
const MIN_STEPS: u64 = 64;
const MAX_STEPS: u64 = 4096;
/// The maximum number of latencies that are drawn, unless [`MIN_STEPS`] need more.
const MAX_DRAWS: f64 = 5e6;
/// The maximum number of latencies that are drawn for a batch. Each of them stands for several
/// round trips if a batch has more.
const MAX_BATCH_DRAWS: f64 = 16.0;

/// Returns the mean time between the starts of two steps in seconds, if a step takes `step_seconds`
/// once its batches are there.
pub(super) fn step_seconds(job: &JobRequests, storage: &Storage, step_seconds: f64) -> f64 {
    let draws = f64::from(job.ranks.min(MAX_RANKS)) * job.batch.trips.min(MAX_BATCH_DRAWS)
        + job.window.map_or(0.0, |window| window.requests.min(MAX_WINDOW_REQUESTS) * window.trips / window.steps);
    // saturates
    let counted = ((MAX_DRAWS / draws.max(1.0)) as u64).clamp(MIN_STEPS, MAX_STEPS);
    let mut simulation = Simulation::new(job, storage);
    // the first steps wait for an empty pipeline, and their runs were requested before the first one
    let ahead = job.window.map_or(0.0, |window| window.steps + window.more_steps);
    let warm_up = (ahead as u64).min(MAX_STEPS) + u64::from(storage.prefetch()) + MIN_STEPS;
    let steps = warm_up + counted;
    for step in 0..steps {
        simulation.take(step, step_seconds);
    }
    let start = |step: u64| usize::try_from(step).ok().and_then(|step| simulation.starts.get(step)).copied();
    let (first, last) = (start(warm_up).unwrap_or(0.0), start(steps - 1).unwrap_or(0.0));
    (last - first) / (steps - 1 - warm_up) as f64
}

struct Simulation<'a> {
    job: &'a JobRequests,
    storage: &'a Storage,
    random: u64,
    /// The times at which the threads of each rank are free. If the latency is constant, all ranks
    /// are equal, and only one is simulated.
    threads: Vec<Vec<f64>>,
    /// The times at which steps started.
    starts: Vec<f64>,
    /// The next window.
    window: u64,
}

impl<'a> Simulation<'a> {
    fn new(job: &'a JobRequests, storage: &'a Storage) -> Self {
        let ranks = if storage.latency.is_constant() { 1 } else { job.ranks.min(MAX_RANKS) };
        let threads = (0..ranks).map(|_| vec![0.0; storage.io_depth.max(1) as usize]).collect();
        Self { job, storage, random: 0, threads, starts: Vec::new(), window: 1 }
    }

    /// Simulates a step.
    fn take(&mut self, step: u64, step_seconds: f64) {
        let mut start = self.starts.last().map_or(0.0, |start| start + step_seconds);
        // a batch is claimed when the batch `prefetch` steps before it was taken
        let requested = self.start_of(step as f64 - f64::from(self.storage.prefetch())).unwrap_or(0.0);
        for rank in 0..self.threads.len() {
            let duration = self.batch();
            let Some(threads) = self.threads.get_mut(rank) else { continue };
            let Some(free) = threads.iter_mut().min_by(|one, other| one.total_cmp(other)) else { continue };
            *free = free.max(requested) + duration;
            start = start.max(*free);
        }
        if let Some(window) = self.job.window {
            while self.window as f64 * window.steps < step as f64 + 1.0 {
                start = start.max(self.window_arrival(&window));
                self.window += 1;
            }
        }
        self.starts.push(start);
    }

    /// Returns the time of a batch.
    fn batch(&mut self) -> f64 {
        let BatchRequests { trips, trip_requests, bytes } = self.job.batch;
        let trip_requests = trip_requests * (f64::from(self.job.ranks) / f64::from(MAX_RANKS)).max(1.0);
        let bytes_seconds = bytes / self.storage.request_bandwidth;
        if self.storage.latency.is_constant() {
            return trips * self.storage.latency.median_seconds + bytes_seconds;
        }
        let count = (trips.min(MAX_BATCH_DRAWS) + self.draw()).floor();
        let latencies: f64 = (0..count as u64).map(|_| self.latency_of(trip_requests)).sum();
        latencies * (trips / MAX_BATCH_DRAWS).max(1.0) + bytes_seconds
    }

    /// Returns the time at which all runs of the next window have arrived.
    fn window_arrival(&mut self, window: &WindowRequests) -> f64 {
        let begin = self.window as f64 * window.steps;
        let bytes_seconds = window.request_bytes / self.storage.request_bandwidth;
        let mut arrival = 0.0_f64;
        let requests = window.requests.ceil().clamp(1.0, MAX_WINDOW_REQUESTS);
        let represented = window.requests / requests;
        for request in 0..requests as u64 {
            // run j of a window is requested when run j of an earlier window has been read
            let runs = f64::from(window.window_runs) - (request % u64::from(window.window_runs)) as f64;
            let ahead = runs * window.run_steps + window.more_steps + f64::from(self.storage.prefetch());
            let Some(requested) = self.start_of(begin - ahead) else { continue };
            let trips = (window.trips + self.draw()).floor().max(1.0);
            let latencies: f64 = (0..trips as u64).map(|_| self.latency_of(represented)).sum();
            arrival = arrival.max(requested + latencies + bytes_seconds);
        }
        arrival
    }

    /// Returns the time at which a step started, or `None` for steps before the first one.
    fn start_of(&self, step: f64) -> Option<f64> {
        if step < 0.0 {
            return None;
        }
        self.starts.get(step as usize).or(self.starts.last()).copied()
    }

    /// Returns the longest latency of a number of requests.
    fn latency_of(&mut self, requests: f64) -> f64 {
        let uniform = self.draw();
        self.storage.latency.longest(requests.max(1.0), uniform)
    }

    /// Returns a pseudo-random number above 0 and below 1.
    fn draw(&mut self) -> f64 {
        self.random = absorb(self.random, 1);
        ((self.random >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::storage::Latency;

    fn job(ranks: u32, trips: f64) -> JobRequests {
        let batch = BatchRequests { trips, trip_requests: 1.0, bytes: 0.0 };
        JobRequests { ranks, batch, window: None }
    }

    fn storage(median_seconds: f64, p99_seconds: f64) -> Storage {
        Storage { latency: Latency { median_seconds, p99_seconds }, ..Storage::OBJECTS }
    }

    #[test]
    fn a_constant_latency_is_divided_by_the_io_depth() {
        let storage = storage(0.02, 0.02);
        for (step, expected) in [(0.0, 0.01), (0.005, 0.01), (0.5, 0.5)] {
            let found = step_seconds(&job(512, 2.0), &storage, step);
            assert!((found / expected - 1.0).abs() < 0.01, "{step}: {found} instead of {expected}");
        }
    }

    #[test]
    fn the_largest_job_is_simulated_in_bounded_time() {
        let window = WindowRequests {
            steps: 1.0,
            run_steps: 1e-9,
            window_runs: 1,
            more_steps: 0.0,
            requests: 1e12,
            request_bytes: 1e6,
            trips: 3.0,
        };
        let batch = BatchRequests { trips: 1e6, trip_requests: 1e6, bytes: 1e9 };
        let job = JobRequests { ranks: 1 << 30, batch, window: Some(window) };
        let found = step_seconds(&job, &storage(0.02, 0.4), 0.2);
        assert!(found.is_finite() && found > 1e4, "{found}");
    }

    #[test]
    fn more_ranks_wait_for_more_late_responses() {
        let storage = storage(0.02, 0.4);
        let found = [1, 8, 512].map(|ranks| step_seconds(&job(ranks, 1.0), &storage, 0.02));
        assert!(found.is_sorted() && found[2] > 3.0 * found[0], "{found:?}");
        let patient = step_seconds(&job(512, 1.0), &storage, 1.0);
        assert!(patient < 1.01, "{patient}: 8 steps are enough for a late response");
    }

    #[test]
    fn runs_that_are_requested_early_are_not_waited_for() {
        let storage = storage(0.02, 0.4);
        let of = |more_steps: f64| {
            let window = WindowRequests {
                steps: 1.5,
                run_steps: 0.75,
                window_runs: 2,
                more_steps,
                requests: 512.0,
                request_bytes: 4e6,
                trips: 1.0,
            };
            let job = JobRequests { window: Some(window), ..job(8192, 0.0) };
            step_seconds(&job, &storage, 0.2)
        };
        let (next_window, more) = (of(0.0), of(64.0));
        assert!(next_window > 0.21 && more < 0.201, "{next_window} and {more}");
    }
}
