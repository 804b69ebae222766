//! Palettes.

use super::support::{Guarded, Misaligned, Random, WIDTHS, offsets};
use crate::kernel::Width;
use crate::kernel::palettes::{PaletteTables, PaletteValues, available};

/// Counts to test: more than a few vectors.
const COUNTS: std::ops::RangeInclusive<usize> = if cfg!(miri) { 0..=5 } else { 0..=330 };

/// Random tables of some numbers of values.
struct RandomTables {
    width: Width,
    is_wide: bool,
    values: Vec<u8>,
    ends: Vec<usize>,
}

impl RandomTables {
    fn new(width: Width, is_wide: bool, counts: &[usize]) -> Self {
        let ends: Vec<usize> = counts
            .iter()
            .scan(0, |end, count| {
                *end += count;
                Some(*end)
            })
            .collect();
        let values = Random::new(counts.len()).bytes(ends.last().unwrap() * width.bytes());
        Self { width, is_wide, values, ends }
    }

    fn get(&self) -> PaletteTables<'_> {
        PaletteTables { width: self.width, is_wide: self.is_wide, values: &self.values, ends: &self.ends }
    }

    /// Returns random numbers that their tables have, from table `first` on.
    fn numbers(&self, first: usize, count: usize) -> Vec<u8> {
        let mut random = Random::new(count);
        let counts = self.ends.iter().enumerate().map(|(i, end)| end - if i > 0 { self.ends[i - 1] } else { 0 });
        let counts: Vec<usize> = counts.map(|count| if self.is_wide { count } else { count.min(256) }).collect();
        let numbers = counts.iter().cycle().skip(first % counts.len()).take(count);
        let numbers = numbers.map(|&count| (random.next() >> 20) as usize % count);
        let bytes = if self.is_wide { 2 } else { 1 };
        numbers.flat_map(|number| (number as u16).to_le_bytes().into_iter().take(bytes)).collect()
    }
}

fn look_up(kernel: &PaletteValues, tables: &PaletteTables<'_>, first: usize, numbers: &[u8]) -> (bool, Vec<u8>) {
    let count = numbers.len() / if tables.is_wide { 2 } else { 1 };
    let (source, destination) = offsets(count);
    let mut out = Guarded::zeros(count * tables.width.bytes(), destination);
    let is_right = kernel.look_up(tables, first, Misaligned::new(numbers, source).get(), out.get());
    (is_right, out.into_bytes(|| kernel.name().to_owned()))
}

const COUNTS_OF_VALUES: [&[usize]; 9] = [
    &[256],
    &[1],
    &[7, 200],
    &[256, 3, 90],
    &[64, 65, 128],
    &[1, 2, 255, 256],
    &[9, 8, 7, 6, 5],
    &[300, 1000],
    &[2000],
];

#[test]
fn every_count_of_numbers_and_tables() {
    for width in WIDTHS {
        for is_wide in [false, true] {
            for counts in COUNTS_OF_VALUES {
                let tables = RandomTables::new(width, is_wide, counts);
                for count in COUNTS {
                    let first = count % 7;
                    let numbers = tables.numbers(first, count);
                    let due = look_up(&available()[0], &tables.get(), first, &numbers);
                    assert!(due.0);
                    for kernel in available() {
                        let found = look_up(kernel, &tables.get(), first, &numbers);
                        assert!(found == due, "{} {width:?} {is_wide} {counts:?} {count}", kernel.name());
                    }
                }
            }
        }
    }
}

/// A number beyond the end of its table is found wherever it is.
#[test]
#[cfg_attr(miri, ignore = "large")]
fn numbers_beyond_their_table() {
    for width in [Width::W2, Width::W4] {
        for counts in COUNTS_OF_VALUES.into_iter().filter(|counts| counts.iter().all(|&count| count < 256)) {
            let tables = RandomTables::new(width, false, counts);
            for kernel in available() {
                for count in [1, 2, 63, 64, 65, 130, 200] {
                    for place in 0..count {
                        let mut numbers = tables.numbers(1, count);
                        numbers[place] = counts[(1 + place) % counts.len()] as u8;
                        let (is_right, _) = look_up(kernel, &tables.get(), 1, &numbers);
                        assert!(!is_right, "{} {width:?} {counts:?} {count} {place}", kernel.name());
                        numbers[place] -= 1;
                        assert!(look_up(kernel, &tables.get(), 1, &numbers).0, "{} {place}", kernel.name());
                    }
                }
            }
        }
    }
}

#[test]
fn wide_numbers_beyond_their_table() {
    let tables = RandomTables::new(Width::W4, true, &[300, 1000]);
    let numbers: Vec<u8> = [299_u16, 999, 299, 1000].into_iter().flat_map(u16::to_le_bytes).collect();
    for kernel in available() {
        assert!(look_up(kernel, &tables.get(), 0, &numbers[..6]).0, "{}", kernel.name());
        assert!(!look_up(kernel, &tables.get(), 0, &numbers).0, "{}", kernel.name());
        assert!(!look_up(kernel, &tables.get(), 1, &numbers[..4]).0, "{}", kernel.name());
    }
}

/// Only elements of which both buffers have a part are set.
#[test]
fn buffers_of_other_lengths_of_palettes() {
    let tables = PaletteTables { width: Width::W2, is_wide: false, values: &[1, 2, 3, 4], ends: &[2] };
    for kernel in available() {
        let mut out = [9; 5];
        assert!(kernel.look_up(&tables, 0, &[1, 0, 200], &mut out), "{}", kernel.name());
        assert_eq!(out, [3, 4, 1, 2, 9], "{}", kernel.name());
        assert!(kernel.look_up(&tables, 5, &[0], &mut out), "{}", kernel.name());
        assert_eq!(out, [1, 2, 1, 2, 9], "{}", kernel.name());
    }
}
