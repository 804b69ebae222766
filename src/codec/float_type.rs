//! The types of floats that quotients make.

use crate::dtype::DType;
use crate::kernel::Width;
use crate::kernel::quotients::FloatFormat;
use half::{bf16, f16};

/// A type of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FloatType {
    Bf16 = 1,
    F16 = 2,
    F32 = 3,
    F64 = 4,
}

impl FloatType {
    const ALL: [Self; 4] = [Self::Bf16, Self::F16, Self::F32, Self::F64];

    /// Returns the type with this code in the file.
    pub(super) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.code() == code)
    }

    pub(super) fn code(self) -> u8 {
        self as u8 // exact: the discriminants are the codes
    }

    /// Returns the type of the elements of a column; `None` if they are not floats.
    pub(super) fn of_column(dtype: DType) -> Option<Self> {
        match dtype {
            DType::Bf16 => Some(Self::Bf16),
            DType::F16 => Some(Self::F16),
            DType::F32 | DType::Complex64 => Some(Self::F32), // which is coded as two
            DType::F64 => Some(Self::F64),
            _ => None,
        }
    }

    /// Returns the format as kernels call it.
    pub(super) fn format(self) -> FloatFormat {
        match self {
            Self::Bf16 => FloatFormat::Bf16,
            Self::F16 => FloatFormat::F16,
            Self::F32 => FloatFormat::F32,
            Self::F64 => FloatFormat::F64,
        }
    }

    pub(super) fn width(self) -> Width {
        self.format().width()
    }

    /// Returns the number of significant bits.
    pub(super) fn precision(self) -> u32 {
        self.format().precision()
    }

    /// Returns the value of an element, which has the type's length. That is exact.
    pub(super) fn value(self, element: &[u8]) -> f64 {
        match (self, element) {
            (Self::Bf16, &[a, b]) => bf16::from_le_bytes([a, b]).to_f64(),
            (Self::F16, &[a, b]) => f16::from_le_bytes([a, b]).to_f64(),
            (Self::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).into(),
            (Self::F64, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => 0.0, // no element
        }
    }
}
