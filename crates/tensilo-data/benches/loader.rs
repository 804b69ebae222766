//! The cost of a loader for the training loop: taking a batch that is ready, and resuming from a
//! state.
//!
//! How fast loaders deliver is measured next to other stores in `benches/compare`, and on your own
//! data by `tensilo bench DIR --loader`.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use half::bf16;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::{TempDir, tempdir};
use tensilo::{ColumnSchema, DType, Extent, Profile, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_data::{Dataset, Loader, LoaderOptions, Order, State, View};

const BATCH: u32 = 256;
const ELEMENTS: u32 = 384;
const SAMPLES: u32 = 20_000;
/// How often the file of a large dataset is listed.
const FILES: u32 = 10_000;
/// Longer than any batch takes.
const BATCH_TIMEOUT: Duration = Duration::from_secs(60);

/// Writes embeddings whose exponents are distributed like normal values.
fn write(path: &Path) {
    let schema = ColumnSchema::tensor("embedding", DType::Bf16, Shape::new([Extent::Fixed(ELEMENTS)]));
    let options = WriterOptions::new().profile(Profile::Fast);
    let mut writer = Writer::create(path, Schema::new([schema]), &options).expect("disk space");
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        state >> 16
    };
    for _ in 0..SAMPLES {
        // the sum of four uniform numbers
        let values: Vec<bf16> =
            (0..ELEMENTS).map(|_| (0..4).map(|_| next() as f32 - 32_768.0).sum::<f32>()).map(bf16::from_f32).collect();
        writer.push(&[Value::tensor(&values)]).expect("a sample");
    }
    writer.finish().expect("disk space");
}

/// Creates a dataset that lists the same file `files` times.
fn dataset(files: u32) -> (TempDir, Dataset) {
    let folder = tempdir().expect("a folder");
    let mut changes = Dataset::create(folder.path()).expect("an empty folder");
    let path = changes.next_path().expect("a path");
    write(&path);
    (0..files).for_each(|_| changes.add_file(&path).expect("a file of the folder"));
    let dataset = changes.publish("create").expect("no other writer");
    (folder, dataset)
}

fn loader(dataset: &Dataset) -> Loader {
    let options = LoaderOptions::new(BATCH).order(Order::Shuffled).seed(1).decode_threads(1);
    options.loader(&View::all(dataset)).expect("options that fit")
}

fn consumer(criterion: &mut Criterion) {
    let (_folder, dataset) = dataset(1);
    let loader = loader(&dataset);
    let mut group = criterion.benchmark_group("a batch of 256 embeddings");
    group.bench_function("taken when ready", |bencher| {
        bencher.iter_custom(|iterations| {
            let mut batches = loader.epochs(0..u64::MAX);
            let mut spent = Duration::ZERO;
            for _ in 0..iterations {
                assert!(batches.wait(BATCH_TIMEOUT), "a batch takes too long");
                let begun = Instant::now();
                let batch = batches.next().expect("epochs without end").expect("an intact file");
                black_box(batch.column("embedding").expect("a column").bytes().as_ptr());
                drop(batch);
                spent += begun.elapsed();
            }
            spent
        });
    });
    let batch = loader.epoch(0).next().expect("a batch").expect("an intact file");
    let bytes = batch.column("embedding").expect("a column").bytes();
    let mut copy = vec![0; bytes.len()];
    group.bench_function("memcpy", |bencher| bencher.iter(|| copy.copy_from_slice(black_box(bytes))));
    group.finish();
}

fn going_on(criterion: &mut Criterion) {
    let (_folder, dataset) = dataset(FILES);
    let loader = loader(&dataset);
    let mut group = criterion.benchmark_group("resuming from a state of 2 x 10^8 samples");
    let step = loader.batches_per_epoch();
    for (name, at) in [("at the start", 0), ("in the middle", step / 2), ("near the end", step - 1)] {
        let mut state: State = loader.epoch(0).state();
        state.position = at * u64::from(BATCH);
        group.bench_with_input(BenchmarkId::new("resume", name), &state, |bencher, state| {
            bencher.iter_custom(|iterations| {
                let mut spent = Duration::ZERO;
                for _ in 0..iterations {
                    let begun = Instant::now();
                    let batches = loader.resume(state).expect("a state of this job");
                    spent += begun.elapsed();
                    drop(black_box(batches));
                }
                spent
            });
        });
    }
    group.finish();
}

criterion_group!(benches, consumer, going_on);
criterion_main!(benches);
