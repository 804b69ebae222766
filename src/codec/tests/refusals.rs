//! What is refused, though it could be decoded.

use super::{Case, ENCODERS, Memory};
use crate::ErrorKind;
use crate::codec::constant::Constant;
use crate::codec::encoding::{Codec, Encoder};
use crate::codec::geometry::Geometry;
use crate::codec::part_spec::PartSpec;
use crate::codec::registry::{REGISTRY, check_supported, encoding_name};
use crate::codec::scratch::EncodeScratch;
use crate::codec::tier_head::{RANKS, TierHead};
use crate::codec::transform::Transform;
use tensilo_testing::Pattern;

#[test]
fn a_constant_is_one_element_of_some() {
    let check = |stored: &[u8], raw_bytes| Constant.check(PartSpec::new(2, raw_bytes), stored);
    assert!(check(&[1, 2], 2).is_ok() && check(&[1, 2], 4).is_ok());
    for (stored, raw_bytes) in [(&[1, 2][..], 0), (&[1, 2], 3), (&[1], 4), (&[1, 2, 3], 4), (&[], 4)] {
        assert_eq!(
            check(stored, raw_bytes).map_err(|error| error.rule()),
            Err(Some("R-5.4")),
            "{stored:?} {raw_bytes}"
        );
    }
    let encode = |raw: &[u8]| {
        let geometry = Geometry::of_numbers(2);
        Constant.encode(&geometry, raw, &mut Vec::new(), &mut EncodeScratch::default()).expect("nothing fails")
    };
    assert!(encode(&[1, 2]) && encode(&[1, 2, 1, 2]));
    assert!(!encode(&[1]) && !encode(&[1, 2, 1]) && !encode(&[1, 2, 1, 3]) && !encode(&[1, 2, 2, 2]));
}

/// Where codes have two bits, both words of a group could otherwise hide the same bit from each
/// other.
#[test]
fn codes_that_fill_up_a_tier_are_zero_in_every_plane() {
    let mut ranks = [0; RANKS];
    ranks[0] = 7;
    let head = TierHead { widths: [2, 1, 1], spacing: 31, escapes: [0; 3], ranks };
    let decode = |planes: [u64; 2]| {
        let planes = planes.map(u64::to_le_bytes);
        let stored = [&Transform::None.to_bytes()[..], &head.to_bytes(), planes.as_flattened()].concat();
        Memory::default().decode(ENCODERS[4], PartSpec::new(1, 5), &stored, 0)
    };
    assert_eq!(decode([0, 0]), Ok(vec![7; 5]));
    for filling in (5..64).map(|bit| 1 << bit) {
        for planes in [[filling, 0], [0, filling], [filling, filling]] {
            assert!(decode(planes).is_err_and(|error| error.contains("R-5.8")), "{planes:x?}");
        }
    }
}

/// Wherever a byte is too many, that is before the extra bits, too.
#[test]
fn residuals_take_whole_words() {
    let geometry = Geometry::of_numbers(2);
    let case = Case { encoder: ENCODERS[9], geometry, pattern: Pattern::RandomLengths, count: 150, seed: 1 };
    let mut memory = Memory::default();
    let stored = memory.encode(&case).expect("tiers express anything");
    assert_eq!(stored.len() % 8, 0);
    for at in 0..=stored.len() {
        let mut longer = stored.clone();
        longer.insert(at, 0);
        assert!(memory.decode(case.encoder, case.spec(), &longer, 0).is_err(), "a byte more at {at}");
    }
}

#[test]
fn encodings_that_this_release_does_not_know_are_refused() {
    for id in 0..REGISTRY.len() as u16 {
        assert_eq!(check_supported(id).is_ok(), REGISTRY[usize::from(id)].check_built().is_ok(), "{id}");
    }
    for id in [REGISTRY.len() as u16, 999, u16::MAX] {
        let error = check_supported(id).unwrap_err();
        assert_eq!((error.kind(), error.rule()), (ErrorKind::TooNew, Some("R-7.6")), "{error}");
        assert_eq!(encoding_name(id), format!("encoding-{id}"));
    }
    assert_eq!(encoding_name(0), "raw");
}

/// A checkpoint can state any number of extra bits. A reader of some elements refuses one that
/// leads out of them.
#[test]
fn a_checkpoint_beyond_the_extra_bits_is_refused() {
    let geometry =
        Geometry { element_bytes: 2, float: false, float_type: None, restart: 10, strides: [0, 0], blocks: &[] };
    let case = Case { encoder: ENCODERS[9], geometry, pattern: Pattern::RandomLengths, count: 5000, seed: 1 };
    let (raw, mut memory) = (case.raw(), Memory::default());
    let mut stored = memory.encode(&case).expect("tiers express anything");
    // the spacing: where the first checkpoint is, whose extra bits are bytes 76 to 83
    let first = 1 << stored[19];
    let mut second = |stored: &[u8]| memory.decode_range(case.encoder, case.spec(), stored, &(first..first + 1), 0);
    assert_eq!(second(&stored), Ok(Some(raw[2 * first..2 * first + 2].to_vec())));
    let bits = 8 * stored.len() as u64;
    for extra_bits in [bits, u64::from(u32::MAX), 1 << 63, u64::MAX] {
        stored[76..84].copy_from_slice(&extra_bits.to_le_bytes());
        assert!(second(&stored).is_err_and(|error| error.contains("R-5.9")), "{extra_bits}");
    }
}
