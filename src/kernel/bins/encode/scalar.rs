//! The definition in code.

use super::coder::Group;
use super::{Coder, EncoderModel, GROUP, Kernel};
use crate::kernel::cpu::Scalar;

impl Kernel for Scalar {
    fn groups(
        &self,
        model: &EncoderModel,
        classes: &[u8],
        windows: &[[[u8; 2]; GROUP]],
        bins: &[[u8; GROUP]],
        coder: &mut Coder<'_>,
    ) {
        for ((windows, bins), &class) in windows.iter().zip(bins).zip(classes).rev() {
            Group { model, class, windows, bins, is_last: false }.encode(coder);
        }
    }
}
