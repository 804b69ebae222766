//! Bit lengths and extra bits of integers (chapter 5.9 of the specification).
//!
//! The *bit length* of 0 is 0. The bit length of any other integer is one more than the position of
//! its highest one bit. The bits below that bit are its *extra bits*. The extra bits of each group
//! of 64 integers are stored bit plane by bit plane, the lowest plane first. A plane has a bit for
//! each integer whose extra bits reach up to this plane.
//!
//! The lengths of a group, stored as 64 bytes, determine which integers have a bit in plane `p`:
//! the integers that are longer than `p + 1` bits. With a mask of these integers, `pdep` spreads
//! the stored bits of the plane over these integers, and `pext` collects them again. The number of
//! bits set in the mask is the number of stored bits. The bit-shuffle of the same instruction set
//! then turns the planes into elements, block by block. AVX-512 can do this group by group.

use super::dispatch::{Implementation, Scalar, implement, implementations};
use super::vectors::{GROUP, Group};
use super::{Width, Word, bitshuffle, common_count, copy, for_width};

/// The kernels of one instruction set. Slices of lengths have one byte for each element.
pub trait Kernel: Sync {
    /// See [`ExtraBits::lengths`].
    fn lengths(&self, width: Width, elements: &[u8], out: &mut [u8]);
    /// See [`ExtraBits::deposit`].
    fn deposit(&self, width: Width, lengths: &[u8], bits: &[u8], bit_offset: usize, out: &mut [u8]) -> usize;
    /// See [`ExtraBits::extract`].
    fn extract(&self, width: Width, lengths: &[u8], elements: &[u8], words: &mut [u64], bit_offset: usize) -> usize;
}

/// One implementation of the kernels for extra bits.
pub type ExtraBits = Implementation<dyn Kernel>;

impl ExtraBits {
    /// Sets `out` to the bit lengths of `elements`.
    ///
    /// `out` must have a byte for each element. Debug builds assert this. Release builds process
    /// only the elements that fit in both.
    pub fn lengths(&self, width: Width, elements: &[u8], out: &mut [u8]) {
        let count = common_count(width, elements, out);
        // in bounds: `count` exceeds neither length
        self.kernel.lengths(width, &elements[..count * width.bytes()], &mut out[..count]);
    }

    /// Makes elements from their bit lengths and their extra bits. The extra bits begin at bit
    /// `bit_offset` of `bits`. (Bit 0 is the lowest bit of the first byte.) Returns the bit at
    /// which they end.
    ///
    /// Bits beyond the end of `bits` are 0. If a length exceeds the width, all elements and the
    /// result are unspecified. `out` must have an element for each length. Debug builds assert
    /// this. Release builds process only the elements that fit in both.
    pub fn deposit(&self, width: Width, lengths: &[u8], bits: &[u8], bit_offset: usize, out: &mut [u8]) -> usize {
        let count = common_count(width, out, lengths);
        // in bounds: `count` exceeds neither length
        self.kernel.deposit(width, &lengths[..count], bits, bit_offset, &mut out[..count * width.bytes()])
    }

    /// Writes the extra bits of `elements` to `words`, from bit `bit_offset` on: the inverse of
    /// [`deposit`](Self::deposit). Returns the bit at which they end.
    ///
    /// `lengths` has the bit lengths of the elements. `words` must be 0 from bit `bit_offset` on,
    /// and have room for all extra bits and one more word. Bits that do not fit are lost.
    pub fn extract(
        &self,
        width: Width,
        lengths: &[u8],
        elements: &[u8],
        words: &mut [u64],
        bit_offset: usize,
    ) -> usize {
        let count = common_count(width, elements, lengths);
        // in bounds: `count` exceeds neither length
        self.kernel.extract(width, &lengths[..count], &elements[..count * width.bytes()], words, bit_offset)
    }
}

implementations!(Kernel);

// ---- the definition in code

impl Kernel for Scalar {
    fn lengths(&self, width: Width, elements: &[u8], out: &mut [u8]) {
        for (element, length) in elements.chunks_exact(width.bytes()).zip(out) {
            let mut bits = (0..8 * width.bytes()).filter(|&bit| bit_of(element, bit) != 0);
            *length = bits.next_back().map_or(0, |bit| bit as u8 + 1); // exact: below 64
        }
    }

    fn deposit(&self, width: Width, lengths: &[u8], bits: &[u8], mut bit_offset: usize, out: &mut [u8]) -> usize {
        let w = width.bytes();
        out.fill(0);
        let mut set = |i: usize, bit: usize, value: u8| {
            if let Some(byte) = out.get_mut(i * w + bit / 8) {
                *byte |= value << (bit % 8);
            }
        };
        for (i, &length) in lengths.iter().enumerate() {
            if (1..=8 * w).contains(&usize::from(length)) {
                set(i, usize::from(length) - 1, 1);
            }
        }
        each_extra_bit(width, lengths, |i, plane| {
            set(i, plane, bit_of(bits, bit_offset));
            bit_offset += 1;
        });
        bit_offset
    }

    fn extract(
        &self,
        width: Width,
        lengths: &[u8],
        elements: &[u8],
        words: &mut [u64],
        mut bit_offset: usize,
    ) -> usize {
        let w = width.bytes();
        each_extra_bit(width, lengths, |i, plane| {
            if let Some(word) = words.get_mut(bit_offset / 64) {
                let element = elements.get(i * w..i * w + w).unwrap_or(&[]);
                *word |= u64::from(bit_of(element, plane)) << (bit_offset % 64);
            }
            bit_offset += 1;
        });
        bit_offset
    }
}

/// Returns bit `bit` of `bytes`. Returns 0 if `bytes` ends before it.
fn bit_of(bytes: &[u8], bit: usize) -> u8 {
    bytes.get(bit / 8).map_or(0, |byte| byte >> (bit % 8) & 1)
}

/// Calls `each` for each extra bit, in stored order, with the index of its element and with its
/// plane.
fn each_extra_bit(width: Width, lengths: &[u8], mut each: impl FnMut(usize, usize)) {
    for (group, lengths) in lengths.chunks(GROUP).enumerate() {
        for plane in 0..8 * width.bytes() {
            for (i, &length) in lengths.iter().enumerate() {
                if usize::from(length) > plane + 1 {
                    each(group * GROUP + i, plane);
                }
            }
        }
    }
}

// ---- vectors

/// The number of groups in a block, which is one step of the bit-shuffle. The planes of a whole
/// block are stored before the first of them is loaded: they are stored word by word, and a load of
/// a whole vector stalls until all of its words are stored.
const BLOCK: usize = 8;

implement!([Avx2, Neon] Kernel {
    fn lengths(width: Width, elements: &[u8], out: &mut [u8]) => { lengths }
    fn deposit(width: Width, lengths: &[u8], bits: &[u8], bit_offset: usize, out: &mut [u8]) -> usize => { for W in width => deposit::<_, { 8 * W::BYTES }> }
    fn extract(width: Width, lengths: &[u8], elements: &[u8], words: &mut [u64], bit_offset: usize) -> usize => { for W in width => extract::<_, { 8 * W::BYTES }> }
});

/// Moves bits within words.
trait Bits: Group {
    /// Scatters the lowest bits of `bits`, in order, to the positions that are set in `mask`, like
    /// `pdep`.
    fn deposit_bits(self, bits: u64, mask: u64) -> u64;
    /// Packs the bits of `bits` that `mask` selects into the lowest positions, like `pext`.
    fn extract_bits(self, bits: u64, mask: u64) -> u64;
}

/// The lengths of a group, minus the number of planes that were already processed.
struct Lengths<V: Group> {
    v: V,
    left: V::Bytes,
}

impl<V: Group> Lengths<V> {
    /// Loads the lengths of a group. Pads them with zeros if there are fewer than 64.
    #[inline(always)]
    fn new(v: V, lengths: &[u8]) -> Self {
        Self { v, left: v.load_padded(lengths) }
    }

    /// Returns a mask of the lengths above 0, and subtracts 1 from each of them.
    #[inline(always)]
    fn longer(&mut self) -> u64 {
        let longer = self.v.nonzero(self.left);
        self.left = self.v.decrease(self.left);
        longer
    }
}

/// See [`Kernel::lengths`]. The compiler vectorizes the loops.
#[inline(always)]
fn lengths<T>(_: T, width: Width, elements: &[u8], out: &mut [u8]) {
    // exact: a length is at most 64
    for_width!(width, W => each_length(elements, out, |e| (W::BITS - W::from_le_bytes(e).leading_zeros()) as u8));
}

#[inline(always)]
fn each_length<const W: usize>(elements: &[u8], out: &mut [u8], length: impl Fn([u8; W]) -> u8) {
    for (element, out) in elements.as_chunks().0.iter().zip(out) {
        *out = length(*element);
    }
}

// ---- deposit

/// [`Kernel::deposit`] for elements of `PLANES` bits.
#[inline(always)]
fn deposit<V: Bits + bitshuffle::Kernel, const PLANES: usize>(
    v: V,
    width: Width,
    lengths: &[u8],
    bits: &[u8],
    mut bit_offset: usize,
    out: &mut [u8],
) -> usize {
    for (lengths, out) in lengths.chunks(BLOCK * GROUP).zip(out.chunks_mut(BLOCK * PLANES * 8)) {
        let mut planes = [[[0; 8]; BLOCK]; PLANES];
        for (group, lengths) in lengths.chunks(GROUP).enumerate() {
            let (pairs, _) = planes.as_chunks_mut();
            // in bounds: a block has at most `BLOCK` groups
            let pairs = pairs.iter_mut().map(|[even, odd]| [&mut even[group], &mut odd[group]]);
            bit_offset = deposit_planes(v, pairs, bits, bit_offset, Lengths::new(v, lengths));
        }
        let planes = planes.as_flattened().as_flattened();
        if out.len() == planes.len() {
            v.unshuffle(width, planes, out);
        } else {
            let mut elements = [[0; BLOCK * 8]; PLANES];
            v.unshuffle(width, planes, elements.as_flattened_mut());
            copy(elements.as_flattened(), out);
        }
    }
    bit_offset
}

/// Deposits the planes of a group, each a little-endian word. Returns the bit at which its extra
/// bits end.
///
/// Planes come in pairs, because a branch for each plane costs more than an empty plane.
#[inline(always)]
fn deposit_planes<'p, V: Bits>(
    v: V,
    pairs: impl Iterator<Item = [&'p mut [u8; 8]; 2]>,
    bits: &[u8],
    mut bit_offset: usize,
    mut lengths: Lengths<V>,
) -> usize {
    let mut longer = lengths.longer();
    for pair in pairs {
        if longer == 0 {
            break;
        }
        for plane in pair {
            let at_least = longer;
            longer = lengths.longer();
            // elements whose length ends here have their highest bit in this plane
            let word = v.deposit_bits(word_at(bits, bit_offset), longer) | at_least & !longer;
            *plane = word.to_le_bytes();
            bit_offset = bit_offset.wrapping_add(longer.count_ones() as usize); // exact: at most 64
        }
    }
    bit_offset
}

/// Returns the 64 bits from bit `bit_offset` on. Bits beyond the end are 0.
#[inline(always)]
fn word_at(bits: &[u8], bit_offset: usize) -> u64 {
    let (words, _) = bits.as_chunks();
    match words.get(bit_offset / 64..bit_offset / 64 + 2) {
        Some([low, high]) => funnel(*low, *high, bit_offset % 64),
        _ => last_word(bits, bit_offset),
    }
}

#[cold]
fn last_word(bits: &[u8], bit_offset: usize) -> u64 {
    let mut words = [[0; 8]; 2];
    copy(bits.get(bit_offset / 64 * 8..).unwrap_or(&[]), words.as_flattened_mut());
    let [low, high] = words;
    funnel(low, high, bit_offset % 64)
}

/// Returns 64 bits of two words, from bit `shift < 64` on.
#[inline(always)]
fn funnel(low: [u8; 8], high: [u8; 8], shift: usize) -> u64 {
    let (low, high) = (u64::from_le_bytes(low), u64::from_le_bytes(high));
    // two shifts, because `shift` can be 0, and a single shift by 64 would overflow
    low >> shift | (high << 1) << (63 - shift)
}

// ---- extract

/// [`Kernel::extract`] for elements of `PLANES` bits.
#[inline(always)]
fn extract<V: Bits + bitshuffle::Kernel, const PLANES: usize>(
    v: V,
    width: Width,
    lengths: &[u8],
    elements: &[u8],
    words: &mut [u64],
    bit_offset: usize,
) -> usize {
    let mut writer = BitWriter::new(words, bit_offset);
    for (lengths, elements) in lengths.chunks(BLOCK * GROUP).zip(elements.chunks(BLOCK * PLANES * 8)) {
        let mut planes = [[[0; 8]; BLOCK]; PLANES];
        let whole = planes.as_flattened_mut().as_flattened_mut();
        if elements.len() == whole.len() {
            v.shuffle(width, elements, whole);
        } else {
            let mut block = [[0; BLOCK * 8]; PLANES];
            copy(elements, block.as_flattened_mut());
            v.shuffle(width, block.as_flattened(), whole);
        }
        for (group, lengths) in lengths.chunks(GROUP).enumerate() {
            // in bounds: a block has at most `BLOCK` groups
            let words = planes.iter().map(|plane| u64::from_le_bytes(plane[group]));
            extract_planes(v, words, &mut writer, Lengths::new(v, lengths));
        }
    }
    writer.finish()
}

/// Extracts the extra bits of a group from its planes: the inverse of [`deposit_planes`].
#[inline(always)]
fn extract_planes<V: Bits>(
    v: V,
    planes: impl Iterator<Item = u64>,
    writer: &mut BitWriter<'_>,
    mut lengths: Lengths<V>,
) {
    lengths.longer();
    for plane in planes {
        let longer = lengths.longer();
        if longer == 0 {
            break;
        }
        let count = longer.count_ones() as usize; // exact: at most 64
        writer.append(v.extract_bits(plane, longer), count);
    }
}

/// Appends bits to words.
struct BitWriter<'w> {
    words: &'w mut [u64],
    /// The index of the word that is not full yet.
    index: usize,
    /// The bits that were already appended to that word.
    word: u64,
    /// The number of bits that were already appended to that word.
    filled: usize,
}

impl<'w> BitWriter<'w> {
    /// Starts at bit `bit_offset` of `words`, and keeps the bits before it.
    #[inline(always)]
    fn new(words: &'w mut [u64], bit_offset: usize) -> Self {
        let word = words.get(bit_offset / 64).copied().unwrap_or(0);
        Self { words, index: bit_offset / 64, word, filled: bit_offset % 64 }
    }

    /// Appends the lower `count <= 64` bits of `bits`. The other bits must be 0. Bits beyond the
    /// last word are lost.
    #[inline(always)]
    fn append(&mut self, bits: u64, count: usize) {
        self.word |= bits << self.filled;
        if let Some(word) = self.words.get_mut(self.index) {
            *word = self.word;
        }
        if self.filled + count >= 64 {
            // two shifts, because a single shift by 64 would overflow
            self.word = (bits >> 1) >> (63 - self.filled);
        }
        self.index += (self.filled + count) / 64;
        self.filled = (self.filled + count) % 64;
    }

    /// Stores the last word, which need not be full. Returns the position after the last bit.
    #[inline(always)]
    fn finish(self) -> usize {
        if let Some(word) = self.words.get_mut(self.index) {
            *word |= self.word;
        }
        self.index.wrapping_mul(64).wrapping_add(self.filled)
    }
}

// ---- bits of words

/// NEON has neither `pdep` nor `pext`; tables replace them, four bits at a time.
#[cfg(target_arch = "aarch64")]
mod neon {
    use super::Bits;
    use crate::kernel::dispatch::Neon;

    impl Bits for Neon {
        #[inline(always)]
        fn deposit_bits(self, mut bits: u64, mask: u64) -> u64 {
            let mut deposited = 0;
            for position in (0..64).step_by(4) {
                let four = (mask >> position & 15) as usize; // exact
                // in bounds: four bits each
                deposited |= u64::from(DEPOSIT[four][(bits & 15) as usize]) << position;
                bits >>= four.count_ones();
            }
            deposited
        }

        #[inline(always)]
        fn extract_bits(self, bits: u64, mask: u64) -> u64 {
            let (mut extracted, mut count) = (0, 0);
            for position in (0..64).step_by(4) {
                let four = (mask >> position & 15) as usize; // exact
                // in bounds: both indices have four bits; the shift is below 64
                extracted |= u64::from(EXTRACT[four][(bits >> position & 15) as usize]) << count;
                count += four.count_ones();
            }
            extracted
        }
    }

    /// The results of [`Bits::deposit_bits`] for four bits, by mask and bits.
    static DEPOSIT: [[u8; 16]; 16] = by_mask_and_bits(true);

    /// The results of [`Bits::extract_bits`] for four bits, by mask and bits.
    static EXTRACT: [[u8; 16]; 16] = by_mask_and_bits(false);

    const fn by_mask_and_bits(deposit: bool) -> [[u8; 16]; 16] {
        let mut table = [[0; 16]; 16];
        let mut entry = 0;
        while entry < 256 {
            let (mask, bits) = (entry / 16, entry % 16);
            let (mut position, mut rank) = (0, 0);
            while position < 4 {
                if mask >> position & 1 == 1 {
                    let (from, to) = if deposit { (rank, position) } else { (position, rank) };
                    table[mask][bits] |= (bits as u8 >> from & 1) << to; // exact: four bits
                    rank += 1;
                }
                position += 1;
            }
            entry += 1;
        }
        table
    }
}

// ---- BMI2 and AVX-512

/// The operations with BMI2, and a separate `deposit` for AVX-512.
///
/// This `deposit` keeps the planes of a group contiguous, in one vector per byte of the element
/// width, so a permutation and a product of bit matrices turn them into elements. The bit-shuffle
/// expects the planes of a whole block, so it would need extra steps to collect the planes of a
/// group. Extraction would take the same time with either layout, so AVX-512 uses the common loop
/// for it.
#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::{BLOCK, Bits, Kernel, Lengths, deposit_planes, extract, lengths};
    use crate::kernel::bitshuffle::avx512::elements_of_planes;
    use crate::kernel::dispatch::{Avx2, Avx512, implement, intrinsics};
    use crate::kernel::vectors::GROUP;
    use crate::kernel::vectors::x86_64::store_up_to_64;
    use crate::kernel::{Width, Word};
    use std::arch::x86_64::{_pdep_u64, _pext_u64};

    implement!([Avx512] Kernel {
        fn lengths(width: Width, elements: &[u8], out: &mut [u8]) => { lengths }
        fn deposit(width: Width, lengths: &[u8], bits: &[u8], bit_offset: usize, out: &mut [u8]) -> usize => { for W in width => deposit::<{ W::BYTES }> }
        fn extract(width: Width, lengths: &[u8], elements: &[u8], words: &mut [u64], bit_offset: usize) -> usize => { for W in width => extract::<_, { 8 * W::BYTES }> }
    });

    intrinsics! {
        [Avx2]
        impl Bits for Avx2 {
            fn deposit_bits(v: Avx2, bits: u64, mask: u64) -> u64 {
                _pdep_u64(bits, mask)
            }

            fn extract_bits(v: Avx2, bits: u64, mask: u64) -> u64 {
                _pext_u64(bits, mask)
            }
        }
    }

    intrinsics! {
        [Avx512]
        impl Bits for Avx512 {
            fn deposit_bits(v: Avx512, bits: u64, mask: u64) -> u64 {
                _pdep_u64(bits, mask)
            }

            fn extract_bits(v: Avx512, bits: u64, mask: u64) -> u64 {
                _pext_u64(bits, mask)
            }
        }
    }

    intrinsics! {
        [Avx512]
        /// [`Kernel::deposit`] for elements of `W` bytes. Turns the planes of each group into
        /// elements directly, without arranging them as planes of a block.
        fn deposit<const W: usize>(
            v: Avx512,
            _width: Width,
            lengths: &[u8],
            bits: &[u8],
            mut bit_offset: usize,
            out: &mut [u8],
        ) -> usize {
            for (lengths, out) in lengths.chunks(BLOCK * GROUP).zip(out.chunks_mut(BLOCK * GROUP * W)) {
                let mut block = [[[0; 64]; W]; BLOCK];
                for (lengths, planes) in lengths.chunks(GROUP).zip(&mut block) {
                    let (words, _) = planes.as_flattened_mut().as_chunks_mut();
                    let (pairs, _) = words.as_chunks_mut();
                    let pairs = pairs.iter_mut().map(|[even, odd]| [even, odd]);
                    bit_offset = deposit_planes(v, pairs, bits, bit_offset, Lengths::new(v, lengths));
                }
                for (planes, out) in block.iter().zip(out.chunks_mut(GROUP * W)) {
                    for (vector, out) in elements_of_planes(planes).into_iter().zip(out.chunks_mut(64)) {
                        store_up_to_64(out, vector);
                    }
                }
            }
            bit_offset
        }
    }
}
