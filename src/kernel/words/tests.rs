//! Every implementation against the scalar one.

use super::{Prediction, Words, available, best, scalar};
use crate::kernel::Width;

const WIDTHS: [Width; 4] = [Width::W1, Width::W2, Width::W4, Width::W8];

/// Counts to test, in elements: past some steps of the widest implementation.
const COUNTS: std::ops::RangeInclusive<usize> = if cfg!(miri) { 0..=20 } else { 0..=1024 };

/// Byte around the outputs that no implementation may change.
const GUARD: u8 = 0xA5;

/// Pseudo-random bytes (Marsaglia's xorshift64).
fn random_bytes(seed: usize, len: usize) -> Vec<u8> {
    let mut state = (seed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    })
    .take(len)
    .collect()
}

/// Random, the extremes, and such as carry through all bits; `seed` chooses.
fn contents(seed: usize, len: usize) -> Vec<u8> {
    match seed % 6 {
        0 => vec![0xFF; len],
        1 => (0..len).map(|i| if i % 8 == 7 { 0x80 } else { 0 }).collect(),
        2 => (0..len).map(|i| if i % 2 == 0 { 0 } else { 0x80 }).collect(),
        _ => random_bytes(seed, len),
    }
}

/// Bytes off alignment, between guards.
struct Guarded {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Guarded {
    fn new(content: &[u8], offset: usize) -> Self {
        let (start, end) = (64 + offset, 64 + offset + content.len());
        let mut bytes = vec![GUARD; end + 64];
        bytes[start..end].copy_from_slice(content);
        Self { bytes, start, end }
    }

    fn get(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    #[track_caller]
    fn assert_is(&self, due: &[u8], context: impl Fn() -> String) {
        assert!(&self.bytes[self.start..self.end] == due, "{}", context());
        let around = self.bytes[..self.start].iter().chain(&self.bytes[self.end..]);
        assert!(around.into_iter().all(|&byte| byte == GUARD), "wrote around the buffer: {}", context());
    }
}

fn check_bytes(words: &Words, width: Width, rotate: bool, count: usize, offset: usize) {
    let context = || format!("{} {width:?} {rotate} {count} {offset}", words.name());
    let elements = contents(count, count * width.bytes());
    let mut planes = vec![vec![0; count]; width.bytes()];
    let (top, low) = planes.split_last_mut().unwrap();
    let mut low: Vec<&mut [u8]> = low.iter_mut().map(Vec::as_mut_slice).collect();
    scalar::WORDS.split(width, rotate, &elements, &mut low, top);

    let mut input = Guarded::new(&elements, offset);
    let mut split: Vec<Guarded> =
        (0..width.bytes()).map(|j| Guarded::new(&vec![0; count], (offset * j) % 64)).collect();
    let (top, low) = split.split_last_mut().unwrap();
    let mut low: Vec<&mut [u8]> = low.iter_mut().map(Guarded::get).collect();
    words.split(width, rotate, input.get(), &mut low, top.get());
    for (split, plane) in split.iter().zip(&planes) {
        split.assert_is(plane, || format!("split: {}", context()));
    }

    let mut joined = Guarded::new(&vec![0; elements.len()], offset + 1);
    let (top, low) = split.split_last_mut().unwrap();
    let low: Vec<&[u8]> = low.iter_mut().map(|low| &*low.get()).collect();
    words.join(width, rotate, &low, top.get(), joined.get());
    joined.assert_is(&elements, || format!("join: {}", context()));

    let mut due = elements;
    scalar::WORDS.rotate_right(width, &mut due);
    words.rotate_right(width, joined.get());
    joined.assert_is(&due, || format!("rotate: {}", context()));
}

fn check_prediction(words: &Words, prediction: &Prediction, width: Width, count: usize, offset: usize) {
    let context = || format!("{} {width:?} {count} {offset} {prediction:?}", words.name());
    let content = contents(count, count * width.bytes());
    let mut due = vec![0; content.len()];
    scalar::WORDS.residuals(prediction, width, &content, &mut due);
    let mut input = Guarded::new(&content, offset);
    let mut out = Guarded::new(&vec![0; content.len()], (offset * 3) % 64);
    words.residuals(prediction, width, input.get(), out.get());
    out.assert_is(&due, || format!("residuals: {}", context()));
    words.undo(prediction, width, out.get());
    out.assert_is(&content, || format!("undo: {}", context()));

    let mut due = content;
    scalar::WORDS.undo(prediction, width, &mut due);
    words.undo(prediction, width, input.get());
    input.assert_is(&due, || format!("undo of anything: {}", context()));
}

const EDGES: [u32; 14] = [0, 1, 2, 3, 31, 32, 33, 64, 101, 128, 360, 505, 1 << 20, u32::MAX];

fn predictions() -> impl Iterator<Item = Prediction> {
    let flags = [(false, false), (false, true), (true, false), (true, true)];
    flags.into_iter().flat_map(|(lorenzo, float)| {
        let restarts = EDGES.into_iter().chain([7, 16, 360 * 2 + 5]);
        restarts.flat_map(move |restart| EDGES.map(|stride| Prediction { lorenzo, float, restart, stride }))
    })
}

#[test]
fn worked_examples() {
    // chapter 5.6 of the specification
    let delta = Prediction { lorenzo: false, float: true, restart: 3, stride: 1 };
    let mut elements = [0x80, 0x3F, 0x90, 0x3F, 0x80, 0xBF];
    let lorenzo = Prediction { lorenzo: true, float: false, restart: 6, stride: 3 };
    for words in available() {
        let mut coded = [0; 6];
        words.residuals(&delta, Width::W2, &elements, &mut coded);
        assert_eq!(coded, [0x00, 0x7F, 0x20, 0x00, 0x21, 0xFE]);
        words.residuals(&lorenzo, Width::W1, &[0x10, 0x12, 0x14, 0x20, 0x23, 0x26], &mut coded);
        assert_eq!(coded, [0x20, 0x04, 0x04, 0x20, 0x02, 0x02]);
        words.join(Width::W2, true, &[&[1, 2]], &[0x7F, 0x80], &mut elements[..4]);
        assert_eq!(elements[..4], [0x80, 0xBF, 0x01, 0x40]);
        elements = [0x80, 0x3F, 0x90, 0x3F, 0x80, 0xBF];
    }
}

#[test]
fn bytes_of_every_count() {
    for words in available() {
        for width in WIDTHS {
            for count in COUNTS {
                check_bytes(words, width, false, count, 0);
                check_bytes(words, width, true, count, count % 64);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn predictions_of_every_count() {
    let some =
        [(128, 101 * 128), (360, 101 * 360), (1, 101), (0, 0), (5, 33), (31, 64), (33, 101), (7, 1000), (64, 360)];
    for words in available() {
        for width in WIDTHS {
            for count in COUNTS {
                for (stride, restart) in some {
                    let [lorenzo, float] = [count % 2 == 0, count % 4 < 2];
                    let prediction = Prediction { lorenzo, float, restart, stride };
                    check_prediction(words, &prediction, width, count, count % 64);
                    let prediction = Prediction { lorenzo: !lorenzo, ..prediction };
                    check_prediction(words, &prediction, width, count, 0);
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn every_prediction() {
    for words in available() {
        for width in WIDTHS {
            for prediction in predictions() {
                for count in [101, 360, 1013, 1159] {
                    check_prediction(words, &prediction, width, count, 3);
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn chunks_of_usual_size() {
    for words in available() {
        for width in WIDTHS {
            for bytes in [64 << 10, (64 << 10) + 8 * 77, 40_000] {
                let count = bytes / width.bytes();
                check_bytes(words, width, true, count, 0);
                for (lorenzo, restart, stride) in [(true, 101 * 128, 128), (true, 101 * 360, 360), (false, 101, 1)] {
                    let prediction = Prediction { lorenzo, float: true, restart, stride };
                    check_prediction(words, &prediction, width, count, 0);
                }
            }
        }
    }
}

#[test]
fn a_part_of_an_element_is_left_alone() {
    let prediction = Prediction { lorenzo: true, float: true, restart: 30, stride: 5 };
    for words in available() {
        let content = contents(5, 64 * 8 + 7);
        let mut data = content.clone();
        words.rotate_right(Width::W8, &mut data);
        words.undo(&prediction, Width::W8, &mut data);
        assert_eq!(data[64 * 8..], content[64 * 8..], "{}", words.name());
    }
}

/// In release builds a broken contract writes nothing, or what fits.
#[test]
#[cfg(not(debug_assertions))]
fn slices_of_other_lengths() {
    let prediction = Prediction { lorenzo: false, float: false, restart: 1, stride: 1 };
    for words in available() {
        let mut out = [GUARD; 9];
        words.join(Width::W2, true, &[&[1; 4]], &[2; 5], &mut out);
        words.join(Width::W2, true, &[], &[2; 4], &mut out[..8]);
        words.split(Width::W2, true, &[1; 7], &mut [&mut out[..4]], &mut [0; 4]);
        assert_eq!(out, [GUARD; 9], "{}", words.name());
        words.residuals(&prediction, Width::W2, &[1; 7], &mut out);
        assert_eq!(out, [2, 2, 2, 2, 2, 2, GUARD, GUARD, GUARD], "{}", words.name());
    }
}

/// CI names the implementations that its machine must have, lest a test pass for want of a CPU.
#[test]
fn required_words_are_available() {
    let names: Vec<_> = available().iter().map(Words::name).collect();
    println!("words under test: {}", names.join(", "));
    assert_eq!(names.first(), Some(&"scalar"));
    assert_eq!(names.last(), Some(&best().name()));
    let required = std::env::var("TENSILO_REQUIRE_KERNELS").unwrap_or_default();
    for name in required.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        assert!(names.contains(&name), "kernel {name} is required, this CPU has {names:?}");
    }
}
