//! The cost of opening files of 10^3 and of 10^7 samples, which must not depend on their number.
//!
//! Compare `10^3` with `10^7` in each group. The files differ only in the number of samples:
//! columns and options are the same. `large chunks` have the default size. `small chunks` are more
//! than 10^5 for 10^7 samples, so the index is large; opening does not read it. Everything is warm,
//! in the page cache or in memory. The time includes closing the file.
//!
//! `open, view` also views one sample in the middle. This adds the work that opening leaves to the
//! first read: one index page, one chunk, and their checksums.

mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use support::{Random, criterion};
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnSchema, DType, Profile, Reader, Schema, Shape, Writer, WriterOptions};

const COLUMNS: [&str; 4] = ["label", "speaker", "language", "weight"];
const COUNTS: [(&str, u64); 2] = [("10^3", 1000), ("10^7", 10_000_000)];
const CHUNK_BYTES: [(&str, usize); 2] = [("large chunks", 64 << 10), ("small chunks", 256)];

/// Returns a file of four columns, with one byte per sample each.
fn file(sample_count: u64, chunk_bytes: usize) -> Vec<u8> {
    let columns = COLUMNS.map(|name| ColumnSchema::tensor(name, DType::U8, Shape::scalar()));
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(chunk_bytes);
    let mut writer = Writer::new(Stream(Vec::new()), Schema::new(columns), &options).unwrap();
    let mut random = Random::new();
    let mut left = sample_count as usize;
    while left > 0 {
        let values: Vec<u8> = (0..left.min(100_000)).map(|_| random.next() as u8).collect();
        writer.push_batch(&[ColumnBatch::fixed(values.len(), &values); 4]).unwrap();
        left -= values.len();
    }
    writer.into_bytes().unwrap()
}

fn map(path: &Path) -> Reader {
    // SAFETY: the file is in a temporary folder of this process, which does not change it once it
    // is written.
    unsafe { Reader::map(path) }.unwrap()
}

fn open(c: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    for (chunks, chunk_bytes) in CHUNK_BYTES {
        let files = COUNTS.map(|(name, count)| (name, count, Arc::<[u8]>::from(file(count, chunk_bytes))));
        let paths = files.each_ref().map(|(name, ..)| directory.path().join(name));
        for ((_, _, bytes), path) in files.iter().zip(&paths) {
            std::fs::write(path, bytes).unwrap();
        }
        let mut group = c.benchmark_group(format!("open, {chunks}"));
        for (name, _, bytes) in &files {
            group.bench_function(format!("in memory/{name}"), |b| {
                b.iter(|| Reader::from_bytes(black_box(bytes.clone())).unwrap());
            });
        }
        for ((name, ..), path) in files.iter().zip(&paths) {
            group.bench_function(format!("mapped/{name}"), |b| b.iter(|| map(black_box(path))));
        }
        for ((name, ..), path) in files.iter().zip(&paths) {
            group.bench_function(format!("positional/{name}"), |b| b.iter(|| Reader::open(black_box(path)).unwrap()));
        }
        for ((name, count, _), path) in files.iter().zip(&paths) {
            group.bench_function(format!("mapped, open, view/{name}"), |b| {
                b.iter(|| {
                    let column = map(path).column("label").unwrap();
                    column.view(black_box(count / 2)).unwrap().unwrap().bytes()[0]
                });
            });
        }
    }
}

criterion_group! { name = benches; config = criterion(); targets = open }
criterion_main!(benches);
