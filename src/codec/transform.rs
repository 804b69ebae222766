//! Chapter 5.6: what is coded in place of the elements.

use crate::le::{array_at, put};
use crate::{Error, Result};

pub(super) const TRANSFORM_BYTES: usize = 16;

/// How elements become the integers that are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transform {
    /// As they are.
    None,
    /// Rotated left by one bit: the exponent of a float is on top.
    Rotate,
    /// The residual of a prediction.
    Predict(Prediction),
}

/// Predicts each element from those before it in its sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prediction {
    /// From left, above and above left; else from above alone.
    pub gradient: bool,
    /// The elements are floats: their bits are put in the order of the numbers first.
    pub float: bool,
    /// Elements of a sample, at least 1.
    pub restart: u32,
    /// Elements of a row, at least 1.
    pub stride: u32,
}

const FLOAT: u8 = 1;

impl Transform {
    pub(super) fn to_bytes(self) -> [u8; TRANSFORM_BYTES] {
        let mut out = [0; TRANSFORM_BYTES];
        match self {
            Self::None => {}
            Self::Rotate => put::<0, 1, 16>(&mut out, [1]),
            Self::Predict(prediction) => {
                put::<0, 1, 16>(&mut out, [if prediction.gradient { 3 } else { 2 }]);
                put::<1, 1, 16>(&mut out, [if prediction.float { FLOAT } else { 0 }]);
                put::<4, 4, 16>(&mut out, prediction.restart.to_le_bytes());
                put::<8, 4, 16>(&mut out, prediction.stride.to_le_bytes());
            }
        }
        out
    }

    /// but for the decoded length.
    pub(super) fn parse(bytes: &[u8; TRANSFORM_BYTES]) -> Result<Self> {
        let restart = u32::from_le_bytes(array_at::<4, 4, 16>(bytes));
        let stride = u32::from_le_bytes(array_at::<8, 4, 16>(bytes));
        let [kind, flags] = array_at::<0, 2, 16>(bytes);
        let transform = match kind {
            0 => Self::None,
            1 => Self::Rotate,
            2 | 3 if restart > 0 && stride > 0 => {
                Self::Predict(Prediction { gradient: kind == 3, float: flags & FLOAT != 0, restart, stride })
            }
            _ => return Err(malformed(bytes)),
        };
        // what the fields do not say is reserved
        if transform.to_bytes() == *bytes { Ok(transform) } else { Err(malformed(bytes)) }
    }
}

#[cold]
fn malformed(bytes: &[u8]) -> Error {
    Error::corrupt("R-5.7", format!("a part of the chunk has the unknown transform {bytes:02x?}"))
}

/// An unsigned integer as wide as an element.
pub(super) trait Word: Copy + Default + PartialEq {
    const BYTES: usize;
    fn get(bytes: &[u8], index: usize) -> Self;
    fn set(self, bytes: &mut [u8], index: usize);
    fn rotate_right(self) -> Self;
    /// Floats to integers that sort like them, and back.
    fn order(self) -> Self;
    fn unzigzag(self) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
}

macro_rules! words {
    ($($word:ty),*) => {$(
        impl Word for $word {
            const BYTES: usize = size_of::<Self>();
            fn get(bytes: &[u8], index: usize) -> Self {
                let at = index * Self::BYTES;
                let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
                word.map_or(0, |word| Self::from_le_bytes(*word))
            }
            fn set(self, bytes: &mut [u8], index: usize) {
                let at = index * Self::BYTES;
                if let Some(word) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
                    *word = self.to_le_bytes();
                }
            }
            fn rotate_right(self) -> Self { <$word>::rotate_right(self, 1) }
            fn order(self) -> Self {
                let sign = (self.cast_signed() >> (Self::BITS - 1)).cast_unsigned();
                self ^ (sign >> 1)
            }
            fn unzigzag(self) -> Self { (self >> 1) ^ (self & 1).wrapping_neg() }
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            fn minus(self, other: Self) -> Self { self.wrapping_sub(other) }
        }
    )*};
}

words! { u8, u16, u32, u64 }

impl Prediction {
    /// Of element `i`, from the ordered elements `m` before it.
    fn predict<W: Word>(&self, m: &[u8], i: usize) -> W {
        let (restart, stride) = (self.restart as usize, self.stride as usize); // exact: no target here has a smaller usize
        let j = i % restart;
        let left = || W::get(m, i - 1);
        match j {
            0 => W::default(),
            _ if j < stride => left(),
            _ if !self.gradient || j.is_multiple_of(stride) => W::get(m, i - stride),
            _ => left().plus(W::get(m, i - stride)).minus(W::get(m, i - stride - 1)),
        }
    }

    /// The elements of the coded integers in `data`, in their place.
    fn undo<W: Word>(&self, data: &mut [u8]) {
        for i in 0..data.len() / W::BYTES {
            W::get(data, i).unzigzag().plus(self.predict(data, i)).set(data, i);
        }
        if self.float {
            for i in 0..data.len() / W::BYTES {
                W::get(data, i).order().set(data, i); // its own inverse
            }
        }
    }
}

/// Calls `$body` with `$word` as the integer of `$bytes` bytes.
macro_rules! for_width {
    ($bytes:expr, $word:ident => $body:expr) => {
        match $bytes {
            1 => {
                type $word = u8;
                $body
            }
            2 => {
                type $word = u16;
                $body
            }
            4 => {
                type $word = u32;
                $body
            }
            _ => {
                type $word = u64;
                $body
            }
        }
    };
}
pub(super) use for_width;

impl Transform {
    /// The elements of the coded integers in `data`, in their place.
    pub(super) fn undo(self, element_bytes: usize, data: &mut [u8]) {
        match self {
            Self::None => {}
            Self::Rotate => for_width!(element_bytes, W => {
                (0..data.len() / W::BYTES).for_each(|i| Word::rotate_right(W::get(data, i)).set(data, i))
            }),
            Self::Predict(prediction) => for_width!(element_bytes, W => prediction.undo::<W>(data)),
        }
    }
}
