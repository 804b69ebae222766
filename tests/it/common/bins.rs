//! Columns that writers code by bins: without a mapping, with each mapping, and with each option.

use super::bin_options::{self, Options, assert_frequent_tokens_are_first};
use half::bf16;
use tensilo::sink::Stream;
use tensilo::{ColumnSchema, DType, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_testing::mix;

/// For each column, words from the description of its coding: in a profile that writes details
/// below numbers, and in one that does not. Or the name of an encoding that costs less than bins.
const CODINGS: [(&str, [&str; 2]); 8] = [
    ("skewed", ["none", "none"]),
    ("field", ["separable", "residual-tiers"]),
    ("pixels", ["3 dictionaries", "3 dictionaries"]),
    ("codes", ["a dictionary of 40 values", "a dictionary of 40 values"]),
    ("prices", ["numbers / (25 * 2^2)", "numbers / (25 * 2^2)"]),
    ("sound", ["numbers / (1 * 2^15)", "numbers / (1 * 2^15)"]),
    ("levels", ["low-order bits (details)", "exponent-tiers"]),
    ("times", ["multiples of 1000", "multiples of 1000"]),
];

/// With this many samples and these options, all columns have bins, in several blocks each.
pub const SAMPLES_OF_BINS: usize = 100;

pub fn options_of_bins(profile: Profile) -> WriterOptions {
    WriterOptions::new().profile(profile).chunk_bytes(64 << 10).block_bytes(4096)
}

/// The profiles that write bins.
pub const PROFILES_OF_BINS: [Profile; 2] = [Profile::Small, Profile::Balanced];

/// Golden files have this schema and these values: neither may change.
pub fn schema_of_bins() -> Schema {
    let schema = [
        ColumnSchema::tensor("skewed", DType::U16, Shape::fixed(&[40])),
        ColumnSchema::tensor("field", DType::I16, Shape::fixed(&[6, 10])),
        ColumnSchema::tensor("pixels", DType::F32, Shape::fixed(&[4, 6, 3])),
        ColumnSchema::tensor("codes", DType::F64, Shape::fixed(&[20])),
        ColumnSchema::tensor("prices", DType::F64, Shape::fixed(&[12])).nullable(),
        ColumnSchema::tensor("sound", DType::F32, Shape::fixed(&[24])),
        ColumnSchema::tensor("levels", DType::Bf16, Shape::fixed(&[8, 8])),
        ColumnSchema::tensor("times", DType::I64, Shape::ragged()),
    ];
    Schema::new(schema.into_iter().chain(bin_options::schemas()))
}

/// Returns a pseudorandom number below `end`.
pub fn below(seed: u64, i: usize, end: u64) -> u64 {
    mix(seed, i as u64) % end
}

/// Returns a pseudorandom number from -1 to 1. Numbers near 0 are the most frequent.
pub fn noise(seed: u64, i: usize) -> f64 {
    (0..3).map(|k| below(seed + k, i, 1 << 20) as f64 / f64::from(1 << 20)).sum::<f64>() / 1.5 - 1.0
}

/// Returns a matrix in which an element resembles the elements to its left and above it.
fn field(seed: u64, i: usize, [rows, columns]: [usize; 2], likeness: f64) -> Vec<f64> {
    let mut field = vec![0.0; rows * columns];
    for at in 0..rows * columns {
        let left = if at % columns > 0 { field[at - 1] } else { 0.0 };
        let above = if at >= columns { field[at - columns] } else { 0.0 };
        let both = if at % columns > 0 && at >= columns { field[at - columns - 1] } else { 0.0 };
        field[at] = likeness * (left + above - likeness * both) + noise(seed, i * rows * columns + at);
    }
    field
}

/// Writes samples of the schema.
pub fn write_bins(options: &WriterOptions, samples: usize) -> Vec<u8> {
    let mut writer = Writer::new(Stream(Vec::new()), schema_of_bins(), options).unwrap();
    let codes: Vec<f64> = (0..40).map(|k| noise(3, k) * 1e3).collect();
    for i in 0..samples {
        let skewed = |k| match below(1, k, 8) {
            0..4 => 3,
            4..6 => 700,
            _ => below(2, k, 1 << 16) as u16,
        };
        let skewed: Vec<u16> = (40 * i..40 * i + 40).map(skewed).collect();
        let of_field: Vec<i16> = field(8, i, [6, 10], 0.75).into_iter().map(|x| (x * 100.0) as i16).collect();
        let light: Vec<f64> =
            field(12, i, [4, 6], 0.75).into_iter().map(|x| (x * 20.0 + 128.0).clamp(0.0, 255.0)).collect();
        let channel = |k: usize| {
            let (mean, deviation) = [(0.485_f32, 0.229_f32), (0.456, 0.224), (0.406, 0.225)][k % 3];
            let byte = (light[k / 3] + noise(16, 72 * i + k) * 3.0).clamp(0.0, 255.0) as u8;
            (f32::from(byte) / 255.0 - mean) / deviation
        };
        let pixels: Vec<f32> = (0..72).map(channel).collect();
        let of_codes: Vec<f64> = (20 * i..20 * i + 20).map(|k| codes[below(20, k, 40) as usize]).collect();
        let price = |k| match below(21, k, 300) {
            0 => f64::NAN,
            1 => -0.0,
            _ => (below(22, k, 200) * below(23, k, 200)) as f64 / 100.0,
        };
        let prices: Vec<f64> = (12 * i..12 * i + 12).map(price).collect();
        let sound: Vec<f32> = (24 * i..24 * i + 24).map(|k| (noise(25, k) * 3000.0).trunc() as f32 / 32768.0).collect();
        let levels: Vec<bf16> = field(28, i, [8, 8], 0.97).into_iter().map(bf16::from_f64).collect();
        let count = i % 23;
        let times: Vec<i64> = (0..count)
            .map(|k| 1_700_000_000_123 + (900 * i as i64 + below(32, 23 * i + k, 600) as i64) * 1000)
            .collect();
        let extents = [count as u32];
        let sample = [
            Value::tensor(&skewed),
            Value::tensor(&of_field),
            Value::tensor(&pixels),
            Value::tensor(&of_codes),
            if i % 13 == 4 { Value::NULL } else { Value::tensor(&prices) },
            Value::tensor(&sound),
            Value::tensor(&levels),
            Value::ragged(&times, &extents),
        ];
        let options = Options::of_sample(i);
        let sample: Vec<Value<'_>> = sample.into_iter().chain(options.values()).collect();
        writer.push(&sample).unwrap();
    }
    writer.into_bytes().unwrap()
}

/// Checks that each column is coded by bins, with the mapping or option that suits it, and that
/// some have several blocks. Otherwise the file would test nothing.
pub fn assert_has_all_bins(file: &[u8], profile: Profile) {
    let reader = Reader::from_bytes(file.to_vec()).unwrap();
    let mut block_count = 0;
    for (name, words) in CODINGS.into_iter().chain(bin_options::CODINGS) {
        let explained = reader.column(name).unwrap().explain(0).unwrap().unwrap();
        let found = format!("{}: {}", explained.info.encoding, explained.transform.unwrap_or_default());
        let expected = words[usize::from(profile != Profile::Small)];
        let encoding = if expected.ends_with("-tiers") { expected } else { "bins" };
        assert!(found.starts_with(encoding) && found.contains(expected), "{}, {name}: {found}", profile.name());
        block_count += explained.blocks.map_or(1, |blocks| blocks.blocks.len());
    }
    assert_frequent_tokens_are_first(file);
    assert!(block_count > CODINGS.len() + bin_options::CODINGS.len(), "{}: {block_count} blocks", profile.name());
}
