//! Steps and ranks: which positions of an epoch each rank takes (chapter 4 of `ORDER.md`).
//!
//! A step that starts at position `p` takes `G = batch_size * world_size` positions, and rank `r`
//! takes `p + r * batch_size .. p + (r + 1) * batch_size`. The next step starts at `p + G`. All
//! ranks thus have the same number of steps, and a rank computes its positions without
//! communicating with the other ranks.
//!
//! Only the last step of an epoch can have too few positions. [`LastBatch`] says what happens to
//! it: it is left out, filled from the start of the epoch, or divided evenly among the ranks. Steps
//! can start at any position, because a job that resumes with a different `batch_size` or
//! `world_size` continues where the old one stopped.

use crate::error::{DataError, Result};
use std::fmt;
use std::ops::Range;

/// What happens to an incomplete last step of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LastBatch {
    /// Leaves out the samples that do not fill a step.
    #[default]
    Drop,
    /// Fills the step with samples from the start of the epoch.
    Pad,
    /// Divides the remaining samples evenly among the ranks. Some ranks can get no samples.
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
    batch_size: u32,
    world_size: u32,
    last_batch: LastBatch,
}

/// The maximum number of samples in a step.
const MAX_STEP_SAMPLES: u64 = 1 << 32;

impl Division {
    /// Divides steps among `world_size` ranks, with `batch_size` samples for each. Fails if either
    /// is 0, or if their product exceeds 2^32.
    pub fn new(batch_size: u32, world_size: u32, last_batch: LastBatch) -> Result<Self> {
        let step = u64::from(batch_size) * u64::from(world_size); // below 2^64
        if (1..=MAX_STEP_SAMPLES).contains(&step) {
            return Ok(Self { batch_size, world_size, last_batch });
        }
        let message =
            format!("{world_size} ranks with batches of {batch_size} samples: expected 1 to 2^32 samples in a step");
        Err(DataError::BadArgument(message))
    }

    /// Returns the number of samples that each rank takes in a step.
    pub fn batch_size(&self) -> u32 {
        self.batch_size
    }

    /// Returns the number of ranks.
    pub fn world_size(&self) -> u32 {
        self.world_size
    }

    /// Returns what happens to an incomplete last step of an epoch.
    pub fn last_batch(&self) -> LastBatch {
        self.last_batch
    }

    /// Returns the number of samples that all ranks take in a step.
    pub fn step_samples(&self) -> u64 {
        u64::from(self.batch_size) * u64::from(self.world_size) // below 2^64
    }

    /// Returns the number of steps from position `start` to the end of an epoch of `n` samples.
    pub fn steps(&self, n: u64, start: u64) -> u64 {
        let left = n.saturating_sub(start);
        match self.last_batch {
            LastBatch::Drop => left / self.step_samples(), // the divisor is at least 1
            LastBatch::Pad | LastBatch::Exact => left.div_ceil(self.step_samples()),
        }
    }

    /// Returns the start position of the step after the one at `start`, in an epoch of `n` samples.
    /// Returns `None` if there are no further steps in the epoch.
    pub fn next(&self, n: u64, start: u64) -> Option<u64> {
        let next = start.saturating_add(self.step_samples());
        (self.steps(n, next) > 0).then_some(next)
    }

    /// Returns the positions of a rank in the step that starts at position `start`, in an epoch of
    /// `n` samples. Returns no positions if no step starts there, or if the rank does not exist.
    pub fn positions(&self, n: u64, start: u64, rank: u32) -> Positions {
        if rank >= self.world_size || self.steps(n, start) == 0 {
            return Positions { range: 0..0, n };
        }
        let (rank, left) = (u64::from(rank), n.saturating_sub(start));
        if self.last_batch == LastBatch::Exact && left < self.step_samples() {
            // no overflow: fewer samples remain than a step has, so both factors have at most 32
            // bits
            let cut = |rank: u64| start + rank * left / u64::from(self.world_size);
            return Positions { range: cut(rank)..cut(rank + 1), n };
        }
        let first = start.saturating_add(rank * u64::from(self.batch_size)); // at most 2^63 + 2^32
        Positions { range: first..first.saturating_add(self.batch_size.into()), n }
    }
}

/// The positions that a rank takes in a step, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Positions {
    /// A value of `n` or more wraps around to the start of the epoch.
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
