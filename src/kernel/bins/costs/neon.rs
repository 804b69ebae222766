//! NEON: loops that the compiler makes vectors of.

use super::generic::{add_4, add_16};
use super::{BinCosts, GroupCounts, Kernel};
use crate::kernel::compile::implement;
use crate::kernel::cpu::Neon;

implement!(Neon: Kernel {
    fn add_4(costs: &BinCosts<4>, groups: &[GroupCounts], sums: &mut [[f32; 4]]) => { add_4 }
    fn add_16(costs: &BinCosts<16>, groups: &[GroupCounts], sums: &mut [[f32; 16]]) => { add_16 }
});
