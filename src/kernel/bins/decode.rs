//! Decodes the groups of blocks.
//!
//! A step of a block has to wait for the one before it: the states of a group depend on those
//! before. Meanwhile, the processor can do a step of another block, for which kernels decode two
//! side by side.
//!
//! A stream may be cut or damaged. Vectors read zeros beyond its end, from a copy of its last
//! bytes, and the block is found to be malformed when it is finished.

use super::block::{BinModel, CLASSES, Class, Coder, Groups, HAS_BYTE, index, window};
use super::{GROUP, Kernel, Lanes};
use crate::kernel::bytes::copy;
use crate::kernel::dispatch::{Scalar, implement};
use crate::kernel::vectors::WINDOW;

// ---- the definition in code

impl Kernel for Scalar {
    fn groups(&self, model: &BinModel, Groups { classes, coder, out }: Groups<'_, '_>) {
        for (out, &class) in out.iter_mut().zip(classes) {
            let bins = coder.bins(model, class, GROUP);
            let raw = coder.raw(model, &bins, |taken| taken);
            for ((out, &bin), raw) in out.iter_mut().zip(&bins).zip(raw) {
                let has_byte = model.taken[index(bin)] & HAS_BYTE != 0; // in bounds: below BINS
                let low = if has_byte { coder.next_byte() } else { 0 };
                *out = window(model, bin, raw, low);
            }
        }
    }
}

// ---- vectors: group by group

implement!([Avx2, Avx512, Neon] Kernel {
    fn groups(model: &BinModel, block: Groups<'_, '_>) => { groups }
    fn groups_of_two(model: &BinModel, blocks: [Groups<'_, '_>; 2]) => { groups_of_two }
});

/// Bytes of the stream that a group may look at: two refills and the bytes of bins take at most
/// [`GROUP`] each.
const AHEAD: usize = 2 * GROUP + WINDOW;

/// The end of a stream, with zeros after it.
type Tail = [u8; 2 * AHEAD];

/// A stream that may be read beyond its end.
struct Ahead<'a> {
    /// The stream or, if `tail` was taken, its end.
    bytes: &'a [u8],
    /// Bytes of the stream before `bytes`.
    before: usize,
    /// Bytes of `bytes` that were used. May be more than it has.
    used: usize,
    tail: Option<&'a mut Tail>,
}

impl<'a> Ahead<'a> {
    /// Returns the bytes that a group may look at.
    #[inline(always)]
    fn next(&mut self) -> &'a [u8; AHEAD] {
        let next = |bytes: &'a [u8], used| bytes.get(used..).and_then(|rest| rest.first_chunk());
        next(self.bytes, self.used).unwrap_or_else(|| {
            let Self { bytes, before, used, ref mut tail } = *self;
            if let Some(tail) = tail.take() {
                (self.bytes, self.before, self.used) = (end(bytes, used, tail), before + used, 0);
            }
            next(self.bytes, self.used).unwrap_or(&[0; AHEAD])
        })
    }
}

/// Sets `tail` to the bytes from `used` on, and returns it.
#[cold]
fn end<'a>(bytes: &[u8], used: usize, tail: &'a mut Tail) -> &'a [u8] {
    copy(bytes.get(used..).unwrap_or(&[]), tail);
    tail
}

/// States and stream, in vectors.
struct VectorCoder<'a, L: Lanes> {
    lanes: L,
    lower: L::Bytes,
    upper: L::Bytes,
    stream: Ahead<'a>,
}

/// [`Kernel::groups`].
#[inline(always)]
fn groups<L: Lanes>(lanes: L, model: &BinModel, groups: Groups<'_, '_>) {
    several(lanes, model, [groups]);
}

/// [`Kernel::groups_of_two`].
#[inline(always)]
fn groups_of_two<L: Lanes>(lanes: L, model: &BinModel, blocks: [Groups<'_, '_>; 2]) {
    several(lanes, model, blocks);
}

/// Decodes as many groups of each block as all have.
#[inline(always)]
fn several<L: Lanes, const N: usize>(lanes: L, model: &BinModel, mut blocks: [Groups<'_, '_>; N]) {
    let count = blocks.iter().map(|block| block.out.len().min(block.classes.len())).min().unwrap_or(0);
    let mut tails = [[0; 2 * AHEAD]; N];
    let mut tail = tails.iter_mut();
    let mut coders = blocks.each_ref().map(|block| VectorCoder::new(lanes, block.coder, tail.next()));
    for i in 0..count {
        for (block, coder) in blocks.iter_mut().zip(&mut coders) {
            // in bounds: `count` is at most both lengths; of the classes, by their number
            let (class, out) = (&model.classes[usize::from(block.classes[i]) % CLASSES], &mut block.out[i]);
            coder.group(model, class, out);
        }
    }
    for (block, coder) in blocks.iter_mut().zip(coders) {
        coder.finish(block.coder);
    }
}

impl<'a, L: Lanes> VectorCoder<'a, L> {
    #[inline(always)]
    fn new(lanes: L, coder: &Coder<'a>, tail: Option<&'a mut Tail>) -> Self {
        let (lower, upper) = (lanes.load(&coder.lower), lanes.load(&coder.upper));
        Self { lanes, lower, upper, stream: Ahead { bytes: coder.stream, before: 0, used: 0, tail } }
    }

    /// Sets `coder`, from which this was made, to what follows the groups.
    #[inline(always)]
    fn finish(self, coder: &mut Coder<'_>) {
        self.lanes.store(self.lower, &mut coder.lower);
        self.lanes.store(self.upper, &mut coder.upper);
        match coder.stream.get(self.stream.before + self.stream.used..) {
            Some(rest) => coder.stream = rest,
            None => (coder.stream, coder.is_cut) = (&[], true),
        }
    }

    #[inline(always)]
    fn group(&mut self, model: &BinModel, class: &Class, out: &mut [[u8; 2]; GROUP]) {
        let (l, slots, is_wide) = (self.lanes, self.lower, model.is_wide);
        let next = self.stream.next();
        let bins = l.look_up_slot(&class.bin_of, slots);
        let rests = l.subtract(slots, l.look_up_bin(&class.start, bins, is_wide));
        [self.lower, self.upper] = l.look_up_multiply_add(&class.frequency, bins, is_wide, self.upper, rests);
        let first = self.refill(next, 0);
        let taken = l.look_up_bin(&model.taken, bins, is_wide);
        let raw;
        [raw, self.lower, self.upper] = l.take_bits(self.lower, self.upper, taken);
        let second = self.refill(next, first);
        let has_byte = l.tops(taken);
        let bits = l.bits(has_byte);
        let low = l.expand_or(has_byte, bits, next_window(next, first + second), raw);
        self.stream.used += first + second + count(bits);
        let low = l.or(l.look_up_bin(&model.low, bins, is_wide), low);
        let high = l.look_up_bin(&model.high, bins, is_wide);
        let high = l.select(has_byte, l.or(high, raw), high);
        l.store_pairs(low, high, out);
    }

    /// Brings all states to 256 or more. Takes bytes of `next` from `at` on, and returns their
    /// number.
    #[inline(always)]
    fn refill(&mut self, next: &[u8; AHEAD], at: usize) -> usize {
        let l = self.lanes;
        let small = l.zeros(self.upper);
        let bits = l.bits(small);
        self.upper = l.select(small, self.lower, self.upper);
        self.lower = l.expand_or(small, bits, next_window(next, at), self.lower);
        count(bits)
    }
}

/// Returns how many bits are set: at most 64.
#[inline(always)]
fn count(bits: u64) -> usize {
    bits.count_ones() as usize // exact
}

/// Returns the window of `next` that begins `at` bytes in, at most 2 * [`GROUP`].
#[inline(always)]
fn next_window(next: &[u8; AHEAD], at: usize) -> &[u8; WINDOW] {
    next.get(at..).and_then(|rest| rest.first_chunk()).unwrap_or(&[0; WINDOW])
}
