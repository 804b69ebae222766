//! Casts: elements of one type delivered as another.
//!
//! A pair of types is resolved to a function over whole slices when the loader is created, so the
//! inner loop needs no dispatch. A cast rounds at most once: floats are rounded to nearest, with
//! ties to even, and integers are cast only to types that represent all of their values.
//!
//! Narrowing an `f64` to 16 bits takes two steps, via `f32`. If both steps rounded to nearest, the
//! last bit of the result could be wrong, so the first step rounds to odd.

use crate::error::{DataError, Result};
use half::{bf16, f16};
use tensilo::{ColumnSchema, DType, Element};

/// Converts a slice of elements. Returns `false` if memory is misaligned.
type Convert = fn(&[u8], &mut [u8]) -> bool;

/// A resolved cast of elements.
#[derive(Clone, Copy)]
pub(in crate::loader) struct Conversion {
    pub to: DType,
    convert: Convert,
}

impl std::fmt::Debug for Conversion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "to {}", self.to.name())
    }
}

impl Conversion {
    /// Returns the cast of a column's elements. Fails if there is none.
    pub(in crate::loader) fn new(column: &ColumnSchema, to: DType) -> Result<Self> {
        let Some(convert) = find(column.dtype, to) else {
            let (name, from, to) = (&column.name, column.dtype.name(), to.name());
            let message = format!(
                "column {name:?} is {from}, which cannot be cast to {to}: floats can be cast to other floats; integers \
                 of at most 2 bytes and bools to f32; integers of 4 bytes to f64; integers and bools to wider integers"
            );
            return Err(tensilo::Error::wrong_type(message).into());
        };
        Ok(Self { to, convert })
    }

    /// Converts elements. `out` has room for all of them. Fails if the caller's memory is
    /// misaligned.
    pub(in crate::loader) fn run(&self, from: &[u8], out: &mut [u8]) -> Result<()> {
        match (self.convert)(from, out) {
            true => Ok(()),
            false => {
                Err(DataError::BadArgument("the allocator returned memory that is not aligned to 8 bytes".to_owned()))
            }
        }
    }
}

/// Converts each element. Returns `false` if a slice is misaligned.
fn convert<A: Element, B: Element>(from: &[u8], out: &mut [u8], one: impl Fn(A) -> B) -> bool {
    let (Some(from), Some(out)) = (A::slice_of(from), B::slice_of_mut(out)) else { return false };
    for (to, &from) in out.iter_mut().zip(from) {
        *to = one(from);
    }
    true
}

/// A float that can be converted to any other float type.
trait Float: Element {
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;

    /// Rounds to odd, so that a second rounding to fewer bits gives the same result as rounding
    /// once.
    #[inline]
    fn to_f32_odd(self) -> f32 {
        let (value, nearest) = (self.to_f64(), self.to_f32());
        if value.is_nan() || f64::from(nearest) == value {
            return nearest;
        }
        // if rounding went away from 0, step back; `nearest` is then not 0
        let is_farther = f64::from(nearest).abs() > value.abs();
        f32::from_bits(nearest.to_bits().saturating_sub(is_farther.into()) | 1)
    }
}

macro_rules! floats {
    ($($float:ty: |$value:ident| $to_f32:expr, $to_f64:expr;)*) => {$(
        impl Float for $float {
            #[inline]
            fn to_f32(self) -> f32 {
                let $value = self;
                $to_f32
            }
            #[inline]
            fn to_f64(self) -> f64 {
                let $value = self;
                $to_f64
            }
        }
    )*};
}

floats! {
    bf16: |value| value.to_f32(), value.to_f64();
    f16: |value| value.to_f32(), value.to_f64();
    f32: |value| value, value.into();
    f64: |value| value as f32, value; // rounds to nearest even
}

fn from_float<A: Float>(to: DType) -> Option<Convert> {
    Some(match to {
        DType::Bf16 => |from, out| convert(from, out, |value: A| bf16::from_f32(value.to_f32_odd())),
        DType::F16 => |from, out| convert(from, out, |value: A| f16::from_f32(value.to_f32_odd())),
        DType::F32 => |from, out| convert(from, out, A::to_f32),
        DType::F64 => |from, out| convert(from, out, A::to_f64),
        _ => return None,
    })
}

/// Finds the cast of an integer to a type that represents all of its values.
macro_rules! widening {
    ($from:ty, $to:ident, $($dtype:ident => $wide:ty),*) => {
        match $to {
            $(DType::$dtype => Some(|from, out| convert(from, out, |value: $from| <$wide>::from(value))),)*
            _ => None,
        }
    };
}

fn find(from: DType, to: DType) -> Option<Convert> {
    match from {
        DType::Bf16 => from_float::<bf16>(to),
        DType::F16 => from_float::<f16>(to),
        DType::F32 => from_float::<f32>(to),
        DType::F64 => from_float::<f64>(to),
        DType::U8 | DType::Bool => {
            widening!(u8, to, F32 => f32, I16 => i16, I32 => i32, I64 => i64, U16 => u16, U32 => u32, U64 => u64)
        }
        DType::I8 => widening!(i8, to, F32 => f32, I16 => i16, I32 => i32, I64 => i64),
        DType::U16 => widening!(u16, to, F32 => f32, I32 => i32, I64 => i64, U32 => u32, U64 => u64),
        DType::I16 => widening!(i16, to, F32 => f32, I32 => i32, I64 => i64),
        DType::U32 => widening!(u32, to, F64 => f64, I64 => i64, U64 => u64),
        DType::I32 => widening!(i32, to, F64 => f64, I64 => i64),
        _ => None,
    }
}
