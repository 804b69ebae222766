//! Group by group, in vectors that have a byte for each of 64 codes.
//!
//! No instruction of AVX2 or NEON expands or compresses bytes by a mask. Escapes are spread over
//! the symbols, and collected, eight at a time by a byte shuffle whose indices come from a table.

use super::{GROUP, GROUP_BYTES};
use crate::kernel::bytes::{copy, first_bytes};
use crate::kernel::expand::{Eights, NOTHING, WINDOW, expand, ranks_of_bytes};
use std::cmp::Ordering;
use std::ops::Range;

/// Vectors of the bytes of a group. All methods have the cost of some tens of instructions.
pub(super) trait Vectors: Eights {
    /// The symbols of 16 codes.
    type Symbols: Copy;
    /// The codes of 256 symbols.
    type Codes;

    /// Stores eight bytes.
    fn store_eight(self, eight: Self::Eight, out: &mut [u8; 8]);
    /// Stores a group.
    fn store(self, group: Self::Group, out: &mut [u8; GROUP]);

    /// Loads the symbols of 16 codes.
    fn load_symbols(self, table: &[u8; 16]) -> Self::Symbols;
    /// Adds to each byte of a group the symbol of its code in `words`. One of the two is zero.
    fn add_symbols<const W: usize>(self, group: Self::Group, words: &[[u8; 8]], symbols: Self::Symbols) -> Self::Group;

    /// Returns codes to be loaded.
    fn no_codes(self) -> Self::Codes;
    /// Loads the codes of 256 symbols, of which the lower `W` bits count.
    fn load_codes<const W: usize>(self, codes: &mut Self::Codes, code_of: &[u8; 256]);
    /// Returns the codes of a group of symbols, in any form that [`plane`](Self::plane) takes.
    fn codes_of(self, symbols: &[u8; GROUP], codes: &Self::Codes) -> Self::Group;
    /// Returns bit `bit` of each code.
    fn plane(self, codes: Self::Group, bit: u8) -> u64;
}

/// [`Kernel::merge`](super::Kernel::merge) of codes of `W` bits.
#[inline(always)]
pub(super) fn merge<V: Vectors, const W: usize>(
    v: V,
    _: usize,
    codes: &[u8],
    last: &[u8; GROUP_BYTES],
    table: &[u8; 16],
    escaped: &[u8],
    out: &mut [u8],
) -> usize {
    // an escape has no symbol of its own: the next of `escaped` is added to a zero
    let mut table = *table;
    table[(1 << W) - 1] = 0; // in bounds: W is at most 4
    let table = v.load_symbols(&table);
    let mut escapes = 0;
    let (whole, rest) = out.as_chunks_mut();
    for (out, group) in whole.iter_mut().zip(codes.chunks_exact(8 * W)) {
        let words = group.as_chunks().0;
        v.store(merge_group::<V, W>(v, words, escape_mask(words), table, escaped, &mut escapes), out);
    }
    if !rest.is_empty() {
        let words = last[..8 * W].as_chunks().0; // in bounds: W is at most 4
        let mask = escape_mask(words) & lowest_bits(rest.len());
        let mut group = [0; GROUP];
        v.store(merge_group::<V, W>(v, words, mask, table, escaped, &mut escapes), &mut group);
        copy(&group, rest);
    }
    escapes
}

/// Returns the symbols of a group, whose escapes are `mask`, and counts these.
///
/// A closure cannot be forced to be inlined. If it is not, it calls each vector instruction as a
/// function, and takes eight times as long.
#[inline(always)]
fn merge_group<V: Vectors, const W: usize>(
    v: V,
    words: &[[u8; 8]],
    mask: u64,
    table: V::Symbols,
    escaped: &[u8],
    escapes: &mut usize,
) -> V::Group {
    let mut padded = [0; WINDOW];
    let next = first_bytes(escaped.get(*escapes..).unwrap_or(&[]), &mut padded);
    *escapes += mask.count_ones() as usize; // exact: at most 64
    v.add_symbols::<W>(expand(v, mask, next), words, table)
}

/// [`Kernel::split`](super::Kernel::split) of codes of `W` bits.
#[inline(always)]
pub(super) fn split<V: Vectors, const W: usize>(
    v: V,
    _: usize,
    code_of: &[u8; 256],
    symbols: &[u8],
    codes: &mut [u8],
    escaped: &mut [u8],
) -> usize {
    let mut code_vectors = v.no_codes();
    v.load_codes::<W>(&mut code_vectors, code_of);
    let mut escapes = 0;
    for (symbols, codes) in symbols.chunks(GROUP).zip(codes.chunks_exact_mut(8 * W)) {
        let present = lowest_bits(symbols.len());
        let mut padded = [0; GROUP];
        let group = first_bytes(symbols, &mut padded);
        let found = v.codes_of(group, &code_vectors);
        let mut mask = present;
        for (bit, word) in (0..).zip(codes.as_chunks_mut().0.iter_mut().take(W)) {
            let plane = v.plane(found, bit);
            *word = (plane & present).to_le_bytes();
            mask &= plane;
        }
        let escaped = escaped.get_mut(escapes..).unwrap_or(&mut []);
        match escaped.first_chunk_mut() {
            Some(window) => compress(v, mask, group, window),
            None => {
                let mut last = [0; WINDOW];
                compress(v, mask, group, &mut last);
                copy(&last, escaped);
            }
        }
        escapes += mask.count_ones() as usize; // exact: at most 64
    }
    escapes
}

/// Brings the bytes whose bit is set to the start of `out`. The bytes after them are unspecified.
#[inline(always)]
fn compress<V: Vectors>(v: V, mask: u64, bytes: &[u8; GROUP], out: &mut [u8; WINDOW]) {
    let ranks = ranks_of_bytes(mask);
    for ((eight, mask), rank) in bytes.as_chunks().0.iter().zip(mask.to_le_bytes()).zip(ranks) {
        let compressed = v.shuffle(eight, &COMPRESS[usize::from(mask)]); // in bounds: a byte
        v.store_eight(compressed, &mut out[rank..].as_chunks_mut().0[0]); // in bounds: see `WINDOW`
    }
}

/// See [`Kernel::escapes`](super::Kernel::escapes).
#[inline(always)]
pub(super) fn escapes<T>(_: T, width: usize, codes: &[u8], range: Range<usize>) -> usize {
    match width {
        1 => escapes_of_width::<1>(codes, range),
        2 => escapes_of_width::<2>(codes, range),
        3 => escapes_of_width::<3>(codes, range),
        _ => escapes_of_width::<4>(codes, range),
    }
}

#[inline(always)]
fn escapes_of_width<const W: usize>(codes: &[u8], range: Range<usize>) -> usize {
    let groups = codes.as_chunks::<8>().0.as_chunks::<W>().0;
    let masked =
        |group: usize, mask: u64| groups.get(group).map_or(0, |words| (escape_mask(words) & mask).count_ones());
    let (first, last) = (range.start / GROUP, range.end / GROUP);
    let not_before = !lowest_bits(range.start % GROUP);
    let until = lowest_bits(range.end % GROUP);
    let escapes = match first.cmp(&last) {
        Ordering::Greater => 0,
        Ordering::Equal => masked(first, not_before & until),
        Ordering::Less => {
            let whole = groups.get(first + 1..last.min(groups.len())).unwrap_or(&[]);
            let whole: u32 = whole.iter().map(|words| escape_mask(words).count_ones()).sum();
            masked(first, not_before) + whole + masked(last, until) // fewer than 2^32 codes
        }
    };
    escapes as usize // exact: no target of this crate has a smaller usize
}

/// Returns the escapes of a group of codes: all bits of their code are set.
#[inline(always)]
pub(super) fn escape_mask(words: &[[u8; 8]]) -> u64 {
    words.iter().fold(u64::MAX, |mask, word| mask & u64::from_le_bytes(*word))
}

/// Returns a mask of the lowest `count` bits, at most 64.
#[inline(always)]
fn lowest_bits(count: usize) -> u64 {
    if count < 64 { (1 << count) - 1 } else { u64::MAX }
}

/// For each set of eight positions, the indices that compress symbols: those of the set come to the
/// start, in order. The inverse of the table
/// that expands.
static COMPRESS: [[u8; 8]; 256] = {
    let mut table = [[NOTHING; 8]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut position, mut rank) = (0, 0);
        while position < 8 {
            if set >> position & 1 == 1 {
                table[set][rank] = position as u8; // exact: below 8
                rank += 1;
            }
            position += 1;
        }
        set += 1;
    }
    table
};
