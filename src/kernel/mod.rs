//! Inner loops over elements: one implementation per instruction set, chosen at run time.
//!
//! A *family* is a module that contains the kernels for one job:
//!
//! | family | job | chapter of the specification |
//! |---|---|---|
//! | [`bitshuffle`] | elements to bit planes and back | 5.4 |
//! | [`byte_planes`] | elements to byte planes and back, and their rotation | 5.6, 5.8 |
//! | [`predict`] | elements to residuals of a prediction and back | 5.6, 5.15 |
//! | [`tiers`] | symbols to escape-coded ranks and back | 5.7 |
//! | [`extra_bits`] | integers to bit lengths and extra bits, and back | 5.9 |
//! | [`dictionaries`] | numbers to the values that they index | 5.14 |
//! | [`float_multiples`] | integers to floats, by division | 5.14 |
//! | [`bins`], [`bins::encode`] | windows to rANS-coded bins and back | 5.13 |
//! | [`bins::costs`] | the cost of each group of bins in each class | 5.13 |
//!
//! Each family has a trait `Kernel` with one method per operation. Callers use wrappers that check
//! the lengths of their arguments first. `available()` returns the implementations that this CPU
//! can run, and `best()` the fastest. A family contains
//!
//! * the *scalar* implementation, which is the definition in code and the oracle of the tests;
//! * the same loops for vectors, which return the same bytes for any input. They are written only
//!   once: either the compiler vectorizes them, or they call the operations of a trait;
//! * the operations of that trait, if there is one, for each instruction set.
//!
//! Buffers are byte slices without alignment. Their elements are unsigned little-endian integers of
//! 1, 2, 4 or 8 bytes. A kernel takes the [`Width`] at run time. It has one loop per width,
//! compiled for the [`Word`] of that width by [`for_width`].
//!
//! In release builds, no input causes a panic, and none causes an access outside of a buffer. A
//! loop processes only the elements that all of its buffers have, so a wrong length is harmless. A
//! slice can end within a vector. No load or store goes beyond its end: helpers read zeros there,
//! and discard the bytes that would be stored there.
//!
//! [`dispatch`] detects and chooses instruction sets and compiles code for them. [`vectors`] has
//! loads, stores and the operations that several families share. This module uses nothing else from
//! the crate, so benchmarks can include it.

#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(unused, reason = "the scalar kernels use few of the helpers for vectors")
)]

mod dispatch;
mod vectors;

pub mod bins;
#[cfg_attr(not(feature = "zstd"), allow(dead_code, reason = "only encodings that use Zstandard call it"))]
pub mod bitshuffle;
pub mod byte_planes;
pub mod dictionaries;
pub mod extra_bits;
pub mod float_multiples;
pub mod predict;
pub mod tiers;

#[cfg(test)]
mod tests;

pub use vectors::prefetch_cache_lines;

// ---- elements

/// The width of one element, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    W1 = 1,
    W2 = 2,
    W4 = 4,
    W8 = 8,
}

impl Width {
    /// Returns the width in bytes.
    pub const fn bytes(self) -> usize {
        self as usize // exact: the discriminants are the widths
    }

    /// Returns the width of elements of `bytes` bytes. Returns `None` unless that is 1, 2, 4 or 8.
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

/// Cuts both buffers to the whole elements that fit in the shorter buffer. Debug builds assert that
/// this removes nothing.
fn whole_elements<'s, 'd>(width: Width, src: &'s [u8], dst: &'d mut [u8]) -> (&'s [u8], &'d mut [u8]) {
    debug_assert_eq!(src.len(), dst.len(), "source and destination differ in length");
    debug_assert_eq!(src.len() % width.bytes(), 0, "not a whole number of elements");
    let len = src.len().min(dst.len());
    let len = len - len % width.bytes();
    (&src[..len], &mut dst[..len]) // in bounds: `len` exceeds neither length
}

/// Returns the number of elements that both buffers have. `bytes` has one byte per element. Debug
/// builds assert that both have the same number.
fn common_count(width: Width, elements: &[u8], bytes: &[u8]) -> usize {
    debug_assert_eq!(elements.len(), bytes.len() * width.bytes(), "the buffers have different numbers of elements");
    bytes.len().min(elements.len() / width.bytes())
}

/// An unsigned integer that is as wide as an element. All arithmetic wraps around.
trait Word: Copy + Default {
    /// The size of an element in bytes.
    const BYTES: usize;
    /// Returns element `index` of `bytes`. Returns 0 if `bytes` ends before it.
    fn get(bytes: &[u8], index: usize) -> Self;
    /// Sets element `index` of `bytes`. Does nothing if `bytes` ends before it.
    fn set(self, bytes: &mut [u8], index: usize);
    /// Rotates left by one bit.
    fn rotate_left(self) -> Self;
    /// Rotates right by one bit.
    fn rotate_right(self) -> Self;
    /// Codes a signed integer: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
    fn zigzag(self) -> Self;
    /// Undoes [`zigzag`](Self::zigzag).
    fn unzigzag(self) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    /// Returns `weight` eighths of a signed integer, rounded to the nearest, ties up. `weight` is
    /// at most 8.
    fn eighths(self, weight: u8) -> Self;
}

macro_rules! words {
    ($($word:ty),*) => {$(
        impl Word for $word {
            const BYTES: usize = size_of::<Self>();
            #[inline(always)]
            fn get(bytes: &[u8], index: usize) -> Self {
                let start = index * Self::BYTES;
                let word = bytes.get(start..).and_then(|rest| rest.first_chunk());
                word.map_or(0, |word| Self::from_le_bytes(*word))
            }
            #[inline(always)]
            fn set(self, bytes: &mut [u8], index: usize) {
                let start = index * Self::BYTES;
                if let Some(word) = bytes.get_mut(start..).and_then(|rest| rest.first_chunk_mut()) {
                    *word = self.to_le_bytes();
                }
            }
            #[inline(always)]
            fn rotate_left(self) -> Self { <$word>::rotate_left(self, 1) }
            #[inline(always)]
            fn rotate_right(self) -> Self { <$word>::rotate_right(self, 1) }
            #[inline(always)]
            fn zigzag(self) -> Self {
                let sign = (self.cast_signed() >> (Self::BITS - 1)).cast_unsigned();
                (self << 1) ^ sign
            }
            #[inline(always)]
            fn unzigzag(self) -> Self { (self >> 1) ^ (self & 1).wrapping_neg() }
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn eighths(self, weight: u8) -> Self {
                let weight = Self::from(weight);
                let whole = (self.cast_signed() >> 3).cast_unsigned().wrapping_mul(weight);
                let rest = (self & 7) * weight; // at most 56
                whole.wrapping_add((rest + 4) >> 3)
            }
        }
    )*};
}
words!(u8, u16, u32, u64);

/// Evaluates `$body`, in which the type `$word` is the [`Word`] of `$width`.
macro_rules! for_width {
    ($width:expr, $word:ident => $body:expr) => {
        match $width {
            $crate::kernel::Width::W1 => {
                type $word = u8;
                $body
            }
            $crate::kernel::Width::W2 => {
                type $word = u16;
                $body
            }
            $crate::kernel::Width::W4 => {
                type $word = u32;
                $body
            }
            $crate::kernel::Width::W8 => {
                type $word = u64;
                $body
            }
        }
    };
}
use for_width;

// ---- copies between slices of different lengths

/// The size of a [`block`] in bytes: one vector of AVX-512, two of AVX2, four of NEON.
const BLOCK: usize = 64;

/// Returns the block of `bytes` at `offset`, or zeros if `bytes` does not contain all of it.
#[inline(always)]
fn block(bytes: &[u8], offset: usize) -> &[u8; BLOCK] {
    bytes.get(offset..).and_then(|rest| rest.first_chunk()).unwrap_or(&[0; BLOCK])
}

/// Sets the block of `bytes` at `offset`. Does nothing if `bytes` does not contain all of it.
#[inline(always)]
fn set_block(bytes: &mut [u8], offset: usize, block: &[u8; BLOCK]) {
    if let Some(to) = bytes.get_mut(offset..).and_then(|rest| rest.first_chunk_mut()) {
        *to = *block;
    }
}

/// Copies as many bytes as the shorter slice has.
fn copy(from: &[u8], to: &mut [u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// Returns a slice of fewer than `N` bytes, padded with zeros.
#[cold]
fn pad<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut padded = [0; N];
    copy(bytes, &mut padded);
    padded
}

/// Copies as many bytes as the shorter slice has, at most 63.
///
/// Every copy has a constant length, because a call to `memcpy` would force the caller to spill its
/// vectors.
#[inline(always)]
fn copy_short(from: &[u8], to: &mut [u8]) {
    let len = from.len().min(to.len());
    let (Some(from), Some(to)) = (from.get(..len), to.get_mut(..len)) else { return };
    let done = copy_ends::<32>(from, to)
        || copy_ends::<16>(from, to)
        || copy_ends::<8>(from, to)
        || copy_ends::<4>(from, to)
        || copy_ends::<2>(from, to)
        || copy_ends::<1>(from, to);
    debug_assert!(done || len == 0, "bytes were not copied");
}

/// Copies the first `N` bytes and the last `N` bytes. Returns `false` if there are fewer than `N`.
#[inline(always)]
fn copy_ends<const N: usize>(from: &[u8], to: &mut [u8]) -> bool {
    let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) else {
        return false;
    };
    if let Some(to) = to.first_chunk_mut() {
        *to = *first;
    }
    if let Some(to) = to.last_chunk_mut() {
        *to = *last;
    }
    true
}
