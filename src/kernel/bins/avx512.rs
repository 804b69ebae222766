//! AVX-512: as AVX2.

use super::generic::groups;
use super::{BinModel, Coder, GROUP, Kernel};
use crate::kernel::compile::implement;
use crate::kernel::cpu::{Avx2, Avx512};

implement!(Avx512: Kernel {
    fn groups(model: &BinModel, classes: &[u8], coder: &mut Coder<'_>, out: &mut [[[u8; 2]; GROUP]]) => { as_avx2 }
});

#[inline(always)]
fn as_avx2(token: Avx512, model: &BinModel, classes: &[u8], coder: &mut Coder<'_>, out: &mut [[[u8; 2]; GROUP]]) {
    groups(Avx2::from(token), model, classes, coder, out);
}
