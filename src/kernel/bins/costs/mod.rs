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

use super::BINS;
use crate::kernel::implementation::{Implementation, implementations};

/// The number of times that each bin occurs in a group.
pub type GroupCounts = [u16; BINS];

/// The cost of each bin in each of `N` classes: integers, so that sums below 2^24 are exact in any
/// order.
pub type BinCosts<const N: usize> = [[f32; N]; BINS];

/// The kernels of one instruction set. Both slices are equally long.
pub trait Kernel: Sync {
    /// See [`GroupCosts::add_4`].
    fn add_4(&self, costs: &BinCosts<4>, groups: &[GroupCounts], sums: &mut [[f32; 4]]);
    /// See [`GroupCosts::add_16`].
    fn add_16(&self, costs: &BinCosts<16>, groups: &[GroupCounts], sums: &mut [[f32; 16]]);
}

/// One implementation of costs.
pub type GroupCosts = Implementation<dyn Kernel>;

impl GroupCosts {
    /// Adds the costs of each group in four classes to `sums`, which has an entry for each.
    ///
    /// If a caller breaks this, only the groups that both have are done.
    pub fn add_4(&self, costs: &BinCosts<4>, groups: &[GroupCounts], sums: &mut [[f32; 4]]) {
        let count = groups.len().min(sums.len());
        // in bounds: `count` is the lesser of both
        self.kernel.add_4(costs, &groups[..count], &mut sums[..count]);
    }

    /// Does the same in 16 classes.
    pub fn add_16(&self, costs: &BinCosts<16>, groups: &[GroupCounts], sums: &mut [[f32; 16]]) {
        let count = groups.len().min(sums.len());
        // in bounds: `count` is the lesser of both
        self.kernel.add_16(costs, &groups[..count], &mut sums[..count]);
    }
}

implementations!(Kernel);
