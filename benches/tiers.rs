//! The kernels of tiers and extra bits, each one that this machine can run.
//!
//! A chunk of bf16 of `64 KiB`: 32768 elements, each of which has one symbol. Symbols are what `exponent-tiers` codes, the top bytes of
//! embeddings; elements are small residuals, with 4 bits on average. The row to compare with is `memcpy` of the same group:
//! it writes as many bytes. Throughput counts the symbols for `merge` and `split`, the bytes of elements for the others.

mod support;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use support::{Random, criterion};
use tensilo::kernel::Width;
use tensilo::kernel::tiers::{available, code_bytes};

const COUNT: usize = 32 << 10;

/// Bits of a code of the first tier.
const WIDTH: usize = 3;

/// The symbol of each code, and the code of each symbol, by frequency.
fn ranks(symbols: &[u8]) -> ([u8; 16], [u8; 256]) {
    let mut frequent: Vec<u8> = (0..=255).collect();
    frequent.sort_by_key(|symbol| std::cmp::Reverse(symbols.iter().filter(|other| *other == symbol).count()));
    let (mut table, mut code_of) = ([0; 16], [0xFF; 256]);
    for (code, symbol) in frequent.into_iter().take((1 << WIDTH) - 1).enumerate() {
        table[code] = symbol;
        code_of[usize::from(symbol)] = code as u8;
    }
    (table, code_of)
}

fn tiers(c: &mut Criterion) {
    let symbols: Vec<u8> = support::embeddings(COUNT).iter().map(|x| (x.to_bits().rotate_left(1) >> 8) as u8).collect();
    let (table, code_of) = ranks(&symbols);
    let mut codes = vec![0; code_bytes(WIDTH, COUNT)];
    let mut escaped = vec![0; COUNT];
    let mut out = vec![0; COUNT];
    let mut group = c.benchmark_group("tiers 64 KiB/symbols");
    group.throughput(Throughput::Bytes(COUNT as u64));
    group.bench_function("memcpy", |b| b.iter(|| black_box(&mut out).copy_from_slice(black_box(&symbols))));
    for tiers in available() {
        let name = tiers.name();
        tiers.split(WIDTH, &code_of, &symbols, &mut codes, &mut escaped);
        group.bench_function(format!("{name}/merge"), |b| {
            b.iter(|| tiers.merge(WIDTH, black_box(&codes), &table, black_box(&escaped), black_box(&mut out)));
        });
        group.bench_function(format!("{name}/split"), |b| {
            b.iter(|| {
                tiers.split(WIDTH, &code_of, black_box(&symbols), black_box(&mut codes), black_box(&mut escaped))
            });
        });
    }
}

/// Zigzag-coded residuals, with longer tails than normal ones, as those of audio have.
fn residuals() -> Vec<u8> {
    let mut random = Random::new();
    let mut next = || {
        let residual = (random.normal() * random.normal() * 16.0).round() as i16;
        ((residual << 1) ^ (residual >> 15)) as u16
    };
    (0..COUNT).flat_map(|_| next().to_le_bytes()).collect()
}

fn extra_bits(c: &mut Criterion) {
    let elements = residuals();
    let mut lengths = vec![0; COUNT];
    let mut words = vec![0_u64; COUNT / 4 + 1];
    let mut out = vec![0; elements.len()];
    let mut group = c.benchmark_group("tiers 64 KiB/elements");
    group.throughput(Throughput::Bytes(elements.len() as u64));
    group.bench_function("memcpy", |b| b.iter(|| black_box(&mut out).copy_from_slice(black_box(&elements))));
    for tiers in available() {
        let name = tiers.name();
        tiers.lengths(Width::W2, &elements, &mut lengths);
        words.fill(0);
        tiers.extract(Width::W2, &lengths, &elements, &mut words, 0);
        let bits: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        group.bench_function(format!("{name}/deposit"), |b| {
            b.iter(|| tiers.deposit(Width::W2, black_box(&lengths), black_box(&bits), 0, black_box(&mut out)));
        });
        group.bench_function(format!("{name}/lengths"), |b| {
            b.iter(|| tiers.lengths(Width::W2, black_box(&elements), black_box(&mut lengths)));
        });
        group.bench_function(format!("{name}/extract"), |b| {
            b.iter(|| {
                words[0] = 0; // of the first word, the bits before the first are kept
                tiers.extract(Width::W2, black_box(&lengths), black_box(&elements), black_box(&mut words), 0)
            });
        });
    }
}

criterion_group! { name = benches; config = criterion(); targets = tiers, extra_bits }
criterion_main!(benches);
