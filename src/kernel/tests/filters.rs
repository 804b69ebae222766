//! Filters of linear prediction.

use super::support::{Guarded, contents};
use crate::kernel::predict::{FilterBank, MOST_FILTERS, MOST_TAPS, Predict, SEGMENT, available};

/// Returns a bank of filters that look random, with the extremes among them.
fn bank(taps: usize, restart: u16, zero: u16) -> FilterBank {
    let bytes = contents(taps, MOST_FILTERS * MOST_TAPS * 2);
    let mut values = bytes.as_chunks().0.iter().map(|bytes| i16::from_le_bytes(*bytes));
    let mut coefficients = [[0; MOST_TAPS]; MOST_FILTERS];
    for (filter, coefficients) in coefficients.iter_mut().enumerate() {
        for coefficient in &mut coefficients[..taps] {
            *coefficient = match filter {
                0 => i16::MIN,
                1 => i16::MAX,
                _ => values.next().unwrap() >> (filter % 8),
            };
        }
    }
    FilterBank { coefficients, taps, restart, zero }
}

fn check(kernel: &Predict, bank: &FilterBank, count: usize, offset: usize) {
    let context = || format!("{} {count} {offset} {bank:?}", kernel.name());
    let content = contents(count, count * 2);
    let codes: Vec<u8> = (0..count.div_ceil(SEGMENT)).map(|i| (i * 7 + count) as u8).collect();
    let mut due = vec![0; content.len()];
    available()[0].filter(bank, &codes, &content, &mut due);
    let mut input = Guarded::new(&content, offset);
    let mut out = Guarded::zeros(content.len(), (offset * 3) % 64);
    kernel.filter(bank, &codes, input.get(), out.get());
    out.assert_is(&due, || format!("residuals: {}", context()));
    kernel.undo_filter(bank, &codes, out.get());
    out.assert_is(&content, || format!("undo: {}", context()));

    let mut due = content;
    available()[0].undo_filter(bank, &codes, &mut due);
    kernel.undo_filter(bank, &codes, input.get());
    input.assert_is(&due, || format!("undo of anything: {}", context()));
}

/// The example of chapter 5.15.
#[test]
fn worked_example_of_filters() {
    let mut bank = FilterBank { coefficients: Default::default(), taps: 2, restart: 1, zero: 0x8000 };
    bank.coefficients[0][..2].copy_from_slice(&[6000, -3000]);
    for kernel in available() {
        let mut coded = [0; 8];
        kernel.filter(&bank, &[0], &[0x00, 0x80, 0x06, 0x80, 0xF7, 0x7F, 0x04, 0x80], &mut coded);
        assert_eq!(coded, [0, 0, 0x0C, 0, 0x23, 0, 0x2C, 0]);
    }
}

#[test]
fn filters_of_every_length() {
    for kernel in available() {
        for taps in (0..=MOST_TAPS).step_by(if cfg!(miri) { 8 } else { 1 }) {
            for (restart, zero) in [(1, 0), (3, 0x8000), (u16::MAX, 12_345)] {
                for count in if cfg!(miri) { vec![0, 1, 130] } else { vec![0, 1, 127, 128, 129, 400, 1000, 5000] } {
                    check(kernel, &bank(taps, restart, zero), count, (count + taps) % 64);
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn filters_of_every_count() {
    for kernel in available() {
        for (taps, restart) in [(8, 1), (16, 2), (5, 8)] {
            // more than a group of the widest implementation
            for count in (0..=2500).chain((2500..33 * 8 * SEGMENT).step_by(977)) {
                check(kernel, &bank(taps, restart, 0x8000), count, count % 64);
            }
        }
    }
}
