//! The types of elements.

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
}

impl DType {
    /// All types, in the order of their codes in the file, which start at 1.
    pub const ALL: [Self; 15] = [
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
    ];

    /// Returns the bytes of one element; 1 for bytes and text.
    pub fn element_bytes(self) -> usize {
        match self {
            Self::Bf16 | Self::F16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
            Self::I8 | Self::U8 | Self::Bool | Self::Bytes | Self::Utf8 => 1,
        }
    }

    /// Returns the name in the specification, on the command line and in messages, such as
    /// `"bf16"`.
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
        }
    }

    /// Returns whether this is one of the four floating-point types.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Bf16 | Self::F16 | Self::F32 | Self::F64)
    }

    /// Returns whether elements are numbers: floats or integers, not bools.
    pub fn is_number(self) -> bool {
        !matches!(self, Self::Bool | Self::Bytes | Self::Utf8)
    }

    /// Returns whether samples are strings of bytes or text instead of tensors.
    pub fn is_string(self) -> bool {
        matches!(self, Self::Bytes | Self::Utf8)
    }

    pub(crate) fn code(self) -> u8 {
        // `ALL` lists every variant in the order of the enum, so the discriminant is below 15
        self as u8 + 1
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        let index = usize::from(code).checked_sub(1)?;
        Self::ALL.get(index).copied()
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
