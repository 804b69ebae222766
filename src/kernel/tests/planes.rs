//! Data stored in planes: the bit-shuffle, byte planes and rotation, extra bits, and tiers.
//!
//! Each kernel is compared with the scalar kernel. Lengths end anywhere in a vector, and buffers
//! are misaligned. Their guards reveal a write outside of a buffer.

use super::{Guarded, Misaligned, Random, WIDTHS, contents, counts, offsets};
use crate::kernel::{
    Width,
    bitshuffle::{self, BitShuffle},
    byte_planes::{self, BytePlanes},
    extra_bits::{self, ExtraBits},
    tiers::{self, GROUP, GROUP_BYTES, Tiers, code_bytes},
};
use std::ops::Range;

// ---- the bit-shuffle

/// The lengths to test, in elements: up to more than two steps of the widest implementation.
const LENGTHS: std::ops::RangeInclusive<usize> = if cfg!(miri) { 0..=20 } else { 0..=1100 };

/// Shuffles one bit at a time, as the specification defines it.
fn shuffle_by_definition(width: Width, src: &[u8]) -> Vec<u8> {
    let w = width.bytes();
    let m = src.len() / w / 8;
    let mut dst = vec![0; src.len()];
    for p in 0..8 * w {
        for i in 0..m {
            for t in 0..8 {
                let bit = src[(8 * i + t) * w + p / 8] >> (p % 8) & 1;
                dst[p * m + i] |= bit << t;
            }
        }
    }
    dst[8 * w * m..].copy_from_slice(&src[8 * w * m..]);
    dst
}

fn scalar_shuffle(width: Width, src: &[u8], dst: &mut [u8]) {
    bitshuffle::available()[0].shuffle(width, src, dst);
}

fn check_bits(kernel: &BitShuffle, width: Width, count: usize, (source, destination): (usize, usize)) {
    let elements = Random::new(count).bytes(count * width.bytes());
    let mut planes = vec![0; elements.len()];
    scalar_shuffle(width, &elements, &mut planes);
    let context = || format!("{} {width:?} {count} {source} {destination}", kernel.name());
    let mut out = Guarded::zeros(elements.len(), destination);
    kernel.shuffle(width, Misaligned::new(&elements, source).get(), out.get());
    out.assert_is(&planes, || format!("shuffle: {}", context()));
    let mut out = Guarded::zeros(elements.len(), destination);
    kernel.unshuffle(width, Misaligned::new(&planes, source).get(), out.get());
    out.assert_is(&elements, || format!("unshuffle: {}", context()));
}

#[test]
fn scalar_is_the_definition() {
    for width in WIDTHS {
        for count in LENGTHS.take_while(|&count| count <= 300) {
            let elements = Random::new(count).bytes(count * width.bytes());
            let mut planes = vec![0; elements.len()];
            scalar_shuffle(width, &elements, &mut planes);
            assert_eq!(planes, shuffle_by_definition(width, &elements), "{width:?} {count}");
        }
    }
}

#[test]
fn worked_example_of_bit_planes() {
    // Element t is 1 << t, so the single byte of plane p has only bit p set. The ninth element is
    // the tail.
    let elements = [1, 2, 4, 8, 16, 32, 64, 128, 0xEE];
    let mut planes = [0; 9];
    bitshuffle::best().shuffle(Width::W1, &elements, &mut planes);
    assert_eq!(planes, elements);
    // Bit 9 of element 3 is bit 3 of plane 9.
    let mut elements = [0; 16];
    elements[7] = 0b10;
    let mut planes = [0; 16];
    bitshuffle::best().shuffle(Width::W2, &elements, &mut planes);
    assert_eq!(planes, [0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn every_kernel_gives_the_bytes_of_scalar() {
    for kernel in bitshuffle::available() {
        for width in WIDTHS {
            for count in LENGTHS {
                check_bits(kernel, width, count, (0, 0));
            }
        }
    }
}

#[test]
fn buffers_need_no_alignment() {
    for kernel in bitshuffle::available() {
        for width in WIDTHS {
            for count in LENGTHS.step_by(37) {
                for offsets in [(1, 0), (0, 1), (3, 7), (15, 17), (33, 31), (63, 63)] {
                    check_bits(kernel, width, count, offsets);
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn bits_of_chunks_of_usual_size() {
    for kernel in bitshuffle::available() {
        for width in WIDTHS {
            for bytes in [64 << 10, (64 << 10) + 8 * 77, 40_000] {
                check_bits(kernel, width, bytes / width.bytes(), (0, 0));
            }
        }
    }
}

/// In release builds, only the whole elements that fit in the shorter buffer are shuffled.
#[test]
#[cfg(not(debug_assertions))]
fn unequal_buffers_are_cut_to_whole_elements() {
    use super::GUARD;
    let elements = Random::new(1).bytes(2049);
    let mut planes = vec![0; 2048];
    scalar_shuffle(Width::W2, &elements[..2048], &mut planes);
    for kernel in bitshuffle::available() {
        let mut longer = vec![GUARD; 3000];
        kernel.shuffle(Width::W2, &elements, &mut longer);
        assert_eq!(longer[..2048], planes, "{}", kernel.name());
        assert!(longer[2048..].iter().all(|&byte| byte == GUARD), "{}", kernel.name());
        let mut shorter = vec![0; 1001];
        kernel.unshuffle(Width::W8, &elements, &mut shorter);
        assert_eq!(shorter[1000], 0, "{}", kernel.name());
    }
}

// ---- byte planes

/// The counts of elements to test: up to more than a few steps of the widest implementation.
const COUNTS: std::ops::RangeInclusive<usize> = if cfg!(miri) { 0..=20 } else { 0..=1024 };

fn check_bytes(kernel: &BytePlanes, width: Width, rotate: bool, count: usize, offset: usize) {
    let context = || format!("{} {width:?} {rotate} {count} {offset}", kernel.name());
    let elements = contents(count, count * width.bytes());
    let mut planes = vec![vec![0; count]; width.bytes()];
    let (top, low) = planes.split_last_mut().unwrap();
    let mut low: Vec<&mut [u8]> = low.iter_mut().map(Vec::as_mut_slice).collect();
    byte_planes::available()[0].split(width, rotate, &elements, &mut low, top);

    let mut input = Guarded::new(&elements, offset);
    let mut split: Vec<Guarded> =
        (0..width.bytes()).map(|j| Guarded::new(&vec![0; count], (offset * j) % 64)).collect();
    let (top, low) = split.split_last_mut().unwrap();
    let mut low: Vec<&mut [u8]> = low.iter_mut().map(Guarded::get).collect();
    kernel.split(width, rotate, input.get(), &mut low, top.get());
    for (split, plane) in split.iter().zip(&planes) {
        split.assert_is(plane, || format!("split: {}", context()));
    }

    let mut joined = Guarded::new(&vec![0; elements.len()], offset + 1);
    let (top, low) = split.split_last_mut().unwrap();
    let low: Vec<&[u8]> = low.iter_mut().map(|low| &*low.get()).collect();
    kernel.join(width, rotate, &low, top.get(), joined.get());
    joined.assert_is(&elements, || format!("join: {}", context()));

    let mut expected_bytes = elements;
    byte_planes::available()[0].rotate_right(width, &mut expected_bytes);
    kernel.rotate_right(width, joined.get());
    joined.assert_is(&expected_bytes, || format!("rotate: {}", context()));
}

#[test]
fn worked_example_of_byte_planes() {
    for kernel in byte_planes::available() {
        let mut elements = [0; 4];
        kernel.join(Width::W2, true, &[&[1, 2]], &[0x7F, 0x80], &mut elements);
        assert_eq!(elements, [0x80, 0xBF, 0x01, 0x40], "{}", kernel.name());
    }
}

#[test]
fn bytes_of_every_count() {
    for kernel in byte_planes::available() {
        for width in WIDTHS {
            for count in COUNTS {
                check_bytes(kernel, width, false, count, 0);
                check_bytes(kernel, width, true, count, count % 64);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn bytes_of_chunks_of_usual_size() {
    for kernel in byte_planes::available() {
        for width in WIDTHS {
            for bytes in [64 << 10, (64 << 10) + 8 * 77, 40_000] {
                check_bytes(kernel, width, true, bytes / width.bytes(), 0);
            }
        }
    }
}

#[test]
fn trailing_bytes_of_an_element_are_unchanged() {
    for kernel in byte_planes::available() {
        let content = contents(5, 64 * 8 + 7);
        let mut data = content.clone();
        kernel.rotate_right(Width::W8, &mut data);
        assert_eq!(data[64 * 8..], content[64 * 8..], "{}", kernel.name());
    }
}

/// In release builds, nothing is written if the buffers have different numbers of elements.
#[test]
#[cfg(not(debug_assertions))]
fn buffers_of_other_lengths() {
    use super::GUARD;

    for kernel in byte_planes::available() {
        let mut out = [GUARD; 9];
        kernel.join(Width::W2, true, &[&[1; 4]], &[2; 5], &mut out);
        kernel.join(Width::W2, true, &[], &[2; 4], &mut out[..8]);
        kernel.split(Width::W2, true, &[1; 7], &mut [&mut out[..4]], &mut [0; 4]);
        assert_eq!(out, [GUARD; 9], "{}", kernel.name());
    }
}

// ---- extra bits

/// The value of the words around a destination, which no kernel may change.
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
    let expected = deposited(&extra_bits::available()[0], width, lengths, bits, at);
    for kernel in extra_bits::available() {
        let found = deposited(kernel, width, lengths, bits, at);
        let (name, count, len) = (kernel.name(), lengths.len(), bits.len());
        assert!(found == expected, "deposit: {name} {width:?} count {count} bits {len} at {at}");
    }
    expected
}

fn check_extract(width: Width, lengths: &[u8], elements: &[u8], words: &[u64], at: usize) -> (usize, Vec<u64>) {
    let expected = extracted(&extra_bits::available()[0], width, lengths, elements, words, at);
    for kernel in extra_bits::available() {
        let found = extracted(kernel, width, lengths, elements, words, at);
        let (name, count, len) = (kernel.name(), lengths.len(), words.len());
        assert!(found == expected, "extract: {name} {width:?} count {count} words {len} at {at}");
    }
    expected
}

/// Returns words that have room for `bits` bits from bit `at` on, and one more word. All bits
/// before bit `at` are ones, and all other bits are zeros.
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
            for kernel in extra_bits::available() {
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
fn lengths_zero_and_maximum() {
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
            extra_bits::available()[0].lengths(width, &elements, &mut expected);
            for kernel in extra_bits::available() {
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

/// Lengths above the width produce unspecified results, but cause no access outside of the buffers.
#[test]
#[cfg_attr(miri, ignore = "large")]
fn lengths_beyond_the_width_do_no_harm() {
    for kernel in extra_bits::available() {
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
    for kernel in extra_bits::available() {
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

// ---- tiers

fn merged(tiers: &Tiers, width: usize, codes: &[u8], escaped: &[u8], count: usize) -> (usize, Vec<u8>) {
    let (source, destination) = offsets(count);
    let mut out = Guarded::zeros(count, destination);
    let (codes, escaped) = (Misaligned::new(codes, source), Misaligned::new(escaped, destination));
    let table: [u8; 16] = std::array::from_fn(|i| 0x51 + 3 * i as u8);
    let (groups, last) = split_last(width, codes.get(), count);
    let escapes = tiers.merge(width, groups, &last, &table, escaped.get(), out.get());
    (escapes, out.into_bytes(|| tiers.name().to_owned()))
}

/// Splits the groups of `count` codes into the full groups and the last one.
fn split_last(width: usize, codes: &[u8], count: usize) -> (&[u8], [u8; GROUP_BYTES]) {
    let (groups, rest) = codes.split_at(count / GROUP * 8 * width);
    (groups, std::array::from_fn(|i| rest.get(i).copied().unwrap_or(0)))
}

fn check_merge(width: usize, codes: &[u8], escaped: &[u8], count: usize) {
    let expected = merged(&tiers::available()[0], width, codes, escaped, count);
    for tiers in tiers::available() {
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
        let before = |count: usize| merged(&tiers::available()[0], width, &codes, &[], count).0;
        let before: Vec<usize> = (0..=COUNT).map(before).collect();
        for tiers in tiers::available() {
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
fn merge_of_only_escapes_none_and_too_few() {
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

/// Returns the number of escapes, the codes, and the escaped symbols.
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
    let expected = split(&tiers::available()[0], width, code_of, symbols);
    let count = symbols.len();
    for tiers in tiers::available() {
        let found = split(tiers, width, code_of, symbols);
        assert!(found == expected, "split: {} width {width} count {count}", tiers.name());
        // and back; the symbols in the table of `merged` start at 0x51, in steps of 3
        let escape = (1 << width) - 1;
        let (escapes, codes, escaped) = found;
        let back = merged(tiers, width, &codes, &escaped, count);
        let expected_bytes = symbols.iter().map(|&symbol| match code_of[usize::from(symbol)] & escape {
            code if code == escape => symbol,
            code => 0x51 + 3 * code,
        });
        assert!(
            back == (escapes, expected_bytes.collect()),
            "split and merge: {} width {width} count {count}",
            tiers.name()
        );
    }
}

#[test]
fn every_split_gives_the_codes_of_scalar_and_merges_again() {
    for width in 1..=4 {
        for count in counts() {
            let mut random = Random::new(count);
            let symbols = random.bytes(count);
            // first any table, then a table as in files, in which only a few symbols do not escape
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
fn split_of_only_escapes_and_none() {
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
    for tiers in tiers::available() {
        let mut code_of = [1; 256];
        code_of[7] = 0;
        let (escapes, codes, escaped) = split(tiers, 1, &code_of, &symbols);
        assert_eq!((escapes, codes, escaped), (3, vec![0x34, 0, 0, 0, 0, 0, 0, 0], vec![5, 9, 0xAA]));
    }
}
