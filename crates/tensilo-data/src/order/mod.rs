//! `ORDER.md`: which samples a training job takes, and in which order.
//!
//! An [`EpochOrder`] finds the sample at any position of an epoch (chapters 1 to 3), and a [`Division`]
//! the positions of a rank in a step (chapter 4). [`substitute`] chooses other samples instead of
//! damaged ones (chapter 8). All of it is arithmetic, the same on every machine: no list of samples
//! is kept, sent or shuffled.

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

/// The most samples of an order.
pub(crate) const MAX_SAMPLES: u64 = 1 << 63;

/// The order of the samples of one epoch.
///
/// A pure function of order, number of samples, seed and epoch: the same on every machine. Making
/// one takes some hundred nanoseconds; it has no memory on the heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EpochOrder(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Sequential(u64),
    Shuffled(Permutation),
    Windowed(Windowed),
}

impl EpochOrder {
    /// Returns the order of `n` samples in an epoch; of the first 2^63 if they are more.
    pub fn new(order: Order, n: u64, seed: u64, epoch: u64) -> Self {
        let n = n.min(MAX_SAMPLES);
        Self(match order {
            Order::Sequential => Kind::Sequential(n),
            Order::Shuffled => Kind::Shuffled(Permutation::new(key(Purpose::Shuffled, [seed, epoch]), n)),
            Order::Windowed(sizes) => Kind::Windowed(Windowed::new(sizes, n, seed, epoch)),
        })
    }

    /// Returns the sample at a position; `None` from the number of samples on.
    ///
    /// Cost: some 20 ns if shuffled, 80 to 90 ns if windowed or of at most 4,096 samples; see
    /// `benches/order.rs`.
    #[inline]
    pub fn sample_at(&self, position: u64) -> Option<u64> {
        match &self.0 {
            Kind::Sequential(n) => (position < *n).then_some(position),
            Kind::Shuffled(permutation) => permutation.at(position),
            Kind::Windowed(windowed) => windowed.sample_at(position),
        }
    }

    /// Replaces each position by the sample there, as [`EpochOrder::sample_at`] finds it. Fails, and
    /// changes nothing, if a position is not below the number of samples.
    ///
    /// Cost: 0.3 to 0.6 of that of single lookups; see `benches/order.rs`. Positions that follow
    /// each other cost the least if windowed.
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
            return Err(DataError::BadArgument(format!("position {position} of {n} samples, counted from 0")));
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

    /// Returns the runs of a windowed order.
    pub(crate) fn runs(&self) -> Option<Runs<'_>> {
        match &self.0 {
            Kind::Windowed(windowed) => Some(Runs(RunsKind::Windowed(windowed))),
            _ => None,
        }
    }

    /// Returns the runs of a windowed order, or those that a sequential one can be divided into: of
    /// so many samples each.
    pub(crate) fn runs_of(&self, samples: u64) -> Option<Runs<'_>> {
        match &self.0 {
            Kind::Sequential(n) => Some(Runs(RunsKind::Sequential { n: *n, run: samples.max(1) })),
            _ => self.runs(),
        }
    }

    /// Returns the position of a sample: the inverse of [`EpochOrder::sample_at`]. `None` from the
    /// number of samples on. Cost: as that.
    #[inline]
    pub fn position_of(&self, sample: u64) -> Option<u64> {
        match &self.0 {
            Kind::Sequential(n) => (sample < *n).then_some(sample),
            Kind::Shuffled(permutation) => permutation.position_of(sample),
            Kind::Windowed(windowed) => windowed.position_of(sample),
        }
    }
}

/// The runs of an order, in that order.
pub(crate) struct Runs<'o>(RunsKind<'o>);

enum RunsKind<'o> {
    Windowed(&'o Windowed),
    Sequential { n: u64, run: u64 },
}

/// The runs that are announced ahead in a sequential order.
const SEQUENTIAL_PREFETCH_RUNS: u64 = 32;

impl Runs<'_> {
    /// Returns their number.
    pub(crate) fn count(&self) -> u64 {
        match &self.0 {
            RunsKind::Windowed(windowed) => windowed.run_count(),
            RunsKind::Sequential { n, run } => n.div_ceil(*run),
        }
    }

    /// Returns the samples of a run.
    pub(crate) fn at(&self, number: u64) -> Option<Range<u64>> {
        match &self.0 {
            RunsKind::Windowed(windowed) => windowed.run_at(number),
            RunsKind::Sequential { n, run } => {
                let start = number.saturating_mul(*run);
                (start < *n).then(|| start..start.saturating_add(*run).min(*n))
            }
        }
    }

    /// Returns how many runs have samples up to those of a position, and so have to be announced
    /// before these are read.
    pub(crate) fn begun(&self, position: u64) -> u64 {
        match &self.0 {
            RunsKind::Windowed(windowed) => windowed.runs_begun(position),
            RunsKind::Sequential { run, .. } => (position / run).saturating_add(1),
        }
    }

    /// Returns how many runs should be announced when the epoch is at a position.
    pub(crate) fn prefetch_count(&self, position: u64) -> u64 {
        match &self.0 {
            RunsKind::Windowed(windowed) => windowed.runs_to_prefetch(position),
            RunsKind::Sequential { run, .. } => (position / run).saturating_add(SEQUENTIAL_PREFETCH_RUNS),
        }
    }
}

/// The most attempts to find a substitute.
pub(crate) const MAX_SUBSTITUTE_ATTEMPTS: u64 = 64;

/// Returns the sample of a view of `n` samples that takes the place of sample `v`, which is
/// damaged: that of the first attempt whose sample is not damaged. Attempts are counted from 0, and
/// there are 64. Every rank finds the same. `None` if the view is empty.
pub fn substitute(n: u64, seed: u64, epoch: u64, v: u64, attempt: u64) -> Option<u64> {
    key(Purpose::Substitute, [seed, epoch, v, attempt]).checked_rem(n)
}
