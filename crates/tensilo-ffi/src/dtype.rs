//! The types of elements.

use crate::error::{Result, tensilo_error};
use std::ffi::c_char;
use tensilo::DType;

/// The type of elements: the numbers of the file format. Later releases may add values.
pub type tensilo_dtype = u32;

/// The upper half of a float of 4 bytes: 1 sign, 8 exponent and 7 mantissa bits.
pub const TENSILO_BF16: tensilo_dtype = 1;
/// IEEE 754 binary16.
pub const TENSILO_F16: tensilo_dtype = 2;
/// `float`.
pub const TENSILO_F32: tensilo_dtype = 3;
/// `double`.
pub const TENSILO_F64: tensilo_dtype = 4;
/// `int8_t`.
pub const TENSILO_I8: tensilo_dtype = 5;
/// `int16_t`.
pub const TENSILO_I16: tensilo_dtype = 6;
/// `int32_t`.
pub const TENSILO_I32: tensilo_dtype = 7;
/// `int64_t`.
pub const TENSILO_I64: tensilo_dtype = 8;
/// `uint8_t`.
pub const TENSILO_U8: tensilo_dtype = 9;
/// `uint16_t`.
pub const TENSILO_U16: tensilo_dtype = 10;
/// `uint32_t`.
pub const TENSILO_U32: tensilo_dtype = 11;
/// `uint64_t`.
pub const TENSILO_U64: tensilo_dtype = 12;
/// One byte, 0 or 1.
pub const TENSILO_BOOL: tensilo_dtype = 13;
/// A string of bytes for each item.
pub const TENSILO_BYTES: tensilo_dtype = 14;
/// UTF-8 text for each item, without a NUL at the end.
pub const TENSILO_UTF8: tensilo_dtype = 15;
/// A float of 8 bits: 4 exponent and 3 mantissa bits, no infinities.
pub const TENSILO_F8_E4M3FN: tensilo_dtype = 16;
/// A float of 8 bits: 4 exponent and 3 mantissa bits, one NaN, no infinities, no -0.
pub const TENSILO_F8_E4M3FNUZ: tensilo_dtype = 17;
/// A float of 8 bits: 5 exponent and 2 mantissa bits.
pub const TENSILO_F8_E5M2: tensilo_dtype = 18;
/// A float of 8 bits: 5 exponent and 2 mantissa bits, one NaN, no infinities, no -0.
pub const TENSILO_F8_E5M2FNUZ: tensilo_dtype = 19;
/// A scale of 8 bits: a power of two, or NaN.
pub const TENSILO_F8_E8M0FNU: tensilo_dtype = 20;
/// A float of 6 bits in a byte: 2 exponent and 3 mantissa bits.
pub const TENSILO_F6_E2M3: tensilo_dtype = 21;
/// A float of 6 bits in a byte: 3 exponent and 2 mantissa bits.
pub const TENSILO_F6_E3M2: tensilo_dtype = 22;
/// A float of 4 bits in a byte: 2 exponent bits and 1 mantissa bit.
pub const TENSILO_F4_E2M1: tensilo_dtype = 23;
/// A signed integer of 4 bits in a byte, whose upper bits are zero: -1 is 0x0F.
pub const TENSILO_I4: tensilo_dtype = 24;
/// An unsigned integer of 4 bits in a byte.
pub const TENSILO_U4: tensilo_dtype = 25;
/// Two `float`: the real and the imaginary part.
pub const TENSILO_COMPLEX64: tensilo_dtype = 26;

/// Returns the number of a type, or 0 of one that is newer than this crate.
pub(crate) fn number_of(dtype: DType) -> tensilo_dtype {
    DType::ALL.iter().zip(1..).find(|(known, _)| **known == dtype).map_or(0, |(_, number)| number)
}

fn known(number: tensilo_dtype) -> Option<DType> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    DType::ALL.get(index).copied()
}

/// Returns the type of a number.
pub(crate) fn of_number(number: tensilo_dtype) -> Result<DType> {
    known(number).ok_or_else(|| tensilo_error::bad_argument(format!("{number} is no tensilo_dtype")))
}

/// Returns the name of a type, such as `bf16`; NULL if there is no such type. It lives forever.
#[unsafe(no_mangle)]
pub extern "C" fn tensilo_dtype_name(dtype: tensilo_dtype) -> *const c_char {
    let name = known(dtype).map(|dtype| match dtype {
        DType::Bf16 => c"bf16",
        DType::F16 => c"f16",
        DType::F32 => c"f32",
        DType::F64 => c"f64",
        DType::I8 => c"i8",
        DType::I16 => c"i16",
        DType::I32 => c"i32",
        DType::I64 => c"i64",
        DType::U8 => c"u8",
        DType::U16 => c"u16",
        DType::U32 => c"u32",
        DType::U64 => c"u64",
        DType::Bool => c"bool",
        DType::Bytes => c"bytes",
        DType::Utf8 => c"utf8",
        DType::F8E4M3Fn => c"f8_e4m3fn",
        DType::F8E4M3Fnuz => c"f8_e4m3fnuz",
        DType::F8E5M2 => c"f8_e5m2",
        DType::F8E5M2Fnuz => c"f8_e5m2fnuz",
        DType::F8E8M0Fnu => c"f8_e8m0fnu",
        DType::F6E2M3 => c"f6_e2m3",
        DType::F6E3M2 => c"f6_e3m2",
        DType::F4E2M1 => c"f4_e2m1",
        DType::I4 => c"i4",
        DType::U4 => c"u4",
        DType::Complex64 => c"complex64",
        _ => c"unknown", // newer than this crate, so it has no number here
    });
    name.map_or(std::ptr::null(), |name| name.as_ptr())
}

/// Returns the bytes of one element: 1 of bytes and text, 0 if there is no such type.
#[unsafe(no_mangle)]
pub extern "C" fn tensilo_dtype_bytes(dtype: tensilo_dtype) -> usize {
    known(dtype).map_or(0, DType::element_bytes)
}
