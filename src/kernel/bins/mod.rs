//! Windows coded by bins, with 64 interleaved rANS states (chapter 5.13 of the specification).
//!
//! A *window* is the upper bits of a number, in two bytes. Its bin says between which powers of two
//! it lies above the start of the bin; the offset in the bin is coded by raw bits, of the state or
//! of the stream. Element `i` of each group of 64 is coded by state `i`, so that a vector decodes a
//! group at once: states are one group of lower bytes and one of upper bytes.
//!
//! [`decode`] and [`encode`] have the steps of both directions, in vectors of [`Lanes`]. Each step
//! of encoding undoes one of decoding, from the last group to the first. [`costs`] are what
//! encoders choose the classes of groups by.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod block;
pub mod costs;
mod decode;
pub mod encode;
#[cfg(target_arch = "aarch64")]
mod neon;

use super::dispatch::{Implementation, implementations};
pub use super::vectors::GROUP;
use super::vectors::Group;
use block::Started;
pub use block::{BINS, BinModel, CLASSES, CodedBlock, Groups};

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

/// Vectors of the states of a group, and of what the model says of its bins.
trait Lanes: Group {
    /// Loads lower and upper bytes of elements of two bytes each.
    fn load_pairs(self, pairs: &[[u8; 2]; GROUP]) -> [Self::Bytes; 2];
    /// Stores elements of two bytes each.
    fn store_pairs(self, low: Self::Bytes, high: Self::Bytes, to: &mut [[u8; 2]; GROUP]);
    /// Returns the entry of each byte in a table of 256.
    fn look_up_slot(self, table: &[u8; 256], slots: Self::Bytes) -> Self::Bytes;
    /// Returns the entry of each byte, which is below 64; below 32 unless `is_wide`.
    fn look_up_bin(self, table: &[u8; GROUP], bins: Self::Bytes, is_wide: bool) -> Self::Bytes;
    fn add(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Returns lower and upper bytes of `a * b + c`.
    fn multiply_add(self, a: Self::Bytes, b: Self::Bytes, c: Self::Bytes) -> [Self::Bytes; 2];

    /// Does the same, where `a` is the entry of each bin in `table`.
    #[inline(always)]
    fn look_up_multiply_add(
        self,
        table: &[u8; GROUP],
        bins: Self::Bytes,
        is_wide: bool,
        b: Self::Bytes,
        c: Self::Bytes,
    ) -> [Self::Bytes; 2] {
        self.multiply_add(self.look_up_bin(table, bins, is_wide), b, c)
    }

    /// Divides states, given by lower and upper bytes, whose quotients are below 256. Returns
    /// quotients and remainders. `reciprocals` are lower and upper bytes of those of the
    /// [model](encode::EncoderModel). Where a divisor is 0, any bytes are returned.
    fn divide(self, states: [Self::Bytes; 2], by: Self::Bytes, reciprocals: [Self::Bytes; 2]) -> [Self::Bytes; 2];
    /// Returns the lowest bits of each state, at most 8, and lower and upper bytes of the state
    /// without them. The lower four bits of `counts` are the numbers of bits.
    fn take_bits(self, lower: Self::Bytes, upper: Self::Bytes, counts: Self::Bytes) -> [Self::Bytes; 3];
    /// Selects the bytes whose top bit is set.
    fn tops(self, bytes: Self::Bytes) -> Self::Mask;
    /// Selects the bytes where `a <= b`.
    fn at_most(self, a: Self::Bytes, b: Self::Bytes) -> Self::Mask;
}

/// For each number of bits, a mask of them.
const MASK: [u8; 16] = [0, 1, 3, 7, 15, 31, 63, 127, 255, 0, 0, 0, 0, 0, 0, 0];
