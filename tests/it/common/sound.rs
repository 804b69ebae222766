//! Columns of sound, which writers code by bins with filters. Golden files have these values: none
//! may change.

use tensilo::sink::Stream;
use tensilo::{ColumnSchema, DType, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_testing::mix;

/// Samples of a file: fewer would give chunks of one block.
pub const SAMPLES_OF_SOUND: usize = 12;

/// Elements of a sample. Prediction restarts at the end of a sample, and within a block of several
/// samples.
const SAMPLE_ELEMENTS: usize = 1024;

pub fn schema_of_sound() -> Schema {
    let shape = || Shape::fixed(&[SAMPLE_ELEMENTS as u32]);
    Schema::new([
        ColumnSchema::tensor("sound", DType::I16, shape()),
        ColumnSchema::tensor("floats", DType::F32, shape()),
    ])
}

/// Returns the sound of all samples: noise through two resonances of varying loudness. It uses only
/// integers, so that it is the same on every machine.
fn sound(seed: u64) -> Vec<i16> {
    // in units of 1/4096, the most recent number first
    let coefficients = [10_501, -12_704, 8689, -2870];
    let mut last = [0_i64; 4];
    let next = |i: usize| {
        let loudness = 2 + (i % 1500).abs_diff(750) as i64 / 50;
        let noise = (mix(seed, i as u64) % 8) as i64 * loudness - 4 * loudness;
        let sum: i64 = coefficients.iter().zip(last).map(|(coefficient, number)| coefficient * number).sum();
        let [a, b, c, _] = last;
        last = [(sum >> 12) + noise, a, b, c];
        last[0] as i16
    };
    (0..SAMPLES_OF_SOUND * SAMPLE_ELEMENTS).map(next).collect()
}

/// Writes all samples, in several blocks of each column.
pub fn write_sound(profile: Profile) -> Vec<u8> {
    let options = WriterOptions::new().profile(profile).chunk_bytes(64 << 10).block_bytes(8192);
    let mut writer = Writer::new(Stream(Vec::new()), schema_of_sound(), &options).unwrap();
    let floats: Vec<f32> = sound(2).into_iter().map(|number| f32::from(number) / 32768.0).collect();
    for (sound, floats) in sound(1).chunks(SAMPLE_ELEMENTS).zip(floats.chunks(SAMPLE_ELEMENTS)) {
        writer.push(&[Value::tensor(sound), Value::tensor(floats)]).unwrap();
    }
    writer.into_bytes().unwrap()
}

/// Checks that both columns have filters and several blocks. Otherwise the file would test nothing.
pub fn assert_has_filters(file: &[u8], profile: Profile) {
    let reader = Reader::from_bytes(file.to_vec()).unwrap();
    for column in reader.columns() {
        let explained = column.explain(0).unwrap().unwrap();
        let found = format!("{}: {}", explained.info.encoding, explained.transform.unwrap_or_default());
        let name = &column.schema().name;
        assert!(found.contains("filters of"), "{}, {name}: {found}", profile.name());
        assert!(explained.blocks.unwrap().blocks.len() > 1, "{}, {name}", profile.name());
    }
}
