//! Steps and ranks: which positions of an epoch each rank takes (chapter 4 of `ORDER.md`).
//!
//! A step that starts at position `p` takes `G = batch * world` positions, and rank `r` takes `p +
//! r * batch .. p + (r + 1) * batch`. The next step starts at `p + G`. All ranks thus have the same
//! number of steps, and a rank computes its positions without asking the others.
//!
//! Only the last step of an epoch can lack positions, and [`LastBatch`] says how it ends: leave it
//! out, fill it from the start of the epoch, or divide the rest evenly. Steps may start at any
//! position, because a job that resumes with a different `batch` or `world` continues where the old
//! one stopped.

use crate::error::{DataError, Result};
use std::fmt;
use std::ops::Range;

/// How the last step of an epoch ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LastBatch {
    /// Leaves out the samples that do not fill a step.
    #[default]
    Drop,
    /// Fills the step with samples from the start of the epoch.
    Pad,
    /// Divides the remaining samples evenly among the ranks. Some ranks may get none.
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

/// The maximum number of samples in a step.
const MAX_STEP_SAMPLES: u64 = 1 << 32;

impl Division {
    /// Divides steps among `world` ranks, with `batch` samples for each. Fails if one of them is 0,
    /// or if their product exceeds 2^32.
    pub fn new(batch: u32, world: u32, last_batch: LastBatch) -> Result<Self> {
        let step = u64::from(batch) * u64::from(world); // below 2^64
        if (1..=MAX_STEP_SAMPLES).contains(&step) {
            return Ok(Self { batch, world, last_batch });
        }
        let message = format!("{world} ranks with batches of {batch} samples: expected 1 to 2^32 samples in a step");
        Err(DataError::BadArgument(message))
    }

    /// Returns the number of samples that each rank takes in a step.
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

    /// Returns the number of samples that all ranks take in a step.
    pub fn step_samples(&self) -> u64 {
        u64::from(self.batch) * u64::from(self.world) // below 2^64
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
    /// If that is position 0 of the next epoch, returns `None`.
    pub fn next(&self, n: u64, start: u64) -> Option<u64> {
        let next = start.saturating_add(self.step_samples());
        (self.steps(n, next) > 0).then_some(next)
    }

    /// Returns the positions of a rank in the step that starts at position `start`, in an epoch of
    /// `n` samples. Returns no positions if no step starts there, or if there is no such rank.
    pub fn positions(&self, n: u64, start: u64, rank: u32) -> Positions {
        if rank >= self.world || self.steps(n, start) == 0 {
            return Positions { range: 0..0, n };
        }
        let (rank, left) = (u64::from(rank), n.saturating_sub(start));
        if self.last_batch == LastBatch::Exact && left < self.step_samples() {
            // no overflow: fewer samples remain than a step has, so both factors have at most 32
            // bits
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
