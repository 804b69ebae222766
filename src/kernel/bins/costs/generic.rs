//! Loops that the compiler makes vectors of.

use super::{BinCosts, GroupCounts};
use crate::kernel::bins::BINS;

/// Bins whose costs in a class are added together.
const LANES: usize = 16;

/// See [`Kernel::add_4`](super::Kernel::add_4). A vector has the costs of bins in one class.
#[inline(always)]
pub(super) fn add_4<T>(_: T, costs: &BinCosts<4>, groups: &[GroupCounts], sums: &mut [[f32; 4]]) {
    // in bounds: classes and bins
    let by_class: [[f32; BINS]; 4] = std::array::from_fn(|class| std::array::from_fn(|bin| costs[bin][class]));
    for (group, sums) in groups.iter().zip(sums) {
        let counts = group.map(f32::from);
        for (sum, costs) in sums.iter_mut().zip(&by_class) {
            let mut lanes = [0.0; LANES];
            for (costs, counts) in costs.as_chunks::<LANES>().0.iter().zip(counts.as_chunks::<LANES>().0) {
                lanes.iter_mut().zip(costs.iter().zip(counts)).for_each(|(lane, (cost, count))| *lane += cost * count);
            }
            let eight: [f32; 8] = std::array::from_fn(|i| lanes[i] + lanes[i + 8]); // in bounds: 16
            let four: [f32; 4] = std::array::from_fn(|i| eight[i] + eight[i + 4]); // in bounds: 8
            *sum += (four[0] + four[2]) + (four[1] + four[3]); // in bounds
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
