//! Escape-coded ranks, or *tiers* (chapter 5.7 of the specification).
//!
//! Codes are in groups of 64, bit plane by bit plane. A group of codes of `width` bits is `width`
//! little-endian words of 64 bits: bit `t` of word `j` is bit `j` of code `t`. A code of `width`
//! one bits is an *escape*.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod generic;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use super::implementation::{Implementation, implementations};
use std::ops::Range;

/// Codes in a group.
pub const GROUP: usize = 64;
/// The bytes of a group of the widest codes.
pub const GROUP_BYTES: usize = 4 * size_of::<u64>();

/// The kernels of one instruction set. All slices have the lengths that [`Tiers`] states, and
/// `width` is 1 to 4.
pub trait Kernel: Sync {
    /// See [`Tiers::merge`].
    fn merge(
        &self,
        width: usize,
        codes: &[u8],
        last: &[u8; GROUP_BYTES],
        table: &[u8; 16],
        escaped: &[u8],
        out: &mut [u8],
    ) -> usize;
    /// See [`Tiers::split`].
    fn split(&self, width: usize, code_of: &[u8; 256], symbols: &[u8], codes: &mut [u8], escaped: &mut [u8]) -> usize;
    /// See [`Tiers::escapes`].
    fn escapes(&self, width: usize, codes: &[u8], range: Range<usize>) -> usize;
}

/// One implementation of tiers.
pub type Tiers = Implementation<dyn Kernel>;

/// Returns the bytes of the groups of `count` codes of `width` bits.
pub const fn code_bytes(width: usize, count: usize) -> usize {
    count.div_ceil(GROUP).saturating_mul(8 * width)
}

impl Tiers {
    /// Decodes one tier. Each code of `width` bits (1 to 4) becomes its symbol in `table`, and each
    /// escape the next symbol of `escaped`. An escape beyond the end of `escaped` becomes 0.
    /// Returns the number of escapes.
    ///
    /// `codes` begins with as many groups as `out` has 64 symbols, and `last` with the group of the
    /// symbols after them. If `codes` is shorter, or the width is another, nothing is written and
    /// the result is 0 (debug builds assert). Codes that fill up the last group are ignored.
    pub fn merge(
        &self,
        width: usize,
        codes: &[u8],
        last: &[u8; GROUP_BYTES],
        table: &[u8; 16],
        escaped: &[u8],
        out: &mut [u8],
    ) -> usize {
        let groups = codes.get(..out.len() / GROUP * 8 * width).filter(|_| (1..=4).contains(&width));
        debug_assert!(groups.is_some(), "too few codes, or a wrong width");
        groups.map_or(0, |codes| self.kernel.merge(width, codes, last, table, escaped, out))
    }

    /// Encodes one tier: the inverse of [`merge`](Self::merge). The code of each symbol is the
    /// lower `width` bits of its entry in `code_of`. Symbols that escape go to the start of
    /// `escaped`. Zero codes fill up the last group. Returns the number of escapes.
    ///
    /// `codes` is at least as long as the groups, and `escaped` as long as `symbols`. Otherwise
    /// nothing is written and the result is 0 (debug builds assert). The bytes of `escaped` after
    /// the symbols that escaped are unspecified.
    pub fn split(
        &self,
        width: usize,
        code_of: &[u8; 256],
        symbols: &[u8],
        codes: &mut [u8],
        escaped: &mut [u8],
    ) -> usize {
        let groups = codes.get_mut(..code_bytes(width, symbols.len())).filter(|_| (1..=4).contains(&width));
        let escaped = escaped.get_mut(..symbols.len());
        debug_assert!(groups.is_some() && escaped.is_some(), "a buffer is too short, or a wrong width");
        match groups.zip(escaped) {
            Some((codes, escaped)) => self.kernel.split(width, code_of, symbols, codes, escaped),
            None => 0,
        }
    }

    /// Returns the number of escapes among the codes in `range`, of `width` bits (1 to 4). Codes
    /// beyond the end of `codes` are no escapes.
    pub fn escapes(&self, width: usize, codes: &[u8], range: Range<usize>) -> usize {
        if (1..=4).contains(&width) { self.kernel.escapes(width, codes, range) } else { 0 }
    }
}

implementations!(Kernel);
