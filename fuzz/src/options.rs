//! Parses the options of bins (chapter 5.15), as far as they determine the sections of a block.
//!
//! Written from the specification, not from the decoder, so that both do not share an error. The
//! fields of options are at the end of the tables, after fields of variable length, and are
//! therefore parsed backwards. With filters this is ambiguous: only the start of their fields
//! states the length. [`Options::all`] returns every possible reading.

use super::regions::number;

const GAPS: u8 = 16;
const OUTLIERS: u8 = 32;
const FILTERS: u8 = 64;
/// No option has this bit.
pub const UNKNOWN: u8 = 128;

/// The Rice parameters of unmarked and of marked stretches.
type Parameters = [u8; 2];

/// The fields of filters.
pub struct Filters {
    pub taps: usize,
    pub count: usize,
    pub restart: u16,
    pub zero: u16,
    /// The coefficients of all filters, one filter after the other.
    pub coefficients: Vec<i16>,
}

/// The size of the filter fields before the coefficients.
const FILTERS_HEADER_BYTES: usize = 6;
/// The numbers in a segment.
const SEGMENT: usize = 128;

impl Filters {
    /// Returns all filter fields with which the tables may end. Only the start of the fields states
    /// their length, so coefficients may look like fields.
    fn all(tables: &[u8]) -> Vec<Self> {
        let sizes = (1..=16).flat_map(|taps| (1..=16).map(move |count| (taps, count)));
        sizes.filter_map(|(taps, count)| Self::of_size(taps, count, tables)).collect()
    }

    fn of_size(taps: usize, count: usize, tables: &[u8]) -> Option<Self> {
        let fields = tables.get(tables.len().checked_sub(FILTERS_HEADER_BYTES + 2 * taps * count)?..)?;
        let (header, coefficients) = fields.split_at(FILTERS_HEADER_BYTES);
        let [restart, zero] = [2, 4].map(|at| number(header, at, 2) as u16);
        let coefficients = coefficients.chunks_exact(2).map(|two| i16::from_le_bytes([two[0], two[1]])).collect();
        let is_size = [usize::from(header[0]), usize::from(header[1])] == [taps, count];
        (is_size && restart > 0).then_some(Self { taps, count, restart, zero, coefficients })
    }

    fn bytes(&self) -> usize {
        FILTERS_HEADER_BYTES + 2 * self.coefficients.len()
    }
}

/// The options of a part.
#[derive(Default)]
pub struct Options {
    gaps: Option<Parameters>,
    /// The bits of an upper, and the Rice parameters of outlier marks.
    outliers: Option<(u8, Parameters)>,
    pub filters: Option<Filters>,
}

/// Returns the size in bits of a code for `count` classes or filters.
pub fn code_bits(count: usize) -> usize {
    match count {
        0..=1 => 0,
        2 => 1,
        3..=4 => 2,
        _ => 4,
    }
}

/// Returns code `i` of a sequence; 0 after its end.
pub fn code(codes: &[u8], bits: usize, i: usize) -> u8 {
    let at = bits * i;
    codes.get(at / 8).map_or(0, |byte| byte >> (at % 8) & ((1 << bits) - 1))
}

impl Options {
    /// Splits the byte `mapping` into the mapping and the options.
    pub fn split(mapping: u8) -> (u8, u8) {
        (mapping & 15, mapping & !15)
    }

    /// Parses the fields of all options from the end of the tables. From the start, the dictionary
    /// before them would have to be decoded to find its end. With filters, there may be several
    /// results.
    pub fn all(bits: u8, element_bytes: usize, tables: &[u8]) -> Vec<Self> {
        if bits & FILTERS == 0 {
            return Self::new(bits, element_bytes, tables).into_iter().collect();
        }
        let with_filters = |filters: Filters| {
            let before = &tables[..tables.len() - filters.bytes()];
            let others = Self::new(bits, element_bytes, before)?;
            Some(Self { filters: Some(filters), ..others })
        };
        Filters::all(tables).into_iter().filter_map(with_filters).collect()
    }

    /// Parses the fields of all options except filters.
    fn new(bits: u8, element_bytes: usize, tables: &[u8]) -> Option<Self> {
        let mut tables = tables;
        let mut take_last = |bytes: usize| {
            let (rest, last) = tables.split_at_checked(tables.len().checked_sub(bytes)?)?;
            tables = rest;
            Some(last)
        };
        let mut options = Self::default();
        if bits & OUTLIERS != 0 {
            let fields = take_last(3)?;
            options.outliers = Some((fields[0], [fields[1], fields[2]]));
        }
        if bits & GAPS != 0 {
            let fields = take_last(element_bytes + 2)?;
            options.gaps = Some([fields[element_bytes], fields[element_bytes + 1]]);
        }
        let parameters = options.gaps.into_iter().chain(options.outliers.map(|(_, parameters)| parameters));
        let are_valid = parameters.flatten().all(|parameter| parameter <= 15);
        are_valid.then_some(options)
    }

    /// Skips the gap marks of a block of `count` elements. Returns the number of elements outside
    /// gaps.
    pub fn skip_gaps(&self, count: usize, block: &mut &[u8]) -> Option<usize> {
        let Some(parameters) = self.gaps else { return Some(count) };
        skip_marks(parameters, count, block).map(|marked| count - marked)
    }

    /// Skips the outlier marks and the uppers of `count` elements.
    pub fn skip_outliers(&self, count: usize, block: &mut &[u8]) -> Option<()> {
        let Some((upper_bits, parameters)) = self.outliers else { return Some(()) };
        let marked = skip_marks(parameters, count, block)?;
        *block = block.get((usize::from(upper_bits) * marked).div_ceil(8)..)?;
        Some(())
    }

    /// Skips the filter codes of `count` elements. Returns them, one per byte.
    pub fn skip_filters(&self, count: usize, block: &mut &[u8]) -> Option<Vec<u8>> {
        let Some(filters) = &self.filters else { return Some(Vec::new()) };
        let (bits, segments) = (code_bits(filters.count), count.div_ceil(SEGMENT));
        let (codes, rest) = block.split_at_checked((bits * segments).div_ceil(8))?;
        *block = rest;
        Some((0..segments).map(|segment| code(codes, bits, segment)).collect())
    }
}

/// Skips the marks of `count` elements. Returns the number of marked elements.
fn skip_marks(parameters: Parameters, count: usize, block: &mut &[u8]) -> Option<usize> {
    let mut bits = Bits { bytes: block, taken: 0 };
    let (mut i, mut marked, mut is_marked) = (0, 0, false);
    for stretch in 0.. {
        let parameter = usize::from(parameters[usize::from(is_marked)]);
        let mut quotient = 0;
        while quotient < 16 && bits.take(1)? == 1 {
            quotient += 1;
        }
        let value = match quotient {
            16 => Some(bits.take(16)?).filter(|value| value >> parameter >= 16)?,
            _ => quotient << parameter | bits.take(parameter)?,
        };
        let length = if stretch == 0 { value } else { value + 1 };
        i += length;
        marked += if is_marked { length } else { 0 };
        is_marked = !is_marked;
        if i >= count {
            break;
        }
    }
    *block = block.get(bits.taken.div_ceil(8)..)?;
    (i == count).then_some(marked)
}

/// A sequence of bits.
struct Bits<'a> {
    bytes: &'a [u8],
    taken: usize,
}

impl Bits<'_> {
    /// Takes `count` bits, at most 16, the lowest first.
    fn take(&mut self, count: usize) -> Option<usize> {
        if count == 0 {
            return Some(0);
        }
        let bytes = self.bytes.get(self.taken / 8..(self.taken + count).div_ceil(8))?;
        let found = number(bytes, 0, bytes.len()) as usize >> (self.taken % 8) & ((1 << count) - 1);
        self.taken += count;
        Some(found)
    }
}
