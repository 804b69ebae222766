//! Tests that each value of a cast column is the nearest of its type, and that the recorded facts
//! of the cast are true.
//!
//! The reference rounds slowly, in integers: it splits a float into a magnitude and an exponent,
//! and knows nothing of the bit tricks of the fast conversion. Source values are those that are
//! hard to round: ties and their neighbors, subnormals, and the ends of the range.

use crate::common::config;
use crate::common::plan::{Step, WritePlan, arbitrary_plan, write};
use crate::common::{ModelSample, Table, TensorValue, inner_bytes};
use crate::support::intact::assert_intact;
use proptest::prelude::*;
use tensilo::facts::CastFacts;
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnBuffer, ColumnSchema, DType, Reader, Schema, Shape, Writer, WriterOptions};
use tensilo_testing::Random;

/// A binary floating-point type.
#[derive(Clone, Copy)]
struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
}

fn format(dtype: DType) -> Format {
    let (exponent_bits, mantissa_bits) = match dtype {
        DType::Bf16 => (8, 7),
        DType::F16 => (5, 10),
        DType::F32 => (8, 23),
        DType::F64 => (11, 52),
        _ => unreachable!("not a floating-point type"),
    };
    Format { exponent_bits, mantissa_bits }
}

/// The number that a bit pattern represents.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Nan,
    Infinite {
        negative: bool,
    },
    /// `magnitude x 2^exponent`.
    Finite {
        negative: bool,
        magnitude: u64,
        exponent: i32,
        is_normal: bool,
    },
}

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// Returns the exponent of the last bit of subnormal numbers.
    fn min_exponent(self) -> i32 {
        1 - self.bias() - self.mantissa_bits as i32
    }

    fn number(self, bits: u64) -> Number {
        let negative = bits >> (self.exponent_bits + self.mantissa_bits) & 1 == 1;
        let field = bits >> self.mantissa_bits & ((1 << self.exponent_bits) - 1);
        let mantissa = bits & ((1 << self.mantissa_bits) - 1);
        if field == (1 << self.exponent_bits) - 1 {
            return if mantissa == 0 { Number::Infinite { negative } } else { Number::Nan };
        }
        let (magnitude, exponent) = match field {
            0 => (mantissa, self.min_exponent()),
            _ => (mantissa | 1 << self.mantissa_bits, self.min_exponent() + field as i32 - 1),
        };
        Number::Finite { negative, magnitude, exponent, is_normal: field != 0 }
    }

    /// Returns the bits, without the sign, of the number nearest to `magnitude x 2^exponent`. If
    /// two are equally near, returns the one whose last bit is 0.
    fn nearest(self, magnitude: u64, exponent: i32) -> u64 {
        if magnitude == 0 {
            return 0;
        }
        // the last bit of the result leaves mantissa_bits + 1 bits, but is at least the smallest
        let bits = 64 - magnitude.leading_zeros() as i32;
        let last_bit = (exponent + bits - 1 - self.mantissa_bits as i32).max(self.min_exponent());
        let shift = last_bit - exponent;
        let rounded = if shift <= 0 {
            u128::from(magnitude) << -shift
        } else if shift > 64 {
            0 // less than half of the last bit
        } else {
            let (whole, rest) = (u128::from(magnitude) >> shift, u128::from(magnitude) & ((1 << shift) - 1));
            let half = 1_u128 << (shift - 1);
            whole + u128::from(rest > half || (rest == half && whole & 1 == 1))
        };
        // consecutive numbers have consecutive bits, so a carry out of the mantissa just works
        let binades = (last_bit - self.min_exponent()) as u64;
        let infinity = ((1 << self.exponent_bits) - 1) << self.mantissa_bits;
        (rounded as u64 + (binades << self.mantissa_bits)).min(infinity)
    }
}

fn bits_of(element: &[u8]) -> u64 {
    match *element {
        [a, b] => u16::from_ne_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
        _ => u64::from_ne_bytes(element.try_into().expect("2, 4 or 8 bytes")),
    }
}

fn bytes_of(bits: u64, width: usize) -> Vec<u8> {
    match width {
        2 => (bits as u16).to_ne_bytes().to_vec(),
        4 => (bits as u32).to_ne_bytes().to_vec(),
        _ => bits.to_ne_bytes().to_vec(),
    }
}

/// Returns the exact value: every type here fits an f64.
fn to_f64(number: Number) -> f64 {
    match number {
        Number::Nan => f64::NAN,
        Number::Infinite { negative } => {
            if negative {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        }
        Number::Finite { negative, magnitude, exponent, .. } => {
            let format = format(DType::F64);
            let bits = format.nearest(magnitude, exponent) | u64::from(negative) << 63;
            f64::from_bits(bits)
        }
    }
}

/// Updates the facts of chapter 7.6 the slow way.
fn add_facts(facts: &mut CastFacts, source: Number, result: Number) {
    let Number::Finite { is_normal: source_is_normal, .. } = source else { return };
    let Number::Finite { is_normal: result_is_normal, .. } = result else {
        facts.to_infinite += 1;
        return;
    };
    let (s, r) = (to_f64(source), to_f64(result));
    facts.max_abs_error = facts.max_abs_error.max((r - s).abs());
    if s != 0.0 {
        facts.max_rel_error = facts.max_rel_error.max((r - s).abs() / s.abs());
    }
    if source_is_normal && !result_is_normal {
        facts.to_subnormal += 1;
    }
}

/// Returns all casts from floats that the format allows.
fn casts() -> Vec<(DType, DType)> {
    let sources = [DType::Bf16, DType::F16, DType::F32, DType::F64];
    let targets = [DType::Bf16, DType::F16, DType::F32, DType::F64];
    sources.into_iter().flat_map(|s| targets.map(|t| (s, t))).filter(|(s, t)| s != t).collect()
}

/// Returns a source value that is hard to round: an exact value of the target, a tie or its
/// neighbor, an end of the range, or any bits.
fn source_bits(source: DType, target: DType, random: &mut Random) -> u64 {
    let (from, to) = (format(source), format(target));
    let sign = random.below(2) << (from.exponent_bits + from.mantissa_bits);
    let any = random.bits() & (u64::MAX >> (64 - source.element_bytes() * 8));
    match random.below(9) {
        0 => any,
        // the ends of the range: the smallest normal number and its neighbors, the largest, and
        // infinity
        1 => {
            let min_normal = 1 << from.mantissa_bits;
            let infinity = ((1_u64 << from.exponent_bits) - 1) << from.mantissa_bits;
            sign | ([min_normal, infinity][random.below(2) as usize] + random.below(3) - 1)
        }
        // moderate numbers
        2 => {
            let exponent = (from.bias() as u64).wrapping_add(random.below(20)).wrapping_sub(10);
            sign | exponent << from.mantissa_bits | (any & ((1 << from.mantissa_bits) - 1))
        }
        // subnormal in the source, or close to zero
        3 => sign | (any & ((1 << random.below(u64::from(from.mantissa_bits) + 2)) - 1)),
        // a number of the target plus a half, or nearly
        _ => {
            let infinity = ((1_u64 << to.exponent_bits) - 1) << to.mantissa_bits;
            let lower = match random.below(4) {
                0 => infinity - 1,
                1 => random.below(1 << (to.mantissa_bits + 1)),
                _ => random.below(infinity),
            };
            let Number::Finite { magnitude, exponent, .. } = to.number(lower) else { unreachable!("below infinity") };
            let tie = from.nearest(2 * magnitude + 1, exponent - 1);
            sign | (tie + random.below(3)).saturating_sub(1)
        }
    }
}

/// The table that is pushed, and the table expected in the file with the facts of its columns.
struct Case {
    pushed: Table,
    expected: Vec<Vec<ModelSample>>,
    facts: Vec<CastFacts>,
}

fn case(casts: &[(DType, DType)], shape: &Shape, nullable: bool, samples: usize, seed: u64) -> Case {
    let random = &mut Random(seed);
    let mut case = Case {
        pushed: Table { schema: Schema::default(), sample_count: samples, columns: Vec::new() },
        expected: Vec::new(),
        facts: Vec::new(),
    };
    for (number, &(source, target)) in casts.iter().enumerate() {
        let mut column = ColumnSchema::tensor(format!("{number}: {source} to {target}"), target, shape.clone());
        column.nullable = nullable;
        let column = column.cast_from(source);
        let (mut pushed, mut expected, mut facts) = (Vec::new(), Vec::new(), CastFacts::default());
        for _ in 0..samples {
            if nullable && random.one_in(4) {
                pushed.push(None);
                expected.push(None);
                continue;
            }
            let extents: Vec<u32> = (0..shape.varying_count()).map(|_| random.below(5) as u32).collect();
            let count = extents.iter().product::<u32>() as usize * inner_bytes(&column) / target.element_bytes();
            let (mut from, mut to) = (Vec::new(), Vec::new());
            for _ in 0..count {
                let bits = source_bits(source, target, random);
                from.extend(bytes_of(bits, source.element_bytes()));
                let number = format(source).number(bits);
                let rounded = round(number, target);
                to.extend(bytes_of(rounded, target.element_bytes()));
                add_facts(&mut facts, number, format(target).number(rounded));
            }
            pushed.push(Some(TensorValue { extents: extents.clone(), bytes: from }));
            expected.push(Some(TensorValue { extents, bytes: to }));
        }
        case.pushed.schema.columns.push(column);
        case.pushed.columns.push(pushed);
        case.expected.push(expected);
        case.facts.push(facts);
    }
    case
}

/// Returns the bits in the target; for a NaN, any NaN.
fn round(number: Number, target: DType) -> u64 {
    let format = format(target);
    let sign = |negative| u64::from(negative) << (format.exponent_bits + format.mantissa_bits);
    let infinity = ((1 << format.exponent_bits) - 1) << format.mantissa_bits;
    match number {
        Number::Nan => infinity + 1,
        Number::Infinite { negative } => sign(negative) | infinity,
        Number::Finite { negative, magnitude, exponent, .. } => sign(negative) | format.nearest(magnitude, exponent),
    }
}

/// Asserts equal bits, or that both are NaN.
fn assert_same(found: &[u8], expected: &[u8], column: &ColumnSchema, i: usize) {
    let width = column.dtype.element_bytes();
    assert_eq!(found.len(), expected.len(), "{}, sample {i}", column.name);
    for (found, expected) in found.chunks_exact(width).zip(expected.chunks_exact(width)) {
        let (found, expected) = (bits_of(found), bits_of(expected));
        let format = format(column.dtype);
        let both_nan = format.number(found) == Number::Nan && format.number(expected) == Number::Nan;
        assert!(found == expected || both_nan, "{}, sample {i}: {found:#x}, expected {expected:#x}", column.name);
    }
}

fn check(case: &Case, bytes: Vec<u8>) {
    let reader = Reader::from_bytes(bytes).expect("an intact file");
    assert_eq!(reader.schema(), &case.pushed.schema);
    for ((column, expected), facts) in reader.columns().zip(&case.expected).zip(&case.facts) {
        let schema = column.schema();
        assert_eq!(column.facts().cast, Some(*facts), "{}", schema.name);
        assert_eq!(column.facts().null_count, expected.iter().filter(|sample| sample.is_none()).count() as u64);
        let mut cursor = column.cursor();
        for (i, sample) in expected.iter().enumerate() {
            let found = cursor.read(i as u64).expect("an intact file");
            assert_eq!(found.is_null(), sample.is_none());
            assert_same(found.bytes(), &crate::common::stored_bytes(schema, sample), schema, i);
        }
    }
    assert_intact(reader.source());
}

fn shape() -> impl Strategy<Value = Shape> {
    use tensilo::Extent::{Fixed, Varying};
    prop::sample::select(vec![
        Shape::scalar(),
        Shape::fixed(&[7]),
        Shape::fixed(&[2, 0]),
        Shape::ragged(),
        Shape::new([Varying, Fixed(3), Varying]),
    ])
}

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn values_are_the_nearest_of_their_type_and_the_record_of_the_cast_is_true(
        casts in prop::collection::vec(prop::sample::select(casts()), 1..4),
        shape in shape(),
        nullable in any::<bool>(),
        samples in 0..120_usize,
        seed in any::<u64>(),
        plan in arbitrary_plan(),
    ) {
        let case = case(&casts, &shape, nullable, samples, seed);
        let bytes = write(&case.pushed, &plan);
        prop_assert!(write(&case.pushed, &plan.regrouped(samples, 0)) == bytes, "one by one");
        check(&case, bytes);
    }
}

/// Casts every bit pattern of an f16 to the other types.
#[test]
fn every_f16_is_cast_right() {
    for target in [DType::Bf16, DType::F32] {
        let column = ColumnSchema::tensor("x", target, Shape::scalar()).cast_from(DType::F16);
        let mut facts = CastFacts::default();
        let (mut pushed, mut expected) = (Vec::new(), Vec::new());
        for bits in 0..=u64::from(u16::MAX) {
            let number = format(DType::F16).number(bits);
            let rounded = round(number, target);
            add_facts(&mut facts, number, format(target).number(rounded));
            let value = |bits, width| Some(TensorValue { extents: Vec::new(), bytes: bytes_of(bits, width) });
            pushed.push(value(bits, 2));
            expected.push(value(rounded, target.element_bytes()));
        }
        let pushed = Table { schema: Schema::new([column]), sample_count: pushed.len(), columns: vec![pushed] };
        let case = Case { pushed, expected: vec![expected], facts: vec![facts] };
        let plan = WritePlan {
            profile: tensilo::Profile::Raw,
            chunk_bytes: 1 << 16,
            block_bytes: None,
            alignment: 64,
            threads: 1,
            steps: vec![Step::Batch(usize::MAX)],
        };
        check(&case, write(&case.pushed, &plan));
    }
}

/// Checks the reference itself against the conversion of the standard library.
#[test]
fn the_reference_rounds_f64_to_f32_as_the_standard_library_does() {
    let random = &mut Random(1);
    for _ in 0..200_000 {
        let bits = source_bits(DType::F64, DType::F32, random);
        let value = f64::from_bits(bits);
        let rounded = f32::from_bits(round(format(DType::F64).number(bits), DType::F32) as u32);
        assert!(value as f32 == rounded || value.is_nan() && rounded.is_nan(), "{value:e}: {rounded:e}");
        assert!(value.is_nan() || to_f64(format(DType::F64).number(bits)).to_bits() == bits);
    }
}

/// Values that were rounded before keep their bits, and the file has the facts that it is given.
#[test]
fn values_are_not_rounded_twice_and_keep_the_record_of_their_casts() {
    let columns = [
        ColumnSchema::tensor("x", DType::Bf16, Shape::scalar()).cast_from(DType::F32),
        ColumnSchema::tensor("y", DType::Bf16, Shape::scalar()),
    ];
    let bits: Vec<u16> = (0..=u16::MAX).collect();
    let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_ne_bytes()).collect();
    let batch = ColumnBatch::from_bytes(DType::Bf16, bits.len(), &[], &bytes);
    let facts = |max_abs_error, max_rel_error, to_infinite, to_subnormal| {
        let mut facts = CastFacts::default();
        (facts.max_abs_error, facts.max_rel_error) = (max_abs_error, max_rel_error);
        (facts.to_infinite, facts.to_subnormal) = (to_infinite, to_subnormal);
        Some(facts)
    };
    let options = WriterOptions::new();
    let schema = Schema::new(columns);
    let given = [facts(0.5, f64::NAN, 2, 0), facts(1.0, 1.0, 1, 1)];
    let mut writer = Writer::from_rounded(Stream(Vec::new()), schema, &options, &given).unwrap();
    writer.push_batch(&[batch, batch]).unwrap();
    writer.merge_cast_facts(&[facts(-0.0, 0.25, 1, 7), facts(1.0, 1.0, 1, 1)]);
    let reader = Reader::from_bytes(writer.into_bytes().unwrap()).unwrap();
    for (column, expected) in reader.columns().zip([facts(0.5, 0.25, 3, 7), None]) {
        assert_eq!(column.facts().cast, expected);
        let mut buffer = ColumnBuffer::new();
        column.cursor().range_into(0..reader.sample_count(), &mut buffer).unwrap();
        assert!(buffer.bytes() == bytes);
    }
    assert_intact(reader.source());
}
