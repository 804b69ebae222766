//! The definition in code.

use super::Kernel;
use crate::kernel::Width;
use crate::kernel::cpu::Scalar;

// The other implementations call these for short buffers. They are not compiled anew for each.
impl Kernel for Scalar {
    #[inline(never)]
    fn shuffle(&self, width: Width, src: &[u8], dst: &mut [u8]) {
        match width {
            Width::W1 => shuffle::<1>(src, dst),
            Width::W2 => shuffle::<2>(src, dst),
            Width::W4 => shuffle::<4>(src, dst),
            Width::W8 => shuffle::<8>(src, dst),
        }
    }

    #[inline(never)]
    fn unshuffle(&self, width: Width, src: &[u8], dst: &mut [u8]) {
        match width {
            Width::W1 => unshuffle::<1>(src, dst),
            Width::W2 => unshuffle::<2>(src, dst),
            Width::W4 => unshuffle::<4>(src, dst),
            Width::W8 => unshuffle::<8>(src, dst),
        }
    }
}

/// Returns the groups in a buffer of `len` bytes, which is also the length of a plane in bytes.
pub(super) const fn group_count(width_bytes: usize, len: usize) -> usize {
    len / (8 * width_bytes)
}

/// Copies the elements after the last whole group.
pub(super) fn copy_tail(width_bytes: usize, src: &[u8], dst: &mut [u8]) {
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
