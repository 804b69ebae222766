//! Elements as unsigned integers of their width.

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
    /// Returns the sum.
    fn plus(self, other: Self) -> Self;
    /// Returns the difference.
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
