//! Multiples (chapter 5.14): mappings of floats and integers to integers, by a constant factor.
//!
//! *Float multiples.* Measurements with a fixed step, decimals such as 12.34, and pixels scaled to
//! at most 1 are integers that were divided: `N / (divisor * 2^exponent)`. The integers are short
//! and predictable; the floats are neither. A *number* is such an integer minus the base of its
//! block. If the integers need more bits than a 2-byte number has, their lowest bits can be split
//! off as *details*, which are stored raw next to the numbers. Writers derive the power of two from
//! the lowest one bit in nearly all elements of a sample, and try common divisors. A few elements
//! may be patches.
//!
//! *Int multiples.* Timestamps in nanoseconds are often multiples of a million, and the ids in a
//! block are often close together. An element is then a number times the factor of the part, plus
//! the base of its block. Floats that were converted from shorter floats, such as bf16 stored as
//! f32, have zeros in their lower bits. Their bit patterns are multiples of a power of two, and
//! with a base of 0, the numbers are the upper bits. The factor is the greatest common divisor of
//! all differences, so int multiples need no patches.

use super::{cut, malformed_mapped, malformed_mapping, number_width};
use crate::Result;
use crate::bytes::le::{Fields, structure};
use crate::bytes::memory;
use crate::codec::{
    bits::{ends_in_zeros, mask, min_width, signed, wide, with_width},
    part::{FloatType, Geometry},
};
use crate::kernel::{
    Width, extra_bits,
    float_multiples::{self, FloatMultipleTerms, NumberDetails},
};

// ---- float multiples

structure! {
    /// Chapter 5.14: the fields of a float multiple.
    mod float_multiple_fields: 12 bytes {
        0 => NUMBER_BYTES: u8,
        1 => FLOAT_TYPE: u8,
        2 => DETAIL_BITS: u8,
        3 => RESERVED: u8,
        4 => DIVISOR: u32,
        8 => EXPONENT: [u8; 2],
        10 => RESERVED_END: [u8; 2],
    }
}

/// The maximum of [`FloatMultiple::detail_bits`].
const MAX_DETAIL_BITS: u8 = 15;
/// The maximum divisor. An `f32` represents it and all smaller integers exactly.
const MAX_DIVISOR: u32 = 1 << 24;

/// Elements of the form `N / (divisor * 2^exponent)`. `N` consists of a number, to which the base
/// of its block is added, and the details below the number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FloatMultiple {
    pub number_width: Width,
    pub float_type: FloatType,
    /// The maximum number of detail bits below a number.
    pub detail_bits: u8,
    pub divisor: u32,
    pub exponent: i16,
}

impl FloatMultiple {
    /// Parses the fields, and checks.
    pub(super) fn parse(width: Width, rest: &mut Fields<'_>) -> Result<Self> {
        let bytes = rest.array().ok_or_else(cut)?;
        let float_type =
            FloatType::from_code(float_multiple_fields::FLOAT_TYPE.get(&bytes)).filter(|known| known.width() == width);
        let float_multiple = Self {
            number_width: number_width(float_multiple_fields::NUMBER_BYTES.get(&bytes), width.bytes())?,
            float_type: float_type.ok_or_else(|| malformed_mapping("float_type does not fit the elements"))?,
            detail_bits: float_multiple_fields::DETAIL_BITS.get(&bytes),
            divisor: float_multiple_fields::DIVISOR.get(&bytes),
            exponent: i16::from_le_bytes(float_multiple_fields::EXPONENT.get(&bytes)),
        };
        let has_no_more = float_multiple_fields::RESERVED.get(&bytes) == 0
            && float_multiple_fields::RESERVED_END.get(&bytes) == [0; 2];
        match float_multiple.is_valid() && has_no_more {
            true => Ok(float_multiple),
            false => Err(malformed_mapping("a field of a float multiple is out of range")),
        }
    }

    fn is_valid(&self) -> bool {
        let (max_bits, max_exponent) = if self.float_type == FloatType::F64 { (64, 1022) } else { (32, 126) };
        self.detail_bits <= MAX_DETAIL_BITS
            && 8 * self.number_width.bytes() + usize::from(self.detail_bits) <= max_bits
            && (1..=MAX_DIVISOR).contains(&self.divisor)
            && (self.divisor == 1 || self.detail_bits == 0)
            && self.exponent.unsigned_abs() <= max_exponent
    }

    pub(super) fn write(&self, tables: &mut Vec<u8>) {
        let mut bytes = [0; float_multiple_fields::SIZE];
        // exact: the discriminants
        float_multiple_fields::NUMBER_BYTES.put(&mut bytes, self.number_width as u8);
        float_multiple_fields::FLOAT_TYPE.put(&mut bytes, self.float_type.code());
        float_multiple_fields::DETAIL_BITS.put(&mut bytes, self.detail_bits);
        float_multiple_fields::DIVISOR.put(&mut bytes, self.divisor);
        float_multiple_fields::EXPONENT.put(&mut bytes, self.exponent.to_le_bytes());
        tables.extend(bytes);
    }

    pub(super) fn describe(&self) -> String {
        let details = match self.detail_bits {
            0 => String::new(),
            bits => format!(", up to {bits} low-order bits (details)"),
        };
        format!("numbers / ({} * 2^{}){details}", self.divisor, self.exponent)
    }

    /// Returns `base + k`, wrapped to the bits of a number.
    #[inline(always)]
    pub(super) fn sum(&self, base: i64, k: i64) -> i64 {
        let bits = if self.float_type == FloatType::F64 { 64 } else { 32 };
        let unused = 64 - bits + u32::from(self.detail_bits);
        base.wrapping_add(k) << unused >> unused
    }

    /// Returns how many detail bits are below `k`, a number with a base of 0.
    #[inline(always)]
    pub(super) fn details_of(&self, k: i64) -> u8 {
        let length = 64 - (k ^ (k >> 63)).leading_zeros();
        let below = self.float_type.precision().saturating_sub(length);
        below.min(self.detail_bits.into()) as u8 // at most 15
    }

    /// Returns whether a number without details reproduces an element.
    fn reproduces(&self, element: &[u8]) -> bool {
        let exact = self.float_type.value(element) * f64::from(self.divisor) * power_of_two(self.exponent);
        let number = exact.round() as i64; // a number that is too large decodes to a different element
        self.sum(0, number) == number && self.terms(0).element(number).to_le_bytes().starts_with(element)
    }

    pub(super) fn terms(&self, base: i64) -> FloatMultipleTerms {
        let Self { detail_bits, divisor, exponent, .. } = *self;
        FloatMultipleTerms { format: self.float_type.format(), detail_bits, divisor, exponent, base }
    }

    /// Decodes numbers without details to `out`.
    pub(super) fn divide(&self, base: i64, numbers: &[u8], out: &mut [u8]) {
        float_multiples::best().divide(&self.terms(base), self.number_width, numbers, out);
    }

    /// Decodes numbers to `out`, starting with number `first` of the block. Their details must be
    /// in the scratch.
    pub(super) fn join(&self, base: i64, first: usize, numbers: &[u8], scratch: &MappedScratch, out: &mut [u8]) {
        let integers = scratch.details.as_chunks().0.get(first..).unwrap_or(&[]);
        let details = NumberDetails { integers, lengths: scratch.lengths.get(first..).unwrap_or(&[]) };
        float_multiples::best().join(&self.terms(base), self.number_width, numbers, details, out);
    }

    /// Reads the details of the first numbers of a block to the scratch, and checks. If
    /// these are all numbers of the block, also checks where the details end.
    pub(super) fn read_details(
        &self,
        base: i64,
        numbers: &[u8],
        is_all: bool,
        stored: &[u8],
        scratch: &mut MappedScratch,
    ) -> Result<()> {
        let MappedScratch { lengths, details } = scratch;
        let count = numbers.len() / self.number_width.bytes();
        memory::resize(lengths, count, 0)?;
        memory::resize(details, 2 * count, 0)?;
        float_multiples::best().detail_lengths(&self.terms(base), self.number_width, numbers, lengths);
        let bits = extra_bits::best().deposit(Width::W2, lengths, stored, 0, details);
        let (bytes, max) = (bits.div_ceil(8), stored.len());
        let is_valid = if is_all { bytes == max && ends_in_zeros(stored, bits) } else { bytes <= max };
        if is_valid {
            Ok(())
        } else {
            Err(malformed_mapped("detail_bytes is wrong, or padding bits of the details are not zero"))
        }
    }
}

/// Returns two to the power of `exponent`, which is -1,022 to 1,022.
pub(super) fn power_of_two(exponent: i16) -> f64 {
    let biased = (1023 + exponent.clamp(-1022, 1022)).unsigned_abs(); // 1 to 2,045: normal
    f64::from_bits(u64::from(biased) << 52)
}

/// Memory for the details of a block.
#[derive(Default)]
pub(crate) struct MappedScratch {
    /// The bit lengths of the integers in `details`.
    lengths: Vec<u8>,
    /// For each number, a 2-byte integer whose extra bits are its details.
    details: Vec<u8>,
}

/// The approximate number of sampled elements.
const SAMPLE_ELEMENTS: usize = 1024;
/// One element in this many may have a one bit below the lowest one bit of all other elements.
const ELEMENTS_PER_LOW_BIT_OUTLIER: usize = 512;
/// Only one in this many elements of the sample is tried.
const TRIAL_STRIDE: usize = 4;
/// One element in this many may be a patch.
const ELEMENTS_PER_PATCH: usize = 64;

/// Common divisors that are not powers of two, each as a factor and an exponent of two: for
/// decimals, and for integers that were scaled to at most 1.
const DIVISORS: [(u32, i16); 9] =
    [(5, 1), (25, 2), (125, 3), (625, 4), (3125, 5), (15_625, 6), (255, 0), (65_535, 0), (32_767, 0)];

/// The binary exponents of the highest and lowest one bit of a number.
#[derive(Clone, Copy)]
struct OneBits {
    highest: i32,
    lowest: i32,
}

impl OneBits {
    /// Returns the exponents of a finite number that is not 0.
    fn of(x: f64) -> Option<Self> {
        if x == 0.0 || !x.is_finite() {
            return None;
        }
        // a subnormal f64 is treated as if it were normal, and becomes a patch
        let exponent = (x.to_bits() >> 52 & 0x7FF) as i32 - 1023; // exact: 11 bits
        let zeros = (x.to_bits() | 1 << 52).trailing_zeros() as i32; // at most 52
        Some(Self { highest: exponent, lowest: exponent - 52 + zeros })
    }
}

/// Returns the float multiples that, judging by a sample, could express the elements. Details are
/// worthwhile only if elements are predictable.
pub(crate) fn find_float_multiples(float_type: FloatType, raw: &[u8], may_have_details: bool) -> Vec<FloatMultiple> {
    let w = float_type.width().bytes();
    // an odd step, because most rows have even lengths
    let sample: Vec<&[u8]> = raw.chunks_exact(w).step_by((raw.len() / w / SAMPLE_ELEMENTS) | 1).collect();
    let mut bits: Vec<OneBits> = sample.iter().filter_map(|element| OneBits::of(float_type.value(element))).collect();
    let Some(highest) = bits.iter().map(|bits| bits.highest).max() else { return Vec::new() };
    let rare = bits.len() / ELEMENTS_PER_LOW_BIT_OUTLIER; // less than `bits.len()`, which is not 0
    let (_, lowest, _) = bits.select_nth_unstable_by_key(rare, |bits| bits.lowest);
    let lowest = lowest.lowest;
    let exact = exact(float_type, highest, lowest);
    let with_details = may_have_details.then(|| with_details(float_type, highest, lowest)).flatten();
    let decimals = match exact {
        Some(_) => None, // a power of two suffices
        None => {
            DIVISORS.into_iter().find_map(|(divisor, exponent)| scaled(float_type, divisor, exponent, highest, &sample))
        }
    };
    let narrower = exact.into_iter().chain(decimals).flat_map(with_narrower);
    narrower.filter(|float_multiple| reproduces_most(float_multiple, &sample)).chain(with_details).collect()
}

/// Returns whether a float multiple expresses nearly all of the sample.
fn reproduces_most(float_multiple: &FloatMultiple, sample: &[&[u8]]) -> bool {
    let mut patches = sample.iter().step_by(TRIAL_STRIDE).filter(|element| !float_multiple.reproduces(element));
    patches.nth(sample.len() / TRIAL_STRIDE / ELEMENTS_PER_PATCH).is_none()
}

/// Returns a float multiple, and the same float multiple with 2-byte numbers, which can suffice
/// because each block has its own base.
fn with_narrower(float_multiple: FloatMultiple) -> impl Iterator<Item = FloatMultiple> {
    let narrower = FloatMultiple { number_width: Width::W2, ..float_multiple };
    let is_narrower = float_multiple.number_width.bytes() > Width::W2.bytes();
    std::iter::once(float_multiple).chain(is_narrower.then_some(narrower))
}

fn float_multiple(
    float_type: FloatType,
    number_width: Width,
    detail_bits: i32,
    divisor: u32,
    exponent: i32,
) -> Option<FloatMultiple> {
    let float_multiple = FloatMultiple {
        number_width,
        float_type,
        detail_bits: u8::try_from(detail_bits).ok()?,
        divisor,
        exponent: i16::try_from(exponent).ok()?,
    };
    float_multiple.is_valid().then_some(float_multiple)
}

/// Returns the smallest width of signed integers up to `2^bits`.
fn width_of(float_type: FloatType, bits: i32) -> Option<Width> {
    let max = float_type.width().bytes(); // at most 8
    min_width(|bytes| bits + 1 < 8 * bytes as i32 && bytes <= max)
}

/// Returns the float multiple without details, if its numbers are short enough.
fn exact(float_type: FloatType, highest: i32, lowest: i32) -> Option<FloatMultiple> {
    let width = width_of(float_type, highest - lowest)?;
    // numbers as long as the elements save nothing
    let is_coarse = width != float_type.width() || width == Width::W2;
    is_coarse.then(|| float_multiple(float_type, width, 0, 1, -lowest)).flatten()
}

/// Returns the float multiple whose numbers are the significant bits of the largest elements.
fn with_details(float_type: FloatType, highest: i32, lowest: i32) -> Option<FloatMultiple> {
    let bits = float_type.precision().min(15) as i32; // exact
    let coarse = bits - 1 - highest; // numbers are multiples of 2^-coarse
    let detail_bits = (-lowest - coarse).min(MAX_DETAIL_BITS.into());
    match detail_bits {
        1.. => float_multiple(float_type, Width::W2, detail_bits, 1, coarse + detail_bits),
        _ => None,
    }
}

/// Returns the float multiple with a divisor, if it expresses nearly all of the sample.
fn scaled(float_type: FloatType, divisor: u32, exponent: i16, highest: i32, sample: &[&[u8]]) -> Option<FloatMultiple> {
    if float_type.width() == Width::W2 && exponent > 0 {
        return None; // too few bits for decimals
    }
    let divisor_bits = 32 - divisor.leading_zeros() as i32; // exact: at most 32
    let width = width_of(float_type, highest + divisor_bits + i32::from(exponent))?;
    let float_multiple = float_multiple(float_type, width, 0, divisor, exponent.into())?;
    reproduces_most(&float_multiple, sample).then_some(float_multiple)
}

// ---- int multiples

structure! {
    /// Chapter 5.14: the fields of an int multiple.
    mod int_multiple_fields: 12 bytes {
        0 => NUMBER_BYTES: u8,
        1 => RESERVED: [u8; 3],
        4 => FACTOR: u64,
    }
}

/// The number of elements whose lowest bits are checked together.
const LOW_BITS_CHUNK: usize = 64;

/// Elements of the form `base + k * factor`, where `k` is a number and `base` belongs to its block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IntMultiple {
    pub number_width: Width,
    pub factor: u64,
}

impl IntMultiple {
    /// Parses the fields, and checks.
    pub(super) fn parse(width: Width, rest: &mut Fields<'_>) -> Result<Self> {
        let bytes = rest.array().ok_or_else(cut)?;
        let number_width = number_width(int_multiple_fields::NUMBER_BYTES.get(&bytes), width.bytes())?;
        let factor = int_multiple_fields::FACTOR.get(&bytes);
        if factor == 0 || int_multiple_fields::RESERVED.get(&bytes) != [0; 3] {
            return Err(malformed_mapping("factor is 0, or a reserved byte is not 0"));
        }
        Ok(Self { number_width, factor })
    }

    pub(super) fn write(&self, tables: &mut Vec<u8>) {
        let mut bytes = [0; int_multiple_fields::SIZE];
        // exact: the discriminants
        int_multiple_fields::NUMBER_BYTES.put(&mut bytes, self.number_width as u8);
        int_multiple_fields::FACTOR.put(&mut bytes, self.factor);
        tables.extend(bytes);
    }

    pub(super) fn describe(&self) -> String {
        format!("multiples of {}, from a base for each block", self.factor)
    }

    /// Decodes numbers to `out`.
    pub(super) fn elements(&self, width: Width, numbers: &[u8], base: i64, out: &mut [u8]) {
        with_width!(self.number_width, V => with_width!(width, W => self.fill::<V, W>(numbers, base, out)));
    }

    fn fill<const V: usize, const W: usize>(&self, numbers: &[u8], base: i64, out: &mut [u8]) {
        let factor = self.factor.cast_signed();
        for (out, k) in out.as_chunks_mut::<W>().0.iter_mut().zip(numbers.as_chunks::<V>().0) {
            let element = base.wrapping_add(wide(k).wrapping_mul(factor)).to_le_bytes();
            out.iter_mut().zip(element).for_each(|(to, from)| *to = from); // the lower bytes
        }
    }
}

/// Returns the minimum of a block modulo `256^w`, where elements are ordered by their shortest
/// signed distance from the first element.
pub(super) fn min_base(block: &[u8], w: usize) -> i64 {
    let elements = block.chunks_exact(w.max(1));
    let first = elements.clone().next().map_or(0, wide);
    let steps = elements.map(|element| signed(wide(element).wrapping_sub(first), w));
    first.wrapping_add(steps.min().unwrap_or(0))
}

/// Returns the int multiple that expresses all integers of a part, if its numbers are shorter than
/// the integers or its factor exceeds 1.
pub(crate) fn find_int_multiple(width: Width, geometry: &Geometry<'_>, raw: &[u8]) -> Option<IntMultiple> {
    let w = width.bytes();
    let (mut factor, mut max_step) = (0, 0);
    for block in geometry.blocks_of(raw) {
        let base = min_base(block, w);
        for element in block.chunks_exact(w) {
            let step = wide(element).wrapping_sub(base).cast_unsigned() & mask(w);
            factor = if factor == 1 { 1 } else { greatest_common_divisor(step, factor) };
            max_step = step.max(max_step);
        }
    }
    let max = max_step.checked_div(factor)?;
    let number_width = min_width(|bytes| max <= mask(bytes))?;
    (factor > 1 || number_width.bytes() < w).then_some(IntMultiple { number_width, factor })
}

/// Returns the int multiple, with a base of 0, of floats whose lowest bits are zero, such as f32
/// elements that were converted from bf16.
pub(crate) fn find_upper_bits(width: Width, raw: &[u8]) -> Option<IntMultiple> {
    let mut all = 0;
    for chunk in raw.chunks(LOW_BITS_CHUNK * width.bytes()) {
        all |= chunk.chunks_exact(width.bytes()).fold(0, |all, element| all | wide(element));
        if all & 0xFF != 0 {
            return None; // too few bits are zero
        }
    }
    let zeros = all.trailing_zeros() as usize; // at most 64
    let bits = (8 * width.bytes()).checked_sub(zeros)?;
    let number_width = min_width(|bytes| bits <= 8 * bytes)?;
    (zeros >= 8 && bits > 0).then(|| IntMultiple { number_width, factor: 1 << zeros }) // at least one bit is left
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
