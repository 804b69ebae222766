//! Finds palettes, as writers use them.

use super::numbers::{Numbers, blocks_of, signed, wide_of};
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
/// Values of two bytes.
const SHORT_VALUES: usize = 1 << 16;
/// Values of two bytes that are skipped together if none of them occurs.
const RUN: usize = 64;

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
}

impl ValueTable {
    /// Makes a table for at most `most` values, below 2^16.
    fn new(most: usize) -> Self {
        let slots = SLOTS_OF_VALUE * most.max(1).next_power_of_two();
        Self { slots: vec![0; slots], values: Vec::new(), counts: Vec::new(), numbers: Vec::new(), most }
    }

    /// Returns the index of a value; if the table has it not, the free slot where it belongs.
    fn find(&self, value: i64) -> Result<usize, usize> {
        // Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4)
        let product = value.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        // below their number
        let mut at = (product >> (64 - self.slots.len().trailing_zeros())) as usize;
        // ends: there are more slots than values
        while let Some(index) = self.slots.get(at).and_then(|slot| slot.checked_sub(1)) {
            if self.values.get(usize::from(index)) == Some(&value) {
                return Ok(index.into());
            }
            at = (at + 1) & (self.slots.len() - 1); // a power of two
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
        let octave = |count: u32| if order == PaletteOrder::ByFrequency { count.leading_zeros() } else { 0 };
        let values = (0..).zip(self.values.iter().zip(&self.counts));
        // a value and its index; values differ, so that indices do not count
        let mut sorted: Vec<(u32, i64, usize)> =
            values.map(|(index, (&value, &count))| (octave(count), key(value), index)).collect();
        sorted.sort_unstable();
        self.numbers.resize(sorted.len(), 0);
        for (number, &(_, _, index)) in (0..).zip(&sorted) {
            if let Some(to) = self.numbers.get_mut(index) {
                *to = number;
            }
        }
        sorted.into_iter().filter_map(|(_, _, index)| self.values.get(index).copied()).collect()
    }

    fn number(&self, value: i64) -> u16 {
        self.find(value).ok().and_then(|index| self.numbers.get(index).copied()).unwrap_or(0)
    }
}

/// The values of two bytes that occur: a number for each of all values.
struct ShortTable(Vec<u16>);

impl ShortTable {
    fn new() -> Self {
        Self(vec![0; SHORT_VALUES])
    }

    /// Adds elements, and the first of each `step` only.
    fn add(&mut self, elements: &[[u8; 2]], step: usize) {
        // `None` never: as many
        let Some(slots) = self.0.first_chunk_mut::<SHORT_VALUES>() else { return };
        match step {
            // in bounds: 2^16 values
            1 => elements.iter().for_each(|&element| slots[usize::from(u16::from_le_bytes(element))] = 1),
            _ => elements.iter().step_by(step).for_each(|&element| slots[usize::from(u16::from_le_bytes(element))] = 1),
        }
    }

    /// Returns the number of values that occur.
    fn count(&self) -> usize {
        // exact: fewer than 2^16 in a run
        let runs = self.0.as_chunks::<RUN>().0.iter();
        runs.map(|run| usize::from(run.iter().sum::<u16>())).sum()
    }

    /// Numbers the values by their order. Returns them.
    fn sort(&mut self, float: bool) -> Vec<u16> {
        let mut sorted = Vec::new();
        for (run, slots) in self.0.as_chunks::<RUN>().0.iter().enumerate() {
            // vectors find runs of none
            if slots.iter().fold(0, |any, &slot| any | slot) > 0 {
                let values = (run * RUN..).zip(slots).filter(|&(_, &slot)| slot > 0);
                sorted.extend(values.map(|(value, _)| value as u16)); // exact: below 2^16
            }
        }
        // those with the highest bit are negative, and the least first
        let negative = sorted.partition_point(|&value| value.cast_signed() >= 0);
        sorted.rotate_left(negative);
        let count = sorted.len() - negative; // of a part
        if float && let Some(negative) = sorted.get_mut(..count) {
            negative.reverse();
        }
        for (number, &value) in (0..).zip(&sorted) {
            if let Some(slot) = self.0.get_mut(usize::from(value)) {
                *slot = number;
            }
        }
        sorted
    }

    fn number(&self, element: [u8; 2]) -> u16 {
        self.0.get(usize::from(u16::from_le_bytes(element))).copied().unwrap_or(0)
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
    match (width, wanted.order) {
        (Width::W2, PaletteOrder::ByValue) => find_short(geometry, wanted, raw, numbers),
        (Width::W1, _) => find::<1>(width, geometry, wanted, raw, numbers),
        (Width::W2, _) => find::<2>(width, geometry, wanted, raw, numbers),
        (Width::W4, _) => find::<4>(width, geometry, wanted, raw, numbers),
        (Width::W8, _) => find::<8>(width, geometry, wanted, raw, numbers),
    }
}

/// Finds palettes by value of elements of two bytes.
fn find_short(geometry: &Geometry<'_>, wanted: WantedPalettes<'_>, raw: &[u8], numbers: &mut Numbers) -> bool {
    let count = wanted.count.max(1);
    let mut tables: Vec<ShortTable> = (0..count).map(|_| ShortTable::new()).collect();
    for elements in blocks_of(wanted.geometry, wanted.elements) {
        for (place, table) in tables.iter_mut().enumerate() {
            table.add(elements.get(place..).unwrap_or(&[]), count);
        }
    }
    let counts: Vec<usize> = tables.iter().map(ShortTable::count).collect();
    if counts.contains(&0) || counts.iter().sum::<usize>() > wanted.most_values(2) {
        return false;
    }
    let mut palettes = Palettes::new(Width::W2, geometry.float, counts.iter().any(|&count| count > 256));
    for table in &mut tables {
        palettes.values.extend(table.sort(geometry.float).iter().flat_map(|value| value.to_le_bytes()));
        palettes.ends.push(palettes.values.len() / 2);
    }
    set_numbers(palettes, &tables, geometry, raw, numbers, |table, element| table.number(element));
    true
}

/// Finds palettes of elements of `W` bytes.
fn find<const W: usize>(
    width: Width,
    geometry: &Geometry<'_>,
    wanted: WantedPalettes<'_>,
    raw: &[u8],
    numbers: &mut Numbers,
) -> bool {
    let Some(mut tables) = tables::<W>(wanted) else { return false };
    let is_wide = tables.iter().any(|table| table.values.len() > 256);
    let mut palettes = Palettes::new(width, geometry.float, is_wide);
    let key = |value: i64| {
        let value = signed(value, W);
        if geometry.float && value < 0 { value ^ i64::MAX >> (64 - 8 * W) } else { value }
    };
    for table in &mut tables {
        let values = table.sort(wanted.order, key);
        palettes.values.extend(values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(W)));
        palettes.ends.push(palettes.values.len() / W);
    }
    set_numbers(palettes, &tables, geometry, raw, numbers, |table, element| table.number(wide_of::<W>(element)));
    true
}

/// Sets the numbers to those of the elements of each block, which use one table after the other.
fn set_numbers<T, const W: usize>(
    palettes: Palettes,
    tables: &[T],
    geometry: &Geometry<'_>,
    raw: &[u8],
    numbers: &mut Numbers,
    number: impl Fn(&T, [u8; W]) -> u16,
) {
    let is_wide = palettes.number_width() == Width::W2;
    numbers.set_palettes(palettes, |numbers| {
        for elements in blocks_of(geometry, raw) {
            let start = numbers.len();
            numbers.resize(start + elements.len() * if is_wide { 2 } else { 1 }, 0);
            let to = numbers.get_mut(start..).unwrap_or(&mut []);
            // rows of one element for each table, of which the last may be cut off
            for (i, table) in tables.iter().enumerate() {
                let own = elements.get(i..).unwrap_or(&[]).iter().step_by(tables.len());
                let own = own.map(|&element| number(table, element));
                if is_wide {
                    let to = to.as_chunks_mut().0.get_mut(i..).unwrap_or(&mut []).iter_mut().step_by(tables.len());
                    to.zip(own).for_each(|(to, number)| *to = number.to_le_bytes());
                } else {
                    let to = to.get_mut(i..).unwrap_or(&mut []).iter_mut().step_by(tables.len());
                    to.zip(own).for_each(|(to, number)| *to = number as u8); // exact: below 256
                }
            }
        }
    });
}

impl WantedPalettes<'_> {
    /// Returns the most values that all palettes of elements of this many bytes may have.
    fn most_values(&self, element_bytes: usize) -> usize {
        let (most, elements_of_value) = match self.order {
            PaletteOrder::ByValue => (MOST_VALUES, ELEMENTS_OF_VALUE),
            PaletteOrder::ByFrequency => (MOST_BY_FREQUENCY, ELEMENTS_OF_VALUE / 4),
        };
        most.min(self.elements.len() / element_bytes.max(1) / elements_of_value)
    }
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
    match width {
        Width::W1 => false,
        Width::W2 => count_short(sample(raw)) <= most,
        Width::W4 => has_few::<4>(most, sample(raw)),
        Width::W8 => has_few::<8>(most, sample(raw)),
    }
}

/// Returns the elements of a sample.
fn sample<const W: usize>(raw: &[u8]) -> impl Iterator<Item = [u8; W]> {
    let elements = raw.as_chunks().0;
    let sampled = windows(elements.len(), 256).flat_map(|window| elements.get(window).unwrap_or(&[]));
    sampled.take(SAMPLE).copied()
}

/// Counts the values of elements of two bytes.
fn count_short(elements: impl Iterator<Item = [u8; 2]>) -> usize {
    let mut seen = [0_u64; SHORT_VALUES / 64];
    // in bounds: the words of 2^16 bits
    elements.map(u16::from_le_bytes).for_each(|value| seen[usize::from(value >> 6)] |= 1 << (value & 63));
    seen.iter().map(|word| word.count_ones() as usize).sum() // exact
}

/// Returns whether elements have at most `most` values.
fn has_few<const W: usize>(most: usize, mut elements: impl Iterator<Item = [u8; W]>) -> bool {
    let mut table = ValueTable::new(most);
    elements.all(|element| table.add(wide_of(element)))
}

/// Returns the values of each palette; `None` if there are too many.
fn tables<const W: usize>(wanted: WantedPalettes<'_>) -> Option<Vec<ValueTable>> {
    let most = wanted.most_values(W);
    let mut tables: Vec<ValueTable> = (0..wanted.count).map(|_| ValueTable::new(most)).collect();
    for elements in blocks_of(wanted.geometry, wanted.elements) {
        // not a division for each
        for (place, table) in tables.iter_mut().enumerate() {
            let mut own = elements.get(place..).unwrap_or(&[]).iter().step_by(wanted.count.max(1));
            if !own.all(|&element| table.add(wide_of::<W>(element))) {
                return None;
            }
        }
    }
    let values: usize = tables.iter().map(|table| table.values.len()).sum();
    (values <= most && tables.iter().all(|table| !table.values.is_empty())).then_some(tables)
}
