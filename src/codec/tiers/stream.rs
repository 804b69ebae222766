//! Reads and writes the tables and the tiers of a block (chapter 5.7), and plans the tiers of a
//! part.
//!
//! [`TierTables`] has the properties that all blocks of a part share: transform, widths and ranks.
//! [`TierStream`] has the tiers of one block, which are decoded from the last one to the first.
//! Tier 1 is decoded a few thousand symbols at a time, so the symbols and their elements stay in
//! the first-level cache. If a block has no more symbols than that, even decoding a range decodes
//! tiers 2 and 3 completely, because that costs less than finding the position of the range in
//! them.
//!
//! Writers choose a [`TierPlan`] from the histogram of a part. Of the 36 combinations of widths, it
//! has the one that needs the fewest bits for all codes and literals. It ranks symbols by
//! frequency. Widths and ranks are the same for all blocks of a part, but escapes are counted for
//! each block.

use crate::bytes::le::structure;
use crate::bytes::memory;
use crate::codec::{
    choice::{Search, Technique},
    part::Description,
    transform::{TRANSFORM_BYTES, Transform},
};
use crate::kernel::tiers::{GROUP, GROUP_BYTES, best, code_bytes};
use crate::{Error, Result};
use std::ops::Range;

/// The words of a tier begin at a multiple of this in their block, and therefore in the file.
pub(crate) const WORD_BYTES: usize = size_of::<u64>();

#[derive(Clone, Copy, Debug)]
struct TierCodes<'a> {
    width: usize,
    count: usize,
    stored: &'a [u8],
    padding: &'a [u8],
    /// The last group, if it is not full, extended to whole words. In `stored`, its words are
    /// truncated.
    last: [u8; GROUP_BYTES],
}

impl<'a> TierCodes<'a> {
    /// Splits off `count` codes of `width` bits from a block. Their words begin at the first
    /// multiple of [`WORD_BYTES`] that is not less than `from`. The words of the last group are
    /// truncated to the bytes that contain codes. Returns the codes and the offset at which they
    /// end, or `None` if the block is too short.
    #[inline]
    pub(crate) fn split(width: usize, count: usize, block: &'a [u8], from: usize) -> Option<(Self, usize)> {
        let start = from.checked_next_multiple_of(WORD_BYTES)?;
        let end = start.checked_add(cut_bytes(width, count))?;
        let (padding, stored) = (block.get(from..start)?, block.get(start..end)?);
        let group = stored.get(full_bytes(width, count)..)?;
        let mut last = [0; GROUP_BYTES];
        if let Some(word_bytes) = group.len().checked_div(width).filter(|&bytes| bytes > 0) {
            for (to, word) in last.as_chunks_mut().0.iter_mut().zip(group.chunks_exact(word_bytes)) {
                *to = word_of(word).to_le_bytes();
            }
        }
        Some((Self { width, count, stored, padding, last }, end))
    }

    /// Decodes codes until `out` is full, beginning with code `start`, which must be the first of a
    /// group. Returns the number of escapes. See [`merge`](crate::kernel::tiers::Tiers::merge).
    pub(crate) fn merge(&self, start: usize, table: &[u8; 16], escaped: &[u8], out: &mut [u8]) -> usize {
        let codes = self.stored.get(code_bytes(self.width, start)..).unwrap_or(&[]);
        let end = start.saturating_add(out.len());
        if end.is_multiple_of(GROUP) || end / GROUP == self.count / GROUP {
            return best().merge(self.width, codes, &self.last, table, escaped, out);
        }
        let mut last = [0; GROUP_BYTES];
        let group = codes.get(full_bytes(self.width, out.len())..).unwrap_or(&[]);
        last.iter_mut().zip(group).for_each(|(to, from)| *to = *from);
        best().merge(self.width, codes, &last, table, escaped, out)
    }

    pub(crate) fn escapes(&self, range: Range<usize>) -> usize {
        let full = self.count - self.count % GROUP;
        let escapes = best().escapes(self.width, self.stored, range.start.min(full)..range.end.min(full));
        if range.end <= full {
            return escapes;
        }
        let last = self.last.get(..8 * self.width).unwrap_or(&[]);
        escapes + best().escapes(self.width, last, range.start.saturating_sub(full)..range.end - full)
    }

    /// Returns whether the unused codes of the last group and the padding are zero.
    #[inline]
    pub(crate) fn padding_is_zero(&self) -> bool {
        let words = self.last.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        words.fold(0, |any, word| any | word) >> (self.count % GROUP) == 0 && self.padding.iter().all(|&byte| byte == 0)
    }
}

/// Reads a number of one to eight bytes with overlapping loads.
#[inline]
fn word_of(bytes: &[u8]) -> u64 {
    let of = |bytes: Option<&[u8; 4]>| bytes.map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)));
    match (bytes.first_chunk(), bytes.len()) {
        (Some(bytes), _) => u64::from_le_bytes(*bytes),
        (None, 4..) => of(bytes.first_chunk()) | of(bytes.last_chunk()) << (8 * (bytes.len() - 4)),
        (None, _) => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// Returns the size in bytes of the full groups among `count` codes of `width` bits.
fn full_bytes(width: usize, count: usize) -> usize {
    code_bytes(width, count - count % GROUP)
}

/// Returns the size in bytes of `count` codes of `width` bits, with the last group truncated.
fn cut_bytes(width: usize, count: usize) -> usize {
    // less than the size of whole groups
    full_bytes(width, count).saturating_add(width * (count % GROUP).div_ceil(8))
}

/// The length of the table of ranks. This is the maximum number of ranks for any widths.
pub(crate) const RANKS: usize = 29;

/// The widths and ranks of tiers, and the number of codes of each tier in a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TierHeader {
    /// The number of bits per code of each tier.
    pub widths: [u8; 3],
    /// The number of symbols that escape from each tier. This is the number of codes in the next
    /// tier or, for the last tier, the number of literals.
    pub escapes: [u32; 3],
    /// The symbols by rank.
    pub ranks: [u8; RANKS],
}

/// Returns the number of codes of this width, without the escape code.
pub(crate) const fn plain_codes(width: u8) -> usize {
    (1 << width) - 1
}

impl TierHeader {
    /// Returns a header that has no codes in tiers 2 and 3.
    pub(crate) fn new(widths: [u8; 3], ranks: [u8; RANKS]) -> Self {
        Self { widths, escapes: [0; 3], ranks }
    }

    /// Returns whether holds.
    pub(crate) fn is_valid(&self) -> bool {
        let [first, second, third] = self.widths;
        let in_range = (1..=3).contains(&first) && (1..=3).contains(&second) && (1..=4).contains(&third);
        in_range && self.ranks.iter().skip(self.first_rank(3)).all(|&rank| rank == 0)
    }

    /// Returns the rank of code 0 of a tier. Tiers are counted from 0, so for 3, returns the total
    /// number of ranks.
    fn first_rank(&self, tier: usize) -> usize {
        self.widths.iter().take(tier).map(|&width| plain_codes(width)).sum()
    }

    /// Returns the symbols of the codes of a tier, without the escape code.
    pub(crate) fn table(&self, tier: usize) -> [u8; 16] {
        let mut table = [0; 16];
        // in bounds: at most 29 ranks, and 15 per tier
        let ranks = self.ranks.get(self.first_rank(tier)..self.first_rank(tier + 1));
        table.iter_mut().zip(ranks.unwrap_or(&[])).for_each(|(entry, &rank)| *entry = rank);
        table
    }

    pub(crate) fn tables(&self) -> [[u8; 16]; 3] {
        [self.table(0), self.table(1), self.table(2)]
    }

    /// Returns the number of codes of each tier and the number of literals, for `count` symbols.
    pub(crate) fn counts(&self, count: usize) -> [usize; 4] {
        let [second, third, literals] = self.escapes.map(|count| count as usize); // exact
        [count, second, third, literals]
    }

    /// Appends the sections of a stream to the block that begins at `block`. `symbols` must be some
    /// of the symbols for which this header was planned. Returns the number of symbols that escape
    /// from each tier.
    fn write(&self, symbols: &[u8], block: usize, stored: &mut Vec<u8>, scratch: &mut TierEncodeScratch) -> [usize; 3] {
        let [first, second, third] = &mut scratch.escaped;
        let mut write_tier = |tier: usize, symbols: &[u8], escaped: &mut Vec<u8>| {
            stored.resize(block + (stored.len() - block).next_multiple_of(WORD_BYTES), 0);
            self.write_tier(tier, symbols, escaped, stored);
            cut(self.width(tier), symbols.len(), stored);
        };
        write_tier(0, symbols, first);
        write_tier(1, first, second);
        write_tier(2, second, third);
        stored.extend_from_slice(third);
        [first.len(), second.len(), third.len()]
    }

    /// Appends the codes of a tier. Sets `escaped` to the symbols that escape.
    fn write_tier(&self, tier: usize, symbols: &[u8], escaped: &mut Vec<u8>, stored: &mut Vec<u8>) {
        let width = self.width(tier);
        let start = stored.len();
        stored.resize(start + code_bytes(width, symbols.len()), 0);
        escaped.resize(symbols.len(), 0);
        let codes = stored.get_mut(start..).unwrap_or(&mut []);
        let escapes = best().split(width, &self.code_of(tier), symbols, codes, escaped);
        escaped.truncate(escapes);
    }

    fn width(&self, tier: usize) -> usize {
        self.widths.get(tier).copied().map_or(1, usize::from) // there are three tiers
    }

    fn code_of(&self, tier: usize) -> [u8; 256] {
        let mut codes = [u8::MAX; 256]; // the lower bits are an escape code
        let plain = self.widths.get(tier).map_or(0, |&width| plain_codes(width));
        let table = self.table(tier);
        // unused ranks have symbol 0 and come last, so the lower rank of symbol 0 must win
        for (code, &symbol) in (0..).zip(&table).take(plain).collect::<Vec<_>>().into_iter().rev() {
            codes[usize::from(symbol)] = code; // in bounds: a byte
        }
        codes
    }
}

/// The number of symbols of tier 1 that are decoded at a time. This many symbols and their elements
/// fit into the first-level cache.
const SYMBOLS_PER_STEP: usize = 4096;

/// A tier stream: its header and its four sections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TierStream<'a> {
    pub header: TierHeader,
    /// The number of codes of each tier, and of literals.
    counts: [usize; 4],
    tiers: [TierCodes<'a>; 3],
    /// The symbols of the codes of each tier, computed once for all blocks. If each block computed
    /// them, the vector load of a table would stall until the stores of its bytes, and all stores
    /// before them, are complete.
    tables: [[u8; 16]; 3],
    pub literals: &'a [u8],
}

#[cold]
fn wrong_counts() -> Error {
    Error::corrupt("R-5.9", "a tier does not have as many codes as the tier before it has escapes")
}

/// Returns the error for an output that is too short for the symbols decoded to it.
#[cold]
pub(crate) fn overrun() -> Error {
    Error::internal("more symbols of a tier stream were decoded than the part has elements")
}

impl<'a> TierStream<'a> {
    /// Splits off the sections of a stream of `count` symbols from a block. The sections begin at
    /// `start`, or after any padding there. `tables` must be the result of [`TierHeader::tables`].
    /// Returns the stream and the bytes after it, or `None` if the block is too short.
    #[inline]
    pub(crate) fn split(
        header: TierHeader,
        tables: [[u8; 16]; 3],
        count: usize,
        block: &'a [u8],
        start: usize,
    ) -> Option<(Self, &'a [u8])> {
        let counts @ [_, second, third, literals] = header.counts(count);
        let [a, b, c] = header.widths.map(usize::from);
        let (first, end) = TierCodes::split(a, count, block, start)?;
        let (second, end) = TierCodes::split(b, second, block, end)?;
        let (third, end) = TierCodes::split(c, third, block, end)?;
        let (literals, rest) = block.get(end..)?.split_at_checked(literals)?;
        let tiers = [first, second, third];
        Some((Self { header, counts, tiers, tables, literals }, rest))
    }

    pub(crate) fn describe(&self, description: &mut Description) {
        let tiers = (1..).zip(self.tiers).zip(self.counts.iter().zip(self.header.widths));
        for ((tier, codes), (count, width)) in tiers {
            let plural = if width == 1 { "" } else { "s" };
            description.add("padding", "zero bytes", codes.padding);
            description.add(format!("tier {tier}"), format!("{count} codes of {width} bit{plural}"), codes.stored);
        }
        description.add("literals", "one byte each", self.literals);
    }

    /// Decodes all symbols, and checks. Calls `each` with consecutive slices of the
    /// symbols, and with the index of the first symbol in the slice.
    pub(crate) fn decode(
        &self,
        scratch: &mut TierScratch,
        mut each: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.check_padding()?;
        let [count, second, third, literals] = self.counts;
        if self.is_short() {
            return each(0, self.decode_short(&(0..count), scratch)?);
        }
        if [self.escapes(1, 0..second), self.escapes(2, 0..third)] != [third, literals] {
            return Err(wrong_counts());
        }
        let escapes = self.decode_between(&[0; 4], &self.counts, scratch, each)?;
        if escapes == second { Ok(()) } else { Err(wrong_counts()) }
    }

    fn is_short(&self) -> bool {
        let [count, ..] = self.counts;
        count <= SYMBOLS_PER_STEP
    }

    /// Decodes a range of the symbols of a short stream in one step. The range must begin at the
    /// start of a group. Tiers 2 and 3 are decoded completely, because that costs less than finding
    /// a position in them.
    fn decode_short<'s>(&self, range: &Range<usize>, scratch: &'s mut TierScratch) -> Result<&'s [u8]> {
        let TierScratch { symbols: [symbols_1, symbols_2, symbols_3] } = scratch;
        let [count, count_2, count_3, count_4] = self.counts;
        let [table_1, table_2, table_3] = &self.tables;
        let (escaped, literals) = self.tier(2, table_3, 0..count_3, self.literals, symbols_3)?;
        let (escaped, third) = self.tier(1, table_2, 0..count_2, escaped, symbols_2)?;
        let before = self.escapes(0, 0..range.start);
        let escaped = escaped.get(before..).ok_or_else(wrong_counts)?;
        let (symbols, within) = self.tier(0, table_1, range.clone(), escaped, symbols_1)?;
        let second = before.saturating_add(within);
        let is_valid = second == count_2 || (range.end < count && second < count_2);
        if is_valid && [third, literals] == [count_3, count_4] { Ok(symbols) } else { Err(wrong_counts()) }
    }

    /// Decodes a range of the symbols. The range must begin at the start of a group. Calls `each`
    /// as [`TierStream::decode`] does.
    pub(crate) fn decode_range(
        &self,
        range: &Range<usize>,
        scratch: &mut TierScratch,
        mut each: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        if self.is_short() {
            return each(range.start, self.decode_short(range, scratch)?);
        }
        let from = self.position_of(range.start);
        let to = self.position_of(range.end);
        if to.iter().zip(&self.counts).any(|(found, expected)| found > expected) {
            return Err(wrong_counts());
        }
        self.decode_between(&from, &to, scratch, each)?;
        Ok(())
    }

    /// Decodes the symbols from one position to another. The first position must be the start of a
    /// group. Returns the number of symbols that escape from tier 1.
    fn decode_between(
        &self,
        from: &[usize; 4],
        to: &[usize; 4],
        scratch: &mut TierScratch,
        mut each: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<usize> {
        let TierScratch { symbols: [symbols_1, symbols_2, symbols_3] } = scratch;
        let ([first, second, third, literal], [end_1, end_2, end_3, _]) = (*from, *to);
        // in tiers 2 and 3, decoding also begins at the start of a group, and therefore at the
        // first symbol that escapes from that group
        let second_from = second - second % GROUP;
        let third_start = third.checked_sub(self.escapes(1, second_from..second)).ok_or_else(wrong_counts)?;
        let third_from = third_start - third_start % GROUP;
        let literal_from = literal.checked_sub(self.escapes(2, third_from..third)).ok_or_else(wrong_counts)?;
        let literals = self.literals.get(literal_from..).unwrap_or(&[]);
        let (escaped, _) = self.tier(2, &self.tables[2], third_from..end_3, literals, symbols_3)?;
        let escaped = escaped.get(third_start - third_from..).unwrap_or(&[]);
        let (escaped, _) = self.tier(1, &self.tables[1], second_from..end_2, escaped, symbols_2)?;
        let escaped = escaped.get(second - second_from..).unwrap_or(&[]);
        let [table, ..] = self.tables;
        let (mut at, mut escapes) = (first, 0);
        while at < end_1 {
            let block = at..end_1.min(at + SYMBOLS_PER_STEP);
            let rest = escaped.get(escapes..).ok_or_else(wrong_counts)?;
            let (symbols, found) = self.tier(0, &table, block.clone(), rest, symbols_1)?;
            each(at, symbols)?;
            escapes += found;
            at = block.end;
        }
        Ok(escapes)
    }

    /// Decodes a range of the codes of a tier to `buffer`. The range must begin at the start of a
    /// group. `escaped` must begin with the symbols that escape from these codes. Returns the
    /// decoded symbols and the number of escapes.
    fn tier<'s>(
        &self,
        tier: usize,
        table: &[u8; 16],
        range: Range<usize>,
        escaped: &[u8],
        buffer: &'s mut Vec<u8>,
    ) -> Result<(&'s [u8], usize)> {
        if buffer.len() < range.len() {
            // the buffer is never shortened, because growing it again would zero the new bytes
            memory::resize(buffer, range.len(), 0)?;
        }
        let out = buffer.get_mut(..range.len()).unwrap_or(&mut []);
        let escapes = self.tiers.get(tier).map_or(0, |codes| codes.merge(range.start, table, escaped, out));
        Ok((out, escapes))
    }

    /// Returns the number of codes of each tier, and the number of literals, that precede a symbol.
    fn position_of(&self, symbol: usize) -> [usize; 4] {
        let second = self.escapes(0, 0..symbol);
        let third = self.escapes(1, 0..second);
        [symbol, second, third, self.escapes(2, 0..third)]
    }

    fn escapes(&self, tier: usize, range: Range<usize>) -> usize {
        self.tiers.get(tier).map_or(0, |codes| codes.escapes(range))
    }

    /// Checks that the unused codes of the last group of each tier, and the bytes before each tier,
    /// are zero.
    fn check_padding(&self) -> Result<()> {
        if self.tiers.iter().all(TierCodes::padding_is_zero) {
            return Ok(());
        }
        Err(Error::corrupt("R-5.8", "unused codes of a tier, or the bytes before it, are not zero"))
    }
}

/// Memory that decoding reuses: the symbols of each tier.
#[derive(Default)]
pub(crate) struct TierScratch {
    symbols: [Vec<u8>; 3],
}

structure! {
    /// Chapter 5.7: the tables of tiers, after the transform.
    mod tier_tables: 32 bytes {
        0 => WIDTHS: [u8; 3],
        3 => BY_RANK: [u8; 29],
    }
}

structure! {
    /// Chapter 5.7: the header of a block of tiers.
    mod block_header: 8 bytes {
        0 => COUNT_2: u16,
        2 => COUNT_3: u16,
        4 => COUNT_4: u16,
        6 => RESERVED: u16,
    }
}

pub(crate) const TABLE_BYTES: usize = TRANSFORM_BYTES + tier_tables::SIZE;

#[derive(Clone, Copy)]
pub(crate) struct TierTables {
    pub transform: Transform,
    /// The widths and ranks. The numbers of escapes are not used, because they differ from block to
    /// block.
    pub header: TierHeader,
    /// See [`TierHeader::tables`].
    symbols: [[u8; 16]; 3],
}

/// The tables that were parsed last, and the bytes from which they were parsed.
#[derive(Default)]
pub(crate) struct TierTableCache(Option<([u8; TABLE_BYTES], TierTables)>);

impl TierTableCache {
    /// Returns the result of [`TierTables::parse`] for these bytes.
    #[inline]
    pub(crate) fn get(&mut self, tables: &[u8]) -> Result<TierTables> {
        match &self.0 {
            Some((bytes, parsed)) if bytes == tables => Ok(*parsed),
            _ => {
                let parsed = TierTables::parse(tables)?;
                self.0 = tables.first_chunk().map(|bytes| (*bytes, parsed));
                Ok(parsed)
            }
        }
    }
}

pub(crate) struct TierBlock<'a> {
    pub low_bytes: &'a [u8],
    pub symbols: TierStream<'a>,
    /// The bytes after the literals.
    pub rest: &'a [u8],
}

#[cold]
pub(crate) fn wrong_length() -> Error {
    Error::corrupt("R-5.17", "the sections of a block of tiers do not end where the block ends")
}

impl TierTables {
    pub(crate) fn new(transform: Transform, header: TierHeader) -> Self {
        Self { transform, header, symbols: header.tables() }
    }

    /// Parses the tables.
    pub(crate) fn parse(tables: &[u8]) -> Result<Self> {
        let split = || {
            let (transform, rest) = tables.split_first_chunk::<TRANSFORM_BYTES>()?;
            Some((transform, rest.first_chunk::<{ tier_tables::SIZE }>()?))
        };
        let (transform, tiers) = split().ok_or_else(|| Error::internal("the tables of tiers were not split off"))?;
        let header = TierHeader::new(tier_tables::WIDTHS.get(tiers), tier_tables::BY_RANK.get(tiers));
        if !header.is_valid() {
            return Err(Error::corrupt("R-5.8", format!("the tables of tiers are malformed: {tiers:02x?}")));
        }
        Ok(Self::new(Transform::parse(transform)?, header))
    }

    /// Splits the stored bytes of a block that has `count` elements and `low_bytes` low bytes.
    #[inline]
    pub(crate) fn split<'a>(&self, count: usize, low_bytes: usize, stored: &'a [u8]) -> Result<TierBlock<'a>> {
        let split = || {
            let (fields, rest) = stored.split_first_chunk::<{ block_header::SIZE }>()?;
            let counts = [
                block_header::COUNT_2.get(fields),
                block_header::COUNT_3.get(fields),
                block_header::COUNT_4.get(fields),
            ];
            let low_bytes = rest.get(..low_bytes)?;
            let header = TierHeader { escapes: counts.map(u32::from), ..self.header };
            let start = block_header::SIZE + low_bytes.len(); // inside the block
            let (symbols, rest) = TierStream::split(header, self.symbols, count, stored, start)?;
            Some((TierBlock { low_bytes, symbols, rest }, block_header::RESERVED.get(fields)))
        };
        match split() {
            Some((block, 0)) => Ok(block),
            Some(_) => Err(Error::corrupt("R-5.8", "the reserved field of a block of tiers is not zero")),
            None => Err(wrong_length()),
        }
    }

    pub(super) fn write(&self, tables: &mut Vec<u8>) {
        let mut tiers = [0; tier_tables::SIZE];
        tier_tables::WIDTHS.put(&mut tiers, self.header.widths);
        tier_tables::BY_RANK.put(&mut tiers, self.header.ranks);
        tables.extend_from_slice(&self.transform.to_bytes());
        tables.extend_from_slice(&tiers);
    }
}

pub(crate) fn describe_header(stored: &[u8], description: &mut Description) {
    description.add("block headers", "numbers of codes", stored.get(..block_header::SIZE).unwrap_or(stored));
}

// ---- planning

/// The number of times that each symbol occurs.
pub(crate) type Histogram = [u32; 256];

pub(crate) fn histogram(symbols: &[u8]) -> Histogram {
    let mut counts = [[0; 256]; 4];
    count(symbols, &mut counts);
    sum_of(counts)
}

/// Adds `symbols` to four histograms in turn, so that increments for consecutive equal symbols do
/// not have to wait for each other.
pub(crate) fn count(symbols: &[u8], counts: &mut [Histogram; 4]) {
    let (quads, rest) = symbols.as_chunks::<4>();
    for quad in quads {
        for (counts, &symbol) in counts.iter_mut().zip(quad) {
            counts[usize::from(symbol)] += 1; // in bounds
        }
    }
    let [first, ..] = counts;
    rest.iter().for_each(|&symbol| first[usize::from(symbol)] += 1); // in bounds
}

pub(crate) fn sum_of([mut sum, second, third, fourth]: [Histogram; 4]) -> Histogram {
    for (sum, ((a, b), c)) in sum.iter_mut().zip(second.iter().zip(&third).zip(&fourth)) {
        *sum += a + b + c; // fewer than 2^32 symbols
    }
    sum
}

/// The widths and ranks for a histogram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TierPlan {
    pub header: TierHeader,
    /// The size of all codes and literals in bits, without unused codes.
    pub bits: u64,
}

/// The widths that are used without [`Technique::TierWidths`].
const FIXED_WIDTHS: [u8; 3] = [2, 3, 4];

impl TierPlan {
    /// Returns the plan with the fewest bits. If several plans tie, the one with the narrowest
    /// first codes wins.
    pub(crate) fn new(histogram: &Histogram, search: Search) -> Self {
        let mut order: Vec<(u32, u8)> =
            histogram.iter().copied().zip(0..=255).filter(|(count, _)| *count > 0).collect();
        order.sort_unstable_by_key(|&(count, symbol)| (std::cmp::Reverse(count), symbol));
        let count: u32 = order.iter().map(|(count, _)| count).sum();
        let mut remaining = [count; RANKS + 1]; // the number of symbols of this rank and later ranks
        for (rank, (count, _)) in order.iter().take(RANKS).enumerate() {
            // in bounds because of `take`; no overflow: `count` is part of the sum
            remaining[rank + 1..].iter_mut().for_each(|remaining| *remaining -= count);
        }
        let plans = (1..=3).flat_map(|a| (1..=3).flat_map(move |b| (1..=4).map(move |c| [a, b, c])));
        let plans = plans.filter(|widths| search.has(Technique::TierWidths) || *widths == FIXED_WIDTHS);
        let plans = plans.map(|widths| {
            let escapes = escapes(&remaining, widths);
            (bits(count, widths, escapes), widths, escapes)
        });
        // there are 36 plans
        let (bits, widths, escapes) = plans.min_by_key(|(bits, ..)| *bits).unwrap_or_default();
        let mut ranks = [0; RANKS];
        let reachable = widths.map(plain_codes).iter().sum();
        ranks.iter_mut().zip(&order).take(reachable).for_each(|(rank, (_, symbol))| *rank = *symbol);
        Self { header: TierHeader { widths, escapes, ranks }, bits }
    }
}

/// Returns the number of symbols that escape from each tier. Entry `i` of `remaining` is the number
/// of symbols of rank `i` and all later ranks.
fn escapes(remaining: &[u32; RANKS + 1], widths: [u8; 3]) -> [u32; 3] {
    let mut first = 0;
    widths.map(|width| {
        first += plain_codes(width);
        remaining.get(first).copied().unwrap_or(0) // in bounds: at most 29
    })
}

fn bits(count: u32, widths: [u8; 3], [second, third, literals]: [u32; 3]) -> u64 {
    let codes = [count, second, third].into_iter().zip(widths);
    codes.map(|(count, width)| u64::from(count) * u64::from(width)).sum::<u64>() + 8 * u64::from(literals)
}

/// Memory that encoding reuses: the symbols that escaped from each tier.
#[derive(Default)]
pub(crate) struct TierEncodeScratch {
    escaped: [Vec<u8>; 3],
}

/// Truncates the words of the last group of `count` codes, at the end of `stored`, to the bytes
/// that contain codes.
fn cut(width: usize, count: usize, stored: &mut Vec<u8>) {
    let word_bytes = (count % GROUP).div_ceil(8);
    let Some(start) = stored.len().checked_sub(8 * width).filter(|_| word_bytes > 0) else { return };
    for word in 1..width {
        // within the group
        stored.copy_within(start + 8 * word..start + 8 * word + word_bytes, start + word_bytes * word);
    }
    stored.truncate(start + word_bytes * width);
}

/// Appends a block with these low bytes and symbols. `header` must have been planned for the
/// symbols.
pub(super) fn write_block<'l>(
    header: &TierHeader,
    low_bytes: impl Iterator<Item = &'l [u8]>,
    symbols: &[u8],
    stored: &mut Vec<u8>,
    scratch: &mut TierEncodeScratch,
) -> Result<()> {
    let start = stored.len();
    stored.resize(start + block_header::SIZE, 0);
    low_bytes.for_each(|plane| stored.extend_from_slice(plane));
    let [count_2, count_3, count_4] = header.write(symbols, start, stored, scratch);
    let field = |count| u16::try_from(count).map_err(|_| Error::internal("a block has too many elements"));
    let mut block = [0; block_header::SIZE];
    block_header::COUNT_2.put(&mut block, field(count_2)?);
    block_header::COUNT_3.put(&mut block, field(count_3)?);
    block_header::COUNT_4.put(&mut block, field(count_4)?);
    stored.iter_mut().skip(start).zip(block).for_each(|(to, from)| *to = from);
    Ok(())
}
