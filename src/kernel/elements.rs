//! Elements: their width, the words that they are, and slices of whole elements.
//!
//! Buffers are bytes without alignment, and their elements unsigned little-endian integers of 1, 2,
//! 4 or 8 bytes. A kernel takes the [`Width`] at run time and has a loop for each width, compiled
//! for a [`Word`] of the width by [`for_width`]. Lengths come from callers: a loop only sees the
//! elements that all of its buffers have, so that a wrong length is never a panic.

/// Width of one element in bytes.
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

/// Cuts both buffers to the whole elements that fit in either. Debug builds assert that this cuts
/// nothing off.
pub(super) fn whole_elements<'s, 'd>(width: Width, src: &'s [u8], dst: &'d mut [u8]) -> (&'s [u8], &'d mut [u8]) {
    debug_assert_eq!(src.len(), dst.len(), "source and destination differ in length");
    debug_assert_eq!(src.len() % width.bytes(), 0, "not a whole number of elements");
    let len = src.len().min(dst.len());
    let len = len - len % width.bytes();
    (&src[..len], &mut dst[..len]) // in bounds: `len` is at most the length of either
}

/// Returns how many elements both buffers have, of which `elements` has whole ones and `bytes` has
/// one byte for each. Debug builds assert that both have as many.
pub(super) fn common_count(width: Width, elements: &[u8], bytes: &[u8]) -> usize {
    debug_assert_eq!(elements.len(), bytes.len() * width.bytes(), "buffers differ in elements");
    bytes.len().min(elements.len() / width.bytes())
}

/// An unsigned integer as wide as an element. All arithmetic wraps around.
pub(super) trait Word: Copy + Default {
    /// Bytes of an element.
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
    /// Returns `weight` eighths of a signed integer, rounded to the nearest, up if two are as near.
    /// `weight` is at most 8.
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

/// Evaluates `$body` with type `$word` as the [`Word`] of `$width`.
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
pub(super) use for_width;
