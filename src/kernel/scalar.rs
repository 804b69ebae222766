//! The bit-shuffle in plain Rust: the definition, and the oracle for every other implementation.

use super::{BitShuffle, Width, copy_tail, group_count};

pub(super) const KERNEL: BitShuffle = BitShuffle { name: "scalar", shuffle, unshuffle };

/// See [`BitShuffle::shuffle`].
pub(super) fn shuffle(width: Width, src: &[u8], dst: &mut [u8]) {
    match width {
        Width::W1 => shuffle_width::<1>(src, dst),
        Width::W2 => shuffle_width::<2>(src, dst),
        Width::W4 => shuffle_width::<4>(src, dst),
        Width::W8 => shuffle_width::<8>(src, dst),
    }
}

/// See [`BitShuffle::unshuffle`].
pub(super) fn unshuffle(width: Width, src: &[u8], dst: &mut [u8]) {
    match width {
        Width::W1 => unshuffle_width::<1>(src, dst),
        Width::W2 => unshuffle_width::<2>(src, dst),
        Width::W4 => unshuffle_width::<4>(src, dst),
        Width::W8 => unshuffle_width::<8>(src, dst),
    }
}

/// [`shuffle`] of elements of `W` bytes.
pub(super) fn shuffle_width<const W: usize>(src: &[u8], dst: &mut [u8]) {
    let m = group_count(W, src.len());
    for j in 0..W {
        for (i, group) in src.chunks_exact(8 * W).enumerate() {
            let bytes = std::array::from_fn(|t| group[W * t + j]);
            for (bit, plane) in transpose(bytes).into_iter().enumerate() {
                dst[(8 * j + bit) * m + i] = plane;
            }
        }
    }
    copy_tail(W, src, dst);
}

/// [`unshuffle`] of elements of `W` bytes.
pub(super) fn unshuffle_width<const W: usize>(src: &[u8], dst: &mut [u8]) {
    let m = group_count(W, src.len());
    for j in 0..W {
        for (i, group) in dst.chunks_exact_mut(8 * W).enumerate() {
            let planes = std::array::from_fn(|bit| src[(8 * j + bit) * m + i]);
            for (t, byte) in transpose(planes).into_iter().enumerate() {
                group[W * t + j] = byte;
            }
        }
    }
    copy_tail(W, src, dst);
}

/// Transposes a matrix of 8 x 8 bits: bit `r` of byte `c` of the result is bit `c` of byte `r`.
///
/// Swaps the off-diagonal quarters of ever larger squares (Warren, Hacker's Delight, 7-3).
fn transpose(rows: [u8; 8]) -> [u8; 8] {
    let mut x = u64::from_le_bytes(rows);
    for (distance, mask) in [(7, 0x00AA_00AA_00AA_00AA), (14, 0x0000_CCCC_0000_CCCC), (28, 0x0000_0000_F0F0_F0F0)] {
        let swapped = (x ^ (x >> distance)) & mask;
        x ^= swapped ^ (swapped << distance);
    }
    x.to_le_bytes()
}
