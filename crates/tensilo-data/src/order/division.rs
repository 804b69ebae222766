//! Steps and ranks: which positions of an epoch each rank takes (chapter 4 of `ORDER.md`).
//!
//! A step that starts at position `p` takes the positions `p .. p + G`, with `G = batch_size *
//! world_size`. To divide them, they are listed stream by stream, and rank `r` takes the entries
//! `r * batch_size .. (r + 1) * batch_size` of this list. The next step starts at `p + G`. All
//! ranks thus have the same number of steps, and a rank computes its positions without
//! communicating with the other ranks. The list is not built: the number of positions of a stream
//! in a step is the difference of two divisions.
//!
//! Streams are listed in the order of their reversed bits. A step that is shorter than the number
//! of streams has consecutive streams, and the first of them would all be in one part of a list in
//! ascending order. With their bits reversed, consecutive streams are spread evenly over the list,
//! so a rank takes samples of the same few streams in every step.
//!
//! Only the last step of an epoch can have too few positions. [`LastBatch`] says what happens to
//! it: it is left out, filled from the start of the epoch, or divided evenly among the ranks. Steps
//! can start at any position, because a job that resumes with a different `batch_size` or
//! `world_size` continues where the old one stopped.

use super::EpochOrder;
use crate::error::{DataError, Result};
use std::fmt;

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

    /// Replaces `positions` with the positions of a rank in the step of `order` that starts at
    /// position `start`, in ascending order. With [`LastBatch::Pad`], positions that wrap around to
    /// the start of the epoch come last. There are no positions if no step starts there, or if the
    /// rank does not exist.
    ///
    /// Fails if there is not enough memory. Cost: about 1 ns for each stream, and 5 ns for each
    /// position; allocates only if the capacity is too low.
    pub fn positions(&self, order: &EpochOrder, start: u64, rank: u32, positions: &mut Vec<u64>) -> Result<()> {
        positions.clear();
        let n = order.sample_count();
        if rank >= self.world_size || self.steps(n, start) == 0 {
            return Ok(());
        }
        let (left, all) = (n.saturating_sub(start), self.step_samples());
        let length = if self.last_batch == LastBatch::Exact { left.min(all) } else { all };
        // no overflow: both factors have at most 32 bits, unless the quotient is exact
        let cut = |rank: u32| match length == all {
            true => u64::from(rank) * u64::from(self.batch_size),
            false => u64::from(rank) * length / u64::from(self.world_size),
        };
        let (first, end) = (cut(rank), cut(rank + 1)); // no overflow: the rank is below `world_size`
        let count = usize::try_from(end - first).unwrap_or(usize::MAX); // ascending
        if positions.try_reserve_exact(count).is_err() {
            return Err(DataError::BadArgument(format!("not enough memory for a batch of {count} samples")));
        }
        let step = start..start.saturating_add(length); // at most 2^63 + 2^32
        let mut before = 0; // the number of listed positions before this stream
        for stream in order.listed_streams() {
            let of_stream = order.in_stream(stream, &step);
            let ended = before + (of_stream.end - of_stream.start);
            let skip = first.saturating_sub(before).min(ended - before);
            let keep = end.clamp(before, ended) - before;
            let part = (of_stream.start + skip)..(of_stream.start + keep);
            positions.extend(part.map(|index| order.position_in_stream(stream, index)));
            before = ended;
            if before >= end {
                break;
            }
        }
        positions.sort_unstable();
        positions.iter_mut().for_each(|position| *position = position.checked_rem(n).unwrap_or(0));
        Ok(())
    }
}
