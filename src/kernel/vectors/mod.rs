//! Loads and stores of vectors: the only code of the kernels that uses pointers.
//!
//! Buffers need no alignment. Each function enables the features that it needs, so that only code
//! compiled for the instruction set can call it without `unsafe`.

#[cfg(target_arch = "aarch64")]
pub(super) mod aarch64;
#[cfg(target_arch = "x86_64")]
pub(super) mod x86_64;

/// Offsets of the rows of a tile, of which 16 bytes each are loaded and stored.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub struct RowOffsets {
    offsets: [usize; 32],
    /// At least 16 more than each offset, or `usize::MAX`, which no slice has bytes for.
    end: usize,
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
impl RowOffsets {
    /// Returns the offsets of `count` rows, 1 to 32, that begin `stride` bytes apart. All rows
    /// beyond have that of the last.
    #[inline(always)]
    pub fn new(stride: usize, count: usize) -> Self {
        // if `end` is below the maximum, then no sum and no product is more than it
        let last = count.clamp(1, 32) - 1;
        let mut offsets = [0; 32];
        for (i, offset) in offsets.iter_mut().enumerate() {
            *offset = stride.saturating_mul(i.min(last));
        }
        Self { offsets, end: stride.saturating_mul(last).saturating_add(16) }
    }
}
