//! The steps of decoding, one element after the other, and the last group of a block.

use super::model::{BINS, BinModel, CLASSES, GROUP, HAS_BYTE};

/// The states of a block, and what is left of its stream.
pub struct Coder<'a> {
    /// The lower byte of each state.
    pub(super) lower: [u8; GROUP],
    /// The upper byte of each state.
    pub(super) upper: [u8; GROUP],
    pub(super) stream: &'a [u8],
    /// Whether the stream was too short. Zeros stand for what it lacked.
    pub(super) is_cut: bool,
}

impl<'a> Coder<'a> {
    /// Splits states and stream of a block of `count` elements. Returns `None` if states are
    /// missing, or one is below 256.
    pub(super) fn new(count: usize, stored: &'a [u8]) -> Option<Self> {
        let states = count.min(GROUP);
        let (lower_bytes, rest) = stored.split_at_checked(states)?;
        let (upper_bytes, stream) = rest.split_at_checked(states)?;
        let (mut lower, mut upper) = ([0; GROUP], [1; GROUP]);
        lower.iter_mut().zip(lower_bytes).for_each(|(to, from)| *to = *from);
        upper.iter_mut().zip(upper_bytes).for_each(|(to, from)| *to = *from);
        (!upper.contains(&0)).then_some(Self { lower, upper, stream, is_cut: false })
    }
}

/// Decodes the last group of a block, which `out` has the length of. Returns `None` if the block is
/// malformed.
pub(super) fn last_group(model: &BinModel, class: u8, coder: &mut Coder<'_>, out: &mut [[u8; 2]]) -> Option<()> {
    let bins = coder.bins(model, class, out.len());
    let bins = bins.get(..out.len())?;
    let raw = coder.raw(model, bins, |taken| if taken & HAS_BYTE != 0 { taken } else { 0 });
    for (((out, &bin), raw), low) in out.iter_mut().zip(bins).zip(raw).zip(coder.lower) {
        if u32::from(low) >> model.bits[index(bin)].min(8) != 0 {
            return None; // in bounds: below BINS
        }
        *out = window(model, bin, raw, low);
    }
    let without = coder.lower.get(out.len()..)?;
    let is_end = coder.stream.is_empty() && coder.upper == [1; GROUP] && without.iter().all(|&lower| lower == 0);
    is_end.then_some(())
}

/// Returns the index of a bin in an array of all.
pub(super) fn index(bin: u8) -> usize {
    usize::from(bin) % BINS
}

/// Returns a window: its bin, the bits that were taken from the state, and the low byte.
pub(super) fn window(model: &BinModel, bin: u8, raw: u8, low: u8) -> [u8; 2] {
    let bin = index(bin);
    // in bounds: below BINS
    match model.taken[bin] & HAS_BYTE {
        0 => [model.low[bin] | raw | low, model.high[bin]],
        _ => [model.low[bin] | low, model.high[bin] | raw],
    }
}

impl Coder<'_> {
    pub(super) fn next_byte(&mut self) -> u8 {
        match self.stream.split_first() {
            Some((&byte, rest)) => {
                self.stream = rest;
                byte
            }
            None => {
                self.is_cut = true;
                0
            }
        }
    }

    fn state(&self, i: usize) -> u16 {
        u16::from_le_bytes([self.lower[i], self.upper[i]]) // in bounds: below GROUP
    }

    fn set_state(&mut self, i: usize, state: u16) {
        [self.lower[i], self.upper[i]] = state.to_le_bytes(); // in bounds: below GROUP
    }

    /// Brings the first `count` states to 256 or more.
    fn refill(&mut self, count: usize) {
        for i in 0..count {
            if self.upper[i] == 0 {
                // in bounds: below GROUP
                (self.lower[i], self.upper[i]) = (self.next_byte(), self.lower[i]);
            }
        }
    }

    /// Decodes the bins of the next `count` elements, at most [`GROUP`].
    pub(super) fn bins(&mut self, model: &BinModel, class: u8, count: usize) -> [u8; GROUP] {
        let class = &model.classes[usize::from(class) % CLASSES]; // in bounds
        let mut bins = [0; GROUP];
        for (i, bin) in bins.iter_mut().enumerate().take(count) {
            let [slot, upper] = self.state(i).to_le_bytes();
            *bin = class.bin_of[usize::from(slot)]; // in bounds: 256 slots
            // in bounds: below BINS
            let (frequency, start) = (class.frequency[index(*bin)], class.start[index(*bin)]);
            // at most 255 * 255 + 255
            self.set_state(i, u16::from(frequency) * u16::from(upper) + u16::from(slot.wrapping_sub(start)));
        }
        self.refill(count);
        bins
    }

    /// Takes bits from the states of elements in these bins. `taken` returns their number from what
    /// the model says of a bin.
    pub(super) fn raw(&mut self, model: &BinModel, bins: &[u8], taken: impl Fn(u8) -> u8) -> [u8; GROUP] {
        let mut all = [0; GROUP];
        for (i, (raw, &bin)) in all.iter_mut().zip(bins).enumerate() {
            // in bounds: below BINS
            let bits = u32::from(taken(model.taken[index(bin)]) & 15).min(8);
            let state = self.state(i);
            *raw = (state & ((1 << bits) - 1)) as u8; // exact: at most 8 bits
            self.set_state(i, state >> bits);
        }
        self.refill(bins.len());
        all
    }
}
