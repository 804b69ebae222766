//! Tiers: escape-coded ranks (chapter 5.7 of the specification).
//!
//! Symbols are replaced by their rank in the order of frequency, in codes of 1 to 4 bits. A code of
//! all ones is an *escape*: it stands for the next symbol of the next tier, which has the rarer
//! symbols. There are three tiers, and the escapes of the third stand for literals, so tiers are
//! merged from the last to the first. An entropy coder decodes one symbol at a time. Tiers decode
//! 64 symbols at once, and only a count is passed from group to group.
//!
//! The layout makes this possible. Codes are stored in groups of 64, bit plane by bit plane: a
//! group of codes of `width` bits is `width` little-endian words of 64 bits, and bit `t` of word
//! `j` is bit `j` of code `t`. The AND of the words is therefore the mask of the escapes, and the
//! number of bits set in this mask is the number of symbols that the group takes from the next
//! tier. A group is merged as follows:
//!
//! ```text
//! mask    = words[0] & words[1] & ...
//! symbols = table[codes]                  16 entries; the entry of the escape is 0
//! symbols = symbols | expand(mask, escaped[next..])
//! next    = next + count of bits in mask
//! ```
//!
//! `expand` of [`Group`] distributes consecutive bytes to the elements that a mask selects. To
//! split a group, the codes are looked up by symbol and stored plane by plane, and `compress`
//! collects the symbols that escape.
//!
//! Only two operations differ between instruction sets, see [`Codes`]. *Planes to codes*: AVX-512
//! transposes bits with the instruction that its bit-shuffle uses. AVX2 and NEON turn each bit into
//! a byte of all ones or all zeros, and keep only the bit of its plane. *Symbols to codes*: NEON
//! looks up a symbol among 256 codes in four steps, and AVX-512 in two. A look-up of AVX2 covers
//! only 16 codes, so AVX2 takes one step for each row of 16 symbols in which a symbol has its own
//! code. Most tables have one or two such rows.

use super::dispatch::{Implementation, Scalar, implement, implementations, intrinsics};
use super::vectors::{Group, WINDOW};
use super::{copy, pad};
use std::cmp::Ordering;
use std::ops::Range;
#[cfg(target_arch = "x86_64")]
use {
    crate::kernel::bitshuffle::avx512::bytes_of_planes,
    crate::kernel::dispatch::{Avx2, Avx512},
    crate::kernel::vectors::x86_64::{load_16, load_quarters, load_up_to_64, look_up_256},
    std::arch::x86_64::*,
};
#[cfg(target_arch = "aarch64")]
use {
    crate::kernel::dispatch::Neon,
    crate::kernel::vectors::aarch64::{BIT_OF_BYTE, load_16, load_table, mask_of},
    std::arch::aarch64::*,
};

pub use super::vectors::GROUP;

/// The size in bytes of a group of 4-bit codes, which are the widest.
pub const GROUP_BYTES: usize = 4 * size_of::<u64>();

/// The kernels of one instruction set. All slices have the lengths that the methods of [`Tiers`]
/// require, and `width` is 1 to 4.
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

/// One implementation of the kernels for tiers.
pub type Tiers = Implementation<dyn Kernel>;

/// Returns the size in bytes of the groups of `count` codes of `width` bits.
pub const fn code_bytes(width: usize, count: usize) -> usize {
    count.div_ceil(GROUP).saturating_mul(8 * width)
}

impl Tiers {
    /// Decodes one tier. Replaces each code of `width` bits (1 to 4) with its symbol in `table`,
    /// and each escape with the next symbol of `escaped`, or with 0 beyond the end of `escaped`.
    /// Returns the number of escapes.
    ///
    /// `codes` must begin with a group for each whole group of symbols in `out`, and `last` must
    /// begin with the group of the remaining symbols. Codes that pad this group are ignored. Debug
    /// builds assert that `codes` is long enough and that the width is valid. If not, release
    /// builds write nothing and return 0.
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
        debug_assert!(groups.is_some(), "there are too few codes, or the width is invalid");
        groups.map_or(0, |codes| self.kernel.merge(width, codes, last, table, escaped, out))
    }

    /// Encodes one tier: the inverse of [`merge`](Self::merge). The code of a symbol is the lower
    /// `width` bits of its entry in `code_of`. Symbols that escape are written to the start of
    /// `escaped`. The last group is padded with codes of 0. Returns the number of escapes.
    ///
    /// `codes` must be at least as long as all groups, and `escaped` at least as long as `symbols`.
    /// Debug builds assert this. If a buffer is too short, release builds write nothing and return
    /// 0. The bytes after the escaped symbols in `escaped` are unspecified.
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
        debug_assert!(groups.is_some() && escaped.is_some(), "a buffer is too short, or the width is invalid");
        match groups.zip(escaped) {
            Some((codes, escaped)) => self.kernel.split(width, code_of, symbols, codes, escaped),
            None => 0,
        }
    }

    /// Returns the number of escapes among the codes in `range`. Each code has `width` bits (1 to
    /// 4). Codes beyond the end of `codes` are not counted.
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

/// Returns the escape code of `width` bits.
const fn escape(width: usize) -> u8 {
    (1 << width) - 1
}

/// Returns the offset of the byte that contains bit `plane` of code `i`.
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

/// [`Kernel::merge`] for codes of `W` bits.
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
    // the entry of the escape is 0, and is replaced by the next symbol of `escaped`
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

/// Returns the symbols of a group whose escapes are `mask`, and adds the number of escapes to
/// `escapes`.
///
/// This is not a closure, because a closure cannot be forced to be inlined. If it is not inlined,
/// it calls each vector instruction as a function, and takes eight times as long.
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

/// [`Kernel::split`] for codes of `W` bits.
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
            Some(window) => v.compress(mask, symbols, window), // the next escapes overwrite the other bytes
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

/// See [`Kernel::escapes`]. Compiled without vectors, because counting in vectors is slower.
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

/// Counts the escapes in the whole groups of the range, and in the groups in which the range begins
/// and ends.
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
    escapes as usize // exact: on all targets of this crate, usize has at least 32 bits
}

/// Returns a mask of the escapes of a group of codes: the codes whose bits are all set.
#[inline(always)]
fn escape_mask(words: &[[u8; 8]]) -> u64 {
    words.iter().fold(u64::MAX, |mask, word| mask & u64::from_le_bytes(*word))
}

/// Returns a mask of the lowest `count` bits; `count` is at most 64.
#[inline(always)]
fn lowest_bits(count: usize) -> u64 {
    if count < 64 { (1 << count) - 1 } else { u64::MAX }
}

// ---- codes and symbols in each instruction set

/// Codes and symbols in vectors.
trait Codes: Group {
    /// The symbols of 16 codes.
    type Symbols: Copy;
    /// The codes of 256 symbols.
    type Table;

    /// Loads the symbols of 16 codes.
    fn load_symbols(self, symbols: &[u8; 16]) -> Self::Symbols;
    /// Returns the symbols of a group of codes, given as `W` words.
    fn symbols<const W: usize>(self, words: &[[u8; 8]], symbols: Self::Symbols) -> Self::Bytes;
    /// Replaces the symbols whose bit is set with the next bytes of `escaped`, or with zeros beyond
    /// its end. These symbols must be zero.
    #[inline(always)]
    fn replace(self, symbols: Self::Bytes, bits: u64, escaped: &[u8]) -> Self::Bytes {
        let padded; // set only near the end, because padding takes longer than everything else
        let next = match escaped.first_chunk() {
            Some(whole) => whole,
            None => {
                padded = pad(escaped);
                &padded
            }
        };
        self.or(self.expand(bits, next), symbols)
    }
    /// Loads the codes of 256 symbols. Only the lower `W` bits of a code are used.
    fn load_codes<const W: usize>(self, code_of: &[u8; 256]) -> Self::Table;
    /// Returns the codes of a group of symbols, in the form that [`plane`](Self::plane) expects.
    fn codes(self, symbols: Self::Bytes, table: &Self::Table) -> Self::Bytes;
    /// Returns bit `bit` of each code.
    fn plane(self, codes: Self::Bytes, bit: u8) -> u64;
}

/// The codes of 16 symbols that have the same upper four bits. All bits of a code are inverted, so
/// an escape is 0.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct CodeRow {
    upper: __m256i,
    codes: __m256i,
}

/// The rows in which a symbol has its own code, that is, does not escape.
#[cfg(target_arch = "x86_64")]
struct CodeRows {
    rows: [CodeRow; 16],
    count: usize,
}

intrinsics! {
    [Avx2]
    impl Codes for Avx2 {
        type Symbols = __m256i;
        type Table = CodeRows;

        fn load_symbols(v: Avx2, symbols: &[u8; 16]) -> __m256i {
            _mm256_broadcastsi128_si256(load_16(symbols))
        }

        fn symbols<const W: usize>(v: Avx2, words: &[[u8; 8]], symbols: __m256i) -> [__m256i; 2] {
            let [low, high] = [codes::<W>(v, words, 0), codes::<W>(v, words, 1)];
            [_mm256_shuffle_epi8(symbols, low), _mm256_shuffle_epi8(symbols, high)]
        }

        fn load_codes<const W: usize>(v: Avx2, code_of: &[u8; 256]) -> CodeRows {
            let zero = _mm256_setzero_si256();
            let mut table = CodeRows { rows: [CodeRow { upper: zero, codes: zero }; 16], count: 0 };
            let escape = (1 << W) - 1;
            for (upper, codes) in code_of.as_chunks::<16>().0.iter().enumerate() {
                let codes = codes.map(|code| code & escape ^ escape);
                if let Some(row) = table.rows.get_mut(table.count).filter(|_| codes != [0; 16]) {
                    let upper = _mm256_set1_epi8((upper << 4) as i8); // keeps all 8 bits
                    *row = CodeRow { upper, codes: v.load_symbols(&codes) };
                    table.count += 1;
                }
            }
            table
        }

        fn codes(v: Avx2, symbols: [__m256i; 2], table: &CodeRows) -> [__m256i; 2] {
            let mut inverted = [_mm256_setzero_si256(); 2];
            for row in table.rows.get(..table.count).unwrap_or(&[]) {
                for (inverted, symbols) in inverted.iter_mut().zip(symbols) {
                    // Symbols of this row become 0x70 to 0x7F, and the shuffle uses the lower four
                    // bits. Any other symbol becomes 0x80 or more, and the shuffle returns 0.
                    let index = _mm256_adds_epu8(_mm256_xor_si256(symbols, row.upper), _mm256_set1_epi8(0x70));
                    *inverted = _mm256_or_si256(*inverted, _mm256_shuffle_epi8(row.codes, index));
                }
            }
            inverted
        }

        fn plane(v: Avx2, [low, high]: [__m256i; 2], bit: u8) -> u64 {
            let to_top = _mm_cvtsi32_si128(7 - i32::from(bit));
            !v.bits([_mm256_sll_epi16(low, to_top), _mm256_sll_epi16(high, to_top)])
        }
    }
}

intrinsics! {
    [Avx2]
    /// Returns the codes of half a group, given as `W` words.
    fn codes<const W: usize>(v: Avx2, words: &[[u8; 8]], half: usize) -> __m256i {
        let mut codes = _mm256_setzero_si256();
        for (bit, word) in words.iter().take(W).enumerate() {
            let plane = (u64::from_le_bytes(*word) >> (32 * half)) as u32; // exact: only this half
            codes = _mm256_or_si256(codes, _mm256_and_si256(spread(v, plane), _mm256_set1_epi8(1 << bit)));
        }
        codes
    }

    /// Returns a byte for each bit: all ones if it is set, zero otherwise.
    fn spread(_: Avx2, bits: u32) -> __m256i {
        let bytes = _mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303);
        let each = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
        let bits = _mm256_shuffle_epi8(_mm256_set1_epi32(bits.cast_signed()), bytes);
        _mm256_cmpeq_epi8(_mm256_and_si256(bits, each), each)
    }
}

intrinsics! {
    [Avx512]
    impl Codes for Avx512 {
        type Symbols = __m512i;
        type Table = [__m512i; 4];

        fn load_symbols(v: Avx512, symbols: &[u8; 16]) -> __m512i {
            _mm512_broadcast_i32x4(load_16(symbols))
        }

        fn symbols<const W: usize>(v: Avx512, words: &[[u8; 8]], symbols: __m512i) -> __m512i {
            let planes = load_up_to_64(words[..W].as_flattened()); // in bounds: there are `W` words
            _mm512_shuffle_epi8(symbols, bytes_of_planes(planes))
        }

        // one step instead of two, and no copy near the end, which saves a tenth of the time of a
        // merge
        fn replace(v: Avx512, symbols: __m512i, bits: u64, escaped: &[u8]) -> __m512i {
            _mm512_mask_expand_epi8(symbols, bits, load_up_to_64(escaped))
        }

        fn load_codes<const W: usize>(v: Avx512, code_of: &[u8; 256]) -> [__m512i; 4] {
            load_quarters(code_of)
        }

        fn codes(v: Avx512, symbols: __m512i, table: &[__m512i; 4]) -> __m512i {
            look_up_256(table, symbols)
        }

        fn plane(v: Avx512, codes: __m512i, bit: u8) -> u64 {
            _mm512_test_epi8_mask(codes, _mm512_set1_epi8(1 << bit))
        }
    }
}

intrinsics! {
    [Neon]
    impl Codes for Neon {
        type Symbols = uint8x16_t;
        type Table = [uint8x16x4_t; 4];

        fn load_symbols(v: Neon, symbols: &[u8; 16]) -> uint8x16_t {
            load_16(symbols)
        }

        fn symbols<const W: usize>(v: Neon, words: &[[u8; 8]], symbols: uint8x16_t) -> [uint8x16_t; 4] {
            let mut group = [symbols; 4];
            for (quarter, of_quarter) in group.iter_mut().enumerate() {
                let mut codes = vdupq_n_u8(0);
                for (bit, word) in words.iter().take(W).enumerate() {
                    // in bounds: a word has 8 bytes, a group 4 quarters
                    let bits = vcombine_u8(vdup_n_u8(word[2 * quarter]), vdup_n_u8(word[2 * quarter + 1]));
                    let ones = vtstq_u8(bits, load_16(&BIT_OF_BYTE));
                    codes = vorrq_u8(codes, vandq_u8(ones, vdupq_n_u8(1 << bit)));
                }
                *of_quarter = vqtbl1q_u8(symbols, codes);
            }
            group
        }

        fn load_codes<const W: usize>(v: Neon, code_of: &[u8; 256]) -> [uint8x16x4_t; 4] {
            let [a, b, c, d] = code_of.as_chunks().0 else { return [load_table(&[0; 64]); 4] }; // never
            [load_table(a), load_table(b), load_table(c), load_table(d)]
        }

        fn codes(v: Neon, symbols: [uint8x16_t; 4], tables: &[uint8x16x4_t; 4]) -> [uint8x16_t; 4] {
            let mut group = symbols;
            for vector in &mut group {
                let mut symbols = *vector;
                *vector = vdupq_n_u8(0);
                for table in tables {
                    *vector = vorrq_u8(*vector, vqtbl4q_u8(*table, symbols)); // 0 unless below 64
                    symbols = vsubq_u8(symbols, vdupq_n_u8(64));
                }
            }
            group
        }

        fn plane(v: Neon, [a, b, c, d]: [uint8x16_t; 4], bit: u8) -> u64 {
            let bit = vdupq_n_u8(1 << bit);
            mask_of([vtstq_u8(a, bit), vtstq_u8(b, bit), vtstq_u8(c, bit), vtstq_u8(d, bit)])
        }
    }
}
