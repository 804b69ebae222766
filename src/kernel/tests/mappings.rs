//! The last steps of undoing mappings: dictionaries and float multiples.

use super::{Guarded, Misaligned, Random, WIDTHS, contents, offsets};
use crate::kernel::{
    Width,
    dictionaries::{self, DictionaryTables, DictionaryValues},
    float_multiples::{self, FloatFormat, FloatMultipleTerms, FloatMultiples, NumberDetails},
};

// ---- dictionaries

/// The counts of numbers to test: up to more than a few vectors.
const NUMBER_COUNTS: std::ops::RangeInclusive<usize> = if cfg!(miri) { 0..=5 } else { 0..=330 };

/// Tables of random values. The number of values in each table is given.
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

    fn get(&self) -> DictionaryTables<'_> {
        DictionaryTables { width: self.width, is_wide: self.is_wide, values: &self.values, ends: &self.ends }
    }

    /// Returns random numbers that have values in their tables. The first number belongs to table
    /// `first`.
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

fn look_up(kernel: &DictionaryValues, tables: &DictionaryTables<'_>, first: usize, numbers: &[u8]) -> (bool, Vec<u8>) {
    let count = numbers.len() / if tables.is_wide { 2 } else { 1 };
    let (source, destination) = offsets(count);
    let mut out = Guarded::zeros(count * tables.width.bytes(), destination);
    let is_valid = kernel.look_up(tables, first, Misaligned::new(numbers, source).get(), out.get());
    (is_valid, out.into_bytes(|| kernel.name().to_owned()))
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
                for count in NUMBER_COUNTS {
                    let first = count % 7;
                    let numbers = tables.numbers(first, count);
                    let expected = look_up(&dictionaries::available()[0], &tables.get(), first, &numbers);
                    assert!(expected.0);
                    for kernel in dictionaries::available() {
                        let found = look_up(kernel, &tables.get(), first, &numbers);
                        assert!(found == expected, "{} {width:?} {is_wide} {counts:?} {count}", kernel.name());
                    }
                }
            }
        }
    }
}

/// A number beyond the end of its table is detected at any position.
#[test]
#[cfg_attr(miri, ignore = "large")]
fn numbers_beyond_their_table() {
    for width in [Width::W2, Width::W4] {
        for counts in COUNTS_OF_VALUES.into_iter().filter(|counts| counts.iter().all(|&count| count < 256)) {
            let tables = RandomTables::new(width, false, counts);
            for kernel in dictionaries::available() {
                for count in [1, 2, 63, 64, 65, 130, 200] {
                    for position in 0..count {
                        let mut numbers = tables.numbers(1, count);
                        numbers[position] = counts[(1 + position) % counts.len()] as u8;
                        let (is_valid, _) = look_up(kernel, &tables.get(), 1, &numbers);
                        assert!(!is_valid, "{} {width:?} {counts:?} {count} {position}", kernel.name());
                        numbers[position] -= 1;
                        assert!(look_up(kernel, &tables.get(), 1, &numbers).0, "{} {position}", kernel.name());
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
    for kernel in dictionaries::available() {
        assert!(look_up(kernel, &tables.get(), 0, &numbers[..6]).0, "{}", kernel.name());
        assert!(!look_up(kernel, &tables.get(), 0, &numbers).0, "{}", kernel.name());
        assert!(!look_up(kernel, &tables.get(), 1, &numbers[..4]).0, "{}", kernel.name());
    }
}

/// Only elements that fit in both buffers are set.
#[test]
fn dictionary_buffers_of_different_lengths() {
    let tables = DictionaryTables { width: Width::W2, is_wide: false, values: &[1, 2, 3, 4], ends: &[2] };
    for kernel in dictionaries::available() {
        let mut out = [9; 5];
        assert!(kernel.look_up(&tables, 0, &[1, 0, 200], &mut out), "{}", kernel.name());
        assert_eq!(out, [3, 4, 1, 2, 9], "{}", kernel.name());
        assert!(kernel.look_up(&tables, 5, &[0], &mut out), "{}", kernel.name());
        assert_eq!(out, [1, 2, 1, 2, 9], "{}", kernel.name());
    }
}

// ---- float multiples

const FORMATS: [FloatFormat; 4] = [FloatFormat::Bf16, FloatFormat::F16, FloatFormat::F32, FloatFormat::F64];

/// The counts of numbers to test: up to more than a few vectors.
const COUNTS: std::ops::RangeInclusive<usize> = if cfg!(miri) { 0..=5 } else { 0..=200 };

/// Returns terms for a format: usual terms, extreme terms, and terms with subnormal, zero or
/// infinite elements.
fn terms(format: FloatFormat, detail_bits: u8) -> impl Iterator<Item = FloatMultipleTerms> {
    let max_exponent = if format == FloatFormat::F64 { 1022 } else { 126 };
    let usual = [(1, 0), (1, 11), (255, 0), (25, 2), (1 << 24, -3), (1, 24), (1, -10)];
    let extreme = [
        (1, max_exponent),
        (1, -max_exponent),
        (1 << 24, max_exponent),
        (3, max_exponent - 20),
        (7, 20),
        (1, 30),
        (1, max_exponent - 8),
    ];
    let pairs = usual.into_iter().chain(extreme).filter(move |&(divisor, _)| detail_bits == 0 || divisor == 1);
    let bases = [0, -1, 1 << 31, i64::MAX, i64::MIN, -1 << 31, 0x1234_5678_9ABC];
    pairs.zip(bases.into_iter().cycle()).map(move |((divisor, exponent), base)| FloatMultipleTerms {
        format,
        detail_bits,
        divisor,
        exponent,
        base,
    })
}

fn lengths(kernel: &FloatMultiples, terms: &FloatMultipleTerms, width: Width, numbers: &[u8]) -> Vec<u8> {
    let (source, destination) = offsets(numbers.len());
    let mut out = Guarded::zeros(numbers.len() / width.bytes(), destination);
    kernel.detail_lengths(terms, width, Misaligned::new(numbers, source).get(), out.get());
    out.into_bytes(|| kernel.name().to_owned())
}

fn divided(kernel: &FloatMultiples, terms: &FloatMultipleTerms, width: Width, numbers: &[u8]) -> Vec<u8> {
    let (source, destination) = offsets(numbers.len());
    let mut out = Guarded::zeros(numbers.len() / width.bytes() * terms.format.width().bytes(), destination);
    kernel.divide(terms, width, Misaligned::new(numbers, source).get(), out.get());
    out.into_bytes(|| kernel.name().to_owned())
}

fn joined(
    kernel: &FloatMultiples,
    terms: &FloatMultipleTerms,
    width: Width,
    numbers: &[u8],
    details: NumberDetails<'_>,
) -> Vec<u8> {
    let (source, destination) = offsets(numbers.len());
    let mut out = Guarded::zeros(numbers.len() / width.bytes() * terms.format.width().bytes(), destination);
    kernel.join(terms, width, Misaligned::new(numbers, source).get(), details, out.get());
    out.into_bytes(|| kernel.name().to_owned())
}

/// Checks all kernels against the definition.
fn check(terms: &FloatMultipleTerms, width: Width, numbers: &[u8], seed: usize) {
    let scalar = &float_multiples::available()[0];
    let expected_lengths = lengths(scalar, terms, width, numbers);
    let mut random = Random::new(seed);
    let integers =
        expected_lengths.iter().map(|&length| 1 << (length - 1) | random.next() as u16 & ((1 << (length - 1)) - 1));
    let integers: Vec<[u8; 2]> = integers.map(u16::to_le_bytes).collect();
    let details = NumberDetails { integers: &integers, lengths: &expected_lengths };
    let (expected, expected_joined) =
        (divided(scalar, terms, width, numbers), joined(scalar, terms, width, numbers, details));
    for kernel in float_multiples::available() {
        let context = || format!("{} {width:?} {terms:?} {} numbers", kernel.name(), expected_lengths.len());
        assert!(lengths(kernel, terms, width, numbers) == expected_lengths, "lengths: {}", context());
        assert!(divided(kernel, terms, width, numbers) == expected, "divide: {}", context());
        assert!(joined(kernel, terms, width, numbers, details) == expected_joined, "join: {}", context());
    }
}

#[test]
fn every_count_and_width() {
    for format in FORMATS {
        for width in WIDTHS {
            for count in COUNTS {
                let detail_bits = [0, 1, 7, 15][count % 4];
                let terms = terms(format, detail_bits).nth(count % 7).unwrap();
                check(&terms, width, &contents(count, count * width.bytes()), count);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn all_terms() {
    for format in FORMATS {
        for detail_bits in [0, 1, 4, 8, 11, 15] {
            for terms in terms(format, detail_bits) {
                for width in WIDTHS {
                    check(&terms, width, &Random::new(7).bytes(1500 * width.bytes()), 1);
                }
            }
        }
    }
}

/// Tests all numbers of two bytes, near zero and around powers of two.
#[test]
#[cfg_attr(miri, ignore = "large")]
fn all_numbers_of_two_bytes() {
    let numbers: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for format in FORMATS {
        for (detail_bits, exponent) in [(0, 0), (0, 24), (0, 126), (11, 13), (15, 15), (8, 126), (3, -100), (0, -112)] {
            for base in [0, -20_000, i64::from(i32::MAX) - 5, i64::from(i32::MIN) - 5] {
                let terms = FloatMultipleTerms { format, detail_bits, divisor: 1, exponent, base };
                check(&terms, Width::W2, &numbers, 3);
            }
        }
    }
}

/// Numbers at and near the middle between two floats are rounded as IEEE 754 defines it.
#[test]
#[cfg_attr(miri, ignore = "large")]
fn rounding() {
    let near = |n: i64| [n - 1, n, n + 1].into_iter().flat_map(|n| (n as u32).to_le_bytes());
    let halves = (1..31).flat_map(|bits| (0..64).map(move |i| (1 << bits) + (i << bits.max(5) >> 5)));
    let numbers: Vec<u8> = halves.flat_map(near).collect();
    for format in FORMATS {
        for (divisor, exponent) in [(1, 0), (1, 13), (1, 20), (3, 24), (255, 126), (1, 126), (1, -97), (65_535, 14)] {
            let terms = FloatMultipleTerms { format, detail_bits: 0, divisor, exponent, base: 0 };
            check(&terms, Width::W4, &numbers, 5);
        }
    }
}

/// The example of chapter 5.14.
#[test]
fn worked_example_of_a_float_multiple() {
    let terms = FloatMultipleTerms { format: FloatFormat::Bf16, detail_bits: 4, divisor: 1, exponent: 9, base: -33 };
    let numbers: Vec<u8> = [65_u16, 36, 0, 353].into_iter().flat_map(u16::to_le_bytes).collect();
    let integers = [0x04_u16, 0x11, 0x07, 0x01].map(u16::to_le_bytes);
    for kernel in float_multiples::available() {
        let mut lengths = [0; 4];
        kernel.detail_lengths(&terms, Width::W2, &numbers, &mut lengths);
        assert_eq!(lengths, [3, 5, 3, 1]);
        let mut out = [0; 8];
        let details = NumberDetails { integers: &integers, lengths: &lengths };
        kernel.join(&terms, Width::W2, &numbers, details, &mut out);
        assert_eq!(out, [0x80, 0x3F, 0xC4, 0x3D, 0x81, 0xBF, 0x20, 0x41]);
    }
}

/// Only elements that fit in all buffers are set.
#[test]
fn float_multiple_buffers_of_different_lengths() {
    let terms = FloatMultipleTerms { format: FloatFormat::F32, detail_bits: 2, divisor: 1, exponent: 0, base: 0 };
    for kernel in float_multiples::available() {
        let mut out = [9; 13];
        kernel.divide(&terms, Width::W2, &[4; 5], &mut out);
        assert_eq!(out[8..], [9; 5], "{}", kernel.name());
        let details = NumberDetails { integers: &[[4, 0]; 7], lengths: &[3] };
        kernel.join(&terms, Width::W2, &[8; 5], details, &mut out);
        assert_eq!(out[4..8], 1028_f32.to_le_bytes(), "{}", kernel.name());
    }
}
