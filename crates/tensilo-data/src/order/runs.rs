//! The runs that a rank reads as a whole, and how far ahead of its batches.
//!
//! A batch takes a few samples from each run of a window, in shuffled order. Reading them one by
//! one would take a request for each. So a rank reads the runs of its streams as a whole, one
//! window ahead. The bytes of a run must have arrived when its window starts, but must not take up
//! memory for longer than necessary. So as large a share of the next window is prefetched as has
//! been read of the current one, and one run more, which has the time of a run to arrive.
//!
//! In a large job this is not enough, because a window lasts for a few steps only, and a few
//! responses of an object store take much longer than usual. All ranks wait for the slowest one.
//! But each machine then needs only a small part of each window, so it has memory for many windows,
//! and prefetches more of them.

use super::division::Division;
use super::kind::Order;
use super::windowed::Windowed;
use super::{EpochOrder, Kind};
use std::ops::Range;

/// At most this many ranks are assumed to run on one machine.
const RANKS_PER_MACHINE: u32 = 8;
/// If more machines share a stream, none of them reads its runs as a whole.
const MAX_SHARING_MACHINES: u32 = 8;
/// The average number of samples that a machine takes from a run that it reads as a whole, at
/// least.
const MIN_RUN_SAMPLES: u32 = 4;

impl Order {
    /// Returns whether a rank reads runs as a whole, ahead of its batches.
    ///
    /// A machine that shares a stream with others takes only some samples of each run. One request
    /// for the whole run then reads more bytes than requests for these samples, but a request takes
    /// as long as reading hundreds of samples.
    pub(crate) fn reads_whole_runs(self, world_size: u32) -> bool {
        match self {
            Self::Windowed(sizes) => {
                let machines = (sizes.run_samples() / MIN_RUN_SAMPLES).clamp(1, MAX_SHARING_MACHINES);
                world_size <= sizes.streams().saturating_mul(RANKS_PER_MACHINE).saturating_mul(machines)
            }
            Self::Sequential => world_size <= RANKS_PER_MACHINE,
            Self::Shuffled => false,
        }
    }
}

/// The runs that a rank reads, in the sequence in which it needs them.
pub(crate) struct Runs<'o>(RunsKind<'o>);

enum RunsKind<'o> {
    Windowed(RankRuns<'o>),
    Sequential { n: u64, run: u64, step: u64 },
}

/// The runs of the streams that a rank takes samples from: the first run of each of these streams,
/// then the second of each, and so on. The last runs of some streams may not exist.
struct RankRuns<'o> {
    order: &'o Windowed,
    /// The streams, as numbers in the list of a step: the bits of a stream are reversed.
    streams: Range<u64>,
    /// The number of windows of each stream that are prefetched besides the current one and the
    /// next one.
    more_windows: u64,
}

/// The samples of this number of steps are prefetched, if memory suffices.
const PREFETCHED_STEPS: u64 = 64;

impl<'o> RankRuns<'o> {
    fn new(order: &'o Windowed, rank: u32, division: Division) -> Self {
        let (count, world_size) = (order.stream_count(), u64::from(division.world_size()));
        let rank = u64::from(rank).min(world_size - 1); // at least 0
        // no overflow: at most 2^42; a stream can be shared with the neighboring ranks
        let streams = rank * count / world_size..((rank + 1) * count).div_ceil(world_size);
        // the ranks of a machine together prefetch no more than two windows of all streams
        let machine_streams = (streams.end - streams.start).saturating_mul(RANKS_PER_MACHINE.into());
        let max_windows = (2 * count / machine_streams.max(1)).saturating_sub(2);
        let step_windows = division.step_samples().saturating_mul(PREFETCHED_STEPS);
        let windows = step_windows.div_ceil(order.window_samples().saturating_mul(count).max(1));
        Self { order, streams, more_windows: windows.min(max_windows) }
    }

    fn stream_count(&self) -> u64 {
        self.streams.end - self.streams.start // at least 1
    }

    fn at(&self, number: u64) -> Option<Range<u64>> {
        let listed = self.streams.start + number % self.stream_count();
        let bits = self.order.stream_count().trailing_zeros();
        let stream = listed.reverse_bits().checked_shr(u64::BITS - bits).unwrap_or(0);
        self.order.run_at(stream, number / self.stream_count())
    }
}

/// The number of runs that are prefetched in a sequential order, including the current run.
const SEQUENTIAL_PREFETCH_RUNS: u64 = 32;

impl<'o> Runs<'o> {
    /// Returns the runs of the streams that a rank takes samples from, or `None` if the order is
    /// not windowed.
    pub(crate) fn of(order: &'o EpochOrder, division: Division, rank: u32) -> Option<Self> {
        match &order.0 {
            Kind::Windowed(windowed) => Some(Self(RunsKind::Windowed(RankRuns::new(windowed, rank, division)))),
            _ => None,
        }
    }

    /// Like [`Runs::of`], but a sequential order is also divided into runs, of `samples` samples
    /// each.
    pub(crate) fn of_any(order: &'o EpochOrder, division: Division, rank: u32, samples: u64) -> Option<Self> {
        match &order.0 {
            Kind::Sequential(n) => {
                let (run, step) = (samples.max(1), division.step_samples());
                Some(Self(RunsKind::Sequential { n: *n, run, step }))
            }
            _ => Self::of(order, division, rank),
        }
    }

    /// Returns the number of runs, including those that do not exist.
    pub(crate) fn count(&self) -> u64 {
        match &self.0 {
            RunsKind::Windowed(runs) => runs.order.max_runs().saturating_mul(runs.stream_count()),
            RunsKind::Sequential { n, run, .. } => n.div_ceil(*run),
        }
    }

    /// Returns the maximum number of windows of a stream that are prefetched and not finished, or 1
    /// if the order has no windows.
    pub(crate) fn prefetched_windows(&self) -> u64 {
        match &self.0 {
            RunsKind::Windowed(runs) => runs.more_windows.saturating_add(2),
            RunsKind::Sequential { .. } => 1,
        }
    }

    /// Returns the maximum number of samples in the runs that are prefetched and not finished.
    pub(crate) fn prefetched_samples(&self) -> u64 {
        match &self.0 {
            RunsKind::Windowed(runs) => {
                let windows = self.prefetched_windows().saturating_mul(runs.stream_count());
                runs.order.window_samples().saturating_mul(windows)
            }
            RunsKind::Sequential { run, .. } => run.saturating_mul(SEQUENTIAL_PREFETCH_RUNS),
        }
    }

    /// Returns the samples of a run, given its rank in this sequence.
    pub(crate) fn at(&self, number: u64) -> Option<Range<u64>> {
        match &self.0 {
            RunsKind::Windowed(runs) => runs.at(number),
            RunsKind::Sequential { n, run, .. } => {
                let start = number.saturating_mul(*run);
                (start < *n).then(|| start..start.saturating_add(*run).min(*n))
            }
        }
    }

    /// Returns the number of runs, counted from the first, that the step at this position needs:
    /// all runs up to the end of the window, or of the step.
    pub(crate) fn needed_count(&self, position: u64) -> u64 {
        match &self.0 {
            RunsKind::Windowed(runs) => runs.order.runs_begun(position).saturating_mul(runs.stream_count()),
            RunsKind::Sequential { run, step, .. } => position.saturating_add(*step).div_ceil(*run),
        }
    }

    /// Returns the number of runs, counted from the first, that should have been prefetched by the
    /// time the epoch reaches this position.
    pub(crate) fn prefetch_count(&self, position: u64) -> u64 {
        match &self.0 {
            RunsKind::Windowed(runs) => {
                let ahead = runs.order.window_runs().saturating_mul(runs.more_windows);
                let count = runs.order.runs_to_prefetch(position).saturating_add(ahead);
                count.saturating_mul(runs.stream_count())
            }
            RunsKind::Sequential { run, .. } => (position / run).saturating_add(SEQUENTIAL_PREFETCH_RUNS),
        }
    }

    /// Returns the number of runs, counted from the first, that are not needed at this position or
    /// later.
    pub(crate) fn finished_count(&self, position: u64) -> u64 {
        match &self.0 {
            RunsKind::Windowed(runs) => {
                let count = runs.order.runs_begun(position).saturating_sub(runs.order.window_runs());
                count.saturating_mul(runs.stream_count())
            }
            RunsKind::Sequential { run, .. } => position / run,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{LastBatch, WindowSizes};
    use proptest::prelude::*;

    proptest! {
        /// Each run is prefetched at least the time of the shortest run before its window starts,
        /// only runs in use are in memory, and not more of them than memory is reserved for.
        #[test]
        fn runs_are_prefetched_before_they_are_needed(
            (run, window, stream_bits) in (1..20_u32, 1..6_u32, 0..4_u32),
            (runs, shortfall) in (1..200_u64, 0..20_u64),
            (batch_size, world_size) in (1..50_u32, 1..20_u32),
            rank in 0..20_u32,
        ) {
            let n = (runs * u64::from(run)).saturating_sub(shortfall % u64::from(run)).max(1);
            let sizes = WindowSizes::new(run, window)?.with_streams(1 << stream_bits)?;
            let division = Division::new(batch_size, world_size, LastBatch::Drop)?;
            let order = EpochOrder::new(Order::Windowed(sizes), n, 1, 0);
            let runs = Runs::of(&order, division, rank % world_size).expect("windows");
            let numbers: Vec<Range<u64>> = (0..runs.count()).filter_map(|number| runs.at(number)).collect();
            let shortest = numbers.iter().map(|run| run.end - run.start).min().unwrap_or(0);
            for position in 0..n {
                let sample = order.sample_at(position).expect("a sample");
                let Some(number) = (0..runs.count()).find(|&at| runs.at(at).is_some_and(|run| run.contains(&sample)))
                else {
                    continue; // a run of another rank
                };
                prop_assert!(number >= runs.finished_count(position));
                let early = position.saturating_sub(shortest << stream_bits);
                prop_assert!(number < runs.prefetch_count(early), "{number} at {position} of {n}");
                let in_memory = runs.prefetch_count(position) - runs.finished_count(position);
                prop_assert!(in_memory * u64::from(run).min(n) <= runs.prefetched_samples());
            }
            prop_assert!(numbers.iter().all(|run| !run.is_empty() && run.end <= n));
        }
    }
}
