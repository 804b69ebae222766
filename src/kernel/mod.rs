//! Loops over elements, for each instruction set: [`tiers`] of short codes, [`words`] and what is predicted of them, and here the
//! bit-shuffle: `n` elements of `w` bytes become `8 * w` bit planes.
//!
//! With `m = n / 8` (rounded down), plane `p = 8 * byte + bit` is the `m` bytes from `p * m` on, and
//! bit `t` of its byte `i` is bit `p` of element `8 * i + t`; elements are little-endian and bit 0 is
//! the least significant. The last `n % 8` elements follow the planes unchanged, so that the output
//! is exactly as long as the input. The eight elements that share one byte of every plane are a
//! *group*.
//!
//! `scalar` is the definition in code. Every other implementation gives the same bytes, faster.

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod aarch64;
mod scalar;
#[cfg(test)]
mod tests;
pub mod tiers;
pub mod words;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64;

use std::sync::LazyLock;

/// Width of one element in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 1 byte: 8 bit planes.
    W1 = 1,
    /// 2 bytes: 16 bit planes.
    W2 = 2,
    /// 4 bytes: 32 bit planes.
    W4 = 4,
    /// 8 bytes: 64 bit planes.
    W8 = 8,
}

impl Width {
    /// The width in bytes.
    pub const fn bytes(self) -> usize {
        self as usize
    }

    /// The width of elements of `bytes` bytes, if the bit-shuffle is defined for it.
    pub const fn from_bytes(bytes: usize) -> Option<Self> {
        match bytes {
            1 => Some(Self::W1),
            2 => Some(Self::W2),
            4 => Some(Self::W4),
            8 => Some(Self::W8),
            _ => None,
        }
    }
}

/// A direction of the bit-shuffle; both slices hold the same whole number of elements.
type Kernel = fn(Width, &[u8], &mut [u8]);

/// One implementation of the bit-shuffle. That a value exists proves that this CPU can run it.
#[derive(Debug)]
pub struct BitShuffle {
    name: &'static str,
    shuffle: Kernel,
    unshuffle: Kernel,
}

impl BitShuffle {
    /// Name of the instruction set: `scalar`, `avx2`, `avx512` or `neon`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Splits the elements of `src` into bit planes in `dst`.
    ///
    /// Both lengths are in bytes, equal, and a multiple of the width. Where a caller breaks this,
    /// only the whole elements that fit in both are shuffled and the rest of `dst` is left alone
    /// (debug builds assert). Buffers need no alignment.
    pub fn shuffle(&self, width: Width, src: &[u8], dst: &mut [u8]) {
        let (src, dst) = whole_elements(width, src, dst);
        (self.shuffle)(width, src, dst);
    }

    /// Joins the bit planes of `src` into elements in `dst`: the exact inverse of
    /// [`shuffle`](Self::shuffle), under the same conditions.
    pub fn unshuffle(&self, width: Width, src: &[u8], dst: &mut [u8]) {
        let (src, dst) = whole_elements(width, src, dst);
        (self.unshuffle)(width, src, dst);
    }
}

/// All implementations that this CPU can run, slowest (`scalar`) first.
pub fn available() -> &'static [BitShuffle] {
    static AVAILABLE: LazyLock<Vec<BitShuffle>> = LazyLock::new(|| {
        #[allow(unused_mut, reason = "not every target adds to the list")]
        let mut list = vec![scalar::KERNEL];
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        list.extend(x86_64::available());
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        list.extend(aarch64::detect());
        list
    });
    &AVAILABLE
}

/// The fastest implementation that this CPU can run; chosen once for each process.
pub fn best() -> &'static BitShuffle {
    available().last().unwrap_or(&scalar::KERNEL)
}

/// Cuts both buffers to the whole elements that fit in either.
fn whole_elements<'s, 'd>(width: Width, src: &'s [u8], dst: &'d mut [u8]) -> (&'s [u8], &'d mut [u8]) {
    debug_assert_eq!(src.len(), dst.len(), "source and destination differ in length");
    debug_assert_eq!(src.len() % width.bytes(), 0, "not a whole number of elements");
    let len = src.len().min(dst.len());
    let len = len - len % width.bytes();
    (&src[..len], &mut dst[..len])
}

/// Groups in a buffer of `len` bytes, which is also the length of one plane in bytes.
const fn group_count(width_bytes: usize, len: usize) -> usize {
    len / (8 * width_bytes)
}

/// Copies the elements after the last whole group, which are the same bytes on either side.
fn copy_tail(width_bytes: usize, src: &[u8], dst: &mut [u8]) {
    let tail = 8 * width_bytes * group_count(width_bytes, src.len());
    dst[tail..].copy_from_slice(&src[tail..]);
}

/// First groups of the steps of `step` groups that cover all of `groups >= step`; the last step
/// overlaps the one before it where `step` does not divide `groups`.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
fn steps(groups: usize, step: usize) -> impl Iterator<Item = usize> {
    (0..groups).step_by(step).map(move |first| first.min(groups - step))
}
