//! Finds quotients, as writers use them.

use super::quotient::{MOST_DETAIL_BITS, Quotient};
use crate::codec::float_type::FloatType;
use crate::kernel::Width;

/// The elements that are looked at, at least.
const SAMPLE: usize = 1024;
/// One element in this many may have bits below the lowest one of all others.
const LOWER: usize = 512;
/// One element of the sample in this many is tried.
const LOOKED_AT_ONE_IN: usize = 4;
/// One element in this many may be an exception.
const EXCEPTIONS: usize = 64;

/// Divisors that people use besides powers of two: of decimals, as factor and power of two, and of
/// integers that were scaled to 1.
const DIVISORS: [(u32, i16); 9] =
    [(5, 1), (25, 2), (125, 3), (625, 4), (3125, 5), (15_625, 6), (255, 0), (65_535, 0), (32_767, 0)];

/// The binary exponents of the highest and lowest one bit of a number.
#[derive(Clone, Copy)]
struct OneBits {
    highest: i32,
    lowest: i32,
}

impl OneBits {
    /// Returns those of a finite number that is not 0.
    fn of(x: f64) -> Option<Self> {
        if x == 0.0 || !x.is_finite() {
            return None;
        }
        // a subnormal f64 counts as if it were normal, and is an exception
        let exponent = (x.to_bits() >> 52 & 0x7FF) as i32 - 1023; // exact: 11 bits
        let zeros = (x.to_bits() | 1 << 52).trailing_zeros() as i32; // at most 52
        Some(Self { highest: exponent, lowest: exponent - 52 + zeros })
    }
}

/// Returns quotients that may express elements, judged by some of them. Details pay only if
/// elements are predictable.
pub(in crate::codec) fn find_quotients(float_type: FloatType, raw: &[u8], may_have_details: bool) -> Vec<Quotient> {
    let w = float_type.width().bytes();
    // an odd step, since rows have even lengths
    let sample: Vec<&[u8]> = raw.chunks_exact(w).step_by((raw.len() / w / SAMPLE) | 1).collect();
    let mut bits: Vec<OneBits> = sample.iter().filter_map(|element| OneBits::of(float_type.value(element))).collect();
    let Some(highest) = bits.iter().map(|bits| bits.highest).max() else { return Vec::new() };
    let rare = bits.len() / LOWER; // below their number, which is not 0
    let (_, lowest, _) = bits.select_nth_unstable_by_key(rare, |bits| bits.lowest);
    let lowest = lowest.lowest;
    let exact = exact(float_type, highest, lowest);
    let with_details = may_have_details.then(|| with_details(float_type, highest, lowest)).flatten();
    let decimals = match exact {
        Some(_) => None, // a power of two does
        None => {
            DIVISORS.into_iter().find_map(|(divisor, exponent)| scaled(float_type, divisor, exponent, highest, &sample))
        }
    };
    let narrower = exact.into_iter().chain(decimals).flat_map(with_narrower);
    narrower.filter(|quotient| gives_most(quotient, &sample)).chain(with_details).collect()
}

/// Returns whether a quotient expresses nearly all of the sample.
fn gives_most(quotient: &Quotient, sample: &[&[u8]]) -> bool {
    let mut exceptions = sample.iter().step_by(LOOKED_AT_ONE_IN).filter(|element| !quotient.gives(element));
    exceptions.nth(sample.len() / LOOKED_AT_ONE_IN / EXCEPTIONS).is_none()
}

/// Returns a quotient, and the same with numbers of two bytes: each block has its own base.
fn with_narrower(quotient: Quotient) -> impl Iterator<Item = Quotient> {
    let narrower = Quotient { number_width: Width::W2, ..quotient };
    let is_narrower = quotient.number_width.bytes() > Width::W2.bytes();
    std::iter::once(quotient).chain(is_narrower.then_some(narrower))
}

fn quotient(
    float_type: FloatType,
    number_width: Width,
    detail_bits: i32,
    divisor: u32,
    exponent: i32,
) -> Option<Quotient> {
    let quotient = Quotient {
        number_width,
        float_type,
        detail_bits: u8::try_from(detail_bits).ok()?,
        divisor,
        exponent: i16::try_from(exponent).ok()?,
    };
    quotient.is_valid().then_some(quotient)
}

/// Returns the least width of integers up to `2^bits`, with a sign.
fn number_width(float_type: FloatType, bits: i32) -> Option<Width> {
    let widths = [Width::W1, Width::W2, Width::W4, Width::W8];
    let fits = |width: &Width| bits + 1 < 8 * width.bytes() as i32 && *width as u8 <= float_type.width() as u8; // small
    widths.into_iter().find(fits)
}

/// Returns the quotient of integers without details.
fn exact(float_type: FloatType, highest: i32, lowest: i32) -> Option<Quotient> {
    let width = number_width(float_type, highest - lowest)?;
    // as many bits as the elements have themselves save nothing
    let is_coarse = width != float_type.width() || width == Width::W2;
    is_coarse.then(|| quotient(float_type, width, 0, 1, -lowest)).flatten()
}

/// Returns the quotient whose numbers are the significant bits of the greatest elements.
fn with_details(float_type: FloatType, highest: i32, lowest: i32) -> Option<Quotient> {
    let bits = float_type.precision().min(15) as i32; // exact
    let coarse = bits - 1 - highest; // numbers are multiples of 2^-coarse
    let detail_bits = (-lowest - coarse).min(MOST_DETAIL_BITS.into());
    match detail_bits {
        1.. => quotient(float_type, Width::W2, detail_bits, 1, coarse + detail_bits),
        _ => None,
    }
}

/// Returns the quotient of a divisor, if it expresses nearly all of the sample.
fn scaled(float_type: FloatType, divisor: u32, exponent: i16, highest: i32, sample: &[&[u8]]) -> Option<Quotient> {
    if float_type.width() == Width::W2 && exponent > 0 {
        return None; // too few bits for decimals
    }
    let divisor_bits = 32 - divisor.leading_zeros() as i32; // exact: at most 32
    let width = number_width(float_type, highest + divisor_bits + i32::from(exponent))?;
    let quotient = quotient(float_type, width, 0, divisor, exponent.into())?;
    gives_most(&quotient, sample).then_some(quotient)
}
