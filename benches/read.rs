//! Warm reads by index: every sample was read, and so verified, before, and the file is in memory.
//!
//! In each group, `memcpy` copies the same samples in the same random order from the bytes of the
//! file to the same destination, without tensilo. The difference to another row is the cost of
//! tensilo. Times are for one sample; in the groups `gather` and `range`, for one call. Indices are
//! uniform, from a generator that takes about 1 ns in every row.
//!
//! * `2 KiB`: a raw sample. `view` and `cursor.read` do not touch its bytes; `view, copy` does. The
//!   1 MiB file fits in the second-level cache. The 64 MiB file is in the shared cache or in
//!   memory, depending on the machine.
//! * `embeddings` (768 B) and `mel` (25,920 B): raw, and encoded in chunks of 64 KiB (85 and 2
//!   samples), or 512 KiB with the profile `small`. A random sample in tiers is decoded
//!   individually; with other encodings, its block or chunk is. Sequential reads share what is
//!   decoded.
//! * `gather`: 256, 4 or 16 random samples in one call, copied to a slice in the order of the
//!   request; also ragged samples of 0 to 2 KiB. With `--features rayon`, also on all threads of
//!   the machine.
//! * `chats`: lists of texts. `view_list` visits each text, `read_list` only finds the chat.
//!   `gather` fills the values, and the offsets of chats and of texts.
//! * `range`: 256 consecutive samples from a random start, into a reused buffer; or 1,000 samples
//!   of a file that is read by position, from the page cache.

mod support;

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime};
use half::bf16;
use std::hint::black_box;
use support::{MEL_BANDS, Random, criterion, embeddings, file, mel, write};
use tensilo::nested::ListBatch;
use tensilo::{Column, ColumnBatch, ColumnBuffer, ColumnSchema, DType, Profile, Reader, Shape, WriterOptions};

type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// Returns the column of a file after reading all samples once.
fn warm(reader: &Reader) -> Column {
    let column = reader.column("x").unwrap();
    let mut cursor = column.cursor();
    for i in 0..column.sample_count() {
        black_box(cursor.read(i).unwrap().bytes().first());
    }
    column
}

/// Returns the samples of a raw file, as slices of the file.
fn slices(column: &Column) -> Vec<&[bf16]> {
    (0..column.sample_count()).map(|i| column.view(i).unwrap().unwrap().as_slice().unwrap()).collect()
}

/// Measures `read` with random indices.
fn random<T>(group: &mut Group<'_>, row: &str, sample_count: u64, mut read: impl FnMut(u64) -> T) {
    let mut random = Random::new();
    group.bench_function(row, |b| b.iter(|| read(random.below(sample_count))));
}

fn view(c: &mut Criterion) {
    for (name, samples) in [("2 KiB of 1 MiB", 512), ("2 KiB of 64 MiB", 32_768)] {
        let bytes = file(&[1024], &embeddings(1024 * samples), Profile::Raw);
        let reader = Reader::from_bytes(bytes).unwrap();
        let column = warm(&reader);
        let (count, slices) = (column.sample_count(), slices(&column));
        let mut out = vec![bf16::ZERO; 1024];
        let mut group = c.benchmark_group(name);
        random(&mut group, "view", count, |i| column.view(i).unwrap());
        let mut cursor = column.cursor();
        random(&mut group, "cursor.read", count, |i| {
            black_box(cursor.read(i).unwrap());
        });
        group.throughput(Throughput::Bytes(2048));
        random(&mut group, "memcpy", count, |i| black_box(&mut out).copy_from_slice(slices[i as usize]));
        random(&mut group, "view, copy", count, |i| {
            black_box(&mut out).copy_from_slice(column.view(i).unwrap().unwrap().as_slice().unwrap());
        });
        let mut cursor = column.cursor();
        random(&mut group, "read_slice", count, |i| cursor.read_slice(i, black_box(&mut out)).unwrap());
    }
}

/// Measures random and sequential reads of one column, with every profile.
fn samples(c: &mut Criterion, name: &str, shape: &[u32], values: &[bf16]) {
    let elements = shape.iter().product::<u32>() as usize;
    let mut out = vec![bf16::ZERO; elements];
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Bytes(2 * elements as u64));
    for profile in Profile::ALL {
        let bytes = file(shape, values, profile);
        let reader = Reader::from_bytes(bytes).unwrap();
        let column = warm(&reader);
        let count = column.sample_count();
        if profile == Profile::Raw {
            let slices = slices(&column);
            random(&mut group, "memcpy", count, |i| black_box(&mut out).copy_from_slice(slices[i as usize]));
        }
        let mut cursor = column.cursor();
        let row = |order: &str| format!("{}/{order}", profile.name());
        random(&mut group, &row("read_slice, random"), count, |i| cursor.read_slice(i, black_box(&mut out)).unwrap());
        let mut next = (0..count).cycle();
        group.bench_function(row("read_slice, sequential"), |b| {
            b.iter(|| cursor.read_slice(next.next().unwrap(), black_box(&mut out)).unwrap());
        });
    }
}

/// The number of embeddings: nearly 16 MiB.
const EMBEDDINGS: usize = 21_800;

fn random_and_sequential(c: &mut Criterion) {
    samples(c, "embeddings 768 B", &[384], &embeddings(384 * EMBEDDINGS));
    samples(c, "mel 25,920 B", &[162, MEL_BANDS as u32], &mel(300 * 162 * MEL_BANDS));
}

const BATCH: usize = 256;

/// Draws the indices of a request.
fn request(random: &mut Random, count: u64) -> [u64; BATCH] {
    std::array::from_fn(|_| random.below(count))
}

fn gather(c: &mut Criterion) {
    let mut group = c.benchmark_group("gather 256 x 768 B");
    let values = embeddings(384 * EMBEDDINGS);
    let mut out = vec![bf16::ZERO; 384 * BATCH];
    group.throughput(Throughput::Bytes(2 * out.len() as u64));
    for profile in Profile::ALL {
        let bytes = file(&[384], &values, profile);
        let reader = Reader::from_bytes(bytes).unwrap();
        let column = warm(&reader);
        let count = column.sample_count();
        if profile == Profile::Raw {
            let (slices, mut random) = (slices(&column), Random::new());
            group.bench_function("memcpy", |b| {
                b.iter(|| {
                    let slots = black_box(&mut out).chunks_exact_mut(384);
                    slots.zip(request(&mut random, count)).for_each(|(to, i)| to.copy_from_slice(slices[i as usize]));
                });
            });
        }
        let (mut cursor, mut random) = (column.cursor(), Random::new());
        group.bench_function(format!("{}/gather_slice", profile.name()), |b| {
            b.iter(|| cursor.gather_slice(&request(&mut random, count), black_box(&mut out)).unwrap());
        });
        #[cfg(feature = "rayon")]
        {
            let (mut cursor, mut random) = (column.parallel_cursor(), Random::new());
            group.bench_function(format!("{}/gather_slice, parallel", profile.name()), |b| {
                b.iter(|| cursor.gather_slice(&request(&mut random, count), black_box(&mut out)).unwrap());
            });
        }
    }
}

/// Measures few samples per call, where the overhead of a request shows.
fn few(c: &mut Criterion) {
    let values = embeddings(384 * EMBEDDINGS);
    for profile in [Profile::Raw, Profile::Fast, Profile::Balanced] {
        let bytes = file(&[384], &values, profile);
        let reader = Reader::from_bytes(bytes).unwrap();
        let column = warm(&reader);
        let count = column.sample_count();
        for samples in [4, 16] {
            let mut out = vec![bf16::ZERO; 384 * samples];
            let mut group = c.benchmark_group(format!("gather {samples} x 768 B"));
            group.throughput(Throughput::Bytes(2 * out.len() as u64));
            let (mut cursor, mut random) = (column.cursor(), Random::new());
            group.bench_function(format!("{}/gather_slice", profile.name()), |b| {
                b.iter(|| cursor.gather_slice(&request(&mut random, count)[..samples], black_box(&mut out)).unwrap());
            });
        }
    }
}

fn ragged(c: &mut Criterion) {
    let mut random = Random::new();
    let lengths: Vec<u32> = (0..16_384).map(|_| random.below(1025) as u32).collect();
    let values = embeddings(lengths.iter().sum::<u32>() as usize);
    let schema = ColumnSchema::tensor("x", DType::Bf16, Shape::ragged());
    let bytes = write(
        schema,
        ColumnBatch::ragged(lengths.len(), &lengths, &values),
        &WriterOptions::new().profile(Profile::Raw),
    );
    let reader = Reader::from_bytes(bytes).unwrap();
    let column = warm(&reader);
    let (count, slices) = (column.sample_count(), slices(&column));
    let mut group = c.benchmark_group("gather 256 ragged");
    group.throughput(Throughput::Bytes(BATCH as u64 * 1024)); // on average
    let mut out = Vec::new();
    group.bench_function("memcpy", |b| {
        b.iter(|| {
            out.clear();
            request(&mut random, count).iter().for_each(|&i| out.extend_from_slice(slices[i as usize]));
            black_box(&mut out);
        });
    });
    let (mut cursor, mut buffer) = (column.cursor(), ColumnBuffer::new());
    group.bench_function("raw/gather_into", |b| {
        b.iter(|| cursor.gather_into(&request(&mut random, count), black_box(&mut buffer)).unwrap());
    });
}

/// The number of texts in a chat.
const TEXTS: usize = 8;
/// The bytes of a text.
const TEXT_BYTES: usize = 200;
const CHAT_BYTES: usize = TEXTS * TEXT_BYTES;

/// Returns a file of 16 MB of chats: lists of texts.
fn chats(profile: Profile) -> Vec<u8> {
    const CHATS: usize = 10_000;
    let mut random = Random::new();
    // words of one to eight letters, some more frequent than others
    let mut text = String::with_capacity(CHATS * CHAT_BYTES + 8);
    while text.len() < CHATS * CHAT_BYTES {
        let word = random.below(26) * random.below(26);
        text.extend((0..1 + word % 8).map(|i| char::from(b'a' + ((word + i * 7) % 26) as u8)));
        text.push(' ');
    }
    text.truncate(CHATS * CHAT_BYTES); // ASCII
    let (lengths, extents) = (vec![TEXTS as u32; CHATS], vec![TEXT_BYTES as u32; CHATS * TEXTS]);
    let texts = ColumnBatch::ragged(CHATS * TEXTS, &extents, text.as_bytes());
    write(
        ColumnSchema::utf8("x").list(),
        texts.in_lists(&[ListBatch::new(&lengths)]),
        &WriterOptions::new().profile(profile),
    )
}

fn lists(c: &mut Criterion) {
    let mut group = c.benchmark_group("chats of 8 x 200 B");
    group.throughput(Throughput::Bytes(CHAT_BYTES as u64));
    let mut all = Vec::new();
    for profile in [Profile::Raw, Profile::Fast, Profile::Balanced] {
        let reader = Reader::from_bytes(chats(profile)).unwrap();
        let column = reader.column("x").unwrap();
        let count = column.sample_count();
        let (mut cursor, mut buffer) = (column.cursor(), ColumnBuffer::new());
        cursor.range_into(0..count, &mut buffer).unwrap(); // everything is verified
        if profile == Profile::Raw {
            all = buffer.bytes().to_vec();
            let mut out = vec![0_u8; CHAT_BYTES];
            let chat = |i: u64| &all[i as usize * CHAT_BYTES..][..CHAT_BYTES];
            random(&mut group, "memcpy", count, |i| black_box(&mut out).copy_from_slice(chat(i)));
            random(&mut group, "raw/view_list", count, |i| {
                let list = column.view_list(i).unwrap().unwrap();
                list.items().for_each(|text| {
                    black_box(text.unwrap().bytes());
                });
            });
        }
        random(&mut group, &format!("{}/read_list", profile.name()), count, |i| {
            black_box(cursor.read_list(i).unwrap().sample_bytes());
        });
    }
    group.finish();
    let mut group = c.benchmark_group("gather 256 chats of 8 x 200 B");
    group.throughput(Throughput::Bytes((BATCH * CHAT_BYTES) as u64));
    let mut random = Random::new();
    let mut out = vec![0_u8; BATCH * CHAT_BYTES];
    let count = (all.len() / CHAT_BYTES) as u64;
    group.bench_function("memcpy", |b| {
        b.iter(|| {
            let slots = black_box(&mut out).chunks_exact_mut(CHAT_BYTES);
            let chats = request(&mut random, count).map(|i| &all[i as usize * CHAT_BYTES..][..CHAT_BYTES]);
            slots.zip(chats).for_each(|(to, chat)| to.copy_from_slice(chat));
        });
    });
    for profile in [Profile::Raw, Profile::Fast, Profile::Balanced] {
        let reader = Reader::from_bytes(chats(profile)).unwrap();
        let column = reader.column("x").unwrap();
        let (mut cursor, mut buffer) = (column.cursor(), ColumnBuffer::new());
        cursor.range_into(0..count, &mut buffer).unwrap();
        group.bench_function(format!("{}/gather_into", profile.name()), |b| {
            b.iter(|| cursor.gather_into(&request(&mut random, count), black_box(&mut buffer)).unwrap());
        });
    }
}

fn range(c: &mut Criterion) {
    let mut group = c.benchmark_group("range 256 x 768 B");
    let values = embeddings(384 * EMBEDDINGS);
    group.throughput(Throughput::Bytes(2 * 384 * BATCH as u64));
    for profile in [Profile::Raw, Profile::Fast, Profile::Balanced] {
        let bytes = file(&[384], &values, profile);
        let reader = Reader::from_bytes(bytes).unwrap();
        let column = warm(&reader);
        let starts = column.sample_count() - BATCH as u64;
        let (mut cursor, mut buffer) = (column.cursor(), ColumnBuffer::new());
        random(&mut group, &format!("{}/range_into", profile.name()), starts, |start| {
            cursor.range_into(start..start + BATCH as u64, black_box(&mut buffer)).unwrap();
        });
    }
}

fn range_by_position(c: &mut Criterion) {
    const SAMPLES: u64 = 1000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("embeddings.tsl");
    std::fs::write(&path, file(&[384], &embeddings(384 * EMBEDDINGS), Profile::Raw)).unwrap();
    let reader = Reader::open(&path).unwrap();
    let column = warm(&reader);
    let mut group = c.benchmark_group("range 1000 x 768 B");
    group.throughput(Throughput::Bytes(2 * 384 * SAMPLES));
    let starts = column.sample_count() - SAMPLES;
    let (mut cursor, mut buffer) = (column.cursor(), ColumnBuffer::new());
    random(&mut group, "raw/range_into, by position", starts, |start| {
        cursor.range_into(start..start + SAMPLES, black_box(&mut buffer)).unwrap();
    });
}

criterion_group! {
    name = benches;
    config = criterion();
    targets = view, random_and_sequential, gather, few, ragged, lists, range, range_by_position
}
criterion_main!(benches);
