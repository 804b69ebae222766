//! Finds palettes, as writers use them.

use super::numbers::{Numbers, blocks, signed, wide};
use super::palette::Palettes;
use crate::codec::geometry::Geometry;
use crate::codec::sampling::windows;
use crate::kernel::Width;

/// The most values of palettes. With more, the table takes what it saves.
const MOST_VALUES: usize = 4096;
/// The same of palettes by frequency, which save more.
const MOST_BY_FREQUENCY: usize = 16384;
/// Palettes have at most one value for this many elements; those by frequency, for a fourth of it.
const ELEMENTS_OF_VALUE: usize = 16;
/// The elements of a sample, and the most values among them.
const SAMPLE: usize = 4096;
const MOST_IN_SAMPLE: usize = 1024;
/// The same of elements of two bytes, of which noise has only a few hundred more than pixels.
const MOST_IN_SHORT_SAMPLE: usize = 640;
const MOST_IN_SAMPLE_BY_FREQUENCY: usize = 2048;
/// The slots of a table for each value that it may have.
const SLOTS_OF_VALUE: usize = 4;

/// The order of values in a palette.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::codec) enum PaletteOrder {
    /// Ascending: numbers are predicted as the elements are.
    ByValue,
    /// The most frequent first, by powers of two: for names, such as those of tokens. Equally
    /// frequent ones ascend, so that their steps are small.
    ByFrequency,
}

/// Palettes that are looked for.
#[derive(Clone, Copy, Debug)]
pub(in crate::codec) struct WantedPalettes<'a> {
    pub order: PaletteOrder,
    /// The number of palettes: element `i` of a block uses the one of `i` modulo that.
    pub count: usize,
    /// All elements that will have the palettes, and their geometry.
    pub geometry: &'a Geometry<'a>,
    pub elements: &'a [u8],
}

/// The values that occur, each with a number: open addressing.
struct ValueTable {
    /// The index of a value plus 1, for each used slot. A power of two.
    slots: Vec<u16>,
    /// In the order of their first elements.
    values: Vec<i64>,
    /// The elements that have each value.
    counts: Vec<u32>,
    /// The number of each value.
    numbers: Vec<u16>,
    /// The most values.
    most: usize,
    /// Whether each value has a slot of its own.
    is_direct: bool,
}

impl ValueTable {
    /// Makes a table for at most `most` values of elements of `width`, below 2^16.
    fn new(most: usize, width: Width) -> Self {
        let is_direct = width.bytes() <= 2;
        let slots = if is_direct { 1 << 16 } else { SLOTS_OF_VALUE * most.max(1).next_power_of_two() };
        Self { slots: vec![0; slots], values: Vec::new(), counts: Vec::new(), numbers: Vec::new(), most, is_direct }
    }

    fn start(&self, value: i64) -> usize {
        if self.is_direct {
            return usize::from(value as u16); // all of it
        }
        // Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4)
        let product = value.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (product >> (64 - self.slots.len().trailing_zeros())) as usize // below their number
    }

    /// Returns the index of a value; if the table has it not, the free slot where it belongs.
    fn find(&self, value: i64) -> Result<usize, usize> {
        let mut at = self.start(value);
        // ends: there are more slots than values
        while let Some(index) = self.slots.get(at).and_then(|slot| slot.checked_sub(1)) {
            if self.values.get(usize::from(index)) == Some(&value) {
                return Ok(index.into());
            }
            at = (at + 1) % self.slots.len();
        }
        Err(at)
    }

    /// Adds an element. Returns `false` if there are too many values.
    fn add(&mut self, value: i64) -> bool {
        match self.find(value) {
            Ok(index) => {
                if let Some(count) = self.counts.get_mut(index) {
                    *count += 1; // a part has fewer than 2^32 elements
                }
                true
            }
            Err(free) if self.values.len() < self.most => {
                self.values.push(value);
                self.counts.push(1);
                if let Some(slot) = self.slots.get_mut(free) {
                    *slot = self.values.len() as u16; // exact: at most `most`
                }
                true
            }
            Err(_) => false,
        }
    }

    /// Numbers the values. Returns them in this order.
    fn sort(&mut self, order: PaletteOrder, key: impl Fn(i64) -> i64) -> Vec<i64> {
        let rank = |index: &usize| {
            let value = self.values.get(*index).copied().unwrap_or(0);
            let octave = self.counts.get(*index).map_or(0, |count| count.leading_zeros());
            let octave = if order == PaletteOrder::ByFrequency { octave } else { 0 };
            (octave, key(value))
        };
        let mut sorted: Vec<usize> = (0..self.values.len()).collect();
        sorted.sort_unstable_by_key(rank);
        self.numbers.resize(sorted.len(), 0);
        for (number, &index) in (0..).zip(&sorted) {
            if let Some(to) = self.numbers.get_mut(index) {
                *to = number;
            }
        }
        sorted.into_iter().filter_map(|index| self.values.get(index).copied()).collect()
    }

    fn number(&self, value: i64) -> u16 {
        self.find(value).ok().and_then(|index| self.numbers.get(index).copied()).unwrap_or(0)
    }
}

/// Finds palettes, and sets the numbers to those of `raw`: all elements or a sample. Returns
/// `false` if the elements have too many values.
pub(in crate::codec) fn find_palettes(
    width: Width,
    geometry: &Geometry<'_>,
    wanted: WantedPalettes<'_>,
    raw: &[u8],
    numbers: &mut Numbers,
) -> bool {
    let w = width.bytes();
    let Some(mut tables) = tables(wanted, width) else { return false };
    let is_wide = tables.iter().any(|table| table.values.len() > 256);
    let mut palettes = Palettes::new(width, geometry.float, is_wide);
    let key = |value: i64| {
        let value = signed(value, w);
        if geometry.float && value < 0 { value ^ i64::MAX >> (64 - 8 * w) } else { value }
    };
    for table in &mut tables {
        let values = table.sort(wanted.order, key);
        palettes.values.extend(values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(w)));
        palettes.ends.push(palettes.values.len() / width.bytes());
    }
    let number_bytes = if is_wide { 2 } else { 1 };
    numbers.set_palettes(palettes, |numbers| {
        for (element, table) in blocks(geometry, raw).flat_map(|(_, elements)| elements.zip(tables.iter().cycle())) {
            numbers.extend(table.number(wide(element)).to_le_bytes().iter().take(number_bytes));
        }
    });
    true
}

/// Returns whether elements have so few values that palettes may pay.
pub(in crate::codec) fn may_have_palettes(
    order: PaletteOrder,
    geometry: &Geometry<'_>,
    width: Width,
    raw: &[u8],
) -> bool {
    let most = match (order, width) {
        (_, Width::W1) => return false, // they are short already
        // numbers would be as long, and floats have few bits besides noise
        (PaletteOrder::ByFrequency, Width::W2) if geometry.float => return false,
        (PaletteOrder::ByValue, Width::W2) => MOST_IN_SHORT_SAMPLE,
        (PaletteOrder::ByValue, _) => MOST_IN_SAMPLE,
        (PaletteOrder::ByFrequency, _) => MOST_IN_SAMPLE_BY_FREQUENCY,
    };
    let mut table = ValueTable::new(most, width);
    let count = raw.len() / width.bytes();
    let sampled = windows(count, 256).flat_map(|window| {
        raw.get(window.start * width.bytes()..window.end * width.bytes()).unwrap_or(&[]).chunks_exact(width.bytes())
    });
    sampled.take(SAMPLE).all(|element| table.add(wide(element)))
}

/// Returns the values of each palette; `None` if there are too many.
fn tables(wanted: WantedPalettes<'_>, width: Width) -> Option<Vec<ValueTable>> {
    let WantedPalettes { order, count, geometry, elements } = wanted;
    let (most, elements_of_value) = match order {
        PaletteOrder::ByValue => (MOST_VALUES, ELEMENTS_OF_VALUE),
        PaletteOrder::ByFrequency => (MOST_BY_FREQUENCY, ELEMENTS_OF_VALUE / 4),
    };
    let most = most.min(elements.len() / width.bytes() / elements_of_value);
    let mut tables: Vec<ValueTable> = (0..count).map(|_| ValueTable::new(most, width)).collect();
    for (_, elements) in blocks(geometry, elements) {
        // not a division for each
        for (place, table) in tables.iter_mut().enumerate() {
            if !elements.clone().skip(place).step_by(count.max(1)).all(|element| table.add(wide(element))) {
                return None;
            }
        }
    }
    let values: usize = tables.iter().map(|table| table.values.len()).sum();
    (values <= most && tables.iter().all(|table| !table.values.is_empty())).then_some(tables)
}
