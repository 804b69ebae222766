//! The definition in code.

use super::{BinCosts, ClassSums, GroupCounts, Kernel};
use crate::kernel::cpu::Scalar;

impl Kernel for Scalar {
    fn add(&self, costs: &BinCosts, groups: &[GroupCounts], sums: &mut [ClassSums]) {
        for (group, sums) in groups.iter().zip(sums) {
            for (costs, &count) in costs.iter().zip(group) {
                let count = f32::from(count);
                sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost * count);
            }
        }
    }
}
