//! NEON: look-ups element by element.

use super::generic::look_up;
use super::{Kernel, PaletteTables};
use crate::kernel::compile::implement;
use crate::kernel::cpu::Neon;

implement!(Neon: Kernel {
    fn look_up(tables: &PaletteTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool => { look_up }
});
