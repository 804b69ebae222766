//! The values of numbers of 4 to 8 bits.
//!
//! The table of chapter 3.7 of the specification is the table here. With `e` and `f` the fields of
//! an element, a value is `(1 + f / 2^m) * 2^(e - bias)`, or `f / 2^m * 2^(1 - bias)` if `e` is 0.
//! All of them are values of `f32`. What differs from type to type is which bits are no numbers.

use crate::dtype::DType;

/// A row of the table.
struct Format {
    /// The bits of sign, exponent and fraction.
    bits: (u32, u32, u32),
    bias: i32,
    special: Special,
}

/// The elements that are not finite.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    None,
    /// NaN, if all bits but the sign are set.
    AllSet,
    /// NaN, where -0 would be.
    MinusZero,
    /// Infinities and NaNs as in IEEE 754: if all bits of the exponent are set.
    Ieee,
}

impl DType {
    /// Returns the value of an element of a [small](Self::is_small) type, which is exact; `None`
    /// for other types.
    ///
    /// ```
    /// use tensilo::DType;
    ///
    /// assert_eq!(DType::F4E2M1.small_value(0x0F), Some(-6.0));
    /// assert_eq!(DType::I4.small_value(0x0F), Some(-1.0));
    /// ```
    pub fn small_value(self, element: u8) -> Option<f32> {
        value(self, element)
    }
}

/// Returns the value of an element; `None` for other types.
fn value(dtype: DType, element: u8) -> Option<f32> {
    let format = |bits, bias, special| Some(Format { bits, bias, special });
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

impl Format {
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
            // without a sign there is no zero, and no other value of a smaller form
            let is_normal = exponent > 0 || sign_bits == 0;
            let significand = if is_normal { (1 << fraction_bits) + fraction } else { fraction };
            // all below 256
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
        (0..count).map(|element| value(dtype, element as u8).unwrap()).collect()
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

    /// Largest, smallest normal and smallest value, as the specifications of the types state them.
    #[test]
    fn ranges_are_those_of_the_specifications() {
        for (dtype, most, least_normal, least) in [
            (DType::F8E4M3Fn, (0x7E, 448.0), (0x08, 2_f32.powi(-6)), 2_f32.powi(-9)),
            (DType::F8E4M3Fnuz, (0x7F, 240.0), (0x08, 2_f32.powi(-7)), 2_f32.powi(-10)),
            (DType::F8E5M2, (0x7B, 57_344.0), (0x04, 2_f32.powi(-14)), 2_f32.powi(-16)),
            (DType::F8E5M2Fnuz, (0x7F, 57_344.0), (0x04, 2_f32.powi(-15)), 2_f32.powi(-17)),
            (DType::F6E2M3, (0x1F, 7.5), (0x08, 1.0), 0.125),
            (DType::F6E3M2, (0x1F, 28.0), (0x04, 0.25), 0.0625),
        ] {
            assert_eq!(value(dtype, most.0), Some(most.1), "{dtype}");
            assert_eq!(value(dtype, least_normal.0), Some(least_normal.1), "{dtype}");
            assert_eq!(value(dtype, 1), Some(least), "{dtype}");
            // values ascend with their bits, and the upper half has the other sign
            let all = values(dtype);
            let (positive, negative) = all.split_at(all.len() / 2);
            assert!(positive.windows(2).all(|pair| pair[0] < pair[1] || !pair[1].is_finite()), "{dtype}");
            let is_mirrored = |(a, b): (&f32, &f32)| a.to_bits() ^ b.to_bits() == 1 << 31 || a.is_nan() || b.is_nan();
            assert!(positive.iter().zip(negative).all(is_mirrored), "{dtype}");
        }
        assert_eq!(value(DType::F8E8M0Fnu, 0), Some(2_f32.powi(-126) / 2.0));
        assert_eq!(value(DType::F8E8M0Fnu, 127), Some(1.0));
        assert_eq!(value(DType::F8E8M0Fnu, 254), Some(2_f32.powi(127)));
    }

    #[test]
    fn what_is_no_number_is_as_the_specification_says() {
        let of = |dtype, wanted: fn(f32) -> bool| -> Vec<u8> {
            (0..=u8::MAX).filter(|&element| value(dtype, element).is_some_and(wanted)).collect()
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
        assert!(DType::ALL.into_iter().all(|dtype| value(dtype, 1).is_some() == dtype.is_small()));
    }
}
