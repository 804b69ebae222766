//! AVX2: look-ups element by element.

use super::generic::look_up;
use super::{Kernel, PaletteTables};
use crate::kernel::compile::implement;
use crate::kernel::cpu::Avx2;

implement!(Avx2: Kernel {
    fn look_up(tables: &PaletteTables<'_>, first: usize, numbers: &[u8], out: &mut [u8]) -> bool => { look_up }
});
