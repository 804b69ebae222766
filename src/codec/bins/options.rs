//! Options of bins (chapter 5.15) that change which elements are coded, and the marks that record
//! their positions.
//!
//! *Gaps* are elements that equal one filler, such as missing values, zeros of a sparse tensor and
//! pauses of a recording. If they were coded with the other elements, they would break prediction
//! on both sides of each stretch. Instead, only their positions are stored, and bins code the
//! remaining elements as if they were contiguous. The filler of a part is the value that most often
//! equals the element before it.
//!
//! *Outliers* are coded integers with bits above the window, which is the two bytes that bins code.
//! If a few integers are much longer than the others, the window covers the shorter integers, and
//! the upper bits of the longer integers are stored with their positions. Writers estimate the cost
//! of each window position from the bit lengths of all integers. *Filters* are in `filters.rs`.
//!
//! The positions of gaps and outliers are [`Marks`]: alternating stretches of unmarked and marked
//! elements, starting with an unmarked stretch. Each length is a Golomb-Rice code (R. F. Rice,
//! 1979), with one parameter for each kind of stretch. Only the first stretch may be empty, so the
//! other lengths are stored minus one, and each set of marks has exactly one stored form. A code
//! has at most 32 bits, so a reader can load it at once.

use super::filters::Filters;
use super::{cut, malformed_marks, malformed_option};
use crate::bytes::le::Fields;
use crate::bytes::memory;
use crate::codec::{
    bits::{ends_in_zeros, wide, with_width},
    choice::{Search, Technique},
    part::Geometry,
    transform::Transform,
};
use crate::kernel::Width;
use crate::{Result, limits};
use std::ops::Range;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub gaps: Option<Gaps>,
    pub outliers: Option<Outliers>,
    pub filters: Option<Filters>,
}

// The bits of the field `mapping`.
const GAPS: u8 = 16;
const OUTLIERS: u8 = 32;
const FILTERS: u8 = 64;

impl Options {
    /// Splits the field `mapping` into the mapping and the options.
    pub(super) fn split(mapping: u8) -> (u8, u8) {
        (mapping & 15, mapping & !15)
    }

    pub(super) fn are_known(bits: u8) -> bool {
        bits & !(GAPS | OUTLIERS | FILTERS) == 0
    }

    pub(super) fn bits(&self) -> u8 {
        let Self { gaps, outliers, filters } = self;
        let all = [(GAPS, gaps.is_some()), (OUTLIERS, outliers.is_some()), (FILTERS, filters.is_some())];
        all.into_iter().filter(|(_, is_set)| *is_set).map(|(bit, _)| bit).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bits() == 0
    }

    /// Parses the fields of the options that are set, and checks except where it depends on
    /// the numbers.
    pub(super) fn parse(bits: u8, width: Width, fields: &mut Fields<'_>) -> Result<Self> {
        let mut options = Self::default();
        if bits & GAPS != 0 {
            options.gaps = Some(Gaps::parse(width, fields)?);
        }
        if bits & OUTLIERS != 0 {
            options.outliers = Some(Outliers::parse(fields)?);
        }
        if bits & FILTERS != 0 {
            options.filters = Some(Filters::parse(fields)?);
        }
        Ok(options)
    }

    /// Checks the conditions of that depend on the numbers.
    pub(super) fn check_numbers(&self, number_width: Width, low_bytes: usize, transform: Transform) -> Result<()> {
        let max = (8 * number_width.bytes()).saturating_sub(8 * low_bytes + 16);
        if let Some(outliers) = self.outliers
            && usize::from(outliers.upper_bits) > max
        {
            return Err(malformed_option(&format!("upper_bits is {}; at most {max} fit", outliers.upper_bits)));
        }
        self.filters.map_or(Ok(()), |filters| filters.check_numbers(number_width, transform))
    }

    pub(super) fn write(&self, width: Width, tables: &mut Vec<u8>) {
        if let Some(gaps) = self.gaps {
            gaps.write(width, tables);
        }
        if let Some(outliers) = self.outliers {
            outliers.write(tables);
        }
        if let Some(filters) = self.filters {
            filters.write(tables);
        }
    }

    /// Describes the options in words, each followed by a semicolon.
    pub(crate) fn describe(&self) -> String {
        let gaps = self.gaps.map(|_| "gaps; ".to_owned());
        let outliers = self.outliers.map(|outliers| format!("outliers with {} upper bits; ", outliers.upper_bits));
        let filters = self.filters.map(|filters| filters.describe());
        [gaps, outliers, filters].into_iter().flatten().collect()
    }
}

// ---- gaps

/// Chapter 5.15: the fields of *gaps*.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gaps {
    /// The filler. It is as long as an element; the other bytes are zero.
    pub(super) filler: [u8; 8],
    pub(super) parameters: RiceParameters,
}

impl Gaps {
    /// Parses the fields, and checks.
    pub(super) fn parse(width: Width, fields: &mut Fields<'_>) -> Result<Self> {
        let filler = wide(fields.bytes(width.bytes()).ok_or_else(cut)?).to_le_bytes();
        Ok(Self { filler, parameters: RiceParameters::parse(fields)? })
    }

    pub(super) fn write(&self, width: Width, tables: &mut Vec<u8>) {
        tables.extend(self.filler.iter().take(width.bytes()));
        self.parameters.write(tables);
    }

    /// Reads the gaps of a block. Returns the bytes after them.
    pub(crate) fn read<'a>(&self, count: usize, stored: &'a [u8], marks: &mut Marks) -> Result<&'a [u8]> {
        marks.read(self.parameters, count, stored)
    }

    /// Writes the elements of a range of a block to `out`. `present` has the elements of the range
    /// outside gaps.
    pub(crate) fn spread(&self, width: Width, marks: &Marks, range: &Range<usize>, present: &[u8], out: &mut [u8]) {
        with_width!(width, W => self.spread_as::<W>(marks, range, present, out));
    }

    fn spread_as<const W: usize>(&self, marks: &Marks, range: &Range<usize>, present: &[u8], out: &mut [u8]) {
        let filler: [u8; W] = std::array::from_fn(|byte| self.filler.get(byte).copied().unwrap_or(0));
        let mut present = present.as_chunks().0;
        let mut out = out.as_chunks_mut::<W>().0;
        let mut at = range.start;
        let mut copy = |out: &mut &mut [[u8; W]], count: usize| {
            let from = present.split_off(..count.min(present.len())).unwrap_or_default();
            let to = out.split_off_mut(..count.min(out.len())).unwrap_or_default();
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        };
        for stretch in marks.stretches().filter(|stretch| stretch.end > range.start) {
            let (start, end) = (stretch.start.max(at).min(range.end), stretch.end.min(range.end));
            copy(&mut out, start - at);
            if start >= end {
                return;
            }
            let gap = out.split_off_mut(..(end - start).min(out.len())).unwrap_or_default();
            gap.fill(filler);
            at = end;
        }
        copy(&mut out, range.end - at);
    }
}

/// At least one in this many elements equals the filler.
const MAX_ELEMENTS_PER_FILLER: usize = 32;

/// The elements of a part outside gaps, in memory that is reused.
#[derive(Default)]
pub(crate) struct Present {
    /// `None` if all elements are coded. The other fields then have no meaning.
    pub gaps: Option<Gaps>,
    pub bytes: Vec<u8>,
    /// The element at which each block ends.
    ends: Vec<u32>,
    marks: MarkPlan,
}

impl Present {
    /// Finds a filler that comes in stretches, and the elements that differ from it. Returns
    /// whether there is such a filler.
    pub(crate) fn find(&mut self, width: Width, geometry: &Geometry<'_>, raw: &[u8]) -> bool {
        self.gaps = None;
        with_width!(width, W => self.find_as::<W>(geometry, raw))
    }

    fn find_as<const W: usize>(&mut self, geometry: &Geometry<'_>, raw: &[u8]) -> bool {
        let Some(filler) = find_filler(raw.as_chunks::<W>().0) else { return false };
        self.bytes.clear();
        self.ends.clear();
        self.marks.clear();
        for block in geometry.blocks_of(raw) {
            let elements = block.as_chunks::<W>().0;
            let mut at = 0;
            for stretch in elements.chunk_by(|a, b| (*a == filler) == (*b == filler)) {
                match stretch.first() == Some(&filler) {
                    true => self.marks.mark(at..at + stretch.len()),
                    false => self.bytes.extend_from_slice(stretch.as_flattened()),
                }
                at += stretch.len();
            }
            self.marks.end_block(elements.len());
            self.ends.push((self.bytes.len() / W) as u32); // a part has fewer than 2^32 elements
        }
        let parameters = RiceParameters::best(&self.marks);
        self.gaps = Some(Gaps { filler: wide(&filler).to_le_bytes(), parameters });
        true
    }

    /// Returns the geometry of the remaining elements, which have no rows.
    pub(crate) fn geometry<'a>(&'a self, all: &Geometry<'_>) -> Geometry<'a> {
        Geometry { restart: u32::MAX, strides: [0; 2], blocks: &self.ends, ..*all }
    }

    pub(crate) fn mark_bytes(&self) -> usize {
        let mut stored = Vec::new();
        (0..self.ends.len()).for_each(|block| self.append_marks(block, &mut stored));
        stored.len()
    }

    /// Appends the gaps of a block, if there are gaps.
    pub(crate) fn append_marks(&self, block: usize, stored: &mut Vec<u8>) {
        if let Some(gaps) = self.gaps {
            self.marks.write(gaps.parameters, block, stored);
        }
    }

    pub(crate) fn of_block(&self, block: usize) -> Range<usize> {
        // exact: a `usize` has at least 32 bits
        let end = |block: usize| self.ends.get(block).map_or(0, |&end| end as usize);
        block.checked_sub(1).map_or(0, end)..end(block)
    }
}

/// Returns the value that comes in stretches most often, if it is frequent enough. The majority
/// vote of R. S. Boyer and J. S. Moore (1981) finds it among the elements that equal the element
/// before them.
fn find_filler<const W: usize>(elements: &[[u8; W]]) -> Option<[u8; W]> {
    let mut vote = (None, 0_usize);
    for (before, element) in elements.iter().zip(elements.iter().skip(1)) {
        if before != element {
            continue;
        }
        vote = match vote {
            (_, 0) => (Some(*element), 1),
            (filler, votes) if filler == Some(*element) => (filler, votes + 1),
            (filler, votes) => (filler, votes - 1),
        };
    }
    let filler = vote.0?;
    let found = elements.iter().filter(|element| **element == filler).count();
    (found * MAX_ELEMENTS_PER_FILLER >= elements.len() && found < elements.len()).then_some(filler)
}

// ---- outliers

/// Chapter 5.15: the fields of *outliers*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outliers {
    /// The number of bits of each outlier above the window.
    pub upper_bits: u8,
    pub(super) parameters: RiceParameters,
}

/// The maximum number of bits above a window.
const MAX_UPPER_BITS: u8 = 48;

impl Outliers {
    /// Parses the fields, and checks except for the maximum of `upper_bits`, which depends
    /// on the numbers.
    pub(super) fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        let [upper_bits] = fields.array().ok_or_else(cut)?;
        let parameters = RiceParameters::parse(fields)?;
        match (1..=MAX_UPPER_BITS).contains(&upper_bits) {
            true => Ok(Self { upper_bits, parameters }),
            false => Err(malformed_option(&format!("upper_bits is {upper_bits}; it must be 1 to {MAX_UPPER_BITS}"))),
        }
    }

    pub(super) fn write(&self, tables: &mut Vec<u8>) {
        tables.push(self.upper_bits);
        self.parameters.write(tables);
    }

    /// Splits the outliers of a block of `count` integers from the bytes after them.
    pub(crate) fn split<'a>(&self, count: usize, stored: &'a [u8], marks: &'a mut Marks) -> Result<OutlierBlock<'a>> {
        let after_marks = marks.read(self.parameters, count, stored)?;
        // no overflow: fewer than 2^16 outliers of at most 48 bits
        let bits = marks.marked() * usize::from(self.upper_bits);
        let split = after_marks.split_at_checked(bits.div_ceil(8));
        let (uppers, bins) = split.ok_or_else(|| malformed_marks("it ends within the upper bits of its outliers"))?;
        if !ends_in_zeros(uppers, bits) {
            return Err(malformed_marks("padding bits after the upper bits of outliers are not zero"));
        }
        Ok(OutlierBlock { upper_bits: self.upper_bits, marks, uppers, bins })
    }
}

pub(crate) struct OutlierBlock<'a> {
    upper_bits: u8,
    marks: &'a Marks,
    uppers: &'a [u8],
    /// The bytes after the outliers.
    pub bins: &'a [u8],
}

impl OutlierBlock<'_> {
    /// Adds the bits above the window to the first integers of the block.
    pub(crate) fn add(&self, width: Width, low_bytes: usize, integers: &mut [u8]) {
        match width {
            Width::W1 | Width::W2 => {} // no bits above the window
            Width::W4 => self.add_to::<4>(low_bytes, integers),
            Width::W8 => self.add_to::<8>(low_bytes, integers),
        }
    }

    fn add_to<const W: usize>(&self, low_bytes: usize, integers: &mut [u8]) {
        let integers = integers.as_chunks_mut::<W>().0;
        let mut uppers = BitReader::new(self.uppers);
        for i in self.marks.stretches().flatten() {
            let Some(integer) = integers.get_mut(i) else { return };
            let upper = uppers.take(self.upper_bits).to_le_bytes();
            integer.iter_mut().skip(low_bytes + 2).zip(upper).for_each(|(to, upper)| *to |= upper);
        }
    }
}

const WINDOW_BITS: usize = 16;
/// The approximate size of the position of an outlier, in bits, in addition to the logarithm of its
/// rarity.
const MARK_BITS: f64 = 2.0;
/// The approximate number of bits below the highest one bit that the bin of an integer determines.
const BIN_PREFIX_BITS: usize = 2;

/// Returns the number of bytes below the window for which the integers need the fewest bits. Also
/// returns how many bits they need then, without the cost of coding bins. `counts` has the number
/// of integers of each bit length.
pub(crate) fn choose_low_bytes(counts: &[u32], search: Search) -> (usize, f64) {
    let longest = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
    let max = longest.saturating_sub(WINDOW_BITS).div_ceil(8);
    let bits = |low_bytes: usize| {
        let top = 8 * low_bytes + WINDOW_BITS;
        let offset = |length: usize| length.saturating_sub(1 + BIN_PREFIX_BITS).max(8 * low_bytes) as f64;
        let offsets: f64 = counts.iter().enumerate().map(|(length, &count)| offset(length) * f64::from(count)).sum();
        let all: f64 = counts.iter().map(|&count| f64::from(count)).sum();
        let outliers: f64 = counts.iter().skip(top + 1).map(|&count| f64::from(count)).sum();
        let marks = if outliers > 0.0 { outliers * ((all / outliers).log2() + MARK_BITS) } else { 0.0 };
        // all uppers are as long as the longest one
        let uppers = outliers * longest.saturating_sub(top) as f64;
        let above_window: f64 =
            counts.iter().enumerate().skip(top + 1).map(|(length, &n)| (length - top) as f64 * f64::from(n)).sum();
        (low_bytes, offsets - above_window + marks + uppers)
    };
    let min = if search.has(Technique::Outliers) { 0 } else { max };
    (min..=max).map(bits).min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((max, 0.0))
}

/// The outliers of a part, in memory that is reused.
#[derive(Default)]
pub(crate) struct OutlierPlan {
    /// `None` if there are no outliers. The other fields then have no meaning.
    pub outliers: Option<Outliers>,
    marks: MarkPlan,
    /// The bits of each outlier above the window.
    uppers: Vec<u64>,
    /// The number of outliers up to the end of each block.
    ends: Vec<usize>,
}

impl OutlierPlan {
    pub(crate) fn clear(&mut self) {
        self.outliers = None;
        self.marks.clear();
        self.uppers.clear();
        self.ends.clear();
    }

    /// Adds a block of `count` elements. `upper` returns the bits of an element above the window.
    pub(crate) fn add_block(&mut self, count: usize, upper: impl Fn(usize) -> u64) {
        for (i, upper) in (0..count).map(|i| (i, upper(i))).filter(|(_, upper)| *upper != 0) {
            self.uppers.push(upper);
            self.marks.mark(i..i + 1);
        }
        self.marks.end_block(count);
        self.ends.push(self.uppers.len());
    }

    /// Completes the plan after all blocks have been added.
    pub(crate) fn finish(&mut self) {
        let all = self.uppers.iter().fold(0, |all, &upper| all | upper);
        let upper_bits = (u64::BITS - all.leading_zeros()) as u8; // at most 64
        let parameters = || RiceParameters::best(&self.marks);
        self.outliers = (upper_bits > 0).then(|| Outliers { upper_bits, parameters: parameters() });
    }

    /// Appends the outliers of a block, if the part has outliers.
    pub(crate) fn append(&self, block: usize, stored: &mut Vec<u8>) {
        let Some(outliers) = self.outliers else { return };
        self.marks.write(outliers.parameters, block, stored);
        let end = |block: usize| self.ends.get(block).copied().unwrap_or(0);
        let uppers = self.uppers.get(block.checked_sub(1).map_or(0, end)..end(block));
        let mut bits = BitWriter::new(stored);
        for &upper in uppers.unwrap_or(&[]) {
            bits.push(upper, outliers.upper_bits.into());
        }
        bits.finish();
    }
}

// ---- marks

/// The maximum number of one bits at the start of a coded length.
const MAX_ONES: u32 = 16;
const MAX_RICE_PARAMETER: u8 = 15;

/// The Rice parameters of marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RiceParameters {
    unmarked: u8,
    marked: u8,
}

impl RiceParameters {
    pub(super) fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        let [unmarked, marked] = fields.array().ok_or_else(cut)?;
        match unmarked.max(marked) <= MAX_RICE_PARAMETER {
            true => Ok(Self { unmarked, marked }),
            false => Err(malformed_option("a Rice parameter is above 15")),
        }
    }

    pub(super) fn write(self, tables: &mut Vec<u8>) {
        tables.extend(self.to_bytes());
    }

    /// Returns the parameters of unmarked and marked stretches.
    pub(super) fn to_bytes(self) -> [u8; 2] {
        [self.unmarked, self.marked]
    }

    /// Returns the parameters with which marks need the fewest bits.
    pub(super) fn best(marks: &MarkPlan) -> Self {
        let best = |is_marked: bool| {
            let all = || (0..marks.blocks.len()).flat_map(|block| marks.lengths(block));
            let lengths = || all().filter(move |length| length.is_marked == is_marked);
            let sum: u64 = lengths().map(|length| u64::from(length.value)).sum();
            let mean = sum.checked_div(lengths().map(|_| 1).sum()).unwrap_or(0);
            // the best parameter is near the logarithm of the mean (Golomb, 1966)
            let near = mean.checked_ilog2().unwrap_or(0).min(MAX_RICE_PARAMETER.into()) as u8; // exact
            let bits = |&parameter: &u8| -> u64 {
                let parameters = Self { unmarked: parameter, marked: parameter };
                lengths().map(|length| parameters.bits(length)).sum()
            };
            (near.saturating_sub(2)..=(near + 1).min(MAX_RICE_PARAMETER)).min_by_key(bits).unwrap_or(0)
        };
        Self { unmarked: best(false), marked: best(true) }
    }

    fn of(self, is_marked: bool) -> u8 {
        if is_marked { self.marked } else { self.unmarked }
    }

    fn bits(self, value: StretchLength) -> u64 {
        let parameter = self.of(value.is_marked);
        match value.value >> parameter {
            quotient @ 0..MAX_ONES => u64::from(quotient) + 1 + u64::from(parameter),
            _ => 2 * u64::from(MAX_ONES),
        }
    }
}

/// The coded length of a stretch.
#[derive(Clone, Copy)]
struct StretchLength {
    value: u32,
    is_marked: bool,
}

/// The marks of all blocks of a part, as writers find them, in memory that is reused.
#[derive(Default)]
pub(super) struct MarkPlan {
    /// The marked stretches of all blocks. Positions are relative to the start of their block.
    stretches: Vec<Range<usize>>,
    /// The number of elements of each block, and the range of its entries in `stretches`.
    blocks: Vec<(usize, Range<usize>)>,
}

impl MarkPlan {
    pub(super) fn clear(&mut self) {
        self.stretches.clear();
        self.blocks.clear();
    }

    fn stretches_before(&self) -> usize {
        self.blocks.last().map_or(0, |(_, stretches)| stretches.end)
    }

    /// Marks elements of the current block. They must follow the elements that are already marked.
    pub(super) fn mark(&mut self, elements: Range<usize>) {
        let before = self.stretches_before();
        let last = self.stretches.get_mut(before..).and_then(<[_]>::last_mut);
        match last.filter(|stretch| stretch.end == elements.start) {
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
        // an unmarked stretch follows, unless the last mark ends with the block
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
            if quotient < MAX_ONES {
                bits.push((1 << quotient) - 1, quotient + 1);
                bits.push(u64::from(value.value) & ((1 << parameter) - 1), parameter.into());
            } else {
                bits.push((1 << MAX_ONES) - 1, MAX_ONES);
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
    /// The number of elements that are not marked.
    pub unmarked_count: usize,
}

impl Marks {
    /// Reads the marks of a block of `count` elements, and checks. Returns the bytes after
    /// the marks.
    pub(super) fn read<'a>(&mut self, parameters: RiceParameters, count: usize, stored: &'a [u8]) -> Result<&'a [u8]> {
        self.stretches.clear();
        self.unmarked_count = 0;
        let mut bits = BitReader::new(stored);
        let (mut i, mut is_marked, mut is_first) = (0_usize, false, true);
        loop {
            let length = bits
                .rice(parameters.of(is_marked))
                .ok_or_else(|| malformed_marks("the length code of a stretch is invalid"))?;
            let length = usize::from(length) + usize::from(!is_first);
            let end = i + length; // no overflow: both are below 2^17
            if end > count.min(limits::BLOCK_ELEMENTS) {
                return Err(malformed_marks("its marks go beyond its last element"));
            }
            if is_marked {
                memory::reserve(&mut self.stretches, 1)?;
                // exact: a block has fewer than 2^16 elements
                self.stretches.push(i as u16..end as u16);
            } else {
                self.unmarked_count += length;
            }
            (i, is_marked, is_first) = (end, !is_marked, false);
            if i == count {
                break;
            }
        }
        bits.rest().ok_or_else(|| malformed_marks("it ends within marks, or padding bits of marks are not zero"))
    }

    pub(super) fn stretches(&self) -> impl Iterator<Item = Range<usize>> {
        self.stretches.iter().map(|stretch| stretch.start.into()..stretch.end.into())
    }

    /// Returns the number of elements before element `i` that are not marked.
    pub(crate) fn unmarked_before(&self, i: usize) -> usize {
        let marked: usize =
            self.stretches().take_while(|stretch| stretch.start < i).map(|s| s.end.min(i) - s.start).sum();
        i - marked // at most `i` are marked
    }

    pub(super) fn marked(&self) -> usize {
        self.stretches().map(|stretch| stretch.len()).sum()
    }
}

/// Reads a sequence of bits. Bits beyond the last byte are zero.
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Returns at least the next 57 bits without consuming them.
    fn peek(&self) -> u64 {
        let rest = self.bytes.get(self.position / 8..).unwrap_or(&[]);
        let word = rest.first_chunk().map_or_else(|| wide(rest).cast_unsigned(), |bytes| u64::from_le_bytes(*bytes));
        word >> (self.position % 8)
    }

    /// Takes the next bits, at most 57 of them.
    pub(super) fn take(&mut self, bits: u8) -> u64 {
        let taken = self.peek() & ((1 << bits) - 1);
        self.position += usize::from(bits); // no overflow: a sequence is short
        taken
    }

    /// Takes a Golomb-Rice code; `None` if it is longer than necessary, or too large.
    fn rice(&mut self, parameter: u8) -> Option<u16> {
        // at most 32 bits, loaded once: a second load would wait for the first code
        let word = self.peek();
        let ones = word.trailing_ones().min(MAX_ONES);
        if ones < MAX_ONES {
            let rest = (word >> (ones + 1)) & ((1 << parameter) - 1);
            self.position += ones as usize + 1 + usize::from(parameter); // at most 31
            return u16::try_from(u64::from(ones) << parameter | rest).ok();
        }
        let value = (word >> MAX_ONES) as u16; // the next 16 bits
        self.position += 2 * MAX_ONES as usize; // exact
        (u32::from(value) >> parameter >= MAX_ONES).then_some(value)
    }

    /// Returns the bytes after the sequence; `None` if there are too few bytes, or if a padding bit
    /// is not zero.
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

    /// Appends the lowest `bits` bits of a number, whose other bits must be zero. `bits` is at most
    /// 56.
    pub(super) fn push(&mut self, number: u64, bits: u32) {
        self.word |= number << self.used;
        self.used += bits;
        while self.used >= 8 {
            self.stored.push(self.word as u8); // the lowest byte
            self.word >>= 8;
            self.used -= 8;
        }
    }

    /// Appends the last bits, padded with zero bits.
    pub(super) fn finish(self) {
        if self.used > 0 {
            self.stored.push(self.word as u8); // at most seven bits
        }
    }
}
