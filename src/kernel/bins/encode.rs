//! Encodes the blocks that the kernels of [`Bins`](super::Bins) decode.
//!
//! rANS is a stack: the encoder pushes what the decoder pops. Encoding therefore undoes the steps
//! of decoding in reverse order, from the last group to the first, and writes the stream from its
//! end to its start. [The parent module](super) defines the variables:
//!
//! ```text
//! write the low byte of the window to the stream, if K[bin] >= 8
//! shrink, then state = state * 2^bits + raw
//! shrink, then state = (state / F[bin] << 8) + state % F[bin] + C[bin]
//! ```
//!
//! *Shrink* means: if the state after the assignment would exceed 16 bits, first move the lower
//! byte of the state to the stream. When the decoder reaches this point, a refill moves the byte
//! back into the state. To divide, vectors multiply by a reciprocal. The resulting quotient can be
//! one too small, and is then corrected ([`reciprocal`] has the proof).
//!
//! No step has a branch for elements that cannot be coded. Instead, kernels record whether there
//! were any. If so, the block is dropped at the end.

use super::{BINS, BinModel, CLASSES, GROUP, HAS_BYTE, Lanes};
use crate::kernel::dispatch::{Implementation, Scalar, implement, implementations};
use crate::kernel::vectors::WINDOW;

/// The kernels of one instruction set.
pub trait Kernel: Sync {
    /// Encodes the groups of a block except the last one, from last to first. `bins`, `windows` and
    /// `classes` have one entry for each group. All bins are in the tables.
    fn groups(
        &self,
        model: &EncoderModel,
        classes: &[u8],
        windows: &[[[u8; 2]; GROUP]],
        bins: &[[u8; GROUP]],
        coder: &mut Coder<'_>,
    );
}

/// One implementation of the encoder.
pub type BinEncoding = Implementation<dyn Kernel>;

/// An encoder: a model, and memory that is reused.
#[derive(Default)]
pub struct BinEncoder {
    model: EncoderModel,
    stream: Vec<u8>,
}

impl BinEncoder {
    /// Sets the model for the blocks that follow.
    pub fn set_model(&mut self, model: &BinModel) {
        self.model.set(model);
    }
}

impl BinEncoding {
    /// Appends the states and the stream of a block to `stored`. `bins` has the bin of each window,
    /// and `classes` the class of each group.
    ///
    /// Appends nothing and returns `false` if a bin cannot be coded or has frequency 0 in its
    /// class, if a window lies outside its bin, or if an argument is too short.
    #[must_use]
    pub fn encode(
        &self,
        encoder: &mut BinEncoder,
        classes: &[u8],
        windows: &[[u8; 2]],
        bins: &[u8],
        stored: &mut Vec<u8>,
    ) -> bool {
        let BinEncoder { model, stream } = encoder;
        let needed = SLACK + windows.len() * MAX_BYTES_PER_ELEMENT;
        stream.resize(needed.max(stream.len()), 0);
        let mut coder = Coder::new([1 << 8; GROUP], stream);
        let is_encoded = self.encode_groups(model, classes, windows, bins, &mut coder).is_some();
        is_encoded && coder.finish(windows.len().min(GROUP), stored)
    }

    /// Encodes all groups of a block. Returns `None` if an argument is too short, or if a bin is
    /// not in the tables.
    fn encode_groups(
        &self,
        model: &EncoderModel,
        classes: &[u8],
        windows: &[[u8; 2]],
        bins: &[u8],
        coder: &mut Coder<'_>,
    ) -> Option<()> {
        // no branch per bin, so that the compiler vectorizes the loop
        let max = bins.iter().fold(0, |max, &bin| bin.max(max));
        if bins.len() != windows.len() || usize::from(max) >= model.bin_count() {
            return None;
        }
        let Some(before) = windows.len().checked_sub(1) else { return Some(()) };
        let whole = before / GROUP;
        let (windows, last_windows) = windows.split_at_checked(whole * GROUP)?;
        let (bins, last_bins) = bins.split_at_checked(whole * GROUP)?;
        let (classes, &last_class) = (classes.get(..whole)?, classes.get(whole)?);
        let last = Group { model, class: last_class, windows: last_windows, bins: last_bins, is_last: true };
        last.encode(coder);
        self.kernel.groups(model, classes, windows.as_chunks().0, bins.as_chunks().0, coder);
        Some(())
    }
}

implementations!(Kernel);

// ---- tables

/// The tables of an encoder, made from a [`BinModel`].
///
/// Encoding with any model is safe, even if no file can have this model.
pub struct EncoderModel {
    /// The lower byte of the `V` of each bin.
    low: [u8; BINS],
    /// The upper byte of the `V` of each bin.
    high: [u8; BINS],
    /// For each bin, [`HAS_BYTE`] if its elements have a separate byte in the stream.
    taken: [u8; BINS],
    /// For each bin, 2 to the power of the number of bits that its elements add to the state: 1 to
    /// 128.
    scale: [u8; BINS],
    /// For each bin, the maximum upper byte that a state can have before the bits of an element are
    /// added, so that the new state fits in 16 bits.
    max_upper: [u8; BINS],
    /// Whether there are more than 32 bins.
    is_wide: bool,
    classes: [EncoderClass; CLASSES],
}

/// The frequencies of a class.
#[derive(Clone)]
struct EncoderClass {
    /// The `F` of each bin, or 0 if the bin cannot be coded.
    frequency: [u8; BINS],
    /// The `C` of each bin.
    start: [u8; BINS],
    /// The lower bytes and the upper bytes of the [`reciprocal`] of each frequency.
    reciprocal: [[u8; BINS]; 2],
}

const NO_CLASS: EncoderClass = EncoderClass { frequency: [0; BINS], start: [0; BINS], reciprocal: [[0; BINS]; 2] };

impl Default for EncoderModel {
    fn default() -> Self {
        Self {
            low: [0; BINS],
            high: [0; BINS],
            taken: [0; BINS],
            scale: [1; BINS],
            max_upper: [u8::MAX; BINS],
            is_wide: false,
            classes: [NO_CLASS; CLASSES],
        }
    }
}

impl EncoderModel {
    /// Builds the tables for a model.
    pub fn set(&mut self, model: &BinModel) {
        (self.low, self.high, self.is_wide) = (model.low, model.high, model.is_wide);
        for bin in 0..BINS {
            // in bounds: below BINS
            let bits = model.taken[bin] & 7; // exact if the bin can be coded
            self.taken[bin] = model.taken[bin] & HAS_BYTE;
            (self.scale[bin], self.max_upper[bin]) = (1 << bits, u8::MAX >> bits);
        }
        for (to, from) in self.classes.iter_mut().zip(&model.classes) {
            to.start = from.start;
            for bin in 0..BINS {
                // in bounds: below BINS
                let (start, frequency) = (from.start[bin], from.frequency[bin]);
                let has_slots = u16::from(start) + u16::from(frequency) <= 1 << 8;
                let frequency = if has_slots && can_be_coded(model, bin) { frequency } else { 0 };
                to.frequency[bin] = frequency;
                [to.reciprocal[0][bin], to.reciprocal[1][bin]] = reciprocal(frequency).to_le_bytes();
            }
        }
    }

    /// Returns the number of bins in the tables. Bins that are not in the model have frequency 0.
    fn bin_count(&self) -> usize {
        if self.is_wide { BINS } else { BINS / 2 }
    }
}

/// Returns whether `K` is at most 15 and `V` is a multiple of `2^K`, as R-5.18 requires. `bin` must
/// be below [`BINS`].
fn can_be_coded(model: &BinModel, bin: usize) -> bool {
    let (start, bits) = (u16::from_le_bytes([model.low[bin], model.high[bin]]), model.bits[bin]);
    bits <= 15 && u32::from(start) % (1 << bits) == 0
}

/// Returns the factor `m` by which vectors multiply to divide by `F`: `floor((2^16 - 1) / F)`, or 0
/// if `F` is 0.
///
/// For each `x` below `2^16`, `floor(x * m / 2^16)` is the quotient `floor(x / F)`, or one less.
/// Proof: `2^16 - 1 = m * F + r` with `r` below `F`. Therefore `x / F - x * m / 2^16` is
/// `x * (1 + r) / (F * 2^16)`, which is at least 0 and at most `x / 2^16`, so below 1.
fn reciprocal(frequency: u8) -> u16 {
    u16::MAX.checked_div(frequency.into()).unwrap_or(0)
}

// ---- the definition in code: one element at a time

impl Kernel for Scalar {
    fn groups(
        &self,
        model: &EncoderModel,
        classes: &[u8],
        windows: &[[[u8; 2]; GROUP]],
        bins: &[[u8; GROUP]],
        coder: &mut Coder<'_>,
    ) {
        for ((windows, bins), &class) in windows.iter().zip(bins).zip(classes).rev() {
            Group { model, class, windows, bins, is_last: false }.encode(coder);
        }
    }
}

/// The maximum number of stream bytes per element: one for its bin, one for the bits added to its
/// state, and its separate byte.
pub const MAX_BYTES_PER_ELEMENT: usize = 3;

/// The number of bytes before the stream that kernels may overwrite.
pub const SLACK: usize = GROUP + 8;

/// The states of a block, and a stream that is written backwards.
pub struct Coder<'a> {
    /// The lower byte of each state.
    lower: [u8; GROUP],
    /// The upper byte of each state.
    upper: [u8; GROUP],
    /// The stream, at the end of this memory.
    stream: &'a mut [u8],
    /// The offset at which the stream currently begins.
    write_offset: usize,
    /// Whether an element could not be coded. If so, the block is dropped.
    is_refused: bool,
}

impl<'a> Coder<'a> {
    /// Starts at the end of `stream`, which has [`SLACK`] bytes plus [`MAX_BYTES_PER_ELEMENT`] per
    /// element.
    pub fn new(states: [u16; GROUP], stream: &'a mut [u8]) -> Self {
        let lower = states.map(|state| state as u8); // the lower byte
        let upper = states.map(|state| (state >> 8) as u8); // exact
        Self { lower, upper, write_offset: stream.len(), stream, is_refused: false }
    }

    /// Appends the first `count` states, at most [`GROUP`], and the stream. Appends nothing and
    /// returns `false` if an element could not be coded.
    pub fn finish(&self, count: usize, stored: &mut Vec<u8>) -> bool {
        let sections = [self.lower.get(..count), self.upper.get(..count), self.stream.get(self.write_offset..)];
        if !self.is_refused {
            sections.into_iter().flatten().for_each(|section| stored.extend_from_slice(section));
        }
        !self.is_refused
    }

    fn put(&mut self, byte: u8) {
        match self.write_offset.checked_sub(1).and_then(|before| self.stream.get_mut(before)) {
            Some(to) => (*to, self.write_offset) = (byte, self.write_offset - 1),
            None => self.is_refused = true,
        }
    }

    fn state(&self, i: usize) -> u16 {
        u16::from_le_bytes([self.lower[i], self.upper[i]]) // in bounds: below GROUP
    }

    fn set_state(&mut self, i: usize, state: u16) {
        [self.lower[i], self.upper[i]] = state.to_le_bytes(); // in bounds: below GROUP
    }

    /// Moves the lower byte of a state to the stream, unless the state is below `limit`. Returns
    /// the remaining state.
    fn shrink(&mut self, i: usize, limit: u32) -> u16 {
        let state = self.state(i);
        if u32::from(state) < limit {
            return state;
        }
        self.put(state as u8); // the lower byte
        state >> 8
    }
}

/// A group to encode: at most [`GROUP`] windows and their bins.
struct Group<'a> {
    model: &'a EncoderModel,
    class: u8,
    windows: &'a [[u8; 2]],
    bins: &'a [u8],
    is_last: bool,
}

impl Group<'_> {
    /// Returns the window and the bin of each element, last to first.
    fn backwards(&self) -> impl Iterator<Item = (usize, ([u8; 2], usize))> {
        let elements = self.windows.iter().zip(self.bins).take(GROUP);
        elements.map(|(&window, &bin)| (window, usize::from(bin) % BINS)).enumerate().rev()
    }

    /// Undoes the steps of a decoder in reverse order. All indices are in bounds: elements are
    /// below [`GROUP`], and bins below [`BINS`].
    fn encode(&self, coder: &mut Coder<'_>) {
        let Self { model, is_last, .. } = *self;
        for (i, (window, bin)) in self.backwards() {
            let [low, _] = window;
            let has_byte = model.taken[bin] == HAS_BYTE;
            coder.is_refused |= self.offset(window, bin).is_none();
            match (is_last, has_byte) {
                (true, true) => coder.lower[i] = low,
                (true, false) => coder.lower[i] = low.wrapping_sub(model.low[bin]),
                (false, true) => coder.put(low),
                (false, false) => {}
            }
        }
        for (i, (window, bin)) in self.backwards() {
            if is_last && model.taken[bin] != HAS_BYTE {
                continue;
            }
            let raw = self.offset(window, bin).unwrap_or(0);
            let scale = u16::from(model.scale[bin]);
            let state = coder.shrink(i, (1 << 16) / u32::from(scale));
            coder.set_state(i, state * scale + u16::from(raw)); // the state is below 2^16 / scale
        }
        let class = &model.classes[usize::from(self.class) % CLASSES]; // in bounds
        for (i, (_, bin)) in self.backwards() {
            let frequency = u16::from(class.frequency[bin]);
            let state = coder.shrink(i, u32::from(frequency) << 8);
            let (Some(quotient), Some(remainder)) = (state.checked_div(frequency), state.checked_rem(frequency)) else {
                coder.is_refused = true;
                continue;
            };
            // the quotient is below 2^8, and so is the sum of the other two terms
            coder.set_state(i, (quotient << 8) + remainder + u16::from(class.start[bin]));
        }
    }

    /// Returns the bits that an element adds to the state: its offset in the bin, without the
    /// separate byte in the stream if it has one. Returns `None` if the element lies outside its
    /// bin.
    fn offset(&self, [low, high]: [u8; 2], bin: usize) -> Option<u8> {
        let model = self.model;
        let (low, high) = (low.wrapping_sub(model.low[bin]), high.wrapping_sub(model.high[bin]));
        let (raw, above) = if model.taken[bin] == HAS_BYTE { (high, 0) } else { (low, high) };
        (raw < model.scale[bin] && above == 0).then_some(raw)
    }
}

// ---- vectors: group by group

implement!([Avx2, Avx512, Neon] Kernel {
    fn groups(
        model: &EncoderModel,
        classes: &[u8],
        windows: &[[[u8; 2]; GROUP]],
        bins: &[[u8; GROUP]],
        coder: &mut Coder<'_>,
    ) => { groups }
});

const _: () = assert!(SLACK >= GROUP, "a kernel overwrites too much");

/// The states, in vectors, and the stream.
struct VectorCoder<'a, L: Lanes> {
    lanes: L,
    lower: L::Bytes,
    upper: L::Bytes,
    stream: &'a mut [u8],
    /// The offset at which the stream currently begins.
    write_offset: usize,
    /// A bit for each state, set if one of its elements could not be coded.
    refused: u64,
}

/// [`Kernel::groups`].
#[inline(always)]
fn groups<L: Lanes>(
    lanes: L,
    model: &EncoderModel,
    classes: &[u8],
    windows: &[[[u8; 2]; GROUP]],
    bins: &[[u8; GROUP]],
    coder: &mut Coder<'_>,
) {
    let (lower, upper) = (lanes.load(&coder.lower), lanes.load(&coder.upper));
    let mut vectors =
        VectorCoder { lanes, lower, upper, stream: &mut *coder.stream, write_offset: coder.write_offset, refused: 0 };
    for ((windows, bins), &class) in windows.iter().zip(bins).zip(classes).rev() {
        let class = &model.classes[usize::from(class) % CLASSES]; // in bounds
        vectors.group(model, class, windows, bins);
    }
    let VectorCoder { lower, upper, write_offset, refused, .. } = vectors;
    lanes.store(lower, &mut coder.lower);
    lanes.store(upper, &mut coder.upper);
    coder.write_offset = write_offset;
    coder.is_refused |= refused != 0;
}

impl<L: Lanes> VectorCoder<'_, L> {
    #[inline(always)]
    fn group(&mut self, model: &EncoderModel, class: &EncoderClass, windows: &[[u8; 2]; GROUP], bins: &[u8; GROUP]) {
        let (l, is_wide) = (self.lanes, model.is_wide);
        let (bins, [low, high]) = (l.load(bins), l.load_pairs(windows));
        let has_byte = l.top_bits(l.look_up_bin(&model.taken, bins, is_wide));
        self.put(l.bits(has_byte), low);
        let (low, high) = (
            l.subtract(low, l.look_up_bin(&model.low, bins, is_wide)),
            l.subtract(high, l.look_up_bin(&model.high, bins, is_wide)),
        );
        let raw = l.select(has_byte, high, low);
        let above = l.select(has_byte, l.subtract(high, high), high);
        let scale = l.look_up_bin(&model.scale, bins, is_wide);
        let frequency = l.look_up_bin(&class.frequency, bins, is_wide);
        let is_inside = !l.bits(l.less_equal(scale, raw)) & l.bits(l.zeros(above)) & l.nonzero(frequency);
        self.refused |= !is_inside;

        self.shrink(l.look_up_bin(&model.max_upper, bins, is_wide));
        let carry;
        [self.lower, carry] = l.multiply_add(self.lower, scale, raw);
        [self.upper, _] = l.multiply_add(self.upper, scale, carry); // states are below 2^16 / scale

        self.shrink(l.subtract(frequency, l.load(&[1; GROUP])));
        let [lower, upper] = &class.reciprocal;
        let remainders;
        [self.upper, remainders] = l.divide(
            [self.lower, self.upper],
            frequency,
            [l.look_up_bin(lower, bins, is_wide), l.look_up_bin(upper, bins, is_wide)],
        );
        self.lower = l.add(remainders, l.look_up_bin(&class.start, bins, is_wide)); // below 2^8
    }

    /// Moves the lower bytes of states whose upper byte exceeds `max` to the stream.
    #[inline(always)]
    fn shrink(&mut self, max: L::Bytes) {
        let l = self.lanes;
        let is_small = l.less_equal(self.upper, max);
        self.put(!l.bits(is_small), self.lower);
        self.lower = l.select(is_small, self.lower, self.upper);
        self.upper = l.select(is_small, self.upper, l.subtract(max, max));
    }

    /// Writes the bytes whose bit is set.
    #[inline(always)]
    fn put(&mut self, bits: u64, bytes: L::Bytes) {
        // writes 64 bytes that end with the compressed bytes; the others land before the stream
        let mut compressed = [0; GROUP + WINDOW];
        let count = bits.count_ones() as usize; // exact: at most 64
        let (_, window) = compressed.split_at_mut(GROUP);
        self.lanes.compress(bits, bytes, window.first_chunk_mut().unwrap_or(&mut [0; WINDOW]));
        let last = compressed.get(count..).and_then(|bytes| bytes.first_chunk::<GROUP>());
        let before = self.write_offset.checked_sub(GROUP).and_then(|start| self.stream.get_mut(start..));
        match (before.and_then(|before| before.first_chunk_mut()), last) {
            (Some(to), Some(last)) => (*to, self.write_offset) = (*last, self.write_offset - count),
            _ => self.refused = u64::MAX,
        }
    }
}
