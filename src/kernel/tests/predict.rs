//! Predictions, and linear predictions by filters.

use super::{Guarded, WIDTHS, contents};
use crate::kernel::{
    Width,
    predict::{FilterBank, MAX_FILTERS, MAX_TAPS, Predict, Prediction, Predictor, SEGMENT, Weights, available},
};

/// The counts of elements to test: up to more than a few steps of the widest implementation.
const COUNTS: std::ops::RangeInclusive<usize> = if cfg!(miri) { 0..=20 } else { 0..=1024 };

fn check_prediction(kernel: &Predict, prediction: &Prediction, width: Width, count: usize, offset: usize) {
    let context = || format!("{} {width:?} {count} {offset} {prediction:?}", kernel.name());
    let content = contents(count, count * width.bytes());
    let mut expected = vec![0; content.len()];
    available()[0].residuals(prediction, width, &content, &mut expected);
    let mut input = Guarded::new(&content, offset);
    let mut out = Guarded::new(&vec![0; content.len()], (offset * 3) % 64);
    kernel.residuals(prediction, width, input.get(), out.get());
    out.assert_is(&expected, || format!("residuals: {}", context()));
    kernel.undo(prediction, width, out.get());
    out.assert_is(&content, || format!("undo: {}", context()));

    let mut expected = content;
    available()[0].undo(prediction, width, &mut expected);
    kernel.undo(prediction, width, input.get());
    input.assert_is(&expected, || format!("undo of anything: {}", context()));
}

const PREDICTORS: [Predictor; 5] = [
    Predictor::Delta,
    Predictor::Lorenzo,
    Predictor::Separable(Weights { left: 5, above: 4 }),
    Predictor::Separable(Weights { left: 8, above: 2 }),
    Predictor::Separable(Weights { left: 0, above: 8 }),
];

const EDGES: [u32; 14] = [0, 1, 2, 3, 31, 32, 33, 64, 101, 128, 360, 505, 1 << 20, u32::MAX];

fn predictions() -> impl Iterator<Item = Prediction> {
    PREDICTORS.into_iter().flat_map(|predictor| {
        let restarts = EDGES.into_iter().chain([7, 16, 360 * 2 + 5]);
        restarts.flat_map(move |restart| EDGES.map(|stride| Prediction { predictor, restart, stride }))
    })
}

/// The examples of chapter 5.6.
#[test]
fn worked_examples() {
    let delta = Prediction { predictor: Predictor::Delta, restart: 3, stride: 1 };
    let lorenzo = Prediction { predictor: Predictor::Lorenzo, restart: 6, stride: 3 };
    let weights = Weights { left: 4, above: 2 };
    let separable = Prediction { predictor: Predictor::Separable(weights), restart: 9, stride: 3 };
    for kernel in available() {
        let mut coded = [0; 6];
        kernel.residuals(&delta, Width::W2, &[0x80, 0x3F, 0x90, 0x3F, 0x80, 0xBF], &mut coded);
        assert_eq!(coded, [0x00, 0x7F, 0x20, 0x00, 0xE0, 0xFF]);
        kernel.residuals(&lorenzo, Width::W1, &[0x10, 0x12, 0x14, 0x20, 0x23, 0x26], &mut coded);
        assert_eq!(coded, [0x20, 0x04, 0x04, 0x20, 0x02, 0x02]);
        let mut coded = [0; 9];
        kernel.residuals(&separable, Width::W1, &[0x40, 0x42, 0x44, 0x35, 0x38, 0x3B, 0x90, 0x12, 0x14], &mut coded);
        assert_eq!(coded, [0x80, 0x04, 0x04, 0x15, 0x09, 0x07, 0xBC, 0xA5, 0x25]);
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn predictions_of_every_count() {
    let some =
        [(128, 101 * 128), (360, 101 * 360), (1, 101), (0, 0), (5, 33), (31, 64), (33, 101), (7, 1000), (64, 360)];
    for kernel in available() {
        for width in WIDTHS {
            for count in COUNTS {
                for (stride, restart) in some {
                    for (predictor, index) in PREDICTORS.into_iter().zip(0..) {
                        let prediction = Prediction { predictor, restart, stride };
                        check_prediction(kernel, &prediction, width, count, (count + index) % 64);
                    }
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn every_prediction() {
    for kernel in available() {
        for width in WIDTHS {
            for prediction in predictions() {
                for count in [101, 360, 1013, 1159] {
                    check_prediction(kernel, &prediction, width, count, 3);
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large")]
fn chunks_of_usual_size() {
    for kernel in available() {
        for width in WIDTHS {
            for bytes in [64 << 10, (64 << 10) + 8 * 77, 40_000] {
                for (predictor, (restart, stride)) in
                    PREDICTORS.into_iter().zip([(101, 1), (101 * 360, 360)].into_iter().chain([(101 * 128, 128); 3]))
                {
                    let prediction = Prediction { predictor, restart, stride };
                    check_prediction(kernel, &prediction, width, bytes / width.bytes(), 0);
                }
            }
        }
    }
}

/// Rows are undone in groups. Samples can end after any row of a group, or within a row.
#[test]
#[cfg_attr(miri, ignore = "large")]
fn groups_of_rows() {
    let predictor = Predictor::Separable(Weights { left: 5, above: 4 });
    for kernel in available() {
        for width in WIDTHS {
            for stride in [8, 9, 16, 40, 79, 80, 127, 128, 129, 360] {
                for (rows, cut) in (1..=70).zip([0, 1, 7, 8, 15, 39].into_iter().cycle()) {
                    let restart = rows * stride - cut.min(stride - 1);
                    let prediction = Prediction { predictor, restart, stride };
                    for count in [restart, restart + stride + 3, 2 * restart + 1] {
                        check_prediction(kernel, &prediction, width, count as usize, rows as usize % 64);
                    }
                }
            }
        }
    }
}

/// A vector has several rows. Samples can end after any row of a vector, or within a row.
#[test]
#[cfg_attr(miri, ignore = "large")]
fn short_rows() {
    let separable = |left| Predictor::Separable(Weights { left, above: 0 });
    let predictors = [Predictor::Delta, Predictor::Lorenzo, separable(0), separable(3), separable(7), separable(8)];
    for kernel in available() {
        for width in WIDTHS {
            for stride in (2..=17).chain([20, 21, 22, 31, 32, 33]) {
                for (index, predictor) in predictors.into_iter().enumerate() {
                    for count in (64..=1024).step_by(64).map(|count| count + (index + stride as usize) % 64) {
                        let restart = [u32::MAX, 260, 256 + stride][count % 3];
                        let prediction = Prediction { predictor, restart, stride };
                        check_prediction(kernel, &prediction, width, count, count % 64);
                    }
                }
            }
        }
    }
}

/// Tests each error of one byte, and many wider errors, with each weight.
#[test]
fn weights_in_short_rows() {
    for kernel in available() {
        for width in [Width::W1, Width::W2, Width::W4] {
            for left in 0..=8 {
                let bits = 8 * width.bytes() as u32;
                let errors = (0..=u16::MAX).step_by(if width == Width::W1 { 1 << 8 } else { 251 });
                let errors = errors.map(|error| (u32::from(error) * 0x1_0001) >> (32 - bits));
                let coded = errors.flat_map(|error| [error, 0, 0]);
                let coded: Vec<u8> =
                    coded.flat_map(|error| error.to_le_bytes().into_iter().take(width.bytes())).collect();
                let predictor = Predictor::Separable(Weights { left, above: 0 });
                let prediction = Prediction { predictor, restart: u32::MAX, stride: 3 };
                let [mut expected, mut data] = [coded.clone(), coded];
                available()[0].undo(&prediction, width, &mut expected);
                kernel.undo(&prediction, width, &mut data);
                assert!(data == expected, "{} {width:?} {left}", kernel.name());
            }
        }
    }
}

/// Tests each error of two bytes with each weight. The residuals after each error are 0.
#[test]
#[cfg_attr(miri, ignore = "large")]
fn all_weights() {
    let errors = (0..=u16::MAX).flat_map(|error| [error, 0, 0, 0, 0, 0, 0, 0]).flat_map(u16::to_le_bytes);
    let coded: Vec<u8> = errors.collect();
    for weight in 0..=8 {
        let predictor = Predictor::Separable(Weights { left: weight, above: 8 - weight });
        let prediction = Prediction { predictor, restart: u32::MAX, stride: 8 };
        let mut expected = coded.clone();
        available()[0].undo(&prediction, Width::W2, &mut expected);
        for kernel in available() {
            let mut data = coded.clone();
            kernel.undo(&prediction, Width::W2, &mut data);
            assert!(data == expected, "{} {weight}", kernel.name());
        }
    }
}

#[test]
fn trailing_bytes_of_an_element_are_unchanged() {
    let prediction = Prediction { predictor: Predictor::Lorenzo, restart: 30, stride: 5 };
    for kernel in available() {
        let content = contents(5, 64 * 8 + 7);
        let mut data = content.clone();
        kernel.undo(&prediction, Width::W8, &mut data);
        assert_eq!(data[64 * 8..], content[64 * 8..], "{}", kernel.name());
    }
}

/// In release builds, only the whole elements that fit in both buffers are coded.
#[test]
#[cfg(not(debug_assertions))]
fn buffers_of_other_lengths() {
    use super::GUARD;
    let prediction = Prediction { predictor: Predictor::Delta, restart: 1, stride: 1 };
    for kernel in available() {
        let mut out = [GUARD; 9];
        kernel.residuals(&prediction, Width::W2, &[1; 7], &mut out);
        assert_eq!(out, [2, 2, 2, 2, 2, 2, GUARD, GUARD, GUARD], "{}", kernel.name());
    }
}

// ---- filters

/// Returns a bank of pseudo-random filters. The first two filters have extreme coefficients.
fn bank(taps: usize, restart: u16, zero: u16) -> FilterBank {
    let bytes = contents(taps, MAX_FILTERS * MAX_TAPS * 2);
    let mut values = bytes.as_chunks().0.iter().map(|bytes| i16::from_le_bytes(*bytes));
    let mut coefficients = [[0; MAX_TAPS]; MAX_FILTERS];
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
    let mut expected = vec![0; content.len()];
    available()[0].filter(bank, &codes, &content, &mut expected);
    let mut input = Guarded::new(&content, offset);
    let mut out = Guarded::zeros(content.len(), (offset * 3) % 64);
    kernel.filter(bank, &codes, input.get(), out.get());
    out.assert_is(&expected, || format!("residuals: {}", context()));
    kernel.undo_filter(bank, &codes, out.get());
    out.assert_is(&content, || format!("undo: {}", context()));

    let mut expected = content;
    available()[0].undo_filter(bank, &codes, &mut expected);
    kernel.undo_filter(bank, &codes, input.get());
    input.assert_is(&expected, || format!("undo of anything: {}", context()));
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
        for taps in (0..=MAX_TAPS).step_by(if cfg!(miri) { 8 } else { 1 }) {
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
            // up to more than one group of the widest implementation
            for count in (0..=2500).chain((2500..33 * 8 * SEGMENT).step_by(977)) {
                check(kernel, &bank(taps, restart, 0x8000), count, count % 64);
            }
        }
    }
}
