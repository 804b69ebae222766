//! The types of elements.
//!
//! Chapter 3.2 of the specification is the registry: the number of a type, and the bytes of its
//! elements. A file also states the bytes. So a reader that does not know a type, because a later
//! release has added it, still finds, checks and copies its elements. It refuses to return them.
//!
//! Types whose values have fewer than 8 bits have a byte for each element. The bits above are
//! zero, which check.

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
    /// A string of bytes for each sample.
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
    /// OCP float of 6 bits, in a byte: 2 exponent and 3 mantissa bits.
    F6E2M3,
    /// OCP float of 6 bits, in a byte: 3 exponent and 2 mantissa bits.
    F6E3M2,
    /// OCP float of 4 bits, in a byte: 2 exponent bits and 1 mantissa bit.
    F4E2M1,
    /// Signed, 4 bits in a byte, of which the upper 4 are zero: -1 is 0x0F.
    I4,
    /// Unsigned, 4 bits in a byte.
    U4,
    /// Two `f32`: the real and the imaginary part.
    Complex64,
    /// A type that this release does not know. Its samples cannot be read.
    Unknown {
        /// The number of the type in the specification.
        code: u8,
        /// The bytes of one element.
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

    /// Returns the bytes of one element; 1 for bytes and text.
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

    /// Returns the bits of an element that its value takes, the lowest ones: 1, 4 or 6 for types
    /// that do not use their byte. The other bits are zero.
    pub fn value_bits(self) -> u32 {
        match self {
            Self::Bool => 1,
            Self::F4E2M1 | Self::I4 | Self::U4 => 4,
            Self::F6E2M3 | Self::F6E3M2 => 6,
            _ => 8 * u32::try_from(self.element_bytes()).unwrap_or(8), // at most 8
        }
    }

    /// Returns the name in the specification, on the command line and in messages, such as
    /// `"bf16"`; `"unknown"` for a type that this release does not know.
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

    /// Returns whether this is one of the four types to which values can be rounded: bf16, f16,
    /// f32 and f64.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Bf16 | Self::F16 | Self::F32 | Self::F64)
    }

    /// Returns whether this is a type from which values can be cast: one of those four, or an
    /// integer of 8 to 64 bits.
    pub fn is_number(self) -> bool {
        self.is_float() || self.is_integer()
    }

    fn is_integer(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
            || matches!(self, Self::U8 | Self::U16 | Self::U32 | Self::U64)
    }

    /// Returns whether samples are strings of bytes or text instead of tensors.
    pub fn is_string(self) -> bool {
        matches!(self, Self::Bytes | Self::Utf8)
    }

    /// Returns whether this is a float of 4 to 8 bits or an integer of 4 bits, for which Rust has
    /// no type. An element is one byte.
    pub fn is_small(self) -> bool {
        matches!(self, Self::F8E4M3Fn | Self::F8E4M3Fnuz | Self::F8E5M2 | Self::F8E5M2Fnuz | Self::F8E8M0Fnu)
            || matches!(self, Self::F6E2M3 | Self::F6E3M2 | Self::F4E2M1 | Self::I4 | Self::U4)
    }

    /// Returns whether elements of another type are read and written as `u8`: bools, strings and
    /// [small](Self::is_small) numbers.
    pub fn is_byte(self) -> bool {
        self == Self::Bool || self.is_string() || self.is_small()
    }

    /// Returns the bytes of what encodings take as one element: half of a complex number.
    pub fn coded_bytes(self) -> usize {
        if self == Self::Complex64 { 4 } else { self.element_bytes() }
    }

    /// Returns the bits of a byte that are zero in each element.
    pub(crate) fn unused_bits(self) -> u8 {
        if self.element_bytes() == 1 { u8::MAX.checked_shl(self.value_bits()).unwrap_or(0) } else { 0 }
    }

    pub(crate) fn code(self) -> u8 {
        if let Self::Unknown { code, .. } = self {
            return code;
        }
        // `ALL` has fewer than 255 types, and each that is known
        let codes = Self::ALL.into_iter().zip(1..);
        codes.into_iter().find(|(dtype, _)| *dtype == self).map_or(0, |(_, code)| code)
    }

    /// Returns the known type with this code.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        let index = usize::from(code).checked_sub(1)?;
        Self::ALL.get(index).copied()
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
