//! Finds palettes, as writers use them.

use super::numbers::{Numbers, blocks_of, signed, wide_of};
use super::palette::Palettes;
use crate::codec::geometry::Geometry;
use crate::kernel::Width;

/// The most values of palettes. With more, the table takes what it saves.
const MOST_VALUES: usize = 4096;
/// The same of palettes by frequency, which save more.
const MOST_BY_FREQUENCY: usize = 16384;
/// Palettes have at most one value for this many elements; those by frequency, for a fourth of it.
const ELEMENTS_OF_VALUE: usize = 16;
/// The elements of a sample, and the most values among them.
const SAMPLE: usize = 4096;
/// The slots of a table for each value that it may have.
const SLOTS_OF_VALUE: usize = 4;
/// The elements of a sample whose distance to the next greater value is looked at.
const DISTANCES: usize = 512;
/// Bits that the distances between values have to save for each value. A table takes about 8; but
/// distances are rounded down, and predictions gain more than elements themselves.
const BITS_OF_VALUE: usize = 6;
/// So few values in a sample are looked at in any case: their numbers ascend as floats of both
/// signs do, which filters need.
const FEW_VALUES: u32 = 320;
/// Values of two bytes.
const SHORT_VALUES: usize = 1 << 16;

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
    /// Some of them. Palettes are not found if these do not seem to pay; `None` to find all.
    pub sample: Option<&'a [u8]>,
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

    fn number<const W: usize>(&self, element: [u8; W]) -> u16 {
        self.find(wide_of(element)).ok().and_then(|index| self.numbers.get(index).copied()).unwrap_or(0)
    }
}

/// The values of two bytes that occur, each with a number.
struct ShortTable {
    /// The number of each value. Numbers of other values are not used.
    numbers: Vec<u16>,
}

impl ShortTable {
    /// Makes the table of the values of some elements, and returns them in their order.
    fn new(elements: impl Iterator<Item = [u8; 2]>, float: bool) -> (Self, Vec<u16>) {
        let mut numbers = vec![0; SHORT_VALUES];
        // in bounds
        elements.for_each(|element| numbers[usize::from(u16::from_le_bytes(element))] = 1);
        let mut values = Vec::new();
        for (i, eight) in numbers.chunks_exact(8).enumerate() {
            if eight.iter().any(|&seen| seen != 0) {
                let seen = eight.iter().enumerate().filter(|(_, seen)| **seen != 0);
                values.extend(seen.map(|(k, _)| (8 * i + k) as u16)); // exact: below 2^16
            }
        }
        let positive = values.partition_point(|value: &u16| value.cast_signed() >= 0);
        let negative = values.len() - positive;
        values.rotate_left(positive);
        if float && let Some(negative) = values.get_mut(..negative) {
            negative.reverse();
        }
        // in bounds
        (0..=u16::MAX).zip(&values).for_each(|(number, &value)| numbers[usize::from(value)] = number);
        (Self { numbers }, values)
    }

    fn number(&self, element: [u8; 2]) -> u16 {
        self.numbers[usize::from(u16::from_le_bytes(element))] // in bounds
    }
}

/// Palettes of all elements of a part.
pub(in crate::codec) struct FoundPalettes {
    palettes: Palettes,
    /// The bytes that they take.
    bytes: usize,
    tables: Tables,
}

enum Tables {
    Short(Vec<ShortTable>),
    Wide(Vec<ValueTable>),
}

/// Finds palettes; `None` if there are too many values.
pub(in crate::codec) fn find_palettes(width: Width, wanted: WantedPalettes<'_>) -> Option<FoundPalettes> {
    let most = wanted.most_values(width.bytes());
    // a table for all values of two bytes costs less than looking
    if let Some(sample) = wanted.sample
        && (width, wanted.order) != (Width::W2, PaletteOrder::ByValue)
        && !has_few(width, most, sample)
    {
        return None;
    }
    match (width, wanted.order) {
        (Width::W2, PaletteOrder::ByValue) => find_short(wanted),
        (Width::W1, _) => None,
        (Width::W2, _) => find::<2>(width, wanted),
        (Width::W4, _) => find::<4>(width, wanted),
        (Width::W8, _) => find::<8>(width, wanted),
    }
}

/// Returns whether palettes of values of two bytes may save the bytes of their tables, judged by a
/// sample: more elements have more values, with shorter distances between them.
fn may_save(sample: &[u8], element_bytes: usize) -> bool {
    let sample = sample.as_chunks().0;
    let mut seen = [0_u64; SHORT_VALUES / 64];
    for value in sample.iter().copied().map(u16::from_le_bytes).map(usize::from) {
        seen[value / 64] |= 1 << (value % 64); // in bounds
    }
    let value_count: u32 = seen.iter().map(|word| word.count_ones()).sum();
    if value_count <= FEW_VALUES {
        return true;
    }
    // the distance to the next greater value
    let distance = |value: usize| {
        let above = seen[value / 64] & (u64::MAX - 1) << (value % 64); // in bounds
        let mut above = std::iter::once(above).chain(seen[value / 64 + 1..].iter().copied()).enumerate();
        let next = above.find(|(_, word)| *word != 0);
        next.map_or(1, |(words, word)| (value / 64 + words) * 64 + word.trailing_zeros() as usize - value)
    };
    let some = sample.iter().step_by((sample.len() / DISTANCES).max(1)).copied().map(u16::from_le_bytes);
    let bits: usize = some.clone().map(|value| distance(value.into()).ilog2() as usize).sum();
    bits * element_bytes / 2 / some.len().max(1) >= BITS_OF_VALUE * value_count as usize
}

/// Finds palettes by value of elements of two bytes.
fn find_short(wanted: WantedPalettes<'_>) -> Option<FoundPalettes> {
    let WantedPalettes { count, geometry, elements, .. } = wanted;
    if count == 1 && wanted.sample.is_some_and(|sample| !may_save(sample, elements.len())) {
        return None;
    }
    let of_place = |place: usize| {
        let blocks = blocks_of(geometry, elements);
        let own = blocks.flat_map(move |block| block.get(place..).unwrap_or(&[]).iter().step_by(count.max(1)));
        ShortTable::new(own.copied(), geometry.float)
    };
    let (tables, values): (Vec<_>, Vec<_>) = (0..count.max(1)).map(of_place).unzip();
    let is_small = values.iter().map(Vec::len).sum::<usize>() <= wanted.most_values(2);
    if !is_small || values.iter().any(Vec::is_empty) {
        return None;
    }
    let mut palettes = Palettes::new(Width::W2, geometry.float, values.iter().any(|values| values.len() > 256));
    for values in values {
        palettes.values.extend(values.into_iter().flat_map(u16::to_le_bytes));
        palettes.ends.push(palettes.values.len() / 2);
    }
    Some(FoundPalettes::new(palettes, Tables::Short(tables)))
}

/// Finds palettes of elements of `W` bytes.
fn find<const W: usize>(width: Width, wanted: WantedPalettes<'_>) -> Option<FoundPalettes> {
    let mut tables = tables::<W>(wanted)?;
    let float = wanted.geometry.float;
    let mut palettes = Palettes::new(width, float, tables.iter().any(|table| table.values.len() > 256));
    let key = |value: i64| {
        let value = signed(value, W);
        if float && value < 0 { value ^ i64::MAX >> (64 - 8 * W) } else { value }
    };
    for table in &mut tables {
        let values = table.sort(wanted.order, key);
        palettes.values.extend(values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(W)));
        palettes.ends.push(palettes.values.len() / W);
    }
    Some(FoundPalettes::new(palettes, Tables::Wide(tables)))
}

impl FoundPalettes {
    fn new(palettes: Palettes, tables: Tables) -> Self {
        let mut written = Vec::new();
        palettes.write(&mut written);
        Self { palettes, bytes: written.len(), tables }
    }

    /// Sets `numbers` for `raw`, which is some or all of the elements.
    pub(in crate::codec) fn set(&self, geometry: &Geometry<'_>, raw: &[u8], numbers: &mut Numbers) {
        match &self.tables {
            Tables::Short(tables) => self.set_with(tables, ShortTable::number, geometry, raw, numbers),
            Tables::Wide(tables) => match geometry.element_bytes {
                2 => self.set_with(tables, ValueTable::number::<2>, geometry, raw, numbers),
                4 => self.set_with(tables, ValueTable::number::<4>, geometry, raw, numbers),
                _ => self.set_with(tables, ValueTable::number::<8>, geometry, raw, numbers),
            },
        }
    }

    fn set_with<T, const W: usize>(
        &self,
        tables: &[T],
        number: impl Fn(&T, [u8; W]) -> u16,
        geometry: &Geometry<'_>,
        raw: &[u8],
        numbers: &mut Numbers,
    ) {
        let is_wide = self.palettes.number_width() == Width::W2;
        let count = tables.len().max(1);
        numbers.set_palettes(self.palettes.clone(), self.bytes, |numbers| {
            for elements in blocks_of(geometry, raw) {
                let start = numbers.len();
                numbers.resize(start + elements.len() * if is_wide { 2 } else { 1 }, 0);
                let to = numbers.get_mut(start..).unwrap_or(&mut []);
                // element `i` is in table `i` modulo their number
                for (i, table) in tables.iter().enumerate() {
                    let own = elements.get(i..).unwrap_or(&[]).iter().step_by(count);
                    let own = own.map(|&element| number(table, element));
                    if is_wide {
                        let to = to.as_chunks_mut().0.get_mut(i..).unwrap_or(&mut []).iter_mut().step_by(count);
                        to.zip(own).for_each(|(to, number)| *to = number.to_le_bytes());
                    } else {
                        let to = to.get_mut(i..).unwrap_or(&mut []).iter_mut().step_by(count);
                        to.zip(own).for_each(|(to, number)| *to = number as u8); // exact: below 256
                    }
                }
            }
        });
    }
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

/// Returns whether the first elements of a sample have at most `most` values.
fn has_few(width: Width, most: usize, sample: &[u8]) -> bool {
    fn has_few<const W: usize>(most: usize, sample: &[u8]) -> bool {
        let mut table = ValueTable::new(most);
        sample.as_chunks::<W>().0.iter().take(SAMPLE).all(|&element| table.add(wide_of(element)))
    }
    match width {
        Width::W1 => false,
        Width::W2 => has_few::<2>(most, sample),
        Width::W4 => has_few::<4>(most, sample),
        Width::W8 => has_few::<8>(most, sample),
    }
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
