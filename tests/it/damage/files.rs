//! The files that are damaged.

use super::is_long;
use crate::common::vectors::{bytes, file_of, vectors};
use crate::nested::model::{Entry, Plan, push_all};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnSchema, DType, Extent, Profile, Reader, Schema, Shape, Writer, WriterOptions};

/// A file of columns that suit different encodings.
fn written(profile: Profile, samples: u32, alignment: u32) -> Vec<u8> {
    let noise = |i: u32| i.wrapping_mul(0x9E37_79B9).rotate_left(i % 31).wrapping_mul(0x85EB_CA6B) >> 8;
    let schema = Schema::new([
        ColumnSchema::tensor("weights", DType::Bf16, Shape::fixed(&[20])),
        ColumnSchema::tensor("ramp", DType::I32, Shape::fixed(&[7])),
        ColumnSchema::tensor("skewed", DType::U8, Shape::fixed(&[60])),
        ColumnSchema::tensor("same", DType::U16, Shape::scalar()).nullable(),
        ColumnSchema::utf8("text"),
    ]);
    let options = WriterOptions::new().profile(profile).alignment(alignment).chunk_bytes(8192);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    let values = |count: u32, bytes: usize, value: &dyn Fn(u32) -> u32| -> Vec<u8> {
        (0..count * samples).flat_map(|i| value(i).to_ne_bytes().into_iter().take(bytes)).collect()
    };
    let weights = values(20, 2, &|i| 0x3F00 | (noise(i) % 0x100) | (noise(i + 7) % 2) << 15);
    let ramp = values(7, 4, &|i| 1000 * i + noise(i) % 50);
    let skewed = values(60, 1, &|i| (noise(i) % 97).min(noise(i + 1) % 97).min(noise(i + 2) % 97));
    let (same, text) = (values(1, 2, &|_| 0), "the same words again, ".repeat(samples as usize));
    let extents = vec![21; samples as usize];
    let validity = vec![0x5A; samples.div_ceil(8) as usize];
    let samples = samples as usize;
    let fixed = |dtype, values| ColumnBatch::from_bytes(dtype, samples, &[], values);
    let batches = [
        fixed(DType::Bf16, &weights),
        fixed(DType::I32, &ramp),
        fixed(DType::U8, &skewed),
        fixed(DType::U16, &same).with_validity(&validity),
        ColumnBatch::from_bytes(DType::Utf8, samples, &extents, &text.as_bytes()[..samples * 21]),
    ];
    writer.push_batch(&batches).unwrap();
    writer.finish().unwrap().sink.0
}

/// A file of lists of fixed, varying and text items, with nulls at every level.
fn written_lists(profile: Profile, sample_count: usize, seed: u64) -> Vec<u8> {
    let plan = |dtype, shape: &[Extent], levels: usize, column| Plan {
        dtype,
        shape: shape.to_vec(),
        nullable: vec![true; levels + 1],
        sample_count,
        seed: 4 * seed + column,
    };
    let plans = [
        plan(DType::Utf8, &[Extent::Varying], 1, 1),
        plan(DType::I16, &[Extent::Fixed(2)], 2, 2),
        plan(DType::U8, &[Extent::Varying, Extent::Fixed(2), Extent::Varying], 3, 3),
        plan(DType::Bool, &[Extent::Fixed(0)], 1, 4),
    ];
    let samples = plans.each_ref().map(Plan::entries);
    let columns: Vec<(&Plan, &[Entry])> = plans.iter().zip(samples.iter().map(Vec::as_slice)).collect();
    let schema = Schema::new(plans.iter().enumerate().map(|(i, plan)| plan.schema(&format!("lists {i}"))));
    let options = WriterOptions::new().profile(profile).chunk_bytes(300);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    push_all(&mut writer, &columns, 16);
    writer.finish().unwrap().sink.0
}

fn encodings(file: &[u8]) -> Vec<String> {
    let reader = Reader::from_bytes(file.to_vec()).unwrap();
    reader.columns().flat_map(|column| column.facts().encodings).map(|(encoding, _)| encoding).collect()
}

/// Returns each vector of at most 64 KiB, and small files that together have every encoding. A long
/// run has larger files, too.
fn files() -> Vec<(String, Vec<u8>)> {
    let vectors = vectors(true);
    let vectors = vectors.iter().map(|vector| (file_of(vector).to_owned(), bytes(file_of(vector))));
    let mut files: Vec<(String, Vec<u8>)> = vectors.filter(|(_, file)| file.len() <= 64 << 10).collect();
    assert!(files.len() >= 30, "the vectors are missing");
    for profile in Profile::ALL {
        files.push((format!("{profile:?}"), written(profile, 20, 64)));
        files.push((format!("{profile:?}, lists"), written_lists(profile, 12, 0)));
        if is_long() {
            files.extend([1, 2].map(|seed| (format!("{profile:?}, lists {seed}"), written_lists(profile, 100, seed))));
            files.extend(
                [64, 4096].map(|alignment| (format!("{profile:?}, {alignment}"), written(profile, 330, alignment))),
            );
        }
    }
    files
}

#[test]
fn the_files_have_every_encoding() {
    let found: BTreeSet<String> = files().iter().flat_map(|(_, file)| encodings(file)).collect();
    let due = [
        "bitshuffle-zstd",
        "constant",
        "exponent-tiers",
        "planes-zstd",
        "raw",
        "residual-tiers",
        "zstd",
        "zstd-dictionary",
    ];
    assert_eq!(found.iter().collect::<Vec<_>>(), due);
}

/// Runs `test` for each file, the largest first, on all cores.
pub fn for_each_file(test: impl Fn(&str, &[u8]) + Sync) {
    let mut files = files();
    files.sort_by_key(|(_, file)| std::cmp::Reverse(file.len()));
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((name, file)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    test(name, file);
                }
            });
        }
    });
}
