//! Elements to coded integers, block by block: no integer depends on another, so that blocks may overlap.

use super::Prediction;
use super::body::{BLOCK, Geometry, chunk, set_chunk};
use super::scalar::{Word, for_width};
use super::undo::Isa;
use crate::kernel::Width;
use std::ops::Range;

/// See [`Words::residuals`](super::Words::residuals).
#[inline(always)]
pub(super) fn residuals<I: Isa>(_: I, prediction: &Prediction, width: Width, elements: &[u8], out: &mut [u8]) {
    for_width!(width, W => match prediction.float {
        true => all::<W, true>(prediction, elements, out),
        false => all::<W, false>(prediction, elements, out),
    });
}

#[inline(always)]
fn all<W: Word, const FLOAT: bool>(prediction: &Prediction, elements: &[u8], out: &mut [u8]) {
    let count = elements.len() / W::BYTES;
    let Some(Geometry { restart, stride }) = Geometry::new(prediction, count) else { return };
    if restart == 1 {
        return run::<W, FLOAT, false, false>(elements, out, 0..count, stride);
    }
    for start in (0..count).step_by(restart) {
        let end = count.min(start + restart);
        let above = end.min(start + stride);
        run::<W, FLOAT, false, false>(elements, out, start..start + 1, stride);
        run::<W, FLOAT, true, false>(elements, out, start + 1..above, stride);
        if !prediction.lorenzo {
            run::<W, FLOAT, false, true>(elements, out, above..end, stride);
        } else if above < end {
            run::<W, FLOAT, true, true>(elements, out, above + 1..end, stride);
            for first in (above..end).step_by(stride) {
                run::<W, FLOAT, false, true>(elements, out, first..first + 1, stride); // had no element before it
            }
        }
    }
}

/// The coded integers of the elements in `range`, which are all predicted alike: from those `LEFT`, `ABOVE`, or both and above left.
#[inline(always)]
fn run<W: Word, const FLOAT: bool, const LEFT: bool, const ABOVE: bool>(
    elements: &[u8],
    out: &mut [u8],
    range: Range<usize>,
    stride: usize,
) {
    let in_block = BLOCK / W::BYTES;
    let back = [Some(0), LEFT.then_some(1), ABOVE.then_some(stride), (LEFT && ABOVE).then_some(stride + 1)];
    if range.len() < in_block {
        for i in range {
            let element = |back: Option<usize>| back.map_or(W::default(), |back| W::get(elements, i - back));
            residual::<W, FLOAT>(back.map(element)).set(out, i);
        }
        return;
    }
    for first in range.clone().step_by(in_block) {
        let first = first.min(range.end - in_block); // the last block overlaps the one before it
        let blocks = back.map(|back| back.map_or(&[0; BLOCK], |back| chunk(elements, (first - back) * W::BYTES)));
        let mut done = [0; BLOCK];
        for i in 0..in_block {
            residual::<W, FLOAT>(blocks.map(|block| W::get(block, i))).set(&mut done, i);
        }
        set_chunk(out, first * W::BYTES, &done);
    }
}

/// The coded integer of an element, given with those left, above and above left of it, or 0 for those that have no part in it.
#[inline(always)]
fn residual<W: Word, const FLOAT: bool>(near: [W; 4]) -> W {
    let [this, left, above, above_left] = near.map(|element| if FLOAT { element.order() } else { element });
    this.minus(left.plus(above).minus(above_left)).zigzag()
}
