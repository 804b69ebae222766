//! The order of samples: which samples a training job takes, when, and on which rank (`ORDER.md`).
//!
//! The usual shuffle is a list: permute `0..n` and walk through it. For 10^9 samples, the list
//! takes 8 GB on each machine, is rebuilt for each epoch, and must be skipped through when a job
//! resumes. Here no list is stored or sent. An order is a function from a position in the epoch to
//! a sample, computed from seed, epoch and `n`. Every machine evaluates the same function, so ranks
//! agree without talking to each other.
//!
//! The function is built from five ideas, each on top of the one before:
//!
//! 1. **Keys** ([`permutation`]). Every number that looks random is a hash of its purpose and of
//!    words such as seed and epoch. Words are absorbed one after another: if they were added, seed
//!    1 in epoch 2 would shuffle like seed 2 in epoch 1.
//! 2. **Permutations** ([`Permutation`]). A key selects a permutation of `0..n`, evaluated at one
//!    index at a time. Take the smallest power of two that is at least `n`, cut an index of that
//!    many bits into two halves, and in each round XOR one half with a hash of the other: a Feistel
//!    network. If the result is not below `n`, apply the network again. The inverse runs the rounds
//!    backwards.
//! 3. **Runs and windows** ([`windowed`]). *Shuffled* applies one permutation to all samples, so
//!    each sample is a separate read. *Windowed* cuts the samples into runs of `K` neighbors,
//!    permutes the runs, groups every `W` of them into a window, and permutes the samples of each
//!    window. Files are read in runs, and only the runs of about one window are in use.
//! 4. **Steps and ranks** ([`Division`]). A step takes the next `batch * world` positions. Rank
//!    `r`, counted from 0, takes the `r`-th slice of `batch` positions. [`LastBatch`] says what
//!    happens to positions that do not fill a step.
//! 5. **Resuming** ([`State`]). The samples taken so far are a prefix of the order, however ranks
//!    divided it. So a state is the order and one position, with neither batch size nor number of
//!    ranks, and any number of ranks continues from it. A [`Receipt`], a sum of hashes, proves
//!    which samples were taken.
//!
//! An example: `n = 10`, runs of `K = 3`, windows of `W = 2` runs, and 2 ranks with batches of 2.
//!
//! ```text
//! samples    0 1 2 | 3 4 5 | 6 7 8 | 9       four runs; the last one is short
//! runs       6 7 8 | 9  ||  0 1 2 | 3 4 5    permuted to 2, 3, 0, 1: two windows
//! order      8 6 9 7    ||  3 0 5 4 1 2      the samples of each window, permuted
//! position   0 1 2 3        4 5 6 7 8 9
//! step       0 0 0 0        1 1 1 1 - -      drop: positions 8 and 9 are left out
//! rank       0 0 1 1        0 0 1 1 - -      pad: 8 9 for rank 0, 0 1 for rank 1; exact: 8, 9
//! ```
//!
//! A lookup walks up this table: step and rank give positions, a position gives its window and a
//! number in it, the permutation of the window gives a run and an index in that run, and the
//! permutation of runs gives the sample. [`EpochOrder::sample_at`] does this with a few divisions
//! and two permutations; [`EpochOrder::position_of`] walks down.
//!
//! Invariant: for every seed, epoch and `n`, [`EpochOrder`] is a bijection of `0..n`. Hence each
//! sample is taken exactly once in an epoch, except for what [`LastBatch`] drops or repeats. Runs
//! are cut by sample number, never by file or chunk, so rewriting a dataset into other files does
//! not change its order.
//!
//! Damaged samples can be replaced: [`substitute`] computes another sample from the same kind of
//! key, so all ranks choose the same one.

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
/// A pure function of order, number of samples, seed and epoch: every machine computes the same.
/// Creating one takes a few hundred nanoseconds and allocates no heap memory.
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
    /// Cost: about 20 ns if shuffled; 80 to 90 ns if windowed, or with at most 4,096 samples. See
    /// `benches/order.rs`.
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
    /// Cost: 0.3 to 0.6 times single lookups; see `benches/order.rs`. In a windowed order,
    /// consecutive positions are the cheapest.
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
                "there is no position {position}: an epoch has {n} samples, numbered from 0"
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
            Kind::Shuffled(permutation) => permutation.n(),
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

    /// Returns the runs of a windowed order, or runs of `samples` samples that a sequential order
    /// is cut into. A shuffled order has none.
    pub(crate) fn runs_of(&self, samples: u64) -> Option<Runs<'_>> {
        match &self.0 {
            Kind::Sequential(n) => Some(Runs(RunsKind::Sequential { n: *n, run: samples.max(1) })),
            _ => self.runs(),
        }
    }

    /// Returns the position of a sample, or `None` if there is no such sample. The inverse of
    /// [`EpochOrder::sample_at`], at the same cost.
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

/// The number of runs that a sequential order prefetches.
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

    /// Returns how many runs can have samples at this position or before it. They are prefetched
    /// before the position is read.
    pub(crate) fn begun(&self, position: u64) -> u64 {
        match &self.0 {
            RunsKind::Windowed(windowed) => windowed.runs_begun(position),
            RunsKind::Sequential { run, .. } => (position / run).saturating_add(1),
        }
    }

    /// Returns how many runs, counted from the first, should have been prefetched when the epoch is
    /// at this position.
    pub(crate) fn prefetch_count(&self, position: u64) -> u64 {
        match &self.0 {
            RunsKind::Windowed(windowed) => windowed.runs_to_prefetch(position),
            RunsKind::Sequential { run, .. } => (position / run).saturating_add(SEQUENTIAL_PREFETCH_RUNS),
        }
    }
}

/// The maximum number of attempts to find a substitute.
pub(crate) const MAX_SUBSTITUTE_ATTEMPTS: u64 = 64;

/// Returns the candidate that replaces damaged sample `v` of a view of `n` samples in this attempt.
/// The substitute is the candidate of the first attempt, counted from 0, that is not damaged; there
/// are 64 attempts. Every rank computes the same candidates. Returns `None` if the view is empty.
pub fn substitute(n: u64, seed: u64, epoch: u64, v: u64, attempt: u64) -> Option<u64> {
    key(Purpose::Substitute, [seed, epoch, v, attempt]).checked_rem(n)
}
