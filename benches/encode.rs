//! The cost of writing 2 MiB of bf16 samples: one call, one encoding thread, and a sink that drops
//! the bytes.
//!
//! Throughput counts decoded bytes; `memcpy` copies as many. By default, a writer decodes each
//! chunk and compares it with the input. The rows `.., unchecked` skip this.

mod support;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use half::bf16;
use std::hint::black_box;
use support::{MEL_BANDS, criterion, embeddings, mel};
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnSchema, DType, Profile, Schema, Shape, Writer, WriterOptions};

const BYTES: usize = 2 << 20;

fn write(shape: &[u32], values: &[bf16], options: &WriterOptions) -> u64 {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::Bf16, Shape::fixed(shape))]);
    let mut writer = Writer::new(Stream(std::io::sink()), schema, options).unwrap();
    let per_sample: u32 = shape.iter().product();
    let batch = ColumnBatch::fixed(values.len() / per_sample as usize, values);
    writer.push_batch(&[batch]).unwrap();
    writer.finish().unwrap().file_bytes
}

fn encode(c: &mut Criterion) {
    let elements = BYTES / 2;
    let mel_samples = elements / (64 * MEL_BANDS);
    let data: [(&str, &[u32], Vec<bf16>); 2] = [
        ("embeddings", &[384], embeddings(elements / 384 * 384)),
        ("mel", &[64, MEL_BANDS as u32], mel(mel_samples * 64 * MEL_BANDS)),
    ];
    let mut group = c.benchmark_group("encode");
    group.throughput(Throughput::Bytes(BYTES as u64));
    let (from, mut to) = (vec![1_u8; BYTES], vec![0_u8; BYTES]);
    group.bench_function("memcpy", |b| b.iter(|| black_box(&mut to).copy_from_slice(black_box(&from))));
    for (name, shape, values) in &data {
        group.throughput(Throughput::Bytes(2 * values.len() as u64));
        for profile in Profile::ALL {
            let options = WriterOptions::new().profile(profile);
            group.bench_function(format!("{name}, {}", profile.name()), |b| {
                b.iter(|| write(shape, black_box(values), &options));
            });
        }
        let options = WriterOptions::new().profile(Profile::Fast).check_chunks(false);
        group.bench_function(format!("{name}, fast, unchecked"), |b| {
            b.iter(|| write(shape, black_box(values), &options));
        });
    }
}

criterion_group! { name = benches; config = criterion(); targets = encode }
criterion_main!(benches);
