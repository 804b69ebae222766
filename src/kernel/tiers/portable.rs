//! What the fast implementations share. All of it is inlined, and so compiled with the features of the implementation that calls it.

use crate::kernel::Width;

/// See [`Tiers::lengths`](super::Tiers::lengths). Compilers make vectors of it.
#[inline(always)]
pub(super) fn lengths(width: Width, elements: &[u8], out: &mut [u8]) {
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

/// Deposits the planes of a group of 64 elements, and returns where its extra bits end.
///
/// `nonzero` gives the elements whose length is greater than 0, then, call by call, 1, 2 and so on. `deposit` is `pdep`.
#[inline(always)]
pub(super) fn deposit_planes(
    planes: &mut [u64],
    bits: &[u8],
    mut at: usize,
    mut nonzero: impl FnMut() -> u64,
    deposit: impl Fn(u64, u64) -> u64,
) -> usize {
    let mut longer = nonzero();
    // two at a time: a branch for each plane costs more than a plane in vain
    for planes in planes.as_chunks_mut::<2>().0 {
        if longer == 0 {
            break;
        }
        for plane in planes {
            let at_least = longer;
            longer = nonzero();
            *plane = deposit(word_at(bits, at), longer) | at_least & !longer; // of the others this is the highest bit
            at = at.wrapping_add(longer.count_ones() as usize); // exact: at most 64
        }
    }
    at
}

/// The 64 bits from bit `at` on; those beyond the end are 0.
#[inline(always)]
fn word_at(bits: &[u8], at: usize) -> u64 {
    let (words, _) = bits.as_chunks();
    match words.get(at / 64..at / 64 + 2) {
        Some([low, high]) => funnel(*low, *high, at),
        _ => last_word(bits, at),
    }
}

#[cold]
fn last_word(bits: &[u8], at: usize) -> u64 {
    let mut words = [[0; 8]; 2];
    let rest = bits.get(at / 64 * 8..).unwrap_or(&[]);
    for (byte, bit) in words.as_flattened_mut().iter_mut().zip(rest) {
        *byte = *bit;
    }
    let [low, high] = words;
    funnel(low, high, at)
}

/// The 64 bits from bit `at % 64` of two words on.
#[inline(always)]
fn funnel(low: [u8; 8], high: [u8; 8], at: usize) -> u64 {
    let shift = at % 64;
    u64::from_le_bytes(low) >> shift | (u64::from_le_bytes(high) << 1) << (63 - shift) // by 64 in two steps
}

/// Appends bits to words.
pub(super) struct BitWriter<'a> {
    words: &'a mut [u64],
    /// The word that is being filled, the bits in it and their number.
    place: usize,
    word: u64,
    filled: usize,
}

impl<'a> BitWriter<'a> {
    #[inline(always)]
    pub(super) fn new(words: &'a mut [u64], at: usize) -> Self {
        let word = words.get(at / 64).copied().unwrap_or(0);
        Self { words, place: at / 64, word, filled: at % 64 }
    }

    /// Appends the lower `count <= 64` bits of `bits`, the rest of which are 0. Bits for which there is no word are lost.
    #[inline(always)]
    fn append(&mut self, bits: u64, count: usize) {
        self.word |= bits << self.filled;
        if let Some(word) = self.words.get_mut(self.place) {
            *word = self.word;
        }
        if self.filled + count >= 64 {
            self.word = (bits >> 1) >> (63 - self.filled); // by 64 in two steps
        }
        self.place += (self.filled + count) / 64;
        self.filled = (self.filled + count) % 64;
    }

    /// Stores the last word, which may not be full, and returns where the bits end.
    #[inline(always)]
    pub(super) fn finish(self) -> usize {
        if let Some(word) = self.words.get_mut(self.place) {
            *word |= self.word;
        }
        self.place.wrapping_mul(64).wrapping_add(self.filled)
    }
}

/// Extracts the extra bits from the planes of a group of 64 elements: the inverse of [`deposit_planes`]. `extract` is `pext`.
#[inline(always)]
pub(super) fn extract_planes(
    planes: &[u64],
    writer: &mut BitWriter<'_>,
    mut nonzero: impl FnMut() -> u64,
    extract: impl Fn(u64, u64) -> u64,
) {
    nonzero();
    for plane in planes {
        let longer = nonzero();
        if longer == 0 {
            break;
        }
        writer.append(extract(*plane, longer), longer.count_ones() as usize); // exact: at most 64
    }
}
