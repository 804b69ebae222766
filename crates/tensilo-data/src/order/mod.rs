//! The order of samples: which samples a training job takes, when, and on which rank (`ORDER.md`).
//!
//! The usual way to shuffle is to permute a list of `0..n` and walk through it. For 10^9 samples,
//! this list takes 8 GB on each machine. It is rebuilt for each epoch, and a job that resumes has
//! to skip through it. Here, no list is stored or sent. Instead, an order is a function from a
//! position in the epoch to a sample, computed from the seed, the epoch and `n`. Every machine
//! evaluates the same function, so ranks agree without communicating.
//!
//! The design has five layers, each built on the one before it:
//!
//! 1. **Keys** ([`permutation`]). Every pseudo-random number is a hash of its purpose and of words
//!    such as the seed and the epoch. The hash absorbs the words one after another. If they were
//!    added up, seed 1 in epoch 2 would produce the same shuffle as seed 2 in epoch 1.
//! 2. **Permutations** ([`Permutation`]). A key selects a permutation of `0..n`, which a Feistel
//!    network evaluates at one index at a time. Take the smallest `2^b` that is at least `n`, and
//!    split an index of `b` bits into two halves. In each round, XOR one half with a hash of the
//!    other. If the result is not below `n`, apply the network again. The inverse runs the rounds
//!    backwards.
//! 3. **Runs, streams and windows** ([`windowed`]). The *shuffled* order applies one permutation to
//!    all samples, so each sample is a separate read. The *windowed* order divides the samples into
//!    runs of `K` consecutive samples and deals the runs to `S` streams. Each stream permutes its
//!    runs, groups every `W` of them into a window, and permutes the samples within each window.
//!    The order takes one sample from each stream in turn. Files are read one run at a time, and
//!    only about one window of each stream is in use at any time.
//! 4. **Steps and ranks** ([`Division`]). A step takes the next `batch_size * world_size`
//!    positions. They are listed stream by stream, and rank `r`, counted from 0, takes slice `r` of
//!    this list, which has `batch_size` positions. So a rank reads the runs of its own streams.
//!    [`LastBatch`] determines what happens if the last positions of an epoch do not fill a step.
//! 5. **Resuming** ([`State`]). The samples taken so far are always a prefix of the order, no
//!    matter how the ranks divided it. So a state needs only the order and one position. It
//!    contains no batch size and no number of ranks, so any number of ranks can continue from it. A
//!    [`Receipt`] is a sum of hashes that proves which samples were taken.
//!
//! For example, take `n = 11`, runs of `K = 3` samples, `S = 2` streams with windows of `W = 1` run,
//! and two ranks with batches of two samples:
//!
//! ```text
//! samples    0 1 2 | 3 4 5 | 6 7 8 | 9 10    four runs; the last one is short
//! stream 0   6 7 8 || 0 1 2                  runs 0 and 2, permuted: two windows
//! stream 1   3 4 5 || 9 10                   runs 1 and 3, permuted
//! shuffled   8 6 7 || 1 0 2                  the samples of each window, permuted
//!            4 3 5 || 10 9
//! order      8 4 6 3   7 5 1 10   0 9 2      one sample of each stream in turn
//! position   0 1 2 3   4 5 6 7    8 9 10
//! rank       0 1 0 1   0 1 0 1    - - -      the last positions do not fill a step
//! ```
//!
//! With *drop*, positions 8 to 10 are left out. With *pad*, positions 0 and so on follow them. With
//! *exact*, rank 0 takes position 8, and rank 1 takes positions 9 and 10: the list of this step is
//! 8 and 10 of stream 0, then 9 of stream 1, and its slices are 8, and 10 and 9.
//!
//! A lookup goes up this table. The step and the rank determine the positions. A position
//! determines a stream, a window and an index within it. The permutation of the window maps this
//! index to a run and an index in that run, and the permutation of the runs then determines the
//! sample.
//! [`EpochOrder::sample_at`] goes from a position to a sample, with a few divisions and two
//! permutations. [`EpochOrder::position_of`] goes down the table, from a sample to its position.
//!
//! Invariant: for every seed, epoch and `n`, [`EpochOrder`] is a bijection of `0..n`. Each sample
//! is therefore taken exactly once per epoch, except for the samples that [`LastBatch`] drops or
//! repeats. The boundaries of runs depend only on sample numbers, never on files or chunks, so
//! rewriting a dataset into different files does not change its order.
//!
//! Damaged samples can be replaced: [`substitute_candidate`] computes the replacement from a key, so
//! all ranks choose the same one.

mod division;
mod kind;
mod permutation;
mod state;
mod windowed;

pub use division::{Division, LastBatch};
pub use kind::{Order, WindowSizes};
pub use permutation::Permutation;
pub(crate) use permutation::{Purpose, absorb, key};
pub use state::{Receipt, State};

use crate::error::{DataError, Result};
use kind::RANKS_PER_MACHINE;
use std::ops::Range;
use windowed::Windowed;

/// The maximum number of samples of an order.
pub(crate) const MAX_SAMPLES: u64 = 1 << 63;

/// The order of the samples of one epoch.
///
/// It is a pure function of the order, the number of samples, the seed and the epoch, so every
/// machine computes the same result. Creating one takes a few hundred nanoseconds and allocates no
/// heap memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochOrder(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Sequential(u64),
    Shuffled(Permutation),
    Windowed(Windowed),
}

impl EpochOrder {
    /// Returns the order of `n` samples in an epoch. If `n` is above 2^63, only the first 2^63
    /// samples are ordered.
    pub fn new(order: Order, n: u64, seed: u64, epoch: u64) -> Self {
        let n = n.min(MAX_SAMPLES);
        Self(match order {
            Order::Sequential => Kind::Sequential(n),
            Order::Shuffled => Kind::Shuffled(Permutation::new(key(Purpose::Shuffled, [seed, epoch]), n)),
            Order::Windowed(sizes) => Kind::Windowed(Windowed::new(sizes, n, seed, epoch)),
        })
    }

    /// Returns the sample at a position, or `None` if the position is not below the number of
    /// samples.
    ///
    /// Cost: about 20 ns if shuffled, and 80 to 90 ns if windowed or if there are at most 4,096
    /// samples. See `benches/order.rs`.
    #[inline]
    pub fn sample_at(&self, position: u64) -> Option<u64> {
        match &self.0 {
            Kind::Sequential(n) => (position < *n).then_some(position),
            Kind::Shuffled(permutation) => permutation.at(position),
            Kind::Windowed(windowed) => windowed.sample_at(position),
        }
    }

    /// Replaces each position with its sample, like [`EpochOrder::sample_at`]. If a position is not
    /// below the number of samples, fails and changes nothing.
    ///
    /// Cost: 0.3 to 0.6 times the cost of single lookups; see `benches/order.rs`. In a windowed
    /// order, consecutive positions are the cheapest.
    ///
    /// ```
    /// use tensilo_data::{EpochOrder, Order};
    ///
    /// let order = EpochOrder::new(Order::Shuffled, 1_000, 42, 0);
    /// let mut batch: Vec<u64> = (256..512).collect();
    /// order.replace_with_samples(&mut batch)?;
    /// assert_eq!(Some(batch[7]), order.sample_at(256 + 7));
    /// # Ok::<(), tensilo_data::DataError>(())
    /// ```
    pub fn replace_with_samples(&self, positions: &mut [u64]) -> Result<()> {
        let n = self.sample_count();
        if let Some(position) = positions.iter().find(|position| **position >= n) {
            return Err(DataError::BadArgument(format!(
                "position {position} is out of range: the epoch has {n} samples, numbered from 0"
            )));
        }
        match &self.0 {
            Kind::Sequential(_) => {}
            Kind::Shuffled(permutation) => permutation.replace(positions),
            Kind::Windowed(windowed) => windowed.replace(positions),
        }
        Ok(())
    }

    /// Returns the number of samples.
    pub fn sample_count(&self) -> u64 {
        match &self.0 {
            Kind::Sequential(n) => *n,
            Kind::Shuffled(permutation) => permutation.member_count(),
            Kind::Windowed(windowed) => windowed.sample_count(),
        }
    }

    /// Returns the streams in the order in which the positions of a step are listed, by their
    /// reversed bits. Orders without streams have one.
    fn listed_streams(&self) -> impl Iterator<Item = u64> {
        let count = match &self.0 {
            Kind::Windowed(windowed) => windowed.stream_count(),
            _ => 1,
        };
        let bits = count.trailing_zeros();
        (0..count).map(move |i: u64| i.reverse_bits().checked_shr(u64::BITS - bits).unwrap_or(0))
    }

    /// Returns the indices in a stream of the samples at a range of positions. After the last
    /// position, the epoch starts again, and the indices continue.
    fn in_stream(&self, stream: u64, positions: &Range<u64>) -> Range<u64> {
        match &self.0 {
            Kind::Windowed(windowed) if windowed.sample_count() > 0 => {
                let (n, samples) = (windowed.sample_count(), windowed.sample_count_of(stream));
                let taken = |p: u64| match p < n {
                    true => windowed.taken(stream, p),
                    false => (p / n) * samples + windowed.taken(stream, p % n), // at most `p`
                };
                taken(positions.start)..taken(positions.end)
            }
            _ => positions.clone(),
        }
    }

    /// Returns the position of the sample with this index in a stream, where indices continue
    /// after the last sample of the epoch, and positions with them.
    fn position_in_stream(&self, stream: u64, index: u64) -> u64 {
        match &self.0 {
            Kind::Windowed(windowed) => {
                let samples = windowed.sample_count_of(stream).max(1);
                let rounds = if index < samples { 0 } else { index / samples };
                rounds * windowed.sample_count() + windowed.position_in(stream, index - rounds * samples)
            }
            _ => index,
        }
    }

    /// Returns the runs of the streams that a rank takes samples from, or `None` if the order is not
    /// windowed.
    pub(crate) fn runs(&self, rank: u32, division: Division) -> Option<Runs<'_>> {
        match &self.0 {
            Kind::Windowed(windowed) => Some(Runs(RunsKind::Windowed(RankRuns::new(windowed, rank, division)))),
            _ => None,
        }
    }

    /// Returns consecutive runs of `samples` samples for a sequential order, and
    /// [`runs`](Self::runs) for a windowed order. Returns `None` for a shuffled order, which has no
    /// runs.
    pub(crate) fn runs_of(&self, samples: u64, rank: u32, division: Division) -> Option<Runs<'_>> {
        match &self.0 {
            Kind::Sequential(n) => Some(Runs(RunsKind::Sequential { n: *n, run: samples.max(1) })),
            _ => self.runs(rank, division),
        }
    }

    /// Returns the position of a sample, or `None` if there is no such sample. This is the inverse
    /// of [`EpochOrder::sample_at`], at the same cost.
    #[inline]
    pub fn position_of(&self, sample: u64) -> Option<u64> {
        match &self.0 {
            Kind::Sequential(n) => (sample < *n).then_some(sample),
            Kind::Shuffled(permutation) => permutation.position_of(sample),
            Kind::Windowed(windowed) => windowed.position_of(sample),
        }
    }
}

/// The runs that a rank reads, in the sequence in which it needs them.
pub(crate) struct Runs<'o>(RunsKind<'o>);

enum RunsKind<'o> {
    Windowed(RankRuns<'o>),
    Sequential { n: u64, run: u64 },
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

/// The number of steps of which the samples are prefetched, if memory suffices. In a large job, a
/// window ends after a few steps. Waiting for the next one for the time of a few steps is not
/// enough, because a few responses of an object store take much longer than usual.
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

impl Runs<'_> {
    /// Returns the number of runs, including those that do not exist.
    pub(crate) fn count(&self) -> u64 {
        match &self.0 {
            RunsKind::Windowed(runs) => runs.order.max_runs().saturating_mul(runs.stream_count()),
            RunsKind::Sequential { n, run } => n.div_ceil(*run),
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
            RunsKind::Sequential { n, run } => {
                let start = number.saturating_mul(*run);
                (start < *n).then(|| start..start.saturating_add(*run).min(*n))
            }
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

/// The maximum number of attempts to find a substitute.
pub(crate) const MAX_SUBSTITUTE_ATTEMPTS: u64 = 64;

/// Returns the candidate with number `attempt`, counted from 0, for replacing a damaged sample
/// of a view of `sample_count` samples. The substitute is the first of up to 64 candidates that is
/// not damaged. Every rank computes the same candidates. Returns `None` if the view is empty.
pub fn substitute_candidate(sample_count: u64, seed: u64, epoch: u64, sample: u64, attempt: u64) -> Option<u64> {
    key(Purpose::Substitute, [seed, epoch, sample, attempt]).checked_rem(sample_count)
}

#[cfg(test)]
mod tests {
    use super::*;
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
            let runs = order.runs(rank % world_size, division).expect("windows");
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
