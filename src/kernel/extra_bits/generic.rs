//! Extra bits, group by group and bit plane by bit plane. A block of groups is then turned from
//! planes into elements, or the reverse, by the bit-shuffle of the same instruction set.

use super::GROUP;
use crate::kernel::bytes::copy;
use crate::kernel::{Width, bitshuffle};

/// Groups in a block: as many as a step of the bit-shuffle. Planes are stored word by word, and the
/// processor cannot load a vector of words that it is still storing.
pub(super) const BLOCK: usize = 8;

/// Operations on the planes of a group.
pub(super) trait Planes: Copy {
    /// The lengths of a group.
    type Lengths;
    /// Loads the lengths of a group. If `lengths` has fewer than 64, zeros follow them.
    fn load(self, lengths: &[u8]) -> Self::Lengths;
    /// Returns the lengths that are greater than 0, and subtracts 1 from these.
    fn longer(self, lengths: &mut Self::Lengths) -> u64;
    /// Brings the lowest bits of `bits` in order to the bits that `mask` has, as `pdep` does.
    fn deposit(self, bits: u64, mask: u64) -> u64;
    /// Brings the bits of `bits` that `mask` has to the lowest bits, as `pext` does.
    fn extract(self, bits: u64, mask: u64) -> u64;
}

/// See [`Kernel::lengths`](super::Kernel::lengths). The compiler makes vectors of the loops.
#[inline(always)]
pub(super) fn lengths<T>(_: T, width: Width, elements: &[u8], out: &mut [u8]) {
    // exact: a length is at most 64
    match width {
        Width::W1 => each_length(elements, out, |e| (8 - u8::from_le_bytes(e).leading_zeros()) as u8),
        Width::W2 => each_length(elements, out, |e| (16 - u16::from_le_bytes(e).leading_zeros()) as u8),
        Width::W4 => each_length(elements, out, |e| (32 - u32::from_le_bytes(e).leading_zeros()) as u8),
        Width::W8 => each_length(elements, out, |e| (64 - u64::from_le_bytes(e).leading_zeros()) as u8),
    }
}

#[inline(always)]
fn each_length<const W: usize>(elements: &[u8], out: &mut [u8], length: impl Fn([u8; W]) -> u8) {
    for (element, out) in elements.as_chunks().0.iter().zip(out) {
        *out = length(*element);
    }
}

// ---- deposit

/// [`Kernel::deposit`](super::Kernel::deposit) of elements of `PLANES` bits.
#[inline(always)]
pub(super) fn deposit<P: Planes + bitshuffle::Kernel, const PLANES: usize>(
    p: P,
    width: Width,
    lengths: &[u8],
    bits: &[u8],
    mut at: usize,
    out: &mut [u8],
) -> usize {
    for (lengths, out) in lengths.chunks(BLOCK * GROUP).zip(out.chunks_mut(BLOCK * PLANES * 8)) {
        let mut planes = [[[0; 8]; BLOCK]; PLANES];
        for (group, lengths) in lengths.chunks(GROUP).enumerate() {
            let (pairs, _) = planes.as_chunks_mut();
            // in bounds: a block has as many groups
            let pairs = pairs.iter_mut().map(|[even, odd]| [&mut even[group], &mut odd[group]]);
            at = deposit_planes(p, pairs, bits, at, p.load(lengths));
        }
        let planes = planes.as_flattened().as_flattened();
        if out.len() == planes.len() {
            p.unshuffle(width, planes, out);
        } else {
            let mut elements = [[0; BLOCK * 8]; PLANES];
            p.unshuffle(width, planes, elements.as_flattened_mut());
            copy(elements.as_flattened(), out);
        }
    }
    at
}

/// Deposits the planes of a group, each a little-endian word. Returns the bit at which its extra
/// bits end.
///
/// The planes come in pairs, because a branch for each would cost more than a plane in vain.
#[inline(always)]
pub(super) fn deposit_planes<'p, P: Planes>(
    p: P,
    pairs: impl Iterator<Item = [&'p mut [u8; 8]; 2]>,
    bits: &[u8],
    mut at: usize,
    mut lengths: P::Lengths,
) -> usize {
    let mut longer = p.longer(&mut lengths);
    for pair in pairs {
        if longer == 0 {
            break;
        }
        for plane in pair {
            let at_least = longer;
            longer = p.longer(&mut lengths);
            // of elements that are not longer, this is the highest bit
            let word = p.deposit(word_at(bits, at), longer) | at_least & !longer;
            *plane = word.to_le_bytes();
            at = at.wrapping_add(longer.count_ones() as usize); // exact: at most 64
        }
    }
    at
}

/// Returns the 64 bits from bit `at` on. Bits beyond the end are 0.
#[inline(always)]
fn word_at(bits: &[u8], at: usize) -> u64 {
    let (words, _) = bits.as_chunks();
    match words.get(at / 64..at / 64 + 2) {
        Some([low, high]) => funnel(*low, *high, at % 64),
        _ => last_word(bits, at),
    }
}

#[cold]
fn last_word(bits: &[u8], at: usize) -> u64 {
    let mut words = [[0; 8]; 2];
    copy(bits.get(at / 64 * 8..).unwrap_or(&[]), words.as_flattened_mut());
    let [low, high] = words;
    funnel(low, high, at % 64)
}

/// Returns the 64 bits from bit `shift < 64` of two words on.
#[inline(always)]
fn funnel(low: [u8; 8], high: [u8; 8], shift: usize) -> u64 {
    let (low, high) = (u64::from_le_bytes(low), u64::from_le_bytes(high));
    low >> shift | (high << 1) << (63 - shift) // two steps, because the shift may be by 64
}

// ---- extract

/// [`Kernel::extract`](super::Kernel::extract) of elements of `PLANES` bits.
#[inline(always)]
pub(super) fn extract<P: Planes + bitshuffle::Kernel, const PLANES: usize>(
    p: P,
    width: Width,
    lengths: &[u8],
    elements: &[u8],
    words: &mut [u64],
    at: usize,
) -> usize {
    let mut writer = BitWriter::new(words, at);
    for (lengths, elements) in lengths.chunks(BLOCK * GROUP).zip(elements.chunks(BLOCK * PLANES * 8)) {
        let mut planes = [[[0; 8]; BLOCK]; PLANES];
        let whole = planes.as_flattened_mut().as_flattened_mut();
        if elements.len() == whole.len() {
            p.shuffle(width, elements, whole);
        } else {
            let mut block = [[0; BLOCK * 8]; PLANES];
            copy(elements, block.as_flattened_mut());
            p.shuffle(width, block.as_flattened(), whole);
        }
        for (group, lengths) in lengths.chunks(GROUP).enumerate() {
            // in bounds: a block has as many groups
            let words = planes.iter().map(|plane| u64::from_le_bytes(plane[group]));
            extract_planes(p, words, &mut writer, p.load(lengths));
        }
    }
    writer.finish()
}

/// Extracts the extra bits from the planes of a group: the inverse of [`deposit_planes`].
#[inline(always)]
pub(super) fn extract_planes<P: Planes>(
    p: P,
    planes: impl Iterator<Item = u64>,
    writer: &mut BitWriter<'_>,
    mut lengths: P::Lengths,
) {
    p.longer(&mut lengths);
    for plane in planes {
        let longer = p.longer(&mut lengths);
        if longer == 0 {
            break;
        }
        writer.append(p.extract(plane, longer), longer.count_ones() as usize); // exact: at most 64
    }
}

/// Appends bits to words.
pub(super) struct BitWriter<'w> {
    words: &'w mut [u64],
    /// The index of the word that is not full yet.
    index: usize,
    /// The bits of that word.
    word: u64,
    /// The number of bits in that word.
    filled: usize,
}

impl<'w> BitWriter<'w> {
    /// Writes from bit `at` of `words` on, and keeps the bits before it.
    #[inline(always)]
    pub(super) fn new(words: &'w mut [u64], at: usize) -> Self {
        let word = words.get(at / 64).copied().unwrap_or(0);
        Self { words, index: at / 64, word, filled: at % 64 }
    }

    /// Appends the lower `count <= 64` bits of `bits`. The others are 0. Bits beyond the last word
    /// are lost.
    #[inline(always)]
    fn append(&mut self, bits: u64, count: usize) {
        self.word |= bits << self.filled;
        if let Some(word) = self.words.get_mut(self.index) {
            *word = self.word;
        }
        if self.filled + count >= 64 {
            // two steps, because the shift may be by 64
            self.word = (bits >> 1) >> (63 - self.filled);
        }
        self.index += (self.filled + count) / 64;
        self.filled = (self.filled + count) % 64;
    }

    /// Stores the last word, which may not be full. Returns the bit at which the bits end.
    #[inline(always)]
    pub(super) fn finish(self) -> usize {
        if let Some(word) = self.words.get_mut(self.index) {
            *word |= self.word;
        }
        self.index.wrapping_mul(64).wrapping_add(self.filled)
    }
}
