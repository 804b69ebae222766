//! The tables of a model, and the blocks that are decoded with it: whole groups by a kernel, then
//! what is left.
//!
//! Kernels decode only whole groups before the last one of a block, whose elements store part of
//! their windows in the states: that one is decoded element by element. A block is malformed if
//! states or stream do not end as the encoder began. Any tables are safe to decode with.

use crate::kernel::vectors::GROUP;
use std::slice;

/// The most bins.
pub const BINS: usize = 64;
/// The most classes.
pub const CLASSES: usize = 4;

/// The bit in [`BinModel::taken`] of bins whose elements have a byte of their own in the stream.
pub(super) const HAS_BYTE: u8 = 0x80;

/// The bins and the frequencies of each class, as chapter 5.13 defines them.
///
/// Any contents are safe to decode with. No load of 64 bytes crosses a cache line.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct BinModel {
    /// The lower byte of `V` of each bin.
    pub(super) low: [u8; BINS],
    /// The upper byte of `V` of each bin.
    pub(super) high: [u8; BINS],
    /// For each bin the bits taken from the state, 0 to 7, and [`HAS_BYTE`].
    pub(super) taken: [u8; BINS],
    /// `K` of each bin.
    pub(super) bits: [u8; BINS],
    pub(super) classes: [Class; CLASSES],
    /// Whether there are more than 32 bins.
    pub(super) is_wide: bool,
}

/// The frequencies of a class.
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct Class {
    /// The bin of each slot.
    pub(super) bin_of: [u8; 256],
    /// `F` of each bin.
    pub(super) frequency: [u8; BINS],
    /// `C` of each bin.
    pub(super) start: [u8; BINS],
}

const NO_CLASS: Class = Class { bin_of: [0; 256], frequency: [0; BINS], start: [0; BINS] };

impl Default for BinModel {
    fn default() -> Self {
        Self {
            low: [0; BINS],
            high: [0; BINS],
            taken: [0; BINS],
            bits: [0; BINS],
            classes: [NO_CLASS; CLASSES],
            is_wide: false,
        }
    }
}

impl BinModel {
    /// Sets the bins: `K` of each.
    pub fn set_bins(&mut self, bits: &[u8]) {
        let mut start = 0_u32;
        self.is_wide = bits.len() > BINS / 2;
        for (bin, &bits) in bits.iter().enumerate().take(BINS) {
            // in bounds: four arrays of BINS; the lower 16 bits are meant
            [self.low[bin], self.high[bin], ..] = start.to_le_bytes();
            self.bits[bin] = bits;
            self.taken[bin] = if bits >= 8 { (bits - 8) & 15 | HAS_BYTE } else { bits };
            start = start.wrapping_add(1_u32.wrapping_shl(bits.into()));
        }
    }

    /// Sets the frequencies of a class: `F` of the bins from `first` on. All others are 0.
    pub fn set_class(&mut self, class: usize, first: usize, frequencies: &[u8]) {
        let Some(class) = self.classes.get_mut(class) else { return };
        (class.frequency, class.start) = ([0; BINS], [0; BINS]);
        let mut start = 0;
        for (bin, &frequency) in (first..BINS).zip(frequencies) {
            class.frequency[bin] = frequency; // in bounds: below BINS
            class.start[bin] = start as u8; // in bounds; exact unless the frequencies are too great
            let end = start + usize::from(frequency);
            if let Some(slots) = class.bin_of.get_mut(start..end) {
                slots.fill(bin as u8); // exact: below BINS
            }
            start = end;
        }
    }
}

// ---- blocks

/// A block to decode.
pub struct CodedBlock<'b> {
    /// The class of each group.
    pub classes: &'b [u8],
    /// The number of its elements.
    pub count: usize,
    /// The states, and the stream.
    pub stored: &'b [u8],
    /// The first windows. Each is two bytes, the lower one first.
    pub out: &'b mut [[u8; 2]],
}

/// Groups of a block, and not its last one.
pub struct Groups<'g, 's> {
    /// The class of each group.
    pub(super) classes: &'g [u8],
    pub(super) coder: &'g mut Coder<'s>,
    /// The windows of each group.
    pub(super) out: &'g mut [[[u8; 2]; GROUP]],
}

/// A block of which some groups are decoded.
pub(super) struct Started<'b> {
    pub(super) coder: Coder<'b>,
    /// The class of each of `groups`, and of the group after them.
    pub(super) classes: &'b [u8],
    /// The next groups of which all windows are wanted, without the last of the block.
    pub groups: &'b mut [[[u8; 2]; GROUP]],
    /// The windows after `groups`.
    rest: &'b mut [[u8; 2]],
    /// The elements of the group that `rest` begins with, if it is the last one.
    last: Option<usize>,
}

impl<'b> Started<'b> {
    /// Returns `None` if the block has no states, or `classes` too few.
    pub fn new(CodedBlock { classes, count, stored, out }: CodedBlock<'b>) -> Option<Self> {
        let coder = Coder::new(count, stored)?;
        let last = count.checked_sub(1)? / GROUP;
        let whole = last.min(out.len() / GROUP);
        let (groups, rest) = out.split_at_mut_checked(whole * GROUP)?;
        classes.get(..whole)?;
        let last = (whole == last).then(|| count - last * GROUP);
        Some(Self { coder, classes, groups: groups.as_chunks_mut().0, rest, last })
    }

    /// Returns the first `count` of the groups, or all, and leaves the others.
    pub fn take(&mut self, count: usize) -> Groups<'_, 'b> {
        let count = count.min(self.groups.len());
        // there are as many classes, and at least as many groups
        let classes = self.classes.split_off(..count).unwrap_or_default();
        let out = self.groups.split_off_mut(..count).unwrap_or_default();
        Groups { classes, coder: &mut self.coder, out }
    }

    /// Decodes all that is left, with a function that decodes groups. Returns `None` if the block
    /// is malformed.
    pub fn finish(mut self, model: &BinModel, decode: impl Fn(Groups<'_, '_>)) -> Option<()> {
        decode(self.take(usize::MAX));
        let Self { mut coder, classes, rest, last, .. } = self;
        if let Some(wanted) = rest.len().checked_sub(1) {
            let class = *classes.first()?;
            let mut group = [[0; 2]; GROUP];
            match last {
                Some(count) => {
                    let elements = group.get_mut(..count)?;
                    elements.get(wanted)?;
                    last_group(model, class, &mut coder, elements)?;
                }
                None => {
                    let (classes, out) = (&[class], slice::from_mut(&mut group));
                    decode(Groups { classes, coder: &mut coder, out });
                }
            }
            rest.iter_mut().zip(group).for_each(|(to, from)| *to = from);
        }
        (!coder.is_cut).then_some(())
    }
}

// ---- the steps of decoding, one element after the other

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
    fn new(count: usize, stored: &'a [u8]) -> Option<Self> {
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
fn last_group(model: &BinModel, class: u8, coder: &mut Coder<'_>, out: &mut [[u8; 2]]) -> Option<()> {
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
