//! Encodes the blocks that the kernels of [`bins`](super) decode.
//!
//! Encoding does the opposite of each step of decoding, from the last group to the first, and
//! writes the stream from its end to its start.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod coder;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod generic;
mod model;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use super::{BINS, BinModel, GROUP};
use crate::kernel::implementation::{Implementation, implementations};
use coder::Group;
pub use coder::{Coder, MOST_BYTES, SLACK};
pub use model::EncoderModel;

/// The kernels of one instruction set.
pub trait Kernel: Sync {
    /// Encodes groups before the last one of a block, the last of them first. `bins` has as many
    /// groups as `windows`, and `classes` one for each. All bins are in the tables.
    fn groups(
        &self,
        model: &EncoderModel,
        classes: &[u8],
        windows: &[[[u8; 2]; GROUP]],
        bins: &[[u8; GROUP]],
        coder: &mut Coder<'_>,
    );
}

/// One implementation of the encoder.
pub type BinEncoding = Implementation<dyn Kernel>;

/// A model to encode with, and memory that encoding reuses.
#[derive(Default)]
pub struct BinEncoder {
    model: EncoderModel,
    stream: Vec<u8>,
}

impl BinEncoder {
    /// Sets the model of the blocks that follow.
    pub fn set_model(&mut self, model: &BinModel) {
        self.model.set(model);
    }
}

impl BinEncoding {
    /// Appends states and stream of a block to `stored`. `bins` has the bin of each window, and
    /// `classes` the class of each group.
    ///
    /// Returns `false`, and appends nothing, if a bin cannot be coded or has frequency 0 in its
    /// class, if a window lies outside its bin, or if an argument is too short.
    #[must_use]
    pub fn encode(
        &self,
        encoder: &mut BinEncoder,
        classes: &[u8],
        windows: &[[u8; 2]],
        bins: &[u8],
        stored: &mut Vec<u8>,
    ) -> bool {
        let BinEncoder { model, stream } = encoder;
        let needed = SLACK + windows.len() * MOST_BYTES;
        stream.resize(needed.max(stream.len()), 0);
        let mut coder = Coder::new([1 << 8; GROUP], stream);
        let is_encoded = self.encode_groups(model, classes, windows, bins, &mut coder).is_some();
        is_encoded && coder.finish(windows.len().min(GROUP), stored)
    }

    /// Encodes all groups of a block. Returns `None` if an argument is too short, or a bin is not
    /// in the tables.
    fn encode_groups(
        &self,
        model: &EncoderModel,
        classes: &[u8],
        windows: &[[u8; 2]],
        bins: &[u8],
        coder: &mut Coder<'_>,
    ) -> Option<()> {
        // without a branch for each, so that the compiler uses vectors
        let most = bins.iter().fold(0, |most, &bin| bin.max(most));
        if bins.len() != windows.len() || usize::from(most) >= model.bin_count() {
            return None;
        }
        let Some(before) = windows.len().checked_sub(1) else { return Some(()) };
        let whole = before / GROUP;
        let (windows, last_windows) = windows.split_at_checked(whole * GROUP)?;
        let (bins, last_bins) = bins.split_at_checked(whole * GROUP)?;
        let (classes, &last_class) = (classes.get(..whole)?, classes.get(whole)?);
        let last = Group { model, class: last_class, windows: last_windows, bins: last_bins, is_last: true };
        last.encode(coder);
        self.kernel.groups(model, classes, windows.as_chunks().0, bins.as_chunks().0, coder);
        Some(())
    }
}

implementations!(Kernel);
