//! The bit-shuffle kernels, each one that this machine can run, in both directions.
//!
//! `64 KiB` fits in the second-level cache together with its result, and is what the reader works on: a chunk. `64 MiB`
//! (width 2 only) streams from and to whatever is behind it; where a shared cache is larger than 128 MiB, that is not
//! memory. The row to compare with is `memcpy` of the same group: it moves the same bytes and does nothing to them.
//! Throughput counts each byte once.

mod support;

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime};
use std::hint::black_box;
use support::{Random, criterion};
use tensilo::kernel::{self, Width};

const WIDTHS: [Width; 4] = [Width::W1, Width::W2, Width::W4, Width::W8];

fn source(bytes: usize) -> Vec<u8> {
    let mut random = Random::new();
    (0..bytes / 8).flat_map(|_| random.next().to_le_bytes()).collect()
}

fn kernels(group: &mut BenchmarkGroup<'_, WallTime>, bytes: usize, widths: &[Width]) {
    let from = source(bytes);
    let mut to = vec![0; bytes];
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("memcpy", |b| b.iter(|| black_box(&mut to).copy_from_slice(black_box(&from))));
    for kernel in kernel::available() {
        for &width in widths {
            let row = |direction: &str| format!("{}/width {}/{direction}", kernel.name(), width.bytes());
            group.bench_function(row("shuffle"), |b| {
                b.iter(|| kernel.shuffle(width, black_box(&from), black_box(&mut to)));
            });
            group.bench_function(row("unshuffle"), |b| {
                b.iter(|| kernel.unshuffle(width, black_box(&from), black_box(&mut to)));
            });
        }
    }
}

fn cached(c: &mut Criterion) {
    let mut group = c.benchmark_group("kernels 64 KiB");
    kernels(&mut group, 64 << 10, &WIDTHS);
}

fn streamed(c: &mut Criterion) {
    let mut group = c.benchmark_group("kernels 64 MiB");
    group.sample_size(10);
    kernels(&mut group, 64 << 20, &[Width::W2]);
}

criterion_group! { name = benches; config = criterion(); targets = cached, streamed }
criterion_main!(benches);
