//! Windows coded by bins, with 64 interleaved rANS states (chapter 5.13 of the specification).
//!
//! A *window* is an integer of at most 16 bits: the upper bits of a number. Bins divide the range
//! of these integers. Bin `b` contains the `2^K[b]` values from `V[b]` on. rANS codes the bin of a
//! window. The `K[b]` bits of the offset in the bin follow as raw bits, in the state or in the
//! stream.
//!
//! An entropy decoder is usually serial, because each symbol needs the state that the previous
//! symbol left behind. Here, element `i` of each group of 64 is coded by state `i`. A state is not
//! needed again until the next group, so a vector decodes a whole group at once. States have 16
//! bits. A group of states is a vector of lower bytes and a vector of upper bytes, and every step
//! is an operation on bytes. Bin `b` has `F[b]` of the 256 slots (its frequency), from slot `C[b]`
//! on. The class of a group selects the frequencies. Each line below is executed for all elements
//! of a group before the next line:
//!
//! ```text
//! slot   = lower byte of state
//! bin    = bin_of[slot]                                  a table of 256 bytes
//! state  = F[bin] * (upper byte of state) + slot - C[bin]
//! refill
//! bits   = K[bin], or K[bin] - 8 if K[bin] >= 8
//! raw    = lowest `bits` bits of state;  state = state >> bits
//! refill
//! low    = next byte of the stream if K[bin] >= 8, else 0
//! window = V[bin] + raw + low, or V[bin] + 256 * raw + low if K[bin] >= 8
//! ```
//!
//! A refill replaces each state below 256 by `state << 8 | next byte of the stream`, in the order
//! of the elements. A mask selects the elements that take a byte. [`Group::expand`] distributes
//! consecutive bytes of the stream to them. The number of bits set in the mask is the number of
//! bytes taken.
//!
//! The last group of a block stores low bits of its windows in the states, which saves bytes. It is
//! decoded element by element, and kernels decode only the groups before it. The states of a group
//! depend on the states of the previous group, and this chain of dependencies limits the speed.
//! Kernels therefore interleave two blocks: while a step of one block waits, the processor executes
//! a step of the other.
//!
//! A stream can be truncated or damaged, and tables can have any contents. The vector steps do not
//! check for either. Beyond the end of the stream, they read zeros from a padded copy of its last
//! bytes. A valid block ends in the state in which the encoder began: the stream is empty, and all
//! upper bytes are 1. This is checked once, at the end.
//!
//! The steps are built from the vector operations of [`Lanes`]. [`encode`] undoes the steps, from
//! the last group to the first. Encoders use [`costs`] to choose the classes of groups.

use super::copy;
use super::dispatch::{Implementation, Scalar, implement, implementations};
use super::vectors::{Group, WINDOW};
use std::slice;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod costs;
pub mod encode;
#[cfg(target_arch = "aarch64")]
mod neon;

pub use super::vectors::GROUP;

/// The kernels of one instruction set.
pub trait Kernel: Sync {
    /// Decodes groups.
    fn groups(&self, model: &BinModel, groups: Groups<'_, '_>);

    /// Decodes groups of two blocks, the same number from each. Each step of a block waits for the
    /// previous step of that block. In the meantime, the processor executes a step of the other
    /// block.
    fn groups_of_two(&self, model: &BinModel, blocks: [Groups<'_, '_>; 2]) {
        for groups in blocks {
            self.groups(model, groups);
        }
    }
}

/// One implementation of the decoder of bins.
pub type Bins = Implementation<dyn Kernel>;

impl Bins {
    /// Decodes the first windows of a block.
    ///
    /// Returns `false` if the block violates R-5.19. Class codes are not checked. If `out` has
    /// fewer than `count` windows, only the data that these windows need is checked. Also returns
    /// `false` if `out` has more than `count` windows, or if `classes` is too short.
    #[must_use]
    pub fn decode(&self, model: &BinModel, block: CodedBlock<'_>) -> bool {
        let is_empty = block.out.is_empty();
        is_empty || self.finish(model, BlockDecoder::new(block))
    }

    /// Decodes two blocks like [`decode`](Self::decode). This is faster if they have the same
    /// number of elements.
    #[must_use]
    pub fn decode_two(&self, model: &BinModel, blocks: [CodedBlock<'_>; 2]) -> [bool; 2] {
        let are_empty = blocks.each_ref().map(|block| block.out.is_empty());
        let mut started = blocks.map(BlockDecoder::new);
        if let [Some(a), Some(b)] = &mut started {
            let count = a.groups.len().min(b.groups.len());
            self.kernel.groups_of_two(model, [a.take(count), b.take(count)]);
        }
        let [a, b] = started.map(|started| self.finish(model, started));
        [are_empty[0] || a, are_empty[1] || b] // in bounds: two
    }

    fn finish(&self, model: &BinModel, started: Option<BlockDecoder<'_>>) -> bool {
        let decode = |groups: Groups<'_, '_>| self.kernel.groups(model, groups);
        started.and_then(|started| started.finish(model, decode)).is_some()
    }
}

implementations!(Kernel);

/// Vector operations on the states of a group and on tables of bins.
trait Lanes: Group {
    /// Loads elements of two bytes. Returns their lower bytes and their upper bytes.
    fn load_pairs(self, pairs: &[[u8; 2]; GROUP]) -> [Self::Bytes; 2];
    /// Stores elements of two bytes, which are given by their lower bytes and their upper bytes.
    fn store_pairs(self, low: Self::Bytes, high: Self::Bytes, to: &mut [[u8; 2]; GROUP]);
    /// Looks up each byte in a table of 256 entries.
    fn look_up_slot(self, table: &[u8; 256], slots: Self::Bytes) -> Self::Bytes;
    /// Looks up each bin in a table. Bins are below 64, and below 32 unless `is_wide` is set.
    fn look_up_bin(self, table: &[u8; GROUP], bins: Self::Bytes, is_wide: bool) -> Self::Bytes;
    fn add(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Returns the lower and upper bytes of `a * b + c`.
    fn multiply_add(self, a: Self::Bytes, b: Self::Bytes, c: Self::Bytes) -> [Self::Bytes; 2];

    /// Like [`multiply_add`](Self::multiply_add), where `a` is the entry of each bin in `table`.
    #[inline(always)]
    fn look_up_multiply_add(
        self,
        table: &[u8; GROUP],
        bins: Self::Bytes,
        is_wide: bool,
        b: Self::Bytes,
        c: Self::Bytes,
    ) -> [Self::Bytes; 2] {
        self.multiply_add(self.look_up_bin(table, bins, is_wide), b, c)
    }

    /// Divides states, which are given by their lower and upper bytes. Returns the quotients, which
    /// are below 256, and the remainders. `reciprocals` has the lower and upper bytes of the
    /// reciprocals in the [model](encode::EncoderModel). If a divisor is 0, its results are
    /// unspecified.
    fn divide(self, states: [Self::Bytes; 2], by: Self::Bytes, reciprocals: [Self::Bytes; 2]) -> [Self::Bytes; 2];
    /// Removes the lowest bits of each state, at most 8. Returns the removed bits, and the lower
    /// and the upper bytes of the remaining states. The number of bits is in the lower four bits of
    /// each byte of `counts`.
    fn take_bits(self, lower: Self::Bytes, upper: Self::Bytes, counts: Self::Bytes) -> [Self::Bytes; 3];
    /// Selects the bytes whose top bit is set.
    fn top_bits(self, bytes: Self::Bytes) -> Self::Mask;
    /// Selects the bytes where `a <= b`.
    fn less_equal(self, a: Self::Bytes, b: Self::Bytes) -> Self::Mask;
}

/// For each number of bits from 0 to 8, a mask with that many of the lowest bits set.
const MASK: [u8; 16] = [0, 1, 3, 7, 15, 31, 63, 127, 255, 0, 0, 0, 0, 0, 0, 0];

/// The maximum number of bins.
pub const BINS: usize = 64;
/// The maximum number of classes.
pub const CLASSES: usize = 4;

/// The flag in [`BinModel::taken`] of a bin whose elements have a separate byte in the stream.
const HAS_BYTE: u8 = 0x80;

/// The bins and the frequencies of each class, as chapter 5.13 defines them.
///
/// Decoding with any contents is safe. The alignment keeps loads of 64 bytes within a cache line.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct BinModel {
    /// The lower byte of the `V` of each bin.
    low: [u8; BINS],
    /// The upper byte of the `V` of each bin.
    high: [u8; BINS],
    /// For each bin, the number of bits taken from the state (0 to 7), and the flag [`HAS_BYTE`].
    taken: [u8; BINS],
    /// The `K` of each bin.
    bits: [u8; BINS],
    classes: [Class; CLASSES],
    /// Whether there are more than 32 bins.
    is_wide: bool,
}

/// The frequencies of a class.
#[derive(Clone)]
#[repr(C, align(64))]
struct Class {
    /// The bin of each slot.
    bin_of: [u8; 256],
    /// The `F` of each bin.
    frequency: [u8; BINS],
    /// The `C` of each bin.
    start: [u8; BINS],
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
    /// Sets the bins, given the `K` of each bin.
    pub fn set_bins(&mut self, bits: &[u8]) {
        let mut start = 0_u32;
        self.is_wide = bits.len() > BINS / 2;
        for (bin, &bits) in bits.iter().enumerate().take(BINS) {
            // in bounds: four arrays of BINS; only the lower 16 bits are stored
            [self.low[bin], self.high[bin], ..] = start.to_le_bytes();
            self.bits[bin] = bits;
            self.taken[bin] = if bits >= 8 { (bits - 8) & 15 | HAS_BYTE } else { bits };
            start = start.wrapping_add(1_u32.wrapping_shl(bits.into()));
        }
    }

    /// Sets the frequencies of a class: the `F` of each bin from `first` on. All other frequencies
    /// are 0.
    pub fn set_class(&mut self, class: usize, first: usize, frequencies: &[u8]) {
        let Some(class) = self.classes.get_mut(class) else { return };
        (class.frequency, class.start) = ([0; BINS], [0; BINS]);
        let mut start = 0;
        for (bin, &frequency) in (first..BINS).zip(frequencies) {
            class.frequency[bin] = frequency; // in bounds: below BINS
            class.start[bin] = start as u8; // in bounds; exact unless the frequencies add up to more than 256
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
    /// The number of elements of the block.
    pub count: usize,
    /// The states and the stream.
    pub stored: &'b [u8],
    /// The first windows. Each has two bytes, the lower byte first.
    pub out: &'b mut [[u8; 2]],
}

/// Groups of a block. The last group of the block is never among them.
pub struct Groups<'g, 's> {
    /// The class of each group.
    classes: &'g [u8],
    coder: &'g mut Coder<'s>,
    /// The windows of each group.
    out: &'g mut [[[u8; 2]; GROUP]],
}

/// A partly decoded block.
struct BlockDecoder<'b> {
    coder: Coder<'b>,
    /// The class of each of `groups` and of the following group.
    classes: &'b [u8],
    /// The next groups whose windows are all requested. The last group of the block is not among
    /// them.
    pub groups: &'b mut [[[u8; 2]; GROUP]],
    /// The windows after `groups`.
    rest: &'b mut [[u8; 2]],
    /// The number of elements of the group after `groups`, if this is the last group of the block.
    last: Option<usize>,
}

impl<'b> BlockDecoder<'b> {
    /// Returns `None` if states are missing from the block, or `classes` is too short.
    pub fn new(CodedBlock { classes, count, stored, out }: CodedBlock<'b>) -> Option<Self> {
        let coder = Coder::new(count, stored)?;
        let last = count.checked_sub(1)? / GROUP;
        let whole = last.min(out.len() / GROUP);
        let (groups, rest) = out.split_at_mut_checked(whole * GROUP)?;
        classes.get(..whole)?;
        let last = (whole == last).then(|| count - last * GROUP);
        Some(Self { coder, classes, groups: groups.as_chunks_mut().0, rest, last })
    }

    /// Takes the next groups, at most `count`.
    pub fn take(&mut self, count: usize) -> Groups<'_, 'b> {
        let count = count.min(self.groups.len());
        // never the default: `classes` and `groups` have at least `count` entries
        let classes = self.classes.split_off(..count).unwrap_or_default();
        let out = self.groups.split_off_mut(..count).unwrap_or_default();
        Groups { classes, coder: &mut self.coder, out }
    }

    /// Decodes the remaining windows. `decode` decodes groups. Returns `None` if the block is
    /// malformed.
    pub fn finish(mut self, model: &BinModel, decode: impl Fn(Groups<'_, '_>)) -> Option<()> {
        decode(self.take(usize::MAX));
        let Self { mut coder, classes, rest, last, .. } = self;
        if let Some(last_index) = rest.len().checked_sub(1) {
            let class = *classes.first()?;
            let mut group = [[0; 2]; GROUP];
            match last {
                Some(count) => {
                    let elements = group.get_mut(..count)?;
                    elements.get(last_index)?;
                    last_group(model, class, &mut coder, elements)?;
                }
                None => {
                    let (classes, out) = (&[class], slice::from_mut(&mut group));
                    decode(Groups { classes, coder: &mut coder, out });
                }
            }
            rest.iter_mut().zip(group).for_each(|(to, from)| *to = from);
        }
        (!coder.is_truncated).then_some(())
    }
}

// ---- the steps of decoding, one element at a time

/// The states of a block, and the remaining bytes of its stream.
pub struct Coder<'a> {
    /// The lower byte of each state.
    lower: [u8; GROUP],
    /// The upper byte of each state.
    upper: [u8; GROUP],
    stream: &'a [u8],
    /// Whether the stream was too short. Missing bytes count as zeros.
    is_truncated: bool,
}

impl<'a> Coder<'a> {
    /// Splits the states and the stream of a block of `count` elements. Returns `None` if states
    /// are missing, or if a state is below 256.
    fn new(count: usize, stored: &'a [u8]) -> Option<Self> {
        let states = count.min(GROUP);
        let (lower_bytes, rest) = stored.split_at_checked(states)?;
        let (upper_bytes, stream) = rest.split_at_checked(states)?;
        let (mut lower, mut upper) = ([0; GROUP], [1; GROUP]);
        lower.iter_mut().zip(lower_bytes).for_each(|(to, from)| *to = *from);
        upper.iter_mut().zip(upper_bytes).for_each(|(to, from)| *to = *from);
        (!upper.contains(&0)).then_some(Self { lower, upper, stream, is_truncated: false })
    }
}

/// Decodes the last group of a block, which has as many elements as `out`. Returns `None` if the
/// block is malformed.
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

/// Returns the index of a bin in an array of all bins.
fn index(bin: u8) -> usize {
    usize::from(bin) % BINS
}

/// Returns a window, given its bin, the bits taken from the state, and the low byte.
fn window(model: &BinModel, bin: u8, raw: u8, low: u8) -> [u8; 2] {
    let bin = index(bin);
    // in bounds: below BINS
    match model.taken[bin] & HAS_BYTE {
        0 => [model.low[bin] | raw | low, model.high[bin]],
        _ => [model.low[bin] | low, model.high[bin] | raw],
    }
}

impl Coder<'_> {
    fn next_byte(&mut self) -> u8 {
        match self.stream.split_first() {
            Some((&byte, rest)) => {
                self.stream = rest;
                byte
            }
            None => {
                self.is_truncated = true;
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

    /// Refills the first `count` states to 256 or more.
    fn refill(&mut self, count: usize) {
        for i in 0..count {
            if self.upper[i] == 0 {
                // in bounds: below GROUP
                (self.lower[i], self.upper[i]) = (self.next_byte(), self.lower[i]);
            }
        }
    }

    /// Decodes the bins of the next `count` elements, at most [`GROUP`].
    fn bins(&mut self, model: &BinModel, class: u8, count: usize) -> [u8; GROUP] {
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

    /// Takes bits from the states of elements in these bins. `taken` converts the entry of a bin in
    /// [`BinModel::taken`]. The lower four bits of the result are the number of bits to take.
    fn raw(&mut self, model: &BinModel, bins: &[u8], taken: impl Fn(u8) -> u8) -> [u8; GROUP] {
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

/// The number of stream bytes that a group can read. The two refills and the low bytes take at most
/// [`GROUP`] bytes each.
const LOOKAHEAD: usize = 2 * GROUP + WINDOW;

/// The end of a stream, with zeros after it.
type Tail = [u8; 2 * LOOKAHEAD];

/// A stream that can be read beyond its end.
struct PaddedStream<'a> {
    /// The stream or, once `tail` is used, a padded copy of its end.
    bytes: &'a [u8],
    /// The number of stream bytes before `bytes`.
    before: usize,
    /// The number of bytes used from `bytes`. It can exceed the length of `bytes`.
    used: usize,
    tail: Option<&'a mut Tail>,
}

impl<'a> PaddedStream<'a> {
    /// Returns the bytes that a group can read.
    #[inline(always)]
    fn next(&mut self) -> &'a [u8; LOOKAHEAD] {
        let next = |bytes: &'a [u8], used| bytes.get(used..).and_then(|rest| rest.first_chunk());
        next(self.bytes, self.used).unwrap_or_else(|| {
            let Self { bytes, before, used, ref mut tail } = *self;
            if let Some(tail) = tail.take() {
                (self.bytes, self.before, self.used) = (end(bytes, used, tail), before + used, 0);
            }
            next(self.bytes, self.used).unwrap_or(&[0; LOOKAHEAD])
        })
    }
}

/// Copies the bytes after the first `used` to `tail`, and returns `tail`.
#[cold]
fn end<'a>(bytes: &[u8], used: usize, tail: &'a mut Tail) -> &'a [u8] {
    copy(bytes.get(used..).unwrap_or(&[]), tail);
    tail
}

/// The states, in vectors, and the stream.
struct VectorCoder<'a, L: Lanes> {
    lanes: L,
    lower: L::Bytes,
    upper: L::Bytes,
    stream: PaddedStream<'a>,
}

/// [`Kernel::groups`].
#[inline(always)]
fn groups<L: Lanes>(lanes: L, model: &BinModel, groups: Groups<'_, '_>) {
    decode_interleaved(lanes, model, [groups]);
}

/// [`Kernel::groups_of_two`].
#[inline(always)]
fn groups_of_two<L: Lanes>(lanes: L, model: &BinModel, blocks: [Groups<'_, '_>; 2]) {
    decode_interleaved(lanes, model, blocks);
}

/// Decodes groups of several blocks, interleaved. Decodes as many groups of each block as the
/// shortest block has.
#[inline(always)]
fn decode_interleaved<L: Lanes, const N: usize>(lanes: L, model: &BinModel, mut blocks: [Groups<'_, '_>; N]) {
    let count = blocks.iter().map(|block| block.out.len().min(block.classes.len())).min().unwrap_or(0);
    let mut tails = [[0; 2 * LOOKAHEAD]; N];
    let mut tail = tails.iter_mut();
    let mut coders = blocks.each_ref().map(|block| VectorCoder::new(lanes, block.coder, tail.next()));
    for i in 0..count {
        for (block, coder) in blocks.iter_mut().zip(&mut coders) {
            // in bounds: `count` exceeds neither length, and the class is taken modulo `CLASSES`
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
        Self { lanes, lower, upper, stream: PaddedStream { bytes: coder.stream, before: 0, used: 0, tail } }
    }

    /// Writes the states back to `coder`, from which this value was made.
    #[inline(always)]
    fn finish(self, coder: &mut Coder<'_>) {
        self.lanes.store(self.lower, &mut coder.lower);
        self.lanes.store(self.upper, &mut coder.upper);
        match coder.stream.get(self.stream.before + self.stream.used..) {
            Some(rest) => coder.stream = rest,
            None => (coder.stream, coder.is_truncated) = (&[], true),
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
        let has_byte = l.top_bits(taken);
        let bits = l.bits(has_byte);
        let low = l.expand_or(has_byte, bits, next_window(next, first + second), raw);
        self.stream.used += first + second + count(bits);
        let low = l.or(l.look_up_bin(&model.low, bins, is_wide), low);
        let high = l.look_up_bin(&model.high, bins, is_wide);
        let high = l.select(has_byte, l.or(high, raw), high);
        l.store_pairs(low, high, out);
    }

    /// Refills all states to 256 or more. Takes bytes from `next`, starting at `at`, and returns
    /// the number of bytes taken.
    #[inline(always)]
    fn refill(&mut self, next: &[u8; LOOKAHEAD], at: usize) -> usize {
        let l = self.lanes;
        let small = l.zeros(self.upper);
        let bits = l.bits(small);
        self.upper = l.select(small, self.lower, self.upper);
        self.lower = l.expand_or(small, bits, next_window(next, at), self.lower);
        count(bits)
    }
}

/// Returns the number of bits that are set, at most 64.
#[inline(always)]
fn count(bits: u64) -> usize {
    bits.count_ones() as usize // exact
}

/// Returns the bytes of `next` from `at` on. `at` is at most 2 * [`GROUP`].
#[inline(always)]
fn next_window(next: &[u8; LOOKAHEAD], at: usize) -> &[u8; WINDOW] {
    next.get(at..).and_then(|rest| rest.first_chunk()).unwrap_or(&[0; WINDOW])
}
