//! The options of bins, as far as they tell where the sections of a block are (chapter 5.15). Read
//! from the specification alone, without the code of the crate.

use super::regions::number;

const GAPS: u8 = 16;
const OUTLIERS: u8 = 32;
const TRANSPOSED: u8 = 64;

/// The parameters of marks.
type Parameters = [u8; 2];

/// The options of a part. Rows that are transposed move no section.
#[derive(Default)]
pub struct Options {
    gaps: Option<Parameters>,
    /// With the bits of an upper.
    outliers: Option<(u8, Parameters)>,
}

impl Options {
    /// Splits the byte `mapping` into the mapping and the options.
    pub fn split(mapping: u8) -> (u8, u8) {
        (mapping & 15, mapping & !15)
    }

    /// Reads the fields of options from the end of the tables, where they are: before them, the
    /// fields of a palette would have to be decoded to know where these end.
    pub fn new(bits: u8, element_bytes: usize, tables: &[u8]) -> Option<Self> {
        let mut tables = tables;
        let mut take_last = |bytes: usize| {
            let (rest, last) = tables.split_at_checked(tables.len().checked_sub(bytes)?)?;
            tables = rest;
            Some(last)
        };
        let mut options = Self::default();
        if bits & TRANSPOSED != 0 {
            take_last(4)?;
        }
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

    /// Skips the gap marks of a block of `count` elements. Returns how many are no gaps.
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
}

/// Skips the marks of `count` elements. Returns how many are marked.
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
    /// Takes at most 16 bits, the lowest first.
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
