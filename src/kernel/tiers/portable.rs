//! What the fast implementations share. All of it is inlined, and so compiled with the features of the implementation that calls it.

use super::GROUP;
use crate::kernel::Width;

/// Groups whose planes are made before they are used: as many as the bit-shuffle works on, and what was just stored word by word
/// cannot yet be loaded as a vector.
pub(super) const BLOCK: usize = 8;

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

/// The words of a group of codes of which all bits are set: the codes that are escapes.
#[inline(always)]
pub(super) fn escape_mask(group: &[u8]) -> u64 {
    group.as_chunks().0.iter().fold(u64::MAX, |mask, word| mask & u64::from_le_bytes(*word))
}

/// The lowest `count` bits.
#[inline(always)]
pub(super) fn lowest(count: usize) -> u64 {
    if count < 64 { (1 << count) - 1 } else { u64::MAX }
}

// ---- bit planes of extra bits

/// [`Tiers::deposit`](super::Tiers::deposit) for elements of `PLANES` bits, in blocks that `unshuffle` turns into elements.
///
/// `nonzero` gives what [`deposit_planes`] asks for.
#[inline(always)]
pub(super) fn deposit_blocks<const PLANES: usize, N: FnMut() -> u64>(
    (lengths, bits, mut at, out): (&[u8], &[u8], usize, &mut [u8]),
    nonzero: impl Fn(&[u8; GROUP]) -> N,
    deposit: impl Fn(u64, u64) -> u64,
    unshuffle: impl Fn(&[u8], &mut [u8]),
) -> usize {
    for (lengths, out) in lengths.chunks(BLOCK * GROUP).zip(out.chunks_mut(BLOCK * PLANES * 8)) {
        let mut planes = [[[0; 8]; BLOCK]; PLANES];
        for (group, lengths) in lengths.chunks(GROUP).enumerate() {
            let (pairs, _) = planes.as_chunks_mut();
            let pairs = pairs.iter_mut().map(|[even, odd]| [&mut even[group], &mut odd[group]]); // in bounds: as many as in a block
            at = deposit_planes(pairs, bits, at, nonzero(first_bytes(lengths, &mut [0; GROUP])), &deposit);
        }
        let planes = planes.as_flattened().as_flattened();
        if out.len() == planes.len() {
            unshuffle(planes, out);
        } else {
            let mut elements = [[0; BLOCK * 8]; PLANES];
            unshuffle(planes, elements.as_flattened_mut());
            copy(elements.as_flattened(), out);
        }
    }
    at
}

/// [`Tiers::extract`](super::Tiers::extract) for elements of `PLANES` bits: the inverse of [`deposit_blocks`].
#[inline(always)]
pub(super) fn extract_blocks<const PLANES: usize, N: FnMut() -> u64>(
    (lengths, elements, words, at): (&[u8], &[u8], &mut [u64], usize),
    nonzero: impl Fn(&[u8; GROUP]) -> N,
    extract: impl Fn(u64, u64) -> u64,
    shuffle: impl Fn(&[u8], &mut [u8]),
) -> usize {
    let mut writer = BitWriter::new(words, at);
    for (lengths, elements) in lengths.chunks(BLOCK * GROUP).zip(elements.chunks(BLOCK * PLANES * 8)) {
        let mut planes = [[[0; 8]; BLOCK]; PLANES];
        let whole = planes.as_flattened_mut().as_flattened_mut();
        if elements.len() == whole.len() {
            shuffle(elements, whole);
        } else {
            let mut block = [[0; BLOCK * 8]; PLANES];
            copy(elements, block.as_flattened_mut());
            shuffle(block.as_flattened(), whole);
        }
        for (group, lengths) in lengths.chunks(GROUP).enumerate() {
            let words = planes.iter().map(|plane| u64::from_le_bytes(plane[group])); // in bounds: as many as in a block
            extract_planes(words, &mut writer, nonzero(first_bytes(lengths, &mut [0; GROUP])), &extract);
        }
    }
    writer.finish()
}

/// The first `N` bytes; if there are fewer, all of them at the start of `room`, which is zero.
#[inline(always)]
pub(super) fn first_bytes<'b, const N: usize>(bytes: &'b [u8], room: &'b mut [u8; N]) -> &'b [u8; N] {
    match bytes.first_chunk() {
        Some(bytes) => bytes,
        None => {
            copy(bytes, room);
            room
        }
    }
}

/// Copies as many bytes as there are in both.
pub(super) fn copy(from: &[u8], to: &mut [u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// Deposits the planes, which are little-endian words, of a group of 64 elements, and returns where its extra bits end.
///
/// The planes come in pairs, as a branch for each would cost more than a plane in vain.
/// `nonzero` gives the elements whose length is greater than 0, then, call by call, 1, 2 and so on. `deposit` is `pdep`.
#[inline(always)]
pub(super) fn deposit_planes<'p>(
    pairs: impl Iterator<Item = [&'p mut [u8; 8]; 2]>,
    bits: &[u8],
    mut at: usize,
    mut nonzero: impl FnMut() -> u64,
    deposit: impl Fn(u64, u64) -> u64,
) -> usize {
    let mut longer = nonzero();
    for pair in pairs {
        if longer == 0 {
            break;
        }
        for plane in pair {
            let at_least = longer;
            longer = nonzero();
            let word = deposit(word_at(bits, at), longer) | at_least & !longer; // of the others this is the highest bit
            *plane = word.to_le_bytes();
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

/// The 64 bits from bit `shift < 64` of two words on.
#[inline(always)]
fn funnel(low: [u8; 8], high: [u8; 8], shift: usize) -> u64 {
    u64::from_le_bytes(low) >> shift | (u64::from_le_bytes(high) << 1) << (63 - shift) // by 64 in two steps
}

/// Extracts the extra bits from the planes of a group of 64 elements: the inverse of [`deposit_planes`]. `extract` is `pext`.
#[inline(always)]
pub(super) fn extract_planes(
    planes: impl Iterator<Item = u64>,
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
        writer.append(extract(plane, longer), longer.count_ones() as usize); // exact: at most 64
    }
}

/// Appends bits to words.
pub(super) struct BitWriter<'w> {
    words: &'w mut [u64],
    /// The word that is being filled, the bits in it and their number.
    place: usize,
    word: u64,
    filled: usize,
}

impl<'w> BitWriter<'w> {
    /// From bit `at` on; the bits before it are kept.
    #[inline(always)]
    pub(super) fn new(words: &'w mut [u64], at: usize) -> Self {
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

// ---- escapes, where no instruction expands or compresses bytes

/// For each set of eight places, whose symbol goes to each: what comes to a place of the set is the symbol of its rank, to any other zero.
pub(super) static EXPAND: [[u8; 8]; 256] = {
    let mut table = [[NOTHING; 8]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut place, mut rank) = (0, 0);
        while place < 8 {
            if set >> place & 1 == 1 {
                table[set][place] = rank;
                rank += 1;
            }
            place += 1;
        }
        set += 1;
    }
    table
};

/// The inverse: the symbols of a set come to its start, in order.
pub(super) static COMPRESS: [[u8; 8]; 256] = {
    let mut table = [[NOTHING; 8]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut place, mut rank) = (0, 0);
        while place < 8 {
            if set >> place & 1 == 1 {
                table[set][rank] = place as u8;
                rank += 1;
            }
            place += 1;
        }
        set += 1;
    }
    table
};

/// An index for which `pshufb` and `tbl` give 0.
const NOTHING: u8 = 0x80;

/// For each byte of a mask the number of bits that are set in those below it, which is at most 56.
#[inline(always)]
pub(super) fn ranks_of_bytes(mask: u64) -> [usize; 8] {
    // pairs, nibbles, bytes (Warren, Hacker's Delight, 5-1), then sums of bytes
    let pairs = mask - (mask >> 1 & 0x5555_5555_5555_5555);
    let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let bytes = nibbles + (nibbles >> 4) & 0x0F0F_0F0F_0F0F_0F0F;
    let ranks = (bytes << 8).wrapping_mul(0x0101_0101_0101_0101);
    ranks.to_le_bytes().map(|rank| usize::from(rank & 63)) // which tells the compiler that it is in bounds
}

/// Bytes of which eight can be taken from any of [`ranks_of_bytes`] on.
pub(super) const WINDOW: usize = 63 + 8;
