//! Finds palettes, as writers use them.

use super::numbers::{Numbers, blocks, signed, wide};
use super::palette::Palettes;
use crate::codec::geometry::Geometry;
use crate::codec::sampling::windows;
use crate::kernel::Width;

/// The most values of a palette: a power of two. With more, the table takes what it saves.
const MOST_VALUES: usize = 4096;
/// A palette has at most one value for this many elements.
const ELEMENTS_OF_VALUE: usize = 16;
/// The elements of a sample, and the most values among them: a power of two.
const SAMPLE: usize = 4096;
const MOST_IN_SAMPLE: usize = 1024;
/// The slots of a table for each value that it may have.
const SLOTS_OF_VALUE: usize = 4;

/// The values that occur, each with a number: open addressing.
struct ValueTable {
    /// The value and its number, for each used slot. A power of two.
    slots: Vec<Option<(i64, u16)>>,
    values: Vec<i64>,
}

impl ValueTable {
    /// Makes a table for at most `most` values, a power of two.
    fn new(most: usize) -> Self {
        Self { slots: vec![None; SLOTS_OF_VALUE * most], values: Vec::new() }
    }

    fn start(&self, value: i64) -> usize {
        // Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4)
        let product = value.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (product >> (64 - self.slots.len().trailing_zeros())) as usize // below their number
    }

    /// Returns the slot of a value, or the free one where it belongs.
    fn slot(&self, value: i64) -> usize {
        let mut at = self.start(value);
        // ends: there are more slots than values
        while let Some(Some((other, _))) = self.slots.get(at)
            && *other != value
        {
            at = (at + 1) % self.slots.len();
        }
        at
    }

    /// Adds a value. Returns `false` if there are too many.
    fn add(&mut self, value: i64) -> bool {
        let (at, most) = (self.slot(value), self.slots.len() / SLOTS_OF_VALUE);
        match self.slots.get_mut(at) {
            Some(slot @ None) if self.values.len() < most => {
                *slot = Some((value, 0));
                self.values.push(value);
                true
            }
            Some(slot) => slot.is_some(),
            None => false,
        }
    }

    /// Numbers the values in ascending order.
    fn sort(&mut self, key: impl Fn(i64) -> i64) {
        self.values.sort_unstable_by_key(|&value| key(value));
        for (number, &value) in (0..).zip(&self.values) {
            let at = self.slot(value);
            if let Some(slot) = self.slots.get_mut(at) {
                *slot = Some((value, number));
            }
        }
    }

    fn number(&self, value: i64) -> u16 {
        let found = self.slots.get(self.slot(value)).copied().flatten();
        found.map_or(0, |(_, number)| number)
    }
}

/// Finds palettes, of which element `i` of a block uses the one of `i` modulo `count`, and sets the
/// numbers. Returns `false` if the elements have too many values.
pub(in crate::codec) fn find_palettes(
    width: Width,
    geometry: &Geometry<'_>,
    count: usize,
    raw: &[u8],
    numbers: &mut Numbers,
) -> bool {
    let Some(tables) = tables(width, geometry, count, raw) else { return false };
    let is_wide = tables.iter().any(|table| table.values.len() > 256);
    let mut palettes = Palettes::new(width, geometry.float, is_wide);
    for table in &tables {
        for value in &table.values {
            palettes.values.extend(value.to_le_bytes().iter().take(width.bytes()));
        }
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
pub(in crate::codec) fn may_have_palettes(width: Width, raw: &[u8]) -> bool {
    if width == Width::W1 {
        return false; // they are short already
    }
    let mut table = ValueTable::new(MOST_IN_SAMPLE);
    let count = raw.len() / width.bytes();
    let sampled = windows(count, 256).flat_map(|window| {
        raw.get(window.start * width.bytes()..window.end * width.bytes()).unwrap_or(&[]).chunks_exact(width.bytes())
    });
    sampled.take(SAMPLE).all(|element| table.add(wide(element)))
}

/// Returns the values of each palette; `None` if there are too many.
fn tables(width: Width, geometry: &Geometry<'_>, count: usize, raw: &[u8]) -> Option<Vec<ValueTable>> {
    let mut tables: Vec<ValueTable> = (0..count).map(|_| ValueTable::new(MOST_VALUES)).collect();
    for (_, elements) in blocks(geometry, raw) {
        for (i, element) in elements.enumerate() {
            if !tables.get_mut(i % count)?.add(wide(element)) {
                return None;
            }
        }
    }
    let values: usize = tables.iter().map(|table| table.values.len()).sum();
    let w = width.bytes();
    let is_small = values * ELEMENTS_OF_VALUE <= raw.len() / w && tables.iter().all(|table| !table.values.is_empty());
    is_small.then(|| {
        let key = |value: i64| {
            let value = signed(value, w);
            if geometry.float && value < 0 { value ^ i64::MAX >> (64 - 8 * w) } else { value }
        };
        tables.iter_mut().for_each(|table| table.sort(key));
        tables
    })
}
