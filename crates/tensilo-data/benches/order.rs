//! The cost of finding the sample at a position, compared with a list of all samples in memory.
//!
//! Positions are read in order, as a job reads them. A list of a billion samples takes 8 GB, and
//! must be shuffled again in each epoch.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use tensilo_data::{Component, EpochOrder, Mixture, Order, Split, WindowSizes};

const POSITIONS: u64 = 10_000;
const SAMPLES: u64 = 1_000_000_000;

fn orders(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sample at a position");
    group.throughput(Throughput::Elements(POSITIONS));
    let windowed = WindowSizes::for_dataset(SAMPLES, 4096 * SAMPLES, WindowSizes::FILE_RUN_BYTES);
    let modes = [
        ("shuffled", Order::Shuffled, SAMPLES),
        ("shuffled, few", Order::Shuffled, 4000),
        ("windowed", Order::Windowed(windowed), SAMPLES),
    ];
    for (name, mode, samples) in modes {
        let order = EpochOrder::new(mode, samples, 1, 2);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                (0..POSITIONS).filter_map(|p| order.sample_at(black_box(p) % samples)).fold(0, u64::wrapping_add)
            });
        });
        let mut batch = Vec::new();
        group.bench_function(format!("{name}, in batches of 256"), |bencher| {
            bencher.iter(|| {
                (0..POSITIONS).step_by(256).fold(0, |sum: u64, first| {
                    batch.clear();
                    batch.extend((first..(first + 256).min(POSITIONS)).map(|p| black_box(p) % samples));
                    order.replace_with_samples(&mut batch).expect("positions of the order");
                    batch.iter().copied().fold(sum, u64::wrapping_add)
                })
            });
        });
        group.bench_function(format!("{name}, back"), |bencher| {
            bencher.iter(|| {
                (0..POSITIONS).filter_map(|p| order.position_of(black_box(p) % samples)).fold(0, u64::wrapping_add)
            });
        });
    }
    let order = EpochOrder::new(Order::Shuffled, 10 * POSITIONS, 1, 2);
    let list: Vec<u64> = (0..10 * POSITIONS).filter_map(|p| order.sample_at(p)).collect();
    group.bench_function("a list in memory", |bencher| {
        bencher.iter(|| list.iter().take(POSITIONS as usize).map(black_box).copied().fold(0, u64::wrapping_add));
    });
    group.finish();
}

fn views(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sample of a view");
    group.throughput(Throughput::Elements(POSITIONS));
    let split = Split::new(10_000_000, 1, 0..Split::END / 20 * 19).expect("a split");
    group.bench_function("split of 10^7", |bencher| {
        bencher.iter(|| (0..POSITIONS).filter_map(|v| split.sample(black_box(v) * 900)).fold(0, u64::wrapping_add));
    });
    let component = |weight| Component { dataset_id: [0; 16], view_id: 0, sample_count: SAMPLES, weight };
    let mixture = Mixture::new(&[component(3), component(1)], SAMPLES, 1, 256).expect("a mixture");
    group.bench_function("mixture", |bencher| {
        bencher.iter(|| {
            (0..POSITIONS).filter_map(|v| mixture.sample(black_box(v), 3)).fold(0, |sum, (_, sample)| sum ^ sample)
        });
    });
    group.finish();
}

criterion_group!(benches, orders, views);
criterion_main!(benches);
