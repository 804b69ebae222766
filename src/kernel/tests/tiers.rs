//! Tiers.

use super::support::{Guarded, Misaligned, Random, counts, offsets};
use crate::kernel::tiers::{GROUP, GROUP_BYTES, Tiers, available, code_bytes};
use std::ops::Range;

fn merged(tiers: &Tiers, width: usize, codes: &[u8], escaped: &[u8], count: usize) -> (usize, Vec<u8>) {
    let (source, destination) = offsets(count);
    let mut out = Guarded::zeros(count, destination);
    let (codes, escaped) = (Misaligned::new(codes, source), Misaligned::new(escaped, destination));
    let table: [u8; 16] = std::array::from_fn(|i| 0x51 + 3 * i as u8);
    let (groups, last) = split_last(width, codes.get(), count);
    let escapes = tiers.merge(width, groups, &last, &table, escaped.get(), out.get());
    (escapes, out.into_bytes(|| tiers.name().to_owned()))
}

/// Splits the groups of `count` codes: those that are full, and the last.
fn split_last(width: usize, codes: &[u8], count: usize) -> (&[u8], [u8; GROUP_BYTES]) {
    let (groups, rest) = codes.split_at(count / GROUP * 8 * width);
    (groups, std::array::from_fn(|i| rest.get(i).copied().unwrap_or(0)))
}

fn check_merge(width: usize, codes: &[u8], escaped: &[u8], count: usize) {
    let expected = merged(&available()[0], width, codes, escaped, count);
    for tiers in available() {
        let found = merged(tiers, width, codes, escaped, count);
        assert!(found == expected, "merge: {} width {width} count {count} escaped {}", tiers.name(), escaped.len());
    }
}

#[test]
fn every_merge_gives_the_symbols_of_scalar() {
    for width in 1..=4 {
        for count in counts() {
            let mut random = Random::new(count);
            let codes = random.bytes(code_bytes(width, count));
            let escaped = random.bytes(count);
            check_merge(width, &codes, &escaped, count);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn escapes_among_some_codes_are_those_that_merging_meets() {
    const COUNT: usize = 300;
    for width in 1..=4 {
        let codes = Random::new(width).bytes(code_bytes(width, COUNT));
        let before = |count: usize| merged(&available()[0], width, &codes, &[], count).0;
        let before: Vec<usize> = (0..=COUNT).map(before).collect();
        for tiers in available() {
            for (start, end) in (0..=COUNT).flat_map(|start| (start..=COUNT).map(move |end| (start, end))) {
                let found = tiers.escapes(width, &codes, start..end);
                assert_eq!(found, before[end] - before[start], "{} width {width} {start}..{end}", tiers.name());
            }
            assert_eq!(tiers.escapes(width, &codes, Range { start: 64, end: 2 }), 0);
            assert_eq!(tiers.escapes(width, &codes, 10_000..usize::MAX), 0);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn merge_of_escapes_alone_of_none_and_of_too_few() {
    for width in 1..=4 {
        for count in counts().step_by(7) {
            let escaped = Random::new(count).bytes(count + 100);
            for fill in [0, 0xFF] {
                let codes = vec![fill; code_bytes(width, count)];
                for len in [0, 1, 7, 8, 63, 64, 65, count / 2, count.saturating_sub(1), count, count + 100] {
                    check_merge(width, &codes, &escaped[..len.min(escaped.len())], count);
                }
            }
        }
    }
}

/// Returns the number of escapes, the codes and the symbols that escaped.
fn split(tiers: &Tiers, width: usize, code_of: &[u8; 256], symbols: &[u8]) -> (usize, Vec<u8>, Vec<u8>) {
    let (source, destination) = offsets(symbols.len());
    let mut codes = Guarded::zeros(code_bytes(width, symbols.len()), source);
    let mut escaped = Guarded::zeros(symbols.len(), destination);
    let symbols = Misaligned::new(symbols, source);
    let escapes = tiers.split(width, code_of, symbols.get(), codes.get(), escaped.get());
    let mut escaped = escaped.into_bytes(|| tiers.name().to_owned());
    escaped.truncate(escapes);
    (escapes, codes.into_bytes(|| tiers.name().to_owned()), escaped)
}

fn check_split(width: usize, code_of: &[u8; 256], symbols: &[u8]) {
    let expected = split(&available()[0], width, code_of, symbols);
    let count = symbols.len();
    for tiers in available() {
        let found = split(tiers, width, code_of, symbols);
        assert!(found == expected, "split: {} width {width} count {count}", tiers.name());
        // and back; 0x51 and so on is the table of `merged`
        let escape = (1 << width) - 1;
        let (escapes, codes, escaped) = found;
        let back = merged(tiers, width, &codes, &escaped, count);
        let due = symbols.iter().map(|&symbol| match code_of[usize::from(symbol)] & escape {
            code if code == escape => symbol,
            code => 0x51 + 3 * code,
        });
        assert!(back == (escapes, due.collect()), "split and merge: {} width {width} count {count}", tiers.name());
    }
}

#[test]
fn every_split_gives_the_codes_of_scalar_and_merges_again() {
    for width in 1..=4 {
        for count in counts() {
            let mut random = Random::new(count);
            let symbols = random.bytes(count);
            // any table; one with few symbols that do not escape, as files have them
            let codes = random.bytes(256);
            let any = std::array::from_fn(|i| codes[i]);
            let few = std::array::from_fn(|i| if (0x7A..0x81).contains(&i) { codes[i] } else { 0xFF });
            let near: Vec<u8> = symbols.iter().map(|symbol| 0x7C + symbol % 8).collect();
            check_split(width, &any, &symbols);
            check_split(width, &few, &symbols);
            check_split(width, &few, &near);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn split_of_escapes_alone_and_of_none() {
    for width in 1..=4 {
        for count in counts().step_by(7) {
            let symbols = Random::new(count).bytes(count);
            check_split(width, &[0xFF; 256], &symbols);
            check_split(width, &[0; 256], &symbols);
        }
    }
}

/// The example of chapter 5.7.
#[test]
fn worked_example_of_tiers() {
    let symbols = [7, 7, 5, 7, 9, 0xAA];
    for tiers in available() {
        let mut code_of = [1; 256];
        code_of[7] = 0;
        let (escapes, codes, escaped) = split(tiers, 1, &code_of, &symbols);
        assert_eq!((escapes, codes, escaped), (3, vec![0x34, 0, 0, 0, 0, 0, 0, 0], vec![5, 9, 0xAA]));
    }
}
