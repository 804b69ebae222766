//! Encodes the blocks that the kernels decode. There is one implementation, which is a fifth to a
//! quarter of the time that a writer takes.

use super::model::{BINS, CLASSES, Class, HAS_BYTE};
use super::{BinModel, GROUP};

/// Encodes blocks, in memory that it reuses.
#[derive(Debug, Default)]
pub struct BinEncoder {
    /// The stream, at its end: it is written backwards.
    stream: Vec<u8>,
}

/// The most bytes of the stream for an element: for its bin, for the bits that are taken from its
/// state, and its own.
const MOST_BYTES: usize = 3;

impl BinEncoder {
    /// Appends states and stream of a block to `stored`. `bins` has the bin of each window, and
    /// `classes` the class of each group. Returns `false` if a bin has frequency 0 in its class, if
    /// a window lies outside its bin, or if an argument is too short.
    #[must_use]
    pub fn encode(
        &mut self,
        model: &BinModel,
        classes: &[u8],
        windows: &[[u8; 2]],
        bins: &[u8],
        stored: &mut Vec<u8>,
    ) -> bool {
        let groups = windows.len().div_ceil(GROUP);
        if bins.len() != windows.len() || classes.len() < groups {
            return false;
        }
        self.stream.resize(windows.len() * MOST_BYTES, 0);
        let mut coder = Coder { states: [1 << 8; GROUP], at: self.stream.len(), stream: &mut self.stream };
        let backwards = windows.chunks(GROUP).zip(bins.chunks(GROUP)).zip(classes).enumerate().rev();
        for (group, ((windows, bins), &class)) in backwards {
            let class = &model.classes[usize::from(class) % CLASSES]; // in bounds
            let group = Group { model, class, windows, bins, is_last: group + 1 == groups };
            if !group.encode(&mut coder) {
                return false;
            }
        }
        let Coder { states, at, .. } = coder;
        let states = states.get(..windows.len().min(GROUP)).unwrap_or(&states);
        // exact: states are below 2^16
        stored.extend(states.iter().map(|&state| state as u8));
        stored.extend(states.iter().map(|&state| (state >> 8) as u8));
        stored.extend_from_slice(self.stream.get(at..).unwrap_or(&[]));
        true
    }
}

/// States, and a stream that is written backwards.
struct Coder<'a> {
    states: [u32; GROUP],
    stream: &'a mut [u8],
    /// The offset of the first byte that was written.
    at: usize,
}

impl Coder<'_> {
    /// Writes a byte, or none.
    #[inline(always)]
    fn put(&mut self, byte: u8, is_put: bool) {
        let before = self.at.wrapping_sub(1);
        if let Some(to) = self.stream.get_mut(before) {
            *to = byte; // the next one overwrites it unless it is put
        }
        self.at = if is_put { before } else { self.at };
    }

    /// Moves the lower byte of a state to the stream, if the state is not below `limit`.
    #[inline(always)]
    fn shrink(&mut self, state: u32, limit: u32) -> u32 {
        let is_put = state >= limit;
        self.put(state as u8, is_put); // the lower byte
        if is_put { state >> 8 } else { state }
    }
}

/// A group to encode.
struct Group<'a> {
    model: &'a BinModel,
    class: &'a Class,
    windows: &'a [[u8; 2]],
    bins: &'a [u8],
    is_last: bool,
}

impl Group<'_> {
    /// Returns window and bin of each element, the last one first.
    fn backwards(&self) -> impl Iterator<Item = (usize, ([u8; 2], usize))> {
        let elements = self.windows.iter().zip(self.bins);
        elements.map(|(&window, &bin)| (window, usize::from(bin) % BINS)).enumerate().rev()
    }

    /// Does backwards what a decoder does. In-bounds everywhere: a group has at most as many
    /// elements as there are states, and bins are below [`BINS`].
    fn encode(&self, coder: &mut Coder<'_>) -> bool {
        let Self { model, class, is_last, .. } = *self;
        let mut outside = 0;
        for (i, ([low, high], bin)) in self.backwards() {
            let has_byte = model.taken[bin] & HAS_BYTE != 0;
            // the bits of the window that its bin leaves open
            let open = u16::from_le_bytes([low ^ model.low[bin], high ^ model.high[bin]]);
            outside |= u32::from(open) >> model.bits[bin].min(16);
            if is_last {
                coder.states[i] = 1 << 8 | if has_byte { u32::from(low) } else { u32::from(open) };
            } else {
                coder.put(low, has_byte);
            }
        }
        for (i, ([low, high], bin)) in self.backwards() {
            let taken = model.taken[bin];
            let has_byte = taken & HAS_BYTE != 0;
            if is_last && !has_byte {
                continue;
            }
            let bits = u32::from(taken & 15);
            let raw = if has_byte { high ^ model.high[bin] } else { low ^ model.low[bin] };
            let state = coder.shrink(coder.states[i], 1 << (16 - bits));
            coder.states[i] = state << bits | u32::from(raw);
        }
        for (i, (_, bin)) in self.backwards() {
            let (frequency, start) = (u32::from(class.frequency[bin]), u32::from(class.start[bin]));
            outside |= u32::from(frequency == 0);
            let state = coder.shrink(coder.states[i], frequency << 8);
            // exact: a quotient is below 2^16
            let quotient = ((u64::from(state) * RECIPROCAL[usize::from(class.frequency[bin])]) >> 24) as u32;
            coder.states[i] = (quotient << 8) + (state - quotient * frequency) + start;
        }
        outside == 0
    }
}

/// For each frequency `f`, `2^24 / f`, rounded up. Its product with any `x` below `2^16` has
/// `x / f` above the lowest 24 bits: rounding adds less than `f * x`, which is below `2^24`.
static RECIPROCAL: [u64; 256] = {
    let mut table = [0; 256];
    let mut frequency = 1;
    while frequency < 256 {
        table[frequency] = (1_u64 << 24).div_ceil(frequency as u64); // exact: below 256
        frequency += 1;
    }
    table
};
