//! Tests that encodings refuse bytes that could be decoded but break a rule, and that they refuse
//! frames before they allocate memory for the length that a frame claims. Also tests that planes
//! are packed in the smallest way.

use super::{Case, EXPONENTS, RESIDUALS};
use crate::ErrorKind;
use crate::codec::{
    all_encodings,
    blocked::{Block, BlockCodec, Blocked, Constant, Encoder},
    check_supported, encoding_name, encoding_of,
    part::{Geometry, PartSpec, RawPart},
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
            .expect("encoding does not fail")
    };
    assert!(encode(&[1, 2]) && encode(&[1, 2, 1, 2]));
    assert!(!encode(&[1]) && !encode(&[1, 2, 1]) && !encode(&[1, 2, 1, 3]) && !encode(&[1, 2, 2, 2]));
}

/// A padding bit that is set in both words of a group of 2-bit codes must not cancel out.
#[test]
fn codes_that_fill_up_a_tier_are_zero_in_every_plane() {
    let mut ranks = [0; RANKS];
    ranks[0] = 7;
    let tables = [&Transform::None.to_bytes()[..], &[2, 1, 1], &ranks].concat();
    let encoding = encoding_of(EXPONENTS, false).expect("the encoding is registered");
    let decode = |planes: [u8; 2]| {
        let stored = [&tables[..], &[0; 8], &planes, &[0; 6]].concat();
        Memory::default().decode(encoding, PartSpec::new(1, 5), &stored, 0)
    };
    assert_eq!(decode([0, 0]), Ok(vec![7; 5]));
    for padding_bit in (5..8).map(|bit| 1 << bit) {
        for planes in [[padding_bit, 0], [0, padding_bit], [padding_bit, padding_bit]] {
            assert!(decode(planes).is_err_and(|error| error.contains("R-5.8")), "{planes:x?}");
        }
    }
}

/// An additional byte is refused wherever it is inserted, even before the extra bits.
#[test]
fn a_block_of_residuals_has_no_byte_more() {
    let geometry = Geometry::of_numbers(2);
    let case = Case { encoder: RESIDUALS, geometry, pattern: Pattern::RandomLengths, count: 150, seed: 3 };
    let mut memory = Memory::default();
    let stored = memory.encode(&case).expect("tiers can express anything");
    for at in 0..=stored.len() {
        let mut longer = stored.clone();
        longer.insert(at, 0);
        assert!(memory.decode(case.encoding(), case.spec(), &longer, 0).is_err(), "an additional byte at {at}");
    }
}

#[test]
fn encodings_that_this_release_does_not_know_are_refused() {
    for encoding in all_encodings() {
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

#[cfg(feature = "zstd")]
mod frames {
    use crate::codec::{
        blocked::{Block, BlockCodec, Blocked, Encoder},
        encoding_of,
        part::{Geometry, PartSpec, RawPart},
        scratch::EncodeScratch,
        tests::Memory,
        zstandard::{BitshuffleBlocks, MAGIC, PlaneBlocks, stated_window},
    };
    use tensilo_testing::mix;

    /// Returns the reason why a frame cannot decode to `raw_bytes` bytes; `None` if it can.
    fn refusal(frame: &[u8], raw_bytes: usize) -> Option<String> {
        let block = Block { tables: &(), spec: PartSpec::new(1, raw_bytes), stored: frame };
        let result = BitshuffleBlocks.check(&block);
        result.err().map(|error| {
            assert_eq!(error.rule(), Some("R-5.5"));
            error.to_string()
        })
    }

    /// Returns a single-segment frame that states a length and has one block. The block repeats one
    /// byte, as often as the length and the maximum size of a block allow.
    fn frame_of(length: u32) -> Vec<u8> {
        let (descriptor, last_of_one_byte) = (0b1010_0000, 0b11);
        let block = length.min(128 << 10) << 3 | last_of_one_byte;
        [&MAGIC[..], &[descriptor], &length.to_le_bytes(), &block.to_le_bytes()[..3], &[7]].concat()
    }

    #[test]
    fn a_frame_states_the_expected_length() {
        let mut frame = Vec::new();
        let raw = [1, 2, 3, 4, 5];
        Blocked(BitshuffleBlocks)
            .encode(
                RawPart { geometry: &Geometry::of_numbers(1).in_blocks(&[5]), raw: &raw },
                &mut frame,
                &mut EncodeScratch::default(),
            )
            .expect("the encoder writes a frame");
        assert_eq!(refusal(&frame, 5), None);
        for length in [4, 6] {
            assert!(
                refusal(&frame, length)
                    .expect("a wrong length is refused")
                    .contains(&format!("it states a length of 5, not {length}"))
            );
        }
    }

    #[test]
    fn a_frame_that_states_more_than_its_blocks_can_give_is_refused() {
        for length in [1, 1000, 128 << 10] {
            assert_eq!(refusal(&frame_of(length), length as usize), None);
        }
        let refused = |length: u32| refusal(&frame_of(length), length as usize).expect("it is refused");
        assert!(refused(20 * (128 << 10)).contains("13 bytes cannot decode to"));
        assert!(refused((8 << 20) + 1).contains("a window of more than 8 MiB"));
    }

    #[test]
    fn windows_are_what_the_frame_format_says() {
        let window = |descriptor: u8, byte: u8| stated_window(&[&MAGIC[..], &[descriptor, byte]].concat());
        assert_eq!(window(0, 0), Some(1 << 10));
        assert_eq!(window(0, 7), Some((1 << 10) + 7 * (1 << 7)));
        assert_eq!(window(0, 21 << 3), Some(1 << 31));
        assert_eq!(window(0b1000_0000, 20 << 3 | 7), Some((1 << 30) + 7 * (1 << 27)));
        assert_eq!(window(0, 0xFF), Some((1 << 41) + 7 * (1 << 38)));
        assert_eq!(window(0x20, 0xFF), None, "one segment");
        assert_eq!(stated_window(&MAGIC), None);
    }

    /// Encodes elements as planes and returns the stored size in bytes.
    fn packed(element: impl Fn(u64) -> u64) -> usize {
        let raw: Vec<u8> = (0..ELEMENTS).flat_map(|i| (element(i) as u16).to_le_bytes()).collect();
        let mut stored = Vec::new();
        let encoded = Blocked(PlaneBlocks).encode(
            RawPart { geometry: &Geometry::of_numbers(2).in_blocks(&[ELEMENTS as u32]), raw: &raw },
            &mut stored,
            &mut EncodeScratch::default(),
        );
        assert!(encoded.expect("only an allocation can fail"));
        let spec = PartSpec::new(2, raw.len());
        let encoding = encoding_of(&Blocked(PlaneBlocks), false).expect("the encoding is registered");
        assert_eq!(Memory::default().decode(encoding, spec, &stored, 0), Ok(raw));
        stored.len()
    }

    /// Not a multiple of 8, so the last three elements are outside the bit planes.
    const ELEMENTS: u64 = 4099;

    #[test]
    fn planes_are_packed_in_the_smallest_way() {
        let noise = packed(|i| mix(1, i));
        assert_eq!(noise, 24 + 2 * 8 + 2 * 4099, "bytes, unchanged");
        let even_steps = packed(|i| 12_345 * i);
        assert!(even_steps < 100, "{even_steps}: bytes of residuals");
        let repeated = packed(|i| mix(1, i % 300) % 64);
        assert!(repeated < 500, "{repeated}: bytes with matches");
        let words = packed(|i| mix(2, mix(1, i / 4) % 16 * 4 + i % 4) % 256);
        assert!(words < 1500, "{words}: bytes with short matches");
        // four random bits above a bit that seldom changes take about 4 bits as bit planes, and 5
        // as bytes
        let bits = packed(|i| mix(1, i) % 16 * 2 + i / 64 % 2);
        assert!(bits < 2400, "{bits}: bits");
    }
}
