//! Loops that the compiler makes vectors of. Elements of at most 4 bytes are computed in 32 bits.

use super::NumberDetails;
use super::terms::{FloatFormat, QuotientTerms, to_bf16, to_f16};
use crate::kernel::Width;

/// [`Kernel::detail_lengths`](super::Kernel::detail_lengths) of numbers of `V` bytes.
#[inline(always)]
pub(super) fn detail_lengths<T, const V: usize>(_: T, terms: &QuotientTerms, _: Width, numbers: &[u8], out: &mut [u8]) {
    let precision = terms.format.precision().cast_signed();
    let most = terms.most_details().cast_signed();
    let each = numbers.as_chunks::<V>().0.iter().zip(out);
    // exact: at most 15
    if terms.format == FloatFormat::F64 {
        let sum = wide_sums::<V>(terms);
        each.for_each(|(number, length)| {
            let sum = sum(number);
            let bits = 64 - (sum ^ (sum >> 63)).leading_zeros().cast_signed();
            *length = (precision - bits).clamp(0, most) as u8 + 1;
        });
    } else {
        let sum = narrow_sums::<V>(terms);
        each.for_each(|(number, length)| {
            let sum = sum(number);
            *length = (precision - bit_length(sum ^ (sum >> 31))).clamp(0, most) as u8 + 1;
        });
    }
}

/// [`Kernel::divide`](super::Kernel::divide) of numbers of `V` bytes.
#[inline(always)]
pub(super) fn divide<T, const V: usize>(_: T, terms: &QuotientTerms, _: Width, numbers: &[u8], out: &mut [u8]) {
    let numbers = numbers.as_chunks::<V>().0.iter();
    match (terms.format, terms.divisor) {
        (FloatFormat::F64, _) => set_wide(terms, terms.divisor.into(), numbers.map(wide_sums(terms)), out),
        // the same as a division by 1, and faster
        (_, 1) => {
            let scale = terms.narrow_scale();
            set_narrow(terms, |n| n as f32 * scale, numbers.map(narrow_sums(terms)), out);
        }
        _ => {
            let (divisor, scale) = (terms.narrow_divisor(), terms.narrow_scale());
            set_narrow(terms, |n| n as f32 / divisor * scale, numbers.map(narrow_sums(terms)), out);
        }
    }
}

/// [`Kernel::join`](super::Kernel::join) of numbers of `V` bytes.
#[inline(always)]
pub(super) fn join<T, const V: usize>(
    _: T,
    terms: &QuotientTerms,
    _: Width,
    numbers: &[u8],
    details: NumberDetails<'_>,
    out: &mut [u8],
) {
    let most = terms.most_details();
    let each = numbers.as_chunks::<V>().0.iter().zip(details.integers.iter().zip(details.lengths));
    if terms.format == FloatFormat::F64 {
        let sum = wide_sums::<V>(terms);
        let integers = each.map(|(number, (&integer, &length))| {
            let bits = u32::from(length.wrapping_sub(1) & 15);
            let details = i64::from(u16::from_le_bytes(integer)) - (1 << bits);
            (sum(number) << most).wrapping_add(details << most.saturating_sub(bits))
        });
        set_wide(terms, 1.0, integers, out);
    } else {
        let (sum, scale) = (narrow_sums::<V>(terms), terms.narrow_scale());
        let integers = each.map(|(number, (&integer, &length))| {
            let bits = u32::from(length.wrapping_sub(1) & 15);
            let details = i32::from(u16::from_le_bytes(integer)) - (1 << bits);
            (sum(number) << most).wrapping_add(details << most.saturating_sub(bits))
        });
        set_narrow(terms, |n| n as f32 * scale, integers, out);
    }
}

/// Returns a function from numbers to their sums with the base, as far as there are bits for them.
#[inline(always)]
fn wide_sums<const V: usize>(terms: &QuotientTerms) -> impl Fn(&[u8; V]) -> i64 {
    let (base, unused) = (terms.base, terms.most_details());
    move |number| base.wrapping_add(wide(number)) << unused >> unused
}

/// Returns the same in 32 bits.
#[inline(always)]
fn narrow_sums<const V: usize>(terms: &QuotientTerms) -> impl Fn(&[u8; V]) -> i32 {
    // the lower bits: sums are modulo less
    let (base, unused) = (terms.base as i32, terms.most_details());
    move |number| base.wrapping_add(wide(number) as i32) << unused >> unused
}

#[inline(always)]
fn wide<const V: usize>(number: &[u8; V]) -> i64 {
    let mut wide = [0; 8];
    wide.iter_mut().zip(number).for_each(|(to, from)| *to = *from);
    i64::from_le_bytes(wide)
}

/// Returns the bit length of a number that is not negative, or a greater one than 24 if it has more
/// than 24 bits. The exponent of a float tells it.
#[inline(always)]
fn bit_length(number: i32) -> i32 {
    let exponent = (number as f32).to_bits() >> 23; // at most 8 bits: no sign
    (exponent.cast_signed() - 126).max(0)
}

/// Sets `out` to the quotients of integers in a format of at most 4 bytes.
#[inline(always)]
fn set_narrow(
    terms: &QuotientTerms,
    quotient: impl Fn(i32) -> f32,
    integers: impl Iterator<Item = i32>,
    out: &mut [u8],
) {
    let quotients = integers.map(quotient);
    match terms.format {
        FloatFormat::Bf16 => set_all(quotients.map(to_bf16), out),
        FloatFormat::F16 => set_all(quotients.map(to_f16), out),
        FloatFormat::F32 | FloatFormat::F64 => set_all(quotients.map(f32::to_le_bytes), out),
    }
}

/// Sets `out` to the quotients of integers in the format of 8 bytes.
#[inline(always)]
fn set_wide(terms: &QuotientTerms, divisor: f64, integers: impl Iterator<Item = i64>, out: &mut [u8]) {
    let scale = terms.scale();
    set_all(integers.map(|n| (n as f64 / divisor * scale).to_le_bytes()), out);
}

#[inline(always)]
fn set_all<const W: usize>(elements: impl Iterator<Item = [u8; W]>, out: &mut [u8]) {
    out.as_chunks_mut().0.iter_mut().zip(elements).for_each(|(to, element)| *to = element);
}
