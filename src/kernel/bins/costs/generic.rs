//! Loops that the compiler makes vectors of.

use super::{BinCosts, ClassSums, GroupCounts};
use crate::kernel::bins::CLASSES;

/// Bins whose costs are added together.
const QUAD: usize = 4;

/// See [`Kernel::add`](super::Kernel::add). Four bins are in one vector.
#[inline(always)]
pub(super) fn add<T>(_: T, costs: &BinCosts, groups: &[GroupCounts], sums: &mut [ClassSums]) {
    for (group, sums) in groups.iter().zip(sums) {
        let counts = group.map(f32::from);
        let mut all = [0.0; CLASSES * QUAD];
        for (costs, counts) in costs.as_chunks::<QUAD>().0.iter().zip(counts.as_chunks::<QUAD>().0) {
            let costs = costs.as_flattened();
            for (i, (all, cost)) in all.iter_mut().zip(costs).enumerate() {
                *all += cost * counts[i / CLASSES]; // in bounds
            }
        }
        for quad in all.as_chunks::<CLASSES>().0 {
            sums.iter_mut().zip(quad).for_each(|(sum, cost)| *sum += cost);
        }
    }
}
