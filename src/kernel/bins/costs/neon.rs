//! NEON: loops that the compiler makes vectors of.

use super::generic::add;
use super::{BinCosts, ClassSums, GroupCounts, Kernel};
use crate::kernel::compile::implement;
use crate::kernel::cpu::Neon;

implement!(Neon: Kernel {
    fn add(costs: &BinCosts, groups: &[GroupCounts], sums: &mut [ClassSums]) => { add }
});
