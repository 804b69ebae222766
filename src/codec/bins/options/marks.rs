//! Marks: which elements of a block are gaps or outliers, as lengths of stretches.
//!
//! Stretches without marks and marked ones alternate, and the first is one without. The length of
//! each is a Golomb-Rice code (R. F. Rice, 1979), with a parameter for either kind. Only the first
//! may be empty, so the others are stored less one, and each set of marks has one form. A code has
//! at most 32 bits, which a reader looks at once.

use crate::codec::bins::{cut, malformed_marks, malformed_option};
use crate::codec::bits::{ends_in_zeros, wide};
use crate::le::Fields;
use crate::{Result, limits, memory};
use std::ops::Range;

/// The most bits 1 that a length begins with.
const MOST_ONES: u32 = 16;
const MOST_PARAMETER: u8 = 15;

/// The parameters of the codes of marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RiceParameters {
    between: u8,
    marked: u8,
}

impl RiceParameters {
    pub(super) fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        let [between, marked] = fields.array().ok_or_else(cut)?;
        match between.max(marked) <= MOST_PARAMETER {
            true => Ok(Self { between, marked }),
            false => Err(malformed_option("a parameter of marks is above 15")),
        }
    }

    pub(super) fn write(self, tables: &mut Vec<u8>) {
        tables.extend(self.to_bytes());
    }

    /// Returns the parameter of stretches without marks, and that of marked ones.
    pub(in crate::codec::bins) fn to_bytes(self) -> [u8; 2] {
        [self.between, self.marked]
    }

    /// Returns those that marks take the fewest bits with.
    pub(super) fn best(marks: &PlannedMarks) -> Self {
        let best = |is_marked: bool| {
            let all = || (0..marks.blocks.len()).flat_map(|block| marks.lengths(block));
            let lengths = || all().filter(move |length| length.is_marked == is_marked);
            let sum: u64 = lengths().map(|length| u64::from(length.value)).sum();
            let mean = sum.checked_div(lengths().map(|_| 1).sum()).unwrap_or(0);
            // the best one is near the logarithm of the mean (Golomb, 1966)
            let near = mean.checked_ilog2().unwrap_or(0).min(MOST_PARAMETER.into()) as u8; // exact
            let bits = |&parameter: &u8| -> u64 {
                let parameters = Self { between: parameter, marked: parameter };
                lengths().map(|length| parameters.bits(length)).sum()
            };
            (near.saturating_sub(2)..=(near + 1).min(MOST_PARAMETER)).min_by_key(bits).unwrap_or(0)
        };
        Self { between: best(false), marked: best(true) }
    }

    fn of(self, is_marked: bool) -> u8 {
        if is_marked { self.marked } else { self.between }
    }

    fn bits(self, value: StretchLength) -> u64 {
        let parameter = self.of(value.is_marked);
        match value.value >> parameter {
            quotient @ 0..MOST_ONES => u64::from(quotient) + 1 + u64::from(parameter),
            _ => 2 * u64::from(MOST_ONES),
        }
    }
}

/// The length of a stretch, as it is coded.
#[derive(Clone, Copy)]
struct StretchLength {
    value: u32,
    is_marked: bool,
}

/// The marks of all blocks of a part, as writers find them, in memory that is reused.
#[derive(Default)]
pub(super) struct PlannedMarks {
    /// Marked stretches of all blocks, counted from the start of each.
    stretches: Vec<Range<usize>>,
    /// The number of elements of each block, and which of `stretches` are in it.
    blocks: Vec<(usize, Range<usize>)>,
}

impl PlannedMarks {
    pub(super) fn clear(&mut self) {
        self.stretches.clear();
        self.blocks.clear();
    }

    fn stretches_before(&self) -> usize {
        self.blocks.last().map_or(0, |(_, stretches)| stretches.end)
    }

    /// Marks elements of the block that ends next, behind those that are marked already.
    pub(super) fn mark(&mut self, elements: Range<usize>) {
        let before = self.stretches_before();
        let own = self.stretches.get_mut(before..).and_then(<[_]>::last_mut);
        match own.filter(|stretch| stretch.end == elements.start) {
            Some(stretch) => stretch.end = elements.end,
            None => self.stretches.push(elements),
        }
    }

    pub(super) fn end_block(&mut self, count: usize) {
        self.blocks.push((count, self.stretches_before()..self.stretches.len()));
    }

    fn lengths(&self, block: usize) -> impl Iterator<Item = StretchLength> {
        let (count, stretches) = self.blocks.get(block).cloned().unwrap_or_default();
        let marks = self.stretches.get(stretches).unwrap_or(&[]);
        let ends = marks.iter().flat_map(|mark| [mark.start, mark.end]);
        // the last stretch is marked if it ends where the block does
        let rest = (marks.last().is_none_or(|mark| mark.end < count)).then_some(count);
        let mut start = 0;
        ends.chain(rest).enumerate().map(move |(i, end)| {
            let length = end - start;
            start = end;
            // a block has fewer than 2^16 elements, and only the first stretch may be empty
            StretchLength { value: (length - usize::from(i > 0)) as u32, is_marked: i % 2 == 1 }
        })
    }

    pub(super) fn write(&self, parameters: RiceParameters, block: usize, stored: &mut Vec<u8>) {
        let mut bits = BitWriter::new(stored);
        for value in self.lengths(block) {
            let parameter = parameters.of(value.is_marked);
            let quotient = value.value >> parameter;
            if quotient < MOST_ONES {
                bits.push((1 << quotient) - 1, quotient + 1);
                bits.push(u64::from(value.value) & ((1 << parameter) - 1), parameter.into());
            } else {
                bits.push((1 << MOST_ONES) - 1, MOST_ONES);
                bits.push(value.value.into(), 16);
            }
        }
        bits.finish();
    }
}

/// The marked stretches of a block, in memory that is reused.
#[derive(Default)]
pub(crate) struct Marks {
    stretches: Vec<Range<u16>>,
    /// Elements that are not marked.
    pub others: usize,
}

impl Marks {
    /// Reads the marks of a block of `count` elements: of them. Returns the bytes after
    /// them.
    pub(super) fn read<'a>(&mut self, parameters: RiceParameters, count: usize, stored: &'a [u8]) -> Result<&'a [u8]> {
        self.stretches.clear();
        self.others = 0;
        let mut bits = BitReader::new(stored);
        let (mut i, mut is_marked, mut is_first) = (0_usize, false, true);
        loop {
            let length = bits.rice(parameters.of(is_marked)).ok_or_else(|| malformed_marks("a mark is too long"))?;
            let length = usize::from(length) + usize::from(!is_first);
            let end = i + length; // both below 2^17
            if end > count.min(limits::BLOCK_ELEMENTS) {
                return Err(malformed_marks("its marks go beyond its last element"));
            }
            if is_marked {
                memory::reserve(&mut self.stretches, 1)?;
                // exact: a block has fewer than 2^16 elements
                self.stretches.push(i as u16..end as u16);
            } else {
                self.others += length;
            }
            (i, is_marked, is_first) = (end, !is_marked, false);
            if i == count {
                break;
            }
        }
        bits.rest().ok_or_else(|| malformed_marks("it ends within marks, or bits that fill them up are not zero"))
    }

    pub(super) fn stretches(&self) -> impl Iterator<Item = Range<usize>> {
        self.stretches.iter().map(|stretch| stretch.start.into()..stretch.end.into())
    }

    /// Returns the number of elements before element `i` that are not marked.
    pub(crate) fn others_before(&self, i: usize) -> usize {
        let marked: usize =
            self.stretches().take_while(|stretch| stretch.start < i).map(|s| s.end.min(i) - s.start).sum();
        i - marked // at most `i` are marked
    }

    pub(super) fn marked(&self) -> usize {
        self.stretches().map(|stretch| stretch.len()).sum()
    }
}

/// A sequence of bits, in bytes. Bits beyond the last byte are zero.
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Returns the next 57 bits or more, and does not take them.
    fn peek(&self) -> u64 {
        let rest = self.bytes.get(self.position / 8..).unwrap_or(&[]);
        let word = rest.first_chunk().map_or_else(|| wide(rest).cast_unsigned(), |bytes| u64::from_le_bytes(*bytes));
        word >> (self.position % 8)
    }

    /// Takes the next bits, at most 57 of them.
    pub(super) fn take(&mut self, bits: u8) -> u64 {
        let taken = self.peek() & ((1 << bits) - 1);
        self.position += usize::from(bits); // a sequence is far shorter than memory
        taken
    }

    /// Takes a Golomb-Rice code; `None` if it is longer than it needs to be, or too great.
    fn rice(&mut self, parameter: u8) -> Option<u16> {
        // at most 32 bits, looked at once: a second look would wait for the first
        let word = self.peek();
        let ones = word.trailing_ones().min(MOST_ONES);
        if ones < MOST_ONES {
            let rest = (word >> (ones + 1)) & ((1 << parameter) - 1);
            self.position += ones as usize + 1 + usize::from(parameter); // at most 31
            return u16::try_from(u64::from(ones) << parameter | rest).ok();
        }
        let value = (word >> MOST_ONES) as u16; // the next 16 bits
        self.position += 2 * MOST_ONES as usize; // exact
        (u32::from(value) >> parameter >= MOST_ONES).then_some(value)
    }

    /// Returns the bytes after the sequence. `None` if it is longer than the bytes, or a bit that
    /// fills up is not zero.
    pub(super) fn rest(self) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(self.position.div_ceil(8))?;
        ends_in_zeros(taken, self.position).then_some(rest)
    }
}

/// Appends a sequence of bits.
pub(super) struct BitWriter<'a> {
    stored: &'a mut Vec<u8>,
    word: u64,
    used: u32,
}

impl<'a> BitWriter<'a> {
    pub(super) fn new(stored: &'a mut Vec<u8>) -> Self {
        Self { stored, word: 0, used: 0 }
    }

    /// Appends the lowest bits of a number that has no others, at most 56 of them.
    pub(super) fn push(&mut self, number: u64, bits: u32) {
        self.word |= number << self.used;
        self.used += bits;
        while self.used >= 8 {
            self.stored.push(self.word as u8); // the lowest byte
            self.word >>= 8;
            self.used -= 8;
        }
    }

    /// Appends the last bits. Zero bits fill up their byte.
    pub(super) fn finish(self) {
        if self.used > 0 {
            self.stored.push(self.word as u8); // at most seven bits
        }
    }
}
