//! The windows of a part from which encoders estimate the stored bytes.

use std::ops::Range;

/// The windows have one element of this many.
const ONE_IN: usize = 16;
/// A part of fewer elements is one window.
const WHOLE: usize = 4096;

/// Returns windows of about `length` elements of a part of `count`, evenly spaced; all of a small
/// part.
pub(super) fn windows(count: usize, length: usize) -> impl Iterator<Item = Range<usize>> {
    let length = if count <= WHOLE.max(2 * length) { count.max(1) } else { length.max(1) };
    let step = if length >= count { length } else { length.saturating_mul(ONE_IN) };
    (0..count).step_by(step).map(move |start| start..count.min(start.saturating_add(length)))
}
