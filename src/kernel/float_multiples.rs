//! Floats computed by dividing integers by a constant: the last step of undoing the mapping *float
//! multiple* (chapter 5.14 of the specification).
//!
//! An element is `(base + number) / (divisor * 2^exponent)`, rounded as IEEE 754 defines it, so
//! every implementation returns the same bits. Numbers can have *details* (the term of the
//! specification): lower bits that are stored separately and follow the bits of `base + number`.
//! Bits for which a float has no room are left out, so a larger integer has fewer detail bits.
//!
//! Elements of at most 4 bytes have integers of at most 32 bits. These integers are computed in 32
//! bits, so that a vector holds as many as possible. The loops have no branches, and the compiler
//! vectorizes them for each instruction set.

use super::dispatch::{Implementation, Scalar, implement, implementations};
use super::{Width, Word, common_count};
use half::f16;

/// A floating-point format.
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

/// The constants of a float multiple. Without details, an element is
/// `(base + number) / (divisor * 2^exponent)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatMultipleTerms {
    /// The format of elements.
    pub format: FloatFormat,
    /// The maximum number of detail bits of a number, at most 15.
    pub detail_bits: u8,
    /// The divisor: at most 2^24, so that an `f32` represents it exactly.
    pub divisor: u32,
    /// The exponent of the power of two: -126 to 126, or -1,022 to 1,022 for [`FloatFormat::F64`].
    pub exponent: i16,
    /// The integer that is added to each number.
    pub base: i64,
}

impl FloatMultipleTerms {
    /// Returns the maximum number of detail bits, limited so that no shift overflows.
    #[inline(always)]
    fn max_detail_bits(&self) -> u32 {
        self.detail_bits.min(15).into()
    }

    /// Returns the factor `2^-exponent`.
    #[inline(always)]
    fn scale(&self) -> f64 {
        let limit = if self.format == FloatFormat::F64 { 1022 } else { 126 };
        let biased = (1023 - self.exponent.clamp(-limit, limit)).unsigned_abs(); // 1 to 2,045: normal
        f64::from_bits(u64::from(biased) << 52)
    }

    /// Returns the factor `2^-exponent` for elements of at most 4 bytes.
    #[inline(always)]
    fn narrow_scale(&self) -> f32 {
        self.scale() as f32 // exact: a normal power of two
    }

    /// Returns the float for an integer, in the lowest bits of the result. This method is the
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
    fn narrow_divisor(&self) -> f32 {
        self.divisor as f32 // exact: at most 2^24
    }
}

/// The details of numbers, stored as the extra bits of integers.
#[derive(Clone, Copy, Debug)]
pub struct NumberDetails<'a> {
    /// The integers. Each has two bytes.
    pub integers: &'a [[u8; 2]],
    /// The bit lengths of the integers.
    pub lengths: &'a [u8],
}

/// The kernels of one instruction set. All slices have the same number of elements.
pub trait Kernel: Sync {
    /// See [`FloatMultiples::detail_lengths`].
    fn detail_lengths(&self, terms: &FloatMultipleTerms, width: Width, numbers: &[u8], out: &mut [u8]);
    /// See [`FloatMultiples::divide`].
    fn divide(&self, terms: &FloatMultipleTerms, width: Width, numbers: &[u8], out: &mut [u8]);
    /// See [`FloatMultiples::join`].
    fn join(
        &self,
        terms: &FloatMultipleTerms,
        width: Width,
        numbers: &[u8],
        details: NumberDetails<'_>,
        out: &mut [u8],
    );
}

/// One implementation of the kernels for float multiples.
pub type FloatMultiples = Implementation<dyn Kernel>;

impl FloatMultiples {
    /// Sets `out` to the bit lengths of the integers whose extra bits are the details of `numbers`.
    /// `width` is the width of a number.
    ///
    /// `out` must have a byte for each number. Debug builds assert this. Release builds process
    /// only the numbers that fit in both.
    pub fn detail_lengths(&self, terms: &FloatMultipleTerms, width: Width, numbers: &[u8], out: &mut [u8]) {
        let count = common_count(width, numbers, out);
        // in bounds: `count` exceeds neither length
        self.kernel.detail_lengths(terms, width, &numbers[..count * width.bytes()], &mut out[..count]);
    }

    /// Sets `out` to the elements for `numbers`, which have no details. `width` is the width of a
    /// number.
    ///
    /// `out` should have an element for each number. Surplus numbers are ignored; surplus elements
    /// keep their value.
    pub fn divide(&self, terms: &FloatMultipleTerms, width: Width, numbers: &[u8], out: &mut [u8]) {
        let element = terms.format.width().bytes();
        let count = (numbers.len() / width.bytes()).min(out.len() / element);
        // in bounds: `count` exceeds neither length
        self.kernel.divide(terms, width, &numbers[..count * width.bytes()], &mut out[..count * element]);
    }

    /// Sets `out` to the elements for `numbers` and their details. `width` is the width of a
    /// number. The divisor is ignored.
    ///
    /// Each integer in `details` must have the bit length that
    /// [`detail_lengths`](Self::detail_lengths) returns. Otherwise, the elements are unspecified.
    pub fn join(
        &self,
        terms: &FloatMultipleTerms,
        width: Width,
        numbers: &[u8],
        details: NumberDetails<'_>,
        out: &mut [u8],
    ) {
        let element = terms.format.width().bytes();
        let count = (numbers.len() / width.bytes()).min(out.len() / element);
        let count = count.min(details.integers.len()).min(details.lengths.len());
        // in bounds: `count` exceeds none of the lengths
        let details = NumberDetails { integers: &details.integers[..count], lengths: &details.lengths[..count] };
        self.kernel.join(terms, width, &numbers[..count * width.bytes()], details, &mut out[..count * element]);
    }
}

implementations!(Kernel);

// ---- the definition in code

impl Kernel for Scalar {
    fn detail_lengths(&self, terms: &FloatMultipleTerms, width: Width, numbers: &[u8], out: &mut [u8]) {
        for (number, length) in sums(terms, width, numbers).zip(out) {
            let bits = 64 - (number ^ (number >> 63)).leading_zeros();
            let below = terms.format.precision().saturating_sub(bits).min(terms.max_detail_bits());
            *length = below as u8 + 1; // exact: at most 15
        }
    }

    fn divide(&self, terms: &FloatMultipleTerms, width: Width, numbers: &[u8], out: &mut [u8]) {
        let elements = out.chunks_exact_mut(terms.format.width().bytes());
        for (number, element) in sums(terms, width, numbers).zip(elements) {
            set(terms, number, element);
        }
    }

    fn join(
        &self,
        terms: &FloatMultipleTerms,
        width: Width,
        numbers: &[u8],
        details: NumberDetails<'_>,
        out: &mut [u8],
    ) {
        let elements = out.chunks_exact_mut(terms.format.width().bytes());
        let details = details.integers.iter().zip(details.lengths);
        let limit = terms.max_detail_bits();
        let undivided = FloatMultipleTerms { divisor: 1, ..*terms };
        for ((number, (&integer, &length)), element) in sums(terms, width, numbers).zip(details).zip(elements) {
            let bits = u32::from(length.wrapping_sub(1) & 15);
            let details = i64::from(u16::from_le_bytes(integer)) - (1 << bits);
            let integer = (number << limit).wrapping_add(details << limit.saturating_sub(bits));
            set(&undivided, integer, element);
        }
    }
}

/// Returns the sums of the base and each number, wrapped to the bits that integers have above their
/// details.
fn sums(terms: &FloatMultipleTerms, width: Width, numbers: &[u8]) -> impl Iterator<Item = i64> {
    let bits = if terms.format == FloatFormat::F64 { 64 } else { 32 };
    let unused = 64 - bits + terms.max_detail_bits();
    let each = numbers.chunks_exact(width.bytes());
    each.map(move |number| terms.base.wrapping_add(wide(number)) << unused >> unused)
}

/// Sets an element to the float for an integer.
fn set(terms: &FloatMultipleTerms, integer: i64, element: &mut [u8]) {
    element.iter_mut().zip(terms.element(integer).to_le_bytes()).for_each(|(to, from)| *to = from);
}

// ---- vectors

implement!([Avx2, Avx512, Neon] Kernel {
    fn detail_lengths(terms: &FloatMultipleTerms, width: Width, numbers: &[u8], out: &mut [u8]) => { for W in width => detail_lengths::<_, { W::BYTES }> }
    fn divide(terms: &FloatMultipleTerms, width: Width, numbers: &[u8], out: &mut [u8]) => { for W in width => divide::<_, { W::BYTES }> }
    fn join(
        terms: &FloatMultipleTerms,
        width: Width,
        numbers: &[u8],
        details: NumberDetails<'_>,
        out: &mut [u8],
    ) => { for W in width => join::<_, { W::BYTES }> }
});

/// [`Kernel::detail_lengths`] for numbers of `V` bytes.
#[inline(always)]
fn detail_lengths<T, const V: usize>(_: T, terms: &FloatMultipleTerms, _: Width, numbers: &[u8], out: &mut [u8]) {
    let precision = terms.format.precision().cast_signed();
    let limit = terms.max_detail_bits().cast_signed();
    let each = numbers.as_chunks::<V>().0.iter().zip(out);
    // exact: at most 15
    if terms.format == FloatFormat::F64 {
        let sum = wide_sums::<V>(terms);
        each.for_each(|(number, length)| {
            let sum = sum(number);
            let bits = 64 - (sum ^ (sum >> 63)).leading_zeros().cast_signed();
            *length = (precision - bits).clamp(0, limit) as u8 + 1;
        });
    } else {
        let sum = narrow_sums::<V>(terms);
        each.for_each(|(number, length)| {
            let sum = sum(number);
            *length = (precision - bit_length(sum ^ (sum >> 31))).clamp(0, limit) as u8 + 1;
        });
    }
}

/// [`Kernel::divide`] for numbers of `V` bytes.
#[inline(always)]
fn divide<T, const V: usize>(_: T, terms: &FloatMultipleTerms, _: Width, numbers: &[u8], out: &mut [u8]) {
    let numbers = numbers.as_chunks::<V>().0.iter();
    match (terms.format, terms.divisor) {
        (FloatFormat::F64, _) => set_wide(terms, terms.divisor.into(), numbers.map(wide_sums(terms)), out),
        // equivalent to a division by 1, but faster
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

/// [`Kernel::join`] for numbers of `V` bytes.
#[inline(always)]
fn join<T, const V: usize>(
    _: T,
    terms: &FloatMultipleTerms,
    _: Width,
    numbers: &[u8],
    details: NumberDetails<'_>,
    out: &mut [u8],
) {
    let limit = terms.max_detail_bits();
    let each = numbers.as_chunks::<V>().0.iter().zip(details.integers.iter().zip(details.lengths));
    if terms.format == FloatFormat::F64 {
        let sum = wide_sums::<V>(terms);
        let integers = each.map(|(number, (&integer, &length))| {
            let bits = u32::from(length.wrapping_sub(1) & 15);
            let details = i64::from(u16::from_le_bytes(integer)) - (1 << bits);
            (sum(number) << limit).wrapping_add(details << limit.saturating_sub(bits))
        });
        set_wide(terms, 1.0, integers, out);
    } else {
        let (sum, scale) = (narrow_sums::<V>(terms), terms.narrow_scale());
        let integers = each.map(|(number, (&integer, &length))| {
            let bits = u32::from(length.wrapping_sub(1) & 15);
            let details = i32::from(u16::from_le_bytes(integer)) - (1 << bits);
            (sum(number) << limit).wrapping_add(details << limit.saturating_sub(bits))
        });
        set_narrow(terms, |n| n as f32 * scale, integers, out);
    }
}

/// Returns a function that adds the base to a number, and wraps the sum to the bits that integers
/// have above their details.
#[inline(always)]
fn wide_sums<const V: usize>(terms: &FloatMultipleTerms) -> impl Fn(&[u8; V]) -> i64 {
    let (base, unused) = (terms.base, terms.max_detail_bits());
    move |number| base.wrapping_add(wide(number)) << unused >> unused
}

/// Like [`wide_sums`], in 32 bits.
#[inline(always)]
fn narrow_sums<const V: usize>(terms: &FloatMultipleTerms) -> impl Fn(&[u8; V]) -> i32 {
    // the lower bits suffice, because sums wrap to fewer bits
    let (base, unused) = (terms.base as i32, terms.max_detail_bits());
    move |number| base.wrapping_add(wide(number) as i32) << unused >> unused
}

/// Converts a number of at most 8 bytes to an integer.
#[inline(always)]
fn wide(number: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide.iter_mut().zip(number).for_each(|(to, from)| *to = *from);
    i64::from_le_bytes(wide)
}

/// Returns the bit length of a nonnegative number, computed from the exponent of the number as a
/// float. If the number has more than 24 bits, returns some length above 24.
#[inline(always)]
fn bit_length(number: i32) -> i32 {
    let exponent = (number as f32).to_bits() >> 23; // at most 8 bits: no sign
    (exponent.cast_signed() - 126).max(0)
}

/// Sets `out` to the floats for integers, in a format of at most 4 bytes.
#[inline(always)]
fn set_narrow(
    terms: &FloatMultipleTerms,
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

/// Sets `out` to the floats for integers, in the 8-byte format.
#[inline(always)]
fn set_wide(terms: &FloatMultipleTerms, divisor: f64, integers: impl Iterator<Item = i64>, out: &mut [u8]) {
    let scale = terms.scale();
    set_all(integers.map(|n| (n as f64 / divisor * scale).to_le_bytes()), out);
}

#[inline(always)]
fn set_all<const W: usize>(elements: impl Iterator<Item = [u8; W]>, out: &mut [u8]) {
    out.as_chunks_mut().0.iter_mut().zip(elements).for_each(|(to, element)| *to = element);
}

/// Rounds a number that is not NaN to the nearest bf16.
#[inline(always)]
fn to_bf16(x: f32) -> [u8; 2] {
    let bits = x.to_bits();
    // the upper half; a carry out of the largest finite number yields infinity
    let rounded = bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) >> 16;
    (rounded as u16).to_le_bytes() // exact: at most 16 bits after the shift
}

/// Rounds a number that is not NaN to the nearest f16. Has no branches, so that the compiler can
/// vectorize it.
#[inline(always)]
fn to_f16(x: f32) -> [u8; 2] {
    /// The smallest power of two that rounds to infinity: 2^16.
    const INFINITE: u32 = 0x4780_0000;
    /// The smallest normal number: 2^-14.
    const NORMAL: u32 = 0x3880_0000;
    let sign = x.to_bits() >> 16 & 0x8000;
    let bits = (x.to_bits() & 0x7FFF_FFFF).min(INFINITE);
    // a carry out of the largest finite number yields infinity
    let normal = bits.wrapping_sub(112 << 23).wrapping_add(0xFFF + (bits >> 13 & 1)) >> 13;
    // the lowest bit of 0.5 as an f32 is worth as much as the lowest bit of a subnormal f16
    let subnormal = (f32::from_bits(bits) + 0.5).to_bits().wrapping_sub(0.5_f32.to_bits());
    let rounded = if bits < NORMAL { subnormal } else { normal };
    ((rounded | sign) as u16).to_le_bytes() // exact: 15 bits and the sign
}
