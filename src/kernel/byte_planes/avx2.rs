//! AVX2.

use super::{Kernel, generic};
use crate::kernel::Width;
use crate::kernel::compile::implement;
use crate::kernel::cpu::Avx2;

implement!(Avx2: Kernel {
    fn join(width: Width, rotate: bool, low: &[&[u8]], top: &[u8], out: &mut [u8]) => { generic::join }
    fn split(width: Width, rotate: bool, elements: &[u8], low: &mut [&mut [u8]], top: &mut [u8]) => { generic::split }
    fn rotate_right(width: Width, data: &mut [u8]) => { generic::rotate_right }
});
