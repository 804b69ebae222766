//! Loops that the compiler makes vectors of.

use super::{BinCosts, GroupCounts};

/// Bins whose costs in four classes are added together.
const QUAD: usize = 4;

/// See [`Kernel::add_4`](super::Kernel::add_4). Four bins are in one vector.
#[inline(always)]
pub(super) fn add_4<T>(_: T, costs: &BinCosts<4>, groups: &[GroupCounts], sums: &mut [[f32; 4]]) {
    for (group, sums) in groups.iter().zip(sums) {
        let counts = group.map(f32::from);
        let mut all = [0.0; 4 * QUAD];
        for (costs, counts) in costs.as_chunks::<QUAD>().0.iter().zip(counts.as_chunks::<QUAD>().0) {
            let costs = costs.as_flattened();
            for (i, (all, cost)) in all.iter_mut().zip(costs).enumerate() {
                *all += cost * counts[i / 4]; // in bounds: 16 costs
            }
        }
        for quad in all.as_chunks::<4>().0 {
            sums.iter_mut().zip(quad).for_each(|(sum, cost)| *sum += cost);
        }
    }
}

/// See [`Kernel::add_16`](super::Kernel::add_16).
#[inline(always)]
pub(super) fn add_16<T>(_: T, costs: &BinCosts<16>, groups: &[GroupCounts], sums: &mut [[f32; 16]]) {
    for (group, sums) in groups.iter().zip(sums) {
        let counts = group.map(f32::from);
        // two sums of half of the bins, which do not wait for each other
        let [mut all, mut others] = [*sums, [0.0; 16]];
        let pairs = costs.as_chunks::<2>().0.iter().zip(counts.as_chunks::<2>().0);
        for ([costs, other_costs], [count, other_count]) in pairs {
            all.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost * count);
            others.iter_mut().zip(other_costs).for_each(|(sum, cost)| *sum += cost * other_count);
        }
        all.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
        *sums = all;
    }
}
