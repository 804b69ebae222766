//! The definition in code.

use super::{BinCosts, GroupCounts, Kernel};
use crate::kernel::cpu::Scalar;

impl Kernel for Scalar {
    fn add_4(&self, costs: &BinCosts<4>, groups: &[GroupCounts], sums: &mut [[f32; 4]]) {
        add(costs, groups, sums);
    }

    fn add_16(&self, costs: &BinCosts<16>, groups: &[GroupCounts], sums: &mut [[f32; 16]]) {
        add(costs, groups, sums);
    }
}

fn add<const N: usize>(costs: &BinCosts<N>, groups: &[GroupCounts], sums: &mut [[f32; N]]) {
    for (group, sums) in groups.iter().zip(sums) {
        for (costs, &count) in costs.iter().zip(group) {
            let count = f32::from(count);
            sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost * count);
        }
    }
}
