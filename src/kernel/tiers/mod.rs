//! Tiers of short codes (chapter 5.7 of the specification) and extra bits (chapter 5.9).
//!
//! Codes stand in groups of 64, bit plane by bit plane: a group of codes of `width` bits is `width` little-endian words of 64 bits,
//! bit `t` of word `j` being bit `j` of code `t`. The code of `width` one bits is an *escape*.
//!
//! `scalar` is the definition in code. Every other implementation gives the same bytes, faster.

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod aarch64;
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod portable;
mod scalar;
#[cfg(test)]
mod tests;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64;

use super::Width;
use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

/// Codes in a group.
pub const GROUP: usize = 64;

/// What an implementation does; all slices have the lengths that [`Tiers`] promises.
trait Kernel: Sync {
    fn merge(&self, width: usize, codes: &[u8], table: &[u8; 16], escaped: &[u8], out: &mut [u8]) -> usize;
    fn split(&self, width: usize, code_of: &[u8; 256], symbols: &[u8], codes: &mut [u8], escaped: &mut [u8]) -> usize;
    fn escapes(&self, width: usize, codes: &[u8], range: Range<usize>) -> usize {
        escapes(width, codes, range)
    }
    fn lengths(&self, width: Width, elements: &[u8], out: &mut [u8]);
    fn deposit(&self, width: Width, lengths: &[u8], bits: &[u8], at: usize, out: &mut [u8]) -> usize;
    fn extract(&self, width: Width, lengths: &[u8], elements: &[u8], words: &mut [u64], at: usize) -> usize;
}

/// One implementation. That a value exists proves that this CPU can run it.
pub struct Tiers {
    name: &'static str,
    kernel: &'static dyn Kernel,
}

impl fmt::Debug for Tiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tiers").field(&self.name).finish()
    }
}

/// Bytes of the groups of `count` codes of `width` bits.
pub const fn code_bytes(width: usize, count: usize) -> usize {
    count.div_ceil(GROUP).saturating_mul(8 * width)
}

impl Tiers {
    /// Name of the instruction set: `scalar`, `avx2`, `avx512` or `neon`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Decodes one tier: each code of `width` bits (1 to 4) becomes its symbol in `table`, each escape the next of `escaped`. Returns the
    /// number of escapes; those beyond the end of `escaped` become 0.
    ///
    /// `codes` has the groups of as many codes as `out` has symbols; if it is shorter or the width is another, nothing is written and the
    /// result is 0 (debug builds assert). What fills up the last group is ignored.
    pub fn merge(&self, width: usize, codes: &[u8], table: &[u8; 16], escaped: &[u8], out: &mut [u8]) -> usize {
        let groups = codes.get(..code_bytes(width, out.len())).filter(|_| (1..=4).contains(&width));
        debug_assert!(groups.is_some(), "too few codes, or a wrong width");
        groups.map_or(0, |codes| self.kernel.merge(width, codes, table, escaped, out))
    }

    /// The inverse of [`merge`](Self::merge): the code of each symbol is its entry in `code_of`, of which only the lower `width` bits count;
    /// symbols that escape go to the start of `escaped`. Returns their number. The last group is filled up with zeros.
    ///
    /// `codes` has room for the groups, `escaped` is as long as `symbols`; else nothing is written and the result is 0 (debug builds
    /// assert). What `escaped` has after the symbols that escaped is unspecified.
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
        debug_assert!(groups.is_some() && escaped.is_some(), "too little room, or a wrong width");
        match groups.zip(escaped) {
            Some((codes, escaped)) => self.kernel.split(width, code_of, symbols, codes, escaped),
            None => 0,
        }
    }

    /// The number of escapes among some of the codes of `width` bits in `codes`; those that are not there count as none.
    pub fn escapes(&self, width: usize, codes: &[u8], range: Range<usize>) -> usize {
        if (1..=4).contains(&width) { self.kernel.escapes(width, codes, range) } else { 0 }
    }

    /// The bit length of each element: 0 for 0, else one more than the place of its highest one bit. `out` has a byte for each of
    /// `elements` (else only as many as there are in both are done; debug builds assert).
    pub fn lengths(&self, width: Width, elements: &[u8], out: &mut [u8]) {
        let (elements, out) = equally_many(width, elements, out);
        self.kernel.lengths(width, elements, out);
    }

    /// Puts elements together from their bit lengths and their extra bits, which begin with bit `at` of `bits` (bit 0 is the lowest of the
    /// first byte). Returns where the extra bits end. Bits beyond the end of `bits` count as 0. Elements of a length
    /// greater than their width are unspecified, and so is the result then.
    ///
    /// `out` has as many elements as `lengths` (else only as many as there are in both are done; debug builds assert).
    pub fn deposit(&self, width: Width, lengths: &[u8], bits: &[u8], at: usize, out: &mut [u8]) -> usize {
        debug_assert_eq!(lengths.len() * width.bytes(), out.len(), "slices of other lengths");
        let count = lengths.len().min(out.len() / width.bytes());
        match (lengths.get(..count), out.get_mut(..count * width.bytes())) {
            (Some(lengths), Some(out)) => self.kernel.deposit(width, lengths, bits, at, out),
            _ => at, // never: the lesser of both
        }
    }

    /// The inverse of [`deposit`](Self::deposit): sets the extra bits of `elements` of these bit lengths in `words`, which are 0 from bit `at` on.
    /// Returns where they end.
    ///
    /// `lengths` are those of the elements, and `words` has room for all of their bits and a word more; else what does not fit is lost.
    pub fn extract(&self, width: Width, lengths: &[u8], elements: &[u8], words: &mut [u64], at: usize) -> usize {
        debug_assert_eq!(lengths.len() * width.bytes(), elements.len(), "slices of other lengths");
        let count = lengths.len().min(elements.len() / width.bytes());
        match (lengths.get(..count), elements.get(..count * width.bytes())) {
            (Some(lengths), Some(elements)) => self.kernel.extract(width, lengths, elements, words, at),
            _ => at, // never: the lesser of both
        }
    }
}

/// [`Tiers::escapes`], to be compiled for each instruction set.
#[inline(always)]
fn escapes(width: usize, codes: &[u8], range: Range<usize>) -> usize {
    match width {
        1 => escapes_of_width::<1>(codes, range),
        2 => escapes_of_width::<2>(codes, range),
        3 => escapes_of_width::<3>(codes, range),
        _ => escapes_of_width::<4>(codes, range),
    }
}

#[inline(always)]
fn escapes_of_width<const WIDTH: usize>(codes: &[u8], range: Range<usize>) -> usize {
    let groups = codes.as_chunks::<8>().0.as_chunks::<WIDTH>().0;
    let escapes = |words: &[[u8; 8]; WIDTH]| words.iter().fold(u64::MAX, |all, word| all & u64::from_le_bytes(*word));
    let (first, last) = (range.start / GROUP, range.end / GROUP);
    let before = !(u64::MAX << (range.start % GROUP));
    let until = !(u64::MAX << (range.end % GROUP));
    let masked = |group: usize, mask: u64| groups.get(group).map_or(0, |words| (escapes(words) & mask).count_ones());
    if first > last {
        return 0;
    }
    let whole = groups.get(first..last.min(groups.len())).unwrap_or(&[]);
    let whole: u32 = whole.iter().map(|words| escapes(words).count_ones()).sum(); // fewer than 2^32 codes
    let total = i64::from(whole) + i64::from(masked(last, until)) - i64::from(masked(first, before));
    usize::try_from(total).unwrap_or(0) // never less: an empty range in a group counts it twice
}

/// Cuts elements, and what has a byte for each, to as many as both have.
fn equally_many<'e, 'b>(width: Width, elements: &'e [u8], bytes: &'b mut [u8]) -> (&'e [u8], &'b mut [u8]) {
    debug_assert_eq!(elements.len(), bytes.len() * width.bytes(), "slices of other lengths");
    let count = bytes.len().min(elements.len() / width.bytes());
    (&elements[..count * width.bytes()], &mut bytes[..count]) // the lesser of both
}

/// All implementations that this CPU can run, slowest (`scalar`) first.
pub fn available() -> &'static [Tiers] {
    static AVAILABLE: LazyLock<Vec<Tiers>> = LazyLock::new(|| {
        #[allow(unused_mut, reason = "not every target adds to the list")]
        let mut list = vec![scalar::TIERS];
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        list.extend(x86_64::available());
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        list.extend(aarch64::detect());
        list
    });
    &AVAILABLE
}

/// The fastest implementation that this CPU can run; chosen once for each process.
pub fn best() -> &'static Tiers {
    available().last().unwrap_or(&scalar::TIERS)
}
