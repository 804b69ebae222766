//! Windows coded by bins, with 64 interleaved rANS states (chapter 5.13 of the specification).
//!
//! Element `i` of each group of 64 is coded by state `i`, so that a vector decodes a group at once.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod block;
mod coder;
pub mod costs;
pub mod encode;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod generic;
mod model;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use super::implementation::{Implementation, implementations};
use block::Started;
pub use block::{CodedBlock, Groups};
pub use model::{BINS, BinModel, CLASSES, GROUP};

/// The kernels of one instruction set.
pub trait Kernel: Sync {
    /// Decodes groups.
    fn groups(&self, model: &BinModel, groups: Groups<'_, '_>);

    /// Decodes groups of two blocks, as many of each. A step of a block has to wait for the one
    /// before it. Meanwhile, the processor does a step of the other block.
    fn groups_of_two(&self, model: &BinModel, blocks: [Groups<'_, '_>; 2]) {
        for groups in blocks {
            self.groups(model, groups);
        }
    }
}

/// One implementation of bins.
pub type Bins = Implementation<dyn Kernel>;

impl Bins {
    /// Decodes the first windows of a block.
    ///
    /// Returns `false` if the block is malformed, except for class codes. If `out` has
    /// fewer than `count` windows, only what they need is checked. If `out` has more, or `classes`
    /// has too few, the result is `false`.
    #[must_use]
    pub fn decode(&self, model: &BinModel, block: CodedBlock<'_>) -> bool {
        let is_empty = block.out.is_empty();
        is_empty || self.finish(model, Started::new(block))
    }

    /// Decodes two blocks as [`decode`](Self::decode) does, in less time if they have as many
    /// elements.
    #[must_use]
    pub fn decode_two(&self, model: &BinModel, blocks: [CodedBlock<'_>; 2]) -> [bool; 2] {
        let are_empty = blocks.each_ref().map(|block| block.out.is_empty());
        let mut started = blocks.map(Started::new);
        if let [Some(a), Some(b)] = &mut started {
            let count = a.groups.len().min(b.groups.len());
            self.kernel.groups_of_two(model, [a.take(count), b.take(count)]);
        }
        let [a, b] = started.map(|started| self.finish(model, started));
        [are_empty[0] || a, are_empty[1] || b] // in bounds: two
    }

    fn finish(&self, model: &BinModel, started: Option<Started<'_>>) -> bool {
        let decode = |groups: Groups<'_, '_>| self.kernel.groups(model, groups);
        started.and_then(|started| started.finish(model, decode)).is_some()
    }
}

implementations!(Kernel);
