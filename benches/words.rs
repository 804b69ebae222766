//! The word kernels, each one that this machine can run, on one chunk of 64 KiB.
//!
//! The row to compare with is `memcpy`: it moves the same bytes and does nothing to them. Throughput counts the bytes of the
//! elements once. `undo` works in place, on what it made the last time: it takes the same time on any data.

mod support;

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime};
use std::hint::black_box;
use support::{Random, criterion};
use tensilo::kernel::Width;
use tensilo::kernel::words::{self, Prediction, Words};

const CHUNK: usize = 64 << 10;

const WIDTHS: [Width; 4] = [Width::W1, Width::W2, Width::W4, Width::W8];

const PREDICTIONS: [(&str, Prediction); 5] = [
    ("lorenzo 128", Prediction { lorenzo: true, float: true, restart: 101 * 128, stride: 128 }),
    ("lorenzo 360", Prediction { lorenzo: true, float: true, restart: 101 * 360, stride: 360 }),
    ("lorenzo 9", Prediction { lorenzo: true, float: true, restart: 101 * 9, stride: 9 }),
    ("delta 128", Prediction { lorenzo: false, float: true, restart: 101 * 128, stride: 128 }),
    ("delta 1", Prediction { lorenzo: false, float: true, restart: 101, stride: 1 }),
];

fn bytes(group: &mut BenchmarkGroup<'_, WallTime>, words: &Words, width: Width, from: &[u8], to: &mut [u8]) {
    let row = |name: &str| format!("{}/width {}/{name}", words.name(), width.bytes());
    let planes: Vec<&[u8]> = from.chunks_exact(CHUNK / width.bytes()).collect();
    if let [low @ .., top] = &planes[..] {
        group.bench_function(row("join"), |b| b.iter(|| words.join(width, true, low, top, black_box(&mut *to))));
    }
    let mut planes: Vec<&mut [u8]> = to.chunks_exact_mut(CHUNK / width.bytes()).collect();
    if let [low @ .., top] = &mut planes[..] {
        group.bench_function(row("split"), |b| b.iter(|| words.split(width, true, black_box(from), low, top)));
    }
    group.bench_function(row("rotate"), |b| b.iter(|| words.rotate_right(width, black_box(&mut *to))));
}

fn predictions(group: &mut BenchmarkGroup<'_, WallTime>, words: &Words, width: Width, from: &[u8], to: &mut [u8]) {
    for (name, prediction) in &PREDICTIONS {
        let row = |direction: &str| format!("{}/width {}/{name}/{direction}", words.name(), width.bytes());
        group.bench_function(row("residuals"), |b| {
            b.iter(|| words.residuals(prediction, width, black_box(from), black_box(&mut *to)));
        });
        group.bench_function(row("undo"), |b| {
            b.iter(|| words.undo(prediction, width, black_box(&mut *to)));
        });
    }
}

fn cached(c: &mut Criterion) {
    let mut random = Random::new();
    let from: Vec<u8> = (0..CHUNK / 8).flat_map(|_| random.next().to_le_bytes()).collect();
    let mut to = vec![0; CHUNK];
    let mut group = c.benchmark_group("words 64 KiB");
    group.throughput(Throughput::Bytes(CHUNK as u64));
    group.bench_function("memcpy", |b| b.iter(|| black_box(&mut to).copy_from_slice(black_box(&from))));
    for words in words::available() {
        for width in WIDTHS {
            bytes(&mut group, words, width, &from, &mut to);
            predictions(&mut group, words, width, &from, &mut to);
        }
    }
}

criterion_group! { name = benches; config = criterion(); targets = cached }
criterion_main!(benches);
