//! The cost of decoding one chunk of 64 KiB, and of verifying it.
//!
//! `decode`: a cursor alternates between two chunks, so that each read opens a chunk (finds it, and
//! compares it with the index) and decodes all of it. Both chunks were verified before. They have
//! no blocks; `read` measures chunks with blocks. `raw` decodes nothing: it shows the cost of
//! opening, which does not depend on the size, and has no throughput. Otherwise throughput counts
//! decoded bytes; `memcpy` copies as many.
//!
//! `check`: `crc32fast` is only the function that the reader calls. `view, always` and `view,
//! never` view a raw sample of 64 KiB with and without the checksum. By default, a reader verifies
//! each chunk once.

mod support;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use half::bf16;
use std::hint::black_box;
use support::{MEL_BANDS, criterion, embeddings, file, file_with, mel, write};
use tensilo::{ColumnBatch, ColumnSchema, OpenOptions, Profile, Reader, Verification, WriterOptions};

const CHUNK: usize = 64 << 10;
/// Two chunks of 2-byte elements.
const ELEMENTS: usize = CHUNK;

fn memcpy(c: &mut Criterion, group: &str) {
    let mut group = c.benchmark_group(group);
    let (from, mut to) = (vec![1_u8; CHUNK], vec![0_u8; CHUNK]);
    group.throughput(Throughput::Bytes(CHUNK as u64));
    group.bench_function("memcpy", |b| b.iter(|| black_box(&mut to).copy_from_slice(black_box(&from))));
}

/// Reads alternately from the first two chunks of a file. The name of the row ends with the
/// encoding that the writer chose for them.
fn alternate(c: &mut Criterion, row: &str, bytes: &[u8]) {
    let reader = Reader::from_bytes(bytes.to_vec()).unwrap();
    let column = reader.column("x").unwrap();
    let chunks = [0, 1].map(|chunk| column.chunk(chunk).unwrap().expect("the file has two chunks"));
    let encoding = chunks[0].encoding.clone();
    assert!(chunks[1].encoding == encoding, "{chunks:?}");
    let mut turns = chunks.map(|chunk| chunk.samples.start).into_iter().cycle();
    let mut cursor = column.cursor();
    let mut group = c.benchmark_group("decode");
    if encoding != "raw" {
        let facts = column.facts();
        // all chunks have about the same length
        group.throughput(Throughput::Bytes(facts.raw_bytes / facts.chunk_count));
    }
    group.bench_function(format!("{row}: {encoding}"), |b| {
        b.iter(|| {
            black_box(cursor.read(turns.next().unwrap()).unwrap());
        });
    });
}

/// Returns words in random order, to be cut into samples of 128 bytes.
fn text() -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "the ", "tensor ", "of ", "a ", "sample ", "and ", "column ", "is ", "stored ", "in ", "chunk ", "read ",
        "by ", "number ", "file ", "index ",
    ];
    let mut random = support::Random::new();
    let words = || WORDS[random.below(16) as usize].as_bytes();
    std::iter::repeat_with(words).flatten().copied().take(4 * CHUNK).collect()
}

fn decode(c: &mut Criterion) {
    memcpy(c, "decode");
    let one = vec![bf16::ONE; ELEMENTS];
    alternate(c, "equal, bitshuffle-zstd", &file(&[1024], &one, Profile::BitshuffleZstd));
    let raw = file_with(&[1024], &embeddings(ELEMENTS), &without_blocks(Profile::Raw));
    alternate(c, "embeddings, raw", &raw);
    for profile in [Profile::BitshuffleZstd, Profile::Fast, Profile::Balanced, Profile::Small] {
        let options = without_blocks(profile);
        // samples as large as a chunk: a read decodes only its sample
        let embeddings = file_with(&[CHUNK as u32 / 2], &embeddings(8 * ELEMENTS), &options);
        alternate(c, &format!("embeddings, {}", profile.name()), &embeddings);
        let mel = file_with(&[400, MEL_BANDS as u32], &mel(16 * 400 * MEL_BANDS), &options);
        alternate(c, &format!("mel, {}", profile.name()), &mel);
    }
    let text = text();
    let lengths = vec![128_u32; text.len() / 128];
    let batch = ColumnBatch::ragged(lengths.len(), &lengths, &text);
    let bytes = write(ColumnSchema::utf8("x"), batch, &without_blocks(Profile::BitshuffleZstd));
    alternate(c, "text, bitshuffle-zstd", &bytes);
}

/// Returns options for chunks without blocks: a read would decode only the blocks that it needs.
fn without_blocks(profile: Profile) -> WriterOptions {
    WriterOptions::new().profile(profile).block_bytes(None)
}

fn check(c: &mut Criterion) {
    memcpy(c, "check");
    let bytes = file(&[CHUNK as u32 / 2], &embeddings(ELEMENTS), Profile::Raw);
    let mut group = c.benchmark_group("check");
    group.throughput(Throughput::Bytes(CHUNK as u64));
    group.bench_function("crc32fast", |b| b.iter(|| crc32fast::hash(black_box(&bytes[..CHUNK]))));
    for (row, verification) in [("view, always", Verification::Always), ("view, never", Verification::Never)] {
        let options = OpenOptions::new().verification(verification);
        let reader = options.open_source(tensilo::source::InMemory(bytes.clone())).unwrap();
        let column = reader.column("x").unwrap();
        let mut turns = [0, 1].into_iter().cycle();
        if verification == Verification::Never {
            group.throughput(Throughput::Elements(1)); // does not read the bytes
        }
        group.bench_function(row, |b| b.iter(|| column.view(turns.next().unwrap()).unwrap().unwrap().bytes()[0]));
    }
}

criterion_group! { name = benches; config = criterion(); targets = decode, check }
criterion_main!(benches);
