//! Rounds numbers to floats when they are written, and records the errors.
//!
//! All sources are converted to f64 first. This is exact except for 64-bit integers and decimals,
//! which can have more digits. A [`Number`] is therefore the nearest f64 plus a remainder.
//!
//! Rounding twice, to f64 and then to a shorter type, can miss the nearest float by one step,
//! because the first rounding can produce a tie where there was none. The remedy is to round to odd
//! first: if the value is not exact, the last bit becomes 1. The second rounding then still sees
//! that the value lies between two floats, and on which side of a tie it lies.
//!
//! [`CastFacts`] records the errors. The footer stores them, because they cannot be computed again
//! once the source is gone.

use crate::element::dtype::DType;
use half::{bf16, f16};

/// The errors that a cast caused in the values of a column (chapter 7.6 of the specification).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CastFacts {
    /// The largest `|result - source|` where both are finite.
    pub max_abs_error: f64,
    /// The largest `|result - source| / |source|` where both are finite and the source is not 0.
    pub max_rel_error: f64,
    /// The number of finite values that became infinite.
    pub to_infinite: u64,
    /// The number of normal values that became subnormal or zero.
    pub to_subnormal: u64,
}

impl CastFacts {
    /// Returns the combined facts of both casts.
    pub fn merged(&self, other: &Self) -> Self {
        Self {
            // forbids a sign bit, and the `max` of 0.0 and -0.0 can have one
            max_abs_error: self.max_abs_error.max(other.max_abs_error).abs(),
            max_rel_error: self.max_rel_error.max(other.max_rel_error).abs(),
            to_infinite: self.to_infinite.saturating_add(other.to_infinite),
            to_subnormal: self.to_subnormal.saturating_add(other.to_subnormal),
        }
    }
}

/// An infinity, a NaN, or a finite number that need not be exact as an f64.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number {
    /// The nearest f64, ties to even.
    pub nearest: f64,
    /// The number minus `nearest`, rounded; 0 only if both are equal.
    pub rest: f64,
}

impl Number {
    /// Rounds the number to odd. Rounding the result to a shorter type then gives the same result
    /// as rounding the number itself.
    fn odd(self) -> f64 {
        if self.rest == 0.0 {
            return self.nearest;
        }
        let is_farther = (self.rest < 0.0) == (self.nearest > 0.0);
        // no underflow: `nearest` is not 0, because no other number here rounds to 0
        f64::from_bits(self.nearest.to_bits().saturating_sub(is_farther.into()) | 1)
    }
}

impl From<f64> for Number {
    fn from(nearest: f64) -> Self {
        Self { nearest, rest: 0.0 }
    }
}

impl From<i128> for Number {
    /// Converts an integer, which must have at most 100 bits.
    fn from(value: i128) -> Self {
        let nearest = value as f64; // rounds to nearest, ties to even
        Self { nearest, rest: value.saturating_sub(nearest as i128) as f64 }
    }
}

/// Rounds numbers to a float type, to nearest with ties to even, and records the errors.
#[derive(Clone, Debug)]
pub(crate) struct Caster {
    source: DType,
    target: DType,
    pub(crate) facts: CastFacts,
}

impl Caster {
    /// Creates a caster for elements of type `source`, which must be numeric.
    pub(crate) fn new(source: DType, target: DType) -> Self {
        Self { source, target, facts: CastFacts::default() }
    }

    /// Rounds the elements in `source` and appends the results to `out`, both in native byte order.
    pub(crate) fn cast(&mut self, source: &[u8], out: &mut Vec<u8>) {
        let f32_normal = f64::from(f32::MIN_POSITIVE);
        match self.source {
            DType::Bf16 => self.floats(source, |b| bf16::from_ne_bytes(b).to_f64(), f32_normal, out),
            DType::F16 => self.floats(source, |b| f16::from_ne_bytes(b).to_f64(), F16_NORMAL, out),
            DType::F32 => self.floats(source, |b| f32::from_ne_bytes(b).into(), f32_normal, out),
            DType::I8 => self.integers(source, |b| i8::from_ne_bytes(b).into(), out),
            DType::I16 => self.integers(source, |b| i16::from_ne_bytes(b).into(), out),
            DType::I32 => self.integers(source, |b| i32::from_ne_bytes(b).into(), out),
            DType::I64 => self.integers(source, |b| i64::from_ne_bytes(b).into(), out),
            DType::U8 => self.integers(source, |b| u8::from_ne_bytes(b).into(), out),
            DType::U16 => self.integers(source, |b| u16::from_ne_bytes(b).into(), out),
            DType::U32 => self.integers(source, |b| u32::from_ne_bytes(b).into(), out),
            DType::U64 => self.integers(source, |b| u64::from_ne_bytes(b).into(), out),
            _ => self.floats(source, f64::from_ne_bytes, f64::MIN_POSITIVE, out),
        }
    }

    fn floats<const N: usize>(
        &mut self,
        source: &[u8],
        read: impl Fn([u8; N]) -> f64,
        smallest_normal: f64,
        out: &mut Vec<u8>,
    ) {
        let values = source.as_chunks::<N>().0.iter().map(|bytes| read(*bytes).into());
        self.numbers(values, smallest_normal, out);
    }

    fn integers<const N: usize>(&mut self, source: &[u8], read: impl Fn([u8; N]) -> i128, out: &mut Vec<u8>) {
        let values = source.as_chunks::<N>().0.iter().map(|bytes| read(*bytes).into());
        self.numbers(values, f64::MIN_POSITIVE, out);
    }

    /// Rounds numbers and appends the results to `out`. `smallest_normal` is the smallest value
    /// that is neither subnormal nor zero in the source type.
    pub(crate) fn numbers(&mut self, values: impl Iterator<Item = Number>, smallest_normal: f64, out: &mut Vec<u8>) {
        match self.target {
            DType::Bf16 => self.to(values, smallest_normal, out, f64::from(f32::MIN_POSITIVE), |v| {
                let rounded = bf16::from_f32(to_f32_odd(v.odd()));
                (rounded.to_f64(), rounded.to_ne_bytes())
            }),
            DType::F16 => self.to(values, smallest_normal, out, F16_NORMAL, |v| {
                let rounded = f16::from_f32(to_f32_odd(v.odd()));
                (rounded.to_f64(), rounded.to_ne_bytes())
            }),
            DType::F32 => self.to(values, smallest_normal, out, f64::from(f32::MIN_POSITIVE), |v| {
                let rounded = to_f32(v.odd());
                (f64::from(rounded), rounded.to_ne_bytes())
            }),
            _ => self.to(values, smallest_normal, out, f64::MIN_POSITIVE, |v| {
                let is_nan = u64::from(v.nearest.is_nan());
                let quiet = f64::from_bits(v.nearest.to_bits() | is_nan << 51);
                (quiet, quiet.to_ne_bytes())
            }),
        }
    }

    fn to<const M: usize>(
        &mut self,
        values: impl Iterator<Item = Number>,
        smallest_source: f64,
        out: &mut Vec<u8>,
        smallest_target: f64,
        round: impl Fn(Number) -> (f64, [u8; M]),
    ) {
        let facts = &mut self.facts;
        for number in values {
            let (rounded, bytes) = round(number);
            out.extend_from_slice(&bytes);
            let value = number.nearest;
            if !value.is_finite() {
                continue;
            }
            if !rounded.is_finite() {
                facts.to_infinite = facts.to_infinite.saturating_add(1);
                continue;
            }
            let error = (rounded - value - number.rest).abs();
            facts.max_abs_error = facts.max_abs_error.max(error);
            if value != 0.0 {
                facts.max_rel_error = facts.max_rel_error.max(error / value.abs());
            }
            if rounded.abs() < smallest_target && value.abs() >= smallest_source {
                facts.to_subnormal = facts.to_subnormal.saturating_add(1);
            }
        }
    }
}

/// The smallest normal f16: 2^-14.
const F16_NORMAL: f64 = 1.0 / 16_384.0;

/// Rounds to the nearest `f32`, ties to even. A NaN keeps its sign and the upper bits of its
/// payload.
fn to_f32(value: f64) -> f32 {
    if !value.is_nan() {
        return value as f32; // rounds to nearest, ties to even; overflows to infinity
    }
    let bits = value.to_bits();
    let payload = (bits >> 29) as u32 & 0x007F_FFFF; // the upper 23 of 52 payload bits
    let sign = (bits >> 32) as u32 & 0x8000_0000; // the sign bit
    f32::from_bits(sign | 0x7FC0_0000 | payload)
}

/// Rounds to an `f32`, with rounding to odd. Rounding the result to a shorter type then gives the
/// same result as rounding `value` itself (Boldo and Melquiond, "Emulation of FMA and correctly
/// rounded sums", 2008).
fn to_f32_odd(value: f64) -> f32 {
    let nearest = to_f32(value);
    if value.is_nan() || f64::from(nearest) == value {
        return nearest;
    }
    let away = f64::from(nearest).abs() > value.abs();
    let towards_zero = nearest.to_bits() - u32::from(away); // no underflow: if `away`, `nearest` is not 0
    f32::from_bits(towards_zero | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast_one(source: DType, target: DType, bytes: &[u8]) -> (Vec<u8>, CastFacts) {
        let mut caster = Caster::new(source, target);
        let mut out = Vec::new();
        caster.cast(bytes, &mut out);
        (out, caster.facts)
    }

    #[test]
    fn a_tie_is_broken_by_bits_that_an_f32_does_not_have() {
        // halfway between two bf16 values, plus a little that only an f64 can hold
        let value = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
        let (out, _) = cast_one(DType::F64, DType::Bf16, &value.to_ne_bytes());
        assert_eq!(out, bf16::from_f32(1.0 + 2f32.powi(-7)).to_ne_bytes());
    }

    #[test]
    fn a_tie_goes_to_the_even_neighbor() {
        for (value, rounded) in [(1.0 + 2f32.powi(-8), 1.0), (1.0 + 3.0 * 2f32.powi(-8), 1.0 + 2f32.powi(-6))] {
            let (out, _) = cast_one(DType::F32, DType::Bf16, &value.to_ne_bytes());
            assert_eq!(out, bf16::from_f32(rounded).to_ne_bytes());
        }
    }

    #[test]
    fn nan_stays_nan_even_where_only_low_payload_bits_are_set() {
        let source = f64::from_bits(0x7FF0_0000_0000_0001);
        for target in [DType::Bf16, DType::F16, DType::F32] {
            let (out, facts) = cast_one(DType::F64, target, &source.to_ne_bytes());
            let is_nan = match target {
                DType::Bf16 => bf16::from_ne_bytes(out.try_into().unwrap()).is_nan(),
                DType::F16 => f16::from_ne_bytes(out.try_into().unwrap()).is_nan(),
                _ => f32::from_ne_bytes(out.try_into().unwrap()).is_nan(),
            };
            assert!(is_nan, "{target}");
            assert_eq!(facts, CastFacts::default());
        }
    }

    /// Chapter 3.3 of the specification.
    #[test]
    #[cfg_attr(miri, ignore = "Miri makes NaN payloads arbitrary")]
    fn a_nan_keeps_its_sign_and_the_first_bits_of_its_fraction() {
        use DType::{Bf16, F16, F32, F64};
        let f64_bits = 0xFFF0_1234_5678_9ABC_u64.to_ne_bytes();
        assert_eq!(cast_one(F64, F32, &f64_bits).0, 0xFFC0_91A2_u32.to_ne_bytes());
        assert_eq!(cast_one(F64, Bf16, &f64_bits).0, 0xFFC0_u16.to_ne_bytes());
        assert_eq!(cast_one(F64, F16, &f64_bits).0, 0xFE04_u16.to_ne_bytes());
        let f32_bits = 0x7F81_2345_u32.to_ne_bytes();
        assert_eq!(cast_one(F32, Bf16, &f32_bits).0, 0x7FC1_u16.to_ne_bytes());
        assert_eq!(cast_one(F32, F16, &f32_bits).0, 0x7E09_u16.to_ne_bytes());
        let f16_bits = 0xFC09_u16.to_ne_bytes();
        assert_eq!(cast_one(F16, F32, &f16_bits).0, 0xFFC1_2000_u32.to_ne_bytes());
        assert_eq!(cast_one(F16, Bf16, &f16_bits).0, 0xFFC1_u16.to_ne_bytes());
    }

    /// 64-bit integers are rounded once, and the facts include the errors that an f64 would hide.
    #[test]
    fn integers_are_rounded_once() {
        // slightly above an f32 tie, which an f64 rounds to the tie
        let value = (1_i64 << 60) + (1 << 36) + 1;
        let (out, facts) = cast_one(DType::I64, DType::F32, &value.to_ne_bytes());
        assert_eq!(out, (2f32.powi(60) + 2f32.powi(37)).to_ne_bytes());
        assert_eq!(facts.max_abs_error, 2f64.powi(36) - 1.0);
        let (out, facts) = cast_one(DType::U64, DType::F64, &u64::MAX.to_ne_bytes());
        assert_eq!((out, facts.max_abs_error), (2f64.powi(64).to_ne_bytes().to_vec(), 1.0));
        let (out, facts) = cast_one(DType::I8, DType::F16, &[0x80]);
        assert_eq!((out, facts), (f16::from_f32(-128.0).to_ne_bytes().to_vec(), CastFacts::default()));
    }

    #[test]
    fn the_record_counts_what_was_lost() {
        let values = [f32::MAX, 1e-20, 0.0, f32::INFINITY, 1.0 + 2f32.powi(-12)];
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let (_, facts) = cast_one(DType::F32, DType::F16, &bytes);
        assert_eq!((facts.to_infinite, facts.to_subnormal), (1, 1));
        assert_eq!(facts.max_rel_error, 1.0);
        assert_eq!(facts.max_abs_error, 2f64.powi(-12));
    }
}
