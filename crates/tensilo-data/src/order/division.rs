//! Chapter 4 of `ORDER.md`: steps, and how ranks divide them.
//!
//! A step takes the next positions of an epoch, and each rank a batch of them. Only the last step
//! can be shorter: [`LastBatch`] says how it ends.

use crate::error::{DataError, Result};
use std::fmt;
use std::ops::Range;

/// How the last step of an epoch ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LastBatch {
    /// Samples that do not fill a step are left out.
    #[default]
    Drop,
    /// The step is filled with samples from the epoch's begin.
    Pad,
    /// The samples that are left are divided evenly among the ranks, some of which may get none.
    Exact,
}

impl fmt::Display for LastBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drop => "drop",
            Self::Pad => "pad",
            Self::Exact => "exact",
        })
    }
}

/// How the positions of an epoch are divided among steps and ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Division {
    batch: u32,
    world: u32,
    last_batch: LastBatch,
}

/// The most samples of a step.
const MAX_STEP_SAMPLES: u64 = 1 << 32;

impl Division {
    /// Divides steps among `world` ranks, each of which takes `batch` samples. Fails if one of
    /// them is 0, or their product above 2^32.
    pub fn new(batch: u32, world: u32, last_batch: LastBatch) -> Result<Self> {
        let step = u64::from(batch) * u64::from(world); // below 2^64
        if (1..=MAX_STEP_SAMPLES).contains(&step) {
            return Ok(Self { batch, world, last_batch });
        }
        let message = format!("a step of {batch} samples for each of {world} ranks: expected 1 to 2^32 samples in all");
        Err(DataError::BadArgument(message))
    }

    /// Returns the samples of each rank in a step.
    pub fn batch(&self) -> u32 {
        self.batch
    }

    /// Returns the number of ranks.
    pub fn world(&self) -> u32 {
        self.world
    }

    /// Returns how the last step of an epoch ends.
    pub fn last_batch(&self) -> LastBatch {
        self.last_batch
    }

    /// Returns the samples of all ranks in a step.
    pub fn step_samples(&self) -> u64 {
        u64::from(self.batch) * u64::from(self.world) // below 2^64
    }

    /// Returns the steps from position `start` to the end of an epoch of `n` samples.
    pub fn steps(&self, n: u64, start: u64) -> u64 {
        let left = n.saturating_sub(start);
        match self.last_batch {
            LastBatch::Drop => left / self.step_samples(), // at least 1
            LastBatch::Pad | LastBatch::Exact => left.div_ceil(self.step_samples()),
        }
    }

    /// Returns the position at which the step after the one at `start` begins, in an epoch of `n`
    /// samples. `None`: it begins at position 0 of the next epoch.
    pub fn next(&self, n: u64, start: u64) -> Option<u64> {
        let next = start.saturating_add(self.step_samples());
        (self.steps(n, next) > 0).then_some(next)
    }

    /// Returns the positions of a rank in the step that begins at position `start`, of `n` samples.
    /// There are none if no step begins there, or if there is no such rank.
    pub fn positions(&self, n: u64, start: u64, rank: u32) -> Positions {
        if rank >= self.world || self.steps(n, start) == 0 {
            return Positions { range: 0..0, n };
        }
        let (rank, left) = (u64::from(rank), n.saturating_sub(start));
        if self.last_batch == LastBatch::Exact && left < self.step_samples() {
            // both factors have at most 32 bits: fewer samples are left than a step has
            let cut = |rank: u64| start + rank * left / u64::from(self.world);
            return Positions { range: cut(rank)..cut(rank + 1), n };
        }
        let first = start.saturating_add(rank * u64::from(self.batch)); // at most 2^63 + 2^32
        Positions { range: first..first.saturating_add(self.batch.into()), n }
    }
}

/// The positions that a rank takes in a step, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Positions {
    /// From `n` on, positions are those from the epoch's begin on.
    range: Range<u64>,
    n: u64,
}

impl Iterator for Positions {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.range.next()?.checked_rem(self.n)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
}
