//! Group by group, in vectors that have the lower bytes of all states, and the upper bytes.

use super::model::Class;
use super::{BinModel, CLASSES, Coder, GROUP};
use crate::kernel::bytes::first_bytes;
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
    fn subtract(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    fn or(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Returns lower and upper bytes of `a * b + c`.
    fn multiply_add(self, a: Self::Bytes, b: Self::Bytes, c: Self::Bytes) -> [Self::Bytes; 2];
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
    /// Returns the next byte of `next` for each selected one, in order, and zero elsewhere.
    fn expand(self, bits: u64, next: &[u8; WINDOW]) -> Self::Bytes;
}

/// States and stream, in vectors.
struct VectorCoder<'a, L: Lanes> {
    lanes: L,
    lower: L::Bytes,
    upper: L::Bytes,
    stream: &'a [u8],
    /// Bytes of the stream that were used. May be more than it has.
    used: usize,
}

/// [`Kernel::groups`](super::Kernel::groups).
#[inline(always)]
pub(super) fn groups<L: Lanes>(
    lanes: L,
    model: &BinModel,
    classes: &[u8],
    coder: &mut Coder<'_>,
    out: &mut [[[u8; 2]; GROUP]],
) {
    let (lower, upper) = (lanes.load(&coder.lower), lanes.load(&coder.upper));
    let mut vectors = VectorCoder { lanes, lower, upper, stream: coder.stream, used: 0 };
    for (out, &class) in out.iter_mut().zip(classes) {
        let class = &model.classes[usize::from(class) % CLASSES]; // in bounds
        vectors.group(model, class, out);
    }
    lanes.store(vectors.lower, &mut coder.lower);
    lanes.store(vectors.upper, &mut coder.upper);
    match coder.stream.get(vectors.used..) {
        Some(rest) => coder.stream = rest,
        None => (coder.stream, coder.is_cut) = (&[], true),
    }
}

impl<L: Lanes> VectorCoder<'_, L> {
    #[inline(always)]
    fn group(&mut self, model: &BinModel, class: &Class, out: &mut [[u8; 2]; GROUP]) {
        let (l, slots, is_wide) = (self.lanes, self.lower, model.is_wide);
        let bins = l.look_up_slot(&class.bin_of, slots);
        let frequencies = l.look_up_bin(&class.frequency, bins, is_wide);
        let starts = l.look_up_bin(&class.start, bins, is_wide);
        [self.lower, self.upper] = l.multiply_add(frequencies, self.upper, l.subtract(slots, starts));
        self.refill();
        let taken = l.look_up_bin(&model.taken, bins, is_wide);
        let raw;
        [raw, self.lower, self.upper] = l.take_bits(self.lower, self.upper, taken);
        self.refill();
        let has_byte = l.tops(taken);
        let bytes = self.next_bytes(l.bits(has_byte));
        let none = l.subtract(raw, raw);
        let low = l.or(l.look_up_bin(&model.low, bins, is_wide), l.select(has_byte, bytes, raw));
        let high = l.or(l.look_up_bin(&model.high, bins, is_wide), l.select(has_byte, raw, none));
        l.store_pairs(low, high, out);
    }

    /// Brings all states to 256 or more.
    #[inline(always)]
    fn refill(&mut self) {
        let l = self.lanes;
        let small = l.zeros(self.upper);
        let bytes = self.next_bytes(l.bits(small));
        self.upper = l.select(small, self.lower, self.upper);
        self.lower = l.select(small, bytes, self.lower);
    }

    /// Takes a byte of the stream for each bit that is set.
    #[inline(always)]
    fn next_bytes(&mut self, bits: u64) -> L::Bytes {
        let mut padded = [0; WINDOW];
        let next = first_bytes(self.stream.get(self.used..).unwrap_or(&[]), &mut padded);
        self.used += bits.count_ones() as usize; // exact: at most 64
        self.lanes.expand(bits, next)
    }
}
