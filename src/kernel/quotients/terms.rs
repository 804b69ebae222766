//! The constants of a quotient, and the number that is divided.

use crate::kernel::Width;
use half::f16;

/// A format of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatFormat {
    /// The upper half of [`F32`](Self::F32).
    Bf16,
    /// IEEE 754 binary16.
    F16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl FloatFormat {
    /// Returns the width of an element.
    pub const fn width(self) -> Width {
        match self {
            Self::Bf16 | Self::F16 => Width::W2,
            Self::F32 => Width::W4,
            Self::F64 => Width::W8,
        }
    }

    /// Returns the number of significant bits.
    pub const fn precision(self) -> u32 {
        match self {
            Self::Bf16 => 8,
            Self::F16 => 11,
            Self::F32 => 24,
            Self::F64 => 53,
        }
    }
}

/// The constants of a quotient. Elements are `(base + number) / (divisor * 2^exponent)`, but for
/// details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotientTerms {
    /// The format of elements.
    pub format: FloatFormat,
    /// The most bits of details below a number: at most 15.
    pub detail_bits: u8,
    /// At most 2^24, which an `f32` has.
    pub divisor: u32,
    /// At least -126 and at most 126; or -1,022 and 1,022 in [`FloatFormat::F64`].
    pub exponent: i16,
    /// The number that the others count from.
    pub base: i64,
}

impl QuotientTerms {
    /// Returns the most bits of details, which all shifts are good for.
    #[inline(always)]
    pub(super) fn most_details(&self) -> u32 {
        self.detail_bits.min(15).into()
    }

    /// Returns the factor `2^-exponent`.
    #[inline(always)]
    pub(super) fn scale(&self) -> f64 {
        let most = if self.format == FloatFormat::F64 { 1022 } else { 126 };
        let biased = (1023 - self.exponent.clamp(-most, most)).unsigned_abs(); // 1 to 2,045: normal
        f64::from_bits(u64::from(biased) << 52)
    }

    /// Returns the same for elements of at most 4 bytes.
    #[inline(always)]
    pub(super) fn narrow_scale(&self) -> f32 {
        self.scale() as f32 // exact: a power of two that is normal
    }

    /// Returns the quotient of an integer as the bits of a float, which are its lowest ones: the
    /// definition.
    pub fn element(&self, integer: i64) -> u64 {
        // exact: elements of at most 4 bytes have integers of at most 32 bits
        let narrow = || integer as i32 as f32 / self.narrow_divisor() * self.narrow_scale();
        match self.format {
            FloatFormat::Bf16 => u16::from_le_bytes(to_bf16(narrow())).into(),
            FloatFormat::F16 => f16::from_f32(narrow()).to_bits().into(),
            FloatFormat::F32 => narrow().to_bits().into(),
            FloatFormat::F64 => (integer as f64 / f64::from(self.divisor) * self.scale()).to_bits(),
        }
    }

    /// Returns the divisor for elements of at most 4 bytes.
    #[inline(always)]
    pub(super) fn narrow_divisor(&self) -> f32 {
        self.divisor as f32 // exact: at most 2^24
    }
}

/// Rounds a number, which is no NaN, to the nearest bf16.
#[inline(always)]
pub(super) fn to_bf16(x: f32) -> [u8; 2] {
    let bits = x.to_bits();
    // the upper half; a carry out of the greatest finite number gives infinity
    let rounded = bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) >> 16;
    (rounded as u16).to_le_bytes() // exact: shifted
}

/// Rounds a number, which is no NaN, to the nearest f16. Has no branches, so that the compiler
/// makes vectors of it.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
pub(super) fn to_f16(x: f32) -> [u8; 2] {
    /// The least number that is infinity in any rounding: 2^16.
    const INFINITE: u32 = 0x4780_0000;
    /// The least normal number: 2^-14.
    const NORMAL: u32 = 0x3880_0000;
    let sign = x.to_bits() >> 16 & 0x8000;
    let bits = (x.to_bits() & 0x7FFF_FFFF).min(INFINITE);
    // a carry out of the greatest finite number gives infinity
    let normal = bits.wrapping_sub(112 << 23).wrapping_add(0xFFF + (bits >> 13 & 1)) >> 13;
    // the lowest bit of 0.5 has the value of the lowest one of a subnormal number
    let subnormal = (f32::from_bits(bits) + 0.5).to_bits().wrapping_sub(0.5_f32.to_bits());
    let rounded = if bits < NORMAL { subnormal } else { normal };
    ((rounded | sign) as u16).to_le_bytes() // exact: 15 bits and the sign
}
