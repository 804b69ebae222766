//! Chapters 1 to 3 of `ORDER.md`: which sample is at which position of an epoch.

mod mode;
mod numbers;
mod permutation;
mod windowed;

pub use mode::{Mode, RunsAndWindows};
pub(crate) use numbers::{Purpose, key};
pub use permutation::Permutation;

use std::ops::Range;
use windowed::Windowed;

/// The most samples of an order.
pub(crate) const MOST_SAMPLES: u64 = 1 << 63;

/// The order of the samples of one epoch.
///
/// A pure function of mode, number of samples, seed and epoch: the same on every machine. Making
/// one takes some hundred nanoseconds; it has no memory on the heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Sequential(u64),
    Shuffled(Permutation),
    Windowed(Windowed),
}

impl Order {
    /// Returns the order of `n` samples in an epoch; of the first 2^63 if they are more.
    pub fn new(mode: Mode, n: u64, seed: u64, epoch: u64) -> Self {
        let n = n.min(MOST_SAMPLES);
        Self(match mode {
            Mode::Sequential => Kind::Sequential(n),
            Mode::Shuffled => Kind::Shuffled(Permutation::new(key(Purpose::Shuffled, [seed, epoch]), n)),
            Mode::Windowed(sizes) => Kind::Windowed(Windowed::new(sizes, n, seed, epoch)),
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

    /// Returns the runs of a windowed order.
    pub(crate) fn runs(&self) -> Option<Runs<'_>> {
        match &self.0 {
            Kind::Windowed(windowed) => Some(Runs(windowed)),
            _ => None,
        }
    }

    /// Returns the position of a sample: the inverse of [`Order::sample_at`]. `None` from the
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

/// The runs of a windowed order, in that order.
pub(crate) struct Runs<'o>(&'o Windowed);

impl Runs<'_> {
    /// Returns their number.
    pub(crate) fn count(&self) -> u64 {
        self.0.run_count()
    }

    /// Returns the samples of a run.
    pub(crate) fn at(&self, run: u64) -> Option<Range<u64>> {
        self.0.run_at(run)
    }

    /// Returns how many runs should be announced when the epoch is at a position.
    pub(crate) fn ahead(&self, position: u64) -> u64 {
        self.0.runs_ahead(position)
    }
}
