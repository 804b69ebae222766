//! Arbitrary schemas and samples. Proptest makes the structure, which shrinks. A generator with a
//! seed from proptest makes the values, which need no value tree.

use super::{ModelSample, Table, TensorValue, inner_bytes};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use tensilo::{ColumnSchema, DType, Extent, Metadata, Schema, Shape};
use tensilo_testing::Random;

/// The pattern of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    Random,
    Constant,
    Smooth,
    Zero,
    /// All zero except one element.
    OneOutlier,
}

/// A column and how its samples are made.
#[derive(Clone, Debug)]
pub struct ColumnPlan {
    pub dtype: DType,
    pub shape: Vec<Extent>,
    pub nullable: bool,
    pub metadata: Metadata,
    pub distribution: Distribution,
    pub seed: u64,
}

pub fn arbitrary_table(max_samples: usize) -> impl Strategy<Value = Table> {
    let samples = prop_oneof![1 => Just(0), 1 => Just(1), 3 => 0..=20_usize.min(max_samples), 3 => 0..=max_samples];
    (vec(arbitrary_column(), 0..=4), metadata(), samples)
        .prop_map(|(plans, metadata, samples)| table(&plans, metadata, samples))
}

pub fn arbitrary_column() -> impl Strategy<Value = ColumnPlan> {
    let dtype = prop::sample::select(DType::ALL.to_vec());
    let distribution = prop::sample::select(vec![
        Distribution::Random,
        Distribution::Constant,
        Distribution::Smooth,
        Distribution::Zero,
        Distribution::OneOutlier,
    ]);
    (dtype, shape(), any::<bool>(), metadata(), distribution, any::<u64>()).prop_map(
        |(dtype, shape, nullable, metadata, distribution, seed)| {
            let shape = if dtype.is_string() { vec![Extent::Varying] } else { shape };
            ColumnPlan { dtype, shape, nullable, metadata, distribution, seed }
        },
    )
}

/// Returns shapes with 0 to 4 dimensions and up to three varying extents; a fixed extent may be 0.
fn shape() -> impl Strategy<Value = Vec<Extent>> {
    let extent = prop_oneof![
        1 => Just(Extent::Fixed(0)),
        8 => (1..=5_u32).prop_map(Extent::Fixed),
        1 => (6..=40_u32).prop_map(Extent::Fixed),
        4 => Just(Extent::Varying),
    ];
    vec(extent, 0..=4).prop_map(|mut extents| {
        let mut varying = 0;
        for extent in &mut extents {
            varying += usize::from(*extent == Extent::Varying);
            if varying > 3 {
                *extent = Extent::Fixed(2);
            }
        }
        // several large extents would only make samples that take long
        let large = |extent: &Extent| matches!(extent, Extent::Fixed(6..));
        for extra in extents.iter_mut().filter(|extent| large(extent)).skip(1) {
            *extra = Extent::Fixed(3);
        }
        extents
    })
}

pub fn metadata() -> impl Strategy<Value = Metadata> {
    prop_oneof![2 => Just(Metadata::new()), 1 => btree_map(text(1..12), text(0..20), 0..4)]
}

/// Returns any Unicode text, including control characters and NUL.
fn text(chars: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    vec(any::<char>(), chars).prop_map(String::from_iter)
}

pub fn table(plans: &[ColumnPlan], metadata: Metadata, sample_count: usize) -> Table {
    // a file without columns has no samples
    let sample_count = if plans.is_empty() { 0 } else { sample_count };
    let mut schema = Schema { columns: Vec::new(), metadata };
    let mut columns = Vec::new();
    for (i, plan) in plans.iter().enumerate() {
        let column = ColumnSchema {
            name: format!("column {i} \u{3b1}\u{1F980} \"{}\\", plan.dtype),
            dtype: plan.dtype,
            shape: Shape::new(plan.shape.iter().copied()),
            nullable: plan.nullable,
            levels: Vec::new(),
            cast: None,
            metadata: plan.metadata.clone(),
        };
        columns.push(samples(&column, plan.distribution, plan.seed, sample_count));
        schema.columns.push(column);
    }
    Table { schema, sample_count, columns }
}

/// Returns the samples of a column.
pub fn samples(column: &ColumnSchema, distribution: Distribution, seed: u64, sample_count: usize) -> Vec<ModelSample> {
    let random = &mut Random(seed);
    let outlier = random.below(sample_count.max(1) as u64);
    let constant = element(column.dtype, random);
    // some columns have long runs of nulls, some single nulls, some none
    let null_run = 1 + random.below(12);
    let null_rate = [0, 2, 9, 40][random.below(4) as usize];
    let mut is_null = false;
    let mut samples = Vec::with_capacity(sample_count);
    let mut position = 0;
    for i in 0..sample_count as u64 {
        if i % null_run == 0 {
            is_null = column.nullable && null_rate > 0 && random.one_in(null_rate);
        }
        if is_null {
            samples.push(None);
            continue;
        }
        let extents = varying_extents(column, random);
        let bytes = match column.dtype {
            DType::Utf8 => return_text(column, distribution, random, samples.len()),
            dtype => {
                let count = extents.iter().map(|extent| *extent as usize).product::<usize>();
                let elements = count * (inner_bytes(column) / dtype.element_bytes());
                values(dtype, elements, distribution, &constant, i == outlier, &mut position, random)
            }
        };
        let extents = if column.dtype == DType::Utf8 { vec![bytes.len() as u32] } else { extents };
        samples.push(Some(TensorValue { extents, bytes }));
    }
    samples
}

fn varying_extents(column: &ColumnSchema, random: &mut Random) -> Vec<u32> {
    let varying = column.shape.varying_count();
    if varying > 0 && inner_bytes(column) == 0 {
        return huge_extents(varying, random);
    }
    let end = if varying == 1 { 24 } else { 5 };
    (0..varying)
        .map(|_| match random.below(12) {
            0 => 0,
            1 if varying == 1 => random.below(400 / (1 + inner_bytes(column) as u64) + 2) as u32,
            _ => random.below(end) as u32,
        })
        .collect()
}

/// Returns large extents. If an inner extent is 0, a sample has no bytes however long it is, and
/// only the sum of counts limits a chunk.
fn huge_extents(varying: usize, random: &mut Random) -> Vec<u32> {
    let long = random.below(varying as u64) as usize;
    let extent = |i: usize| if i == long { random.bits() as u32 & !1 } else { 1 };
    (0..varying).map(extent).collect()
}

fn return_text(_: &ColumnSchema, distribution: Distribution, random: &mut Random, number: usize) -> Vec<u8> {
    let text = match distribution {
        Distribution::Zero => "\0".repeat(random.below(6) as usize),
        Distribution::Constant => "same text".to_owned(),
        Distribution::Smooth => format!("sample number {number} of a column of text"),
        Distribution::OneOutlier if number != 3 => String::new(),
        _ => {
            let length = random.below(12);
            (0..length).map(|_| arbitrary_char(random)).collect()
        }
    };
    text.into_bytes()
}

fn arbitrary_char(random: &mut Random) -> char {
    let code = match random.below(6) {
        0 => 0,
        1 => random.below(0x20),
        2 | 3 => 0x20 + random.below(0x5F),
        4 => random.below(0x1_0000),
        _ => random.below(0x11_0000),
    };
    char::from_u32(code as u32).unwrap_or('\u{FFFD}')
}

/// Returns one element of any bits that its type allows, in memory order.
fn element(dtype: DType, random: &mut Random) -> Vec<u8> {
    let bits = random.bits();
    let special = random.below(24);
    let bits = match dtype {
        DType::Bf16 => special_float(special, 8, 7).unwrap_or(bits),
        DType::F16 => special_float(special, 5, 10).unwrap_or(bits),
        DType::F32 => special_float(special, 8, 23).unwrap_or(bits),
        DType::F64 => special_float(special, 11, 52).unwrap_or(bits),
        _ => bits & value_mask(dtype),
    };
    low_bytes(bits, dtype.element_bytes())
}

/// Returns the bits that an element may have.
pub fn value_mask(dtype: DType) -> u64 {
    u64::MAX >> (64 - dtype.value_bits())
}

/// Returns floats that often go wrong: zeros, subnormals, infinities, quiet and signalling NaNs
/// with payloads.
fn special_float(which: u64, exponent_bits: u32, mantissa_bits: u32) -> Option<u64> {
    let sign = 1_u64 << (exponent_bits + mantissa_bits);
    let infinity = ((1_u64 << exponent_bits) - 1) << mantissa_bits;
    let quiet = 1_u64 << (mantissa_bits - 1);
    Some(match which {
        0 => 0,
        1 => sign,
        2 => 1,
        3 => sign | (quiet - 1),
        4 => infinity,
        5 => sign | infinity,
        6 => infinity | 1,
        7 => sign | infinity | quiet | 5,
        8 => infinity - 1,
        9 => 1 << mantissa_bits,
        _ => return None,
    })
}

fn low_bytes(bits: u64, width: usize) -> Vec<u8> {
    match width {
        1 => (bits as u8).to_ne_bytes().to_vec(),
        2 => (bits as u16).to_ne_bytes().to_vec(),
        4 => (bits as u32).to_ne_bytes().to_vec(),
        _ => bits.to_ne_bytes().to_vec(),
    }
}

/// Returns values. `position` counts the elements of the column, so that smooth columns are smooth
/// across samples.
fn values(
    dtype: DType,
    count: usize,
    distribution: Distribution,
    constant: &[u8],
    has_outlier: bool,
    position: &mut u64,
    random: &mut Random,
) -> Vec<u8> {
    let outlier = has_outlier.then(|| random.below(count.max(1) as u64) as usize);
    let mut out = Vec::with_capacity(count * dtype.element_bytes());
    for i in 0..count {
        *position += 1;
        match distribution {
            Distribution::Random => out.extend(element(dtype, random)),
            Distribution::Constant => out.extend(constant),
            Distribution::Smooth => out.extend(smooth(dtype, *position)),
            Distribution::OneOutlier if outlier == Some(i) => out.extend(element(dtype, random)),
            Distribution::Zero | Distribution::OneOutlier => out.extend(vec![0; dtype.element_bytes()]),
        }
    }
    out
}

fn smooth(dtype: DType, position: u64) -> Vec<u8> {
    let wave = (position as f64 / 50.0).sin();
    match dtype {
        DType::Bf16 => half::bf16::from_f64(wave).to_ne_bytes().to_vec(),
        DType::F16 => half::f16::from_f64(wave).to_ne_bytes().to_vec(),
        DType::F32 => (wave as f32).to_ne_bytes().to_vec(),
        DType::F64 => wave.to_ne_bytes().to_vec(),
        DType::Bool => vec![u8::from(wave > 0.0)],
        DType::Complex64 => [wave as f32, -wave as f32].map(f32::to_ne_bytes).concat(),
        _ => low_bytes((wave * 100.0) as i64 as u64 & value_mask(dtype), dtype.element_bytes()),
    }
}
