//! The steps of encoding, one element after the other, and the end of a block.

use super::{BINS, EncoderModel, GROUP};
use crate::kernel::bins::CLASSES;
use crate::kernel::bins::model::HAS_BYTE;

/// The most bytes of the stream for an element: for its bin, for the bits that are added to its
/// state, and its own.
pub const MOST_BYTES: usize = 3;

/// Bytes before the stream that kernels may overwrite.
pub const SLACK: usize = GROUP + 8;

/// The states of a block, and a stream that is written backwards.
pub struct Coder<'a> {
    /// The lower byte of each state.
    pub(super) lower: [u8; GROUP],
    /// The upper byte of each state.
    pub(super) upper: [u8; GROUP],
    /// The stream at the end, and nothing before it.
    pub(super) stream: &'a mut [u8],
    /// The offset of the first byte that was written.
    pub(super) at: usize,
    /// Whether an element could not be coded. The others do not matter then.
    pub(super) is_refused: bool,
}

impl<'a> Coder<'a> {
    /// Begins at the end of `stream`, which has [`SLACK`] and [`MOST_BYTES`] for each element.
    pub fn new(states: [u16; GROUP], stream: &'a mut [u8]) -> Self {
        let lower = states.map(|state| state as u8); // the lower byte
        let upper = states.map(|state| (state >> 8) as u8); // exact
        Self { lower, upper, at: stream.len(), stream, is_refused: false }
    }

    /// Appends the first `count` states, at most [`GROUP`], and the stream. Returns `false`, and
    /// appends nothing, if an element could not be coded.
    pub fn finish(&self, count: usize, stored: &mut Vec<u8>) -> bool {
        let sections = [self.lower.get(..count), self.upper.get(..count), self.stream.get(self.at..)];
        if !self.is_refused {
            sections.into_iter().flatten().for_each(|section| stored.extend_from_slice(section));
        }
        !self.is_refused
    }

    fn put(&mut self, byte: u8) {
        match self.at.checked_sub(1).and_then(|before| self.stream.get_mut(before)) {
            Some(to) => (*to, self.at) = (byte, self.at - 1),
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
    /// the state.
    fn shrink(&mut self, i: usize, limit: u32) -> u16 {
        let state = self.state(i);
        if u32::from(state) < limit {
            return state;
        }
        self.put(state as u8); // the lower byte
        state >> 8
    }
}

/// A group to encode: at most [`GROUP`] windows, and as many bins.
pub(super) struct Group<'a> {
    pub model: &'a EncoderModel,
    pub class: u8,
    pub windows: &'a [[u8; 2]],
    pub bins: &'a [u8],
    pub is_last: bool,
}

impl Group<'_> {
    /// Returns window and bin of each element, the last one first.
    fn backwards(&self) -> impl Iterator<Item = (usize, ([u8; 2], usize))> {
        let elements = self.windows.iter().zip(self.bins).take(GROUP);
        elements.map(|(&window, &bin)| (window, usize::from(bin) % BINS)).enumerate().rev()
    }

    /// Does backwards what a decoder does. In bounds everywhere: elements are below [`GROUP`], and
    /// bins below [`BINS`].
    pub(super) fn encode(&self, coder: &mut Coder<'_>) {
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
            // the quotient is below 2^8, and so is the sum
            coder.set_state(i, (quotient << 8) + remainder + u16::from(class.start[bin]));
        }
    }

    /// Returns the bits that an element adds to the state: those of its offset in the bin, without
    /// the byte of its own if there is one. Returns `None` if it is outside of the bin.
    fn offset(&self, [low, high]: [u8; 2], bin: usize) -> Option<u8> {
        let model = self.model;
        let (low, high) = (low.wrapping_sub(model.low[bin]), high.wrapping_sub(model.high[bin]));
        let (raw, above) = if model.taken[bin] == HAS_BYTE { (high, 0) } else { (low, high) };
        (raw < model.scale[bin] && above == 0).then_some(raw)
    }
}
