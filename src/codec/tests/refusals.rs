//! What is refused, though it could be decoded.

use super::cases::{Case, EXPONENTS, RESIDUALS};
use crate::ErrorKind;
use crate::codec::{
    blocked::{Block, Blocked, Constant},
    encoding::{BlockCodec, Encoder},
    geometry::{Geometry, RawPart},
    part::PartSpec,
    registry::{all, check_supported, encoding_name, written_by},
    scratch::EncodeScratch,
    tests::Memory,
    tiers::RANKS,
    transform::Transform,
};
use crate::format::index::BLOCKS;
use tensilo_testing::Pattern;

#[test]
fn a_constant_is_one_element_of_some() {
    let check =
        |stored: &[u8], raw_bytes| Constant.check(&Block { tables: &(), spec: PartSpec::new(2, raw_bytes), stored });
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
        Blocked(Constant)
            .encode(RawPart { geometry: &geometry, raw }, &mut Vec::new(), &mut EncodeScratch::default())
            .expect("nothing fails")
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
    let tables = [&Transform::None.to_bytes()[..], &[2, 1, 1], &ranks].concat();
    let encoding = written_by(EXPONENTS, false).expect("it is known");
    let decode = |planes: [u8; 2]| {
        let stored = [&tables[..], &[0; 8], &planes, &[0; 6]].concat();
        Memory::default().decode(encoding, PartSpec::new(1, 5), &stored, 0)
    };
    assert_eq!(decode([0, 0]), Ok(vec![7; 5]));
    for filling in (5..8).map(|bit| 1 << bit) {
        for planes in [[filling, 0], [0, filling], [filling, filling]] {
            assert!(decode(planes).is_err_and(|error| error.contains("R-5.8")), "{planes:x?}");
        }
    }
}

/// Wherever a byte is too many, that is before the extra bits, too.
#[test]
fn a_block_of_residuals_has_no_byte_more() {
    let geometry = Geometry::of_numbers(2);
    let case = Case { encoder: RESIDUALS, geometry, pattern: Pattern::RandomLengths, count: 150, seed: 3 };
    let mut memory = Memory::default();
    let stored = memory.encode(&case).expect("tiers express anything");
    for at in 0..=stored.len() {
        let mut longer = stored.clone();
        longer.insert(at, 0);
        assert!(memory.decode(case.encoding(), case.spec(), &longer, 0).is_err(), "a byte more at {at}");
    }
}

#[test]
fn encodings_that_this_release_does_not_know_are_refused() {
    for encoding in all() {
        let field = encoding.field();
        assert_eq!(check_supported(field).is_ok(), encoding.check_built().is_ok(), "{field}");
    }
    for id in [8, 1 | BLOCKS, 8 | BLOCKS, 1 << 9, 128, u16::MAX] {
        let error = check_supported(id).unwrap_err();
        assert_eq!((error.kind(), error.rule()), (ErrorKind::TooNew, Some("R-7.6")), "{error}");
        assert!(encoding_name(id).starts_with(&format!("encoding-{id}")), "{}", encoding_name(id));
    }
    assert_eq!([0, BLOCKS].map(encoding_name), ["raw", "raw in blocks"]);
}
