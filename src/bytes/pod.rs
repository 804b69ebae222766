//! Typed views of element bytes.
//!
//! `bytemuck` does the casts and checks size and alignment; `half` does both for its 16-bit floats.
//! `half` can also make its types `Pod`, but that feature would bring a derive macro and a second
//! version of `syn` into every build.

use crate::Result;
use crate::bytes::memory;
use crate::element::dtype::DType;
use bytemuck::Pod;
use half::slice::{HalfBitsSliceExt as _, HalfFloatSliceExt as _};
use half::{bf16, f16};

/// A Rust type that can be the element of a column.
///
/// Implemented for `bf16`, `f16`, `f32`, `f64`, `i8` to `i64`, `u8` to `u64`, and `[f32; 2]`, a
/// complex number. `u8` is also the element of columns of bools (0 or 1), bytes, text, and 4- to
/// 8-bit numbers. The trait is sealed.
pub trait Element: sealed::Sealed + Copy + Default + Send + Sync + 'static {
    /// The column type with these elements.
    const DTYPE: DType;

    /// Casts bytes in the byte order of this machine to elements, without copying. Returns `None`
    /// if they are misaligned or do not form whole elements.
    fn slice_of(bytes: &[u8]) -> Option<&[Self]> {
        as_elements(bytes)
    }

    /// Like [`Element::slice_of`], but mutable.
    fn slice_of_mut(bytes: &mut [u8]) -> Option<&mut [Self]> {
        if bytes.is_empty() {
            return Some(&mut []); // an empty slice needs no alignment
        }
        bytemuck::try_cast_slice_mut(bytes).ok().map(Self::of_bits_mut)
    }
}

mod sealed {
    /// Elements as plain data.
    pub trait Sealed: Sized {
        /// A type of the same size and alignment that is `Pod`.
        type Bits: super::Pod;
        fn of_bits(bits: &[Self::Bits]) -> &[Self];
        fn of_bits_mut(bits: &mut [Self::Bits]) -> &mut [Self];
        fn bits(elements: &[Self]) -> &[Self::Bits];
        fn bits_mut(elements: &mut [Self]) -> &mut [Self::Bits];
    }
}

/// Implements `Element` for types that are `Pod` themselves, and for the types of `half`.
macro_rules! elements {
    ($($rust:ty as $bits:ty => $dtype:ident: |$slice:ident| $of_bits:expr, $of_bits_mut:expr, $to_bits:expr, $to_bits_mut:expr;)*) => {$(
        impl sealed::Sealed for $rust {
            type Bits = $bits;
            fn of_bits($slice: &[$bits]) -> &[Self] {
                $of_bits
            }
            fn of_bits_mut($slice: &mut [$bits]) -> &mut [Self] {
                $of_bits_mut
            }
            fn bits($slice: &[Self]) -> &[$bits] {
                $to_bits
            }
            fn bits_mut($slice: &mut [Self]) -> &mut [$bits] {
                $to_bits_mut
            }
        }
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
    (plain $($rust:ty => $dtype:ident),* $(,)?) => {
        elements! { $($rust as $rust => $dtype: |slice| slice, slice, slice, slice;)* }
    };
    (half $($rust:ty => $dtype:ident),* $(,)?) => {
        elements! { $(
            $rust as u16 => $dtype: |slice| slice.reinterpret_cast(), slice.reinterpret_cast_mut(), slice.reinterpret_cast(), slice.reinterpret_cast_mut();
        )* }
    };
}

elements! { plain
    f32 => F32, f64 => F64,
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    [f32; 2] => Complex64,
}
elements! { half bf16 => Bf16, f16 => F16 }

/// Returns whether elements of type `dtype` can be read and written as `T`.
pub(crate) fn fits<T: Element>(dtype: DType) -> bool {
    T::DTYPE == dtype || (T::DTYPE == DType::U8 && dtype.is_byte())
}

/// Casts `bytes` to elements, without copying. Returns `None` if they are misaligned or do not form
/// whole elements.
pub(crate) fn as_elements<T: Element>(bytes: &[u8]) -> Option<&[T]> {
    if bytes.is_empty() {
        return Some(&[]); // an empty slice needs no alignment
    }
    bytemuck::try_cast_slice(bytes).ok().map(T::of_bits)
}

/// Casts elements to bytes in the byte order of this machine.
pub(crate) fn as_bytes<T: Element>(elements: &[T]) -> &[u8] {
    bytemuck::cast_slice(T::bits(elements))
}

/// Casts elements to mutable bytes in the byte order of this machine.
pub(crate) fn as_bytes_mut<T: Element>(elements: &mut [T]) -> &mut [u8] {
    bytemuck::cast_slice_mut(T::bits_mut(elements))
}

/// A byte buffer that is aligned for every [`Element`] and reuses its memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct AlignedBytes {
    words: Vec<u64>,
    length: usize,
}

impl AlignedBytes {
    /// Changes the length. Bytes before the old length keep their values; new bytes are 0 or stale.
    pub(crate) fn resize(&mut self, length: usize) -> Result<()> {
        let words = length.div_ceil(size_of::<u64>());
        if words > self.words.len() {
            memory::resize(&mut self.words, words, 0)?;
        }
        self.length = length;
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words).get(..self.length).unwrap_or(&[])
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.words).get_mut(..self.length).unwrap_or(&mut [])
    }
}
