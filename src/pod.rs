//! Typed views of element bytes. The casts themselves are `bytemuck`'s, which check size and alignment.

use crate::dtype::DType;
use crate::{Result, memory};
use half::{bf16, f16};

/// A Rust type that is the element of a column.
///
/// Implemented for `bf16`, `f16`, `f32`, `f64`, `i8` to `i64` and `u8` to `u64`. `u8` also serves for
/// columns of bools (0 or 1), bytes and text. The trait is sealed.
pub trait Element: sealed::Sealed + bytemuck::Pod + Send + Sync {
    /// The type of column whose elements these are.
    const DTYPE: DType;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

elements! {
    bf16 => Bf16, f16 => F16, f32 => F32, f64 => F64,
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
}

/// Whether elements of a column of type `dtype` can be handled as `T`.
pub(crate) fn fits<T: Element>(dtype: DType) -> bool {
    let bytes_like = matches!(dtype, DType::Bool | DType::Bytes | DType::Utf8);
    T::DTYPE == dtype || (T::DTYPE == DType::U8 && bytes_like)
}

/// `bytes` as elements, without copying; `None` if they are misaligned or no whole number of elements.
pub(crate) fn as_elements<T: Element>(bytes: &[u8]) -> Option<&[T]> {
    if bytes.is_empty() {
        return Some(&[]); // which may stand anywhere
    }
    bytemuck::try_cast_slice(bytes).ok()
}

/// Elements as their bytes in memory.
pub(crate) fn as_bytes<T: Element>(elements: &[T]) -> &[u8] {
    bytemuck::cast_slice(elements)
}

/// Elements as their bytes in memory, to be filled.
pub(crate) fn as_bytes_mut<T: Element>(elements: &mut [T]) -> &mut [u8] {
    bytemuck::cast_slice_mut(elements)
}

/// Bytes aligned for every [`Element`], kept for reuse.
#[derive(Clone, Debug, Default)]
pub(crate) struct AlignedBytes {
    words: Vec<u64>,
    length: usize,
}

impl AlignedBytes {
    /// Changes the length. Bytes that were there stay, others are whatever was there before, or 0.
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
