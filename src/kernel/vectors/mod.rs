//! Vectors: the only code of the kernels that uses pointers, and operations on 64 bytes.
//!
//! Buffers need no alignment. Loads and stores take arrays, or check the length of a slice, so a
//! kernel cannot read or write outside of its arguments. Each function of `x86_64` and `aarch64`
//! enables the features that it needs, so only code that is compiled for the instruction set can
//! call it without `unsafe`.
//!
//! Families that work on groups of 64 elements share the trait [`Group`]. Operations that only one
//! family needs are in a trait of that family.

#[cfg(target_arch = "aarch64")]
pub(super) mod aarch64;
mod group;
#[cfg(target_arch = "x86_64")]
pub(super) mod x86_64;

pub use group::GROUP;
pub(super) use group::{Group, WINDOW};

/// The offsets of the rows of a tile. Loads and stores access 16 bytes of each row.
pub struct RowOffsets {
    offsets: [usize; 32],
    /// At least 16 more than each offset, or `usize::MAX`, which exceeds the length of any slice.
    end: usize,
}

impl RowOffsets {
    /// Returns the offsets of `count` rows (1 to 32) that begin `stride` bytes apart. All further
    /// rows have the offset of the last row.
    #[inline(always)]
    pub fn new(stride: usize, count: usize) -> Self {
        // if a product or the sum overflows, `end` is the maximum
        let last = count.clamp(1, 32) - 1;
        let mut offsets = [0; 32];
        for (i, offset) in offsets.iter_mut().enumerate() {
            *offset = stride.saturating_mul(i.min(last));
        }
        Self { offsets, end: stride.saturating_mul(last).saturating_add(16) }
    }
}

/// Prefetches bytes into the cache. Callers pass bytes that will be read soon. Cost: about one
/// cycle per 64 bytes. Does nothing on targets other than x86-64, because Rust has no stable
/// prefetch there.
#[inline]
pub fn prefetch_cache_lines(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, and a prefetch of any address has no effect that a program
        // can see.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}
