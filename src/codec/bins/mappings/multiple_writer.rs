//! Finds multiples, as writers use them.

use super::multiple::Multiple;
use super::numbers::{blocks, least, mask, wide};
use crate::codec::geometry::Geometry;
use crate::kernel::Width;

/// Elements whose lowest bits are looked at together.
const LOOKED_AT: usize = 64;

/// Returns the multiple that expresses all integers of a part, if its numbers are shorter or it has
/// a factor.
pub(in crate::codec) fn find_multiple(width: Width, geometry: &Geometry<'_>, raw: &[u8]) -> Option<Multiple> {
    let w = width.bytes();
    let (mut factor, mut greatest) = (0, 0);
    for (_, elements) in blocks(geometry, raw) {
        let base = least(elements.clone(), w);
        for element in elements {
            let step = wide(element).wrapping_sub(base).cast_unsigned() & mask(w);
            factor = if factor == 1 { 1 } else { greatest_common_divisor(step, factor) };
            greatest = step.max(greatest);
        }
    }
    let most = greatest.checked_div(factor)?;
    let widths = [Width::W1, Width::W2, Width::W4, Width::W8];
    let number_width = widths.into_iter().find(|width| most <= mask(width.bytes()))?;
    (factor > 1 || number_width.bytes() < w).then_some(Multiple { number_width, factor })
}

/// Returns the multiple that expresses floats whose lowest bits are zero, such as those that were
/// bf16 once, counted from 0.
pub(in crate::codec) fn find_upper_bits(width: Width, raw: &[u8]) -> Option<Multiple> {
    let mut all = 0;
    for some in raw.chunks(LOOKED_AT * width.bytes()) {
        all |= some.chunks_exact(width.bytes()).fold(0, |all, element| all | wide(element));
        if all & 0xFF != 0 {
            return None; // too few are zero
        }
    }
    let zeros = all.trailing_zeros();
    let bits = (8 * width.bytes() as u32).checked_sub(zeros)?; // exact: at most 64
    let widths = [Width::W1, Width::W2, Width::W4, Width::W8];
    let number_width = widths.into_iter().find(|width| bits <= 8 * width.bytes() as u32)?;
    (zeros >= 8 && bits > 0).then(|| Multiple { number_width, factor: 1 << zeros }) // bits are left
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
