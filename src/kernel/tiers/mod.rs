//! Escape-coded ranks, or *tiers* (chapter 5.7 of the specification).
//!
//! Codes are in groups of 64, bit plane by bit plane. A group of codes of `width` bits is `width`
//! little-endian words of 64 bits: bit `t` of word `j` is bit `j` of code `t`. A code of `width`
//! one bits is an *escape*: its symbol is the next one of the tier above.
//!
//! In vectors, a group of codes is one of bytes. Its escapes are the bits that all of its words
//! have. They are spread over the group, or brought together, by `expand` and `compress` of
//! [`Group`](super::vectors::Group). How planes become bytes and symbols become codes differs
//! between the instruction sets: see [`Codes`].

mod codes;

use super::bytes::copy;
use super::dispatch::{Implementation, Scalar, implement, implementations};
pub use super::vectors::GROUP;
use super::vectors::WINDOW;
use codes::Codes;
use std::cmp::Ordering;
use std::ops::Range;

/// The bytes of a group of the widest codes.
pub const GROUP_BYTES: usize = 4 * size_of::<u64>();

/// The kernels of one instruction set. All slices have the lengths that [`Tiers`] states, and
/// `width` is 1 to 4.
pub trait Kernel: Sync {
    /// See [`Tiers::merge`].
    fn merge(
        &self,
        width: usize,
        codes: &[u8],
        last: &[u8; GROUP_BYTES],
        table: &[u8; 16],
        escaped: &[u8],
        out: &mut [u8],
    ) -> usize;
    /// See [`Tiers::split`].
    fn split(&self, width: usize, code_of: &[u8; 256], symbols: &[u8], codes: &mut [u8], escaped: &mut [u8]) -> usize;
    /// See [`Tiers::escapes`].
    fn escapes(&self, width: usize, codes: &[u8], range: Range<usize>) -> usize;
}

/// One implementation of tiers.
pub type Tiers = Implementation<dyn Kernel>;

/// Returns the bytes of the groups of `count` codes of `width` bits.
pub const fn code_bytes(width: usize, count: usize) -> usize {
    count.div_ceil(GROUP).saturating_mul(8 * width)
}

impl Tiers {
    /// Decodes one tier. Each code of `width` bits (1 to 4) becomes its symbol in `table`, and each
    /// escape the next symbol of `escaped`. An escape beyond the end of `escaped` becomes 0.
    /// Returns the number of escapes.
    ///
    /// `codes` begins with as many groups as `out` has 64 symbols, and `last` with the group of the
    /// symbols after them. If `codes` is shorter, or the width is another, nothing is written and
    /// the result is 0 (debug builds assert). Codes that fill up the last group are ignored.
    pub fn merge(
        &self,
        width: usize,
        codes: &[u8],
        last: &[u8; GROUP_BYTES],
        table: &[u8; 16],
        escaped: &[u8],
        out: &mut [u8],
    ) -> usize {
        let groups = codes.get(..out.len() / GROUP * 8 * width).filter(|_| (1..=4).contains(&width));
        debug_assert!(groups.is_some(), "too few codes, or a wrong width");
        groups.map_or(0, |codes| self.kernel.merge(width, codes, last, table, escaped, out))
    }

    /// Encodes one tier: the inverse of [`merge`](Self::merge). The code of each symbol is the
    /// lower `width` bits of its entry in `code_of`. Symbols that escape go to the start of
    /// `escaped`. Zero codes fill up the last group. Returns the number of escapes.
    ///
    /// `codes` is at least as long as the groups, and `escaped` as long as `symbols`. Otherwise
    /// nothing is written and the result is 0 (debug builds assert). The bytes of `escaped` after
    /// the symbols that escaped are unspecified.
    pub fn split(
        &self,
        width: usize,
        code_of: &[u8; 256],
        symbols: &[u8],
        codes: &mut [u8],
        escaped: &mut [u8],
    ) -> usize {
        let groups = codes.get_mut(..code_bytes(width, symbols.len())).filter(|_| (1..=4).contains(&width));
        let escaped = escaped.get_mut(..symbols.len());
        debug_assert!(groups.is_some() && escaped.is_some(), "a buffer is too short, or a wrong width");
        match groups.zip(escaped) {
            Some((codes, escaped)) => self.kernel.split(width, code_of, symbols, codes, escaped),
            None => 0,
        }
    }

    /// Returns the number of escapes among the codes in `range`, of `width` bits (1 to 4). Codes
    /// beyond the end of `codes` are no escapes.
    pub fn escapes(&self, width: usize, codes: &[u8], range: Range<usize>) -> usize {
        if (1..=4).contains(&width) { self.kernel.escapes(width, codes, range) } else { 0 }
    }
}

implementations!(Kernel);

// ---- the definition in code

impl Kernel for Scalar {
    fn merge(
        &self,
        width: usize,
        codes: &[u8],
        last: &[u8; GROUP_BYTES],
        table: &[u8; 16],
        escaped: &[u8],
        out: &mut [u8],
    ) -> usize {
        let mut escapes = 0;
        let whole = out.len() - out.len() % GROUP;
        for (i, symbol) in out.iter_mut().enumerate() {
            let code = if i < whole { code(codes, width, i) } else { code(last, width, i - whole) };
            *symbol = if code == escape(width) {
                escapes += 1;
                escaped.get(escapes - 1).copied().unwrap_or(0)
            } else {
                table[usize::from(code)] // in bounds: a code has at most 4 bits
            };
        }
        escapes
    }

    fn split(&self, width: usize, code_of: &[u8; 256], symbols: &[u8], codes: &mut [u8], escaped: &mut [u8]) -> usize {
        let mut escapes = 0;
        codes.fill(0);
        for (i, &symbol) in symbols.iter().enumerate() {
            let code = code_of[usize::from(symbol)] & escape(width); // in bounds: a byte
            for plane in 0..width {
                if let Some(byte) = codes.get_mut(byte_of(width, plane, i)) {
                    *byte |= (code >> plane & 1) << (i % 8);
                }
            }
            if code == escape(width) {
                if let Some(to) = escaped.get_mut(escapes) {
                    *to = symbol;
                }
                escapes += 1;
            }
        }
        escapes
    }

    fn escapes(&self, width: usize, codes: &[u8], range: Range<usize>) -> usize {
        let count = codes.len() / (8 * width) * GROUP;
        (range.start..range.end.min(count)).filter(|&i| code(codes, width, i) == escape(width)).count()
    }
}

/// Returns the code of `width` bits that is an escape.
const fn escape(width: usize) -> u8 {
    (1 << width) - 1
}

/// Returns the offset of the byte that has bit `plane` of code `i`.
const fn byte_of(width: usize, plane: usize, i: usize) -> usize {
    i / GROUP * 8 * width + 8 * plane + i % GROUP / 8
}

/// Returns code `i` of `width` bits.
fn code(codes: &[u8], width: usize, i: usize) -> u8 {
    let bit = |plane| codes.get(byte_of(width, plane, i)).map_or(0, |byte| byte >> (i % 8) & 1);
    (0..width).map(|plane| bit(plane) << plane).sum()
}

// ---- vectors

implement!([Avx2, Avx512, Neon] Kernel {
    fn merge(
        width: usize,
        codes: &[u8],
        last: &[u8; GROUP_BYTES],
        table: &[u8; 16],
        escaped: &[u8],
        out: &mut [u8],
    ) -> usize => { match width {
        1 => merge::<_, 1>,
        2 => merge::<_, 2>,
        3 => merge::<_, 3>,
        _ => merge::<_, 4>,
    } }
    fn split(width: usize, code_of: &[u8; 256], symbols: &[u8], codes: &mut [u8], escaped: &mut [u8]) -> usize => { match width {
        1 => split::<_, 1>,
        2 => split::<_, 2>,
        3 => split::<_, 3>,
        _ => split::<_, 4>,
    } }
    fn escapes(width: usize, codes: &[u8], range: Range<usize>) -> usize => { escapes }
});

/// [`Kernel::merge`] of codes of `W` bits.
#[inline(always)]
fn merge<V: Codes, const W: usize>(
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
fn merge_group<V: Codes, const W: usize>(
    v: V,
    words: &[[u8; 8]],
    mask: u64,
    table: V::Symbols,
    escaped: &[u8],
    escapes: &mut usize,
) -> V::Bytes {
    let next = escaped.get(*escapes..).unwrap_or(&[]);
    *escapes += mask.count_ones() as usize; // exact: at most 64
    v.replace(v.symbols::<W>(words, table), mask, next)
}

/// [`Kernel::split`] of codes of `W` bits.
#[inline(always)]
fn split<V: Codes, const W: usize>(
    v: V,
    _: usize,
    code_of: &[u8; 256],
    symbols: &[u8],
    codes: &mut [u8],
    escaped: &mut [u8],
) -> usize {
    let table = v.load_codes::<W>(code_of);
    let mut escapes = 0;
    for (symbols, codes) in symbols.chunks(GROUP).zip(codes.chunks_exact_mut(8 * W)) {
        let present = lowest_bits(symbols.len());
        let symbols = v.load_padded(symbols);
        let found = v.codes(symbols, &table);
        let mut mask = present;
        for (bit, word) in (0..).zip(codes.as_chunks_mut().0.iter_mut().take(W)) {
            let plane = v.plane(found, bit);
            *word = (plane & present).to_le_bytes();
            mask &= plane;
        }
        let escaped = escaped.get_mut(escapes..).unwrap_or(&mut []);
        match escaped.first_chunk_mut() {
            Some(window) => v.compress(mask, symbols, window), // the next escapes overwrite the end
            None => {
                let mut last = [0; WINDOW];
                v.compress(mask, symbols, &mut last);
                copy(&last, escaped);
            }
        }
        escapes += mask.count_ones() as usize; // exact: at most 64
    }
    escapes
}

/// See [`Kernel::escapes`]. Compiled without vectors, because counting in vectors takes longer.
#[inline(never)]
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "popcnt"))]
fn escapes<T>(_: T, width: usize, codes: &[u8], range: Range<usize>) -> usize {
    match width {
        1 => escapes_of_width::<1>(codes, range),
        2 => escapes_of_width::<2>(codes, range),
        3 => escapes_of_width::<3>(codes, range),
        _ => escapes_of_width::<4>(codes, range),
    }
}

/// Counts the escapes in whole groups, and those of the groups that the range begins and ends in.
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
fn escape_mask(words: &[[u8; 8]]) -> u64 {
    words.iter().fold(u64::MAX, |mask, word| mask & u64::from_le_bytes(*word))
}

/// Returns a mask of the lowest `count` bits, at most 64.
#[inline(always)]
fn lowest_bits(count: usize) -> u64 {
    if count < 64 { (1 << count) - 1 } else { u64::MAX }
}
