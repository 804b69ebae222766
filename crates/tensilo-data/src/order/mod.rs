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
//! 3. **Runs and windows** ([`windowed`]). The *shuffled* order applies one permutation to all
//!    samples, so each sample is a separate read. The *windowed* order divides the samples into
//!    runs of `K` consecutive samples and permutes the runs. It then groups every `W` consecutive
//!    runs into a window, and permutes the samples within each window. Files are read one run at a
//!    time, and only about one window of runs is in use at any time.
//! 4. **Steps and ranks** ([`Division`]). A step takes the next `batch_size * world_size`
//!    positions. Rank `r`, counted from 0, takes slice `r` of them, which has `batch_size`
//!    positions. [`LastBatch`] determines what happens if the last positions of an epoch do not
//!    fill a step.
//! 5. **Resuming** ([`State`]). The samples taken so far are always a prefix of the order, no
//!    matter how the ranks divided it. So a state needs only the order and one position. It
//!    contains no batch size and no number of ranks, so any number of ranks can continue from it. A
//!    [`Receipt`] is a sum of hashes that proves which samples were taken.
//!
//! For example, take `n = 10`, runs of `K = 3` samples, windows of `W = 2` runs, and two ranks with
//! batches of two samples:
//!
//! ```text
//! samples    0 1 2 | 3 4 5 | 6 7 8 | 9       four runs; the last one is short
//! runs       6 7 8 | 9  ||  0 1 2 | 3 4 5    permuted to 2, 3, 0, 1: two windows
//! order      8 6 9 7    ||  3 0 5 4 1 2      the samples of each window, permuted
//! position   0 1 2 3        4 5 6 7 8 9
//! step       0 0 0 0        1 1 1 1 - -      positions 8 and 9 do not fill a step
//! rank       0 0 1 1        0 0 1 1 - -
//! ```
//!
//! With *drop*, positions 8 and 9 are left out. With *pad*, rank 0 takes them, and rank 1 takes
//! positions 0 and 1. With *exact*, rank 0 takes position 8, and rank 1 takes position 9.
//!
//! A lookup goes up this table. The step and the rank determine the positions. A position
//! determines a window and an index within it. The permutation of the window maps this index to a
//! run and an index in that run, and the permutation of the runs then determines the sample.
//! [`EpochOrder::sample_at`] goes from a position to a sample, with a few divisions and two
//! permutations. [`EpochOrder::position_of`] goes down the table, from a sample to its position.
//!
//! Invariant: for every seed, epoch and `n`, [`EpochOrder`] is a bijection of `0..n`. Each sample
//! is therefore taken exactly once per epoch, except for the samples that [`LastBatch`] drops or
//! repeats. The boundaries of runs depend only on sample numbers, never on files or chunks, so
//! rewriting a dataset into different files does not change its order.
//!
//! Damaged samples can be replaced: [`substitute_candidate`] computes the replacement from a key, so all
//! ranks choose the same one.

mod division;
mod kind;
mod permutation;
mod state;
mod windowed;

pub use division::{Division, LastBatch, Positions};
pub use kind::{Order, WindowSizes};
pub use permutation::Permutation;
pub(crate) use permutation::{Purpose, key};
pub use state::{Receipt, State};

use crate::error::{DataError, Result};
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

    /// Returns the runs of a windowed order, or `None` for other orders.
    pub(crate) fn runs(&self) -> Option<Runs<'_>> {
        match &self.0 {
            Kind::Windowed(windowed) => Some(Runs(RunsKind::Windowed(windowed))),
            _ => None,
        }
    }

    /// Returns the runs of a windowed order. For a sequential order, returns consecutive runs of
    /// `samples` samples. Returns `None` for a shuffled order, which has no runs.
    pub(crate) fn runs_of(&self, samples: u64) -> Option<Runs<'_>> {
        match &self.0 {
            Kind::Sequential(n) => Some(Runs(RunsKind::Sequential { n: *n, run: samples.max(1) })),
            _ => self.runs(),
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

/// The runs of an order, in the sequence in which they are taken.
pub(crate) struct Runs<'o>(RunsKind<'o>);

enum RunsKind<'o> {
    Windowed(&'o Windowed),
    Sequential { n: u64, run: u64 },
}

/// The number of runs that are prefetched in a sequential order, including the current run.
const SEQUENTIAL_PREFETCH_RUNS: u64 = 32;

impl Runs<'_> {
    /// Returns the number of runs.
    pub(crate) fn count(&self) -> u64 {
        match &self.0 {
            RunsKind::Windowed(windowed) => windowed.run_count(),
            RunsKind::Sequential { n, run } => n.div_ceil(*run),
        }
    }

    /// Returns the samples of a run, given its rank in the order.
    pub(crate) fn at(&self, number: u64) -> Option<Range<u64>> {
        match &self.0 {
            RunsKind::Windowed(windowed) => windowed.run_at(number),
            RunsKind::Sequential { n, run } => {
                let start = number.saturating_mul(*run);
                (start < *n).then(|| start..start.saturating_add(*run).min(*n))
            }
        }
    }

    /// Returns the number of runs that can have samples at or before this position. All of them are
    /// prefetched before the position is read.
    pub(crate) fn begun(&self, position: u64) -> u64 {
        match &self.0 {
            RunsKind::Windowed(windowed) => windowed.runs_begun(position),
            RunsKind::Sequential { run, .. } => (position / run).saturating_add(1),
        }
    }

    /// Returns the number of runs, counted from the first, that should have been prefetched by the
    /// time the epoch reaches this position.
    pub(crate) fn prefetch_count(&self, position: u64) -> u64 {
        match &self.0 {
            RunsKind::Windowed(windowed) => windowed.runs_to_prefetch(position),
            RunsKind::Sequential { run, .. } => (position / run).saturating_add(SEQUENTIAL_PREFETCH_RUNS),
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
