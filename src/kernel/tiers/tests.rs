//! Every implementation against the scalar one, the scalar one against the examples of the specification, and there and back.

use super::{Tiers, available, best, code_bytes};
use crate::kernel::Width;
use std::ops::Range;

const WIDTHS: [Width; 4] = [Width::W1, Width::W2, Width::W4, Width::W8];

/// Numbers of symbols or elements to test: past two blocks of the fast implementations, and eight.
fn counts() -> impl Iterator<Item = usize> {
    let ranges = if cfg!(miri) { [0..4, 63..67, 0..0] } else { [0..1025, 1090..1101, 4090..4100] };
    ranges.into_iter().flatten()
}

/// Byte and word around destinations that no implementation may change.
const GUARD: u8 = 0xA5;
const GUARD_WORD: u64 = 0xA5A5_A5A5_A5A5_A5A5;

/// Pseudo-random numbers (Marsaglia's xorshift64).
struct Random(u64);

impl Random {
    fn new(seed: usize) -> Self {
        Self((seed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn byte(&mut self) -> u8 {
        (self.next() >> 32) as u8
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.byte()).collect()
    }
}

/// `bytes`, of exactly their length and `offset` bytes off alignment.
struct Misaligned {
    bytes: Box<[u8]>,
    offset: usize,
}

impl Misaligned {
    fn new(bytes: &[u8], offset: usize) -> Self {
        Self { bytes: [&vec![GUARD; offset], bytes].concat().into(), offset }
    }

    fn get(&self) -> &[u8] {
        &self.bytes[self.offset..]
    }
}

/// A destination with bytes around it that stay as they are.
struct Guarded {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Guarded {
    fn new(len: usize, offset: usize) -> Self {
        Self { bytes: vec![GUARD; 64 + offset + len + 64], start: 64 + offset, len }
    }

    fn get(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }

    fn into_bytes(mut self, context: &str) -> Vec<u8> {
        let inside = self.get().to_vec();
        self.get().fill(GUARD);
        assert!(self.bytes.iter().all(|&byte| byte == GUARD), "wrote outside of the buffer: {context}");
        inside
    }
}

/// Offsets of source and destination from alignment, other ones for each count.
fn offsets(count: usize) -> (usize, usize) {
    [(0, 0), (1, 0), (0, 1), (3, 7), (15, 17), (33, 31), (63, 63)][count % 7]
}

// ---- merge and split

fn merged(tiers: &Tiers, width: usize, codes: &[u8], escaped: &[u8], count: usize) -> (usize, Vec<u8>) {
    let (source, destination) = offsets(count);
    let mut out = Guarded::new(count, destination);
    let (codes, escaped) = (Misaligned::new(codes, source), Misaligned::new(escaped, destination));
    let table: [u8; 16] = std::array::from_fn(|i| 0x51 + 3 * i as u8);
    let escapes = tiers.merge(width, codes.get(), &table, escaped.get(), out.get());
    (escapes, out.into_bytes(tiers.name()))
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

/// The number of escapes, the codes and the symbols that escaped.
fn split(tiers: &Tiers, width: usize, code_of: &[u8; 256], symbols: &[u8]) -> (usize, Vec<u8>, Vec<u8>) {
    let (source, destination) = offsets(symbols.len());
    let mut codes = Guarded::new(code_bytes(width, symbols.len()), source);
    let mut escaped = Guarded::new(symbols.len(), destination);
    let symbols = Misaligned::new(symbols, source);
    let escapes = tiers.split(width, code_of, symbols.get(), codes.get(), escaped.get());
    let mut escaped = escaped.into_bytes(tiers.name());
    escaped.truncate(escapes);
    (escapes, codes.into_bytes(tiers.name()), escaped)
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

// ---- lengths, deposit and extract

fn random_lengths(random: &mut Random, width: Width, count: usize, usual: u64) -> Vec<u8> {
    let longest = 8 * width.bytes() as u64;
    let mut next = || {
        let length = if random.next() >> 20 & 15 == 0 { random.next() >> 20 } else { (random.next() >> 20) % usual };
        (length % (longest + 1)) as u8
    };
    (0..count).map(|_| next()).collect()
}

fn deposited(tiers: &Tiers, width: Width, lengths: &[u8], bits: &[u8], at: usize) -> (usize, Vec<u8>) {
    let (source, destination) = offsets(lengths.len());
    let (lengths, bits) = (Misaligned::new(lengths, source), Misaligned::new(bits, destination));
    let mut out = Guarded::new(lengths.get().len() * width.bytes(), destination);
    let end = tiers.deposit(width, lengths.get(), bits.get(), at, out.get());
    (end, out.into_bytes(tiers.name()))
}

fn extracted(
    tiers: &Tiers,
    width: Width,
    lengths: &[u8],
    elements: &[u8],
    words: &[u64],
    at: usize,
) -> (usize, Vec<u64>) {
    let (source, destination) = offsets(lengths.len());
    let (lengths, elements) = (Misaligned::new(lengths, source), Misaligned::new(elements, destination));
    let mut guarded = [&[GUARD_WORD; 8], words, &[GUARD_WORD; 8]].concat();
    let end = tiers.extract(width, lengths.get(), elements.get(), &mut guarded[8..8 + words.len()], at);
    assert!(guarded[..8].iter().chain(&guarded[8 + words.len()..]).all(|&word| word == GUARD_WORD));
    (end, guarded[8..8 + words.len()].to_vec())
}

fn check_deposit(width: Width, lengths: &[u8], bits: &[u8], at: usize) -> (usize, Vec<u8>) {
    let expected = deposited(&available()[0], width, lengths, bits, at);
    for tiers in available() {
        let found = deposited(tiers, width, lengths, bits, at);
        let (name, count, len) = (tiers.name(), lengths.len(), bits.len());
        assert!(found == expected, "deposit: {name} {width:?} count {count} bits {len} at {at}");
    }
    expected
}

fn check_extract(width: Width, lengths: &[u8], elements: &[u8], words: &[u64], at: usize) -> (usize, Vec<u64>) {
    let expected = extracted(&available()[0], width, lengths, elements, words, at);
    for tiers in available() {
        let found = extracted(tiers, width, lengths, elements, words, at);
        let (name, count, len) = (tiers.name(), lengths.len(), words.len());
        assert!(found == expected, "extract: {name} {width:?} count {count} words {len} at {at}");
    }
    expected
}

/// Words with ones before bit `at` and zeros from there on, for `bits` bits and a word more.
fn words_from(at: usize, bits: usize) -> Vec<u64> {
    let mut words = vec![0; (at + bits) / 64 + 2];
    words[..at / 64].fill(u64::MAX);
    words[at / 64] = (1 << (at % 64)) - 1;
    words
}

fn extra_bits(lengths: &[u8]) -> usize {
    lengths.iter().map(|&length| usize::from(length.saturating_sub(1))).sum()
}

#[test]
fn every_deposit_gives_the_elements_of_scalar_and_extracts_again() {
    for width in WIDTHS {
        for count in counts() {
            let mut random = Random::new(count);
            let usual = [9, 5, 65][count % 3];
            let lengths = random_lengths(&mut random, width, count, usual);
            let at = count % 131;
            let extra = extra_bits(&lengths);
            let bits = random.bytes((at + extra).div_ceil(8));
            let (end, elements) = check_deposit(width, &lengths, &bits, at);
            assert_eq!(end, at + extra);
            for tiers in available() {
                let mut found = Guarded::new(count, count % 3);
                tiers.lengths(width, Misaligned::new(&elements, count % 5).get(), found.get());
                assert!(found.into_bytes("lengths") == lengths, "lengths: {} {width:?} {count}", tiers.name());
            }
            let (extracted_end, words) = check_extract(width, &lengths, &elements, &words_from(at, extra), at);
            assert_eq!(extracted_end, end);
            let bit = |i: usize| words[i / 64] >> (i % 64) & 1 == 1;
            assert!((0..at).all(bit), "a bit before the first was changed");
            assert!((at..end).all(|i| bit(i) == (bits[i / 8] >> (i % 8) & 1 == 1)), "{width:?} {count}");
            assert!((end..words.len() * 64).all(|i| !bit(i)), "a bit after the last was set");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn deposit_of_too_few_bits_and_at_any_bit() {
    for width in WIDTHS {
        for count in [1, 63, 64, 65, 200, 511, 512, 700] {
            let mut random = Random::new(count);
            let lengths = random_lengths(&mut random, width, count, 9);
            let bits = random.bytes(count * width.bytes());
            for len in [0, 1, 7, 8, 9, 15, 16, 17, count / 2, bits.len()] {
                for at in
                    [0, 1, 7, 8, 63, 64, 65, 8 * len, 8 * len + 1, 1 << 40, usize::MAX / 2, usize::MAX - (1 << 20)]
                {
                    check_deposit(width, &lengths, &bits[..len.min(bits.len())], at);
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn extract_into_too_few_words() {
    for width in WIDTHS {
        for count in [1, 63, 64, 65, 200, 511, 512, 700] {
            let mut random = Random::new(count);
            let lengths = random_lengths(&mut random, width, count, 9);
            let elements = random.bytes(count * width.bytes());
            for len in [0, 1, 2, 3, 8, 9, count / 8, count] {
                for at in
                    [0, 1, 7, 8, 63, 64, 65, 64 * len, 64 * len + 1, 1 << 40, usize::MAX / 2, usize::MAX - (1 << 20)]
                {
                    check_extract(width, &lengths, &elements, &vec![0; len], at);
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn lengths_0_and_the_greatest() {
    for width in WIDTHS {
        for count in counts().step_by(5) {
            let mut random = Random::new(count);
            let longest = 8 * width.bytes() as u8;
            for length in [0, 1, 2, longest - 1, longest] {
                let lengths = vec![length; count];
                let extra = extra_bits(&lengths);
                let bits = random.bytes(extra.div_ceil(8) + 1);
                let (end, elements) = check_deposit(width, &lengths, &bits, 5);
                assert_eq!(end, 5 + extra);
                check_extract(width, &lengths, &elements, &words_from(5, extra), 5);
            }
        }
    }
}

#[test]
fn lengths_of_every_bit_and_of_anything() {
    for width in WIDTHS {
        for count in counts() {
            let mut elements = Random::new(count).bytes(count * width.bytes());
            for (i, element) in elements.chunks_exact_mut(width.bytes()).enumerate().filter(|(i, _)| i % 3 != 0) {
                let bit = i % (8 * width.bytes());
                element.fill(0);
                element[bit / 8] = 1 << (bit % 8);
            }
            let mut expected = vec![0; count];
            available()[0].lengths(width, &elements, &mut expected);
            for tiers in available() {
                let (source, destination) = offsets(count);
                let mut found = Guarded::new(count, destination);
                tiers.lengths(width, Misaligned::new(&elements, source).get(), found.get());
                assert!(found.into_bytes("lengths") == expected, "lengths: {} {width:?} {count}", tiers.name());
            }
        }
    }
}

/// Lengths greater than the width are unspecified, and still nothing is touched outside of the buffers.
#[test]
#[cfg_attr(miri, ignore = "large")]
fn lengths_beyond_the_width_do_no_harm() {
    for tiers in available() {
        for width in WIDTHS {
            for count in counts().step_by(11) {
                let lengths = Random::new(count).bytes(count);
                deposited(tiers, width, &lengths, &lengths, count % 9);
                let elements = vec![0xFF; count * width.bytes()];
                extracted(tiers, width, &lengths, &elements, &vec![0; count / 8], count % 9);
            }
        }
    }
}

/// The example of chapter 5.9.
#[test]
fn worked_example_of_extra_bits() {
    let elements: Vec<u8> = [0_u16, 1, 2, 7, 4].iter().flat_map(|y| y.to_le_bytes()).collect();
    for tiers in available() {
        let mut lengths = [0; 5];
        tiers.lengths(Width::W2, &elements, &mut lengths);
        assert_eq!(lengths, [0, 1, 2, 3, 3]);
        let mut words = [0; 2];
        assert_eq!(tiers.extract(Width::W2, &lengths, &elements, &mut words, 0), 5);
        assert_eq!(words, [0xA, 0]);
        let mut back = [0; 10];
        assert_eq!(tiers.deposit(Width::W2, &lengths, &[0xA], 0, &mut back), 5);
        assert_eq!(back, *elements);
    }
}

/// CI names the implementations that its machine must have, lest a test pass for want of a CPU.
#[test]
fn required_kernels_are_available() {
    let names: Vec<_> = available().iter().map(Tiers::name).collect();
    assert_eq!(names.first(), Some(&"scalar"));
    assert_eq!(names.last(), Some(&best().name()));
    let required = std::env::var("TENSILO_REQUIRE_KERNELS").unwrap_or_default();
    for name in required.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        assert!(names.contains(&name), "kernel {name} is required, this CPU has {names:?}");
    }
}
