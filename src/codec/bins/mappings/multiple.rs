//! Multiples (chapter 5.14): integers that have a common factor, or are near each other.
//!
//! Timestamps in nanoseconds are often multiples of a million, and ids of a block lie close
//! together. An element is a number times the factor of the part, plus the base of its block; the
//! numbers are then short enough to be coded. Floats that were made from shorter ones, such as bf16
//! stored as f32, are multiples of a power of two, counted from 0: their upper bits.
//!
//! The factor is the greatest common divisor of all differences, so that multiples need no
//! exceptions.

use crate::Result;
use crate::codec::bins::{cut, malformed_mapping, number_width};
use crate::codec::bits::{least_width, mask, signed, wide, with_width};
use crate::codec::geometry::Geometry;
use crate::kernel::Width;
use crate::le::{Fields, structure};

structure! {
    /// Chapter 5.14: the fields of a multiple.
    mod fields: 12 bytes {
        0 => NUMBER_BYTES: u8,
        1 => RESERVED: [u8; 3],
        4 => FACTOR: u64,
    }
}

/// Elements whose lowest bits are looked at together.
const LOOKED_AT: usize = 64;

/// Elements `base + k * factor`, where `k` is a number and `base` is that of its block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Multiple {
    pub number_width: Width,
    pub factor: u64,
}

impl Multiple {
    /// Parses the fields.
    pub(super) fn parse(width: Width, rest: &mut Fields<'_>) -> Result<Self> {
        let bytes = rest.array().ok_or_else(cut)?;
        let number_width = number_width(fields::NUMBER_BYTES.get(&bytes), width.bytes())?;
        let factor = fields::FACTOR.get(&bytes);
        if factor == 0 || fields::RESERVED.get(&bytes) != [0; 3] {
            return Err(malformed_mapping("a factor of 0, or a reserved byte"));
        }
        Ok(Self { number_width, factor })
    }

    pub(super) fn write(&self, tables: &mut Vec<u8>) {
        let mut bytes = [0; fields::SIZE];
        fields::NUMBER_BYTES.put(&mut bytes, self.number_width as u8); // exact: the discriminants
        fields::FACTOR.put(&mut bytes, self.factor);
        tables.extend(bytes);
    }

    pub(super) fn describe(&self) -> String {
        format!("multiples of {}, from a base for each block", self.factor)
    }

    /// Sets `out` to the elements of numbers.
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

/// Returns the element of a block that the others follow, modulo `256^w`, by the shortest way.
pub(super) fn least(block: &[u8], w: usize) -> i64 {
    let elements = block.chunks_exact(w.max(1));
    let first = elements.clone().next().map_or(0, wide);
    let steps = elements.map(|element| signed(wide(element).wrapping_sub(first), w));
    first.wrapping_add(steps.min().unwrap_or(0))
}

/// Returns the multiple that expresses all integers of a part, if its numbers are shorter or it has
/// a factor.
pub(crate) fn find_multiple(width: Width, geometry: &Geometry<'_>, raw: &[u8]) -> Option<Multiple> {
    let w = width.bytes();
    let (mut factor, mut greatest) = (0, 0);
    for block in geometry.blocks_of(raw) {
        let base = least(block, w);
        for element in block.chunks_exact(w) {
            let step = wide(element).wrapping_sub(base).cast_unsigned() & mask(w);
            factor = if factor == 1 { 1 } else { greatest_common_divisor(step, factor) };
            greatest = step.max(greatest);
        }
    }
    let most = greatest.checked_div(factor)?;
    let number_width = least_width(|bytes| most <= mask(bytes))?;
    (factor > 1 || number_width.bytes() < w).then_some(Multiple { number_width, factor })
}

/// Returns the multiple that expresses floats whose lowest bits are zero, such as those that were
/// bf16 once, counted from 0.
pub(crate) fn find_upper_bits(width: Width, raw: &[u8]) -> Option<Multiple> {
    let mut all = 0;
    for some in raw.chunks(LOOKED_AT * width.bytes()) {
        all |= some.chunks_exact(width.bytes()).fold(0, |all, element| all | wide(element));
        if all & 0xFF != 0 {
            return None; // too few are zero
        }
    }
    let zeros = all.trailing_zeros() as usize; // at most 64
    let bits = (8 * width.bytes()).checked_sub(zeros)?;
    let number_width = least_width(|bytes| bits <= 8 * bytes)?;
    (zeros >= 8 && bits > 0).then(|| Multiple { number_width, factor: 1 << zeros }) // bits are left
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
