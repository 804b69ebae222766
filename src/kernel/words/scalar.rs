//! The definition, element by element.

use super::{Kernel, Prediction, Words};
use crate::kernel::Width;

pub(super) const WORDS: Words = Words { name: "scalar", kernel: &Scalar };

struct Scalar;

/// An unsigned integer as wide as an element.
pub(super) trait Word: Copy + Default {
    const BYTES: usize;
    /// Element `index` of `bytes`; 0 if there is none.
    fn get(bytes: &[u8], index: usize) -> Self;
    fn set(self, bytes: &mut [u8], index: usize);
    fn rotate_left(self) -> Self;
    fn rotate_right(self) -> Self;
    /// Floats to integers that sort like them, and back.
    fn order(self) -> Self;
    fn zigzag(self) -> Self;
    fn unzigzag(self) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
}

macro_rules! words {
    ($($word:ty),*) => {$(
        impl Word for $word {
            const BYTES: usize = size_of::<Self>();
            #[inline(always)]
            fn get(bytes: &[u8], index: usize) -> Self {
                let at = index * Self::BYTES;
                let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
                word.map_or(0, |word| Self::from_le_bytes(*word))
            }
            #[inline(always)]
            fn set(self, bytes: &mut [u8], index: usize) {
                let at = index * Self::BYTES;
                if let Some(word) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
                    *word = self.to_le_bytes();
                }
            }
            #[inline(always)]
            fn rotate_left(self) -> Self { <$word>::rotate_left(self, 1) }
            #[inline(always)]
            fn rotate_right(self) -> Self { <$word>::rotate_right(self, 1) }
            #[inline(always)]
            fn order(self) -> Self {
                let sign = (self.cast_signed() >> (Self::BITS - 1)).cast_unsigned();
                self ^ (sign >> 1)
            }
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
        }
    )*};
}
words!(u8, u16, u32, u64);

/// Calls `$body` with `$word` as the integer of `$width`.
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
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
pub(super) use for_width;

/// The prediction of element `i`, of the elements of the same sample before it.
fn predict<W: Word>(prediction: &Prediction, element: impl Fn(usize) -> W, i: usize) -> W {
    let (restart, stride) = (prediction.restart.max(1) as usize, prediction.stride.max(1) as usize); // exact: no target here has a smaller usize
    let j = i % restart;
    match j {
        0 => W::default(),
        _ if j < stride => element(i - 1),
        _ if !prediction.lorenzo || j.is_multiple_of(stride) => element(i - stride),
        _ => element(i - 1).plus(element(i - stride)).minus(element(i - stride - 1)),
    }
}

impl Kernel for Scalar {
    fn join(&self, width: Width, rotate: bool, low: &[&[u8]], top: &[u8], out: &mut [u8]) {
        for (i, (element, &top)) in out.chunks_exact_mut(width.bytes()).zip(top).enumerate() {
            let bytes = low.iter().filter_map(|low| low.get(i)).chain([&top]);
            element.iter_mut().zip(bytes).for_each(|(to, &byte)| *to = byte);
        }
        if rotate {
            self.rotate_right(width, out);
        }
    }

    fn split(&self, width: Width, rotate: bool, elements: &[u8], low: &mut [&mut [u8]], top: &mut [u8]) {
        for_width!(width, W => for (i, top) in top.iter_mut().enumerate() {
            let element = W::get(elements, i);
            let bytes = if rotate { Word::rotate_left(element) } else { element }.to_le_bytes();
            let places = low.iter_mut().filter_map(|low| low.get_mut(i)).chain([top]);
            places.zip(bytes).for_each(|(to, byte)| *to = byte);
        });
    }

    fn rotate_right(&self, width: Width, data: &mut [u8]) {
        for_width!(width, W => (0..data.len() / W::BYTES).for_each(|i| Word::rotate_right(W::get(data, i)).set(data, i)));
    }

    fn residuals(&self, prediction: &Prediction, width: Width, elements: &[u8], out: &mut [u8]) {
        for_width!(width, W => {
            let ordered = |i| if prediction.float { W::get(elements, i).order() } else { W::get(elements, i) };
            (0..elements.len() / W::BYTES)
                .for_each(|i| ordered(i).minus(predict::<W>(prediction, ordered, i)).zigzag().set(out, i));
        });
    }

    fn undo(&self, prediction: &Prediction, width: Width, data: &mut [u8]) {
        for_width!(width, W => {
            for i in 0..data.len() / W::BYTES {
                W::get(data, i).unzigzag().plus(predict::<W>(prediction, |i| W::get(data, i), i)).set(data, i);
            }
            if prediction.float {
                (0..data.len() / W::BYTES).for_each(|i| W::get(data, i).order().set(data, i)); // its own inverse
            }
        });
    }
}
