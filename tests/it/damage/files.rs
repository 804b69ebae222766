//! The files to damage.

use super::is_long;
use crate::common::bins::{PROFILES_OF_BINS, SAMPLES_OF_BINS, assert_has_all_bins, options_of_bins, write_bins};
use crate::common::sound::{assert_has_filters, write_sound};
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
    writer.into_bytes().unwrap()
}

/// This many samples of lists exceed a block.
const LISTS_OF_BLOCKS: usize = 2500;

/// A file of lists of fixed, varying and text items, with nulls at every level.
fn written_lists(profile: Profile, sample_count: usize, chunk_bytes: usize, seed: u64) -> Vec<u8> {
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
    let options = WriterOptions::new().profile(profile).chunk_bytes(chunk_bytes);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    push_all(&mut writer, &columns, 16);
    writer.into_bytes().unwrap()
}

pub fn encodings(file: &[u8]) -> Vec<String> {
    let reader = Reader::from_bytes(file.to_vec()).unwrap();
    reader.columns().flat_map(|column| column.facts().encodings).map(|(encoding, _)| encoding).collect()
}

/// Returns each vector of at most 64 KiB, and small files that together have every encoding. A long
/// run adds larger files.
fn files() -> Vec<(String, Vec<u8>)> {
    let vectors = vectors(true);
    let vectors = vectors.iter().map(|vector| (file_of(vector).to_owned(), bytes(file_of(vector))));
    let mut files: Vec<(String, Vec<u8>)> = vectors.filter(|(_, file)| file.len() <= 64 << 10).collect();
    assert!(files.len() >= 30, "the vectors are missing");
    for profile in Profile::ALL {
        files.push((format!("{profile:?}"), written(profile, 20, 64)));
        files.push((format!("{profile:?}, lists"), written_lists(profile, 12, 300, 0)));
        if is_long() {
            files.extend(
                [1, 2].map(|seed| (format!("{profile:?}, lists {seed}"), written_lists(profile, 100, 300, seed))),
            );
            if PROFILES_OF_BINS.contains(&profile) {
                files.push((format!("{profile:?}, bins"), written_bins(profile)));
                files.push((format!("{profile:?}, sound"), written_sound(profile)));
            }
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
    let expected = [
        "bins",
        "bins in blocks",
        "bitshuffle-zstd",
        "bitshuffle-zstd in blocks",
        "constant",
        "exponent-tiers",
        "exponent-tiers in blocks",
        "planes-zstd",
        "planes-zstd in blocks",
        "raw",
        "raw in blocks",
        "residual-tiers",
        "residual-tiers in blocks",
        "zstd",
        "zstd in blocks",
    ];
    assert_eq!(found.iter().collect::<Vec<_>>(), expected);
}

/// Returns the vectors of chunks in blocks, and files whose chunks have several blocks: nulls,
/// lists, texts, and samples larger than a block.
pub fn blocked_files() -> Vec<(String, Vec<u8>)> {
    let vectors = vectors(true);
    let vectors = vectors.iter().map(file_of).map(|name| (name.to_owned(), bytes(name)));
    let is_in_blocks = |file: &[u8]| encodings(file).iter().any(|encoding| encoding.ends_with(" in blocks"));
    let mut files: Vec<(String, Vec<u8>)> = vectors.filter(|(_, file)| is_in_blocks(file)).collect();
    assert!(files.len() >= 8, "the vectors are missing");
    for profile in [Profile::Fast, Profile::Balanced, Profile::Raw] {
        files.push((format!("{profile:?}, blocks"), written_blocks(profile)));
        files.push((format!("{profile:?}, lists in blocks"), written_lists(profile, LISTS_OF_BLOCKS, 64 << 10, 3)));
    }
    files.extend(PROFILES_OF_BINS.map(|profile| (format!("{profile:?}, bins"), written_bins(profile))));
    files.extend(PROFILES_OF_BINS.map(|profile| (format!("{profile:?}, sound"), written_sound(profile))));
    files
}

/// Writes a file whose columns have bins in several blocks, without a mapping or with any, and with
/// each option.
fn written_bins(profile: Profile) -> Vec<u8> {
    let file = write_bins(&options_of_bins(profile), SAMPLES_OF_BINS);
    assert_has_all_bins(&file, profile);
    file
}

/// Writes a file whose columns have filters in several blocks.
fn written_sound(profile: Profile) -> Vec<u8> {
    let file = write_sound(profile);
    assert_has_filters(&file, profile);
    file
}

/// Writes a file whose chunks have several blocks; some samples are longer than a block.
fn written_blocks(profile: Profile) -> Vec<u8> {
    let noise = |i: u32| i.wrapping_mul(0x9E37_79B9).rotate_left(i % 31) >> 7;
    let (samples, bf16) = (450_u32, DType::Bf16);
    let schema = Schema::new([
        ColumnSchema::tensor("weights", bf16, Shape::fixed(&[20])),
        ColumnSchema::tensor("ramp", DType::I32, Shape::fixed(&[9])),
        ColumnSchema::tensor("long", DType::I16, Shape::new([Extent::Varying, Extent::Fixed(7)])),
    ]);
    let weights: Vec<u8> = (0..20 * samples).flat_map(|i| (0x3F00 + noise(i) as u16 % 0x100).to_ne_bytes()).collect();
    let ramp: Vec<i32> = (0..9 * samples).map(|i| 1000 * i as i32 + noise(i) as i32 % 50).collect();
    let extents: Vec<u32> = (0..samples).map(|i| if i % 200 == 99 { 2500 } else { noise(i) % 3 }).collect();
    let long: Vec<i16> = (0..7 * extents.iter().sum::<u32>()).map(|i| (i % 500 + noise(i) % 9) as i16).collect();
    let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new().profile(profile)).unwrap();
    let samples = samples as usize;
    let batches = [
        ColumnBatch::from_bytes(bf16, samples, &[], &weights),
        ColumnBatch::fixed(samples, &ramp),
        ColumnBatch::ragged(samples, &extents, &long),
    ];
    writer.push_batch(&batches).unwrap();
    writer.into_bytes().unwrap()
}

/// Runs `test` for each file of [`files`], on all cores.
pub fn for_each_file(test: impl Fn(&str, &[u8]) + Sync) {
    for_each(&files(), test);
}

/// Runs `test` for each file, the largest first, on all cores.
pub fn for_each(files: &[(String, Vec<u8>)], test: impl Fn(&str, &[u8]) + Sync) {
    let mut files: Vec<_> = files.iter().collect();
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
