//! Tests how encodings are chosen: samples, predictions, estimates and the minimum saving. Also
//! tests that the output of a chosen encoding is checked.

use super::{EXPONENTS, RESIDUALS};
use crate::codec::{
    RAW,
    blocked::{Block, BlockCodec, Blocked, Encoder, Encoding},
    choice::{PartSample, SampledPart, Search, best_tier_transform, predictions},
    chunk::{ChunkEncoder, saves_enough},
    part::{Geometry, PartSpec, RawPart},
    scratch::{DecodeScratch, EncodeScratch},
    tests::Memory,
    transform::Transform,
    zstandard::BitshuffleBlocks,
};
use crate::kernel::{
    Width,
    predict::{Prediction, Predictor},
};
use crate::{ErrorKind, Profile};
use tensilo_testing::mix;

fn geometry(float: bool, restart: u32, strides: [u32; 2]) -> Geometry<'static> {
    Geometry { element_bytes: 2, float, float_type: None, restart, strides, blocks: &[] }
}

/// Returns `count` elements of two bytes.
fn elements(count: usize, element: impl Fn(u64) -> u64) -> Vec<u8> {
    (0..count as u64).flat_map(|i| (element(i) as u16).to_le_bytes()).collect()
}

fn part<'a>(geometry: &'a Geometry<'a>, raw: &'a [u8]) -> SampledPart<'a> {
    SampledPart::new(RawPart { geometry, raw }, PartSample::default())
}

/// Returns the sampled elements of a part that has `count` elements in blocks of `block` elements.
fn sampled_elements(count: usize, block: usize) -> Vec<usize> {
    let ends: Vec<u32> = (1..=count.div_ceil(block)).map(|i| (i * block).min(count) as u32).collect();
    let raw = elements(count, |i| i);
    let geometry = geometry(false, 100, [0, 0]).in_blocks(&ends);
    let part = part(&geometry, &raw);
    part.sample.blocks.bytes.as_chunks().0.iter().map(|&bytes| u16::from_le_bytes(bytes).into()).collect()
}

#[test]
fn samples_are_whole_blocks_evenly_spaced() {
    assert!(sampled_elements(100, 100).into_iter().eq(0..100), "the only block");
    assert!(sampled_elements(150, 100).into_iter().eq(0..150), "both blocks");
    assert!(sampled_elements(800, 100).into_iter().eq((200..300).chain(600..700)), "two of eight");
    let of_many: Vec<usize> = sampled_elements(64_000, 100).into_iter().step_by(100).collect();
    assert_eq!(of_many, (0..16).map(|i| 2000 + 4000 * i).collect::<Vec<_>>(), "sixteen of 640");
    // a single block is sampled as ranges of whole samples
    let raw = elements(60_000, |i| i);
    let sample = part(&geometry(false, 1000, [0, 0]), &raw).sample.blocks;
    assert_eq!(sample.bytes.len() / 2, *sample.ends.last().expect("two ranges") as usize);
    assert!(sample.ends.iter().all(|end| end % 1000 == 0), "{:?}", sample.ends);
}

#[test]
fn segments_are_rows_in_the_middle_of_blocks() {
    let ends: Vec<u32> = (1..=8).map(|i| i * 8000).collect();
    let raw = elements(64_000, |i| i);
    let geometry = geometry(false, 100, [0, 0]).in_blocks(&ends);
    let of = |strides| {
        let segments = part(&Geometry { strides, ..geometry }, &raw).sample.segments;
        let first: Vec<u16> = segments.bytes.as_chunks().0.iter().map(|&bytes| u16::from_le_bytes(bytes)).collect();
        (segments.ends, first[0], first[first.len() - 1])
    };
    let ends = |length: u32| (1..=8).map(|i| i * length).collect::<Vec<u32>>();
    assert_eq!(of([0, 0]), (ends(512), 3800, 59_800 + 511), "512 elements of each block");
    assert_eq!(of([10, 50]), (ends(512), 3800, 59_800 + 511), "from the start of a sample");
    assert_eq!(of([300, 0]), (ends(600), 3900, 59_900 + 599), "two rows");
    assert_eq!(of([5000, 300]), (ends(8000), 0, 63_999), "the whole block, to have half of a second row");
    assert_eq!(of([6000, 300]), (ends(600), 3900, 59_900 + 599), "rows of 6000 are too long");
}

#[test]
fn predictions_go_along_axes_within_a_sample() {
    let of = |restart, strides| -> Vec<_> {
        let all = predictions(&geometry(true, restart, strides), Search::new());
        all.map(|p| (p.predictor, p.stride, p.restart)).collect()
    };
    let delta = |stride| (Predictor::Delta, stride, 100);
    let lorenzo = |stride| (Predictor::Lorenzo, stride, 100);
    assert_eq!(of(100, [3, 12]), [delta(1), delta(3), lorenzo(3), delta(12), lorenzo(12)]);
    assert_eq!(of(100, [99, 0]), [delta(1), delta(99), lorenzo(99)]);
    for strides in [[0, 0], [1, 0], [100, 101]] {
        assert_eq!(of(100, strides), [delta(1)], "{strides:?}");
    }
}

fn rows(predictor: Predictor, restart: u32) -> Transform {
    Transform::Predict(Prediction { predictor, restart, stride: 128 })
}

/// Returns the best transform of residual tiers, its estimate, and the number of bytes written.
fn best(geometry: &Geometry<'_>, raw: &[u8]) -> (Transform, usize, usize) {
    let mut scratch = EncodeScratch::default();
    let (transform, bytes) = best_tier_transform(Width::W2, &mut part(geometry, raw), &mut scratch);
    let mut stored = Vec::new();
    scratch.tier_transform = Some(transform);
    assert!(RESIDUALS.encode(RawPart { geometry, raw }, &mut stored, &mut scratch).expect("it can encode"));
    (transform, bytes, stored.len())
}

/// Rows of 128 random elements. Each row equals the row above it, so only the first row of a sample
/// takes space.
#[test]
fn the_first_row_of_a_sample_counts_as_often_as_there_is_one() {
    let raw = elements(16_384 * 4, |i| mix(i / 16_384, i % 128));
    for (restart, predictor) in [(1024, Predictor::Delta), (16_384, Predictor::Delta)] {
        let geometry = geometry(false, restart, [128, 0]).in_blocks(&[16_384, 32_768, 49_152, 65_536]);
        let (transform, estimate, written) = best(&geometry, &raw);
        assert_eq!(transform, rows(predictor, restart));
        assert!(estimate.abs_diff(written) < written / 8, "{restart}: estimated {estimate}, written {written}");
    }
}

/// The elements are random in some blocks and zero in the others, so an estimate changes if it
/// depends on a block that is not sampled.
#[test]
fn estimates_look_at_the_sample_and_nothing_else() {
    const COUNT: usize = 40_000;
    let ends: Vec<u32> = (1..=10).map(|i| i * 4000).collect();
    let is_sampled = |i: u64| [2, 7].contains(&(i / 4000));
    let mut encoders: Vec<&dyn Encoder> = vec![EXPONENTS, RESIDUALS];
    let bitshuffle: &dyn Encoder = &Blocked(BitshuffleBlocks);
    encoders.extend(Some(bitshuffle).filter(|encoder| encoder.check_built().is_ok()));
    for encoder in encoders {
        for element_bytes in [1, 2, 4, 8] {
            let geometry = Geometry { element_bytes, ..geometry(false, 1000, [0, 0]) }.in_blocks(&ends);
            let estimate = |is_random: &dyn Fn(bool) -> bool| {
                let element = |i: u64| if is_random(is_sampled(i)) { mix(1, i % 4000) } else { 0 };
                let bytes = |i| element(i).to_le_bytes().into_iter().take(element_bytes);
                let raw: Vec<u8> = (0..COUNT as u64).flat_map(bytes).collect();
                encoder.estimate(&mut part(&geometry, &raw), &mut EncodeScratch::default()).expect("an estimate")
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
    let decode = |stored: &[u8]| Memory::default().decode(RAW, PartSpec::new(2, 4), stored, 0);
    assert_eq!(decode(&[1, 2, 3, 4]), Ok(vec![1, 2, 3, 4]));
    assert!(decode(&[1, 2, 3]).expect_err("too short").contains("R-5.3"));
}

/// A codec that loses the values: it decodes zeros.
struct Faulty;

impl BlockCodec for Faulty {
    type Tables = ();

    const ID: u16 = 99;
    const NAME: &'static str = "faulty";

    fn parse_tables(&self, _: PartSpec<'_>, _: &[u8]) -> crate::Result<()> {
        Ok(())
    }

    fn decode(&self, _: &Block<'_, ()>, out: &mut [u8], _: &mut DecodeScratch) -> crate::Result<()> {
        out.fill(0);
        Ok(())
    }
}

#[test]
fn a_checking_writer_notices_an_encoder_that_loses_values() {
    let compare = |check, raw: &[u8]| {
        ChunkEncoder::new(Profile::default(), None, check, Search::new())
            .compare(Encoding::new(&Blocked(Faulty), false), RawPart { geometry: &Geometry::of_numbers(1), raw })
    };
    assert!(compare(true, &[0, 0]).is_ok() && compare(false, &[0, 1]).is_ok());
    let error = compare(true, &[0, 1]).expect_err("the values differ");
    assert_eq!((error.kind(), error.rule()), (ErrorKind::Internal, None));
    let error = error.to_string();
    assert!(error.contains("faulty") && error.contains("the values differ") && error.contains("report"), "{error}");
}
