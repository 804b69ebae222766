//! Costs of groups of bins in classes, from which encoders choose classes.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod generic;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use super::{BINS, CLASSES};
use crate::kernel::implementation::{Implementation, implementations};

/// The number of times that each bin occurs in a group.
pub type GroupCounts = [u16; BINS];

/// The cost of each bin in each class: integers, so that sums below 2^24 are exact in any order.
pub type BinCosts = [[f32; CLASSES]; BINS];

/// The costs of a group in each class.
pub type ClassSums = [f32; CLASSES];

/// The kernels of one instruction set. Both slices are equally long.
pub trait Kernel: Sync {
    /// See [`GroupCosts::add`].
    fn add(&self, costs: &BinCosts, groups: &[GroupCounts], sums: &mut [ClassSums]);
}

/// One implementation of costs.
pub type GroupCosts = Implementation<dyn Kernel>;

impl GroupCosts {
    /// Adds the costs of each group to `sums`, which has an entry for each.
    ///
    /// If a caller breaks this, only the groups that both have are done.
    pub fn add(&self, costs: &BinCosts, groups: &[GroupCounts], sums: &mut [ClassSums]) {
        let count = groups.len().min(sums.len());
        // in bounds: `count` is the lesser of both
        self.kernel.add(costs, &groups[..count], &mut sums[..count]);
    }
}

implementations!(Kernel);
