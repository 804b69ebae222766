//! The types of elements.
//!
//! Chapter 3.2 of the specification is the registry of types. It has a code for each type, and the
//! size of its elements. Files contain both. A later release can add a type, and a reader that does
//! not support it can still find, verify and copy its elements, but refuses to return them.
//!
//! Types of fewer than 8 bits store each element in one byte. R-4.9 and R-4.13 require that the
//! upper bits are zero.
//!
//! Rust has no types for floats of 4 to 8 bits and integers of 4 bits, so their values are computed
//! here, from the table in chapter 3.7. If the exponent field is `e` and the fraction field of `m`
//! bits is `f`, the value of a float is `(1 + f / 2^m) * 2^(e - bias)`, or
//! `f / 2^m * 2^(1 - bias)` if `e` is 0. Each value is exact in `f32`. The types differ in the bit
//! patterns that stand for infinities and NaN.

use std::fmt;

/// The type of a column's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// The upper half of an `f32`: 1 sign, 8 exponent and 7 mantissa bits.
    Bf16,
    /// IEEE 754 binary16.
    F16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// Signed, 1 byte.
    I8,
    /// Signed, 2 bytes.
    I16,
    /// Signed, 4 bytes.
    I32,
    /// Signed, 8 bytes.
    I64,
    /// Unsigned, 1 byte.
    U8,
    /// Unsigned, 2 bytes.
    U16,
    /// Unsigned, 4 bytes.
    U32,
    /// Unsigned, 8 bytes.
    U64,
    /// One byte, 0 or 1.
    Bool,
    /// A byte string for each sample.
    Bytes,
    /// UTF-8 text for each sample.
    Utf8,
    /// OCP float of 8 bits: 4 exponent and 3 mantissa bits, NaN, no infinities.
    F8E4M3Fn,
    /// Float of 8 bits: 4 exponent and 3 mantissa bits, one NaN, no infinities, no -0.
    F8E4M3Fnuz,
    /// OCP float of 8 bits: 5 exponent and 2 mantissa bits, infinities and NaN.
    F8E5M2,
    /// Float of 8 bits: 5 exponent and 2 mantissa bits, one NaN, no infinities, no -0.
    F8E5M2Fnuz,
    /// OCP scale of 8 bits: a power of two, or NaN.
    F8E8M0Fnu,
    /// OCP float of 6 bits, stored in a byte: 2 exponent and 3 mantissa bits.
    F6E2M3,
    /// OCP float of 6 bits, stored in a byte: 3 exponent and 2 mantissa bits.
    F6E3M2,
    /// OCP float of 4 bits, stored in a byte: 2 exponent bits and 1 mantissa bit.
    F4E2M1,
    /// Signed, 4 bits, stored in a byte whose upper 4 bits are zero: -1 is 0x0F.
    I4,
    /// Unsigned, 4 bits, stored in a byte.
    U4,
    /// Two `f32`: the real and the imaginary part.
    Complex64,
    /// A type that this release does not support. Its samples cannot be read.
    Unknown {
        /// The code of the type in the specification.
        code: u8,
        /// The size of one element in bytes.
        element_bytes: u8,
    },
}

impl DType {
    /// All known types, in the order of their codes in the file, which start at 1.
    pub const ALL: [Self; 26] = [
        Self::Bf16,
        Self::F16,
        Self::F32,
        Self::F64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::Bool,
        Self::Bytes,
        Self::Utf8,
        Self::F8E4M3Fn,
        Self::F8E4M3Fnuz,
        Self::F8E5M2,
        Self::F8E5M2Fnuz,
        Self::F8E8M0Fnu,
        Self::F6E2M3,
        Self::F6E3M2,
        Self::F4E2M1,
        Self::I4,
        Self::U4,
        Self::Complex64,
    ];

    /// Returns the size of one element in bytes; 1 for bytes and text.
    pub fn element_bytes(self) -> usize {
        match self {
            Self::Bf16 | Self::F16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 | Self::Complex64 => 8,
            Self::I8 | Self::U8 | Self::Bool | Self::Bytes | Self::Utf8 => 1,
            Self::F8E4M3Fn | Self::F8E4M3Fnuz | Self::F8E5M2 | Self::F8E5M2Fnuz | Self::F8E8M0Fnu => 1,
            Self::F6E2M3 | Self::F6E3M2 | Self::F4E2M1 | Self::I4 | Self::U4 => 1,
            Self::Unknown { element_bytes, .. } => usize::from(element_bytes),
        }
    }

    /// Returns the number of low bits that hold the value of an element. It is 1, 4 or 6 for types
    /// that do not fill a byte. The other bits of the byte are zero.
    pub fn value_bits(self) -> u32 {
        match self {
            Self::Bool => 1,
            Self::F4E2M1 | Self::I4 | Self::U4 => 4,
            Self::F6E2M3 | Self::F6E3M2 => 6,
            _ => 8 * u32::try_from(self.element_bytes()).unwrap_or(8), // at most 8
        }
    }

    /// Returns the name that the specification, the command line and messages use, such as
    /// `"bf16"`. Returns `"unknown"` for a type that this release does not support.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::Bool => "bool",
            Self::Bytes => "bytes",
            Self::Utf8 => "utf8",
            Self::F8E4M3Fn => "f8_e4m3fn",
            Self::F8E4M3Fnuz => "f8_e4m3fnuz",
            Self::F8E5M2 => "f8_e5m2",
            Self::F8E5M2Fnuz => "f8_e5m2fnuz",
            Self::F8E8M0Fnu => "f8_e8m0fnu",
            Self::F6E2M3 => "f6_e2m3",
            Self::F6E3M2 => "f6_e3m2",
            Self::F4E2M1 => "f4_e2m1",
            Self::I4 => "i4",
            Self::U4 => "u4",
            Self::Complex64 => "complex64",
            Self::Unknown { .. } => "unknown",
        }
    }

    /// Returns whether values can be rounded to this type, which is true for bf16, f16, f32 and
    /// f64.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Bf16 | Self::F16 | Self::F32 | Self::F64)
    }

    /// Returns whether values can be cast from this type, which is true for the four
    /// [floats](Self::is_float) and for integers of 8 to 64 bits.
    pub fn is_number(self) -> bool {
        self.is_float() || self.is_integer()
    }

    fn is_integer(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
            || matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }

    /// Returns whether samples are byte strings or text instead of tensors.
    pub fn is_string(self) -> bool {
        matches!(self, Self::Bytes | Self::Utf8)
    }

    /// Returns whether this is a float of 4 to 8 bits or an integer of 4 bits. Rust has no types
    /// for these, so each element is one byte.
    pub fn is_small(self) -> bool {
        matches!(self, Self::F8E4M3Fn | Self::F8E4M3Fnuz | Self::F8E5M2 | Self::F8E5M2Fnuz | Self::F8E8M0Fnu)
            || matches!(self, Self::F6E2M3 | Self::F6E3M2 | Self::F4E2M1 | Self::I4 | Self::U4)
    }

    /// Returns whether elements are read and written as `u8` although the type is not `u8`: bools,
    /// strings and [small](Self::is_small) numbers.
    pub fn is_byte(self) -> bool {
        self == Self::Bool || self.is_string() || self.is_small()
    }

    /// Returns the size, in bytes, of the unit that encodings treat as one element. A complex
    /// number has two of these units.
    pub fn coded_bytes(self) -> usize {
        if self == Self::Complex64 { 4 } else { self.element_bytes() }
    }

    /// Returns a mask of the bits that are zero in the byte of every element.
    pub(crate) fn unused_bits(self) -> u8 {
        if self.element_bytes() == 1 { u8::MAX.checked_shl(self.value_bits()).unwrap_or(0) } else { 0 }
    }

    pub(crate) fn code(self) -> u8 {
        if let Self::Unknown { code, .. } = self {
            return code;
        }
        // `ALL` has all known types, which are fewer than 255
        let codes = Self::ALL.into_iter().zip(1..);
        codes.into_iter().find(|(dtype, _)| *dtype == self).map_or(0, |(_, code)| code)
    }

    /// Returns the known type with this code.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        let index = usize::from(code).checked_sub(1)?;
        Self::ALL.get(index).copied()
    }

    /// Returns the exact value of an element of a [small](Self::is_small) type; `None` for other
    /// types.
    ///
    /// ```
    /// use tensilo::DType;
    ///
    /// assert_eq!(DType::F4E2M1.small_value(0x0F), Some(-6.0));
    /// assert_eq!(DType::I4.small_value(0x0F), Some(-1.0));
    /// ```
    pub fn small_value(self, element: u8) -> Option<f32> {
        small_value(self, element)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { code, .. } => write!(f, "unknown dtype {code}"),
            known => f.write_str(known.name()),
        }
    }
}

/// A row of the table in chapter 3.7 of the specification.
struct SmallFormat {
    /// The number of bits of sign, exponent and fraction.
    bits: (u32, u32, u32),
    bias: i32,
    special: Special,
}

/// The bit patterns that do not stand for finite numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    None,
    /// NaN if all bits except the sign are set.
    AllSet,
    /// NaN in place of -0.
    MinusZero,
    /// As in IEEE 754: infinities and NaNs if all exponent bits are set.
    Ieee,
}

/// Returns the value of an element of a small type; `None` for other types.
fn small_value(dtype: DType, element: u8) -> Option<f32> {
    let format = |bits, bias, special| Some(SmallFormat { bits, bias, special });
    let format = match dtype {
        DType::F8E4M3Fn => format((1, 4, 3), 7, Special::AllSet),
        DType::F8E4M3Fnuz => format((1, 4, 3), 8, Special::MinusZero),
        DType::F8E5M2 => format((1, 5, 2), 15, Special::Ieee),
        DType::F8E5M2Fnuz => format((1, 5, 2), 16, Special::MinusZero),
        DType::F8E8M0Fnu => format((0, 8, 0), 127, Special::AllSet),
        DType::F6E2M3 => format((1, 2, 3), 1, Special::None),
        DType::F6E3M2 => format((1, 3, 2), 3, Special::None),
        DType::F4E2M1 => format((1, 2, 1), 1, Special::None),
        DType::U4 => return Some((element & 0xF).into()),
        // the sign is bit 3
        DType::I4 => return Some(((element << 4).cast_signed() >> 4).into()),
        _ => None,
    };
    format.map(|format| format.value(element.into()))
}

impl SmallFormat {
    fn value(&self, element: u32) -> f32 {
        let (sign_bits, exponent_bits, fraction_bits) = self.bits;
        let field = |from: u32, bits: u32| element >> from & ((1 << bits) - 1); // at most 8 bits
        let (fraction, exponent) = (field(0, fraction_bits), field(fraction_bits, exponent_bits));
        let is_negative = field(fraction_bits + exponent_bits, sign_bits) == 1;
        let magnitude_bits = fraction_bits + exponent_bits;
        let are_set = |bits: u32, from: u32| field(from, bits) == (1 << bits) - 1;
        let special = match self.special {
            Special::AllSet if are_set(magnitude_bits, 0) => Some(f32::NAN),
            Special::MinusZero if is_negative && exponent == 0 && fraction == 0 => Some(f32::NAN),
            Special::Ieee if are_set(exponent_bits, fraction_bits) => {
                Some(if fraction == 0 { f32::INFINITY } else { f32::NAN })
            }
            _ => None,
        };
        let magnitude = special.unwrap_or_else(|| {
            // a type without a sign has neither zero nor subnormal values
            let is_normal = exponent > 0 || sign_bits == 0;
            let significand = if is_normal { (1 << fraction_bits) + fraction } else { fraction };
            // no overflow: all three are below 256
            let power = exponent.max(u32::from(sign_bits == 1)).cast_signed() - self.bias - fraction_bits.cast_signed();
            (f64::from(significand) * 2_f64.powi(power)) as f32 // exact
        });
        if is_negative { -magnitude } else { magnitude }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(dtype: DType) -> Vec<f32> {
        let count = 1_u16 << dtype.value_bits();
        (0..count).map(|element| small_value(dtype, element as u8).unwrap()).collect()
    }

    #[test]
    fn all_values_of_the_smallest_types_are_those_of_the_ocp_specification() {
        let positive = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
        let found = values(DType::F4E2M1);
        assert_eq!(found[..8], positive);
        assert_eq!(found[8..], positive.map(|value| -value));
        assert!(found[8].is_sign_negative());
        assert_eq!(
            values(DType::I4),
            [0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1].map(|i: i8| f32::from(i))
        );
        assert_eq!(values(DType::U4), std::array::from_fn::<f32, 16, _>(|i| i as f32));
    }

    /// The largest, the smallest normal and the smallest value of each type are the ones that the
    /// specification of the type states.
    #[test]
    fn ranges_are_those_of_the_specifications() {
        for (dtype, max, min_normal, min) in [
            (DType::F8E4M3Fn, (0x7E, 448.0), (0x08, 2_f32.powi(-6)), 2_f32.powi(-9)),
            (DType::F8E4M3Fnuz, (0x7F, 240.0), (0x08, 2_f32.powi(-7)), 2_f32.powi(-10)),
            (DType::F8E5M2, (0x7B, 57_344.0), (0x04, 2_f32.powi(-14)), 2_f32.powi(-16)),
            (DType::F8E5M2Fnuz, (0x7F, 57_344.0), (0x04, 2_f32.powi(-15)), 2_f32.powi(-17)),
            (DType::F6E2M3, (0x1F, 7.5), (0x08, 1.0), 0.125),
            (DType::F6E3M2, (0x1F, 28.0), (0x04, 0.25), 0.0625),
        ] {
            assert_eq!(small_value(dtype, max.0), Some(max.1), "{dtype}");
            assert_eq!(small_value(dtype, min_normal.0), Some(min_normal.1), "{dtype}");
            assert_eq!(small_value(dtype, 1), Some(min), "{dtype}");
            // values ascend with their bit patterns, and the upper half has the opposite sign
            let all = values(dtype);
            let (positive, negative) = all.split_at(all.len() / 2);
            assert!(positive.windows(2).all(|pair| pair[0] < pair[1] || !pair[1].is_finite()), "{dtype}");
            let is_mirrored = |(a, b): (&f32, &f32)| a.to_bits() ^ b.to_bits() == 1 << 31 || a.is_nan() || b.is_nan();
            assert!(positive.iter().zip(negative).all(is_mirrored), "{dtype}");
        }
        assert_eq!(small_value(DType::F8E8M0Fnu, 0), Some(2_f32.powi(-126) / 2.0));
        assert_eq!(small_value(DType::F8E8M0Fnu, 127), Some(1.0));
        assert_eq!(small_value(DType::F8E8M0Fnu, 254), Some(2_f32.powi(127)));
    }

    #[test]
    fn nan_and_infinity_follow_the_specification() {
        let of = |dtype, predicate: fn(f32) -> bool| -> Vec<u8> {
            (0..=u8::MAX).filter(|&element| small_value(dtype, element).is_some_and(predicate)).collect()
        };
        assert_eq!(of(DType::F8E4M3Fn, f32::is_nan), [0x7F, 0xFF]);
        assert_eq!(of(DType::F8E4M3Fnuz, f32::is_nan), [0x80]);
        assert_eq!(of(DType::F8E5M2, f32::is_nan), [0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF]);
        assert_eq!(of(DType::F8E5M2, f32::is_infinite), [0x7C, 0xFC]);
        assert_eq!(of(DType::F8E5M2Fnuz, f32::is_nan), [0x80]);
        assert_eq!(of(DType::F8E8M0Fnu, f32::is_nan), [0xFF]);
        for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_small() && *dtype != DType::F8E5M2) {
            assert!(of(dtype, f32::is_infinite).is_empty(), "{dtype}");
        }
        assert!(DType::ALL.into_iter().all(|dtype| small_value(dtype, 1).is_some() == dtype.is_small()));
    }
}
