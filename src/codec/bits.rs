//! Bit sequences, short integers and byte planes, shared by several encodings.
//!
//! Everything shorter than a byte is little-endian: the first bit is the lowest, and zero bits pad
//! the last byte. Every bit sequence checks its padding with [`ends_in_zeros`], so that no bit of a
//! file is ignored. [`wide`] turns integers of one to eight bytes into an `i64`. Loops over
//! elements are generic over the element width, and [`with_width`] picks the instance once for all
//! elements.

use crate::kernel::{Width, byte_planes, extra_bits};

/// Evaluates an expression with the size of a width in bytes as a constant.
macro_rules! with_width {
    ($width:expr, $bytes:ident => $body:expr) => {
        match $width {
            Width::W1 => {
                const $bytes: usize = 1;
                $body
            }
            Width::W2 => {
                const $bytes: usize = 2;
                $body
            }
            Width::W4 => {
                const $bytes: usize = 4;
                $body
            }
            Width::W8 => {
                const $bytes: usize = 8;
                $body
            }
        }
    };
}

pub(super) use with_width;

/// Returns up to eight bytes as an integer, zero-extended.
#[inline(always)]
pub(super) fn wide(bytes: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    i64::from_le_bytes(wide)
}

/// Sign-extends the lowest `bytes` bytes of `number`.
pub(super) fn signed(number: i64, bytes: usize) -> i64 {
    let unused = 64 - 8 * bytes.clamp(1, 8);
    number << unused >> unused
}

/// Returns a mask of the lowest `bytes` bytes.
pub(super) fn mask(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes.clamp(1, 8))
}

pub(super) fn min_width(fits: impl Fn(usize) -> bool) -> Option<Width> {
    [Width::W1, Width::W2, Width::W4, Width::W8].into_iter().find(|width| fits(width.bytes()))
}

/// Returns whether zero bits pad the last byte of a sequence of `bits` bits.
pub(super) fn ends_in_zeros(bytes: &[u8], bits: usize) -> bool {
    bits.is_multiple_of(8) || bytes.last().is_none_or(|last| last >> (bits % 8) == 0)
}

/// Returns the number of extra bits (chapter 5.9) of integers with these bit lengths.
pub(super) fn sum_extra_bits(lengths: &[u8]) -> u64 {
    // 16-bit sums are faster, and cannot overflow with 256 lengths of at most 255
    let sums = lengths.chunks(256).map(|part| part.iter().map(|&length| u16::from(length.saturating_sub(1))).sum());
    sums.map(|sum: u16| u64::from(sum)).sum()
}

/// Appends the extra bits of integers with these bit lengths. Returns the number of bytes appended.
pub(super) fn append_extra_bits(
    width: Width,
    lengths: &[u8],
    integers: &[u8],
    words: &mut Vec<u64>,
    stored: &mut Vec<u8>,
) -> usize {
    let bits = sum_extra_bits(lengths) as usize; // exact: at most 8 per byte of the integers
    words.clear();
    words.resize(bits.div_ceil(64) + 1, 0);
    extra_bits::best().extract(width, lengths, integers, words, 0);
    stored.extend(words.iter().flat_map(|word| word.to_le_bytes()).take(bits.div_ceil(8)));
    bits.div_ceil(8)
}

/// Fixed-width codes that name classes (chapter 5.13) or filters (5.15).
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassCodes {
    class_count: usize,
    bits: usize,
}

impl ClassCodes {
    pub(super) fn new(class_count: usize) -> Self {
        let bits = match class_count {
            0..=1 => 0,
            2 => 1,
            3..=4 => 2,
            _ => 4,
        };
        Self { class_count, bits }
    }

    /// Returns the length of `count` codes in bytes; `None` on overflow.
    pub(super) fn bytes(self, count: usize) -> Option<usize> {
        Some(self.bits.checked_mul(count)?.div_ceil(8))
    }

    /// Returns code `i`, which must lie inside `codes`.
    pub(super) fn get(self, codes: &[u8], i: usize) -> u8 {
        let at = self.bits * i; // below 8 times the length of `codes`
        let byte = codes.get(at / 8).copied().unwrap_or(0);
        byte >> (at % 8) & ((1 << self.bits) - 1)
    }

    /// Returns whether the first `count` codes name existing classes.
    pub(super) fn are_valid(self, codes: &[u8], count: usize) -> bool {
        (0..count).all(|i| usize::from(self.get(codes, i)) < self.class_count)
    }

    pub(super) fn end_in_zeros(self, codes: &[u8], count: usize) -> bool {
        ends_in_zeros(codes, self.bits * count)
    }

    pub(super) fn write(self, classes: &[u8], stored: &mut Vec<u8>) {
        let Some(codes_in_byte) = 8_usize.checked_div(self.bits) else { return };
        let byte = |codes: &[u8]| codes.iter().rev().fold(0, |byte, code| byte << self.bits | code);
        stored.extend(classes.chunks(codes_in_byte).map(byte));
    }
}

/// Splits elements into their top bytes and the planes of their lower bytes.
pub(super) fn split(width: Width, rotate: bool, elements: &[u8], top: &mut Vec<u8>, low: &mut Vec<u8>) {
    let count = elements.len() / width.bytes();
    top.resize(count, 0);
    low.resize(count * (width.bytes() - 1), 0);
    let mut planes: [&mut [u8]; 7] = Default::default();
    planes.iter_mut().zip(low.chunks_exact_mut(count.max(1))).for_each(|(plane, low)| *plane = low);
    let planes = planes.get_mut(..width.bytes() - 1).unwrap_or(&mut []); // a width is 1 to 8
    byte_planes::best().split(width, rotate, elements, planes, top);
}

/// Joins top bytes with the planes of the lower bytes. Each plane begins at the first element.
pub(super) fn join<'p>(width: Width, rotate: bool, low: impl Iterator<Item = &'p [u8]>, top: &[u8], out: &mut [u8]) {
    let mut planes: [&[u8]; 7] = [&[]; 7];
    planes.iter_mut().zip(low).for_each(|(plane, low)| *plane = low.get(..top.len()).unwrap_or(low));
    let planes = planes.get(..width.bytes() - 1).unwrap_or(&[]); // a width is 1 to 8
    byte_planes::best().join(width, rotate, planes, top, out);
}

/// Returns all byte planes, lowest first: the planes in `low`, then `top`.
pub(super) fn planes<'p>(low: &'p [u8], top: &'p [u8]) -> impl Iterator<Item = &'p [u8]> + Clone {
    low.chunks_exact(top.len().max(1)).chain(std::iter::once(top))
}
