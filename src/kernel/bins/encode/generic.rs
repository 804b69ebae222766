//! Group by group, in vectors that have the lower bytes of all states, and the upper bytes.

use super::model::EncoderClass;
use super::{Coder, EncoderModel, GROUP, SLACK};
use crate::kernel::bins::CLASSES;
use crate::kernel::bins::generic::Lanes;
use crate::kernel::compress::WINDOW;

/// The operations of encoding that decoding has not.
pub(super) trait EncodeLanes: Lanes {
    /// Loads lower and upper bytes of elements of two bytes each.
    fn load_pairs(self, pairs: &[[u8; 2]; GROUP]) -> [Self::Bytes; 2];
    fn add(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    fn subtract(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Returns lower and upper bytes of `a * b + c`.
    fn multiply_add(self, a: Self::Bytes, b: Self::Bytes, c: Self::Bytes) -> [Self::Bytes; 2];
    /// Selects the bytes where `a <= b`.
    fn at_most(self, a: Self::Bytes, b: Self::Bytes) -> Self::Mask;
    /// Divides states, given by lower and upper bytes, whose quotients are below 256. Returns
    /// quotients and remainders. `reciprocals` are lower and upper bytes of those of the
    /// [model](EncoderClass). Where a divisor is 0, any bytes are returned.
    fn divide(self, states: [Self::Bytes; 2], by: Self::Bytes, reciprocals: [Self::Bytes; 2]) -> [Self::Bytes; 2];
    /// Stores the selected bytes, in order, so that they end where `to` ends. Any contents are
    /// stored before them.
    fn compress(self, bits: u64, bytes: Self::Bytes, to: &mut [u8; WINDOW]);
}

const _: () = assert!(SLACK >= WINDOW, "a kernel overwrites too much");

/// States and stream, in vectors.
struct VectorCoder<'a, L: Lanes> {
    lanes: L,
    lower: L::Bytes,
    upper: L::Bytes,
    stream: &'a mut [u8],
    /// The offset of the first byte of the stream that was written.
    at: usize,
    /// The states of elements that could not be coded.
    refused: u64,
}

/// [`Kernel::groups`](super::Kernel::groups).
#[inline(always)]
pub(super) fn groups<L: EncodeLanes>(
    lanes: L,
    model: &EncoderModel,
    classes: &[u8],
    windows: &[[[u8; 2]; GROUP]],
    bins: &[[u8; GROUP]],
    coder: &mut Coder<'_>,
) {
    let (lower, upper) = (lanes.load(&coder.lower), lanes.load(&coder.upper));
    let mut vectors = VectorCoder { lanes, lower, upper, stream: &mut *coder.stream, at: coder.at, refused: 0 };
    for ((windows, bins), &class) in windows.iter().zip(bins).zip(classes).rev() {
        let class = &model.classes[usize::from(class) % CLASSES]; // in bounds
        vectors.group(model, class, windows, bins);
    }
    let VectorCoder { lower, upper, at, refused, .. } = vectors;
    lanes.store(lower, &mut coder.lower);
    lanes.store(upper, &mut coder.upper);
    coder.at = at;
    coder.is_refused |= refused != 0;
}

impl<L: EncodeLanes> VectorCoder<'_, L> {
    #[inline(always)]
    fn group(&mut self, model: &EncoderModel, class: &EncoderClass, windows: &[[u8; 2]; GROUP], bins: &[u8; GROUP]) {
        let l = self.lanes;
        let (bins, [low, high]) = (l.load(bins), l.load_pairs(windows));
        let look_up = |table| l.look_up_bin(table, bins, model.is_wide);
        let has_byte = l.tops(look_up(&model.taken));
        self.put(l.bits(has_byte), low);
        let (low, high) = (l.subtract(low, look_up(&model.low)), l.subtract(high, look_up(&model.high)));
        let raw = l.select(has_byte, high, low);
        let above = l.select(has_byte, l.subtract(high, high), high);
        let scale = look_up(&model.scale);
        let frequency = look_up(&class.frequency);
        let is_inside = !l.bits(l.at_most(scale, raw)) & l.bits(l.zeros(above)) & !l.bits(l.zeros(frequency));
        self.refused |= !is_inside;

        self.shrink(look_up(&model.most_upper));
        let carry;
        [self.lower, carry] = l.multiply_add(self.lower, scale, raw);
        [self.upper, _] = l.multiply_add(self.upper, scale, carry); // states are below 2^16 / scale

        self.shrink(l.subtract(frequency, l.load(&[1; GROUP])));
        let [lower, upper] = &class.reciprocal;
        let remainders;
        [self.upper, remainders] = l.divide([self.lower, self.upper], frequency, [look_up(lower), look_up(upper)]);
        self.lower = l.add(remainders, look_up(&class.start)); // below 2^8
    }

    /// Moves the lower bytes of the states whose upper byte is more than `most` to the stream.
    #[inline(always)]
    fn shrink(&mut self, most: L::Bytes) {
        let l = self.lanes;
        let is_small = l.at_most(self.upper, most);
        self.put(!l.bits(is_small), self.lower);
        self.lower = l.select(is_small, self.lower, self.upper);
        self.upper = l.select(is_small, self.upper, l.subtract(most, most));
    }

    /// Writes a byte for each bit that is set.
    #[inline(always)]
    fn put(&mut self, bits: u64, bytes: L::Bytes) {
        let window = self.at.checked_sub(WINDOW).and_then(|start| self.stream.get_mut(start..));
        match window.and_then(|window| window.first_chunk_mut()) {
            Some(window) => {
                self.lanes.compress(bits, bytes, window);
                self.at -= bits.count_ones() as usize; // exact, and at most WINDOW: at most 64
            }
            None => self.refused = u64::MAX,
        }
    }
}
