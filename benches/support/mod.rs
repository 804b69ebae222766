//! Shared by the benchmarks: data that is the same on every machine, files with it, and settings.

#![allow(dead_code, reason = "each benchmark uses a part of it")]

use criterion::Criterion;
use half::bf16;
use std::time::Duration;
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnSchema, DType, Profile, Schema, Shape, Writer, WriterOptions};

/// Returns settings for short runs, so that `cargo bench` takes minutes in total. Compare medians
/// in relation to their spread.
pub fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1200))
        .nresamples(10_000)
        .configure_from_args()
}

/// SplitMix64 (Steele, Lea, Flood) with a fixed seed: the source of all random numbers here. The
/// published crate contains the benchmarks but not `tensilo-testing`, so they cannot use its
/// generator.
pub struct Random(u64);

impl Random {
    pub fn new() -> Self {
        Self(0)
    }

    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a uniform number below `end`, which must be below 2^32.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        ((self.next() >> 32) * end) >> 32
    }

    /// Returns a nearly standard normal number: the sum of four uniform ones, scaled to variance 1.
    pub fn normal(&mut self) -> f32 {
        let bits = self.next();
        let sum: u64 = (0..4).map(|i| bits >> (16 * i) & 0xFFFF).sum();
        (sum as f32 / 65536.0 - 2.0) * 3_f32.sqrt()
    }
}

/// Returns embeddings: independent normal values.
pub fn embeddings(count: usize) -> Vec<bf16> {
    let mut random = Random::new();
    (0..count).map(|_| bf16::from_f32(random.normal())).collect()
}

/// Returns mel-like values: [`MEL_BANDS`] slow random walks, frame by frame.
pub fn mel(count: usize) -> Vec<bf16> {
    let mut random = Random::new();
    let mut bands = [0_f32; MEL_BANDS];
    let mut next = |i: usize| {
        let band = &mut bands[i % MEL_BANDS];
        *band = 0.95 * *band + 0.3 * random.normal();
        bf16::from_f32(*band - 5.0)
    };
    (0..count).map(&mut next).collect()
}

pub const MEL_BANDS: usize = 80;

/// Returns a file with one bf16 column `x` of `values`, in samples of this shape.
pub fn file(shape: &[u32], values: &[bf16], profile: Profile) -> Vec<u8> {
    file_with(shape, values, &WriterOptions::new().profile(profile))
}

/// Does the same with other options.
pub fn file_with(shape: &[u32], values: &[bf16], options: &WriterOptions) -> Vec<u8> {
    let per_sample: u32 = shape.iter().product();
    let batch = ColumnBatch::fixed(values.len() / per_sample as usize, values);
    write(ColumnSchema::tensor("x", DType::Bf16, Shape::fixed(shape)), batch, options)
}

/// Returns a file with one column.
pub fn write(column: ColumnSchema, batch: ColumnBatch<'_>, options: &WriterOptions) -> Vec<u8> {
    let mut writer = Writer::new(Stream(Vec::new()), Schema::new([column]), options).unwrap();
    writer.push_batch(&[batch]).unwrap();
    writer.into_bytes().unwrap()
}
