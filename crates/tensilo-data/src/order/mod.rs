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
//! For example, take `n = 11`, runs of `K = 3` samples, `S = 2` streams with windows of `W = 1`
//! run, and two ranks with batches of two samples:
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
//! Damaged samples can be replaced: [`substitute_candidate`] computes the replacement from a key,
//! so all ranks choose the same one.

mod division;
mod kind;
mod permutation;
mod runs;
mod state;
mod windowed;

pub use division::{Division, LastBatch};
pub use kind::{Order, WindowSizes};
pub use permutation::Permutation;
pub(crate) use permutation::{Purpose, absorb, key};
pub(crate) use runs::Runs;
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

/// The maximum number of attempts to find a substitute.
pub(crate) const MAX_SUBSTITUTE_ATTEMPTS: u64 = 64;

/// Returns the candidate with number `attempt`, counted from 0, for replacing a damaged sample
/// of a view of `sample_count` samples. The substitute is the first of up to 64 candidates that is
/// not damaged. Every rank computes the same candidates. Returns `None` if the view is empty.
pub fn substitute_candidate(sample_count: u64, seed: u64, epoch: u64, sample: u64, attempt: u64) -> Option<u64> {
    key(Purpose::Substitute, [seed, epoch, sample, attempt]).checked_rem(sample_count)
}
