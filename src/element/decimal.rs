//! Decimals: an unscaled integer of up to 256 bits, times a power of ten.
//!
//! A cast requires two conversions: to an equal integer, if there is one, and to the nearest float,
//! with its error. The fast path divides or multiplies by a power of ten, and a fused multiply-add
//! computes the remainder. The result is correctly rounded if both operands are exact as floats: an
//! integer of up to 53 bits, and a power of up to 10^22. All other decimals take the slow path.
//! There, the standard library parses the digits, which rounds correctly, and the remainder is
//! computed with integers of arbitrary length.

use crate::element::cast::Number;
use std::cmp::Ordering;
use std::fmt;

/// The number `unscaled / 10^scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    is_negative: bool,
    /// Little-endian.
    magnitude: [u64; 4],
    scale: i8,
}

impl Decimal {
    /// Creates a decimal from an unscaled integer of at most 32 bytes, in little-endian two's
    /// complement.
    pub(crate) fn from_le_bytes(bytes: &[u8], scale: i8) -> Self {
        let is_negative = bytes.last().is_some_and(|byte| *byte >= 0x80);
        let mut magnitude = [0; 4];
        for (i, word) in magnitude.iter_mut().enumerate() {
            let filling = if is_negative { 0xFF } else { 0 };
            let byte = |k: usize| bytes.get(i * 8 + k).copied().unwrap_or(filling);
            *word = u64::from_le_bytes(std::array::from_fn(byte));
        }
        if is_negative {
            let mut carry = true;
            for word in &mut magnitude {
                (*word, carry) = (!*word).overflowing_add(carry.into());
            }
        }
        Self { is_negative, magnitude, scale }
    }

    /// Returns the integer that equals the decimal; `None` if it is not whole or needs more than
    /// 127 bits.
    pub(crate) fn to_integer(self) -> Option<i128> {
        let mut magnitude = Natural::of(&self.magnitude);
        for _ in 0..self.scale.max(0) {
            if magnitude.0.is_empty() {
                break;
            }
            if magnitude.divide(10) != 0 {
                return None;
            }
        }
        for _ in self.scale..0 {
            if magnitude.0.len() > 2 {
                return None;
            }
            magnitude.multiply(10);
        }
        let [low, high] = match magnitude.0.as_slice() {
            [] => [0, 0],
            [low] => [*low, 0],
            [low, high] => [*low, *high],
            _ => return None,
        };
        let magnitude = i128::try_from(u128::from(high) << 64 | u128::from(low)).ok()?;
        Some(if self.is_negative { -magnitude } else { magnitude })
    }

    /// Returns the nearest f64, with ties to even, and the remainder.
    pub(crate) fn to_number(self) -> Number {
        const WHOLE: u64 = 1 << 53; // all integers up to this are exact as floats
        let positive = match self.magnitude {
            [0, 0, 0, 0] => Number { nearest: 0.0, rest: 0.0 },
            [low @ 0..=WHOLE, 0, 0, 0] if self.scale.unsigned_abs() <= 22 => {
                // both operands are exact
                let (unscaled, power) = (low as f64, 10_f64.powi(self.scale.unsigned_abs().into()));
                if self.scale >= 0 {
                    let nearest = unscaled / power;
                    Number { nearest, rest: (-nearest).mul_add(power, unscaled) / power }
                } else {
                    let nearest = unscaled * power;
                    Number { nearest, rest: unscaled.mul_add(power, -nearest) }
                }
            }
            _ => self.parsed(),
        };
        if self.is_negative { Number { nearest: -positive.nearest, rest: -positive.rest } } else { positive }
    }

    /// Computes the nearest f64 and the remainder from the digits of the magnitude, which must not
    /// be 0.
    fn parsed(self) -> Number {
        const HIDDEN: u64 = 1 << 52;
        let magnitude = Natural::of(&self.magnitude);
        let nearest: f64 =
            format!("{}e{}", magnitude.clone().digits(), -i32::from(self.scale)).parse().unwrap_or(f64::NAN);
        // always a normal float: the extremes are 10^-127 and 2^255 * 10^128
        let (mantissa, exponent) = (nearest.to_bits() & (HIDDEN - 1) | HIDDEN, (nearest.to_bits() >> 52) as i32 - 1075);
        let (scale, binary) = (i32::from(self.scale), -exponent);
        let (mut number, mut float) = (magnitude, Natural::of(&[mantissa]));
        (0..-scale).for_each(|_| number.multiply(10));
        (0..scale).for_each(|_| float.multiply(10));
        number.shift(binary);
        float.shift(-binary);
        let (rest, sign) = match number.compare(&float) {
            Ordering::Less => (float.minus(&number), -1.0),
            _ => (number.minus(&float), 1.0),
        };
        let rest = sign * rest.to_f64() / 10_f64.powi(scale.max(0)) * 2_f64.powi(-binary.max(0));
        Number { nearest, rest }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = Natural::of(&self.magnitude).digits();
        let (sign, places) = (if self.is_negative { "-" } else { "" }, usize::from(self.scale.unsigned_abs()));
        if self.scale <= 0 {
            let zeros = if digits == "0" { 0 } else { places };
            return write!(f, "{sign}{digits}{}", "0".repeat(zeros));
        }
        let digits = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = digits.split_at_checked(digits.len() - places).unwrap_or((&digits, ""));
        write!(f, "{sign}{whole}.{fraction}")
    }
}

/// A natural number of any length: little-endian words without trailing zeros.
#[derive(Clone)]
struct Natural(Vec<u64>);

impl Natural {
    fn of(words: &[u64]) -> Self {
        let mut natural = Self(words.to_vec());
        natural.trim();
        natural
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn multiply(&mut self, factor: u64) {
        let mut carry = 0;
        for word in &mut self.0 {
            let product = u128::from(*word) * u128::from(factor) + carry;
            (*word, carry) = (product as u64, product >> 64); // low and high half
        }
        self.0.extend((carry > 0).then_some(carry as u64));
    }

    /// Divides by `divisor`, and returns the remainder.
    fn divide(&mut self, divisor: u64) -> u64 {
        let mut rest = 0;
        for word in self.0.iter_mut().rev() {
            let dividend = rest << 64 | u128::from(*word);
            *word = (dividend / u128::from(divisor)) as u64; // fits: the remainder is less than the divisor
            rest = dividend % u128::from(divisor);
        }
        self.trim();
        rest as u64
    }

    /// Multiplies by a power of two. Does nothing if the exponent is negative.
    fn shift(&mut self, exponent: i32) {
        let exponent = u32::try_from(exponent).unwrap_or(0);
        self.multiply(1 << (exponent % 64));
        if !self.0.is_empty() {
            self.0.splice(0..0, std::iter::repeat_n(0, (exponent / 64) as usize));
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// Subtracts `other`, which must not be larger.
    fn minus(mut self, other: &Self) -> Self {
        let mut borrow = false;
        let others = other.0.iter().copied().chain(std::iter::repeat(0));
        for (word, other) in self.0.iter_mut().zip(others) {
            let (difference, first) = word.overflowing_sub(other);
            let (difference, second) = difference.overflowing_sub(borrow.into());
            (*word, borrow) = (difference, first || second);
        }
        self.trim();
        self
    }

    /// Returns an approximation of the number.
    fn to_f64(&self) -> f64 {
        self.0.iter().rev().fold(0.0, |number, word| number * 2_f64.powi(64) + *word as f64)
    }

    fn digits(mut self) -> String {
        const EACH: u64 = 10_u64.pow(19);
        let mut groups = Vec::new();
        while !self.0.is_empty() {
            groups.push(self.divide(EACH));
        }
        let mut digits = groups.pop().unwrap_or(0).to_string();
        groups.iter().rev().for_each(|group| digits.push_str(&format!("{group:019}")));
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(unscaled: i128, scale: i8) -> Decimal {
        Decimal::from_le_bytes(&unscaled.to_le_bytes(), scale)
    }

    #[test]
    fn texts_have_all_digits() {
        for (unscaled, scale, expected) in [
            (150, 2, "1.50"),
            (-5, 2, "-0.05"),
            (0, 3, "0.000"),
            (0, -3, "0"),
            (-7, -3, "-7000"),
            (i128::MIN, 0, "-170141183460469231731687303715884105728"),
        ] {
            assert_eq!(decimal(unscaled, scale).to_string(), expected);
        }
        let mut min = [0; 32];
        min[31] = 0x80;
        let expected = "-57896044618658097711785492504343953926634992332820282019728792003956564819968";
        assert_eq!(Decimal::from_le_bytes(&min, 0).to_string(), expected);
    }

    #[test]
    fn whole_decimals_are_integers() {
        for (unscaled, scale, expected) in [
            (150, 2, None),
            (-300, 2, Some(-3)),
            (0, 127, Some(0)),
            (7, -3, Some(7000)),
            (1, -39, None),
            (0, -128, Some(0)),
            (5 * 10_i128.pow(37), 37, Some(5)),
            (i128::MAX, 0, Some(i128::MAX)),
        ] {
            assert_eq!(decimal(unscaled, scale).to_integer(), expected, "{unscaled}e-{scale}");
        }
    }

    #[test]
    fn floats_are_the_nearest_and_have_a_rest() {
        let number = decimal(1, 1).to_number();
        assert_eq!(number.nearest, 0.1);
        // the nearest float is 0.1000000000000000055511151231257827...
        assert_eq!(number.rest, -5.551115123125783e-18);
        let number = decimal((1 << 53) + 1, 0).to_number();
        assert_eq!((number.nearest, number.rest), (9007199254740992.0, 1.0));
        let number = decimal(-225, 2).to_number();
        assert_eq!((number.nearest, number.rest), (-2.25, 0.0));
        for (unscaled, scale) in [(i128::MAX, 127), (i128::MIN, -128), (1, 127), (10_i128.pow(38) - 1, 19), (3, 23)] {
            let number = decimal(unscaled, scale).to_number();
            assert_eq!(number.nearest, format!("{unscaled}e{}", -i32::from(scale)).parse::<f64>().unwrap());
            assert!(number.rest.abs() <= number.nearest.abs() * 2_f64.powi(-53), "{unscaled}e-{scale}: {number:?}");
        }
    }

    /// Both paths agree, except that the remainders can differ by rounding errors of the powers.
    #[test]
    fn division_and_parsing_agree() {
        let mut unscaled = 1_u64;
        for i in 0..2_000_u64 {
            unscaled = unscaled.wrapping_mul(6364136223846793005).wrapping_add(i) & ((1 << 53) - 1);
            for scale in [-22, -3, 1, 2, 7, 22] {
                let decimal = decimal(i128::from(unscaled), scale);
                let (divided, parsed) = (decimal.to_number(), decimal.parsed());
                assert_eq!(divided.nearest, parsed.nearest);
                let difference = (divided.rest - parsed.rest).abs();
                assert!(difference <= divided.rest.abs() * 1e-15, "{unscaled}e-{scale}: {divided:?}, {parsed:?}");
            }
        }
    }
}
