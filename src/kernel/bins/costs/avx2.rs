//! AVX2: loops that the compiler makes vectors of.

use super::generic::add;
use super::{BinCosts, ClassSums, GroupCounts, Kernel};
use crate::kernel::compile::implement;
use crate::kernel::cpu::Avx2;

implement!(Avx2: Kernel {
    fn add(costs: &BinCosts, groups: &[GroupCounts], sums: &mut [ClassSums]) => { add }
});
