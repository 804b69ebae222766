//! Chapter 8 of `ORDER.md`: other samples instead of damaged ones.

use crate::order::{Purpose, key};

/// The most attempts to find a substitute.
pub(crate) const ATTEMPTS: u64 = 64;

/// Returns the sample of a view of `n` samples that takes the place of sample `v`, which is
/// damaged: that of the first attempt whose sample is not damaged. Attempts are counted from 0, and
/// there are 64. Every rank finds the same. `None` if the view is empty.
pub fn substitute(n: u64, seed: u64, epoch: u64, v: u64, attempt: u64) -> Option<u64> {
    key(Purpose::Substitute, [seed, epoch, v, attempt]).checked_rem(n)
}
