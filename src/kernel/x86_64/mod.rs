//! Implementations for x86-64.

pub(super) mod avx2;
pub(super) mod avx512;

use super::BitShuffle;

/// The implementations that this CPU can run, slowest first.
pub(super) fn available() -> impl Iterator<Item = BitShuffle> {
    [avx2::detect(), avx512::detect()].into_iter().flatten()
}
