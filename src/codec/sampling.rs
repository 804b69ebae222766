//! What encoders look at to guess what an encoding would give: some windows of a part, spread evenly.

use std::ops::Range;

/// One in so many elements is looked at.
const ONE_IN: usize = 8;
/// Parts of fewer elements are looked at as a whole.
const WHOLE: usize = 4096;

/// Windows of about `length` elements of a part of `count`; all of it if it is small.
pub(super) fn windows(count: usize, length: usize) -> impl Iterator<Item = Range<usize>> {
    let length = if count <= WHOLE.max(2 * length) { count.max(1) } else { length.max(1) };
    let step = if length >= count { length } else { length.saturating_mul(ONE_IN) };
    (0..count).step_by(step).map(move |start| start..count.min(start.saturating_add(length)))
}
