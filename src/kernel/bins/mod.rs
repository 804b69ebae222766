//! Windows coded by bins, with 64 interleaved rANS states (chapter 5.13 of the specification).
//!
//! Element `i` of each group of 64 is coded by state `i`, so that a vector decodes a group at once.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod coder;
mod encoder;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod generic;
mod model;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use super::implementation::{Implementation, implementations};
pub use coder::Coder;
pub use encoder::BinEncoder;
pub use model::{BINS, BinModel, CLASSES, GROUP};

/// The kernels of one instruction set.
pub trait Kernel: Sync {
    /// Decodes the groups before the last one of a block. `out` has whole groups and `classes` one
    /// for each.
    fn groups(&self, model: &BinModel, classes: &[u8], coder: &mut Coder<'_>, out: &mut [[[u8; 2]; GROUP]]);
}

/// One implementation of bins.
pub type Bins = Implementation<dyn Kernel>;

impl Bins {
    /// Decodes the first windows of a block of `count` elements, to `out`. Each is two bytes, the
    /// lower one first.
    ///
    /// `classes` has one for each group of the block, and `stored` begins with the states. Returns
    /// `false` if the block is malformed, except for class codes. If `out` has fewer than
    /// `count` windows, only what they need is checked. If `out` has more, or `classes` has too
    /// few, the result is `false`.
    #[must_use]
    pub fn decode(&self, model: &BinModel, classes: &[u8], count: usize, stored: &[u8], out: &mut [[u8; 2]]) -> bool {
        out.is_empty() || self.decode_some(model, classes, count, stored, out).is_some()
    }

    /// See [`decode`](Self::decode). `out` is not empty.
    fn decode_some(
        &self,
        model: &BinModel,
        classes: &[u8],
        count: usize,
        stored: &[u8],
        out: &mut [[u8; 2]],
    ) -> Option<()> {
        let mut coder = Coder::new(count, stored)?;
        let last = count.checked_sub(1)? / GROUP;
        let whole = last.min(out.len() / GROUP);
        let (groups, rest) = out.split_at_mut_checked(whole * GROUP)?;
        self.kernel.groups(model, classes.get(..whole)?, &mut coder, groups.as_chunks_mut().0);
        if let Some(wanted) = rest.len().checked_sub(1) {
            let class = *classes.get(whole)?;
            let mut group = [[0; 2]; GROUP];
            if whole < last {
                self.kernel.groups(model, &[class], &mut coder, std::slice::from_mut(&mut group));
            } else {
                let elements = group.get_mut(..count - last * GROUP)?;
                elements.get(wanted)?;
                coder::last_group(model, class, &mut coder, elements)?;
            }
            rest.iter_mut().zip(group).for_each(|(to, from)| *to = from);
        }
        (!coder.is_cut).then_some(())
    }
}

implementations!(Kernel);
