//! The bit-shuffle: `n` elements of `w` bytes become `8 * w` bit planes (chapter 5.4 of the
//! specification).
//!
//! Let `m = n / 8`, rounded down. Plane `p = 8 * byte + bit` is the `m` bytes from offset `p * m`
//! on. Bit `t` of byte `i` of the plane is bit `p` of element `8 * i + t`. Elements are
//! little-endian, and bit 0 is the least significant. The last `n % 8` elements follow the planes
//! unchanged, so that the output is as long as the input.
//!
//! Eight elements that share one byte of every plane are a *group*. A group is 8 x 8 bits for each
//! byte of an element, which are transposed: in a word by the definition, in [`lanes`] of 16 bytes
//! by AVX2 and NEON, and in one instruction by AVX-512.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
mod lanes;

use super::Width;
use super::dispatch::{Implementation, Scalar, implementations};
use super::elements::{Word, for_width, whole_elements};

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

// ---- the definition in code

// The other implementations call these for short buffers. They are not compiled anew for each.
impl Kernel for Scalar {
    #[inline(never)]
    fn shuffle(&self, width: Width, src: &[u8], dst: &mut [u8]) {
        for_width!(width, W => shuffle::<{ W::BYTES }>(src, dst));
    }

    #[inline(never)]
    fn unshuffle(&self, width: Width, src: &[u8], dst: &mut [u8]) {
        for_width!(width, W => unshuffle::<{ W::BYTES }>(src, dst));
    }
}

/// Returns the groups in a buffer of `len` bytes, which is also the length of a plane in bytes.
const fn group_count(width_bytes: usize, len: usize) -> usize {
    len / (8 * width_bytes)
}

/// Copies the elements after the last whole group.
fn copy_tail(width_bytes: usize, src: &[u8], dst: &mut [u8]) {
    let tail = 8 * width_bytes * group_count(width_bytes, src.len());
    dst[tail..].copy_from_slice(&src[tail..]); // in bounds: equal lengths, whole groups of them
}

/// [`Kernel::shuffle`] of elements of `W` bytes.
fn shuffle<const W: usize>(src: &[u8], dst: &mut [u8]) {
    let m = group_count(W, src.len());
    for j in 0..W {
        for (i, group) in src.chunks_exact(8 * W).enumerate() {
            let bytes = std::array::from_fn(|t| group[W * t + j]); // in bounds: t < 8, j < W
            for (bit, plane) in transpose(bytes).into_iter().enumerate() {
                dst[(8 * j + bit) * m + i] = plane; // in bounds: 8 * W planes of m bytes, i < m
            }
        }
    }
    copy_tail(W, src, dst);
}

/// [`Kernel::unshuffle`] of elements of `W` bytes.
fn unshuffle<const W: usize>(src: &[u8], dst: &mut [u8]) {
    let m = group_count(W, src.len());
    for j in 0..W {
        for (i, group) in dst.chunks_exact_mut(8 * W).enumerate() {
            // in bounds: 8 * W planes of m bytes, i < m
            let planes = std::array::from_fn(|bit| src[(8 * j + bit) * m + i]);
            for (t, byte) in transpose(planes).into_iter().enumerate() {
                group[W * t + j] = byte; // in bounds: t < 8, j < W
            }
        }
    }
    copy_tail(W, src, dst);
}

/// Transposes a matrix of 8 x 8 bits: bit `r` of byte `c` of the result is bit `c` of byte `r`.
///
/// Swaps the off-diagonal quarters of ever larger squares (Warren, Hacker's Delight, 7-3).
fn transpose(rows: [u8; 8]) -> [u8; 8] {
    const STEPS: [(u32, u64); 3] =
        [(7, 0x00AA_00AA_00AA_00AA), (14, 0x0000_CCCC_0000_CCCC), (28, 0x0000_0000_F0F0_F0F0)];
    let mut x = u64::from_le_bytes(rows);
    for (distance, mask) in STEPS {
        let swapped = (x ^ (x >> distance)) & mask;
        x ^= swapped ^ (swapped << distance);
    }
    x.to_le_bytes()
}
