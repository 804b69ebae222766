//! The speed of verification of a warm file; `memcpy` copies the same bytes.
//!
//! One file has 64 MiB of raw mel-like values in chunks of 64 KiB, the other the same values with
//! the default profile. One thread, except in the rows `all threads`.
//!
//! * `in memory`, `mapped`, `by position`: compares every byte with its checksum, without decoding,
//!   as `tensilo verify` does.
//! * `decode`: also decodes every chunk and checks its values, as `--deep` does.

mod support;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::fs;
use std::hint::black_box;
use std::thread::available_parallelism;
use support::{MEL_BANDS, criterion, file, mel};
use tensilo::Profile;
use tensilo::source::{InMemory, MappedFile, PositionedFile, Source};
use tensilo::verify::VerifyOptions;

fn verify(source: &impl Source, decode: bool, threads: usize) {
    let report = tensilo::verify::verify(source, VerifyOptions::new().deep(decode).threads(threads)).unwrap();
    assert!(report.findings.is_empty());
}

fn verification(c: &mut Criterion) {
    let values = mel((32 << 20) / (162 * MEL_BANDS) * 162 * MEL_BANDS);
    let folder = tempfile::tempdir().unwrap();
    let threads = available_parallelism().map_or(1, usize::from);
    for profile in [Profile::Raw, Profile::Balanced] {
        let bytes = file(&[162, MEL_BANDS as u32], &values, profile);
        let path = folder.path().join("x.tsl");
        fs::write(&path, &bytes).unwrap();
        // SAFETY: the file is in a temporary folder of this process, and is not written while the
        // map exists.
        let mapped = unsafe { MappedFile::open(&path) }.unwrap();
        let positioned = PositionedFile::open(&path).unwrap();
        let mut copy = vec![0; bytes.len()];
        let mut group = c.benchmark_group(format!("verify {}", profile.name()));
        group.sample_size(10).throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function("memcpy", |b| b.iter(|| black_box(&mut copy).copy_from_slice(black_box(&bytes))));
        group.bench_function("in memory", |b| b.iter(|| verify(&InMemory(&bytes), false, 1)));
        group.bench_function("mapped", |b| b.iter(|| verify(&mapped, false, 1)));
        group.bench_function("by position", |b| b.iter(|| verify(&positioned, false, 1)));
        group.bench_function("by position, all threads", |b| b.iter(|| verify(&positioned, false, threads)));
        group.bench_function("in memory, decode", |b| b.iter(|| verify(&InMemory(&bytes), true, 1)));
        group.bench_function("by position, decode", |b| b.iter(|| verify(&positioned, true, 1)));
        group.bench_function("by position, decode, all threads", |b| b.iter(|| verify(&positioned, true, threads)));
    }
}

criterion_group! { name = benches; config = criterion(); targets = verification }
criterion_main!(benches);
