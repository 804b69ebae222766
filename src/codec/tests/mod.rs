//! Tests each encoder individually, on data that is hard to encode.
//!
//! The output of an encoder must decode to exactly the same bits. Any other bytes must decode to an
//! error or to some values, and the result must not depend on the previous contents of memory.
//!
//! A [`Case`] is a part of any kind, with the encoder that is tried on it. [`Damage`] is a change
//! to stored bytes. [`Memory`] has the buffers that a thread reuses from part to part.

use crate::codec::{
    all_encodings,
    bins::BinBlocks,
    blocked::{Blocked, Constant, Encoder, Encoding, RawBlocks, StoredPart},
    choice::{PartSample, SampledPart},
    encoding_of,
    part::{Body, FloatType, Geometry, PartSpec, RawPart},
    scratch::{DecodeScratch, EncodeScratch},
    tiers::{ExponentBlocks, ResidualBlocks, TIER_TABLE_BYTES},
    transform::Transform,
    zstandard::{BitshuffleBlocks, PlaneBlocks, ZstdBlocks},
};
use crate::kernel::predict::{Prediction, Predictor};
use crate::{ColumnSchema, DType, Extent, Shape};
use proptest::{collection::vec, prelude::*, test_runner::FileFailurePersistence};
use std::ops::Range;
use tensilo_testing::{Pattern, Random};

mod bins;
mod choosing;
mod refusals;

/// Returns a configuration with `cases` cases, or with the number in PROPTEST_CASES if that is set.
fn config(cases: u32) -> ProptestConfig {
    let requested = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: requested.unwrap_or(cases),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::default()
    }
}

/// The memory of a thread that encodes and decodes parts.
#[derive(Default)]
struct Memory {
    encode: EncodeScratch,
    decode: DecodeScratch,
    stored: Vec<u8>,
}

impl Memory {
    fn after(case: &Case) -> Self {
        let mut memory = Self::default();
        if let Some(stored) = memory.encode(case) {
            memory.decode(case.encoding(), case.spec(), &stored, 0).expect("the output of an encoder decodes");
        }
        memory
    }

    fn encode(&mut self, case: &Case) -> Option<Vec<u8>> {
        let blocks = case.blocks();
        let geometry = case.geometry.in_blocks(&blocks);
        let expressed = case
            .encoder
            .encode(RawPart { geometry: &geometry, raw: &case.raw() }, &mut self.stored, &mut self.encode)
            .expect("only an allocation can fail");
        expressed.then(|| self.stored.clone())
    }

    /// Decodes all elements to memory filled with `fill`. On failure, returns the reason.
    fn decode(&mut self, encoding: Encoding, spec: PartSpec<'_>, stored: &[u8], fill: u8) -> Result<Vec<u8>, String> {
        let mut out = vec![fill; spec.raw_bytes];
        let result = parsed(encoding, spec, stored).and_then(|part| {
            part.check()?;
            part.decode(&(0..spec.raw_bytes / spec.element_bytes), &mut out, &mut self.decode)
        });
        assert!(result.as_ref().is_ok_and(|is_done| *is_done) || result.is_err(), "all elements are decoded");
        result.map(|_| out).map_err(|error| error.to_string())
    }

    /// Decodes only some elements, if the encoding can do that. The part is not checked first.
    fn decode_range(
        &mut self,
        encoding: Encoding,
        spec: PartSpec<'_>,
        stored: &[u8],
        range: &Range<usize>,
        fill: u8,
    ) -> Result<Option<Vec<u8>>, String> {
        let mut out = vec![fill; range.len() * spec.element_bytes];
        let result = parsed(encoding, spec, stored).and_then(|part| part.decode(range, &mut out, &mut self.decode));
        result.map(|is_done| is_done.then_some(out)).map_err(|error| error.to_string())
    }
}

fn parsed<'a>(encoding: Encoding, spec: PartSpec<'a>, stored: &'a [u8]) -> crate::Result<StoredPart<'a>> {
    encoding.parse(spec, Body::whole(stored), &(0..stored.len()))
}

/// Makes a non-empty range of elements from two random numbers.
fn range_of((start, length): (usize, usize), count: usize) -> Range<usize> {
    let start = start % count;
    start..start + 1 + length % (count - start)
}

fn ranges() -> impl Strategy<Value = Vec<(usize, usize)>> {
    vec((any::<usize>(), prop_oneof![0..200_usize, any::<usize>()]), 1..8)
}

/// Decodes with fresh and with used memory, and checks that the results agree. Then decodes ranges,
/// and checks that they agree with the whole part.
fn decode_in_all_ways(
    encoding: Encoding,
    spec: PartSpec<'_>,
    stored: &[u8],
    used: &mut Memory,
    ranges: &[(usize, usize)],
) -> Result<Vec<u8>, String> {
    let fresh = &mut Memory::default();
    let whole = fresh.decode(encoding, spec, stored, 0);
    assert_eq!(used.decode(encoding, spec, stored, 0xA5), whole, "{}: with used memory", encoding.name());
    let w = spec.element_bytes;
    for &range in ranges {
        let range = range_of(range, spec.raw_bytes / w);
        let partial = fresh.decode_range(encoding, spec, stored, &range, 0);
        assert_eq!(used.decode_range(encoding, spec, stored, &range, 0xA5), partial, "{}: {range:?}", encoding.name());
        if let Ok(whole) = &whole
            && let Some(partial) = partial.expect("a range decodes if the whole part does")
        {
            assert_eq!(partial, whole[range.start * w..range.end * w], "{}: {range:?}", encoding.name());
        }
    }
    whole
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn what_is_encoded_is_decoded_to_the_bit(case in cases(many()), before in cases(many()), ranges in ranges()) {
        let mut used = Memory::after(&before);
        let stored = Memory::default().encode(&case);
        prop_assert!(used.encode(&case) == stored, "used memory changes the bytes");
        let Some(stored) = stored else {
            // bins that were chosen for a sample need not fit the whole part
            prop_assert!([1, 6].contains(&case.encoder.id()), "the other encodings can express anything");
            return Ok(());
        };
        let decoded = decode_in_all_ways(case.encoding(), case.spec(), &stored, &mut used, &ranges);
        prop_assert!(decoded == Ok(case.raw()), "the decoded data differs");
    }

    #[test]
    fn damage_decodes_to_an_error_or_to_some_values(
        case in cases(few()),
        before in cases(few()),
        damages in vec(damage(), 1..4),
        grown in prop_oneof![3 => Just(0_usize), 1 => 0..40_usize],
        ranges in ranges(),
    ) {
        let mut used = Memory::after(&before);
        let Some(mut stored) = used.encode(&case) else { return Ok(()) };
        damages.iter().for_each(|damage| damage.apply(&mut stored));
        let spec = case.spec();
        let spec = PartSpec { raw_bytes: spec.raw_bytes + grown * spec.element_bytes, ..spec };
        // a damaged chunk can also state an encoding that its bytes do not have
        for encoding in all_encodings() {
            let _ = decode_in_all_ways(encoding, spec, &stored, &mut used, &ranges);
        }
        // ranges are decoded without a check of the whole part, to an error or to some values
        for (encoding, &range) in all_encodings().flat_map(|encoding| ranges.iter().map(move |range| (encoding, range))) {
            let _ = used.decode_range(encoding, spec, &stored, &range_of(range, spec.raw_bytes / spec.element_bytes), 0);
        }
    }

    /// For tiers, an estimate from all elements is the stored length without headers and padding.
    #[test]
    fn estimates_are_near(case in cases(many()), before in cases(few())) {
        let raw = case.raw();
        let mut used = Memory::after(&before);
        let estimate = |memory: &mut Memory| {
            let one = [case.count as u32];
            let geometry = case.geometry.in_blocks(&one);
            let mut part = SampledPart::new(RawPart { geometry: &geometry, raw: &raw }, PartSample::default());
            case.encoder.estimate(&mut part, &mut memory.encode)
        };
        let estimated = estimate(&mut used);
        prop_assert_eq!(estimate(&mut Memory::default()), estimated, "with used memory");
        let id = case.encoder.id();
        let Some(estimated) = estimated else {
            prop_assert!(![3, 4, 5].contains(&id));
            return Ok(());
        };
        if id == 3 {
            // a frame can be 12 bytes longer than its content, and the size is scaled to the whole
            // part
            prop_assert!(estimated <= raw.len() + 12 * (1 + case.count));
            return Ok(());
        }
        if id == 7 {
            // the fastest level makes the estimate, and can store much more than the strongest
            prop_assert!(estimated <= raw.len());
            return Ok(());
        }
        if estimated == usize::MAX {
            prop_assert!([4, 5, 6].contains(&id) && case.count > 65_535, "the length of a block is limited");
            return Ok(());
        }
        // the tables and, for each element, one bit for each tier and a literal
        prop_assert!(estimated <= TIER_TABLE_BYTES + raw.len() + (case.count * 10).div_ceil(8) + 1);
        if [4, 5].contains(&id) && case.blocks().len() == 1 && case.count <= 4096 {
            let stored = used.encode(&case).expect("tiers can express anything").len();
            let around = 8 + 3 * 7 + 3 + 3 + 4 + 1;
            prop_assert!(estimated <= stored && stored <= estimated + around + 1, "{estimated}, stored {stored}");
        }
    }

    /// A few bytes that claim to decode to a huge part are refused before memory is allocated for
    /// the part.
    #[test]
    fn more_than_stored_bytes_can_hold_is_refused(case in cases(100..=300_usize), more in 1..=1_usize << 28) {
        let case = Case { pattern: Pattern::RandomBits, ..case };
        let Some(stored) = Memory::default().encode(&case) else { return Ok(()) };
        let spec = case.spec();
        let spec = PartSpec { raw_bytes: spec.raw_bytes + more * spec.element_bytes, ..spec };
        if parsed(case.encoding(), spec, &stored).and_then(|part| part.check()).is_ok() {
            // a block of tiers or bins does not store the number of its elements, but the format
            // limits that number
            prop_assert!([4, 5, 6].contains(&case.encoder.id()));
            prop_assert!(spec.raw_bytes <= 65_535 * spec.element_bytes);
        }
    }
}

/// The parts are so large that Zstandard uses all of its match finders. They are encoded one after
/// another in the same memory.
#[test]
fn what_was_written_before_makes_no_difference() {
    let mut used = Memory::default();
    for encoder in ENCODERS.into_iter().filter(|encoder| encoder.check_built().is_ok()) {
        for (seed, pattern) in (0..).zip(Pattern::ALL) {
            let geometry = Geometry {
                element_bytes: 2,
                float: true,
                float_type: None,
                restart: 1024,
                strides: [128, 0],
                blocks: &[],
            };
            let case = Case { encoder, geometry, pattern, count: 40_000, seed };
            assert!(used.encode(&case) == Memory::default().encode(&case), "{case:?}");
        }
    }
}

/// The extra bits of a group of 64 are not in the order of the elements. A bug once gave wrong
/// extra bits to ranges that ended within a group.
#[test]
fn every_range_of_a_few_groups_decodes_individually() {
    let geometry =
        Geometry { element_bytes: 2, float: false, float_type: None, restart: 10, strides: [0, 0], blocks: &[] };
    let cases =
        [(ENCODERS[0], Pattern::AllEqual), (EXPONENTS, Pattern::RandomLengths), (RESIDUALS, Pattern::RandomLengths)];
    for (encoder, pattern) in cases {
        let case = Case { encoder, geometry, pattern, count: 150, seed: 3 };
        let (raw, mut memory) = (case.raw(), Memory::default());
        let stored = memory.encode(&case).expect("these encoders can express the values");
        for start in 0..case.count {
            for end in start + 1..=case.count {
                let partial = memory.decode_range(case.encoding(), case.spec(), &stored, &(start..end), 0xA5);
                assert_eq!(partial, Ok(Some(raw[2 * start..2 * end].to_vec())), "{case:?}, {start}..{end}");
            }
        }
    }
}

/// Prediction restarts only at the first element, so an element after the first third of the block
/// is not decoded individually, but together with all the others.
#[test]
fn a_range_far_from_its_restart_does_not_decode_individually() {
    let geometry =
        Geometry { element_bytes: 2, float: false, float_type: None, restart: u32::MAX, strides: [0, 0], blocks: &[] };
    let case = Case { encoder: RESIDUALS, geometry, pattern: Pattern::Ramp, count: 3000, seed: 3 };
    let (raw, mut memory) = (case.raw(), Memory::default());
    let delta = Prediction { predictor: Predictor::Delta, restart: u32::MAX, stride: 1 };
    memory.encode.tier_transform = Some(Transform::Predict(delta));
    let stored = memory.encode(&case).expect("tiers can express anything");
    for (start, partial) in [(0, true), (5, true), (1000, true), (1001, false), (2999, false)] {
        let found = memory.decode_range(case.encoding(), case.spec(), &stored, &(start..start + 1), 0xA5);
        assert_eq!(found, Ok(partial.then(|| raw[2 * start..2 * start + 2].to_vec())), "{start}");
    }
}

/// The same values give the same bytes on all machines, and in all releases except where the
/// changelog says otherwise. Zstandard is excluded, because its output depends on its version.
#[test]
fn tier_output_does_not_change() {
    let strides = [[0, 0], [3, 0], [128, 0], [12, 3]];
    let mut memory = Memory::default();
    let crcs = [EXPONENTS, RESIDUALS].map(|encoder| {
        let mut crc = crc32fast::Hasher::new();
        for (seed, pattern) in (0..17).zip(Pattern::ALL) {
            for (element_bytes, restart) in [(1, 1024), (2, 101), (4, u32::MAX), (8, 7)] {
                let strides = strides[(seed + element_bytes as u64) as usize % strides.len()];
                let geometry =
                    Geometry { element_bytes, float: seed % 2 == 0, float_type: None, restart, strides, blocks: &[] };
                let count = [5, 70, 1000, 4321][(seed / 2 + element_bytes as u64 / 2) as usize % 4];
                let case = Case { encoder, geometry, pattern, count, seed };
                crc.update(&memory.encode(&case).expect("tiers can express anything"));
            }
        }
        crc.finalize()
    });
    let expected = [0x72e6_99a2, 0xad00_ecb7];
    assert!(crcs == expected, "{crcs:#x?}: the bytes changed; if that is intended, say so in the changelog");
}

/// A tensor of a fixed shape decodes individually, because prediction restarts at its start.
/// Scalars decode in groups.
#[test]
fn prediction_restarts_with_each_tensor() {
    let geometry = |shape: Shape| Geometry::of_values(&ColumnSchema::tensor("x", DType::F32, shape).layout().unwrap());
    let restart = |shape| geometry(shape).restart;
    assert_eq!(
        [Shape::fixed(&[5, 4]), Shape::scalar(), Shape::fixed(&[1]), Shape::fixed(&[3, 0])].map(restart),
        [20, 1024, 1024, 1024]
    );
    assert_eq!(restart(Shape::ragged()), u32::MAX);
    assert_eq!(restart(Shape::new([Extent::Varying, Extent::Fixed(7)])), u32::MAX);
    let tensors = geometry(Shape::fixed(&[5, 4]));
    assert!(tensors.float && tensors.element_bytes == 4);
}

// ---- cases

static ENCODERS: [&dyn Encoder; 9] = [
    &Blocked(Constant),
    EXPONENTS,
    RESIDUALS,
    &Blocked(RawBlocks),
    &Blocked(BinBlocks { for_size: false }),
    &Blocked(BinBlocks { for_size: true }),
    &Blocked(BitshuffleBlocks),
    &Blocked(ZstdBlocks),
    &Blocked(PlaneBlocks),
];

const EXPONENTS: &dyn Encoder = &Blocked(ExponentBlocks);
const RESIDUALS: &dyn Encoder = &Blocked(ResidualBlocks);

/// A part, and the encoder for it.
#[derive(Clone)]
struct Case {
    pub encoder: &'static dyn Encoder,
    pub geometry: Geometry<'static>,
    pub pattern: Pattern,
    pub count: usize,
    pub seed: u64,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { encoder, geometry, pattern, count, seed } = self;
        write!(f, "{}: {count} of {pattern:?}, seed {seed}, {geometry:?}", encoder.name())
    }
}

impl Case {
    fn raw(&self) -> Vec<u8> {
        self.pattern.elements(self.geometry.element_bytes, self.count, self.seed)
    }

    /// Returns the ends of blocks of random lengths, or of one block.
    fn blocks(&self) -> Vec<u32> {
        let (count, mut random, mut ends) = (self.count as u32, Random(self.seed), vec![]);
        if self.seed.is_multiple_of(3) && count <= 65_535 {
            return vec![count];
        }
        while ends.last() != Some(&count) {
            let max_length = [1, 64, 200, 4096, 65_535][random.index(5)];
            let start: u32 = ends.last().copied().unwrap_or(0);
            ends.push(count.min(start + 1 + random.below(max_length) as u32).min(start + 65_535));
        }
        ends
    }

    /// Returns the encoding that the encoder writes.
    fn encoding(&self) -> Encoding {
        encoding_of(self.encoder, self.blocks().len() > 1).expect("the encoding is registered")
    }

    fn spec(&self) -> PartSpec<'static> {
        let element_bytes = self.geometry.element_bytes;
        PartSpec::new(element_bytes, self.count * element_bytes)
    }
}

fn cases(count: impl Strategy<Value = usize>) -> impl Strategy<Value = Case> {
    let built = ENCODERS.into_iter().filter(|encoder| encoder.check_built().is_ok()).collect::<Vec<_>>();
    let geometry = (
        prop::sample::select(vec![1, 2, 4, 8]),
        any::<bool>(),
        prop::sample::select(vec![1, 7, 64, 101, 1024, 50_000, u32::MAX]),
        prop::sample::select(vec![[0, 0], [3, 0], [128, 0], [12, 3], [2048, 128]]),
    );
    let geometry = geometry.prop_map(|(element_bytes, float, restart, strides)| Geometry {
        element_bytes,
        float,
        float_type: float.then(|| float_type(element_bytes)).flatten(),
        restart,
        strides,
        blocks: &[],
    });
    let pattern = prop::sample::select(Pattern::ALL.to_vec());
    (0..built.len(), geometry, pattern, count, any::<u64>()).prop_map(
        move |(encoder, geometry, pattern, count, seed)| Case {
            encoder: built[encoder],
            geometry,
            pattern,
            count,
            seed,
        },
    )
}

/// Returns the float type of elements of this size.
fn float_type(element_bytes: usize) -> Option<FloatType> {
    let dtype = match element_bytes {
        2 => DType::Bf16,
        4 => DType::F32,
        8 => DType::F64,
        _ => return None,
    };
    FloatType::of_column(dtype)
}

fn few() -> impl Strategy<Value = usize> {
    1..=300_usize
}

/// Returns counts that are large enough to exercise sampling, blocks and all match finders.
fn many() -> impl Strategy<Value = usize> {
    prop_oneof![24 => 1..=300_usize, 8 => 4_000..=6_000_usize, 1 => 69_900..=70_100_usize]
}

// ---- damage

/// A change to stored bytes.
#[derive(Clone, Debug)]
enum Damage {
    Byte(usize, u8),
    Bit(usize),
    Number(usize, u32),
    Cut(usize),
    Append(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    // damage to headers has the widest effect
    let offset = || prop_oneof![0..100_usize, any::<usize>()];
    let byte = prop_oneof![any::<u8>(), Just(0), Just(1), Just(u8::MAX)];
    let number = prop_oneof![any::<u32>(), 0..300_u32, Just(u32::MAX)];
    prop_oneof![
        4 => (offset(), byte).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        4 => any::<usize>().prop_map(Damage::Bit),
        2 => (offset(), number).prop_map(|(at, number)| Damage::Number(at, number)),
        1 => any::<usize>().prop_map(Damage::Cut),
        1 => vec(any::<u8>(), 1..20).prop_map(Damage::Append),
    ]
}

impl Damage {
    fn apply(&self, stored: &mut Vec<u8>) {
        let length = stored.len().max(1);
        match self {
            Self::Append(bytes) => stored.extend(bytes),
            Self::Cut(left) => stored.truncate(left % length),
            Self::Byte(at, byte) => stored.iter_mut().skip(at % length).take(1).for_each(|to| *to = *byte),
            Self::Bit(bit) => stored.iter_mut().skip(bit / 8 % length).take(1).for_each(|to| *to ^= 1 << (bit % 8)),
            Self::Number(at, number) => {
                stored.iter_mut().skip(at % length).zip(number.to_le_bytes()).for_each(|(to, from)| *to = from);
            }
        }
    }
}
