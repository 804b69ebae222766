//! Tests how blocks of bins decode, which options and mappings writers find, and the table cache.
//!
//! The blocks to decode are made by the encoder that the kernel tests also use.

use super::float_type;
use crate::codec::{
    bins::{BinBlocks, BinTableCache},
    blocked::{BLOCK_INDEX_HEADER_BYTES, Block, BlockCodec, Blocked, Encoder},
    part::{Geometry, PartSpec, RawPart},
    scratch::{DecodeScratch, EncodeScratch},
    transform::Transform,
};
use crate::kernel::{
    Width,
    bins::{
        BinModel, GROUP,
        encode::{self, BinEncoder},
    },
    predict::{Prediction, Predictor, Weights},
};
use tensilo_testing::Pattern;

const BINS: BinBlocks = BinBlocks { for_size: true };

/// A block with its tables and its coded integers.
struct BinBlock {
    width: Width,
    tables: Vec<u8>,
    stored: Vec<u8>,
    coded: Vec<u8>,
}

const FREQUENCIES: [[u8; 16]; 3] = [
    [16; 16],
    [241, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 100, 142],
];

/// Returns a block of `count` elements with three classes.
fn block(width: Width, transform: Transform, low_bytes: usize, count: usize) -> BinBlock {
    let w = width.bytes();
    let bits: u8 = if w == 1 { 4 } else { 12 };
    let mut tables = BinModel::default();
    tables.set_bins(&[bits; 16]);
    let mut stated = [&[bits; 16][..]].concat();
    for (class, frequencies) in FREQUENCIES.iter().enumerate() {
        tables.set_class(class, 0, frequencies);
        stated.extend([0, 16]);
        stated.extend(frequencies);
    }
    let mut header = (24 + stated.len() as u32).to_le_bytes().to_vec();
    header.extend(transform.to_bytes());
    header.extend([low_bytes as u8, 16, 3, 0]);

    let byte = |i: usize| (i as u32).wrapping_mul(0x9E37_79B9).rotate_left(i as u32 % 29).to_le_bytes()[1];
    let windows: Vec<[u8; 2]> = (0..count).map(|i| [byte(3 * i), if w == 1 { 0 } else { byte(3 * i + 1) }]).collect();
    let bins: Vec<u8> = windows.iter().map(|[low, high]| if w == 1 { low >> 4 } else { high >> 4 }).collect();
    let low: Vec<u8> = (0..low_bytes * count).map(|i| byte(3 * i + 2)).collect();
    let groups = count.div_ceil(GROUP);
    let classes: Vec<u8> = (0..groups).map(|group| (group % 3) as u8).collect();
    let mut stored: Vec<u8> =
        classes.chunks(4).map(|codes| codes.iter().rev().fold(0, |byte, code| byte << 2 | code)).collect();
    stored.extend(&low);
    let mut encoder = BinEncoder::default();
    encoder.set_model(&tables);
    assert!(encode::best().encode(&mut encoder, &classes, &windows, &bins, &mut stored));
    let mut coded = vec![0; w * count];
    for (i, element) in coded.chunks_exact_mut(w).enumerate() {
        let planes = (0..low_bytes).map(|plane| low[plane * count + i]);
        element.iter_mut().zip(planes.chain(windows[i])).for_each(|(to, from)| *to = from);
    }
    BinBlock { width, tables: [header, stated].concat(), stored, coded }
}

impl BinBlock {
    /// Decodes a range of elements. Takes the tables from the cache if they are there.
    fn decode(&self, range: std::ops::Range<usize>, scratch: &mut DecodeScratch) -> Vec<u8> {
        let w = self.width.bytes();
        let spec = PartSpec::new(w, self.coded.len());
        let tables = BINS.cached_tables(spec, &self.tables, scratch).unwrap();
        let block = Block { tables: &tables, spec, stored: &self.stored };
        let mut out = vec![0xA5; range.len() * w];
        if out.len() == self.coded.len() {
            BINS.decode(&block, &mut out, scratch).unwrap();
        } else {
            assert!(BINS.decode_range(&block, &range, &mut out, scratch).unwrap());
        }
        out
    }
}

#[test]
fn elements_of_a_range_are_those_of_the_block() {
    let predict = |predictor| Transform::Predict(Prediction { predictor, restart: 50, stride: 10 });
    let mut scratch = DecodeScratch::default();
    for width in [Width::W1, Width::W2, Width::W4, Width::W8] {
        let w = width.bytes();
        for (i, transform) in [
            Transform::None,
            predict(Predictor::Delta),
            predict(Predictor::Lorenzo),
            predict(Predictor::Separable(Weights { left: 5, above: 4 })),
        ]
        .into_iter()
        .enumerate()
        {
            for count in [1, 64, 65, 200, 333] {
                let block = block(width, transform, i.min(w.saturating_sub(2)), count);
                let mut expected = block.coded.clone();
                transform.undo(width, &mut expected);
                for start in (0..count).step_by(7) {
                    for end in [start + 1, start + 20, start + 64, count] {
                        let range = start..end.min(count);
                        let found = block.decode(range.clone(), &mut scratch);
                        assert!(
                            found == expected[range.start * w..range.end * w],
                            "{width:?} {transform:?} {count} {range:?}"
                        );
                    }
                }
            }
        }
    }
}

/// A pattern that suits an option or a mapping is encoded with it.
#[test]
fn options_and_mappings_are_found() {
    for (pattern, element_bytes, float, mapping) in [
        (Pattern::Gapped, 2, true, 16),
        (Pattern::Pauses, 8, false, 32 | 3),
        (Pattern::Names, 4, false, 1),
        (Pattern::Halves, 4, true, 3),
        (Pattern::Halves, 8, true, 3),
        (Pattern::Decimals, 8, true, 64 | 2),
        (Pattern::Pixels, 4, true, 1),
        (Pattern::Multiples, 8, false, 3),
        (Pattern::Sound, 2, false, 64),
        (Pattern::Sound, 4, true, 64 | 2),
    ] {
        let geometry = Geometry {
            element_bytes,
            float,
            float_type: float.then(|| float_type(element_bytes)).flatten(),
            restart: if pattern == Pattern::Sound { 16384 } else { 128 },
            strides: match pattern {
                Pattern::Pixels => [3, 0],
                _ => [0, 0],
            },
            blocks: &[8192, 16384, 24576, 32768],
        };
        let raw = pattern.elements(element_bytes, 32768, 7);
        let (mut stored, mut scratch) = (Vec::new(), EncodeScratch::default());
        assert!(Blocked(BINS).encode(RawPart { geometry: &geometry, raw: &raw }, &mut stored, &mut scratch).unwrap());
        // byte 23 of the tables, which follow the header of the block index
        assert_eq!(stored[BLOCK_INDEX_HEADER_BYTES + 23], mapping, "{pattern:?} of {element_bytes} bytes");
        assert!(stored.len() < raw.len() * 4 / 5, "{pattern:?}: {} bytes", stored.len());
    }
}

/// Invalid tables are refused even if valid tables are in the cache.
#[test]
fn cached_tables_match_their_bytes() {
    let good = block(Width::W2, Transform::None, 0, 10).tables;
    let (two, four) = (PartSpec::new(2, 20), PartSpec::new(4, 40));
    for bad in [&good[..0], &good[..23], &good[..good.len() - 1], &[&good[..21], &[17], &good[22..]].concat()] {
        let mut cache = BinTableCache::default();
        for _ in 0..2 {
            assert!(cache.get(two, bad).is_err());
            assert!(cache.get(two, &good).is_ok());
            assert!(cache.get(four, &good).is_ok());
            assert!(cache.get(two, &good).is_ok());
            assert!(cache.get(two, bad).is_err());
        }
    }
}
