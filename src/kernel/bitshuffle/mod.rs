//! The bit-shuffle: `n` elements of `w` bytes become `8 * w` bit planes (chapter 5.4 of the
//! specification).
//!
//! Let `m = n / 8`, rounded down. Plane `p = 8 * byte + bit` is the `m` bytes from offset `p * m`
//! on. Bit `t` of byte `i` of the plane is bit `p` of element `8 * i + t`. Elements are
//! little-endian, and bit 0 is the least significant. The last `n % 8` elements follow the planes
//! unchanged, so that the output is as long as the input.
//!
//! Eight elements that share one byte of every plane are a *group*.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod generic;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use super::Width;
use super::implementation::{Implementation, implementations};
use super::width::whole_elements;

/// The kernels of one instruction set. Both buffers have the same whole number of elements.
pub trait Kernel: Sync {
    /// See [`BitShuffle::shuffle`].
    fn shuffle(&self, width: Width, src: &[u8], dst: &mut [u8]);
    /// See [`BitShuffle::unshuffle`].
    fn unshuffle(&self, width: Width, src: &[u8], dst: &mut [u8]);
}

/// One implementation of the bit-shuffle.
pub type BitShuffle = Implementation<dyn Kernel>;

impl BitShuffle {
    /// Splits the elements of `src` into bit planes in `dst`.
    ///
    /// Both buffers have the same number of bytes, which is a multiple of the width, and need no
    /// alignment. If a caller breaks this, only the whole elements that fit in both are shuffled,
    /// and the rest of `dst` keeps its bytes (debug builds assert).
    pub fn shuffle(&self, width: Width, src: &[u8], dst: &mut [u8]) {
        let (src, dst) = whole_elements(width, src, dst);
        self.kernel.shuffle(width, src, dst);
    }

    /// Joins the bit planes of `src` to elements in `dst`: the inverse of
    /// [`shuffle`](Self::shuffle), under the same conditions.
    pub fn unshuffle(&self, width: Width, src: &[u8], dst: &mut [u8]) {
        let (src, dst) = whole_elements(width, src, dst);
        self.kernel.unshuffle(width, src, dst);
    }
}

implementations!(Kernel);
