//! Bit lengths and extra bits.

use super::support::{Guarded, Misaligned, Random, WIDTHS, counts, offsets};
use crate::kernel::Width;
use crate::kernel::extra_bits::{ExtraBits, available};

/// Word around a destination that no kernel may change.
const GUARD_WORD: u64 = 0xA5A5_A5A5_A5A5_A5A5;

fn random_lengths(random: &mut Random, width: Width, count: usize, usual: u64) -> Vec<u8> {
    let longest = 8 * width.bytes() as u64;
    let mut next = || {
        let length = if random.next() >> 20 & 15 == 0 { random.next() >> 20 } else { (random.next() >> 20) % usual };
        (length % (longest + 1)) as u8
    };
    (0..count).map(|_| next()).collect()
}

fn deposited(kernel: &ExtraBits, width: Width, lengths: &[u8], bits: &[u8], at: usize) -> (usize, Vec<u8>) {
    let (source, destination) = offsets(lengths.len());
    let (lengths, bits) = (Misaligned::new(lengths, source), Misaligned::new(bits, destination));
    let mut out = Guarded::zeros(lengths.get().len() * width.bytes(), destination);
    let end = kernel.deposit(width, lengths.get(), bits.get(), at, out.get());
    (end, out.into_bytes(|| kernel.name().to_owned()))
}

fn extracted(
    kernel: &ExtraBits,
    width: Width,
    lengths: &[u8],
    elements: &[u8],
    words: &[u64],
    at: usize,
) -> (usize, Vec<u64>) {
    let (source, destination) = offsets(lengths.len());
    let (lengths, elements) = (Misaligned::new(lengths, source), Misaligned::new(elements, destination));
    let mut guarded = [&[GUARD_WORD; 8], words, &[GUARD_WORD; 8]].concat();
    let end = kernel.extract(width, lengths.get(), elements.get(), &mut guarded[8..8 + words.len()], at);
    assert!(guarded[..8].iter().chain(&guarded[8 + words.len()..]).all(|&word| word == GUARD_WORD));
    (end, guarded[8..8 + words.len()].to_vec())
}

fn check_deposit(width: Width, lengths: &[u8], bits: &[u8], at: usize) -> (usize, Vec<u8>) {
    let expected = deposited(&available()[0], width, lengths, bits, at);
    for kernel in available() {
        let found = deposited(kernel, width, lengths, bits, at);
        let (name, count, len) = (kernel.name(), lengths.len(), bits.len());
        assert!(found == expected, "deposit: {name} {width:?} count {count} bits {len} at {at}");
    }
    expected
}

fn check_extract(width: Width, lengths: &[u8], elements: &[u8], words: &[u64], at: usize) -> (usize, Vec<u64>) {
    let expected = extracted(&available()[0], width, lengths, elements, words, at);
    for kernel in available() {
        let found = extracted(kernel, width, lengths, elements, words, at);
        let (name, count, len) = (kernel.name(), lengths.len(), words.len());
        assert!(found == expected, "extract: {name} {width:?} count {count} words {len} at {at}");
    }
    expected
}

/// Returns words for `bits` bits from bit `at` on, and a word more: ones before that bit, and then
/// zeros.
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
            for kernel in available() {
                let mut found = Guarded::zeros(count, count % 3);
                kernel.lengths(width, Misaligned::new(&elements, count % 5).get(), found.get());
                assert!(
                    found.into_bytes(|| "lengths".to_owned()) == lengths,
                    "lengths: {} {width:?} {count}",
                    kernel.name()
                );
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
            for kernel in available() {
                let (source, destination) = offsets(count);
                let mut found = Guarded::zeros(count, destination);
                kernel.lengths(width, Misaligned::new(&elements, source).get(), found.get());
                assert!(
                    found.into_bytes(|| "lengths".to_owned()) == expected,
                    "lengths: {} {width:?} {count}",
                    kernel.name()
                );
            }
        }
    }
}

/// Lengths greater than the width give unspecified results, but nothing outside of the buffers.
#[test]
#[cfg_attr(miri, ignore = "large")]
fn lengths_beyond_the_width_do_no_harm() {
    for kernel in available() {
        for width in WIDTHS {
            for count in counts().step_by(11) {
                let lengths = Random::new(count).bytes(count);
                deposited(kernel, width, &lengths, &lengths, count % 9);
                let elements = vec![0xFF; count * width.bytes()];
                extracted(kernel, width, &lengths, &elements, &vec![0; count / 8], count % 9);
            }
        }
    }
}

/// The example of chapter 5.9.
#[test]
fn worked_example_of_extra_bits() {
    let elements: Vec<u8> = [0_u16, 1, 2, 7, 4].iter().flat_map(|y| y.to_le_bytes()).collect();
    for kernel in available() {
        let mut lengths = [0; 5];
        kernel.lengths(Width::W2, &elements, &mut lengths);
        assert_eq!(lengths, [0, 1, 2, 3, 3]);
        let mut words = [0; 2];
        assert_eq!(kernel.extract(Width::W2, &lengths, &elements, &mut words, 0), 5);
        assert_eq!(words, [0xA, 0]);
        let mut back = [0; 10];
        assert_eq!(kernel.deposit(Width::W2, &lengths, &[0xA], 0, &mut back), 5);
        assert_eq!(back, *elements);
    }
}
