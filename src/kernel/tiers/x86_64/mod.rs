//! Implementations for x86-64.

mod avx2;
mod avx512;

use super::Tiers;

/// The implementations that this CPU can run, slowest first.
pub(super) fn available() -> impl Iterator<Item = Tiers> {
    [avx2::detect(), avx512::detect()].into_iter().flatten()
}
