//! Chapter 7 of `ORDER.md`: proof of which samples were taken.

use crate::order::{Purpose, key};

/// A sum over all samples that were delivered. It does not depend on their order, nor on how they
/// were divided. If the receipts of all ranks have the same sum in two jobs of a view, these have
/// taken the same samples in the same epochs, but for a chance of one in 2^64. It is no protection
/// against somebody who searches for such sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Receipt(pub u64);

impl Receipt {
    /// Adds a sample of the view, which was delivered in an epoch. Cost: 10 ns.
    #[inline]
    pub fn add(&mut self, sample: u64, epoch: u64) {
        self.0 = self.0.wrapping_add(key(Purpose::Receipt, [sample, epoch]));
    }

    /// Returns the receipt of two ranks, or of a job before and after it went on.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }
}
