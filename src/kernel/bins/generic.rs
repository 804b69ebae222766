//! Group by group, in vectors that have the lower bytes of all states, and the upper bytes.

use super::coder::Coder;
use super::model::Class;
use super::{BinModel, CLASSES, GROUP, Groups};
use crate::kernel::bytes::copy;
use crate::kernel::expand::WINDOW;

/// A group of bytes, and a mask of it.
pub(super) trait Lanes: Copy {
    /// 64 bytes.
    type Bytes: Copy;
    /// For each of 64 bytes, whether it is selected.
    type Mask: Copy;

    fn load(self, bytes: &[u8; GROUP]) -> Self::Bytes;
    fn store(self, bytes: Self::Bytes, to: &mut [u8; GROUP]);
    /// Stores elements of two bytes each.
    fn store_pairs(self, low: Self::Bytes, high: Self::Bytes, to: &mut [[u8; 2]; GROUP]);
    /// Returns the entry of each byte in a table of 256.
    fn look_up_slot(self, table: &[u8; 256], slots: Self::Bytes) -> Self::Bytes;
    /// Returns the entry of each byte, which is below 64; below 32 unless `is_wide`.
    fn look_up_bin(self, table: &[u8; GROUP], bins: Self::Bytes, is_wide: bool) -> Self::Bytes;
    fn or(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Returns lower and upper bytes of `frequency * upper + slot - start`. Each of the bins has
    /// its frequency and start.
    fn without_bins(
        self,
        class: &Class,
        bins: Self::Bytes,
        slots: Self::Bytes,
        upper: Self::Bytes,
        is_wide: bool,
    ) -> [Self::Bytes; 2];
    /// Returns the lowest bits of each state, at most 8, and lower and upper bytes of the state
    /// without them. The lower four bits of `counts` are the numbers of bits.
    fn take_bits(self, lower: Self::Bytes, upper: Self::Bytes, counts: Self::Bytes) -> [Self::Bytes; 3];
    /// Selects the bytes that are zero.
    fn zeros(self, bytes: Self::Bytes) -> Self::Mask;
    /// Selects the bytes whose top bit is set.
    fn tops(self, bytes: Self::Bytes) -> Self::Mask;
    /// Returns a bit for each byte.
    fn bits(self, mask: Self::Mask) -> u64;
    /// Returns `yes` where the mask selects a byte, and `no` elsewhere.
    fn select(self, mask: Self::Mask, yes: Self::Bytes, no: Self::Bytes) -> Self::Bytes;
    /// Returns the next byte of `next` where the mask selects one, in order, and `no` elsewhere.
    /// `bits` is the mask.
    fn expand(self, mask: Self::Mask, bits: u64, next: &[u8; WINDOW], no: Self::Bytes) -> Self::Bytes;
}

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

/// [`Kernel::groups`](super::Kernel::groups).
#[inline(always)]
pub(super) fn groups<L: Lanes>(lanes: L, model: &BinModel, groups: Groups<'_, '_>) {
    several(lanes, model, [groups]);
}

/// [`Kernel::groups_of_two`](super::Kernel::groups_of_two).
#[inline(always)]
pub(super) fn groups_of_two<L: Lanes>(lanes: L, model: &BinModel, blocks: [Groups<'_, '_>; 2]) {
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
        [self.lower, self.upper] = l.without_bins(class, bins, slots, self.upper, is_wide);
        let first = self.refill(next, 0);
        let taken = l.look_up_bin(&model.taken, bins, is_wide);
        let raw;
        [raw, self.lower, self.upper] = l.take_bits(self.lower, self.upper, taken);
        let second = self.refill(next, first);
        let has_byte = l.tops(taken);
        let bits = l.bits(has_byte);
        let low = l.expand(has_byte, bits, window(next, first + second), raw);
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
        self.lower = l.expand(small, bits, window(next, at), self.lower);
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
fn window(next: &[u8; AHEAD], at: usize) -> &[u8; WINDOW] {
    next.get(at..).and_then(|rest| rest.first_chunk()).unwrap_or(&[0; WINDOW])
}
