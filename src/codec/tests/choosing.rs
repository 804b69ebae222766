//! What the choice of an encoding is made of: windows, predictions, estimates and what saves
//! enough; and that what was chosen is compared.

use crate::codec::chunk_encoder::{ChunkEncoder, saves_enough};
use crate::codec::encoding::{Codec, Encoder};
use crate::codec::exponent_tiers::ExponentTiers;
use crate::codec::geometry::Geometry;
use crate::codec::part_spec::PartSpec;
use crate::codec::predict::{Coding, best_transform, predictions};
use crate::codec::registry::RAW;
use crate::codec::residual_tiers::ResidualTiers;
use crate::codec::sampling::windows;
use crate::codec::scratch::{DecodeScratch, EncodeScratch};
use crate::codec::transform::Transform;
use crate::codec::zstandard::BitshuffleZstd;
use crate::kernel::Width;
use crate::kernel::predict::{Prediction, Predictor};
use crate::{ErrorKind, Profile};
use tensilo_testing::mix;

#[test]
fn windows_are_all_of_a_small_part_and_a_sixteenth_of_a_large_one() {
    let of = |count, length| windows(count, length).map(|window| (window.start, window.end)).collect::<Vec<_>>();
    assert_eq!(of(0, 1024), []);
    for (count, length) in [(1, 1024), (4096, 1024), (5000, 2500), (4096, 1)] {
        assert_eq!(of(count, length), [(0, count)]);
    }
    assert_eq!(of(4097, 1024), [(0, 1024)]);
    assert_eq!(of(5000, 2499), [(0, 2499)]);
    assert_eq!(of(40_000, 1024), [(0, 1024), (16_384, 17_408), (32_768, 33_792)]);
    assert_eq!(of(16_500, 1024), [(0, 1024), (16_384, 16_500)]);
}

fn geometry(float: bool, restart: u32, strides: [u32; 2]) -> Geometry<'static> {
    Geometry { element_bytes: 2, float, float_type: None, restart, strides, blocks: &[] }
}

#[test]
fn predictions_go_along_axes_within_a_sample() {
    let of = |restart, strides| -> Vec<_> {
        predictions(&geometry(true, restart, strides)).map(|p| (p.predictor, p.stride, p.float, p.restart)).collect()
    };
    let delta = |stride| (Predictor::Delta, stride, true, 100);
    let lorenzo = |stride| (Predictor::Lorenzo, stride, true, 100);
    assert_eq!(of(100, [3, 12]), [delta(1), delta(3), lorenzo(3), delta(12), lorenzo(12)]);
    assert_eq!(of(100, [99, 0]), [delta(1), delta(99), lorenzo(99)]);
    for strides in [[0, 0], [1, 0], [100, 101]] {
        assert_eq!(of(100, strides), [delta(1)], "{strides:?}");
    }
}

/// `count` elements of two bytes.
fn elements(count: usize, element: impl Fn(u64) -> u64) -> Vec<u8> {
    (0..count as u64).flat_map(|i| (element(i) as u16).to_le_bytes()).collect()
}

fn best(geometry: &Geometry<'_>, raw: &[u8]) -> (Transform, usize) {
    best_transform(Coding::Tiers, Width::W2, geometry, raw, &mut EncodeScratch::default())
}

fn rows(predictor: Predictor, restart: u32) -> Transform {
    Transform::Predict(Prediction { predictor, float: false, restart, stride: 128 })
}

/// Rows of 128 random elements, each row like the one above: only the first row of a sample costs
/// anything.
#[test]
fn the_first_row_of_a_sample_counts_and_that_of_a_window_does_not() {
    let raw = elements(40_000, |i| mix(1, i % 128));
    // windows that begin within a sample have no row above: 128 of 2,560 residuals are random
    assert_eq!(best(&geometry(false, 5120, [128, 0]), &raw), (rows(Predictor::Delta, 5120), 9052));
    // each window begins with a sample: 384 of 3,072
    assert_eq!(best(&geometry(false, 16_384, [128, 0]), &raw), (rows(Predictor::Delta, 16_384), 15_131));
}

/// Random in the first window, of which there are three.
#[test]
fn all_windows_are_looked_at() {
    let raw = elements(40_000, |i| if i < 1024 { mix(1, i) } else { i / 128 % 40 * 7 + i % 128 * 3 });
    assert_eq!(best(&geometry(false, 5120, [128, 0]), &raw), (rows(Predictor::Lorenzo, 5120), 37_888));
}

/// Random at some places and zero at others: an estimate that looks elsewhere gives other numbers.
#[test]
fn estimates_look_at_their_windows_and_nothing_else() {
    const COUNT: usize = 40_000;
    let mut encoders: Vec<(&dyn Encoder, usize)> =
        vec![(&ExponentTiers { spacing: 13 }, 512), (&ResidualTiers { spacing: 14 }, 1024)];
    if BitshuffleZstd.check_built().is_ok() {
        encoders.push((&BitshuffleZstd, 2048));
    }
    for (encoder, length) in encoders {
        for element_bytes in [1, 2, 4, 8] {
            let geometry = Geometry { element_bytes, ..geometry(false, 1024, [0, 0]) };
            let mut looked_at = vec![false; COUNT];
            windows(COUNT, length).for_each(|window| looked_at[window].fill(true));
            let estimate = |is_random: &dyn Fn(bool) -> bool| {
                let element = |(i, &is_in): (u64, _)| if is_random(is_in) { mix(1, i) } else { 0 };
                let raw: Vec<u8> = (0..)
                    .zip(&looked_at)
                    .flat_map(|of| element(of).to_le_bytes().into_iter().take(element_bytes))
                    .collect();
                encoder.estimate(&geometry, &raw, &mut EncodeScratch::default()).expect("they estimate")
            };
            let name = encoder.name();
            let (random, zero) = (estimate(&|_| true), estimate(&|_| false));
            assert!(
                random > COUNT * element_bytes / 2 && zero < random,
                "{name}, {element_bytes} bytes: {random}, {zero}"
            );
            assert_eq!(estimate(&|is_in| is_in), random, "{name}, {element_bytes} bytes: random");
            assert_eq!(estimate(&|is_in| !is_in), zero, "{name}, {element_bytes} bytes: zero");
        }
    }
}

#[test]
fn five_percent_is_enough_and_less_is_not() {
    assert!(saves_enough(94, 100) && !saves_enough(95, 100) && !saves_enough(100, 100));
    assert!(saves_enough(0, 1) && !saves_enough(1, 1) && !saves_enough(0, 0));
    assert!(saves_enough(18, 20) && !saves_enough(19, 20) && saves_enough(18, 19));
}

#[test]
fn small_asks_for_large_chunks() {
    for profile in Profile::ALL {
        assert_eq!(profile.chunk_bytes(), if profile == Profile::Small { 524_288 } else { 65_536 });
    }
}

#[test]
fn raw_bytes_are_copied() {
    let (spec, mut out) = (PartSpec::new(2, 4), [0; 4]);
    RAW.decode(spec, &[1, 2, 3, 4], &mut out, &mut DecodeScratch::default()).expect("raw");
    assert_eq!(out, [1, 2, 3, 4]);
    assert!(RAW.check(spec, &[1, 2, 3, 4]).is_ok());
    assert_eq!(RAW.check(spec, &[1, 2, 3]).expect_err("too short").kind(), ErrorKind::Corrupt);
}

/// Has lost the values.
struct Faulty;

impl Codec for Faulty {
    fn id(&self) -> u16 {
        999
    }

    fn name(&self) -> &'static str {
        "faulty"
    }

    fn check(&self, _: PartSpec<'_>, _: &[u8]) -> crate::Result<()> {
        Ok(())
    }

    fn decode(&self, _: PartSpec<'_>, _: &[u8], out: &mut [u8], _: &mut DecodeScratch) -> crate::Result<()> {
        out.fill(0);
        Ok(())
    }
}

impl Encoder for Faulty {
    fn encode(&self, _: &Geometry<'_>, _: &[u8], stored: &mut Vec<u8>, _: &mut EncodeScratch) -> crate::Result<bool> {
        stored.clear();
        Ok(true)
    }
}

#[test]
fn a_checking_writer_notices_an_encoder_that_loses_values() {
    let compare = |check, raw: &[u8]| {
        ChunkEncoder::new(Profile::default(), None, check).compare(&Faulty, &Geometry::of_numbers(1), raw)
    };
    assert!(compare(true, &[0, 0]).is_ok() && compare(false, &[0, 1]).is_ok());
    let error = compare(true, &[0, 1]).expect_err("other values");
    assert_eq!((error.kind(), error.rule()), (ErrorKind::Internal, None));
    let error = error.to_string();
    assert!(error.contains("faulty") && error.contains("the values differ") && error.contains("report"), "{error}");
}
